"""The papers' pages are what the stored folds say: each of their figures is computed once more."""

import re
import shutil
from collections import Counter

import pytest

from lab.lines import read
from lab.papers import (
    overview,
    page,
    run,
    selection,
    sheets,
    store,
)
from lab.papers.fold import find
from lab.papers.tables import GROUPS, SELECTORS, costly
from lab.tests.papers import contrasts_again
from lab.tests.papers import folds_again as again

PAGES = {page.SUMMARY: again.ROOT / "lab" / "PAPER_CHECK.md"} | {
    sheet.file: again.ROOT / "lab" / "papers" / sheet.file for sheet in sheets.SHEETS
}
TEXT = {name: file.read_text() for name, file in PAGES.items()}
FILES = sorted(again.FOLDS.glob("*.csv"))
FIELD = re.compile(r"\{\{(\w+)((?: [^{} ]+)*)\}\}")
LINES = [
    (name, line)
    for name in PAGES
    for line in (page.TEMPLATES / name).read_text().splitlines()
    if FIELD.search(line) and not line.startswith("{{{")
]


def groups_of(name):
    """The names of the tables of a page, in its order; those of all papers for the summary."""
    of = [sheet for sheet in sheets.SHEETS if name in (page.SUMMARY, sheet.file)]
    return [g.name for sheet in of for g in GROUPS if g.paper == sheet.paper]


# --- sentences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "line"), LINES, ids=lambda x: x[:60])
def test_each_sentence(name, line):
    scope = [g for g in groups_of(name) if name != page.SUMMARY or again.measured_here(g)]
    try:
        said = FIELD.sub(lambda m: contrasts_again.VERBS[m[1]](scope, *m[2].split()), line)
    except again.NoRows:
        # a sentence without its rows is not there
        start = FIELD.split(line)[0]
        assert len(start) > 20
        assert not any(x.startswith(start) for x in TEXT[name].splitlines())
        return
    assert said in TEXT[name].splitlines()


def test_each_sentence_names_its_rows():
    """The opening of the summary speaks of roles that its table of roles names."""
    declared = {row.label for group in GROUPS for row in group.rows}
    missing = []
    for name, line in LINES:
        words = {x for _, found in FIELD.findall(line) for x in found.split()}
        named = {x for x in words if x in declared or x.startswith("@")}
        named = {"l1_logistic" if x == "@l1" else x for x in named}
        if name != page.SUMMARY or line[0].isdigit():
            missing += [(name, x, line[:50]) for x in named if f"`{x}`" not in line]
    assert not missing


def test_every_verb_is_computed_once_more():
    assert set(page.VERBS) == set(contrasts_again.VERBS)
    used = {verb for _, line in LINES for verb, _ in FIELD.findall(line)}
    assert used == set(page.VERBS)


# --- tables ---------------------------------------------------------------------------------------


def table(name, heading, start):
    """The cells of the table under a heading whose first line starts so, line by line."""
    body = TEXT[name].split(f"\n{heading}\n")[1].split("\n## ")[0] if heading else TEXT[name]
    lines = body.splitlines()
    at = next(i for i, x in enumerate(lines) if x.startswith(f"| {start}"))
    end = next((i for i in range(at, len(lines)) if not lines[i].startswith("|")), len(lines))
    cells = [[c.strip() for c in x.strip("|").split("|")] for x in lines[at:end]]
    return cells[0], cells[2:]


BLOCKS = {"accuracy, %": "accuracy", "F1, %": "f1", "log score": "log_score",
          "features": "features"}  # fmt: skip


@pytest.mark.parametrize("sheet", sheets.SHEETS, ids=lambda s: s.paper)
def test_each_cell_of_a_matrix(sheet):
    head, rows = table(sheet.file, "## The matrix", "")
    tables = {g.data: g.name for g in sheet.groups}
    groups = [tables[data] for data in head[2:]]
    lead, column, count = sheet.rows["algorithm"], "", 0
    for heading, label, *cells in rows:
        if heading.startswith("**"):
            column = BLOCKS[heading.strip("*").removeprefix("difference, ")]
            continue
        for group, cell in zip(groups, cells, strict=True):
            names = re.findall(r"`([^`]+)`", label)
            if heading.startswith("N x D"):
                D, larger = again.SIZES[group.split("/")[1]]
                assert cell.endswith(f" x {D}, {larger:.1f} %")
            elif heading == "printed":
                assert cell == again.printed_text(f"{group}/{lead}", column)
            elif len(names) == 2:
                assert cell == again.difference(group, *names, column)
            else:
                assert cell == again.cell(f"{group}/{names[0]}", column, f"{group}/{lead}")
                count += cell != ""
    assert count > 5


@pytest.mark.parametrize("sheet", sheets.SHEETS, ids=lambda s: s.paper)
def test_each_cell_of_priors_apart_from_inference(sheet):
    tables = {g.data: g.name for g in sheet.groups}
    for title, columns in sheet.priors.items():
        _, (algorithm, exact, *rows) = table(sheet.file, "## Prior apart from inference", title)
        labels = {"the algorithm": algorithm[2:], "exact": exact[2:]}
        assert [x.strip("`") for x in algorithm[2:]] == [c[1] for c in columns]
        assert [x.strip("`") for x in exact[2:]] == [c[2] for c in columns]
        for data, inference, *cells in rows:
            for label, cell in zip(labels[inference], cells, strict=True):
                name = f"{tables[data]}/{label.strip('`')}"
                assert cell == again.pair(name, sheet.measure)


def test_each_cell_of_the_stops():
    _, rows = table("rfvm.md", "## Three stops", "data")
    for data, _, label, sweeps, features, samples, accuracy, score, alone, settled in rows:
        name, step = f"rfvm-3-4/{data}/{label.strip('`')}", "" if settled else sweeps
        assert features == again.kept_text(name, "features", step)
        assert samples == again.kept_text(name, "samples", step)
        assert accuracy == again.mean_text(name, "accuracy", step)
        last = step or ("20000" if again.folds_of(name, "20000") else "")  # of its path, if any
        assert alone == (again.mean_text(name, "log_score", last) if last else "")
        assert score == ("" if step else again.mean_text(name, "log_score"))
        if not step:
            ends = [re.search(r"settled after (\d+)", x["reason"]) for x in again.lines(name)]
            found = sorted({int(m[1]) for m in ends if m})
            assert sweeps == " to ".join(
                map(str, found if len(found) < 3 else found[:: len(found) - 1])
            )
            assert settled == again.converged_text(name)
    assert len(rows) > 10


def test_each_cell_of_the_two_classes():
    head, rows = table("fsklr.md", "## The matrix", "row")
    tables = {g.data: g.name for g in sheets.BY_PAPER["FSKLR"].groups}
    assert {x[0].strip("`") for x in rows} <= set(contrasts_again.METHODS)
    for label, *cells in rows:
        for data, cell in zip(head[1:], cells, strict=True):
            name = f"{tables[data]}/{label.strip('`')}"
            gaps = contrasts_again.f1_gaps(name) if again.whole(name) else []
            assert cell == ", ".join(again.signed(f"{x:.1f}") for x in gaps)
    assert len(rows) >= 5


def test_each_cell_of_inside_and_outside():
    _, rows = table("pfcvm.md", "## Genes chosen inside and outside the folds", "data")
    shown = [(data, label.strip("`")) for data, label, *_ in rows]
    expected = [(data, f"select-{x}") for data in ("colon", "golub") for x in SELECTORS]
    assert shown == expected
    for data, label, *cells, genes, _ in rows:
        names = [f"pfcvm-6/{data}/{label.strip('`')}-{x}" for x in ("inside", "outside")]
        right = [again.mean_text(n, "accuracy") for n in names]
        more = again.difference(
            f"pfcvm-6/{data}", *(n.split("/")[2] for n in names[::-1]), "accuracy"
        )
        assert cells == [*right, more, *(again.mean_text(n, "log_score") for n in names)]
        counts = again.column(names[0], "features")
        few = sum(x < max(counts.values()) for x in counts.values())
        few_text = f", fewer in {few} of {len(counts)}" if few else ""
        assert genes == f"{max(counts.values()):.0f}{few_text}"
    ends = {(row[0], row[1].strip("`")): row[-1] for row in rows}
    collapsed = again.converged_text("pfcvm-6/golub/pfcvm_lp-50/30")
    assert ends["golub", "select-pfcvm"] == collapsed == "0 of 72"
    assert ends["golub", "select-jcfo"] == "not stored"
    assert ends["colon", "select-rfvm"].startswith("flat")


def test_a_selector_and_the_row_that_says_how_it_ended_are_the_same_fit():
    for name, label in selection.SAME_FIT.items():
        for data in ("colon", "golub"):
            row, chooser = (
                find(f"pfcvm-6/{data}/{x}")[1] for x in (label, f"select-{name}-inside")
            )
            assert (row.model, row.method, row.hypers, row.options) == (
                chooser.model, chooser.method, chooser.hypers, chooser.options
            )  # fmt: skip


def test_each_cell_of_the_summary():
    _, rows = table(page.SUMMARY, "", "paper")
    shown = []
    for paper, data, printed, algorithm, exact, l1, gap, score in rows:
        sheet = next(s for s in sheets.SHEETS if paper.startswith(f"{s.name},"))
        group = next(g.name for g in sheet.groups if g.data == data)
        a, e = sheet.rows["algorithm"], sheet.rows["exact"]
        shown.append(group)
        assert printed == again.printed_text(f"{group}/{a}", sheet.measure)
        for cell, label in ((algorithm, a), (exact, e), (l1, "l1_logistic")):
            assert cell == again.cell(f"{group}/{label}", sheet.measure)
        assert gap == again.difference(group, e, a, sheet.measure)
        assert score == again.difference(group, e, a, "log_score")
    assert shown == [g.name for s in sheets.SHEETS for g in s.groups if again.measured_here(g.name)]


@pytest.mark.parametrize("sheet", sheets.SHEETS, ids=lambda s: s.paper)
def test_each_row_that_was_run_is_in_full(sheet):
    for group in sheet.groups:
        block = TEXT[sheet.file].split(f"### Table {group.table}, {group.data}\n")
        stored = [r for r in group.rows if again.lines(f"{group.name}/{r.label}") and not r.select]
        assert (len(block) == 2) == bool(stored)
        if not stored:
            continue
        head, *rows = block[1].split("```")[1].strip().splitlines()
        assert [x.split()[0] for x in rows] == [r.label for r in stored]
        for row, text in zip(stored, rows, strict=True):
            name = f"{group.name}/{row.label}"
            if not again.whole(name):
                assert "+-" not in text
                continue
            assert again.mean_text(name, "accuracy") in text
            if "log score" in head and again.column(name, "log_score"):
                assert again.mean_text(name, "log_score") in text
            if row.model:
                assert again.converged_text(name).split()[0] in text.split()


# --- the pages and the files ----------------------------------------------------------------------


def test_the_pages_are_made_of_the_files():
    assert page.texts(again.FOLDS) == TEXT


@pytest.mark.parametrize("paper", sorted({group.paper for group in GROUPS}))
def test_the_goals_count_printed_figures_that_are_near(paper):
    near = []
    for group in (g for g in GROUPS if g.paper == paper):
        for row in (r for r in group.rows if r.reading == "as printed"):
            name = f"{group.name}/{row.label}"
            for what in ("accuracy", "f1"):
                if what in row.printed and again.column(name, what) and again.whole(name):
                    close = abs(again.gap(name, what)) <= 2 * again.mean(name, what)[1]
                    near.append(close and not again.collapsed(name))
    head = TEXT[page.SUMMARY].split("## Goals")[1].splitlines()
    line = next((x for x in head if x.startswith(f"| {paper}, as printed")), None)
    assert (line is None) == (not near)
    if line is not None:
        verdict = "yes" if all(near) else "**no**"
        assert line.endswith(f"| {sum(near)} of {len(near)} figures | {verdict} |")


def test_a_changed_fold_changes_the_page(tmp_path):
    for file in FILES:
        shutil.copy(file, tmp_path)
    file = tmp_path / "fsklr-3_sonar.csv"
    head, first_line, *rest = file.read_text().splitlines()
    cells = first_line.split(",")
    cells[3] = str(1.0 - float(cells[3]) + 0.001)  # accuracy
    file.write_text("\n".join([head, ",".join(cells), *rest]) + "\n")
    changed = {name for name, text in page.texts(tmp_path).items() if text != TEXT[name]}
    assert changed == {"fsklr.md"}


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_each_stored_line_is_of_a_declared_row(file):
    seen = Counter()
    for line in read(file):
        group, row = find(line["row"])
        assert file == store.file_of(group, again.FOLDS, path=line["step"] != "")
        assert line["identity"] == store.identity(group, row), f"{line['row']}: run it again"
        assert 0 <= int(line["fold"]) < group.folds
        assert line["status"] in ("finished", "not_converged", "failed") or line["step"]
        if line["status"] != "failed":
            seen[line["row"], line["fold"], line["step"]] += 1
            assert 0.0 <= float(line["accuracy"]) <= 1.0
    assert set(seen.values()) <= {1}


def test_the_command_makes_exactly_the_rows_shown():
    """Every row but the costly ones, with all of its folds; of the costly ones what was run."""
    stored = Counter(x["row"] for file in FILES for x in read(file) if not x["step"])
    declared = {f"{g.name}/{r.label}": g.folds for g in GROUPS for r in g.rows}
    default = {name for name in declared if not costly(name)}
    asked = run.chosen([t for t in run.tables() if t != "pfcvm-1"])  # of which all are costly
    assert default == {f"{group.name}/{row.label}" for group, row in asked}
    assert {name: stored[name] for name in default} == {name: declared[name] for name in default}
    assert all(costly(name) for name in set(stored) - default)


def test_a_row_that_is_partial_is_in_no_sentence(tmp_path):
    for file in FILES:
        shutil.copy(file, tmp_path)
    file = tmp_path / "jcfo-1_colon.csv"
    lines = [
        x for x in file.read_text().splitlines() if not x.startswith("jcfo-1/colon/jcfo-one,3")
    ]
    file.write_text("\n".join(lines) + "\n")
    text = page.texts(tmp_path)["jcfo.md"]
    assert "(51/51 of 62 folds)" in overview_row(text, "`jcfo-one`")
    said = next(x for x in text.splitlines() if x.startswith("With the rates corrected"))
    assert "golub" in said
    assert "colon" not in said


@pytest.mark.parametrize(
    ("name", "like", "file", "said"),
    [
        ("rfvm-3-4/allaml/rfvm_vb-elbo", "rfvm_vb", "rfvm.md", "With the printed updates and the"),
        ("fsklr-3/sonar/fsklr-exact-printed", "fsklr-exact", "fsklr.md", "With the shared mask"),
    ],
)
def test_a_row_that_arrives_is_in_the_sentences(tmp_path, name, like, file, said):
    for path in FILES:
        shutil.copy(path, tmp_path)
    group, row = find(name)
    path = store.file_of(group, tmp_path)
    lines = [x for x in read(path) if x["row"] == f"{group.name}/{like}"]
    mark = store.identity(group, row)
    store.append(path, [x | {"row": name, "identity": mark} for x in lines])
    text = page.texts(tmp_path)[file].splitlines()
    (line,) = (x for x in text if x.startswith(said))
    assert f"on {group.data}" in line
    assert not any(x.startswith("Where that stop was not run") and "allaml" in x for x in text)


def overview_row(text, label):
    return next(x for x in text.splitlines() if x.startswith("| ") and f"| {label} |" in x)


def test_the_files_are_small():
    assert sum(file.stat().st_size for file in FILES) < 2_000_000
    drawn = [page.figure_of(group, PAGES[page.SUMMARY]) for group in GROUPS]
    drawn.append(PAGES[page.SUMMARY].parent / page.FIGURES / page.STOPS)
    assert all(file.stat().st_size < 60_000 for file in drawn if file.exists())


def test_the_same_prior_is_the_prior_of_the_exact_row():
    for group in GROUPS:
        rows = {row.label: row for row in group.rows}
        same, exact = (sheets.BY_PAPER[group.paper].rows.get(x, "") for x in ("same", "exact"))
        if same in rows:
            assert rows[same].hypers == rows[exact].hypers
            # gammas that were filled are filled again for the features that a filter leaves
            assert not {"prefilter", "select"} & set(rows[same].options)


def test_roles_and_readings_are_declared_rows():
    for sheet in sheets.SHEETS:
        labels = {row.label for group in sheet.groups for row in group.rows}
        pairs = [x for columns in sheet.priors.values() for c in columns for x in c[1:]]
        named = [*sheet.rows.values(), *sheet.readings, *(x for x in pairs if x[0] != "(")]
        assert set(named) <= labels
        assert overview.shown(sheet, {}) == []


def test_the_readme_says_what_the_summary_counts():
    """By log score: higher than the algorithm on most, lower on none; higher than L1 on none."""
    text = TEXT[page.SUMMARY]
    higher, of = re.search(
        r"clearly higher than that of the algorithm on (\d+) of (\d+)", text
    ).groups()
    (lower,) = re.search(
        r"clearly higher than that of .*, and clearly lower on (\d+) of", text
    ).groups()
    above, below, sets = re.search(
        r"Beside L1.* by log score better on (\d+) of \d+ and worse on (\d+) of (\d+)", text
    ).groups()
    said = " ".join((again.ROOT / "README.md").read_text().split())
    assert (
        "clearly better log score than the paper's algorithm under the same prior on most" in said
    )
    assert "a clearly worse one on none" in said
    assert "it is clearly better in log score on none, and clearly worse on a few" in said
    assert int(higher) > int(of) / 2
    assert (int(lower), int(above)) == (0, 0)
    assert 0 < int(below) < int(sets) / 2
