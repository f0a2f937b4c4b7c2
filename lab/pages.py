"""The pages of the laboratory, made from what was measured.

    python -m lab pages              write them all
    python -m lab pages --check      exit 1 if a page is not what this would write

Each page is a Jinja2 template beside it, written by hand: `SPEED.md.j2` for `SPEED.md`. The numbers
and tables in its double braces are computed from what is stored. To add a record to a page, name
it in `PAGES`: the page shows its goals, how it was measured, and its tables, of which long ones
are CSV files in `tables/`. What a text claims in words is asserted in the tests, so that a finding
that has changed is read by somebody.
"""

import argparse
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lab import records
from lab.known_truth import report as known_truth
from lab.known_truth.results import read
from lab.records import Cell, Record

PAGES = {
    "SPEED.md": (
        "main_job-import", "main_job-demo", "exact_speed-exact", "exact_speed-horseshoe",
        "peers-exact", "peers-nuts", "exact_speed-samplers", "comparison_speed", "memory",
    ),
    "ALGORITHMS.md": (
        "compiled_speed-gradient", "compiled_speed-density", "compiled_speed-rbf",
        "nuts_speed-models", "nuts_speed-settings", "nuts_speed-mams", "gibbs_speed-pymc",
        "gibbs_speed-cost", "gibbs_speed-moves", "papers_speed-rfvm", "papers_speed-million",
        "rfvm_vb_stop", "papers_speed-pfcvm", "papers_speed-jcfo", "papers_speed-fsklr",
        "laplace_genes", "advi_rank", "rfvm_noise", "model_choices",
    ),
    "CALIBRATION.md": (
        "calibration", "calibration_sparse", "calibration_rfvm_vb", "exact_calibration-sbc",
        "exact_calibration-faults", "exact_rule", "references", "stan_twin", "floors",
    ),
    "PRIORS.md": (
        "sparsity-prior", "sparsity-sampling", "sparsity-colon", "sparsity_slab", "estimator",
    ),
    "PRIOR_FACTORS.md": ("prior_factors", "confirmed_priors"),
    "TESTS.md": (
        "test_suite", "reseed", "mutation", "hand_made", "interrupts", "installation",
    ),
    "JUDGE.md": ("judge", "judge_second", "judge_right", "known_moments"),
    "KNOWN_TRUTH.md": ("known_truth", "learned_scale"),
    "FSKLR_MASKS.md": ("fsklr_masks",),
    "ONE_TABLE.md": ("one_table-choose", "one_table-panel", "panel_intervals"),
}  # fmt: skip
"""The records of each page, in order."""
WORST = {
    "calibration": "p", "compiled_speed-density": "-ratio", "estimator": "-difference",
    "exact_calibration-sbc": "p", "exact_speed-exact": "-seconds", "nuts_speed-mams": "-R-hat",
    "fsklr_masks": "-share of visited", "memory": "-GB", "nuts_speed-models": "-R-hat",
    "peers-nuts": "times", "references": "-worst R-hat",
}  # fmt: skip
"""The column by which a page shows a few rows of a record's long tables (`records.extreme`)."""
BRIEF = (
    "compiled_speed-gradient", "compiled_speed-rbf", "nuts_speed-settings", "gibbs_speed-cost",
    "gibbs_speed-moves", "papers_speed-rfvm", "papers_speed-million", "rfvm_vb_stop",
    "papers_speed-pfcvm", "papers_speed-jcfo", "papers_speed-fsklr", "laplace_genes", "advi_rank",
    "rfvm_noise", "model_choices", "exact_speed-samplers", "learned_scale",
)  # fmt: skip
"""Records whose goals or a sentence say all: their pages leave tables and notes to their files."""
TRUTH = records.RESULTS / "known_truth.csv"
TEMPLATES = Environment(
    loader=FileSystemLoader(records.HERE), undefined=StrictUndefined, keep_trailing_newline=True
)
TEMPLATES.filters["cell"] = records.found
TIMES = "../inference/samplers/exact/measured.csv"
"""What the package itself tells of the time of `exact`."""
INDEX = "RESULTS.md"


def filled(file: str, given: Mapping[str, Any]) -> str:
    """Return a page: its template, which is here or in its room, with these figures."""
    return TEMPLATES.get_template(f"{file}.j2").render(given)


def of_records(file: str, found: dict[str, Record]) -> str:
    """Return a page of records: what is written of them, their goals, and a section for each."""
    held = [found[name] for name in PAGES[file]]
    shown = [records.render(r, WORST.get(r.name, ""), r.name in BRIEF) for r in held]
    given: dict[str, Any] = {
        "measured": {r.name: [goal.measured for goal in r.goals] for r in held},
        "tables": {r.name: r.measured for r in held},
        "goals": records.goals_table(held),
        "sections": "\n\n".join(shown),
    }
    if file == "KNOWN_TRUTH.md":
        given |= known_truth.figures(read(TRUTH))
    return filled(file, given)


def index(made: Mapping[str, str], found: dict[str, Record]) -> str:
    """Return RESULTS.md: how many goals of each page are met, and in which version."""
    judged = {
        file: [(goal, records.version(found[name])) for name in names for goal in found[name].goals]
        for file, names in PAGES.items()
    }
    rows = [["page", "goals", "met"]]
    for file, goals in judged.items():
        title = made[file].partition("\n")[0].removeprefix("# ")
        met = [version for goal, version in goals if goal.met]
        rows.append([f"[{title}]({file})", str(len(goals)), f"{len(met)}{marks(met)}"])
    return filled(INDEX, {"pages": records.lines(rows, [False, True, False])})


def marks(versions: list[str]) -> str:
    """Return how many are of an older and of an unknown version, in brackets."""
    counts = [(mark.rstrip(")"), versions.count(mark)) for mark in (records.OLD, records.UNKNOWN)]
    return "".join(f"{mark}: {count})" for mark, count in counts if count)


def times(*measured: Record) -> str:
    """Return the table of `samplers/exact/measured.py`: a line for each problem measured."""
    tables = [held for record in measured for held in record.measured]
    rows = [dict(zip(held.columns, row, strict=True)) for held in tables for row in held.rows]
    rows = [row for row in rows if row["prior"] != "dense"]  # the table tells nothing of priors
    names = ("model", "kernel", "data", "by", "N", "D")
    lines: list[list[Cell]] = []
    keys = [tuple(str(row[n] or "") for n in names) for row in rows]  # "": no kernel
    for key in dict.fromkeys(keys):
        mine = [row for row, its in zip(rows, keys, strict=True) if its == key]
        seconds = statistics.median(float(str(row["seconds"])) for row in mine)
        gigabytes = max(float(str(row["GB"])) for row in mine)
        converged = all(row["ended"] == "converged" for row in mine)
        said = [f"{seconds:.1f}", f"{gigabytes:.2f}", "yes" if converged else "no"]
        lines.append([*key, *said])
    named = ["model", "kernel", "data", "sampler", "N", "D", "seconds", "gigabytes", "converged"]
    return records.comma_separated(named, lines)


def texts(folder: Path = records.RESULTS) -> dict[str, str]:
    """Return every page, and every table that is made of records, by its file.

    Raises
    ------
    ValueError
        A record is on no page or on two, is missing, or was written by a quick run.
    """
    found = records.everything(folder)
    placed = [name for names in PAGES.values() for name in names]
    if sorted(placed) != sorted(found):
        odd = sorted(set(placed) ^ set(found)) or sorted({n for n in placed if placed.count(n) > 1})
        raise ValueError(f"each record belongs to one page (`PAGES`): {', '.join(odd)}")
    if quick := [name for name, record in found.items() if record.quick]:
        raise ValueError(f"written by --quick, which measures nothing: {', '.join(quick)}")
    made = {file: of_records(file, found) for file in PAGES}
    tables = {
        file: records.comma_separated(held.columns, held.rows)
        for record in found.values()
        for file, held in records.long_tables(record)
    }
    made[INDEX] = index(made, found)
    return (
        made | tables | {TIMES: times(found["exact_speed-exact"], found["exact_speed-horseshoe"])}
    )


def main(words: list[str] | None = None) -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; compare")
    given = parser.parse_args(words)
    wrong = []
    for file, said in texts().items():
        path = records.HERE / file
        if given.check and (not path.exists() or path.read_text() != said):
            wrong.append(file)
        elif not given.check:
            path.write_text(said)
    if wrong:
        print(f"not what the records say: {', '.join(wrong)}; run `python -m lab pages`")
    return int(bool(wrong))
