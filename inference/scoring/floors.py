"""The noise floor: what a second run of the reference itself would score.

A distance is measured between finite sets of draws, and is never 0. Beside each stands the same
statistic between independent parts of the reference, many times over: its 95 % quantile is the
floor, and a method below it cannot be told from the reference by that number.

Parts. Each chain is cut into blocks of at least `BLOCK` effective draws (whole chains, where there
are not enough), so that blocks hardly remember each other. A repeat deals the blocks at random into
two halves and compares these. A chain that stays elsewhere than the others has a small effective
size and so is one block: its disagreement is in the floor.

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
the variance, so their deviations from their median count sqrt(2) times. Nor does the classifier
(`two_sample.py`) follow the rule. It is given equal numbers of draws for method
and floor, at most half of the reference's.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import xarray as xr
from scipy import stats

from ..fits import diagnostics
from . import distances, two_sample
from .distances import SHARES, flat, marginal, reduced
from .measures import moments

OfMeans = Callable[[np.ndarray, np.ndarray], np.ndarray]

LEVEL = 0.95
"""Quantile of a second run's score that is its floor."""
REPEATS = 400
CLASSIFIED = 20
"""Repeats of the classifier, whose floor is their mean and 1.64 sd."""
BLOCK = 20.0
"""Effective draws of a block: the next one's share in its memory is about 1 / (2 x 20)."""
MOST_BLOCKS = 100
_LOOKED_AT = 25  # components of which an effective sample size is computed
_GRID = 100  # points of a distribution function
_CHUNK = 2e6  # numbers held at once


def effective(values: np.ndarray, independent: bool) -> tuple[float, float]:
    """Return the effective number of draws: the median over components, and the smallest.

    Parameters
    ----------
    values : array (chain, draw, K)
        Of more than 25 components an even selection is looked at.
    independent : bool
        The draws are independent by construction: their number. One draw is a point: infinity.

    Returns
    -------
    tuple of float
        Bulk effective sample sizes; antithetic chains count for no more than their draws.
    """
    chains, draws, size = values.shape
    count = float(chains * draws)
    if count == 1.0 or independent:
        return (np.inf, np.inf) if count == 1.0 else (count, count)
    if draws < 4:
        return float(chains), float(chains)
    looked = np.unique(np.linspace(0, size - 1, min(size, _LOOKED_AT)).astype(int))
    some = values[..., looked]
    some = some[..., (some != some[:1, :1]).any(axis=(0, 1))]
    if some.shape[-1] == 0:
        return float(chains), float(chains)
    found = diagnostics.ess(xr.DataArray(some, dims=("chain", "draw", "k")), "bulk")
    found = np.clip(np.where(np.isnan(found), chains, found), 1.0, count)
    return float(np.median(found)), float(found.min())


@dataclass(frozen=True)
class Score:
    """One distance of one method.

    Attributes
    ----------
    value : float
    deviation : float
        How far it is from what a perfect method would score (`distances.deviation`).
    floor, typical : float
        The 95 % quantile and the median of that deviation for a second run of the reference, at
        the method's effective number of draws; NaN where the reference has no two parts.
    """

    value: float
    deviation: float
    floor: float = float("nan")
    typical: float = float("nan")

    @property
    def inside(self) -> bool:
        """Whether the number cannot be told from that of a second run."""
        return bool(self.deviation <= self.floor)

    @property
    def beyond(self) -> float:
        """The deviation, 0 where it is inside the floor; NaN where it is not known."""
        return 0.0 if self.inside else self.deviation


@dataclass(frozen=True, eq=False)
class Exact:
    """Draws of one quantity of the reference, and what halves of them say about noise.

    Attributes
    ----------
    draws : array (chain, draw, K)
    independent : bool
        The draws are independent by construction.
    binary : bool
        A mask: means are inclusion probabilities, compared as they are and not in sds; sd,
        distance and intervals of a 0-1 variable say nothing beside.
    seed : int
        Of the repeats. Equal seeds give equal floors.
    known : tuple of float, optional
        What `effective` would return, where it is known already.
    """

    draws: np.ndarray
    independent: bool = False
    binary: bool = False
    seed: int = 0
    known: tuple[float, float] | None = None
    _classified: dict[int, tuple[float, float]] = field(default_factory=dict)

    @cached_property
    def effective(self) -> tuple[float, float]:
        """Effective draws: median and smallest over components."""
        return self.known or effective(self.draws, self.independent)

    @cached_property
    def blocks(self) -> list[slice]:
        """Blocks of the draws laid end to end, chain after chain; equal lengths."""
        chains, draws = self.draws.shape[:2]
        each = int(self.effective[1] / (chains * BLOCK))
        each = min(max(each, 1), max(1, MOST_BLOCKS // chains), draws)
        length = draws // each
        starts = [c * draws + b * length for c in range(chains) for b in range(each)]
        return [slice(s, s + length) for s in starts]

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        return moments(self.draws)

    @cached_property
    def _intervals(self) -> dict[str, np.ndarray]:
        return distances.intervals(self.draws)

    @cached_property
    def _halves(self) -> np.ndarray:
        """Random halves: weights (REPEATS, B), those of the first add up to 1, the others to -1."""
        B = len(self.blocks)
        weights = np.where(np.arange(B) < B // 2, 1.0 / (B // 2), -1.0 / (B - B // 2))
        rng = np.random.default_rng([self.seed, 1])
        return rng.permuted(np.tile(weights, (REPEATS, 1)), axis=1)

    @cached_property
    def _contrast(self) -> np.ndarray:
        """The halves as contrasts: their noise that of two equal halves, as wide as Student's t."""
        B = len(self.blocks)
        equal = np.sqrt((4.0 / B) / (1.0 / (B // 2) + 1.0 / (B - B // 2)))
        rng = np.random.default_rng([self.seed, 2])
        return self._halves * equal * np.sqrt((B - 1) / rng.chisquare(B - 1, size=(REPEATS, 1)))

    def _block_means(self, values: np.ndarray) -> np.ndarray:
        return np.stack([values[b].mean(axis=0) for b in self.blocks])

    def _noise_of(self, name: str, values: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the halves' differences in the mean of values (S, k), reduced, and E.

        E is the effective number of draws for that mean: the variance of a draw over that of the
        mean of all blocks, pooled over the columns.
        """
        blocks = self._block_means(values)
        error = float(blocks.var(axis=0, ddof=1).sum()) / len(blocks)
        spread = float(values.var(axis=0).sum())
        differences = self._contrast @ blocks  # (REPEATS, k)
        if name == "error":
            differences = np.abs(differences)
        return np.abs(reduced(name, differences)), spread / error if error > 0.0 else np.inf

    def _scale(self, draws: float, independent: bool, own: float) -> float:
        """Return the noise of a method's draws over that of halves; `own` is E of the average."""
        return float(0.5 * np.sqrt(1.0 + (own if independent else self.effective[0]) / draws))

    @cached_property
    def _noise(self) -> dict[str, tuple[np.ndarray, float]]:
        """By statistic: deviations (REPEATS,) of halves from each other, and E of the average.

        Of the ratio, logarithms: d log sd = d var / (2 var).
        """
        x = flat(self.draws)
        mean, sd = self._moments
        live = np.ones(len(mean), dtype=bool) if self.binary else sd > 0.0
        if len(self.blocks) < 2 or not live.any():
            return {}
        x = x[:, live]
        if self.binary:
            return {"error": self._noise_of("error", x)}
        z = (x - mean[live]) / sd[live]
        out = {"error": self._noise_of("error", z)}
        out["wasserstein"] = self._wasserstein(z), out["error"][1]
        out["sd_ratio"] = self._noise_of("sd_ratio", 0.5 * z * z)
        for name, (low, high) in self._intervals.items():
            inside = (x >= low[live]) & (x <= high[live])
            out[name] = self._noise_of(name, inside.astype(float))
        return out

    def _wasserstein(self, z: np.ndarray) -> np.ndarray:
        """Return the largest distance (REPEATS,) of the halves' distribution functions.

        Each is taken at 101 order statistics of all draws, where the frequencies below are
        averages over draws, and the distance between is integrated by trapezoids.
        """
        S, size = z.shape
        at = np.linspace(0, S - 1, _GRID + 1).astype(int)
        B, length = len(self.blocks), self.blocks[0].stop - self.blocks[0].start
        block = np.full(S, -1)
        for b, rows in enumerate(self.blocks):
            block[rows] = b
        # the point of the grid at and above which a draw of rank i counts
        point = np.searchsorted(at, np.arange(S), side="left")
        worst = np.zeros(REPEATS)
        step = max(1, int(_CHUNK / ((REPEATS + B) * len(at))))
        for first in range(0, size, step):
            part = z[:, first : first + step]
            k = part.shape[1]
            counts = np.zeros((B, len(at), k))
            gaps = np.empty((len(at) - 1, k))
            for j in range(k):
                order = np.argsort(part[:, j], kind="stable")
                own = block[order]
                cell = (own * len(at) + point)[own >= 0]
                counts[..., j] = np.bincount(cell, minlength=B * len(at)).reshape(B, -1)
                gaps[:, j] = np.diff(part[order[at], j])
            below = counts.cumsum(axis=1) / length  # (B, point, k): each block's function
            gap = np.abs(self._contrast @ below.reshape(B, -1)).reshape(REPEATS, len(at), k)
            area = (0.5 * (gap[:, 1:] + gap[:, :-1]) * gaps).sum(axis=1)
            worst = np.maximum(worst, area.max(axis=1))
        return worst

    # --- scores -----------------------------------------------------------------------------------

    def scores(
        self, found: np.ndarray, independent: bool, draws: float | None = None
    ) -> dict[str, Score]:
        """Return every distance of a method's draws, each with its floor.

        Parameters
        ----------
        found : array (chain, draw, K)
            The method's draws.
        independent : bool
            They are independent by construction.
        draws : float, optional
            Their effective number (`effective`), where it is known already.
        """
        draws = effective(found, independent)[0] if draws is None else draws
        if self.binary:
            components = {"error": np.abs(self._moments[0] - flat(found).mean(axis=0))}
        else:
            components = marginal(found, self.draws, self._intervals)
        out = {}
        for name, values in components.items():
            value = float(reduced(name, values))
            off = distances.deviation(name, value, self._perfect.get(name))
            noise = None
            if name in self._noise:
                halves, own = self._noise[name]
                noise = self._scale(draws, independent, own) * halves
            out[name] = scored(value, off, noise)
        return out | {"two_sample": self._two_sample(found, draws)}

    @cached_property
    def _perfect(self) -> dict[str, float]:
        """The coverages that a second run would have.

        Draws that repeat make the reference's own share in its intervals differ from 50 and 90 %.
        New draws are less often in an interval whose ends are quantiles of E draws, by a share of
        2 / E: the interval from the first to the last has E - 1 of E + 1 spaces.
        """
        still = self._moments[1] == 0.0
        own = {
            name: np.where(still, np.nan, distances.coverage(self.draws, ends))
            for name, ends in self._intervals.items()
        }
        lost = {n: 2.0 / self._noise[n][1] if n in self._noise else 0.0 for n in SHARES}
        return {n: float(reduced(n, own[n])) * max(0.0, 1.0 - lost[n]) for n in SHARES}

    def of_means(
        self,
        name: str,
        function: OfMeans,
        found: np.ndarray,
        independent: bool,
        draws: float | None = None,
    ) -> Score:
        """Return a distance that is a function of posterior means alone, with its floor.

        Parameters
        ----------
        name : str
            Of the distance, for `distances.deviation`.
        function : callable
            (means (..., K), means of the reference (..., K)) -> (...).
        found : array (chain, draw, K)
            The method's draws.
        independent, draws
            As for `scores`.
        """
        draws = effective(found, independent)[0] if draws is None else draws
        value = float(function(flat(found).mean(axis=0), self._moments[0]))
        off = distances.deviation(name, value)
        if len(self.blocks) < 2:
            return scored(value, off, None)
        blocks = self._block_means(flat(self.draws))
        positive = np.maximum(self._halves, 0.0)
        first, second = positive @ blocks, (positive - self._halves) @ blocks
        # a method of fewer draws than half the reference has more noise than a half
        more = self.effective[0] / draws - 2.0
        if more > 0.0:
            first += 0.5 * np.sqrt(more) * (np.roll(self._contrast, 1, axis=0) @ blocks)
        noise = np.array([distances.deviation(name, v) for v in function(first, second)])
        middle = np.nanmedian(noise)
        return scored(value, off, np.maximum(middle + math.sqrt(2.0) * (noise - middle), 0.0))

    def _two_sample(self, found: np.ndarray, draws: float) -> Score:
        n = (
            0
            if not np.isfinite(draws)
            else int(min(draws, self.effective[0] / 2, two_sample.LARGEST))
        )
        if n < two_sample.FEWEST:
            return Score(float("nan"), float("nan"))
        sides = (two_sample.thinned(flat(v), n) for v in (found, self.draws))
        value = two_sample.accuracy(*sides)
        floor, typical = self._of_classifier(n)
        return Score(value, distances.deviation("two_sample", value), floor, typical)

    def _of_classifier(self, n: int) -> tuple[float, float]:
        """Return floor and median of the classifier's accuracy above 0.5, at n draws a side."""
        if n not in self._classified and len(self.blocks) >= 4:
            rng = np.random.default_rng([self.seed, 3])
            x, B = flat(self.draws), len(self.blocks)
            rows_of = [np.arange(b.start, b.stop) for b in self.blocks]
            found = []
            for _ in range(CLASSIFIED):
                order = rng.permutation(B)
                halves = (np.sort(order[: B // 2]), np.sort(order[B // 2 :]))
                rows = [np.concatenate([rows_of[b] for b in half]) for half in halves]
                found.append(two_sample.accuracy(*(x[two_sample.thinned(r, n)] for r in rows)))
            middle = float(np.mean(found)) - 0.5
            coin = 0.5 / np.sqrt(2 * n)  # few blocks have few halves: no less than a coin's
            high = middle + stats.norm.ppf(LEVEL) * max(float(np.std(found, ddof=1)), coin)
            self._classified[n] = (max(high, 0.0), max(middle, 0.0))
        return self._classified.get(n, (float("nan"), float("nan")))


def scored(value: float, deviation: float, noise: np.ndarray | None) -> Score:
    """Return a score whose floor is a quantile of what a second run deviates by."""
    known = np.empty(0) if noise is None else noise[~np.isnan(noise)]
    if np.isnan(deviation) or not len(known):
        return Score(value, deviation)
    return Score(value, deviation, float(np.quantile(known, LEVEL)), float(np.median(known)))
