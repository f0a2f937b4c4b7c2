"""The tables of `known_truth.py`, made from its rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lab import tables
from lab.known_truth.results import Estimate, Results, clear
from lab.rows import Row

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
TITLES = {"power_20": "power", "log_score": "log score", "accuracy": "accuracy"}
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
    """Return an estimate with its standard error."""
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


def tables_of(found: Results, rows: Sequence[Row]) -> dict[str, str]:
    """Return the tables of the page in Markdown, by the names of their places."""
    digits = {"their median R-hat": ".3f", "largest R-hat": ".3f", "CPU s, median": ".1f"}
    digits |= dict.fromkeys(("P > 1/2: false, expected", "FDR 10 %: false, expected"), ".2f")
    made = {
        "differences": differences(found, compare(found)),
        "found": found_by(found),
        "promises": promises(found),
        "fits": fits(found, rows),
    }
    return {name: tables.markdown(frame, digits) for name, frame in made.items()}


def differences(found: Results, compared: Comparisons) -> pd.DataFrame:
    """Return by how much an exact posterior exceeds others; bold where clear by Holm's procedure.

    Power at a false discovery proportion of 20 % and accuracy in points, the log score in nats a
    fresh row. "converged": only data sets on which the exact posteriors of the row have converged.
    """
    listed = []
    for m, other in _pairs(found):
        kept = found.converged(x for x in (m, other) if x in EXACT)
        shown = [
            (name, title) for name, title in TITLES.items() if (m, other, name) in compared.more
        ]
        row: Row = {"method - other": f"{m} - {other}"} | dict.fromkeys(TITLES.values(), "")
        for name, title in shown:
            text = signed(compared.more[m, other, name], name)
            row[title] = f"**{text}**" if compared.sign[m, other, name] else text
        row["converged: data sets"] = int(kept.sum())
        row |= {f"converged: {title}": "" for title in TITLES.values()}
        for name, title in shown:
            row[f"converged: {title}"] = signed(found.more(m, other, name, kept), name)
        listed.append(row)
    return pd.DataFrame(listed)


def found_by(found: Results) -> pd.DataFrame:
    """Return which active features are found, and how fresh rows are predicted.

    FDP is the false discovery proportion, and k the number of active features. The own list is
    what the algorithm selects; for an exact posterior P(active) > 1/2, for L1 every coefficient
    that is not zero.
    """
    listed = []
    for m in found.methods:
        row = {
            "method": m,
            "power at FDP 10 %": pm(found.mean(m, "power_10")),
            "power at FDP 20 %": pm(found.mean(m, "power_20")),
            "active among the first k": pm(found.mean(m, "top")),
            "power of its own list": pm(found.mean(m, "own_power")),
            "false in its own list": pm(found.false(m, "own")),
        }
        predicts = m in found.predicting
        row["log score below the best"] = pm(found.mean(m, "lost"), 3) if predicts else ""
        row["accuracy"] = pm(found.mean(m, "accuracy"), 3) if predicts else ""
        listed.append(row)
    return pd.DataFrame(listed)


def promises(found: Results) -> pd.DataFrame:
    """Return what P(active) promises.

    A share of false features is that of all lists together, so a long list weighs more.
    """
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
    return pd.DataFrame(listed)


def fits(found: Results, rows: Sequence[Row]) -> pd.DataFrame:
    """Return how many fits of each method ended how, and what they took."""
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
    return pd.DataFrame(listed)
