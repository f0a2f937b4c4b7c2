"""The pages of the course: every notebook is in the timetable, and every word is explained."""

import re

import nbformat

from tests.notebooks.running import FOLDER

DOCS = FOLDER.parent / "docs"
LINK = re.compile(r"\(tutorials/(\w+)\.ipynb\)")


def glossary():
    """Return the definition of each term of the glossary, in the order of the page."""
    body = (DOCS / "glossary.md").read_text().partition("```{glossary}\n")[2].rpartition("```")[0]
    entries = (entry.partition("\n") for entry in body.strip().split("\n\n"))
    return {term: " ".join(text.split()) for term, _, text in entries}


def words(name):
    """Return what a notebook says and prints."""
    cells = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
    return " ".join(c.source + str(c.get("outputs", "")) for c in cells).casefold()


def test_every_notebook_is_in_the_table_of_the_course_and_in_a_timetable():
    table, *timetables = re.split(r"^## .* days?$", (DOCS / "course.md").read_text(), flags=re.M)
    names = {path.stem for path in FOLDER.glob("*.ipynb")}
    assert names <= set(LINK.findall(table))
    assert len(timetables) == 2
    assert names <= set(re.findall(r"\d\d_\w+", " ".join(timetables)))


def test_the_times_of_a_timetable_follow_from_its_minutes():
    for table in re.findall(r"(?:^\|.*\n)+", (DOCS / "course.md").read_text(), re.M):
        rows = re.findall(r"^\| (\d\d):(\d\d) \|.*\| (\d+) \|$", table, re.M)
        starts = [60 * int(hour) + int(minute) for hour, minute, _ in rows]
        ends = [start + int(row[2]) for start, row in zip(starts, rows, strict=True)]
        assert starts[1:] == ends[:-1]


def test_the_terms_of_the_glossary_are_sorted_and_refer_to_terms():
    terms = glossary()
    assert list(terms) == sorted(terms, key=str.casefold)
    for text in terms.values():
        named = re.findall(r"\{term\}`(?:[^`<]*<)?([^`>]+)>?`", text)
        assert set(named) <= set(terms)


def test_the_notebook_that_a_term_refers_to_has_the_word():
    stored = {path.stem: words(path.stem) for path in FOLDER.glob("*.ipynb")}
    for term, text in glossary().items():
        (name,) = LINK.findall(text)
        assert name not in stored or term.split()[0].casefold() in stored[name], (term, name)
