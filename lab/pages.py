"""The pages of the laboratory, made from what was measured.

    python -m lab pages              write them all
    python -m lab pages --check      exit 1 if a page is not what this would write

To add a record to a page, name it in `PAGES`. The text of other pages is written by hand:
`matrix/MATRIX.md.j2` is a Jinja2 template, and the numbers and tables in its double braces are the
dictionary that `matrix/figures.py` computes. What such a text claims in words is asserted in
the tests of its room, so that a finding that has changed is read by somebody.
"""

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lab import records
from lab.findings import figures as findings
from lab.genes import figures as genes
from lab.matrix import figures as matrix
from lab.papers import figures as papers
from lab.papers import goals as fidelity
from lab.records import Goal, Record


@dataclass(frozen=True)
class Page:
    """A page: its file, its title, what it is about, and the records on it, in order.

    The notes of a record stand below its tables; those of `verdict` at the head of the page.
    """

    file: str
    title: str
    about: str
    records: tuple[str, ...]
    verdict: str = ""


PAGES = (
    Page(
        "SPEED.md",
        "Speed and memory",
        "What a user waits for, and how far the time of each algorithm is from what it could be. "
        "Compare only figures of one run: the machines are shared and noisy.",
        (
            "main_job-import", "main_job-demo", "compiled_speed-gradient",
            "compiled_speed-density", "compiled_speed-rbf", "nuts_speed-models",
            "nuts_speed-settings", "nuts_speed-mams", "peers-nuts", "peers-exact",
            "gibbs_speed-pymc", "gibbs_speed-cost", "gibbs_speed-moves", "papers_speed-rfvm",
            "papers_speed-million", "rfvm_vb_stop", "papers_speed-pfcvm", "papers_speed-jcfo",
            "papers_speed-fsklr", "laplace_genes", "advi_rank", "rfvm_noise", "model_choices",
            "comparison_speed", "exact_speed-exact", "exact_speed-samplers", "estimator", "memory",
        ),
    ),
    Page(
        "CALIBRATION.md",
        "Calibration",
        "Are the samplers right, and does `exact` stop at the right time? Joint tests, "
        "simulation-based calibration, the floors of the comparison, and reference posteriors that "
        "were run twice.",
        (
            "calibration", "calibration_sparse", "calibration_rfvm_vb", "exact_calibration-sbc",
            "exact_calibration-faults", "exact_rule", "references", "stan_twin", "floors",
        ),
    ),
    Page(
        "PRIORS.md",
        "The sparse prior",
        "What the default prior expects, how it samples, what it finds, and what it costs in "
        "prediction.",
        ("sparsity-prior", "sparsity-sampling", "sparsity-colon", "sparsity_slab"),
    ),
    Page(
        "TESTS.md",
        "The tests",
        "How long the tests take, whether they hold under other seeds, which defects they see, and "
        "what happens to a run that is interrupted.",
        ("test_suite", "reseed", "mutation", "hand_made", "interrupts", "installation"),
    ),
    Page(
        "JUDGE.md",
        "The judge on trial",
        "How often a verdict is wrong: wrong posteriors that are trusted, right ones that are "
        "condemned. One rule has changed since the first trial, which condemned a right fit of 20 "
        "draws: below 50 effective draws, active features are no longer counted.",
        ("judge", "judge_second", "judge_right"),
    ),
    Page(
        "KNOWN_TRUTH.md",
        "Known truth",
        "On simulated data the active features are known. Which method finds them, which "
        "probabilities are kept, and which predictions are best?",
        ("known_truth",),
        verdict="known_truth",
    ),
    Page(
        "FSKLR_MASKS.md",
        "FS-SKLR: search and posterior",
        "The masks that the paper's search selects, beside their exact posterior.",
        ("fsklr_masks",),
    ),
)  # fmt: skip
FIDELITY = "PAPER_CHECK.md"
FINDINGS = "../FINDINGS.md"
"""At the top of the repository; its template is here."""
FOLDS, MATRIX = records.HERE / "paper_check" / "folds", records.HERE / "matrix"
TEMPLATES = Environment(
    loader=FileSystemLoader(records.HERE), undefined=StrictUndefined, keep_trailing_newline=True
)
TIMES = "../inference/exact/measured.csv"
"""What the package itself tells of the time of `exact`."""
INDEX = "RESULTS.md"
VERSIONS = (
    "*Older version*: code that was measured has changed since. *Version unknown*: nobody noted "
    "what was measured."
)


def text(page: Page, found: dict[str, Record]) -> str:
    """Return a page: its goals first, then its records."""
    held = [found[name] for name in page.records]
    parts = [
        f"# {page.title}",
        f"{page.about} Made by `python -m lab pages` from the files in `lab/results/`. {VERSIONS}",
        *(found[page.verdict].notes if page.verdict else []),
        records.goals_table(held),
        *(records.render(record, notes=record.name != page.verdict) for record in held),
    ]
    return "\n\n".join(parts) + "\n"


def index(found: dict[str, Record]) -> str:
    """Return RESULTS.md: a line for each page, and the goals that are missed."""
    parts = [
        "# Results of the laboratory",
        "Each script of this folder writes what it measured to `lab/results/`, and "
        "`python -m lab pages` makes these pages of it. Each page opens with its goals. "
        f"What was measured before is in the history of the files. {VERSIONS}",
    ]
    for page in PAGES:
        goals = [
            (f"{record.title}: ", goal, records.version(record))
            for record in (found[name] for name in page.records)
            for goal in record.goals
        ]
        parts += [f"## [{page.title}]({page.file})", page.about, headline(goals)]
    parts += [
        f"## [The papers' tables, repeated]({FIDELITY})",
        "The papers' own protocols, row by row, from a stored line a fold.",
        headline([("", goal, "") for goal in fidelity.goals(FOLDS)]),
        "Without goals: [the matrix](matrix/MATRIX.md), [the printed genes](GENES.md).",
    ]
    return "\n\n".join(parts) + "\n"


def headline(goals: list[tuple[str, Goal, str]]) -> str:
    """Return how many goals are met, in which version, and those that are not."""
    met = [version for _, goal, version in goals if goal.met]
    said = f"**{len(met)} of {len(goals)} goals met**"
    for mark in ("older version", "version unknown"):
        if count := sum(version.startswith(f" ({mark}") for version in met):
            said += f" ({mark}: {count} of these)"
    missed = [
        f"- {title}{goal.goal}. Measured: {goal.measured}.{version}"
        for title, goal, version in goals
        if goal.met is False
    ]
    return "\n".join([f"{said}. Missed:", "", *missed]) if missed else f"{said}."


def times(record: Record) -> str:
    """Return the table of `inference/exact/measured.py`: a line for each problem measured."""
    (held,) = record.measured
    rows = [dict(zip(held.columns, row, strict=True)) for row in held.rows]
    rows = [row for row in rows if row["prior"] != "dense"]  # the table tells nothing of priors
    names = ("model", "kernel", "data", "by", "N", "D")
    lines = ["model,kernel,data,sampler,N,D,seconds,gigabytes,converged"]
    for key in dict.fromkeys(tuple(str(row[n]) for n in names) for row in rows):
        mine = [row for row in rows if tuple(str(row[n]) for n in names) == key]
        seconds = statistics.median(float(str(row["seconds"])) for row in mine)
        gigabytes = max(float(str(row["GB"])) for row in mine)
        converged = all(row["ended"] == "converged" for row in mine)
        said = [f"{seconds:.1f}", f"{gigabytes:.2f}", "yes" if converged else "no"]
        lines.append(",".join([*key, *said]))
    return "\n".join(lines) + "\n"


def texts(folder: Path = records.RESULTS) -> dict[str, str]:
    """Return every page that is made of records, by its file.

    Raises
    ------
    ValueError
        A record is on no page or on two, is missing, or was written by a quick run.
    """
    found = records.everything(folder)
    placed = [name for page in PAGES for name in page.records]
    if sorted(placed) != sorted(found):
        odd = sorted(set(placed) ^ set(found)) or sorted({n for n in placed if placed.count(n) > 1})
        raise ValueError(f"each record belongs to one page (`PAGES`): {', '.join(odd)}")
    if quick := [name for name, record in found.items() if record.quick]:
        raise ValueError(f"written by --quick, which measures nothing: {', '.join(quick)}")
    made = {page.file: text(page, found) for page in PAGES}
    return made | written() | {INDEX: index(found), TIMES: times(found["exact_speed-exact"])}


def written() -> dict[str, str]:
    """Return every page whose text is written by hand, with its figures."""
    figures = papers.figures(FOLDS)
    figures["GENES.md"] = genes.figures()
    frame = matrix.stored(MATRIX)
    figures["matrix/MATRIX.md"] = matrix.figures(frame)
    figures[FINDINGS] = findings.figures(frame, papers.Found(FOLDS))
    return {
        file: TEMPLATES.get_template(f"{file.removeprefix('../')}.j2").render(given)
        for file, given in figures.items()
    }


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
