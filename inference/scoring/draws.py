"""Draws of one quantity, of a fit (`Draws`) and of the reference (`ReferenceDraws`).

Statistics are computed from these two. `ReferenceDraws` can be split into random halves, from which
`floors.py` computes how much two runs of the reference differ.

Each chain is cut into blocks of at least `BLOCK` effective draws (whole chains, if there are not
enough), so that blocks are nearly independent. Each repeat assigns the blocks at random to two
halves and compares them. If a chain stays in a different place from the others, the effective
sample size is small and each chain is one block, so the floor includes the disagreement.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import xarray as xr

from ..fits import diagnostics

Kind = Literal["draws", "continuous", "mask", "probability", "ranking", "selection"]
CONTINUOUS: frozenset[Kind] = frozenset(("draws", "continuous"))
MASK: frozenset[Kind] = frozenset(("draws", "mask"))
"""0-1 variables: their means are inclusion probabilities, which also determine their variances."""
PROBABILITY: frozenset[Kind] = CONTINUOUS | {"probability"}
RANKING: frozenset[Kind] = frozenset(("ranking",))

REPEATS = 400
BLOCK = 20.0
"""Effective draws per block. The correlation of neighbouring blocks is about 1 / (2 x 20)."""
MOST_BLOCKS = 100
_LOOKED_AT = 25  # components for which an effective sample size is computed


def flat(values: np.ndarray) -> np.ndarray:
    """Return draws (chain, draw, ...) as (S, K)."""
    return values.reshape(values.shape[0] * values.shape[1], -1)


def effective(values: np.ndarray, independent: bool) -> tuple[float, float]:
    """Return the effective number of draws: the median over components, and the smallest.

    Parameters
    ----------
    values : array (chain, draw, K)
        If there are more than 25 components, 25 evenly spaced ones are used.
    independent : bool
        Whether the draws are independent by construction. If so, their number is returned, or
        infinity for a single draw, which is a point estimate.

    Returns
    -------
    tuple of float
        Bulk effective sample sizes, at most the number of draws (even for antithetic chains).
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


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of one quantity of a fit.

    Attributes
    ----------
    draws : array (chain, draw, K)
    independent : bool
        The draws are independent by construction.
    known : tuple of float, optional
        What `effective` would return, if it is known already.
    """

    draws: np.ndarray
    independent: bool = False
    known: tuple[float, float] | None = None
    _kept: dict[Hashable, Any] = field(default_factory=dict, init=False)

    def once[T](self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what a statistic needs from the draws, computed at the first call."""
        if key not in self._kept:
            self._kept[key] = make()
        found: T = self._kept[key]
        return found

    @cached_property
    def effective(self) -> tuple[float, float]:
        """Effective draws: median and smallest over components."""
        return self.known or effective(self.draws, self.independent)

    @property
    def flat(self) -> np.ndarray:
        """The draws (S, K)."""
        return flat(self.draws)

    @cached_property
    def constant(self) -> np.ndarray:
        """Which components are equal in all draws: a mask (K,)."""
        return np.asarray((self.flat == self.flat[:1]).all(axis=0))

    @cached_property
    def mean(self) -> np.ndarray:
        """Means (K,). That of a constant is the constant itself: a sum of many would be rounded."""
        return np.where(self.constant, self.flat[0], self.flat.mean(axis=0))

    @cached_property
    def sd(self) -> np.ndarray:
        """Standard deviations (K,), exactly 0 for a constant; NaN for a single draw."""
        if len(self.flat) < 2:
            return np.full(self.flat.shape[1:], np.nan)
        return np.where(self.constant, 0.0, self.flat.std(axis=0, ddof=1))

    def sizes(self) -> "Draws":
        """Return the sizes of the draws, by which features are ranked."""
        return Draws(np.abs(self.draws), self.independent, self.effective)


@dataclass(frozen=True, eq=False)
class ReferenceDraws(Draws):
    """Draws of one quantity of the reference, and the halves that they are split into.

    Attributes
    ----------
    kinds : frozenset of str
        The kinds of statistics that apply to the quantity.
    seed : int
        Seed of the repeats. Equal seeds give equal floors.
    labels : tuple of str
        The components in words, if they have names.
    """

    kinds: frozenset[Kind] = CONTINUOUS
    seed: int = 0
    labels: tuple[str, ...] = ()

    @cached_property
    def blocks(self) -> list[slice]:
        """Blocks of equal length of the concatenated chains."""
        chains, draws = self.draws.shape[:2]
        each = int(self.effective[1] / (chains * BLOCK))
        each = min(max(each, 1), max(1, MOST_BLOCKS // chains), draws)
        length = draws // each
        starts = [c * draws + b * length for c in range(chains) for b in range(each)]
        return [slice(s, s + length) for s in starts]

    @cached_property
    def moves(self) -> np.ndarray:
        """Which components are not constant: a mask (K,)."""
        return self.sd > 0.0

    @cached_property
    def halves(self) -> np.ndarray:
        """Random halves, as weights (REPEATS, B): 1 in total for one half, -1 for the other."""
        B = len(self.blocks)
        weights = np.where(np.arange(B) < B // 2, 1.0 / (B // 2), -1.0 / (B - B // 2))
        rng = np.random.default_rng([self.seed, 1])
        return rng.permuted(np.tile(weights, (REPEATS, 1)), axis=1)

    @cached_property
    def contrast(self) -> np.ndarray:
        """The halves as contrasts, with the noise of two equal halves and the tails of a t."""
        B = len(self.blocks)
        equal = np.sqrt((4.0 / B) / (1.0 / (B // 2) + 1.0 / (B - B // 2)))
        rng = np.random.default_rng([self.seed, 2])
        return self.halves * equal * np.sqrt((B - 1) / rng.chisquare(B - 1, size=(REPEATS, 1)))

    def block_means(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of values (S, k) in each block, (B, k)."""
        return np.stack([values[b].mean(axis=0) for b in self.blocks])

    def standardised(self) -> np.ndarray:
        """Return the components that are not constant, with mean 0 and sd 1, (S, k)."""
        live = self.moves
        return (self.flat[:, live] - self.mean[live]) / self.sd[live]

    def sizes(self) -> "ReferenceDraws":
        """Return the sizes of the draws, by which features are ranked."""
        return ReferenceDraws(np.abs(self.draws), self.independent, self.effective, RANKING)

    def split(self) -> tuple[Draws, "ReferenceDraws"]:
        """Return the first half of the chains, and the second half as its reference."""
        middle = self.draws.shape[0] // 2
        return Draws(self.draws[:middle]), ReferenceDraws(self.draws[middle:], kinds=self.kinds)
