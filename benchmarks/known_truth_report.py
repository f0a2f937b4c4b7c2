"""What `known_truth.py` found: its rows, tables, sentences and figure. It measures nothing.

Only data sets that every method has fitted count, so that all means are over the same data sets.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.records import Goal, Table, at_least, at_most, table
from benchmarks.script import Measured

Row = dict[str, Any]
BINS = 10
KEY = ("N", "D", "correlation", "active", "data_set", "method")
SET = list(KEY[:-1])
EXACT = {
    "pfcvm, exact": ("pfcvm_lp, printed", "pfcvm_lp, zoo's prior"),
    "rfvm, exact": ("rfvm_vb, printed", "rfvm_vb, zoo's prior"),
    "horseshoe, exact": (),
}
"""The exact posteriors, and the algorithms of the same model."""
Estimate = tuple[float, float]
"""A number and its standard error."""


# --- rows -----------------------------------------------------------------------------------------


def key(row: Row) -> tuple[Any, ...]:
    """Return what tells a row from others."""
    return tuple(row[name] for name in KEY)


def read(path: Path) -> list[Row]:
    """Return the rows of a file, numbers as numbers; without a last line that a kill cut off."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        whole = [line for line in file if line.endswith("\n")]
    rows = [r for r in csv.DictReader(whole) if None not in r.values()]
    return [{k: v if k == "commit" else _typed(v) for k, v in row.items()} for row in rows]


def _typed(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None


def write(rows: Iterable[Row], path: Path) -> None:
    """Write rows to a file, in the order given."""
    listed = list(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(listed[0]))
        writer.writeheader()
        writer.writerows(listed)


class Results:
    """The rows of whole data sets.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row for each data set and method.
    methods : list of str
        In their order.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        frame = pd.DataFrame(rows)
        self.methods = list(dict.fromkeys(frame["method"]))
        frame = frame[frame["status"] != "failed"]
        count = frame.groupby(SET)["method"].transform("size")
        self.frame = frame[count == len(self.methods)].reset_index(drop=True)

    @property
    def sets(self) -> int:
        """The number of data sets."""
        return len(self.frame) // len(self.methods)

    @property
    def cells(self) -> int:
        """The number of cells with at least one of them."""
        return len(self.frame[SET[:-1]].drop_duplicates())

    @property
    def judged(self) -> list[str]:
        """The methods that give P(active)."""
        return [m for m in self.methods if self.of(m)["expected_active"].notna().all()]

    def of(self, method: str) -> pd.DataFrame:
        """Return the rows of a method, a data set each, in the same order for all methods."""
        return self.frame[self.frame["method"] == method].set_index(SET).sort_index()

    def value(self, method: str, name: str) -> np.ndarray:
        """Return a measure of each data set; `lost` is the log score below the best possible."""
        own = self.of(method)
        if name == "lost":
            return (own["best_log_score"] - own["log_score"]).to_numpy()
        if name == "own_power":
            return (own["own_right"] / own.index.get_level_values("active")).to_numpy()
        if name == "half_power":
            return (own["half_right"] / own.index.get_level_values("active")).to_numpy()
        return own[name].to_numpy(dtype=float)

    def mean(self, method: str, name: str, where: tuple[str, float] | None = None) -> Estimate:
        """Return the mean of a measure over data sets; `where` is a factor and its level."""
        x = self.value(method, name)
        return mean(x if where is None else x[self.at(method, where)])

    def at(self, method: str, where: tuple[str, float]) -> np.ndarray:
        """Return which data sets have a level of a factor."""
        return np.asarray(self.of(method).index.get_level_values(where[0]) == where[1])

    def more(self, method: str, other: str, name: str) -> Estimate:
        """Return by how much a measure is larger than another method's, data set by data set."""
        return mean(self.value(method, name) - self.value(other, name))

    def false(self, method: str, which: str) -> Estimate:
        """Return the share of the features in a method's lists that are false.

        `which` is a list: "own", "half" (P(active) > 1/2) or "fdr" (10 %).
        """
        own = self.of(method)
        false = own[f"{which}_false"].to_numpy(dtype=float)
        return ratio(false, false + own[f"{which}_right"].to_numpy(dtype=float))

    def expected(self, method: str, which: str) -> float:
        """Return the share that the method expects to be false in the same lists."""
        own = self.of(method)
        count = float((own[f"{which}_right"] + own[f"{which}_false"]).sum())
        return float(own[f"{which}_expected"].sum()) / count if count else float("nan")

    def bins(self, method: str) -> list[tuple[int, float, float, float]]:
        """Return, for each bin of P(active), features, mean P, share active, its error."""
        own, found = self.of(method), []
        for b in range(BINS):
            n, p, true = (own[f"{what}_{b}"].to_numpy(dtype=float) for what in ("n", "p", "true"))
            total = int(n.sum())
            share, error = ratio(true, n)
            found.append((total, p.sum() / total if total else float("nan"), share, error))
        return found


def mean(x: np.ndarray) -> Estimate:
    """Return the mean over data sets and its standard error."""
    error = float(x.std(ddof=1) / len(x) ** 0.5) if len(x) > 1 else float("nan")
    return float(x.mean()) if len(x) else float("nan"), error


def ratio(part: np.ndarray, whole: np.ndarray) -> Estimate:
    """Return sum(part) / sum(whole) and its standard error, where data sets are independent.

    The error is that of the linearised ratio: what a data set adds to the numerator beyond the
    ratio times its denominator is one observation.
    """
    total, count = whole.sum(), len(whole)
    if not total:
        return float("nan"), float("nan")
    share = part.sum() / total
    beyond = part - share * whole
    error = (count / (count - 1) * (beyond**2).sum()) ** 0.5 / total if count > 1 else float("nan")
    return float(share), float(error)


# --- tables ---------------------------------------------------------------------------------------


def _pm(estimate: Estimate, digits: int = 2) -> str:
    value, error = estimate
    if not np.isfinite(value):
        return ""
    return f"{value:.{digits}f} ± {error:.{digits}f}" if np.isfinite(error) else f"{value:.{digits}f}"


def tables(found: Results, rows: Sequence[Row]) -> list[Table]:
    """Return the tables of the page."""
    return [_power(found), _probability(found), _reliability(found), _score(found),
            _factors(found), _fits(found, rows)]  # fmt: skip


def _power(found: Results) -> Table:
    listed = [
        {
            "method": m,
            "power at FDP 10 %": _pm(found.mean(m, "power_10")),
            "power at FDP 20 %": _pm(found.mean(m, "power_20")),
            "active among the first k": _pm(found.mean(m, "top")),
            "power of its own list": _pm(found.mean(m, "own_power")),
            "false in its own list": _pm(found.false(m, "own")),
        }
        for m in found.methods
    ]
    note = (
        "FDP is the false discovery proportion, and k the number of active features. The own list "
        "is what the algorithm selects; for an exact posterior P(active) > 1/2, for L1 every "
        "coefficient that is not zero. With 3 active features a list of at most 20 % false "
        "features has none, so both powers are equal there. ± is the standard error over data sets."
    )
    return table("Active features that are found", listed, note=note)


def _probability(found: Results) -> Table:
    listed = [
        {
            "method": m,
            "active features expected": _pm(found.mean(m, "expected_active"), 1),
            "P > 1/2: power": _pm(found.mean(m, "half_power")),
            "P > 1/2: false": _pm(found.false(m, "half")),
            "P > 1/2: false, expected": found.expected(m, "half"),
            "FDR 10 %: false": _pm(found.false(m, "fdr")),
            "FDR 10 %: false, expected": found.expected(m, "fdr"),
        }
        for m in found.judged
    ]
    true = float(found.of(found.methods[0]).index.get_level_values("active").to_numpy().mean())
    note = (
        f"The data sets have {true:.1f} active features on average. A share of false features is "
        "that of all lists together."
    )
    formats = dict.fromkeys(("P > 1/2: false, expected", "FDR 10 %: false, expected"), ".2f")
    return table("What P(active) promises", listed, formats, note)


def _reliability(found: Results) -> Table:
    bins = {m: found.bins(m) for m in found.judged}
    listed = [
        {"P(active)": f"{b / BINS:.1f} to {(b + 1) / BINS:.1f}"}
        | {m: f"{_pm(bins[m][b][2:])} ({bins[m][b][0]})" if bins[m][b][0] else "" for m in bins}
        for b in range(BINS)
    ]
    note = "The share of features that are active, and how many features are in the bin."
    return table("Reliability of P(active)", listed, note=note)


def _score(found: Results) -> Table:
    predicting = [m for m in found.methods if found.of(m)["log_score"].notna().all()]
    listed = [
        {
            "method": m,
            "log score below the best": _pm(found.mean(m, "lost"), 3),
            "accuracy": _pm(found.mean(m, "accuracy"), 3),
        }
        for m in predicting
    ]
    best = found.mean(found.methods[0], "best_log_score")[0]
    note = (
        f"Per fresh row, in nats. The best classifier possible has {best:.3f} and an accuracy of "
        f"0.900; P(y = 1) = 1/2 has {-np.log(2.0):.3f}."
    )
    return table("Prediction of fresh rows", listed, note=note)


def levels(found: Results) -> list[tuple[str, float]]:
    """Return each factor with each of its levels."""
    return [(f, v) for f in SET[:-1] for v in sorted(found.frame[f].unique())]


def _factors(found: Results) -> Table:
    listed = []
    for where in levels(found):
        row: Row = {"data sets with": f"{where[0]} = {where[1]:g}"}
        row |= {m: _pm(found.mean(m, "power_20", where)) for m in found.methods}
        listed.append(row)
    return table("Power at a false discovery proportion of 20 %, by factor", listed)


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
                "largest R-hat": own["rhat"].max(),
                "CPU s, median": own["cpu_seconds"].median(),
            }
        )
    return table("The fits", listed, {"largest R-hat": ".3f", "CPU s, median": ".1f"})


# --- goals ----------------------------------------------------------------------------------------


def goals(found: Results, rows: Sequence[Row], planned: int) -> list[Goal]:
    """Return the goals, which were set before the first fit."""
    out = [at_least("data sets that every method has fitted", found.sets, planned)]
    exact = [r for r in rows if r["method"] in EXACT]
    converged = np.mean([r["status"] == "finished" for r in exact])
    out.append(at_least("share of exact fits that converged", float(converged), 0.95))
    for m, algorithms in EXACT.items():
        if m not in found.methods:
            continue
        false, error = found.false(m, "fdr")
        text = f"{m}: false features in its lists FDR 10 %, less two standard errors"
        out.append(at_most(text, false - 2.0 * error, 0.1))
        for other in algorithms:
            if other in found.methods:
                gain, error = found.more(other, m, "lost")
                text = f"{m}: log score above {other}, in standard errors"
                out.append(at_least(text, gain / error if error else float("nan"), 2.0))
    return out


# --- the figure -----------------------------------------------------------------------------------


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the figure."""
    raise NotImplementedError


# --- all ------------------------------------------------------------------------------------------


def measured(rows: Sequence[Row], planned: int) -> Measured:
    """Return the goals, the tables and the sentences; `planned` is a number of data sets."""
    found = Results(rows)
    return Measured(goals(found, rows, planned), tables(found, rows), notes(found))


def notes(found: Results) -> list[str]:
    """Return the paragraph, and the figure."""
    return []
