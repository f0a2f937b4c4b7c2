"""A plain classifier on features that were chosen with a stated error rate."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline


class AfterSelection(ClassifierMixin, BaseEstimator):
    """Logistic regression, L2 penalty at C = 1, on what a selector keeps; else the class share.

    Parameters
    ----------
    selector : estimator
        Its `fit(X, y)` sets `selected_`, the indices of the features kept.
    """

    def __init__(self, selector: Any):
        self.selector = selector

    def fit(self, X: np.ndarray, y: np.ndarray) -> "AfterSelection":
        """Select on the rows X (N, D) with labels y (N,), then fit the classifier to them."""
        self.classes_ = np.unique(y)
        self.share_ = float((y == self.classes_[1]).mean())
        self.selected_ = np.asarray(clone(self.selector).fit(X, y).selected_)
        self.model_ = LogisticRegression(max_iter=1000)
        if len(self.selected_):
            self.model_.fit(X[:, self.selected_], y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of both labels (M, 2)."""
        if len(self.selected_):
            return self.model_.predict_proba(X[:, self.selected_])
        return np.tile([1.0 - self.share_, self.share_], (len(X), 1))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the more probable labels (M,)."""
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


def chosen(fitted: Pipeline) -> np.ndarray:
    """Return the features that the selector kept."""
    return fitted[-1].selected_
