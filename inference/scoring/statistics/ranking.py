"""What the features that lead by mean absolute weight carry of those that lead in the reference."""

import numpy as np

from ..floors import OfMeans
from ..statistic import Limit, Statistic

LEADING = 10
"""Number of leading components; at most half of all components."""


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


_CAPTURED = OfMeans(captured)

CAPTURED = Statistic(
    name="captured",
    of="ranking",
    compute=_CAPTURED.compute,
    floor=_CAPTURED,
    perfect=1.0,
    limits={
        "ranking": Limit(
            0.1,
            0.4,
            "Of ten equally large features, one is missed; or four.",
            quantities=("ranking",),
        )
    },
    columns={"ranking": 2},
)
