"""Filters of PFCVM's table: they rank features, and a plain classifier takes over.

A filter ranks the features on the training rows. The number of leading features is chosen by inner
folds from the paper's span, 10 to 80, where the ranking is made anew on each inner training part.
The classifier is logistic regression with an L2 penalty at C = 1, as in the rows `select-*`; the
paper's is PCVM.
"""

from collections.abc import Callable

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from lab.yardsticks.contract import Steps, Yardstick

MOST = 80
COUNTS = (10, 20, 40, 80)
TINY = 1e-12
Ranking = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


def mrmr(X: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Return the leading features by minimum redundancy and maximum relevance, in order.

    Peng, Long, Ding (2005), IEEE TPAMI 27(8), in the quotient form with F statistic and Pearson
    correlation (Ding and Peng 2005, J. Bioinformatics and Computational Biology 3(2)), which needs
    no discretisation; by scikit-lego.
    """
    from sklego.feature_selection import MaximumRelevanceMinimumRedundancy

    count = min(most, X.shape[1] - 1)
    select = MaximumRelevanceMinimumRedundancy(
        k=count, redundancy_func=redundancy, kind="classification"
    )
    return select.fit(X, y).selected_features_


def redundancy(X: np.ndarray, selected: list[int], left: list[int]) -> np.ndarray:
    """Return the sum of |correlation| of the features left with those selected.

    scikit-lego's own forms an array N x selected x left, which genes do not allow.
    """
    Z = X - X.mean(axis=0)
    Z = Z / np.maximum(np.sqrt((Z**2).sum(axis=0)), TINY)
    return np.abs(Z[:, left].T @ Z[:, selected]).sum(axis=1) + TINY


def trace_ratio(X: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Return the `most` features with the largest ratio of traces, in order of their score.

    Nie, Xiang, Jia, Zhang, Yan (2008), Trace ratio criterion for feature selection, AAAI, with
    Fisher's scatters: the set S that maximises sum_S between / sum_S within. At the best ratio r,
    S has the largest between - r within, so r is a fixed point, reached by iteration from below.
    Where all features have the same total scatter, as here, this is the ranking by Fisher's score.
    No maintained library has it.
    """
    varied = np.flatnonzero(X.std(axis=0) > TINY)  # a constant feature would cost nothing
    X = X[:, varied]
    parts = [X[y == label] for label in np.unique(y)]
    within = sum(((x - x.mean(axis=0)) ** 2).sum(axis=0) for x in parts)
    between = sum(len(x) * (x.mean(axis=0) - X.mean(axis=0)) ** 2 for x in parts)
    ratio, order = -1.0, np.argsort(-between, kind="stable")[:most]
    while True:
        new = between[order].sum() / max(within[order].sum(), TINY)
        if new <= ratio:
            return varied[order]
        ratio = new
        order = np.argsort(-(between - ratio * within), kind="stable")[:most]


def robust(X: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Return the `most` features with the largest weights of robust selection, in order.

    Nie, Huang, Cai, Ding (2010), Efficient and robust feature selection via joint l2,1-norms
    minimization, NIPS. W (D, 2) minimises |X W - Y|_{2,1} + |W|_{2,1}, by reweighted least squares;
    each iteration solves N x N equations. No maintained library has it.
    """
    weights = np.linalg.norm(l21(X, np.eye(2)[(y == y.max()).astype(int)]), axis=1)
    return np.argsort(-weights, kind="stable")[:most]


def l21(X: np.ndarray, Y: np.ndarray, gamma: float = 1.0, sweeps: int = 100) -> np.ndarray:
    """Return the minimiser W (D, classes) of |X W - Y|_{2,1} + gamma |W|_{2,1}.

    U = (W; (Y - X W) / gamma) minimises |U|_{2,1} subject to A U = Y, A = (X, gamma I). The paper's
    algorithm repeats U = Q A' (A Q A')^-1 Y with Q = diag(2 |u_i|) of the last U.
    """
    N, D = X.shape
    size, last = np.ones(D + N), np.inf
    for _ in range(sweeps):
        QA = size[:, None] * np.vstack([X.T, gamma * np.eye(N)])
        U = QA @ np.linalg.solve(X @ QA[:D] + gamma * QA[D:], Y)
        size = np.maximum(2.0 * np.linalg.norm(U, axis=1), TINY)
        if last - size.sum() < 1e-6 * size.sum():
            break
        last = size.sum()
    return U[:D]


class Ranked(TransformerMixin, BaseEstimator):
    """The leading features of a ranking, in its order."""

    def __init__(self, ranking: Ranking = trace_ratio, most: int = MOST):
        self.ranking = ranking
        self.most = most

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Ranked":
        """Rank the features of X (N, D) by labels y (N,)."""
        self.order_ = self.ranking(X, y, self.most)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the leading features (M, most)."""
        return X[:, self.order_]


class Leading(TransformerMixin, BaseEstimator):
    """The first `count` columns."""

    def __init__(self, count: int = COUNTS[0]):
        self.count = count

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Leading":
        """Learn nothing."""
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the first columns (M, count)."""
        return X[:, : self.count]


def kept(fitted: Pipeline) -> np.ndarray:
    """Return the features that the classifier sees."""
    return np.sort(fitted["rank"].order_[: fitted["lead"].count])


def filtered(name: str, ranking: Ranking, needs: tuple[str, ...] = ()) -> Yardstick:
    """Return a filter with its classifier."""

    def steps(D: int, seed: int) -> Steps:
        return [
            ("rank", Ranked(ranking)),
            ("lead", Leading()),
            ("model", LogisticRegression(max_iter=1000)),
        ]

    return Yardstick(
        name=name, steps=steps, grid={"lead__count": COUNTS}, features=kept,
        needs=needs, cached=True, fixed={"most": MOST},
    )  # fmt: skip


MRMR = filtered("mrmr", mrmr, ("sklego",))
"""mRMR in its quotient form (Peng, Long, Ding 2005), by scikit-lego."""
TRACE_RATIO = filtered("trace_ratio", trace_ratio)
"""Trace ratio criterion, Fisher's scatters (Nie et al. 2008)."""
ROBUST = filtered("robust_selection", robust)
"""Robust selection by joint l2,1-norms (Nie et al. 2010), gamma 1."""
