"""XOLON, the RFVM paper's deterministic baseline: an L1-penalised fit of its decision function.

Belenguer-Llorens, Sevilla-Salcedo, Parrado-Hernandez, Gomez-Verdejo (2024), arXiv 2402.07079,
section 4.2: "Cross-Optimized LOsses Network". It is the minimum over a (N,), v >= 0 (D,) and b of

    F = sum_n softplus(-s_n eta_n) + c |a|_1 + c |v|_1,   eta = X diag(v) X'a + b,   s = 2y - 1.

The formula of the penalty is missing from the text available to us. L1 on both, and v >= 0, is our
reading. One c is enough: with two penalties only their product matters to eta. c is chosen by
3-fold cross-validation, as in the paper, over one grid and by the log score. L-BFGS-B, whose
weights end at exact zeros, takes the place of the paper's Adam and pruning.

Given v, or given a, F is convex; jointly it has several minima, and the origin is one whatever the
data. The lowest end of several starts is kept; a fit that ends at the origin warns.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg, optimize, special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from lab.yardsticks.contract import Yardstick

FOLDS, STARTS, TUNING_STARTS = 3, 12, 2
GRID = np.geomspace(0.3, 1e-3, 7)  # values of c, in numbers of training rows
SPREAD = 6.0  # sd of eta at a start, so that it is far from the origin
TOLERANCE = 1e-6  # of the gradient, in units of c


@dataclass(frozen=True, eq=False)
class Objective:
    """F as a smooth function of p = (a+, a-, v, b), a = a+ - a-, all but b at least 0.

    X (N, D), y (N,) in {0, 1}.
    """

    X: np.ndarray
    y: np.ndarray
    c: float

    def split(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return a (N,), v (D,), b."""
        N = len(self.X)
        return p[:N] - p[N : 2 * N], p[2 * N : -1], float(p[-1])

    def join(self, a: np.ndarray, v: np.ndarray, b: float) -> np.ndarray:
        """Return p for a, v, b, with the smallest possible a+ and a-."""
        return np.concatenate([np.maximum(a, 0.0), np.maximum(-a, 0.0), v, [b]])

    def __call__(self, p: np.ndarray) -> tuple[float, np.ndarray]:
        """Return F and its gradient at p, in O(N D) time."""
        a, v, b = self.split(p)
        toward = a @ self.X  # (D,)
        eta, s = self.X @ (v * toward) + b, 2.0 * self.y - 1.0
        r = s * special.expit(-s * eta)  # slope of each row's log-likelihood
        back = r @ self.X  # (D,)
        of_a = self.X @ (v * back)
        value = self.c * p[:-1].sum() + np.logaddexp(0.0, -s * eta).sum()
        slopes = [self.c - of_a, self.c + of_a, self.c - toward * back, [-r.sum()]]
        return float(value), np.concatenate(slopes)

    def origin(self) -> np.ndarray:
        """Return the point with all weights 0, and b the log-odds of the class sizes."""
        return self.join(np.zeros(len(self.X)), np.zeros(self.X.shape[1]), self.log_odds)

    @property
    def log_odds(self) -> float:
        """The best b for a constant decision."""
        return float(special.logit(self.y.mean()))

    @cached_property
    def toward_y(self) -> tuple[np.ndarray, np.ndarray]:
        """Covariance g (D,) of each feature with y, up to a factor, and a (N,) with X'a near g."""
        g = (self.y - self.y.mean()) @ self.X
        g = g / max(np.abs(g).max(), np.finfo(float).tiny)
        return g, linalg.lstsq(self.X @ self.X.T, self.X @ g, cond=1e-10)[0]

    def start(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Return start `number`, where eta has a large spread and both penalties are equal.

        With g_d the covariance of feature d and y, number 0 has v = g^2 and the a with X'a nearest
        to g. The others multiply a by exponential draws; their v is a squared exponential draw, in
        every second start times g^2.
        """
        g, a = self.toward_y
        v = g**2
        if number:
            a = a * rng.exponential(size=len(a))
            v = rng.exponential(size=len(v)) ** 2 * (v if number % 2 else np.ones(len(v)))
        size = float(np.std(self.X @ (v * (a @ self.X))))
        if not 0.0 < size < np.inf:
            return self.origin()  # no feature varies with y
        a = a * (SPREAD / size)
        ratio = np.sqrt(np.abs(a).sum() / v.sum())
        return self.join(a / ratio, v * ratio, self.log_odds)


def descend(objective: Objective, start: np.ndarray, held: np.ndarray | None = None) -> np.ndarray:
    """Return the end of a descent from a start; entries of p in `held` stay where they are."""
    low, high = np.zeros(len(start)), np.full(len(start), np.inf)
    low[-1] = -np.inf
    if held is not None:
        low[held] = high[held] = start[held]
    most = {"maxiter": 20_000, "maxfun": 200_000, "maxcor": 20}
    stop = {"ftol": 4.0 * np.finfo(float).eps, "gtol": TOLERANCE * objective.c}
    bounds = optimize.Bounds(low, high)
    found = optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=most | stop
    )
    return objective.join(*objective.split(found.x))  # a+ or a- is 0, which lowers F if anything


def solve(objective: Objective, starts: int, rng: np.random.Generator) -> np.ndarray:
    """Return the lowest of the ends of several starts and of the origin."""
    begin = (objective.start(number, rng) for number in range(starts))
    ends = [objective.origin(), *(descend(objective, start) for start in begin)]
    return min(ends, key=lambda p: objective(p)[0])


# --- the choice of c ------------------------------------------------------------------------------


def folds_of(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the fold (N,) of each row, each class spread evenly over at most `FOLDS`."""
    count = min(FOLDS, int(y.sum()), int((1 - y).sum()))
    fold = np.empty(len(y), dtype=int)
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        fold[rows] = np.arange(len(rows)) % count
    return fold


def cross_validate(
    X: np.ndarray, y: np.ndarray, tried: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the mean log score of each c; features are standardised again in each fold."""
    fold, seed = folds_of(y, rng), rng.integers(2**63)
    scores = np.zeros(len(tried))
    for k in range(fold.max() + 1):
        train, test = fold != k, fold == k
        mean, sd = X[train].mean(axis=0), X[train].std(axis=0)
        A, left_out = ((X[rows] - mean) / np.where(sd > 0.0, sd, np.inf) for rows in (train, test))
        for i, c in enumerate(tried):
            objective = Objective(A, y[train], float(c))
            p = solve(objective, TUNING_STARTS, np.random.default_rng(seed))  # equal starts for all
            a, v, b = objective.split(p)
            eta = left_out @ (v * (a @ A)) + b
            scores[i] -= np.logaddexp(0.0, (1.0 - 2.0 * y[test]) * eta).sum() / len(y)
    return scores


class Xolon(ClassifierMixin, BaseEstimator):
    """The classifier, c chosen within `fit`."""

    def __init__(self, random_state: int = 0):
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Xolon":
        """Choose c, and fit to rows X (N, D) with two labels y (N,)."""
        self.classes_ = np.unique(y)
        ones = (y == self.classes_[1]).astype(float)
        streams = np.random.SeedSequence(self.random_state).spawn(2)
        for_choice, for_starts = map(np.random.default_rng, streams)
        tried = GRID * len(y)
        self.c_ = float(tried[cross_validate(X, ones, tried, for_choice).argmax()])
        objective = Objective(X, ones, self.c_)
        self.a_, self.v_, self.bias_ = objective.split(solve(objective, STARTS, for_starts))
        self.coef_ = self.v_ * (self.a_ @ X)
        if not self.a_.any():
            warnings.warn(
                f"no start of {STARTS} ended below the origin (every weight 0, a constant "
                "decision), which is a local minimum whatever the data",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of both labels (M, 2)."""
        p = special.expit(X @ self.coef_ + self.bias_)
        return np.column_stack([1.0 - p, p])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the more probable labels (M,)."""
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


def kept(fitted: Pipeline) -> np.ndarray:
    """Return the features with a weight."""
    return np.flatnonzero(fitted[-1].v_)


XOLON = Yardstick(
    name="xolon",
    steps=lambda D, seed: [("model", Xolon(seed))],
    features=kept,
    samples=lambda fitted: int(np.count_nonzero(fitted[-1].a_)),
    fixed={"folds": FOLDS, "starts": STARTS, "tuning": TUNING_STARTS, "grid": GRID.tolist()},
)
"""The RFVM paper's XOLON, as far as its text has it; samples are the rows whose weight is not 0."""
