"""Readers of the file formats in which the data sets are published.

Each parser takes the files of one form (see `sources.Form`) and returns a `Parsed`: the values in
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
from io import BytesIO, StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ardvark.common.validate import logger

LARGEST = 512 * 1024**2  # bytes of one unpacked member: more is a decompression bomb, not our data

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


class Parsed(NamedTuple):
    """What a parser returns: X (N, D) float64, y (N,) 0 or 1, and the names of columns and rows."""

    X: np.ndarray
    y: np.ndarray
    feature_names: Sequence[str]
    sample_names: Sequence[str]


Parser = Callable[[Sequence[Path]], Parsed]


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
    text = read_bytes(path, member).decode("latin-1")
    return [line for line in text.splitlines() if line.strip()]


def _table(X: object, y: object, features: Sequence[str], samples: Sequence[str] = ()) -> Parsed:
    # adding 0.0 turns the -0 of some files into 0, so that equal values have equal bytes
    values = np.ascontiguousarray(X, dtype=np.float64) + 0.0
    rows = samples or [str(i) for i in range(len(values))]
    return Parsed(values, np.asarray(y).astype(np.int64), list(features), rows)


def tidy(paths: Sequence[Path]) -> Parsed:
    """Read a tidy table: a header, first column y (0 or 1), then one column per feature."""
    header, *lines = _lines(paths[0])
    first, *features = next(csv.reader([header]))
    if first != "y":
        raise ValueError(f"the first column must be called y, got {first!r}")
    values = np.loadtxt(lines, delimiter=",", ndmin=2, comments=None)  # each the nearest float64
    if not np.isin(values[:, 0], (0, 1)).all():
        raise ValueError("column y must contain 0 and 1")
    return _table(values[:, 1:], values[:, 0], features)


def rows(
    paths: Sequence[Path],
    *,
    names: Sequence[str],
    positive: str,
    member: str = "",
    first: int = 0,
    kept: Sequence[str] = (),
) -> Parsed:
    """Read rows of numbers that end with the class, separated by commas or blanks, or dense ARFF.

    Samples are named by their rows in the file, from 0; a row with "?" is left out.

    Parameters
    ----------
    paths
        One file, plain or packed.
    names : sequence of str
        The features; "a_1..3" is a_1, a_2, a_3.
    positive : str
        The class that is y = 1.
    member : str
        The file in a zip archive.
    first : int
        The first column that is a feature.
    kept : sequence of str
        The classes whose rows are kept; by default all.
    """
    lines = _lines(paths[0], member)
    start = next((i + 1 for i, line in enumerate(lines) if line.strip().lower() == "@data"), 0)
    cells = [
        ",".join(re.split(r"[,\s]+", line.strip().replace("'", "")))
        for line in lines[start:]
        if not line.startswith("%")
    ]
    features = _spelled(names)
    content = StringIO("\n".join(cells[cells[0].split(",")[0] == features[0] :]))
    frame = pd.read_csv(content, header=None, dtype=str, na_values="?").dropna()
    label = frame.pop(frame.columns[-1])
    if kept:
        frame, label = frame[label.isin(kept)], label[label.isin(kept)]
    values = frame.iloc[:, first:].to_numpy(dtype=object).astype(np.float64)
    if values.shape[1] != len(features):
        raise ValueError(f"a row has {values.shape[1]} numbers, expected {len(features)}")
    return _table(values, label == positive, features, [str(i) for i in frame.index])


def _spelled(names: Sequence[str]) -> list[str]:
    """Return names with a range in them one by one."""
    found: list[str] = []
    for name in names:
        parts = re.fullmatch(r"(.*?)(\d+)\.\.(\d+)", name)
        ends = range(int(parts[2]), int(parts[3]) + 1) if parts else ()
        found += [f"{parts[1]}{k}" for k in ends] if parts else [name]
    return found


def tidy_golub(paths: Sequence[Path]) -> Parsed:
    """Read golub's tidy table, whose rows are in the authors' order, and name its samples."""
    return tidy(paths)._replace(sample_names=[f"sample_{s}" for s in GOLUB_TRAIN + GOLUB_TEST])


def mat(paths: Sequence[Path], *, positive: int) -> Parsed:
    """Read a MATLAB file of scikit-feature: X (N, D) and Y (N, 1), where y = 1 is Y == positive.

    The files do not name the genes. Columns are gene_1, gene_2, ..., counted as in the papers.
    """
    from scipy.io import loadmat

    content = loadmat(BytesIO(read_bytes(paths[0])), variable_names=("X", "Y"))
    X, Y = np.asarray(content["X"]), np.asarray(content["Y"]).ravel()
    if X.dtype.kind not in "biuf" or X.ndim != 2:
        raise ValueError(f"X contains {X.dtype} values in {X.ndim} dimensions")
    return _table(X, positive == Y, [f"gene_{k + 1}" for k in range(X.shape[1])])


def colon_princeton(paths: Sequence[Path]) -> Parsed:
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


def golub_broad(paths: Sequence[Path]) -> Parsed:
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


def dorothea(paths: Sequence[Path]) -> Parsed:
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
