"""The pages of the laboratory are what the records say, and each figure stands in a record."""

import dataclasses
import json
import re

import pytest

from lab import origin, pages, records
from lab.records import Goal, Record, Table

PAGES = pages.texts()
WRITTEN = {*pages.written()}  # by hand; the others are made of records
OF_RECORDS = {*PAGES} - WRITTEN - {pages.INDEX, pages.TIMES}
STORED = sorted(records.RESULTS.glob("*.json"))


@pytest.mark.parametrize("file", sorted(PAGES))
def test_a_page_is_what_the_records_say(file):
    """Up to what it says of changed code: a change of the product needs no change of a page."""
    text = (records.HERE / file).read_text()
    assert records.unmarked(text) == records.unmarked(PAGES[file]), "run `python -m lab pages`"


GOALS = "| goal | measured | met? |"


@pytest.mark.parametrize("file", sorted(OF_RECORDS))
def test_a_page_opens_with_its_goals(file):
    lines = (records.HERE / file).read_text().splitlines()
    table = next(i for i, line in enumerate(lines) if line.startswith("|"))
    assert lines[table] == GOALS
    assert not any(line.startswith("## ") for line in lines[:table])


@pytest.mark.parametrize("file", sorted(WRITTEN))
def test_a_page_that_a_person_wrote_is_short_and_opens_with_its_answer(file):
    text = PAGES[file]
    assert len(re.findall(r"\w+", text)) <= 2500
    assert not text.split("\n\n")[1].startswith(("|", "#", "!"))


def test_the_papers_tables_open_with_their_verdict_and_have_their_goals_in_a_section():
    text = (records.HERE / pages.FIDELITY).read_text()
    assert f"\n## Goals\n\n{GOALS}\n" in text
    assert not text.split("\n\n")[1].startswith(("|", "#"))


def test_the_index_links_every_page_and_names_what_is_missed():
    index = PAGES[pages.INDEX]
    linked = re.findall(r"^## \[.*\]\((.*)\)$", index, re.MULTILINE)
    assert sorted(linked) == sorted([*OF_RECORDS, pages.FIDELITY])
    missed = [g for r in records.everything().values() for g in r.goals if g.met is False]
    assert missed
    for goal in missed:
        assert f"{goal.goal}. Measured: {goal.measured}." in index


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_record_says_where_it_comes_from(path):
    text, held = path.read_text(), json.loads(path.read_text())
    assert records.text_of(records.read(path)) == text
    assert not re.search(r"(?<![\w.])/(home|work|tmp|root|Users)\b", text)
    assert held["versions"]["pymc"]
    assert held["machine"]["cores"] >= 1
    assert held["goals"] or held["measured"]
    if not held["transcribed"]:
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", held["date"])
        assert held["commit"]
        assert re.match(r"(ARDVARK_DATA=\.\.\. )?python -m lab ", held["command"])


def record(**changed):
    given = {
        "name": "some", "title": "Some: figures", "date": "2026-01-02", "command": "a",
        "commit": "abc", "machine": {"cores": 2}, "versions": {"python": "3"},
        "goals": [Goal("a: at most 1 s", "2 s", False)],
        "measured": [Table("", ["x", "s"], [["a|b", 1.25], ["", None]], {"s": ".1f"}, "A note.")],
        "notes": ["Said."], "code": origin.code(["models/rvm.py"]),
    }  # fmt: skip
    return Record(**given | changed)


def test_a_record_survives_its_file(tmp_path):
    path = records.write(record(), tmp_path)
    assert records.read(path) == record()
    assert '["a|b", 1.25]' in path.read_text()


@pytest.mark.parametrize("change", [{"commit": None}, {"more": 1}])
def test_a_file_that_is_no_record_is_an_error(change, tmp_path):
    held = dataclasses.asdict(record()) | change
    held = {k: v for k, v in held.items() if v is not None}
    (tmp_path / "some.json").write_text(json.dumps(held))
    with pytest.raises(ValueError, match=r"some\.json is not a record"):
        records.read(tmp_path / "some.json")
    (tmp_path / "other.json").write_text(records.text_of(record()))
    with pytest.raises(ValueError, match="holds the record 'some'"):
        records.read(tmp_path / "other.json")


def test_a_section_has_its_tables_its_origin_and_its_notes():
    text = records.render(record())
    assert text == (
        "## Some: figures\n\n2026-01-02, `a`. Commit abc; cores 2; python 3.\n\n"
        "| x | s |\n| --- | ---: |\n| a\\|b | 1.2 |\n|  |  |\n\nA note.\n\nSaid."
    )
    copied = records.render(record(transcribed=True, commit=""))
    assert "Copied from a page written by hand" in copied


def test_goals_are_judged_and_linked():
    assert records.at_most("a", 2.0, 2.0, "s") == Goal("a: at most 2 s", "2 s", True)
    assert records.at_most("a", float("nan"), 2.0).met is False
    assert records.at_least("a", 1.0, 2.0) == Goal("a: at least 2", "1", False)
    assert records.number(1.0104) == "1.01"
    assert records.number(12345.6, "s") == "12346 s"
    table = records.goals_table([record()])
    assert table.splitlines()[2] == (
        "| [Some: figures](#some-figures): a: at most 1 s | 2 s | **no** |"
    )


def test_a_table_refuses_a_row_of_another_length():
    with pytest.raises(ValueError, match="2 columns"):
        Table("", ["a", "b"], [[1]])
    with pytest.raises(ValueError, match="formats of other columns"):
        Table("", ["a"], [[1]], {"b": ".1f"})


def test_each_record_is_on_one_page(tmp_path):
    records.write(record(name="stray"), tmp_path)
    with pytest.raises(ValueError, match="each record belongs to one page"):
        pages.texts(tmp_path)


def test_a_quick_record_is_on_no_page(tmp_path):
    for name, stored in records.everything().items():
        quick = name == "floors"
        records.write(dataclasses.replace(stored, quick=quick), tmp_path)
    with pytest.raises(ValueError, match=r"written by --quick.*: floors"):
        pages.texts(tmp_path)
