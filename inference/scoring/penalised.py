"""Logistic regression with a penalty that an inner cross-validation chooses, by log score."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, LogisticRegressionCV
from sklearn.pipeline import Pipeline, make_pipeline

from ardvark.common.validate import InputError
from ardvark.data.groups import inner_folds

from .scaler import Scaler

PENALISED: dict[str, dict[str, Any]] = {
    "l1": {"Cs": np.logspace(-3, 2, 11), "l1_ratios": (1.0,)},
    "elastic_net": {"Cs": np.logspace(-3, 1, 7), "l1_ratios": (0.9, 0.5, 0.1)},
    "ridge": {"Cs": np.logspace(-4, 2, 13), "l1_ratios": (0.0,)},
}
"""The grids, as scikit-learn's LogisticRegressionCV has them: C is one over the penalty, and rises,
because each fit begins where the one before it ended."""
INNER = 5
"""Folds of the inner cross-validation, or as many as the smaller class has rows."""
SECONDS = (0.3, 1e-5)
"""What a fit takes with its inner folds on one core: of itself, and for each cell of X. From 40 x 3
to 400 x 2000 those of the three penalties take this to within a factor of three."""
STEPS = 50
"""Newton steps of a fit, at most; five are usual."""
_PASSES = 10_000  # of coordinate descent over the features in a step, at most
_GAP = 1e-7  # of the least squares of a step, as a share of its sum of squares
_LEAST = 1e-11  # a step that lowers the loss of a row by less, in nats, is the last
_SURE = 1e-10  # the least curvature of a row; by glmnet's 1e-5 steps are short where all are sure


class Penalised(ClassifierMixin, BaseEstimator):
    """Logistic regression with an elastic net, on standardised features; the intercept is free.

    The loss is that of scikit-learn's LogisticRegression, which has a slow solver for it (`saga`).
    Here it is minimised along the grid by Newton steps, each a weighted least squares problem with
    the same penalty, which scikit-learn's coordinate descent solves (Friedman, Hastie, Tibshirani
    2010, Journal of Statistical Software 33(1)). A step that does not lower the loss is halved.

    Parameters
    ----------
    Cs, l1_ratios : sequence of float
        Of one over the penalty, rising; of the part of it that is L1.
    cv : splitter or list of (train, held)
        The inner folds. Features are standardised in each.

    Attributes
    ----------
    C_, l1_ratio_ : float
        What was chosen.
    scores_ : array (l1_ratios, Cs)
        Mean log scores of the rows that the folds held out.
    coef_ : array (D,)
        Of standardised features.
    intercept_ : float
    scaler_ : Scaler
    """

    def __init__(self, Cs: Sequence[float], l1_ratios: Sequence[float], cv: Any) -> None:
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.cv = cv

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit features X (N, D) and labels y (N,), 0 or 1."""
        self.classes_ = np.array([0, 1])
        parts = self.cv.split(X, y) if hasattr(self.cv, "split") else self.cv
        self.scores_ = np.mean([self._scores(X, y, *part) for part in parts], axis=0)
        at, last = divmod(int(self.scores_.argmax()), len(self.Cs))
        self.l1_ratio_, self.C_ = self.l1_ratios[at], self.Cs[last]
        self.scaler_ = Scaler().fit(X)
        Z = np.asfortranarray(self.scaler_.transform(X))
        *_, (self.coef_, self.intercept_) = path(Z, y, self.Cs[: last + 1], self.l1_ratio_)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of both labels (M, 2)."""
        p = expit(self.scaler_.transform(X) @ self.coef_ + self.intercept_)
        return np.column_stack([1.0 - p, p])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the more probable labels (M,)."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)

    def _scores(
        self, X: np.ndarray, y: np.ndarray, train: np.ndarray, held: np.ndarray
    ) -> list[list[float]]:
        """Return the log score of held rows for each point of the grid."""
        scaler = Scaler().fit(X[train])
        Z, new = np.asfortranarray(scaler.transform(X[train])), scaler.transform(X[held])
        paths = (path(Z, y[train], self.Cs, ratio) for ratio in self.l1_ratios)
        return [[-_deviance(new @ w + b, y[held]) for w, b in fits] for fits in paths]


def path(
    X: np.ndarray, y: np.ndarray, Cs: Sequence[float], l1_ratio: float
) -> Iterator[tuple[np.ndarray, float]]:
    """Yield weights (D,) and intercept for each C, of features X (N, D) and labels y (N,)."""
    N, share = len(y), y.mean()
    w, b = np.zeros(X.shape[1]), float(np.log(share / (1.0 - share)))
    squares = ElasticNet(l1_ratio=l1_ratio, warm_start=True, tol=_GAP, max_iter=_PASSES)
    for C in Cs:
        penalty = 1.0 / (C * N)

        def loss(w: np.ndarray, b: float, penalty: float = penalty) -> float:
            of_w = l1_ratio * np.abs(w).sum() + 0.5 * (1.0 - l1_ratio) * w @ w
            return float(_deviance(X @ w + b, y) + penalty * of_w)

        now = loss(w, b)
        for _ in range(STEPS):
            before, eta = now, X @ w + b
            p = expit(eta)
            curvature = np.maximum(p * (1.0 - p), _SURE)
            squares.set_params(alpha=penalty / curvature.mean())
            squares.coef_ = w.copy()  # where it begins
            with warnings.catch_warnings():  # the loss alone says whether the path has arrived
                warnings.simplefilter("ignore", ConvergenceWarning)
                squares.fit(X, eta + (y - p) / curvature, sample_weight=curvature)
            to_w, to_b, step = squares.coef_ - w, squares.intercept_ - b, 1.0
            while (now := loss(w + step * to_w, b + step * to_b)) > before and step > _LEAST:
                step *= 0.5
            if now > before:
                break
            w, b = w + step * to_w, b + step * to_b
            if before - now < _LEAST:
                break
        else:
            warnings.warn(
                f"a penalised regression (C={C:.3g}) has not converged in {STEPS} steps",
                ConvergenceWarning,
                stacklevel=2,
            )
        yield w, b


def _deviance(eta: np.ndarray, y: np.ndarray) -> float:
    """Return minus the mean log probability of labels y (N,) at log odds eta (N,)."""
    return float(np.logaddexp(0.0, np.where(y == 1, -eta, eta)).mean())


def penalised(
    word: str, y: np.ndarray, seed: int, groups: Sequence[str] | None = None
) -> Pipeline | Penalised:
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
    grid = {**PENALISED[word], "cv": inner_folds(y, groups, inner, seed)}
    if word != "ridge":
        return Penalised(**grid)
    ridge = LogisticRegressionCV(
        **grid, scoring="neg_log_loss", max_iter=5000, tol=1e-8, use_legacy_attributes=False
    )
    return make_pipeline(Scaler(), ridge)
