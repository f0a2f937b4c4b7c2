"""Logistic regression with a penalty that an inner cross-validation chooses, by log score."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from ardvark.common.validate import InputError
from ardvark.data.groups import inner_folds

from .scaler import Scaler

START = np.full(20, 0.01)
"""A large penalty, again and again, before the grid. Where all weights are 0, `saga` stops after a
pass over the rows, and each pass brings its intercept nearer to the log odds of the classes."""
PENALISED: dict[str, dict[str, Any]] = {
    "l1": {"Cs": np.logspace(-3, 2, 11)},
    "elastic_net": {
        "l1_ratios": (0.9, 0.5, 0.1),
        "Cs": np.r_[START, np.logspace(-3, 1, 7)],
        "solver": "saga",
        "tol": 2e-4,
    },
    "ridge": {"l1_ratios": (0.0,), "Cs": np.logspace(-4, 2, 13), "solver": "lbfgs"},
}
"""The grids. The last two are arguments of scikit-learn's LogisticRegressionCV, in which each fit
begins where the one before it ended. For L1, `liblinear` is ten times as fast."""
INNER = 5
"""Folds of the inner cross-validation, or as many as the smaller class has rows."""
STEPS = 5000
"""Passes over the rows, at most."""
_FREE = 1e4
"""liblinear penalises the weight of a constant column: one of this size costs an intercept nothing
(LogisticRegressionCV would refit without it, scikit-learn 1.9)."""


class Penalised(LogisticRegressionCV):
    """scikit-learn's logistic regression with a penalty, whose intercept is at its optimum.

    `saga` stops when the weights stay as they are, whatever the intercept is (scikit-learn 1.9; see
    `START`). So the intercept is solved for once more, beside the weights that it found.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit features X (N, D), centred, and labels y (N,), 0 or 1."""
        super().fit(X, y)
        eta = X @ self.coef_[0]
        most = np.abs(eta).max() + np.log(len(y))  # beyond, P(y = 1) is too large in every row
        self.intercept_[0] = brentq(lambda bias: (expit(eta + bias) - y).mean(), -most, most)
        return self


def penalised(
    word: str, y: np.ndarray, seed: int, groups: Sequence[str] | None = None
) -> Pipeline | GridSearchCV:
    """Return the classifier of a word in `PENALISED`, for training rows with labels y (N,).

    The inner folds keep `groups` of rows together.

    Raises
    ------
    InputError
        A class has one row, so that no inner fold can be held out.
    """
    inner = min(INNER, *np.bincount(y, minlength=2))
    if inner < 2:
        raise InputError("there is one row of a class, and a penalty needs an inner fold.")
    folds, scoring = inner_folds(y, groups, inner, seed), "neg_log_loss"
    if word == "l1":
        model = LogisticRegression(
            l1_ratio=1.0,
            solver="liblinear",
            intercept_scaling=_FREE,
            random_state=seed,
            max_iter=STEPS,
        )
        return searched(model, PENALISED["l1"]["Cs"], folds, scoring)
    regression = Penalised(
        **PENALISED[word],
        cv=folds,
        scoring=scoring,
        max_iter=STEPS,
        random_state=seed,
        use_legacy_attributes=False,
    )
    return make_pipeline(Scaler(), regression)


def searched(model: BaseEstimator, Cs: np.ndarray, folds: Any, scoring: str) -> GridSearchCV:
    """Return a classifier of standardised features whose penalty 1 / C the folds choose."""
    step = type(model).__name__.lower()
    grid = {f"{step}__C": Cs}
    return GridSearchCV(make_pipeline(Scaler(), model), grid, cv=folds, scoring=scoring)
