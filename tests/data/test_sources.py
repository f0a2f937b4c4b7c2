"""Every set of the registry against the manifest of the shared data, whose values stand here."""

import gzip
import re
import zipfile
from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pytest

from ardvark.common.validate import InputError
from ardvark.data import available, golub_split, load, loading, parsers
from ardvark.data.sources import CHANGES, SOURCES, forms

# name: N, D, y = 1, y = 0, meaning of y = 1
MANIFEST = {
    "colon": (62, 2000, 40, 22, "tumour"),
    "colon_discrete": (62, 2000, 40, 22, "tumour"),
    "golub": (72, 7129, 25, 47, "AML"),
    "allaml": (72, 7129, 25, 47, "AML"),
    "leukemia_discrete": (72, 7070, 25, 47, "AML"),
    "lymphoma_discrete": (96, 4026, 46, 50, "DLBCL"),
    "dorothea8000": (1150, 8000, 112, 1038, "active"),
    "australian": (690, 14, 307, 383, "1"),
    "breast_wisconsin": (683, 9, 239, 444, "malignant"),
    "messidor": (1151, 19, 611, 540, "signs of retinopathy"),
    "heart": (270, 13, 120, 150, "heart disease"),
    "ionosphere": (351, 34, 225, 126, "good"),
    "prostate_ge": (102, 5966, 52, 50, "tumour"),
    "duke_lymph": (49, 7129, 24, 25, "node positive"),
    "sonar": (208, 60, 111, 97, "mine"),
    "waveform_uci": (3345, 40, 1653, 1692, "wave 2"),
}
UNAVAILABLE = {"smk_can_187", "gli_85", "lund_breast", "seed_eeg"}
NO_DOWNLOAD = {"duke_lymph"}  # its carrier's file is one of R


def test_the_registry_is_the_manifest():
    assert set(SOURCES) == set(MANIFEST) | UNAVAILABLE
    table = available()
    for name, (n, d, one, zero, positive) in MANIFEST.items():
        row = table.loc[name]
        assert (row["n"], row["d"], row["class_1"], row["class_0"]) == (n, d, one, zero)
        assert row["positive"] == positive


@pytest.mark.parametrize("name", SOURCES)
def test_entries_are_complete(name):
    source = SOURCES[name]
    assert source.home.startswith("http")
    assert source.citation
    assert source.licence
    assert source.transform in CHANGES
    assert re.fullmatch("[0-9a-f]{64}" if name in MANIFEST else "", source.arrays)
    if name in MANIFEST and name not in NO_DOWNLOAD:
        assert any(form.urls for form in source.forms)
    for form in source.forms:
        assert len(form.urls) == len(form.sha256)
        assert len(form.urls) in (0, len(form.files))
        assert all(re.fullmatch("([0-9a-f]{64})?", digest) for digest in form.sha256)
        assert all(re.fullmatch("https?://[^ ]+", url) for url in form.urls)
    files = [form.files for form in forms(name)]
    assert len(files) == len(set(files))
    assert (f"{name}.csv",) in files


@pytest.mark.parametrize("name", MANIFEST)
@pytest.mark.data
def test_shared_data_hold_the_manifest(shared, name):
    n, d, one, zero, positive = MANIFEST[name]
    data = load(name, raw=True, fetch=False)
    assert data.X.shape == (n, d)
    assert data.counts == (zero, one)
    assert data.class_names[1] == positive
    assert data.fingerprint == SOURCES[name].arrays
    digest = sha256(data.X.tobytes() + data.y.astype(np.int8).tobytes()).hexdigest()
    assert digest == SOURCES[name].arrays
    assert data.transform == ""
    assert available().loc[name, "present"] == "ARDVARK_DATA"
    source = SOURCES[name]
    if not source.transform:
        assert load(name, fetch=False).fingerprint == data.fingerprint


# --- what the manifest says of single sets ---------------------------------------------------


@pytest.mark.data
def test_colon_is_the_log_of_named_intensities(shared):
    data, raw = load("colon"), load("colon", raw=True)
    assert (data.transform, raw.transform) == ("log", "")
    np.testing.assert_array_equal(data.X, np.log(raw.X))
    for position, gene in (  # from 1, as in the papers
        (1772, "H08393"),
        (377, "Z50753"),
        (1668, "M82919"),
        (1210, "R55310"),
        (1679, "X53586"),
    ):
        assert data.feature_names[position - 1] == gene
    assert data.D - len(np.unique(raw.X, axis=1).T) == 9


@pytest.mark.data
def test_golub_is_clipped_and_logged(shared):
    data, raw = load("golub"), load("golub", raw=True)
    assert data.transform == "clip to [100, 16000], log10"
    assert 0.285 < (raw.X <= 0).mean() < 0.295  # 29 % are not positive
    np.testing.assert_array_equal(data.X, np.log10(np.clip(raw.X, 100, 16000)))
    assert data.feature_names[4846] == "X95735_at"


@pytest.mark.data
def test_golub_samples_are_those_of_the_table(shared):
    lines = (shared / "tables" / "golub.samples.csv").read_text().splitlines()[1:]
    rows = [line.split(",") for line in lines]  # row, sample, y, class, split
    data = load("golub")
    assert data.sample_names == tuple(f"sample_{row[1]}" for row in rows)
    assert data.y.tolist() == [int(row[2]) for row in rows]
    train, test = golub_split(data)
    assert (train.counts, test.counts) == ((27, 11), (20, 14))
    assert train.sample_names == tuple(f"sample_{row[1]}" for row in rows if row[4] == "train")
    assert test.sample_names == tuple(f"sample_{row[1]}" for row in rows if row[4] == "test")
    with pytest.raises(InputError, match=r"samples of load\('golub'\)"):
        golub_split(load("sonar"))


@pytest.mark.parametrize(
    ("name", "feature", "sample"),
    [
        ("dorothea8000", (0, "x1"), "1149"),
        ("ionosphere", (1, "pulse_1_imaginary"), "350"),
        ("breast_wisconsin", (5, "bare_nuclei"), "698"),
        ("messidor", (2, "microaneurysms_1"), "1150"),
        ("waveform_uci", (39, "noise_40"), "4999"),
        ("allaml", (4846, "gene_4847"), "71"),
    ],
)
@pytest.mark.data
def test_columns_and_rows_are_named(shared, name, feature, sample):
    """What the sha256 of the values does not see."""
    data = load(name)
    assert data.feature_names[feature[0]] == feature[1]
    assert data.sample_names[-1] == sample


# --- the forms at the public homes, rebuilt from the shared copies ---------------------------


def check(name, form, *paths):
    """Read files in a form as if fetched; the canonical arrays must come out."""
    table = loading._read(name, form, paths)
    assert sha256(table.X.tobytes() + table.y.astype(np.int8).tobytes()).hexdigest() == (
        SOURCES[name].arrays
    )
    return table


def public(name):
    return next(form for form in SOURCES[name].forms if form.urls)


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member, content in members.items():
            file.writestr(member, content)
    return path


@pytest.mark.data
def test_australian_is_read_as_uci_has_it(shared, tmp_path):
    lines = (shared / "raw" / "australian.dat").read_text().splitlines()[1:]
    plain = "\n".join(line.replace(", ", " ") for line in lines)
    path = tmp_path / "australian.dat"
    path.write_text(plain)
    check("australian", SOURCES["australian"].forms[0], path)
    zipped = archive(tmp_path / "a.zip", **{"australian.dat": plain, "australian.doc": "no"})
    check("australian", public("australian"), zipped)


@pytest.mark.parametrize(
    ("name", "file", "member"),
    [
        ("breast_wisconsin", "breast-cancer-wisconsin.data", "breast-cancer-wisconsin.data"),
        ("messidor", "messidor_features.arff", "messidor_features.arff"),
        ("heart", "heart.dat", "heart.dat"),
        ("ionosphere", "ionosphere.data", "ionosphere.data"),
        ("sonar", "sonar.csv", "sonar.all-data"),
    ],
)
@pytest.mark.data
def test_uci_archives_are_read(shared, tmp_path, name, file, member):
    content = (shared / "raw" / file).read_bytes().replace(b"\n", b"\r\n")
    zipped = archive(tmp_path / "uci.zip", **{member: content, "Index": "x"})
    check(name, public(name), zipped)


@pytest.mark.data
def test_dorothea_is_read_as_uci_has_it(shared, tmp_path):
    data = load("dorothea8000")
    members = {}
    parts = {"train": slice(0, 800), "valid": slice(800, None)}
    for part, rows in parts.items():
        lists = [np.flatnonzero(row) + 1 for row in data.X[rows]]
        text = "\n".join(" ".join(map(str, [*row, 8001, 100000])) + " " for row in lists)
        members[f"DOROTHEA/dorothea_{part}.data"] = text + "\n"
        folder = "DOROTHEA/" if part == "train" else ""
        labels = "\n".join(str(2 * y - 1) for y in data.y[rows])
        members[f"{folder}dorothea_{part}.labels"] = labels + "\n"
    check("dorothea8000", public("dorothea8000"), archive(tmp_path / "d.zip", **members))


@pytest.mark.data
def test_waveform_is_read_from_arff(shared, tmp_path):
    with gzip.open(shared / "raw" / "waveform-+noise.data.gz", "rt") as file:
        rows = file.read()
    header = "% by hand\n@RELATION waveform\n@ATTRIBUTE x1 REAL\n@DATA\n"
    path = tmp_path / "waveform.arff"
    path.write_text(header + rows.replace("-0.00", "0"))
    check("waveform_uci", public("waveform_uci"), path)


@pytest.mark.data
def test_colon_is_read_from_the_authors_pages(shared, tmp_path, caplog):
    raw = load("colon", raw=True)
    lines = (shared / "tables" / "colon.features.csv").read_text().splitlines()[1:]
    genes = [line.split(",") for line in lines]  # index, column, accession, ARFF name, Hsa
    pages = {
        "I2000": "\n\n".join(" ".join(f"{v:.7e}" for v in row) for row in raw.X.T),
        "tissues": "\n".join(str(-i if y else i) for i, y in enumerate(raw.y, start=1)),
        "names": "\n".join(f"{g[4]}\t{g[2] or 'control'}\tgene\t1\tH.sapiens" for g in genes),
    }
    for name, text in pages.items():
        head = f"<html><head><title>{name}</title></head>"
        body = f"<body><pre>\n{text}\n</pre></body></html>"
        (tmp_path / name).write_text(f"{head}\n{body}")
    table = check("colon", public("colon"), *(tmp_path / name for name in pages))
    assert tuple(table.feature_names) == raw.feature_names
    # a page of names in another form costs the names, not the data
    (tmp_path / "names").write_text("moved")
    table = check("colon", public("colon"), *(tmp_path / name for name in pages))
    assert table.feature_names[1771] == "gene_1772"
    assert "columns are numbered" in caplog.text


@pytest.mark.data
def test_golub_is_read_from_the_authors_files(shared, tmp_path):
    raw = load("golub", raw=True)
    paths = []
    for part, rows in {"train": slice(0, 38), "test": slice(38, None)}.items():
        samples = [name.removeprefix("sample_") for name in raw.sample_names[rows]]
        head = ["Gene Description", "Gene Accession Number"]
        head += [cell for sample in samples for cell in (sample, "call")]
        text = ["\t".join(head)]
        for gene, values in zip(raw.feature_names, raw.X[rows].T.astype(int), strict=True):
            cells = [c for v in values for c in ("-0" if v == 0 else str(v), "P")]
            text.append("\t".join([f"{gene} (caf\xe9)", gene, *cells, ""]))
        paths.append(tmp_path / part)
        paths[-1].write_text("\n".join(text), encoding="latin-1")
    table = check("golub", public("golub"), *paths)
    assert tuple(table.feature_names) == raw.feature_names
    assert tuple(table.sample_names) == raw.sample_names
    with pytest.raises(InputError, match=r"could not be read as 'golub'.*has samples"):
        check("golub", public("golub"), *paths[::-1])


# --- the parsers by themselves ---------------------------------------------------------------


def test_tidy_tables_are_read_exactly(tmp_path):
    path = tmp_path / "toy.csv"
    path.write_text('y,"a, b",c\n1,0.1,-0\n  \n0,1e-300,3.0000000000000004\n')
    table = parsers.tidy([path])
    assert table.feature_names == ["a, b", "c"]
    assert table.y.tolist() == [1, 0]
    np.testing.assert_array_equal(table.X, [[0.1, 0], [1e-300, 3.0000000000000004]])
    assert not np.signbit(table.X[0, 1])
    for text, message in (
        ("Y,a\n1,2\n", "first column must be called y, got 'Y'"),
        ("y,a\n2,2\n", "column y must contain 0 and 1"),
        ("y,a\n1,\n", "could not convert"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            parsers.tidy([path])


def test_rows_are_read_in_each_of_their_forms(tmp_path):
    """With commas or blanks, quotes, comments, a row with "?", blank lines and two more classes."""
    path, names = tmp_path / "toy.data", ("a_1..3", "b")
    arff = ["% 9", "@DATA", "  ", "7, 1,2, 3,4,yes", "% 8,1", "7,5,?,7,8,yes", "7,9,8,7,6,'no'",
            "7,0,0,0,0,maybe"]  # fmt: skip
    blanks = ["a_1 a_2 a_3 b", "1 2 3 4 yes", "\t", "5 ? 7 8 yes", "9 8 7 6 no"]
    for lines, given in ((arff, {"first": 1, "kept": ("yes", "no")}), (blanks, {})):
        path.write_text("\n".join(lines))
        table = parsers.rows([path], names=names, positive="yes", **given)
        np.testing.assert_array_equal(table.X, [[1, 2, 3, 4], [9, 8, 7, 6]])
        assert table.y.tolist() == [1, 0]
        assert table.feature_names == ["a_1", "a_2", "a_3", "b"]
        assert table.sample_names == ["0", "2"]
    with pytest.raises(ValueError, match="a row has 4 numbers, expected 2"):
        parsers.rows([path], names=("a_1", "b"), positive="yes")


def test_only_the_named_member_of_an_archive_is_read(tmp_path):
    zipped = archive(tmp_path / "x.zip", **{"../evil": "1", "good": "2"})
    assert parsers.read_bytes(zipped, "good") == b"2"
    assert [path.name for path in tmp_path.iterdir()] == ["x.zip"]
    with pytest.raises(KeyError, match="absent"):
        parsers.read_bytes(zipped, "absent")


def test_decompression_bombs_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(parsers, "LARGEST", 1000)
    zipped = archive(tmp_path / "x.zip", big="0" * 1001, small="0" * 1000)
    packed = tmp_path / "x.gz"
    packed.write_bytes(gzip.compress(b"0" * 1001))
    assert len(parsers.read_bytes(zipped, "small")) == 1000
    for path in (zipped, packed):
        with pytest.raises(ValueError, match="would unpack to"):
            parsers.read_bytes(path, "big")


def test_mat_files_are_read(tmp_path):
    from scipy.io import savemat

    path = tmp_path / "toy.mat"
    X = np.array([[1, -2, 0], [0, 2, 2]], dtype=np.int16)
    savemat(path, {"X": X, "Y": np.array([[2], [1]], dtype=np.uint8)})
    table = parsers.mat([path], positive=2)
    np.testing.assert_array_equal(table.X, X)
    assert table.y.tolist() == [1, 0]
    assert table.feature_names == ["gene_1", "gene_2", "gene_3"]
    savemat(path, {"X": np.array([["a"], [1]], dtype=object), "Y": [[1], [2]]})
    with pytest.raises(ValueError, match="X contains object values"):
        parsers.mat([path], positive=2)


def test_colon_names_mark_repeats():
    names = parsers.colon_names(["H1", "R39465", "R39465", "H1", "H1"])
    assert names == ["H1", "R39465a", "R39465b", "H1.2", "H1.3"]


def test_golub_labels_are_complete():
    split = SimpleNamespace(train=parsers.GOLUB_TRAIN, test=parsers.GOLUB_TEST)
    assert sorted(split.train + split.test) == list(range(1, 73))
    assert len(split.train) == 38
    assert len(parsers.GOLUB_AML) == 25
