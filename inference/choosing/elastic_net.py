"""Logistic regression with an elastic net, whose intercept is free (Zou and Hastie 2005).

scikit-learn has one, by saga. But saga watches the weights alone: where the penalty keeps them at 0
it stops after an epoch, with an intercept that is far from the log odds of the classes. With 10 %
of the labels 1 it predicts 32 %, at any tolerance (scikit-learn 1.9).
"""

import warnings
from typing import Any

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

_STEPS = 5000
_TOLERANCE = 1e-4  # of the optimality conditions, in units of the mean gradient


class ElasticNet(ClassifierMixin, BaseEstimator):
    """Minimise mean log loss + alpha (l1_ratio |w| + (1 - l1_ratio) w^2 / 2); alpha by its ratio.

    By accelerated proximal gradient steps with restarts (Beck and Teboulle 2009, SIAM J. Imaging
    Sci. 2(1); O'Donoghue and Candes 2015, Found. Comput. Math. 15).

    Parameters
    ----------
    ratio : float
        alpha as a part of the least one at which all weights are 0.
    l1_ratio : float
        Above 0: a share of 0 has no such alpha.
    """

    def __init__(self, ratio: float = 0.1, l1_ratio: float = 0.5) -> None:
        self.ratio = ratio
        self.l1_ratio = l1_ratio

    def fit(self, X: np.ndarray, y: np.ndarray) -> "ElasticNet":
        """Fit features X (N, D), centred, and labels y (N,), 0 or 1.

        Few of many features have a weight. So the others are left out, and those that break the
        optimality conditions are added, the worst first, until none does.
        """
        self.classes_ = np.unique(y)
        ones = (y == self.classes_[1]).astype(float)
        (N, D), share = X.shape, ones.mean()
        gradient = X.T @ (share - ones) / N
        alpha = self.ratio * np.abs(gradient).max() / self.l1_ratio
        lasso, ridge = alpha * self.l1_ratio, alpha * (1.0 - self.l1_ratio)
        w, bias, used = np.zeros(D), float(special.logit(share)), np.zeros(D, dtype=bool)
        while True:
            too_steep = np.where(used, 0.0, np.abs(gradient) - lasso)
            worst = np.argsort(-too_steep, kind="stable")[: max(N, used.sum())]
            worst = worst[too_steep[worst] > _TOLERANCE]
            if not len(worst):
                break
            used[worst] = True
            w[used], bias = _minimised(X[:, used], ones, lasso, ridge, np.append(w[used], bias))
            gradient = X.T @ (special.expit(X[:, used] @ w[used] + bias) - ones) / N
        self.coef_, self.intercept_ = w, bias
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the log odds (M,) of the second label."""
        return X @ self.coef_ + self.intercept_

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities (M, 2) of both labels."""
        eta = self.decision_function(X)
        return special.expit(np.column_stack([-eta, eta]))

    def predict(self, X: np.ndarray) -> Any:
        """Return the more probable labels (M,)."""
        return self.classes_[(self.decision_function(X) > 0.0).astype(int)]


def _minimised(
    X: np.ndarray, ones: np.ndarray, lasso: float, ridge: float, w: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the best weights (D,) and the intercept, from w (D + 1,), the intercept last."""
    N = len(ones)
    A, penalised = np.column_stack([X, np.ones(N)]), np.append(np.ones(X.shape[1]), 0.0)
    lipschitz = np.linalg.norm(A, 2) ** 2 / (4.0 * N) + ridge
    ahead, momentum = w, 1.0
    for _ in range(_STEPS):
        gradient = A.T @ (special.expit(A @ ahead) - ones) / N + ridge * penalised * ahead
        free = ahead - gradient / lipschitz
        new = np.sign(free) * np.maximum(np.abs(free) - lasso * penalised / lipschitz, 0.0)
        if lipschitz * np.abs(new - ahead).max() <= _TOLERANCE:
            w = new
            break
        if (ahead - new) @ (new - w) > 0.0:  # the momentum points uphill
            momentum = 1.0
        larger = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / larger * (new - w)
        w, momentum = new, larger
    else:
        warnings.warn(f"no optimum after {_STEPS} steps", ConvergenceWarning, stacklevel=3)
    return w[:-1], float(w[-1])
