"""Have the chains mixed? One description, over everything of a fit that may be quoted.

Looked at are eta; the bias and every other scalar; the weights of covariates; the log likelihood,
summed over rows; of each feature whose effect is visible in more than a tenth of the draws
(`activity.LISTED`) its weight, its effect, its primal weight where the kernel has one, and whether
the effect is above the threshold; of each such sample its weight and the same; and the bits of
binary masks that are on in 5 % to 95 % of the draws. A weight that a mask switches off is judged by
its bit. Constants of the model, and what is always or never above the threshold, have nothing to
judge.

R-hat of a number is rank-normalised and split, and must be below `RHAT_LIMIT`.

Something that is true or false in a draw (a bit) has a limit with its own noise. Let E be the
effective sample size of m half-chains together that do agree. Then the mean of each has variance
p (1 - p) m / E, so

    R-hat^2 - 1  is about  (m / E) chi^2 / (m - 1),   chi^2 with m - 1 degrees of freedom.

At m = 8 and E = 400 that is above 1.01^2 - 1 in 43 % of runs, for one bit alone. The limit of a bit
is where all bits of a fit that has mixed stay with 99 % probability (Bonferroni; an F distribution,
since E is estimated), but at least `RHAT_LIMIT` and at most `BIT_RHAT_LIMIT`. E is taken within
half-chains. The usual ESS shrinks when chains disagree, which would excuse them: two chains at
p = 0.4 and two at 0.6, all of independent draws, have an ESS of about 90 of 4000. Quantities of
draws that were thinned (rbf and polynomial kernels) have that limit as well, since fewer draws have
more noise, and no ESS is asked of them. By simulation (`tests/inference/fits/test_mixing.py`), 60
bits that have mixed pass in 99 % of runs or more from E = 400 on, also where draws are correlated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats

from ardvark.models import Problem

from ..target.reasons import Reason, told
from . import chains
from .activity import Activity
from .datatree import group
from .quotable import Arrays, Part, Source

GROUP = "mixing"
"""The group of a fit that keeps its mixing."""
RHAT_LIMIT = 1.01
OF_WEIGHTS = ("weight", "primal weight", "effect", "active", "mask")
"""The kinds of quantities of single features and samples."""
BIT_RHAT_LIMIT = 1.1
"""Above it, a fifth of the variance is between chains: not even a probability can be quoted."""
ALARM = 0.01
"""Probability that bits that have mixed are said not to."""
NOISE = 0.001
"""Probability that a verdict says of chains that agree that they do not (`Mixing.noise`)."""
HIDDEN = 4.0
"""Effective draws a half-chain by which the ESS within it is too large: with T about twice the
autocorrelation time, 2 T autocovariances around its own mean lack the variance of that mean."""
KNOWN = 5.0
"""Effective draws for each degree of freedom of that variance: the sum of 2 T autocovariances has
the relative variance 10 / E (Priestley 1981, sec. 5.3), which is 2 over the degrees of freedom."""


NUMBERS = ("rhat", "limit", "ess_bulk", "ess_tail", "noise")
"""The columns of a `Mixing`, besides the kind."""


class Worst(NamedTuple):
    """The worst value of a statistic, the quantity that has it, and the limit of its R-hat."""

    value: float
    name: str
    limit: float


@dataclass(frozen=True, eq=False)
class Mixing:
    """How well the chains of a fit have mixed.

    Attributes
    ----------
    sizes : tuple of int
        Chains, and draws of each.
    table : DataFrame
        One row a quantity, under its name in words: "eta[12]", "the weight of x3", "whether x3 is
        active". Its columns:

        kind : "eta", "scalar", "log likelihood", "weight", "primal weight", "effect", "active",
        "mask".

        rhat, limit : R-hat, and what it must be below. R-hat is infinite for what should change and
        never did, and for what is infinite or NaN in a draw.

        ess_bulk, ess_tail : effective sample sizes. NaN where they say nothing: a bit has no tails,
        and thinned draws have too few.

        noise : what R-hat may be although the chains agree, of as many effective draws as there are
        within half-chains: all of a fit that has mixed stay below with 99.9 % probability. At least
        the limit.
    frozen : Reason, optional
        A mask in which no bit ever changed.
    """

    sizes: tuple[int, int]
    table: pd.DataFrame
    frozen: Reason | None = None

    @property
    def rhat(self) -> Worst:
        """The R-hat that is nearest to its limit, or farthest beyond it; NaN of one chain."""
        return self._worst("rhat", (self.table["rhat"] - 1.0) / (self.table["limit"] - 1.0))

    @property
    def ess_bulk(self) -> Worst:
        """The smallest bulk ESS."""
        return self._worst("ess_bulk", -self.table["ess_bulk"])

    @property
    def ess_tail(self) -> Worst:
        """The smallest tail ESS."""
        return self._worst("ess_tail", -self.table["ess_tail"])

    def _worst(self, column: str, badness: pd.Series) -> Worst:
        if badness.isna().all():
            return Worst(float("nan"), "", float("nan"))
        row = self.table.iloc[int(np.nanargmax(badness))]
        return Worst(float(row[column]), str(row.name), float(row["limit"]))

    def only(self, *kinds: str) -> "Mixing":
        """Return the part that is of some kinds."""
        return replace(self, table=self.table[self.table["kind"].isin(kinds)])

    def without(self, *kinds: str) -> "Mixing":
        """Return the part that is of other kinds."""
        return replace(self, table=self.table[~self.table["kind"].isin(kinds)])

    def beyond(self, noise: float) -> "Mixing":
        """Return the part whose R-hats are not below their limit; from an ESS on, their noise."""
        table = self.table
        most = table["noise"].where(table["ess_bulk"] >= noise, table["limit"])
        if noise == 0.0:  # also where the ESS says nothing
            most = table["noise"]
        return replace(self, table=table[~(table["rhat"] < most)])

    def to_dataset(self) -> xr.Dataset:
        """Return the group of a fit that keeps it."""
        found = {n: ("quantity", self.table[n].to_numpy(float)) for n in NUMBERS}
        words = {
            "quantity": self.table.index.to_numpy(str),
            "kind": ("quantity", self.table["kind"].to_numpy(str)),
        }
        frozen = "" if self.frozen is None else str(self.frozen)
        attrs = {"chains": self.sizes[0], "draws": self.sizes[1], "frozen": frozen}
        return xr.Dataset(found, coords=words, attrs=attrs)

    @classmethod
    def from_dataset(cls, stored: xr.Dataset) -> "Mixing":
        """Return what `to_dataset` kept."""
        sizes, frozen = (stored.attrs["chains"], stored.attrs["draws"]), stored.attrs["frozen"]
        return cls(sizes, stored.to_dataframe(), told(frozen) if frozen else None)


def mixing_of(tree: xr.DataTree) -> Mixing:
    """Return how well the chains of a fit have mixed: what it keeps, or without its problem.

    What it keeps is of all of its draws. It is computed anew for a part of them.
    """
    kept, sizes = group(tree, GROUP), group(tree, "posterior").sizes
    if (kept.attrs.get("chains"), kept.attrs.get("draws")) == (
        sizes["chain"],
        sizes["draw"],
    ):
        return Mixing.from_dataset(kept)
    return mixing(None, tree)


def mixing(
    problem: Problem | None,
    draws: xr.DataTree | Arrays,
    activities: Mapping[str, Activity] | None = None,
) -> Mixing:
    """Return how well chains have mixed, over everything that may be quoted.

    Parameters
    ----------
    problem : Problem or None
        The problem that was fitted. Without it there are no effects: the weights are those of the
        features that the tree's selection lists, and a tree without eta is judged by all variables.
    draws : DataTree or dict of array
        A fit, or its posterior's arrays (chain, draw, ...) by name. A part of them, such as the
        first draws of each chain, will do.
    activities : dict of Activity, optional
        The result of `activity` for the same draws, if it is known.

    Returns
    -------
    Mixing

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.inference.fits.mixing import mixing
    >>> eta = np.random.default_rng(0).normal(size=(4, 2000, 3))
    >>> mixing(None, {"eta": eta}).rhat.value < 1.01
    True
    >>> eta[:2, :, 1] += 1.0
    >>> mixing(None, {"eta": eta}).rhat
    Worst(value=1.14..., name='eta[1]', limit=1.01)
    """
    source = Source.of(problem, draws, activities)
    parts = [p for p in source.parts() if p.values.shape[-1]]
    if source.sizes[1] < chains.FEWEST:
        parts = []
    numbers = np.concatenate([np.empty((5, 0)), *map(_judged, parts)], axis=1)
    rhats, bulk, tail, within, sizes_within = numbers
    limits = _limits(within, source.sizes[0])
    largest = _largest(sizes_within, source.sizes[0], NOISE / max(len(rhats), 1))
    columns = (rhats, limits, bulk, tail, np.maximum(limits, largest))
    table = pd.DataFrame(
        {
            "kind": [p.kind for p in parts for _ in p.names],
            **dict(zip(NUMBERS, columns, strict=True)),
        },
        index=pd.Index([name for p in parts for name in p.names], name="quantity", dtype=str),
    )
    return Mixing(source.sizes, table, source.frozen())


def _judged(part: Part) -> np.ndarray:
    """Return R-hat, bulk and tail ESS, and the ESS that the limit comes from, or NaN; (5, k).

    The last row is the ESS within half-chains of whatever has an R-hat above `RHAT_LIMIT`.
    """
    x = part.values
    none = np.full(x.shape[-1], np.nan)
    if x.dtype == bool:
        rhat, bulk, within = chains.bits(x)
        return np.stack([rhat, bulk if part.thin == 1 else none, none, within, within])
    rhat, bulk, tail = chains.mixed(x)
    stuck = (x == x[:, :1]).all(axis=(0, 1)) | ~np.isfinite(x).all(axis=(0, 1))
    if x.shape[0] > 1:
        rhat = np.where(stuck, np.inf, rhat)
    bulk, tail = (np.where(stuck, float(len(x)), size) for size in (bulk, tail))
    above = np.flatnonzero((rhat > RHAT_LIMIT) & np.isfinite(rhat))
    own = none.copy()
    own[above] = chains.within(x[..., above])
    if part.thin == 1:
        return np.stack([rhat, bulk, tail, none, own])
    return np.stack([rhat, none, none, chains.within(x), own])


def _limits(within: np.ndarray, count: int) -> np.ndarray:
    """Return the limit of each R-hat: `RHAT_LIMIT`, or one with its noise where that is known."""
    noisy = ~np.isnan(within)
    largest = _largest(within, count, ALARM / max(int(noisy.sum()), 1))
    return np.clip(largest, RHAT_LIMIT, BIT_RHAT_LIMIT)


def _largest(within: np.ndarray, count: int, alarm: float) -> np.ndarray:
    """Return the R-hat that is passed with probability `alarm`; 1 where no ESS is known."""
    halves = 2 * count
    size = np.maximum(np.where(np.isnan(within), np.inf, within) - HIDDEN * halves, 1.0)
    largest = stats.f.isf(alarm, halves - 1, np.minimum(size / KNOWN, 1e6))
    return np.asarray(np.sqrt(1.0 + halves * largest / size))
