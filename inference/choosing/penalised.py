"""Logistic regression with a penalty that an inner cross-validation chooses, by log score."""

from typing import Any, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline

from ardvark.common.validate import InputError

from ..scoring.scaler import Scaler

PENALISED: dict[str, dict[str, Any]] = {
    "l1": {"l1_ratios": (1.0,), "Cs": np.logspace(1, -3, 13), "solver": "saga"},
    "elastic_net": {"l1_ratios": (0.9, 0.5, 0.1), "Cs": np.logspace(1, -3, 7), "solver": "saga"},
    "ridge": {"l1_ratios": (0.0,), "Cs": np.logspace(2, -4, 13), "solver": "lbfgs"},
}
"""The grids, and who solves them: arguments of scikit-learn's LogisticRegressionCV.

Penalties grow along `Cs`, and each fit begins where the last one ended. That is how the intercept
of `saga` is right where no feature has a weight (`Penalised`)."""
INNER = 5
"""Folds of the inner cross-validation, or as many as the smaller class has rows."""
STEPS = 5000
"""Passes over the rows, at most."""


class Penalised(LogisticRegressionCV):
    """scikit-learn's logistic regression with a penalty, whose intercept is at its optimum.

    `saga` stops when the weights stay as they are. Where the penalty keeps all at 0, it stops after
    one pass over the rows, with an intercept that may be far from the log odds of the classes
    (scikit-learn 1.9). So the intercept is solved for once more, beside the weights that it found.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit features X (N, D), centred, and labels y (N,), 0 or 1."""
        super().fit(X, y)
        eta = X @ self.coef_[0]
        most = np.abs(eta).max() + np.log(len(y))  # beyond, P(y = 1) is too large in every row
        self.intercept_[0] = brentq(lambda bias: (expit(eta + bias) - y).mean(), -most, most)
        return self


def penalised(word: str, y: np.ndarray, seed: int) -> Pipeline:
    """Return the classifier of a word in `PENALISED`, for training rows with labels y (N,).

    Raises
    ------
    InputError
        A class has one row, so that no inner fold can be held out.
    """
    inner = min(INNER, *np.bincount(y, minlength=2))
    if inner < 2:
        raise InputError("there is one row of a class, and a penalty needs an inner fold.")
    regression = Penalised(
        **PENALISED[word],
        cv=StratifiedKFold(inner, shuffle=True, random_state=seed),
        scoring="neg_log_loss",
        max_iter=STEPS,
        random_state=seed,
        use_legacy_attributes=False,
    )
    return make_pipeline(Scaler(), regression)
