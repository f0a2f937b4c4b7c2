"""The numbers that FINDINGS.md and the talk name: those of other pages, and the few of their own.

Both are written by hand, in `lab/FINDINGS.md.j2` and `lab/TALK.md.j2`. What their sentences claim
in words is asserted in `lab/tests/test_findings.py`.
"""

from collections.abc import Iterable

import pandas as pd

from lab import records
from lab.findings import patients
from lab.known_truth import report
from lab.known_truth.results import read
from lab.matrix import figures as matrix
from lab.matrix.declared import AGAIN, EXACT, OWN_SETTINGS, PAPERS
from lab.papers import figures as papers
from lab.papers.figures import Figures, Found, grid

GENES = 2000
"""Features of the smallest gene set."""
ALL, GENE_SETS = (0, 10**9), (GENES, 10**9)
TABLE = (
    ("PFCVM, genes", "pfcvm", "sparse", GENE_SETS, ("PFCVM", "exact", "pfcvm_lp-model")),
    ("PFCVM", "pfcvm", "dense", ALL, ("PFCVM", "exact-dense", "pfcvm_lp-dense")),
    ("RFVM, genes", "rfvm", "sparse", GENE_SETS, ("RFVM", "exact", "rfvm_vb-model")),
    ("RFVM", "rfvm", "dense", ALL, ("RFVM", "exact-dense", "rfvm_vb-dense")),
    ("FS-SKLR", "fsklr", "independent", ALL, ("FSKLR", "fsklr-exact", "fsklr")),
)
"""Rows of the table: a name; a model, a prior and a range of features of the matrix; and two rows
of a paper's table."""
FAULTS = "no false stop where chains start at both copies"
"""A goal of the calibration of `exact`."""
AT_ONE = "all start at one"
"""What the same record calls runs of which every chain starts at one copy."""


def figures(frame: pd.DataFrame, found: Found) -> Figures:
    """Return every number of the page.

    Parameters
    ----------
    frame : pandas.DataFrame
        The finished blocks of the matrix.
    found : Found
        The stored rows of the papers' tables.
    """
    known = matrix.held(frame)
    of_matrix = matrix.figures(frame)
    return {
        "matrix": of_matrix,
        "papers": papers.summary(found),
        "pfcvm": papers.pfcvm(found),
        "jcfo": papers.jcfo(found),
        "rfvm": papers.rfvm(found),
        "truth": truth(),
        "patients": shown(patients.stored()),
        "table": table(known, found),
        "constant": _ends([constant for constant, *_ in distances(known)], ".2f"),
        "faults": faults(),
        "faults_at_one": faults_at_one(),
        "golub_losses": golub_losses(found),
        "active": active(known),
        **advi(known),
        "own": own(known),
        "exact_points": span(found, "RFVM", "exact", "rfvm_vb-model", "accuracy"),
        "exact_printed": span(found, "RFVM", "exact", "rfvm_vb-elbo"),
        "dense": converged_span(found, "RFVM", "exact-dense", "exact"),
        "filled": span(found, "JCFO", "exact", "l1_logistic", "accuracy"),
    }


def span(found: Found, paper: str, first: str, second: str, column: str = "log_score") -> str:
    """Return the smallest and the largest difference of two rows, over a paper's data sets."""
    values = [x for x, _ in found.pairs((first, second), paper, column).values()]
    digits = papers.DIGITS[column]
    return _ends(values, f"+.{digits}f")


def converged_span(found: Found, paper: str, first: str, second: str) -> str:
    """Return the same of the log score, on the data sets where every fold of both converged."""
    converged = []
    for group in found.groups(papers.BY_PAPER[paper]):
        rows = [found.get(f"{group.name}/{label}") for label in (first, second)]
        pair = found.pair(group, (first, second), "log_score")
        if pair and all(r is not None and r.finished == len(r.lines) for r in rows):
            converged.append(pair[0])
    return _ends(converged, "+.2f")


def _ends(values: Iterable[float], form: str) -> str:
    listed = list(values)
    low, high = (f"{x + 0.0:{form}}" for x in (min(listed), max(listed)))
    return low if low == high else f"{low} to {high}"


def shown(rows: pd.DataFrame) -> Figures:
    """Return of each panel of the picture how far its dots are off, and where they lie."""
    out = {}
    for panel in patients.PANELS:
        mine = rows[rows["model"] == panel.name]
        out[panel.name.replace("-", "_")] = {
            "off": f"{patients.off(mine):.2f}",
            "worst": f"{(mine['paper'] - mine['exact']).abs().max():.2f}",
            "exact": _ends(mine["exact"], ".2f"),
            "paper": _ends(mine["paper"], ".2f"),
        }
    return out


def distances(known: pd.DataFrame) -> list[tuple[float, float, pd.Series]]:
    """Return of each row of the table how far P(y = 1) is from the exact one.

    That of one answer for all and of one exact draw, each a median over posteriors, and that of the
    paper's algorithm on each.
    """
    found = []
    for _, model, prior, features, _ in TABLE:
        mine = known[
            (known["model"] == model) & (known["prior"] == prior) & known["D"].between(*features)
        ]
        exact, paper = (mine[mine["cell"] == label] for label in (EXACT, PAPERS))
        medians = exact[["p_off_base", "p_draw"]].median()
        found.append((*medians, paper["p_off"]))
    return found


def table(known: pd.DataFrame, found: Found) -> str:
    """Return what each algorithm does to P(y = 1), and what that costs on rows left out."""
    body = []
    measured = zip(TABLE, distances(known), strict=True)
    for (name, _, prior, _, scored), (constant, draw, off) in measured:
        body.append([
            name, prior, f"{constant:.2f}", f"{draw:.2f}",
            f"{off.median():.2f} ({_ends(off, '.2f')})", span(found, *scored),
        ])  # fmt: skip
    head = ["model", "prior", "one answer for all", "one exact draw",
            "paper's algorithm", "exact - algorithm, log score"]  # fmt: skip
    return grid(head, body)


def advi(known: pd.DataFrame) -> Figures:
    """Return how far ADVI is off under the dense prior: on average, in a row, in width."""
    mine = known[(known["cell"] == "ADVI") & (known["prior"] == "dense")]
    right = mine["eta_width"].between(*matrix.RIGHT_WIDTH)
    return {
        "advi": f"{mine['p_off'].max():.2f}",
        "advi_worst": f"{mine['p_worst'].max():.2f}",
        "advi_widths": f"{right.sum()} of {len(mine)}",
    }


def own(known: pd.DataFrame) -> Figures:
    """Return how far the papers' own settings, ADVI and Laplace are off on genes: P, and width."""
    mine = known[(known["prior"] == "sparse") & known["D"].between(*GENE_SETS)]
    off = {cell: mine[mine["cell"] == cell]["p_off"] for cell in (OWN_SETTINGS, "ADVI", "Laplace")}
    papers_own = mine[mine["cell"] == OWN_SETTINGS].set_index("model")["eta_width"]
    return {
        "sets": len(off[OWN_SETTINGS]),
        "paper": _ends(off[OWN_SETTINGS], ".2f"),
        "advi": _ends(off["ADVI"], ".2f"),
        "laplace": _ends(off["Laplace"], ".2f"),
        "wide": _ends(papers_own["pfcvm"], ".0f"),
        "narrow": _ends(papers_own["rfvm"], ".2f"),
    }


def golub_losses(found: Found) -> int:
    """Return how many of the tables where L1 is clearly better are of golub's patients."""
    lost = [
        papers.SAME_SUBJECTS.get(data, data)
        for sheet in papers.SHEETS
        for data, (mean, error) in found.pairs(
            (sheet.exact, papers.REFERENCE), sheet.paper, "log_score"
        ).items()
        if -mean > papers.CLEAR * error
    ]
    return lost.count("golub")


def active(known: pd.DataFrame) -> str:
    """Return the exact number of active features beside the prior's, under the sparse prior."""
    mine = known[(known["cell"] == AGAIN) & (known["prior"] == "sparse")]
    return _ends(mine["active_exact"] / mine["active_prior"], ".1f")


def faults() -> str:
    """Return how often `exact` stopped on chains that were made to mislead it."""
    record = records.read(records.RESULTS / "exact_calibration-faults.json")
    (goal,) = (goal for goal in record.goals if goal.goal == FAULTS)
    return goal.measured


def faults_at_one() -> str:
    """Return how often it did so where all chains start at one copy."""
    (held,) = records.read(records.RESULTS / "exact_calibration-faults.json").measured
    rows = [dict(zip(held.columns, row, strict=True)) for row in held.rows]
    mine = [row for row in rows if str(row["fault"]).endswith(AT_ONE)]
    false, runs = (sum(int(str(row[name])) for row in mine) for name in ("false", "runs"))
    return f"{false} in {runs}"


def truth() -> Figures:
    """Return the figures of the page on simulated data."""
    return report.figures(read(records.RESULTS / "known_truth.csv"))
