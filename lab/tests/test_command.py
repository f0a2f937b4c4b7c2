"""The laboratory's command line: what it lists, what it refuses, and what it finds stored."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from ardvark.common.writer import one_writer
from lab import __main__ as entry
from lab.genes import pieces
from lab.genes.declared import HERE, TABLES
from lab.lines import read
from lab.matrix.declared import BLOCKS
from lab.papers import store
from lab.papers.tables import GROUPS

STORED = Path(entry.__file__).parent


@pytest.fixture
def command(monkeypatch, capsys):
    """Run `python -m lab` in this process: its output and exit code."""

    def run(*words):
        monkeypatch.setattr("sys.argv", ["lab", *map(str, words)])
        monkeypatch.setattr("ardvark.common.interrupt.ends_at_once", lambda: None)
        with pytest.raises(SystemExit) as ended:
            entry.main()
        said = capsys.readouterr()
        return SimpleNamespace(returncode=ended.value.code or 0, stdout=said.out, stderr=said.err)

    return run


def test_the_blocks_of_the_matrix_are_listed_and_bad_ones_refused(command, tmp_path):
    words = ("--list", "--only", "jcfo,rfvm/allaml/dense", "--out", tmp_path)
    listed = command("reproduce", "matrix", *words)
    assert listed.returncode == 0
    assert "jcfo/colon/double_exponential" in listed.stdout
    assert "rfvm/allaml/dense" in listed.stdout
    assert "pfcvm" not in listed.stdout
    assert "0 of 5 are in" in listed.stdout
    for words in (["--only", "lupus"], ["--summarise"], ["--processes", "0"], ["--folds", "2"]):
        refused = command("reproduce", "matrix", *words, "--out", tmp_path)
        assert refused.returncode == 2
        assert refused.stderr.startswith("lab: ")
        assert len(refused.stderr.splitlines()) == 1


def test_the_tables_of_the_papers_are_listed_and_bad_ones_refused(command, tmp_path):
    every = command("reproduce", "--out", tmp_path)
    assert every.returncode == 0, every.stderr
    tables = ("matrix", "rfvm-3-4", "pfcvm-6", "jcfo-1", "fsklr-2", "fsklr-3", "pfcvm-1")
    assert [line.split()[1] for line in every.stdout.splitlines() if "│" in line] == list(tables)
    assert "estimates" in every.stdout
    rows = command("reproduce", "fsklr-2", "--list", "--only", "*svm*", "--out", tmp_path)
    (svm, matched) = (line.split() for line in rows.stdout.splitlines() if "│" in line)
    assert svm[1:6] == ["fsklr-2/digits38_noisy/rbf_svm", "│", "0/5", "│", "yes"]
    assert matched[1] == "fsklr-2/digits38_noisy/rbf_svm-matched"
    for words in (
        ["fsklr-4"], ["fsklr-2", "--summarise"], ["fsklr-2", "--only", "lupus"], ["--summarise"],
        ["pfcvm-1"], ["fsklr-2", "--keep-fits"], ["fsklr-2", "--processes", "2", "--workers", "2"],
        ["fsklr-2", "--workers", "2", "--scheduler", "tcp://localhost:1"],
    ):  # fmt: skip
        refused = command("reproduce", *words, "--out", tmp_path)
        assert refused.returncode == 2, words
        assert refused.stderr.startswith("lab: ")
        assert len(refused.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_one_command_at_a_time_writes_to_a_folder(command, tmp_path):
    out = tmp_path / "matrix"
    for words, folder in (
        (["fsklr-2", "--only", "l1_logistic"], tmp_path / "paper_check" / "folds"),
        (["matrix", "--only", "rfvm/allaml/flat"], out),
    ):
        where = ["--out", out if words[0] == "matrix" else tmp_path]
        with one_writer(folder):
            refused = command("reproduce", *words, *where)
        assert refused.returncode == 2
        assert refused.stderr == (
            f"lab: another command writes to {folder}. Wait until it has ended, or choose "
            "another folder with --out.\n"
        )
        assert [path.name for path in folder.iterdir()] == [".lock"]


def test_without_a_name_it_lists_what_there_is(command):
    listed = command()
    assert listed.returncode == 0
    for name in entry.scripts():
        assert f"  {name} " in listed.stdout
    assert command("no_such").returncode == "lab: nothing is called 'no_such'."


# --- what was computed is found -------------------------------------------------------------------


def test_every_stored_fold_and_block_is_recognised(command):
    """Also by the lists, which leave nothing to compute again; a changed identity would."""
    folds = STORED / "paper_check" / "folds"
    stored = {path: len(read(path)) for path in sorted(folds.glob("*.csv"))}
    found = Counter()
    for group in GROUPS:
        for row in group.rows:
            found[store.file_of(group, folds)] += len(store.lines_of(group, row, folds))
            steps = store.paths_of(group, row, folds).values()
            found[store.file_of(group, folds, path=True)] += sum(map(len, steps))
    assert {path: n for path, n in found.items() if n} == stored
    keys = ("model", "kernel", "data", "prior")
    rows = read(STORED / "matrix" / "matrix.csv")
    blocks = {tuple(row[k] for k in keys) for row in rows}
    listed = command("reproduce", "matrix", "--list", "--out", STORED / "matrix").stdout
    assert f"\n{len(blocks)} of {len(BLOCKS)} are in " in listed


def test_every_stored_gene_is_recognised():
    fits = dict.fromkeys(fit for table in TABLES for fit in table.fits)
    found = list(filter(None, map(pieces.Posteriors(HERE, "").get, fits)))
    assert len(found) == len(read(HERE / "fits.csv"))
    folds = [x for each in dict.fromkeys(f for t in TABLES for f in t.folds)
             for x in pieces.pieces(each)]  # fmt: skip
    found = list(filter(None, map(pieces.AllFolds(HERE, "").get, folds)))
    assert len(found) == len(read(HERE / "folds.csv"))
