"""The noise floor: what a second run of the reference itself would score.

A distance is measured between finite sets of draws, and is never 0. Beside each stands the same
statistic between independent parts of the reference (`draws.py`), many times over: its 95 %
quantile is the floor, and a method below it cannot be told from the reference by that number.

Number of draws. Halves of a reference of E effective draws differ by noise of variance
2 / E + 2 / E, a method of M effective draws and the whole reference by 1 / M + 1 / E. Means,
frequencies, distribution functions and (to first order) log standard deviations are averages over
draws, so the noise of one comparison is that of the other times

    r = sqrt((1 / M + 1 / E) / (4 / E)) = sqrt(1 + E / M) / 2

E is that of the average in question: squares and indicators forget faster than the draws they are
made of. For independent draws M is their number; for a chain, its bulk effective size, E then being
the reference's. The variance itself is known from B blocks only: each repeat is multiplied by
sqrt((B - 1) / chi2), chi2 of B - 1 degrees of freedom, which makes a normal contrast Student's t.
A point estimate counts as M = infinity: it has no Monte Carlo error of its own.

Ranks of means are no average, and follow no such rule: they are those of halves, which have fewer
draws than the reference, so that the floor is a little high. As all halves are of the same draws,
they differ among each other less than two runs do: where the order is nothing but noise, by half
the variance, so their deviations from their median count sqrt(2) times.

A rule here is given to a `Statistic`; one that follows none of these brings its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .draws import Draws, Exact
from .statistic import UNKNOWN, Statistic

LEVEL = 0.95
"""Quantile of a second run's score that is its floor."""


def floor(noise: np.ndarray) -> tuple[float, float]:
    """Return floor and median of what second runs deviate by, (REPEATS,)."""
    known = noise[~np.isnan(noise)]
    if not len(known):
        return UNKNOWN
    return float(np.quantile(known, LEVEL)), float(np.median(known))


def scale(found: Draws, exact: Exact, own: float) -> float:
    """Return the noise of a method's draws over that of halves; `own` is E of the average."""
    size = own if found.independent else exact.effective[0]
    return float(0.5 * np.sqrt(1.0 + size / found.effective[0]))


@dataclass(frozen=True, eq=False)
class OfAverage:
    """The floor of a statistic that is, to first order, an average over draws.

    Attributes
    ----------
    of : callable
        Reference -> what is averaged, (S, k), of the components that move.
    sizes : bool
        The statistic is the size of a difference, such as an error, and not the difference.
    """

    of: Callable[[Exact], np.ndarray]
    sizes: bool = False

    def __call__(self, statistic: Statistic, found: Draws, exact: Exact) -> tuple[float, float]:
        """Return floor and median of the deviation of a second run."""
        blocks, own = self.known(exact)
        if blocks is None:
            return UNKNOWN

        def halves() -> np.ndarray:
            differences = exact.contrast @ blocks  # (REPEATS, k)
            return np.abs(statistic.reduce(np.abs(differences) if self.sizes else differences))

        return floor(scale(found, exact, own) * exact.once(statistic, halves))

    def known(self, exact: Exact) -> tuple[np.ndarray | None, float]:
        """Return the averages of each block (B, k), and E.

        E is the effective number of draws for that average: the variance of a draw over that of the
        mean of all blocks, pooled over the columns. None and infinity where nothing moves, or
        there is one block.
        """
        return exact.once(self, lambda: self._known(exact))

    def _known(self, exact: Exact) -> tuple[np.ndarray | None, float]:
        if len(exact.blocks) < 2:
            return None, np.inf
        values = self.of(exact)
        if values.shape[1] == 0:
            return None, np.inf
        blocks = exact.block_means(values)
        error = float(blocks.var(axis=0, ddof=1).sum()) / len(blocks)
        spread = float(values.var(axis=0).sum())
        return blocks, spread / error if error > 0.0 else np.inf


@dataclass(frozen=True, eq=False)
class OfMeans:
    """A statistic that is a function of posterior means alone, and the floor of that.

    Attributes
    ----------
    function : callable
        (means (..., K), means of the reference (..., K)) -> (...).
    """

    function: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def compute(self, found: Draws, exact: Draws) -> np.ndarray:
        """Return the function of the two means."""
        return np.asarray(self.function(found.mean, exact.mean))

    def __call__(self, statistic: Statistic, found: Draws, exact: Exact) -> tuple[float, float]:
        """Return floor and median of the deviation of a second run."""
        if len(exact.blocks) < 2:
            return UNKNOWN
        blocks = exact.once("block means", lambda: exact.block_means(exact.flat))
        positive = np.maximum(exact.halves, 0.0)
        first, second = positive @ blocks, (positive - exact.halves) @ blocks
        # a method of fewer draws than half the reference has more noise than a half
        more = exact.effective[0] / found.effective[0] - 2.0
        if more > 0.0:
            first += 0.5 * np.sqrt(more) * (np.roll(exact.contrast, 1, axis=0) @ blocks)
        noise = np.array([statistic.deviation(v) for v in self.function(first, second)])
        middle = np.nanmedian(noise)
        return floor(np.maximum(middle + math.sqrt(2.0) * (noise - middle), 0.0))
