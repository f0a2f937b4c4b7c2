"""Every script still runs, in its quick form, and writes records that can be read."""

import importlib
import inspect
from pathlib import Path

import pytensor
import pytest

from lab import origin, pages, records, script
from lab.__main__ import scripts

ROOT = Path(__file__).parents[2]
SCRIPTS = scripts()


def parts_of(name):
    module = importlib.import_module(SCRIPTS[name])
    return module, module.PARTS


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    """Scripts start processes that find the laboratory; what PyMC itself compiles, it does fast."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_quick_form_runs_and_writes_its_records(name, tmp_path):
    before = {p: p.read_bytes() for p in records.RESULTS.glob("*.json")}
    module, parts = parts_of(name)
    script.run(module, ["--quick", "--out", str(tmp_path)])
    found = records.everything(tmp_path)
    assert set(found) == {"-".join(filter(None, (name, part.name))) for part in parts}
    for record in found.values():
        assert record.quick
        assert not record.transcribed
        assert record.code
        assert not record.changed()
        assert record.command.startswith(f"python -m lab {name}")
        assert str(tmp_path) not in records.text_of(record)
        assert any(table.rows for table in record.measured)
        for table in record.measured:
            assert records.markdown(table).count("\n") == len(table.rows) + 1
    assert before == {p: p.read_bytes() for p in records.RESULTS.glob("*.json")}


def test_each_record_has_a_script_or_was_copied():
    made = {
        "-".join(filter(None, (name, part.name))): part.title
        for name in SCRIPTS
        for part in parts_of(name)[1]
    }
    stored = records.everything()
    assert set(made) <= set(stored)
    for name, record in stored.items():
        assert name in made or record.transcribed, name
        assert record.title == made.get(name, record.title)


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_names_what_it_measures(name):
    for measured in parts_of(name)[0].MEASURES:
        assert origin.code([measured]), measured


def test_a_record_is_as_old_as_the_rows_that_it_keeps(tmp_path):
    module, _ = parts_of("comparison_speed")
    work = tmp_path / "work" / "comparison_speed"
    for noted in ({"models/rvm.py": "1a2b3c4d"}, {}):
        script.note_code(work, noted)
        (work / "rows.csv").touch()
        script.run(module, ["--quick", "--out", str(tmp_path)])
        assert records.read(tmp_path / "comparison_speed.json").code == noted


def test_a_quick_run_cannot_overwrite_a_result(capsys):
    module, _ = parts_of("comparison_speed")
    with pytest.raises(SystemExit):
        script.run(module, ["--quick"])
    assert "--out" in capsys.readouterr().err


def test_every_script_says_how_it_is_run():
    for name in SCRIPTS:
        about = inspect.getdoc(importlib.import_module(SCRIPTS[name]))
        assert f"python -m lab {name}" in about, name
        assert "RESULTS.md" not in about
    assert not {name for names in pages.PAGES.values() for name in names} - set(
        records.everything()
    )


def test_rows_are_computed_once_and_come_back_as_they_were(tmp_path):
    calls = []

    def compute(k):
        calls.append(k)
        row = {"value": 0.1 * k, "count": k, "word": "a, b", "none": None, "true": True}
        return row | ({"more": 1} if k == 2 else {})

    def rows(ks):
        return (({"k": k, "no": ""}, lambda k=k: compute(k)) for k in ks)

    path = tmp_path / "rows.csv"
    first = script.resumed(path, rows([1, 2]))
    again = script.resumed(path, rows([2, 1, 3, 4]))
    assert calls == [1, 2, 3, 4]
    assert again[0] == first[1]
    assert {k: v for k, v in again[1].items() if v is not None} == {
        k: v for k, v in first[0].items() if v is not None
    }


def test_a_function_runs_in_a_process_of_its_own():
    import os

    from lab.records import number

    assert script.apart(number, 2.5, "s") == "2.5 s"
    assert script.apart(os.getpid) != os.getpid()
    assert script.apart(os.getpid, quick=True) == os.getpid()
    with pytest.raises(RuntimeError, match="ended with 1"):
        script.apart(number, "no number")


@pytest.mark.parametrize(
    ("words", "part", "expected"),
    [
        ([], "", "python -m lab a"),
        (["x", "y", "--quick", "--out", "/home/me"], "x", "python -m lab a x --quick"),
        (["--before", "/home/me/old"], "", "python -m lab a --before '...'"),
        (["--work", "/w", "--only", "a-*"], "", "python -m lab a --only 'a-*'"),
    ],
)
def test_a_command_names_no_folder(words, part, expected):
    assert script.command("a", part, words) == expected
