"""The pages of the laboratory are what the records say, and each figure stands in a record."""

import dataclasses
import json
import re

import pytest

from lab import origin, pages, records
from lab.records import Goal, Record, Table

PAGES = pages.texts()
STORED = sorted(records.RESULTS.glob("*.json"))


@pytest.mark.parametrize("file", sorted(PAGES))
def test_a_page_is_what_the_records_say(file):
    """Up to what it says of changed code: a change of the product needs no change of a page."""
    text = (records.HERE / file).read_text()
    assert records.unmarked(text) == records.unmarked(PAGES[file]), "run `python -m lab pages`"


GOALS = "| goal | measured | met? |"
TEXTS = sorted(file for file in PAGES if file.endswith(".md"))


@pytest.mark.parametrize("file", sorted(pages.PAGES))
def test_a_page_of_records_has_its_goals_before_its_sections(file):
    head, _, sections = PAGES[file].partition("\n## ")
    assert f"\n| of {GOALS}\n" in head
    assert sections


@pytest.mark.parametrize("file", TEXTS)
def test_a_page_is_short_and_opens_with_its_answer(file):
    text = PAGES[file]
    assert len(re.findall(r"\w+", text)) <= 2500
    assert not text.split("\n\n")[1].startswith(("|", "#", "!"))


@pytest.mark.parametrize("file", TEXTS)
def test_the_files_that_a_page_links_are_there(file):
    folder = (records.HERE / file).parent
    for link in re.findall(r"\]\((?!http|#)([^)#]+)", PAGES[file]):
        assert (folder / link).exists(), link


def test_a_long_table_is_a_file_and_its_page_shows_a_few_rows():
    held = Table("", ["x", "s"], [[f"{i}", 1.0 / i] for i in range(1, 14)], {"s": ".1f"})
    long = record(measured=[held])
    assert records.long_tables(long) == [("tables/some.csv", held)]
    assert not records.long_tables(record())
    text = records.render(long, "-s")
    assert "| 1 | 1.0 |\n| 2 | 0.5 |\n| 3 | 0.3 |\n\n[All 13 rows](tables/some.csv)." in text
    assert "| 4 |" not in text
    assert records.render(long, "s").index("| 13 |") < records.render(long, "s").index("| 12 |")
    assert "| 1 |" not in records.render(long, "other")
    assert records.render(long, "-s", brief=True).endswith(
        "json).\n\n[All 13 rows](tables/some.csv)."
    )
    assert records.comma_separated(["a", "b"], [["x, y", None]]) == 'a,b\n"x, y",\n'


def test_no_table_is_left_of_a_record_that_is_gone():
    there = {f"tables/{path.name}" for path in (records.HERE / "tables").iterdir()}
    assert there == {file for file in PAGES if file.startswith("tables/")}


def test_the_papers_tables_open_with_their_verdict_and_have_their_goals_in_a_section():
    text = (records.HERE / pages.FIDELITY).read_text()
    assert f"\n## Goals\n\n{GOALS}\n" in text
    assert not text.split("\n\n")[1].startswith(("|", "#"))


def test_the_index_links_every_page_and_counts_its_goals():
    index = PAGES[pages.INDEX]
    linked = re.findall(r"^\| \[.*\]\((.*)\) \| (\d+) \| (\d+)", index, re.MULTILINE)
    assert [file for file, *_ in linked] == [*pages.PAGES, pages.FIDELITY]
    stored = records.everything()
    for file, names in pages.PAGES.items():
        met = [goal.met for name in names for goal in stored[name].goals]
        assert (file, str(len(met)), str(met.count(True))) in linked


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
        "## Some: figures\n\n2026-01-02, `a`, commit abc; [record](results/some.json).\n\n"
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
        "| [Some: figures](#some-figures) | a: at most 1 s | 2 s | **no** |"
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
