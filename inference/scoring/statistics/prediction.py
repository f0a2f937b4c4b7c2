"""How far the predictive probabilities of y = 1 are from the reference's."""

import numpy as np

from ..floors import OfMeans
from ..statistic import Limit, Shown, Statistic

_MEANING = (
    "The mean absolute difference between this method's P(y = 1) and the reference's, and the "
    "share of samples that both put into the same class. They are computed on the held-out "
    "samples, or on the training samples if none are held out."
)


def difference(p: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the mean absolute difference of probabilities (..., K)."""
    return np.abs(p - exact).mean(axis=-1)


def agreement(p: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the share of rows (..., K) that both put into the same class."""
    return ((p > 0.5) == (exact > 0.5)).mean(axis=-1)


_DIFFERENCE, _AGREEMENT = OfMeans(difference), OfMeans(agreement)

DIFFERENCE = Statistic(
    name="difference",
    of="probability",
    compute=_DIFFERENCE.compute,
    noise=_DIFFERENCE,
    phrase="P(y = 1) differs by {value:.2g} on average",
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
    columns={"probability": Shown("P(y = 1) off by", 3)},
    meaning=_MEANING,
)

AGREEMENT = Statistic(
    name="agreement",
    of="probability",
    compute=_AGREEMENT.compute,
    noise=_AGREEMENT,
    perfect=1.0,
    phrase="the predicted class is the same for {percent} of the rows",
    limits={
        "predictions": Limit(
            0.05,
            0.10,
            "A plain classifier would put about one row in ten into another class.",
            quantities=("probability",),
            told=1,
        )
    },
    columns={"probability": Shown("same class", 3)},
    meaning=_MEANING,
)
