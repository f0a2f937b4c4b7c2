"""How far the order of the features, by mean absolute weight, is from the reference's order."""

import numpy as np
from scipy import stats

from ..floors import OfMeans
from ..statistic import Statistic

LEADING = 10
"""Number of leading components; at most half of all components."""


def spearman(score: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the rank correlation of scores (..., K) with the reference's; ties get the mean rank.

    NaN if one side has no order, because all its scores are equal or K is 1.
    """
    a, b = (stats.rankdata(v, axis=-1) - 0.5 * (v.shape[-1] + 1) for v in (score, reference))
    with np.errstate(divide="ignore", invalid="ignore"):
        return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def captured(score: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return what the leading components of a score (..., K) carry of the reference's sizes.

    1 if they carry as much as the reference's own leading ones. Components that are equally large
    may change places at no cost, so features that are hardly ever active do not count.
    """
    k = leading(score.shape[-1])
    own, best = (_membership(v, k) for v in (score, reference))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((own * reference).sum(-1) / (best * reference).sum(-1))


def leading(size: int) -> int:
    """Return the number of leading components among `size`."""
    return max(1, min(LEADING, size // 2))


def _membership(score: np.ndarray, k: int) -> np.ndarray:
    """Return each component's probability of being among the k largest, ties broken at random."""
    last = -np.sort(-score, axis=-1)[..., k - 1 : k]
    above, tied = score > last, score == last
    places = k - above.sum(-1, keepdims=True)
    return above + tied * places / tied.sum(-1, keepdims=True)


_SPEARMAN, _CAPTURED = OfMeans(spearman), OfMeans(captured)

SPEARMAN = Statistic(
    name="spearman",
    of="ranking",
    compute=_SPEARMAN.compute,
    floor=_SPEARMAN,
    perfect=1.0,
)

CAPTURED = Statistic(
    name="captured",
    of="ranking",
    compute=_CAPTURED.compute,
    floor=_CAPTURED,
    perfect=1.0,
)
