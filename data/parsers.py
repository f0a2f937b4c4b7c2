"""Readers of the file formats in which the data sets are published.

Each parser takes the files of one form (see `sources.Form`) and returns a `Table`: the values in
the file, before any transform. No file is trusted. Archives are never unpacked to disk: only the
named member is read. Nothing is unpickled. The caller checks the contents against the registry. A
file that is not in the expected format raises some exception, which the caller turns into one clear
message.
"""

import csv
import gzip
import re
import zipfile
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ardvark.common.validate import logger

LARGEST = 512 * 1024**2  # bytes of one unpacked member: more is a decompression bomb, not our data

AUSTRALIAN = tuple(f"A{k}" for k in range(1, 15))
BREAST = (
    "clump_thickness",
    "cell_size_uniformity",
    "cell_shape_uniformity",
    "marginal_adhesion",
    "epithelial_cell_size",
    "bare_nuclei",
    "bland_chromatin",
    "normal_nucleoli",
    "mitoses",
)
MESSIDOR = (
    "quality",
    "prescreening",
    *(f"microaneurysms_{k}" for k in range(1, 7)),
    *(f"exudates_{k}" for k in range(1, 9)),
    "macula_disc_distance",
    "disc_diameter",
    "am_fm_class",
)
HEART = (
    *("age", "sex", "chest_pain", "resting_pressure", "cholesterol", "fasting_sugar"),
    *("resting_ecg", "max_heart_rate", "exercise_angina", "st_depression", "st_slope"),
    *("major_vessels", "thal"),
)
# Sample numbers of Golub et al. in the column order of the two files of the authors, which is the
# row order here. The second file has no class labels; 50-54, 57, 58 and 60-66 are its AML samples.
GOLUB_TRAIN = (*range(1, 28), *range(34, 39), *range(28, 34))
GOLUB_TEST = (
    *(39, 40, 42, 47, 48, 49, 41, 43, 44, 45, 46, 70, 71, 72, 68, 69, 67, 55, 56, 59),
    *(52, 53, 51, 50, 54, 57, 58, 60, 61, 65, 66, 63, 64, 62),
)
GOLUB_AML = frozenset((*range(28, 39), *range(50, 55), 57, 58, *range(60, 67)))
# Genes of colon whose accession number has a letter in the usual names, by column from 1: the
# array's control spots, which have no accession number, and pairs of probes of one gene.
COLON_LETTERED = {
    **dict(zip((2, 3), ("R39465a", "R39465b"), strict=True)),
    **dict(zip((6, 29), ("R02593a", "R02593b"), strict=True)),
    **dict(zip((8, 25), ("H80240a", "H80240b"), strict=True)),
    **dict(zip((12, 27), ("H86060a", "H86060b"), strict=True)),
    **dict(zip((49, 70), ("T61661b", "T61661a"), strict=True)),
    **dict(zip((39, 40, 41, 42), (f"control{c}" for c in "abcd"), strict=True)),
    **dict(zip((50, 51, 52, 53), (f"control{c}" for c in "efgh"), strict=True)),
    **dict.fromkeys((260, 261, 262, 263), "control"),
}


class Table(NamedTuple):
    """What a parser returns: X (N, D) float64, y (N,) 0 or 1, and the names of columns and rows."""

    X: np.ndarray
    y: np.ndarray
    feature_names: Sequence[str]
    sample_names: Sequence[str]


Parser = Callable[[Sequence[Path]], Table]


def read_bytes(path: Path, member: str = "") -> bytes:
    """Return the content of a file: of one member of a zip archive, of gzip, or of a plain file."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(member)  # KeyError names a missing member
            if info.file_size > LARGEST:
                raise ValueError(f"{member} would unpack to {info.file_size} bytes")
            return archive.read(info)
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            return file.read()
        with gzip.open(file) as unpacked:
            content = unpacked.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{path.name} would unpack to more than {LARGEST} bytes")
    return content


def _lines(path: Path, member: str = "") -> list[str]:
    """Return the lines that are not blank. Latin 1 accepts any byte and leaves ASCII unchanged."""
    return [
        line for line in read_bytes(path, member).decode("latin-1").splitlines() if line.strip()
    ]


def _numbers(lines: Sequence[str]) -> np.ndarray:
    """Return rows of comma-separated numbers (N, D), each the nearest float64."""
    return np.loadtxt(lines, delimiter=",", ndmin=2, comments=None)


def _table(X: object, y: object, features: Sequence[str], samples: Sequence[str] = ()) -> Table:
    # adding 0.0 turns the -0 of some files into 0, so that equal values have equal bytes
    values = np.ascontiguousarray(X, dtype=np.float64) + 0.0
    rows = samples or [str(i) for i in range(len(values))]
    return Table(values, np.asarray(y).astype(np.int64), list(features), rows)


def tidy(paths: Sequence[Path]) -> Table:
    """Read a tidy table: a header, first column y (0 or 1), then one column per feature."""
    header, *rows = _lines(paths[0])
    first, *features = next(csv.reader([header]))
    if first != "y":
        raise ValueError(f"the first column must be called y, got {first!r}")
    values = _numbers(rows)
    if not np.isin(values[:, 0], (0, 1)).all():
        raise ValueError("column y must contain 0 and 1")
    return _table(values[:, 1:], values[:, 0], features)


def tidy_golub(paths: Sequence[Path]) -> Table:
    """Read golub's tidy table, whose rows are in the authors' order, and name its samples."""
    return tidy(paths)._replace(sample_names=[f"sample_{s}" for s in GOLUB_TRAIN + GOLUB_TEST])


def mat(paths: Sequence[Path], *, positive: int) -> Table:
    """Read a MATLAB file of scikit-feature: X (N, D) and Y (N, 1), where y = 1 is Y == positive.

    The files do not name the genes. Columns are gene_1, gene_2, ..., counted as in the papers.
    """
    from scipy.io import loadmat

    content = loadmat(BytesIO(read_bytes(paths[0])), variable_names=("X", "Y"))
    X, Y = np.asarray(content["X"]), np.asarray(content["Y"]).ravel()
    if X.dtype.kind not in "biuf" or X.ndim != 2:
        raise ValueError(f"X contains {X.dtype} values in {X.ndim} dimensions")
    return _table(X, positive == Y, [f"gene_{k + 1}" for k in range(X.shape[1])])


def colon_princeton(paths: Sequence[Path]) -> Table:
    """Read the authors' pages: I2000.html (genes in rows), tissues.html (signs), names.html.

    A tissue with a negative number is a tumour. Line k of names.html begins with an identifier and
    the accession number of gene k. If that cannot be read, columns are gene_1, gene_2, ...
    """
    values, tissues, names = (re.sub(r"<[^>]*>", " ", "\n".join(_lines(p))) for p in paths)
    rows = [line.split() for line in values.splitlines() if len(line) > 400]  # 62 numbers each
    signs = [int(t) for t in tissues.splitlines() if re.fullmatch(r"\s*-?\d+\s*", t)]
    X = np.array(rows, dtype=np.float64).T  # (62, 2000)
    spot = r"^\s*(?:(?:H?s)?a\.\d+|HSAC\d+|UMGAP|i)[ \t]+(\S+)"  # three lack first letters
    genes = re.findall(spot, names, flags=re.MULTILINE)
    if len(genes) == X.shape[1]:
        features = colon_names(genes)
    else:
        logger.warning("%s does not list %d genes, so columns are numbered", paths[2], X.shape[1])
        features = [f"gene_{k + 1}" for k in range(X.shape[1])]
    return _table(X, np.array(signs) < 0, features)


def colon_names(accessions: Sequence[str]) -> list[str]:
    """Return the usual names of colon's genes: accession numbers, repeats marked .2, .3, ..."""
    seen: dict[str, int] = {}
    names = []
    for k, accession in enumerate(accessions, start=1):
        name = COLON_LETTERED.get(k, accession)
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
    return names


def golub_broad(paths: Sequence[Path]) -> Table:
    """Read the authors' two files: genes in rows, a value and a call (A, M, P) for each sample."""
    blocks, genes = [], []
    for path, samples in zip(paths, (GOLUB_TRAIN, GOLUB_TEST), strict=True):
        header, *rows = (line.split("\t") for line in _lines(path))
        at = [k for k in range(2, len(header) - 1) if header[k + 1].strip() == "call"]
        found = [int(header[k]) for k in at]
        if found != list(samples):
            raise ValueError(f"{path.name} has samples {found}, expected {list(samples)}")
        blocks.append(np.array([[float(row[k]) for k in at] for row in rows]).T)
        genes.append([row[1].strip() for row in rows])
    if genes[0] != genes[1]:
        raise ValueError("the two files list different genes")
    y = [sample in GOLUB_AML for sample in GOLUB_TRAIN + GOLUB_TEST]
    names = [f"sample_{s}" for s in GOLUB_TRAIN + GOLUB_TEST]
    return _table(np.vstack(blocks), y, genes[0], names)


def dorothea(paths: Sequence[Path]) -> Table:
    """Read the first 8000 of UCI's 100000 binary columns: train rows, then validation rows.

    A row of the data files lists, from 1, the columns that are 1; a label is 1 or -1.
    """
    D = 8000
    ones: list[np.ndarray] = []
    labels: list[int] = []
    for part, folder in (("train", "DOROTHEA/"), ("valid", "")):
        data = read_bytes(paths[0], f"DOROTHEA/dorothea_{part}.data").decode("ascii").splitlines()
        ones += [np.array(line.split(), dtype=np.int64) - 1 for line in data]
        labels += map(int, read_bytes(paths[0], f"{folder}dorothea_{part}.labels").split())
    X = np.zeros((len(ones), D))
    for row, columns in zip(X, ones, strict=True):
        row[columns[columns < D]] = 1
    return _table(X, np.array(labels) == 1, [f"x{k + 1}" for k in range(D)])


def australian(paths: Sequence[Path]) -> Table:
    """Read 14 numbers and the class, separated by blanks (UCI) or by commas after a header."""
    lines = [line.replace(",", " ") for line in _lines(paths[0], "australian.dat")]
    values = np.loadtxt(lines[1:] if lines[0].lstrip().startswith("A1") else lines)
    return _table(values[:, :-1], values[:, -1] == 1, AUSTRALIAN)


def breast(paths: Sequence[Path]) -> Table:
    """Read UCI's file: an identifier, nine grades from 1 to 10, class 2 or 4. Rows with '?' go."""
    lines = _lines(paths[0], "breast-cancer-wisconsin.data")
    kept = [i for i, line in enumerate(lines) if "?" not in line]
    values = _numbers([lines[i] for i in kept])
    return _table(values[:, 1:-1], values[:, -1] == 4, BREAST, [str(i) for i in kept])


def messidor(paths: Sequence[Path]) -> Table:
    """Read UCI's ARFF file: 19 numbers and the class."""
    values = _numbers(_rows(_lines(paths[0], "messidor_features.arff")))
    return _table(values[:, :-1], values[:, -1] == 1, MESSIDOR)


def heart(paths: Sequence[Path]) -> Table:
    """Read UCI's file: 13 numbers and the class, 1 or 2 (disease), separated by blanks."""
    values = np.loadtxt(_lines(paths[0], "heart.dat"))
    return _table(values[:, :-1], values[:, -1] == 2, HEART)


def ionosphere(paths: Sequence[Path]) -> Table:
    """Read UCI's file: 17 complex returns as pairs of numbers, and g (good) or b (bad)."""
    parts = [f"pulse_{k}_{part}" for k in range(1, 18) for part in ("real", "imaginary")]
    return _lettered(_lines(paths[0], "ionosphere.data"), "g", parts)


def sonar(paths: Sequence[Path]) -> Table:
    """Read UCI's file: energy in 60 frequency bands, and R (rock) or M (mine)."""
    bands = [f"band_{k}" for k in range(1, 61)]
    return _lettered(_lines(paths[0], "sonar.all-data"), "M", bands)


def _lettered(lines: Sequence[str], positive: str, features: Sequence[str]) -> Table:
    """Read rows of comma-separated numbers that end with a letter, the class."""
    rows = [line.rsplit(",", 1) for line in lines]
    return _table(
        _numbers([row[0] for row in rows]), [row[1].strip() == positive for row in rows], features
    )


def waveform(paths: Sequence[Path]) -> Table:
    """Read 40 numbers and a class 0, 1 or 2, from plain rows or OpenML's ARFF; keep 0 and 1."""
    from .builtin import waveform_names

    values = _numbers(_rows(_lines(paths[0])))
    kept = np.flatnonzero(values[:, -1] < 2)
    rows = [str(i) for i in kept]
    return _table(values[kept, :-1], values[kept, -1] == 1, waveform_names(), rows)


def _rows(lines: Sequence[str]) -> list[str]:
    """Return the rows of a dense ARFF file without its header and quotes; of others, all lines."""
    start = next((i + 1 for i, x in enumerate(lines) if x.strip().lower() == "@data"), 0)
    return [line.replace("'", "") for line in lines[start:] if not line.startswith("%")]
