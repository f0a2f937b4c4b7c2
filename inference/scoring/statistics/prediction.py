"""How far the predictive probabilities of y = 1 are from the reference's."""

import numpy as np

from ..draws import Draws
from ..floors import OfAverage, OfMeans
from ..statistic import Limit, Statistic


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
    limits={
        "predictions": Limit(
            0.02,
            0.15,
            "A difference of 0.02 costs at most 0.001 of the log score where P is near one half. "
            "Above 0.02 only the classes may be right. From 0.15 on, P says something else "
            "altogether: that is about the difference between a coin and a probability of two "
            "thirds.",
            quantities=("probability",),
        )
    },
    columns={"probability": 3},
)

AGREEMENT = Statistic(
    name="agreement",
    of="probability",
    compute=_AGREEMENT.compute,
    floor=_AGREEMENT,
    perfect=1.0,
    limits={
        "predictions": Limit(
            0.05,
            0.10,
            "A plain classifier would put about one row in ten into another class.",
            quantities=("probability",),
            order=1,
            needed=False,  # rows near one half change class at no cost; `row` sees the others
        )
    },
    columns={"probability": 3},
)

ROW = Statistic(
    name="row",
    of="probability",
    compute=apart,
    over="worst",
    floor=OfAverage(lambda reference: reference.flat[:, reference.moves]),
    limits={
        "predictions": Limit(
            0.1,
            0.5,
            "P of 0.45 is then reported as 0.55 at most. From one half on, a sure row may be in "
            "the other class.",
            quantities=("probability",),
            order=2,
        )
    },
    columns={"probability": 3},
)
