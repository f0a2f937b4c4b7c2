"""How far draws are from the draws of a reference: one number a component, or one of the joint.

All draws are arrays (chain, draw, K); sizes of the two sides may differ. Every statistic is in
units of the reference and has a value that a perfect method would have, but for Monte Carlo error
(`floors.py` says how large that is):

    error         |mean - mean of the reference| / sd of the reference               0
    sd_ratio      sd / sd of the reference                                            1
    wasserstein   distance of the two distribution functions / sd of the reference   0
    coverage_50,  share of the draws inside the reference's central intervals         0.5, 0.9
    coverage_90
    spearman      rank correlation of the components' posterior means                 1
    top           share of the k leading components that are the same                 1

Joint Wasserstein and Kullback-Leibler distances from draws are not used: beyond a few dimensions
they rank a posterior with 0.7 times the sd above a second run of the right one. The marginal ones
do not, because in one dimension draws fill the line.

A component that is constant under the reference has no sd: it is left out where the draws agree,
and its error is infinite where they do not. A single draw has a mean and nothing else: the rest is
NaN.
"""

from collections.abc import Mapping

import numpy as np
from scipy import stats

from .measures import moments

SHARES = {"coverage_50": 0.5, "coverage_90": 0.9}
"""Central intervals whose coverage is looked at."""
LEADING = 10
"""Leading components whose overlap is counted, at most half of all."""
_CHUNK = 4e6  # numbers held at once beside the draws


def flat(values: np.ndarray) -> np.ndarray:
    """Return draws (chain, draw, ...) as (S, K)."""
    return values.reshape(values.shape[0] * values.shape[1], -1)


def marginal(
    found: np.ndarray, exact: np.ndarray, ends: Mapping[str, np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """Return every statistic of a single component, by name, each (K,).

    Parameters
    ----------
    found, exact : array (chain, draw, K)
        The draws to judge, and the reference's.
    ends : dict of array (2, K), optional
        The reference's `intervals`, where they are known already.
    """
    mean, sd = moments(found)
    mean0, sd0 = moments(exact)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = {"error": np.abs(mean - mean0) / sd0, "sd_ratio": sd / sd0}
    still = sd0 == 0.0
    silent = still & (mean == mean0) & ~(sd > 0.0)  # 0 in every draw of both says nothing
    out = {name: np.where(silent, np.nan, value) for name, value in out.items()}
    if flat(found).shape[0] < 2:
        nothing = np.full(mean.shape, np.nan)
        return out | dict.fromkeys(("wasserstein", *SHARES), nothing)
    with np.errstate(divide="ignore", invalid="ignore"):
        out["wasserstein"] = np.where(silent, np.nan, wasserstein(found, exact) / sd0)
    for name, between in (intervals(exact) if ends is None else ends).items():
        out[name] = np.where(still, np.nan, coverage(found, between))
    return out


def wasserstein(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the distance of the two distribution functions of each component, (K,).

    In one dimension the Wasserstein-1 distance is the mean distance of the two quantile functions,
    the integral of |Q(u) - Q0(u)| over u in (0, 1). Those of n and m draws are steps that end at
    the multiples of 1 / n and of 1 / m, so the integral is a sum over at most n + m - 1 steps.
    """
    x, y = flat(found), flat(exact)
    n, m = len(x), len(y)
    # ends of the steps in units of 1 / (n m): exact integers
    ends = np.union1d(np.arange(1, n + 1) * m, np.arange(1, m + 1) * n)
    width = np.diff(ends, prepend=0) / (n * m)
    i, j = (ends - 1) // m, (ends - 1) // n  # the order statistics over each step
    out = np.empty(x.shape[1])
    step = max(1, int(_CHUNK / len(ends)))
    for k in range(0, len(out), step):
        low, high = (np.sort(v[:, k : k + step], axis=0) for v in (x, y))
        out[k : k + step] = width @ np.abs(low[i] - high[j])
    return out


def intervals(exact: np.ndarray) -> dict[str, np.ndarray]:
    """Return the ends (2, K) of the central intervals of each component, by the coverage's name."""
    x = flat(exact)
    tails = {name: 0.5 * (1.0 - share) for name, share in SHARES.items()}
    return {name: np.quantile(x, (tail, 1.0 - tail), axis=0) for name, tail in tails.items()}


def coverage(found: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the share (K,) of the draws that lie in intervals, of ends (2, K)."""
    low, high = ends
    x = flat(found)
    return ((x >= low) & (x <= high)).mean(axis=0)


def spearman(score: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the rank correlation of scores (..., K) with the reference's, ties at mean rank.

    NaN where one side has no order: all its scores are equal, or K is 1.
    """
    a, b = (stats.rankdata(v, axis=-1) - 0.5 * (v.shape[-1] + 1) for v in (score, exact))
    with np.errstate(divide="ignore", invalid="ignore"):
        return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def top(score: np.ndarray, exact: np.ndarray, k: int | None = None) -> np.ndarray:
    """Return which share of the k leading components (..., K) is also leading in the reference.

    `k` is `LEADING`, or half of K where that is less. The k-th largest score may be one of several
    that are equal: each of those then counts by its probability of being chosen by lot.
    """
    if k is None:
        k = leading(score.shape[-1])
    return (_membership(score, k) * _membership(exact, k)).sum(-1) / k


def leading(size: int) -> int:
    """Return how many of so many components are the leading ones."""
    return max(1, min(LEADING, size // 2))


def _membership(score: np.ndarray, k: int) -> np.ndarray:
    """Return each component's probability of being among the k largest, ties broken by lot."""
    last = -np.sort(-score, axis=-1)[..., k - 1 : k]
    above, tied = score > last, score == last
    places = k - above.sum(-1, keepdims=True)
    return above + tied * places / tied.sum(-1, keepdims=True)


# --- one number of many components ----------------------------------------------------------------

PERFECT = {"sd_ratio": 1.0, "spearman": 1.0, "top": 1.0, "two_sample": 0.5, "agreement": 1.0}
"""What a perfect method would score, where that is not 0; of coverages, the reference's own."""


def reduced(name: str, components: np.ndarray) -> np.ndarray:
    """Return one number of a statistic's components (..., K): the worst, the middle or the mean.

    Errors and distances: the largest, since one component is enough to be wrong. Ratios: the
    median. Coverages: the mean. NaN where no component says anything.
    """
    known = ~np.isnan(components)
    if not known.any():
        return np.full(components.shape[:-1], np.nan)
    if name in ("error", "wasserstein"):
        return np.where(known, components, -np.inf).max(axis=-1)
    return np.nanmedian(components, -1) if name == "sd_ratio" else np.nanmean(components, -1)


def deviation(name: str, value: float, perfect: float | None = None) -> float:
    """Return how far a number is from what a perfect method would score: 0 at best.

    Of a ratio, the logarithm's size: half and twice the sd are equally far. Of a classifier's
    accuracy, what it has above a coin's; below, nothing is told apart.
    """
    target = PERFECT.get(name, 0.0) if perfect is None else perfect
    if name == "sd_ratio":
        with np.errstate(divide="ignore"):
            return float(np.abs(np.log(value / target)))
    if name == "two_sample":
        return float(np.maximum(value - target, 0.0))
    return float(np.abs(value - target))
