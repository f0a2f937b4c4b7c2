"""What `known_truth.py` found: goals, tables, and the figures of its page; it measures nothing.

The page is written by hand, in `KNOWN_TRUTH.md.j2`. What its sentences claim is checked by
`lab/tests/test_known_truth.py`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ardvark.inference.samplers.exact.method import Options
from lab.known_truth.results import ESS, LIMIT, Estimate, Results, Row, clear
from lab.records import Goal, Table, at_least, at_most, table
from lab.script import Measured

EXACT = {
    "pfcvm, exact": ("pfcvm_lp, printed updates", "pfcvm_lp, zoo's prior"),
    "rfvm, exact": ("rfvm_vb, printed updates", "rfvm_vb, zoo's prior"),
    "horseshoe, exact": (),
}
"""The exact posteriors, and the algorithms of the same model."""
YARDSTICKS = ("L1", "stability selection")
OTHERS = {m: (*algorithms, *YARDSTICKS) for m, algorithms in EXACT.items()} | {
    "horseshoe, exact": ("pfcvm, exact", "rfvm, exact", *YARDSTICKS)
}
"""What each exact posterior is compared with."""
SHOWN = {"power_20": (100.0, 1), "log_score": (1.0, 3), "accuracy": (100.0, 1)}
"""The measures that are compared; the unit and the digits in which a difference is shown."""
ALARM = 0.05
"""Probability with which at least one difference is called clear where there is none."""


# --- comparisons ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparisons:
    """The comparisons of the page, one family.

    Attributes
    ----------
    more : dict
        By how much a measure of a method exceeds another's, by (method, other, measure).
    excess : dict
        By how much the features with P(active) > 1/2 are more often false than was promised.
    sign : dict
        The sign of each of them that is clearly not 0, and 0 for the others, by the same keys.
    """

    more: dict[tuple[str, str, str], Estimate]
    excess: dict[str, Estimate]
    sign: dict[tuple[str, str, str] | str, int]

    @property
    def tested(self) -> int:
        """How many of them have a standard error."""
        held = (*self.more.values(), *self.excess.values())
        return sum(bool(np.isfinite(e.p)) for e in held)


def compare(found: Results) -> Comparisons:
    """Return all comparisons, judged together."""
    more = {
        (m, other, name): found.more(m, other, name)
        for m, other in _pairs(found)
        for name in SHOWN
        if name == "power_20" or {m, other} <= set(found.predicting)
    }
    excess = {m: found.excess(m, "half") for m in found.judged}
    keys: list[tuple[str, str, str] | str] = [*more, *excess]
    signs = clear([*more.values(), *excess.values()], ALARM)
    return Comparisons(more, excess, dict(zip(keys, signs, strict=True)))


def _pairs(found: Results) -> list[tuple[str, str]]:
    have = set(found.methods)
    return [(m, other) for m in EXACT for other in OTHERS[m] if {m, other} <= have]


# --- tables ---------------------------------------------------------------------------------------


def pm(estimate: Estimate, digits: int = 2) -> str:
    if not np.isfinite(estimate.value):
        return ""
    error = f" ± {estimate.error:.{digits}f}" if np.isfinite(estimate.error) else ""
    return f"{estimate.value:.{digits}f}{error}"


def signed(estimate: Estimate, name: str) -> str:
    """Return a difference of a measure, in its unit and digits."""
    if not np.isfinite(estimate.value):
        return ""
    unit, digits = SHOWN[name]
    value = f"{unit * estimate.value:+.{digits}f}"
    error = f" ± {unit * estimate.error:.{digits}f}" if np.isfinite(estimate.error) else ""
    return (value.replace("-", "+") if not float(value) else value) + error


def tables(found: Results, compared: Comparisons, rows: Sequence[Row]) -> list[Table]:
    """Return the tables of the page."""
    return [
        _differences(found, compared), _power(found), _probability(found), _fits(found, rows)
    ]  # fmt: skip


def _differences(found: Results, compared: Comparisons) -> Table:
    listed = []
    for m, other in _pairs(found):
        kept = found.converged(x for x in (m, other) if x in EXACT)
        row: Row = {"method - other": f"{m} - {other}"}
        for name, title in zip(SHOWN, ("power", "log score", "accuracy"), strict=True):
            key = (m, other, name)
            text = signed(compared.more[key], name) if key in compared.more else ""
            row[title] = f"**{text}**" if compared.sign.get(key) else text
        row["converged: data sets"] = int(kept.sum())
        for name, title in zip(SHOWN, ("power", "log score", "accuracy"), strict=True):
            text = ""
            if (m, other, name) in compared.more:
                text = signed(found.more(m, other, name, kept), name)
            row[f"converged: {title}"] = text
        listed.append(row)
    note = (
        "Power at a false discovery proportion of 20 % and accuracy in points, the log score in "
        f"nats a fresh row. Bold: clear, by Holm's procedure over the {compared.tested} "
        "comparisons of the page (with those of what P(active) promises). Converged: only the data "
        "sets on which the exact posteriors of the row have converged."
    )
    return table("Differences, data set by data set", listed, note=note)


def _power(found: Results) -> Table:
    predicting = found.predicting
    listed = [
        {
            "method": m,
            "power at FDP 10 %": pm(found.mean(m, "power_10")),
            "power at FDP 20 %": pm(found.mean(m, "power_20")),
            "active among the first k": pm(found.mean(m, "top")),
            "power of its own list": pm(found.mean(m, "own_power")),
            "false in its own list": pm(found.false(m, "own")),
            "log score below the best": pm(found.mean(m, "lost"), 3) if m in predicting else "",
            "accuracy": pm(found.mean(m, "accuracy"), 3) if m in predicting else "",
        }
        for m in found.methods
    ]
    best = found.mean(found.methods[0], "best_log_score").value
    note = (
        "FDP is the false discovery proportion, and k the number of active features. The own list "
        "is what the algorithm selects; for an exact posterior P(active) > 1/2, for L1 every "
        "coefficient that is not zero. With 3 active features a list of at most 20 % false "
        "features has none, so both powers are equal there. The log score is per fresh row, in "
        f"nats. The best classifier possible has {best:.3f} and an accuracy of 0.900; "
        f"P(y = 1) = 1/2 has {-np.log(2.0):.3f}."
    )
    return table("Active features that are found, and prediction", listed, note=note)


def _probability(found: Results) -> Table:
    listed = [
        {
            "method": m,
            "active features expected": pm(found.mean(m, "expected_active"), 1),
            "P > 1/2: power": pm(found.mean(m, "half_power")),
            "P > 1/2: false": pm(found.false(m, "half")),
            "P > 1/2: false, expected": found.expected(m, "half"),
            "FDR 10 %: false": pm(found.false(m, "fdr")),
            "FDR 10 %: false, expected": found.expected(m, "fdr"),
        }
        for m in found.judged
    ]
    true = found.active
    note = (
        f"The data sets have {true:.1f} active features on average. A share of false features is "
        "that of all lists together, so a long list weighs more than a short one."
    )
    formats = dict.fromkeys(("P > 1/2: false, expected", "FDR 10 %: false, expected"), ".2f")
    return table("What P(active) promises", listed, formats, note)


def _fits(found: Results, rows: Sequence[Row]) -> Table:
    frame, listed = pd.DataFrame(rows), []
    for m in found.methods:
        own = frame[frame["method"] == m]
        listed.append(
            {
                "method": m,
                "fits": len(own),
                "failed": int((own["status"] == "failed").sum()),
                "not converged": int((own["status"] == "not_converged").sum()),
                "their median R-hat": own.loc[own["status"] == "not_converged", "rhat"].median(),
                "largest R-hat": own["rhat"].max(),
                "CPU s, median": own["cpu_seconds"].median(),
            }
        )
    formats = {"their median R-hat": ".3f", "largest R-hat": ".3f", "CPU s, median": ".1f"}
    return table("The fits", listed, formats)


# --- goals ----------------------------------------------------------------------------------------


def goals(found: Results, rows: Sequence[Row], planned: int) -> list[Goal]:
    """Return the goals, which were set before the first reported fit, but for one word.

    That of false features was "less two standard errors", which noise makes easier; it is "plus".
    """
    out = [at_least("data sets that every method has fitted", found.sets, planned)]
    exact = [r for r in rows if r["method"] in EXACT]
    converged = np.mean([r["status"] == "finished" for r in exact])
    out.append(at_least("share of exact fits that converged", float(converged), 0.95))
    for m, algorithms in EXACT.items():
        if m not in found.methods:
            continue
        false = found.false(m, "fdr")
        text = f"{m}: false features in its lists FDR 10 %, plus two standard errors"
        out.append(at_most(text, false.value + 2.0 * false.error, 0.1))
        for other in algorithms:
            if other in found.methods:
                gain = found.more(other, m, "lost")
                text = f"{m}: log score above {other}, in standard errors"
                t = gain.value / gain.error if gain.error else float("nan")
                out.append(at_least(text, t, 2.0))
    return out


# --- the page -------------------------------------------------------------------------------------

SHORT = {
    "pfcvm_lp, printed updates": "pfcvm_printed",
    "pfcvm_lp, zoo's prior": "pfcvm_zoo",
    "pfcvm, exact": "pfcvm",
    "rfvm_vb, printed updates": "rfvm_printed",
    "rfvm_vb, zoo's prior": "rfvm_zoo",
    "rfvm, exact": "rfvm",
    "horseshoe, exact": "horseshoe",
    "L1": "l1",
    "stability selection": "stability",
}
"""What the names of figures call a method."""
MEASURES = {"power_20": (100.0, 1), "lost": (1.0, 3), "accuracy": (100.0, 1)}
"""The measures of a method on the page; their units and digits."""


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the figures of the page by their names, in the digits that are shown."""
    found = Results(rows, list(SHORT))
    compared = compare(found)
    exact = [r for r in rows if r["method"] in EXACT]
    ended = [r["rhat"] for r in exact if r["status"] == "not_converged"]
    commits = Counter(str(r["commit"]) for r in rows)
    *first, last = [f"{commit} ({count})" for commit, count in commits.items()]
    asked = Options()
    out: dict[str, Any] = {
        "sets": found.sets, "cells": found.cells, "tested": compared.tested,
        "alarm": f"{100.0 * ALARM:.0f}", "commits": f"{', '.join(first)} and {last}",
        "smallest": f"{min(r['smallest_effect'] for r in rows if r['status'] != 'failed'):.2f}",
        "ess": f"{ESS:.0f}", "limit": LIMIT, "ended": len(ended), "exact_fits": len(exact),
        "median_rhat": f"{np.median(ended):.3f}", "largest_rhat": f"{max(ended):.3f}",
        "more_ess": f"{asked.ess:.0f}", "longer": asked.limit,
    }  # fmt: skip
    for m, name in SHORT.items():
        for measure, (unit, digits) in MEASURES.items():
            if measure == "power_20" or m in found.predicting:
                value, error, _ = found.mean(m, measure)
                out[f"{name}_{measure}"] = f"{unit * value:.{digits}f} ± {unit * error:.{digits}f}"
    for m in compared.excess:
        false = found.false(m, "half")
        out[f"{SHORT[m]}_false"] = f"{100.0 * false.value:.1f} ± {100.0 * false.error:.1f}"
        out[f"{SHORT[m]}_promised"] = f"{100.0 * found.expected(m, 'half'):.1f}"
    for (m, other, measure), more in compared.more.items():
        out[f"{SHORT[m]}_over_{SHORT[other]}_{measure}"] = signed(more, measure)
    kept = found.converged(["horseshoe, exact"])
    out["horseshoe_converged"] = f"{kept.sum()} of {found.sets}"
    out["horseshoe_over_l1_power_20_converged"] = signed(
        found.more("horseshoe, exact", "L1", "power_20", kept), "power_20"
    )
    return out


def measured(found: Results, rows: Sequence[Row], planned: int) -> Measured:
    """Return the goals and the tables; `planned` is a number of data sets."""
    return Measured(goals(found, rows, planned), tables(found, compare(found), rows))
