"""Rows are kept as they are computed, and come back as they were; so are versions."""

import subprocess

import pytest

from lab import origin, rows


def test_a_run_that_was_stopped_goes_on_with_what_it_has(tmp_path):
    calls = []

    def compute(k):
        calls.append(k)
        if k == 3:
            raise KeyboardInterrupt
        row = {"value": 0.1 * k, "count": k, "word": "a, b", "none": None, "true": True}
        return row | ({"more": 1} if k == 2 else {})

    def work(ks):
        return (({"k": k, "no": ""}, lambda k=k: compute(k)) for k in ks)

    path = tmp_path / "folder" / "rows.csv"
    with pytest.raises(KeyboardInterrupt):
        rows.computed(path, work([1, 2, 3]))
    again = rows.computed(path, work([2, 1, 4]))
    assert calls == [1, 2, 3, 4]
    assert [row["k"] for row in again] == [2, 1, 4]
    assert [row["value"] for row in again] == [0.2, 0.1, 0.4]
    assert (again[0]["word"], again[0]["true"], again[0]["none"]) == ("a, b", True, None)
    assert len(rows.read(path)) == 3
    assert [p.name for p in path.parent.iterdir()] == ["rows.csv"]


def test_a_version_has_a_plus_where_code_has_changed_and_not_where_a_table_has(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(origin, "ROOT", tmp_path)
    assert origin.version() == "unknown"  # an installed package has no checkout

    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        command = ["git", "-C", str(tmp_path), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    names = (
        "models/rvm.py",
        "lab/rows.py",
        "lab/speed/fits.py",
        "lab/speed/exact.csv",
        "README.md",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    commit = git("rev-parse", "HEAD")[:8]
    assert origin.version() == commit
    for name in names:
        (tmp_path / name).write_text("2")
        assert origin.version() == commit + "+" * name.endswith(".py"), name
        (tmp_path / name).write_text("1")
