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
from lab.matrix.declared import AGAIN, EXACT, PAPERS
from lab.papers import figures as papers
from lab.papers.figures import Figures, Found, grid

TABLE = (
    ("PFCVM", "pfcvm", "sparse", ("PFCVM", "exact", "pfcvm_lp-model")),
    ("PFCVM", "pfcvm", "dense", ("PFCVM", "exact-dense", "pfcvm_lp-dense")),
    ("RFVM", "rfvm", "sparse", ("RFVM", "exact", "rfvm_vb-model")),
    ("RFVM", "rfvm", "dense", ("RFVM", "exact-dense", "rfvm_vb-dense")),
    ("FS-SKLR", "fsklr", "independent", ("FSKLR", "fsklr-exact", "fsklr")),
)
"""Rows of the table: a name, a model and a prior of the matrix, and two rows of a paper's table."""
FAULTS = "no false stop where chains start at both copies"
"""A goal of the calibration of `exact`."""


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
        "constant": _ends([constant for _, constant, *_ in distances(known)], ".2f"),
        "faults": faults(),
        "active": active(known),
        "advi": f"{dense(known)['p_off'].max():.2f}",
        "cost": f"{100.0 * float(of_matrix['cost_paper']):.1f}",
        "exact_points": span(found, "RFVM", "exact", "rfvm_vb-model", "accuracy"),
        "sparse_rfvm": span(found, "RFVM", "exact", "rfvm_vb-model"),
        "dense_rfvm": span(found, "RFVM", "exact-dense", "rfvm_vb-dense"),
        "savb": span(found, "FSKLR", "fsklr-exact", "fsklr"),
        "exact_printed": span(found, "RFVM", "exact", "rfvm_vb-elbo"),
        "dense": span(found, "RFVM", "exact-dense", "exact"),
        "filled": span(found, "JCFO", "exact", "l1_logistic", "accuracy"),
    }


def span(found: Found, paper: str, first: str, second: str, column: str = "log_score") -> str:
    """Return the smallest and the largest difference of two rows, over a paper's data sets."""
    values = [x for x, _ in found.pairs((first, second), paper, column).values()]
    digits = papers.DIGITS[column]
    return _ends(values, f"+.{digits}f")


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


def distances(known: pd.DataFrame) -> list[tuple[int, float, float, pd.Series]]:
    """Return of each row of the table how far P(y = 1) is from the exact one.

    Data sets, the distance of one answer for all and of one exact draw, each a median over data
    sets, and the paper's algorithm's on each data set.
    """
    found = []
    for _, model, prior, _ in TABLE:
        mine = known[(known["model"] == model) & (known["prior"] == prior)]
        exact, paper = (mine[mine["cell"] == label] for label in (EXACT, PAPERS))
        medians = exact[["p_off_base", "p_draw"]].median()
        found.append((len(paper), *medians, paper["p_off"]))
    return found


def table(known: pd.DataFrame, found: Found) -> str:
    """Return what each algorithm does to P(y = 1), and what that costs on rows left out."""
    body = []
    measured = zip(TABLE, distances(known), strict=True)
    for (name, _, prior, scored), (sets, constant, draw, off) in measured:
        body.append([
            name, prior, str(sets), f"{constant:.2f}", f"{draw:.2f}",
            f"{off.median():.2f} ({_ends(off, '.2f')})", span(found, *scored),
        ])  # fmt: skip
    head = ["model", "prior", "data sets", "one answer for all", "one exact draw",
            "paper's algorithm", "exact - algorithm, log score"]  # fmt: skip
    return grid(head, body)


def dense(known: pd.DataFrame) -> pd.DataFrame:
    """Return the fits of ADVI under the dense prior."""
    return known[(known["cell"] == "ADVI") & (known["prior"] == "dense")]


def active(known: pd.DataFrame) -> str:
    """Return the exact number of active features beside the prior's, under the sparse prior."""
    mine = known[(known["cell"] == AGAIN) & (known["prior"] == "sparse")]
    return _ends(mine["active_exact"] / mine["active_prior"], ".1f")


def faults() -> str:
    """Return how often `exact` stopped on chains that were made to mislead it."""
    record = records.read(records.RESULTS / "exact_calibration-faults.json")
    (goal,) = (goal for goal in record.goals if goal.goal == FAULTS)
    return goal.measured


def truth() -> Figures:
    """Return the figures of the page on simulated data."""
    return report.figures(read(records.RESULTS / "known_truth.csv"))
