"""The rows of `known_truth.py`, and their means with standard errors over data sets.

Only data sets that every method has fitted count, so that all means are over the same data sets.

The cells are chosen, the data sets are drawn. So a mean is over cells, each of the same weight
whatever the number of its data sets, and its standard error is that of a stratified sample: only
the variance of data sets within their cell is in it, never the difference between cells.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from lab.rows import Row

BINS = 10
"""Of P(active), each of width 0.1."""
KEY = ("N", "D", "correlation", "active", "data_set", "method")
SET = list(KEY[:-1])
ESS, LIMIT = 400.0, 2048
"""Effective draws asked of an exact fit, and the iterations a chain after which it ends anyway."""


class Estimate(NamedTuple):
    """A number, its standard error and the degrees of freedom of that error; NaN where unknown."""

    value: float
    error: float
    freedom: float

    @property
    def p(self) -> float:
        """The probability of as large a t without any effect, both sides; NaN without an error."""
        if not self.error > 0.0:
            return float("nan")
        return float(2.0 * stats.t.sf(abs(self.value) / self.error, self.freedom))


class Results:
    """The rows of whole data sets.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row for each data set and method.
    methods : list of str
        In their order.
    """

    def __init__(self, rows: Sequence[Row], methods: Sequence[str]) -> None:
        self.methods = list(methods)
        frame = pd.DataFrame(rows, columns=None if rows else [*KEY, "status"])
        frame = frame[frame["status"] != "failed"]
        count = frame.groupby(SET)["method"].transform("size")
        self.frame = frame[count == len(self.methods)].reset_index(drop=True)
        self._of = {m: own.set_index(SET).sort_index() for m, own in self.frame.groupby("method")}

    @property
    def sets(self) -> int:
        """The number of data sets."""
        return len(self.frame) // len(self.methods)

    @property
    def cells(self) -> int:
        """The number of cells with at least one of them."""
        return len(self.frame[SET[:-1]].drop_duplicates())

    @property
    def active(self) -> float:
        """The mean number of active features."""
        truly = self.of(self.methods[0]).index.get_level_values("active")
        return mean(truly.to_numpy(dtype=float), self.cell).value

    @property
    def judged(self) -> list[str]:
        """The methods that give P(active)."""
        return [m for m in self.methods if self.of(m)["expected_active"].notna().all()]

    @property
    def predicting(self) -> list[str]:
        """The methods that give P(y = 1)."""
        return [m for m in self.methods if self.of(m)["log_score"].notna().all()]

    def of(self, method: str) -> pd.DataFrame:
        """Return the rows of a method, a data set each, in the same order for all methods."""
        return self._of[method]

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

    def converged(self, methods: Iterable[str]) -> np.ndarray:
        """Return the data sets on which all these methods have converged."""
        return np.all([self.of(m)["status"] == "finished" for m in methods], axis=0)

    @cached_property
    def cell(self) -> np.ndarray:
        """The number of each data set's cell."""
        levels = self.of(self.methods[0]).index.to_frame(index=False)[SET[:-1]]
        return np.asarray(levels.groupby(SET[:-1]).ngroup())

    def _kept(self, kept: np.ndarray | None) -> np.ndarray:
        return np.ones(self.sets, dtype=bool) if kept is None else kept

    def mean(self, method: str, name: str, kept: np.ndarray | None = None) -> Estimate:
        """Return the mean of a measure over cells; `kept` are the data sets that count (all)."""
        kept = self._kept(kept)
        return mean(self.value(method, name)[kept], self.cell[kept])

    def more(self, method: str, other: str, name: str, kept: np.ndarray | None = None) -> Estimate:
        """Return by how much a measure is larger than another method's, data set by data set."""
        kept = self._kept(kept)
        more = self.value(method, name) - self.value(other, name)
        return mean(more[kept], self.cell[kept])

    def false(self, method: str, which: str, kept: np.ndarray | None = None) -> Estimate:
        """Return the share of the features in a method's lists that are false.

        `which` is a list: "own", "half" (P(active) > 1/2) or "fdr" (10 %).
        """
        return self._share(method, which, 1.0, 0.0, kept)

    def expected(self, method: str, which: str, kept: np.ndarray | None = None) -> float:
        """Return the share that the method expects to be false in the same lists."""
        return self._share(method, which, 0.0, 1.0, kept).value

    def excess(self, method: str, which: str, kept: np.ndarray | None = None) -> Estimate:
        """Return by how much the share that is false exceeds the share that is expected to be."""
        return self._share(method, which, 1.0, -1.0, kept)

    def _share(
        self, method: str, which: str, false: float, expected: float, kept: np.ndarray | None
    ) -> Estimate:
        own, kept = self.of(method), self._kept(kept)
        wrong = own[f"{which}_false"].to_numpy(dtype=float)
        part = false * wrong
        if expected:
            part = part + expected * own[f"{which}_expected"].to_numpy(dtype=float)
        whole = wrong + own[f"{which}_right"].to_numpy(dtype=float)
        return ratio(part[kept], whole[kept], self.cell[kept])

    def bins(self, method: str) -> list[tuple[int, float, Estimate]]:
        """Return, for each bin of P(active), features, mean P, share active."""
        own, cell, found = self.of(method), self.cell, []
        for b in range(BINS):
            n, p, true = (own[f"{what}_{b}"].to_numpy(dtype=float) for what in ("n", "p", "true"))
            found.append((int(n.sum()), ratio(p, n, cell).value, ratio(true, n, cell)))
        return found


# --- estimates ------------------------------------------------------------------------------------


def mean(x: np.ndarray, cell: np.ndarray) -> Estimate:
    """Return the mean over cells of the means of their data sets.

    The variance of a cell's mean is s^2 / n, from its own n data sets. A cell of one data set has
    no s^2 and takes that of the others, pooled. The degrees of freedom are Welch's.
    """
    if not len(x):
        return Estimate(float("nan"), float("nan"), float("nan"))
    _, at, n = np.unique(cell, return_inverse=True, return_counts=True)
    means, free = np.bincount(at, x) / n, n - 1
    value, freedom = float(means.mean()), float("nan")
    if not free.sum():
        return Estimate(value, float("nan"), freedom)
    within = np.bincount(at, (x - means[at]) ** 2)  # (n - 1) s^2
    shown = free > 0
    weight = (1.0 / n + (n == 1).sum() * free / free.sum()) / len(n) ** 2
    parts = (weight * within)[shown] / free[shown]
    if parts.sum() > 0.0:
        freedom = float(parts.sum() ** 2 / (parts**2 / free[shown]).sum())
    return Estimate(value, float(parts.sum() ** 0.5), freedom)


def ratio(part: np.ndarray, whole: np.ndarray, cell: np.ndarray) -> Estimate:
    """Return mean(part) / mean(whole), means over cells, with the error of the linearised ratio.

    What a data set adds to the numerator beyond the ratio times its denominator is one observation.
    The error is NaN where fewer than two data sets add anything.
    """
    total = mean(whole, cell).value
    if not total > 0.0:
        return Estimate(float("nan"), float("nan"), float("nan"))
    share = mean(part, cell).value / total
    if np.count_nonzero(whole) < 2:
        return Estimate(share, float("nan"), float("nan"))
    beyond = mean(part - share * whole, cell)
    return Estimate(share, beyond.error / total, beyond.freedom)


def clear(estimates: Iterable[Estimate], alarm: float) -> list[int]:
    """Return the sign of each estimate that is clearly not 0, and 0 for the others.

    Holm's procedure: if none of them differs from 0, one or more is called clear with a probability
    of at most `alarm`. An estimate without an error is never clear, and no part of the family.
    """
    listed = list(estimates)
    signs = [0] * len(listed)
    known = sorted((e.p, i) for i, e in enumerate(listed) if np.isfinite(e.p))
    for rank, (p, i) in enumerate(known):
        if p > alarm / (len(known) - rank):
            break
        signs[i] = int(np.sign(listed[i].value))
    return signs
