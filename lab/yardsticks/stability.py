"""Stability selection with complementary pairs, and the bound on its false choices.

Shah and Samworth (2013), Variable selection with error control: another look at stability
selection, J. R. Statist. Soc. B 75(1). A base procedure selects `most` features on each half of
`pairs` random splits in two. A feature is chosen if at least the part `threshold` of the halves
select it. The expected number of chosen features among those that the base procedure selects no
more often than at random is at most `expected_false`, if the distribution of their selection
frequency is unimodal (their Theorem 2).

The base procedure is the lasso on the labels, until `most` features have entered (Meinshausen and
Buehlmann 2010, J. R. Statist. Soc. B 72(4)); the theory needs no property of it. Integrated path
stability selection (Melikechi and Miller 2025, JASA) is absent: its package `ipss` needs XGBoost
and with it NVIDIA's libraries, 300 MB, and draws from NumPy's global state.
"""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import lars_path

from lab.yardsticks.contract import Yardstick
from lab.yardsticks.controlled import AfterSelection, chosen

PAIRS, THRESHOLD, FALSE, MOST = 50, 0.75, 1.0, 10


class StabilitySelection(BaseEstimator):
    """Features that most halves of the rows select, the number of false ones bounded.

    Parameters
    ----------
    pairs : int
        Random splits of the rows in two halves.
    threshold : float
        Part of the halves that must select a feature; above 1/2, at most 3/4.
    false : float
        Largest expected number of false choices.
    most : int
        Most features that a half may select.
    random_state : int
        Seed of the splits.
    """

    def __init__(
        self, pairs: int = PAIRS, threshold: float = THRESHOLD, false: float = FALSE,
        most: int = MOST, random_state: int = 0,
    ):  # fmt: skip
        self.pairs = pairs
        self.threshold = threshold
        self.false = false
        self.most = most
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "StabilitySelection":
        """Choose among the features of X (N, D), by labels y (N,)."""
        N, D = X.shape
        rng = np.random.default_rng(self.random_state)
        self.count_ = base_size(D, self.pairs, self.threshold, self.false, self.most)
        self.bound_ = expected_false(self.count_, D, self.pairs, self.threshold)
        votes = np.zeros(D)
        for _ in range(self.pairs):
            rows = rng.permutation(N)
            for half in (rows[: N // 2], rows[N // 2 : 2 * (N // 2)]):
                votes[first_to_enter(X[half], y[half], self.count_)] += 1.0
        self.frequency_ = votes / (2 * self.pairs)
        self.selected_ = np.flatnonzero(self.frequency_ >= self.threshold)
        return self


def first_to_enter(X: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    """Return the first `count` features on the path of the lasso, or fewer, where one left it."""
    centred = y - y.mean()
    if not centred.any():  # a half with one label
        return np.zeros(0, dtype=int)
    active = lars_path(X - X.mean(axis=0), centred, method="lasso", max_iter=count)[1]
    return np.asarray(active, dtype=int)


def expected_false(count: float, D: int, pairs: int, threshold: float) -> float:
    """Return the bound on the number of false choices, with `count` of D features a half."""
    return count**2 / (D * 2.0 * (2.0 * threshold - 1.0 - 0.5 / pairs))


def base_size(D: int, pairs: int, threshold: float, false: float, most: int) -> int:
    """Return how many features a half may select so that the bound is at most `false`."""
    unit = expected_false(1.0, D, pairs, threshold)
    return int(np.clip(np.floor((false / unit) ** 0.5), 1, most))


STABILITY = Yardstick(
    name="stability",
    steps=lambda D, seed: [("model", AfterSelection(StabilitySelection(random_state=seed)))],
    features=chosen,
    fixed={"pairs": PAIRS, "threshold": THRESHOLD, "false": FALSE, "most": MOST},
)
"""Stability selection with complementary pairs (Shah and Samworth 2013), at most one false choice
expected, then logistic regression, L2, C = 1."""
