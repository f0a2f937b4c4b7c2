"""PAPER_CHECK.md is what the stored folds say: each figure of its summary, computed once more."""

import csv
import math
import re
import shutil
from collections import Counter
from pathlib import Path
from statistics import fmean, variance

import pytest

from ardvark.inference.reproduction.papers import page, run, store, summary
from ardvark.inference.reproduction.papers.fold import find
from ardvark.inference.reproduction.papers.tables import GROUPS, costly

ROOT = Path(__file__).parents[4]
FILE = ROOT / "benchmarks" / "PAPER_CHECK.md"
FOLDS = ROOT / "benchmarks" / "paper_check" / "folds"
PAGE = FILE.read_text()
SAID = [s for s in PAGE.split("## What it says")[1].split("##")[0].splitlines() if s[:2] == "- "]
FILES = sorted(FOLDS.glob("*.csv"))
COUNTS = {"colon": 62, "golub": 72}  # of left-out rows; other tables have 5 folds
SIZES = {"colon_discrete": 2000, "lymphoma_discrete": 4026, "leukemia_discrete": 7070,
         "allaml": 7129, "digits38_noisy": 64, "australian": 14, "breast_wisconsin": 9,
         "messidor": 19, "sonar": 60, "heart": 13, "ionosphere": 34,
         "prostate_ge": 5966}  # fmt: skip


# --- each figure once more, from the files, by the standard library alone -------------------------


def folds_of(name, step=""):
    """The row's lines by fold, or those at a step of its path, without the package's code."""
    table, data = name.split("/")[:2]
    path = FOLDS / f"{table}_{data}{'_paths' if step else ''}.csv"
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        lines = [x for x in csv.DictReader(file) if (x["row"], x["step"]) == (name, step)]
    return {int(x["fold"]): x for x in lines if x["status"] != "failed"}


def column(name, what, step=""):
    return {k: float(x[what]) for k, x in folds_of(name, step).items() if x[what]}


def l1(name):
    return "/".join([*name.split("/")[:2], "l1_logistic"])


def left_out(name):
    return name.startswith(("pfcvm-6", "jcfo-1"))


def error(values, binomial=False):
    p, n = fmean(values), len(values)
    if n == 1 and not binomial:
        return math.nan
    return math.sqrt(p * (1 - p) / n if binomial else variance(values) / n)


def with_error(mean, sd, digits=1):
    return f"{mean:.{digits}f}" + ("" if math.isnan(sd) else f" +- {sd:.{digits}f}")


def difference(name, other, what, unit):
    first, second = column(name, what), column(other, what)
    values = [first[k] - second[k] for k in first.keys() & second.keys()]
    text = with_error(unit * fmean(values) + 0.0, unit * error(values), 1 if unit > 1 else 2)
    return text.replace("-0.0", "0.0", 1) if text.startswith("-0.0") else text


def figure(name, what):
    printed = find(name)[1].printed
    what, _, step = what.partition("@")
    if what.startswith("printed_"):
        return f"{printed[what[8:]]:g}"
    if what in ("accuracy", "f1"):
        values = list(column(name, what, step).values())
        return with_error(100 * fmean(values), 100 * error(values, left_out(name)))
    if what == "log_score":
        values = list(column(name, what).values())
        return with_error(fmean(values), error(values), 2)
    if what == "gap_accuracy" or what == "gap_f1":
        values = list(column(name, what[4:]).values())
        gap = round(100 * fmean(values) - printed[what[4:]], 1)
        sd = find(name)[1].printed_sd.get(what[4:])
        both = "" if sd is None else math.hypot(100 * error(values, left_out(name)), sd)
        told = "" if sd is None else f" (errors together {both:.1f})"
        return f"{abs(gap):.1f} points{told} {'below' if gap < 0 else 'above'}"
    if what in ("features", "samples"):
        mean, percent = fmean(kept(name, what, step)), "" if left_out(name) else " %"
        return (f"{mean:.3g}" if mean < 1000 else f"{mean:.0f}") + percent
    if what == "finished":
        lines = folds_of(name).values()
        return f"{sum(x['status'] == 'finished' for x in lines)} of {len(lines)}"
    if what == "l1":
        text = difference(name, l1(name), "accuracy", 100)
    elif what == "exact":
        text = difference(name, exact(name), "accuracy", 100)
    else:
        assert what == "outside"
        text = difference(name.replace("inside", "outside"), name, "accuracy", 100)
    return text if text.startswith("-") else f"+{text}"


def exact(name):
    group = name.rpartition("/")[0]
    return f"{group}/fsklr-exact" if group.startswith("fsklr") else f"{group}/exact"


def kept(name, what, step):
    found = column(name, what, step)
    if left_out(name):
        return list(found.values())
    D, lines = SIZES[name.split("/")[1]], folds_of(name, step)
    return [100 * v / (D if what == "features" else int(lines[k]["n_train"]))
            for k, v in found.items()]  # fmt: skip


def written(sentence):
    return re.sub(r"\{([^{}:]+):([\w@]+)\}", lambda m: figure(m[1], m[2]), sentence)


@pytest.mark.parametrize("sentence", summary.SENTENCES, ids=lambda s: s[:60])
def test_each_figure_of_the_summary(sentence):
    rows = []
    for name, what in re.findall(r"\{([^{}:]+):([\w@]+)\}", sentence):
        rows += [name, *([l1(name)] if what == "l1" else [])]
        rows += [name.replace("inside", "outside")] if what == "outside" else []
        rows += [exact(name)] if what == "exact" else []
    rows = list(dict.fromkeys(rows))
    missing = [name for name in rows if not folds_of(name)]
    if missing:  # then it is not said, and the page says why
        for group, _, label in (name.rpartition("/") for name in missing):
            assert f"`{group}`" in PAGE.split("Not said")[1].split("\n")[0]
            not_run = (
                PAGE.split("Declared, and left out")[1].split(f"- `{group}`")[1].split("\n")[0]
            )
            assert f"`{label}`" in not_run
        return
    basis = []
    for name in rows:
        done, of = len(folds_of(name)), COUNTS[name.split("/")[1]] if left_out(name) else 5
        basis.append(f"`{name}`" + (f" ({done} of {of} folds)" if done < of else ""))
    assert f"- {written(sentence)} [{', '.join(basis)}]" in SAID


def test_the_summary_says_nothing_else():
    rows = [re.findall(r"`([^`]+/[^`]+/[^`]+)`", said.rpartition("[")[2]) for said in SAID]
    assert all(rows)
    assert len(SAID) <= len(summary.SENTENCES)


# --- the page and the files -----------------------------------------------------------------------


def test_the_page_is_made_of_the_files():
    assert page.text(FOLDS) == PAGE


@pytest.mark.parametrize("paper", sorted({group.paper for group in GROUPS}))
def test_the_goals_count_printed_figures_that_are_near(paper):
    near = []
    for group in (g for g in GROUPS if g.paper == paper):
        for row in (r for r in group.rows if r.reading == "as printed"):
            name = f"{group.name}/{row.label}"
            for what in ("accuracy", "f1"):
                values = list(column(name, what).values())
                if what in row.printed and values:
                    gap = abs(100 * fmean(values) - row.printed[what])
                    near.append(gap <= 2 * 100 * error(values, left_out(name)))
    head = PAGE.split("## What it says")[0]
    line = next(x for x in head.splitlines() if x.startswith(f"| {paper}, as printed"))
    verdict = "yes" if all(near) else "**no**"
    assert line.endswith(f"| {sum(near)} of {len(near)} figures | {verdict} |")


def test_a_changed_fold_changes_the_page(tmp_path):
    for file in FILES:
        shutil.copy(file, tmp_path)
    assert page.text(tmp_path) == PAGE
    file = tmp_path / FILES[0].name
    head, first, *rest = file.read_text().splitlines()
    cells = first.split(",")
    cells[3] = str(1.0 - float(cells[3]) + 0.001)  # accuracy
    file.write_text("\n".join([head, ",".join(cells), *rest]) + "\n")
    assert page.text(tmp_path) != PAGE


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_each_stored_line_is_of_a_declared_row(file):
    seen = Counter()
    for line in store.read(file):
        group, row = find(line["row"])
        assert file == store.file_of(group, FOLDS, line["step"] != "")
        assert line["identity"] == store.identity(group, row), f"{line['row']}: run it again"
        assert 0 <= int(line["fold"]) < group.folds
        assert line["status"] in ("finished", "not_converged", "failed") or line["step"]
        if line["status"] != "failed":
            seen[line["row"], line["fold"], line["step"]] += 1
            assert 0.0 <= float(line["accuracy"]) <= 1.0
    assert set(seen.values()) <= {1}


def test_the_command_makes_exactly_the_rows_shown():
    """Every row but the costly ones, with all of its folds; of the costly ones what was run."""
    stored = Counter(x["row"] for file in FILES for x in store.read(file) if not x["step"])
    declared = {f"{g.name}/{r.label}": g.folds for g in GROUPS for r in g.rows}
    default = {name for name in declared if not costly(name)}
    asked = run.chosen([t for t in run.tables() if t != "pfcvm-1"])  # of which all are costly
    assert default == {f"{group.name}/{row.label}" for group, row in asked}
    assert {name: stored[name] for name in default} == {name: declared[name] for name in default}
    assert all(costly(name) for name in set(stored) - default)


def test_the_files_are_small():
    assert sum(file.stat().st_size for file in FILES) < 2_000_000
    assert all(page.figure_of(group, FILE).stat().st_size < 60_000
               for group in GROUPS if page.figure_of(group, FILE).exists())  # fmt: skip
