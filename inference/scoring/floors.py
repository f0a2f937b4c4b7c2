"""The noise floor: what a second run of the reference itself would score.

A distance between finite sets of draws is never 0. So the same statistic is computed many times
between random halves of the reference (`draws.py`). Its 95 % quantile is the floor. A distance
below the floor is within Monte Carlo error.

Number of draws. The difference between two halves of a reference with E effective draws has a
variance proportional to 2 / E + 2 / E. Between a method with M effective draws and the whole
reference it is 1 / M + 1 / E. Means, frequencies, distribution functions and (to first order) log
standard deviations are averages over draws, so the noise of one comparison is that of the other
times

    r = sqrt((1 / M + 1 / E) / (4 / E)) = sqrt(1 + E / M) / 2

E is the effective sample size of the average in question: squares and indicators decorrelate faster
than the draws themselves. For independent draws, M is their number. For a chain, M is its bulk
effective sample size, and E that of the reference. The variance is estimated from only B blocks.
Each repeat is therefore multiplied by sqrt((B - 1) / chi2), with chi2 of B - 1 degrees of freedom,
which turns a normal contrast into Student's t. A point estimate counts as M = infinity: it has no
Monte Carlo error of its own.

Ranks of means are not averages. Their floor comes from the halves directly. These have fewer draws
than the reference, so the floor is slightly too high. All halves come from the same draws, so they
differ from each other less than two runs do. If the order is pure noise, the variance is half as
large. Their deviations from the median are therefore multiplied by sqrt(2).

A `Statistic` declares which of these rules it uses, or has a rule of its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .draws import Draws, ReferenceDraws
from .statistic import UNKNOWN, Statistic

LEVEL = 0.95
"""The floor is this quantile of the score of a second run."""


def floor(noise: np.ndarray) -> tuple[float, float]:
    """Return floor and median of the deviations (REPEATS,) of second runs."""
    known = noise[~np.isnan(noise)]
    if not len(known):
        return UNKNOWN
    return float(np.quantile(known, LEVEL)), float(np.median(known))


def scale(fit: Draws, reference: ReferenceDraws, own: float) -> float:
    """Return the noise of a method relative to that of halves; `own` is E of the average."""
    size = own if fit.independent else reference.effective[0]
    return float(0.5 * np.sqrt(1.0 + size / fit.effective[0]))


def size(fit: Draws, reference: ReferenceDraws, own: float) -> float:
    """Return M of an average whose E is `own`: a method's effective number of draws for it."""
    return fit.effective[0] * (1.0 if fit.independent else own / reference.effective[0])


@dataclass(frozen=True, eq=False)
class OfAverage:
    """The floor of a statistic that is, to first order, an average over draws.

    Attributes
    ----------
    of : callable
        Reference -> the terms (S, k) that are averaged, for the components that are not constant.
    """

    of: Callable[[ReferenceDraws], np.ndarray]

    def __call__(
        self, statistic: Statistic, fit: Draws, reference: ReferenceDraws
    ) -> tuple[float, float]:
        """Return floor and median of the deviation of a second run."""
        blocks, own = self.known(reference)
        if blocks is None:
            return UNKNOWN

        def halves() -> np.ndarray:
            differences = reference.contrast @ blocks  # (REPEATS, k)
            if statistic.over == "worst":
                return np.asarray(np.abs(differences).max(axis=1))
            return np.abs(statistic.reduce(differences))

        return floor(scale(fit, reference, own) * reference.once(statistic, halves))

    def known(self, reference: ReferenceDraws) -> tuple[np.ndarray | None, float]:
        """Return the averages of each block (B, k), and E.

        E is the effective number of draws for that average: the variance of a draw divided by that
        of the mean of all blocks, pooled over the columns. None and infinity if all components are
        constant or there is only one block.
        """
        return reference.once(self, lambda: self._known(reference))

    def _known(self, reference: ReferenceDraws) -> tuple[np.ndarray | None, float]:
        if len(reference.blocks) < 2:
            return None, np.inf
        values = self.of(reference)
        if values.shape[1] == 0:
            return None, np.inf
        blocks = reference.block_means(values)
        error = float(blocks.var(axis=0, ddof=1).sum()) / len(blocks)
        spread = float(values.var(axis=0).sum())
        return blocks, spread / error if error > 0.0 else np.inf


@dataclass(frozen=True, eq=False)
class OfMeans:
    """A statistic that is a function of posterior means only, and its floor.

    Attributes
    ----------
    function : callable
        (means (..., K), means of the reference (..., K)) -> (...).
    """

    function: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def compute(self, fit: Draws, reference: Draws) -> np.ndarray:
        """Return the function of the two means."""
        return np.asarray(self.function(fit.mean, reference.mean))

    def __call__(
        self, statistic: Statistic, fit: Draws, reference: ReferenceDraws
    ) -> tuple[float, float]:
        """Return floor and median of the deviation of a second run."""
        if len(reference.blocks) < 2:
            return UNKNOWN
        blocks = reference.once("block means", lambda: reference.block_means(reference.flat))
        positive = np.maximum(reference.halves, 0.0)
        first, second = positive @ blocks, (positive - reference.halves) @ blocks
        # a method with fewer draws than half of the reference has more noise than a half
        more = reference.effective[0] / fit.effective[0] - 2.0
        if more > 0.0:
            first += 0.5 * np.sqrt(more) * (np.roll(reference.contrast, 1, axis=0) @ blocks)
        noise = np.array([statistic.deviation(v) for v in self.function(first, second)])
        middle = np.nanmedian(noise)
        return floor(np.maximum(middle + math.sqrt(2.0) * (noise - middle), 0.0))
