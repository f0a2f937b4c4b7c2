"""How far the predictive probabilities of y = 1 are from the reference's."""

import numpy as np

from ..draws import Draws
from ..floors import OfAverage, OfMeans
from ..statistic import Statistic


def difference(p: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the mean absolute difference of probabilities (..., K)."""
    return np.abs(p - reference).mean(axis=-1)


def agreement(p: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the share of rows (..., K) that both put into the same class."""
    return ((p > 0.5) == (reference > 0.5)).mean(axis=-1)


def apart(fit: Draws, reference: Draws) -> np.ndarray:
    """Return the absolute difference (K,) of each row's probability."""
    return np.abs(fit.mean - reference.mean)


_DIFFERENCE, _AGREEMENT = OfMeans(difference), OfMeans(agreement)

DIFFERENCE = Statistic(
    name="difference",
    of="probability",
    compute=_DIFFERENCE.compute,
    floor=_DIFFERENCE,
)

AGREEMENT = Statistic(
    name="agreement",
    of="probability",
    compute=_AGREEMENT.compute,
    floor=_AGREEMENT,
    perfect=1.0,
)

ROW = Statistic(
    name="row",
    of="probability",
    compute=apart,
    over="worst",
    floor=OfAverage(lambda reference: reference.flat[:, reference.moves]),
)
