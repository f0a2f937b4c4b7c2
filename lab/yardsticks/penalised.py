"""Logistic regression with a penalty that selects: L1, MCP, elastic net.

The solver is skglm's (Bertrand, Klopfenstein, Bannier, Gidel, Massias 2022, Beyond L1: faster and
better sparse models with skglm, NeurIPS). Its intercept is not penalised, which that of
scikit-learn's liblinear is.
"""

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline

from lab.yardsticks.contract import Yardstick

RATIOS = tuple(np.geomspace(0.9, 0.003, 12).round(4).tolist())  # of the least penalty that keeps 0
SHAPE = 3.0  # of MCP: the usual one
REWEIGHTINGS = 10  # of MCP, at most
LEAST = 0.01  # weight of MCP's penalty: separable data have no minimum without one


class SparseLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression with penalty alpha (l1_ratio |w| + (1 - l1_ratio) w^2 / 2), or MCP.

    alpha is `ratio` times the least one at which all weights are 0. MCP (Zhang 2010, Annals of
    Statistics 38(2)) is alpha |w| - w^2 / (2 shape) up to |w| = shape alpha, and constant beyond.
    It is minimised by local linear approximation from the L1 solution (Zou and Li 2008, Annals of
    Statistics 36(4)): L1 problems in which the penalty of w has the weight
    (1 - |w| / (shape alpha))_+ of the last solution, at least `LEAST`. Without that least weight
    MCP has no minimum on separable data, and skglm's own does not stop there.

    Parameters
    ----------
    ratio : float
        Penalty, as a part of the least one that keeps every weight at 0.
    l1_ratio : float
        1 for L1, less for an elastic net.
    shape : float or None
        Shape of MCP; None for no MCP.
    """

    def __init__(self, ratio: float = 0.1, l1_ratio: float = 1.0, shape: float | None = None):
        self.ratio = ratio
        self.l1_ratio = l1_ratio
        self.shape = shape

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SparseLogistic":
        """Fit to features X (N, D) and two labels y (N,)."""
        from skglm.estimators import SparseLogisticRegression

        self.classes_ = np.unique(y)
        ones = (y == self.classes_[1]).astype(float)
        least = float(np.abs(X.T @ (ones - ones.mean())).max()) / (len(y) * self.l1_ratio)
        alpha = self.ratio * least
        weight, old = np.ones(X.shape[1]), np.zeros(X.shape[1])
        for _ in range(REWEIGHTINGS if self.shape else 1):
            # the penalty weight |w| is the penalty |u| of u = weight w, a weight of X / weight
            model = SparseLogisticRegression(alpha=alpha, l1_ratio=self.l1_ratio, tol=1e-5)
            model.fit(np.asfortranarray(X / weight), ones)
            self.coef_, self.intercept_ = model.coef_[0] / weight, float(model.intercept_)
            if not self.shape or np.abs(self.coef_ - old).max() < 1e-3:
                break
            old = self.coef_
            weight = np.maximum(1.0 - np.abs(old) / (self.shape * alpha), LEAST)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the log odds (M,)."""
        return X @ self.coef_ + self.intercept_

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of both labels (M, 2)."""
        p = special.expit(self.decision_function(X))
        return np.column_stack([1.0 - p, p])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the more probable labels (M,)."""
        return self.classes_[(self.decision_function(X) > 0.0).astype(int)]


def nonzero(fitted: Pipeline) -> np.ndarray:
    """Return which weights of the last step are not 0."""
    return np.flatnonzero(np.ravel(fitted[-1].coef_))


L1 = Yardstick(
    name="l1",
    steps=lambda D, seed: [("model", SparseLogistic())],
    grid={"model__ratio": RATIOS},
    features=nonzero,
    needs=("skglm",),
)
"""L1 logistic regression, intercept free (Tibshirani 1996), by skglm."""
MCP = Yardstick(
    name="mcp",
    steps=lambda D, seed: [("model", SparseLogistic(shape=SHAPE))],
    grid={"model__ratio": RATIOS},
    features=nonzero,
    needs=("skglm",),
    fixed={"shape": SHAPE, "least": LEAST, "reweightings": REWEIGHTINGS},
)
"""Logistic regression with the minimax concave penalty (Zhang 2010), shape 3, by skglm."""
ELASTIC_NET = Yardstick(
    name="elastic_net",
    steps=lambda D, seed: [("model", SparseLogistic())],
    grid={"model__l1_ratio": (0.9, 0.5, 0.1), "model__ratio": RATIOS[::2]},
    features=nonzero,
    needs=("skglm",),
)
"""Logistic regression with an elastic net (Zou and Hastie 2005), by skglm."""
