"""The search for submodels: an L1 path chooses the candidates, and forward steps order them.

1. **The L1 path** looks at all D features and at one prediction, the posterior mean of P(y = 1). It
   minimises the mean KL divergence + lambda sum_k |b_k| for falling lambda; neither the intercept
   nor columns that are always in are penalised. The `SCREEN` features that enter first are the
   candidates. It costs O(N D) per iteration. With at most `SCREEN` features it is left out.
2. **Forward steps** look at the candidates and at all clusters of draws. Each step adds the feature
   whose submodel has the smallest mean KL divergence from the clusters, where every submodel is
   projected anew (Piironen, Paasiniemi, Vehtari 2020).

The L1 path alone is a poor order: the penalty that lets a feature in late also shrinks it, so that
the features of a path predict worse than those of a forward search of equal size. As a screen that
does no harm, because every candidate is projected without a penalty.
"""

from collections.abc import Sequence

import numpy as np
from scipy import special

from ardvark.common.progress import Update

from .clusters import Clusters
from .projection import design, divergence, project

SCREEN = 100
"""The number of features that the L1 path leaves to the forward steps."""
_LAMBDAS = 60
_LAST = 0.01  # the smallest lambda, as a share of the one at which the first feature enters
_ITERATIONS, _CHANGE = 500, 1e-4  # of a point of the path
_CHUNK = 2e6  # numbers held at once


def search(
    clusters: Clusters,
    X: np.ndarray,
    size: int,
    always: np.ndarray | None = None,
    update: Update = lambda *_: None,
) -> list[int]:
    """Return the first features of the search, in the order in which they are added.

    Parameters
    ----------
    clusters : Clusters
        Predictions (C, N) of the posterior at the training rows.
    X : array (N, D)
        The features of these rows, standardised.
    size : int
        How many features to add.
    always : array (N, a), optional
        Columns that every submodel has.
    update : callable
        Gets how many features there are, and a note.
    """
    D = X.shape[1]
    if D <= SCREEN:
        candidates = list(range(D))
    else:
        update(0, f"candidates among {D} features")
        candidates = l1_order(clusters.weight @ clusters.p, X, always)[: max(SCREEN, size)]
    return forward(clusters, X, size, candidates, always, update)


def forward(
    clusters: Clusters,
    X: np.ndarray,
    size: int,
    candidates: Sequence[int],
    always: np.ndarray | None = None,
    update: Update = lambda *_: None,
) -> list[int]:
    """Return the features that forward steps add, in order; a tie goes to the first candidate."""
    chosen: list[int] = []
    left = list(candidates)
    size = min(size, len(left))
    for count in range(size):
        update(count, f"{count} of {size} features")
        found = divergences(clusters, X, [[*chosen, j] for j in left], always)
        chosen.append(left.pop(int(found.argmin())))
    return chosen


def divergences(
    clusters: Clusters,
    X: np.ndarray,
    sets: Sequence[Sequence[int]],
    always: np.ndarray | None = None,
) -> np.ndarray:
    """Return the mean KL divergence (J,) of the clusters from submodels of equally many features.

    Per row, in nats, and weighted by the clusters' weights.
    """
    columns = np.asarray(sets, dtype=int).reshape(len(sets), -1)  # (J, k)
    C, N = clusters.p.shape
    width = 1 + columns.shape[1] + (0 if always is None else always.shape[1])
    step = max(1, int(_CHUNK / (N * (C + width * width))))
    found = []
    for at in range(0, len(columns), step):
        A = design(np.moveaxis(X[:, columns[at : at + step]], 0, 1), always)  # (j, N, K)
        b = project(clusters.p, A)
        found.append(divergence(clusters.p, A, b) @ clusters.weight)
    return np.concatenate(found)


def l1_order(p: np.ndarray, X: np.ndarray, always: np.ndarray | None = None) -> list[int]:
    """Return all features in the order in which they enter the L1 path of one prediction p (N,).

    Features that enter at the same lambda are ordered by the size of their coefficient there; those
    that have not entered at the last lambda, by the size of their gradient.
    """
    N, D = X.shape
    A = design(X, always)
    free = A.shape[1] - D  # columns without a penalty come first
    rate = 4.0 * N / np.linalg.norm(A, 2) ** 2  # one over the largest curvature
    b = np.zeros(A.shape[1])
    b[:free] = project(p[None], A[:, :free])[0]
    gradient = A[:, free:].T @ (special.expit(A @ b) - p) / N
    first = np.abs(gradient).max()
    entered: list[int] = []
    for share in np.geomspace(1.0, _LAST, _LAMBDAS):
        if len(entered) >= min(D, N):
            break
        b = _lasso(p, A, b, free, share * first, rate)
        size = np.abs(b[free:])
        new = [j for j in np.argsort(-size, kind="stable") if size[j] > 0.0]
        entered += [int(j) for j in new if j not in set(entered)]
    gradient = A[:, free:].T @ (special.expit(A @ b) - p)
    rest = np.argsort(-np.abs(gradient), kind="stable")
    return entered + [int(j) for j in rest if j not in set(entered)]


def _lasso(
    p: np.ndarray, A: np.ndarray, b: np.ndarray, free: int, penalty: float, rate: float
) -> np.ndarray:
    """Return the coefficients at one lambda, by accelerated proximal gradient steps from b.

    Beck, Teboulle (2009), SIAM Journal on Imaging Sciences 2(1), with the restart of O'Donoghue,
    Candes (2015).
    """
    limit = np.full(len(b), rate * penalty)
    limit[:free] = 0.0
    ahead, t = b, 1.0
    for _ in range(_ITERATIONS):
        z = ahead - rate * (A.T @ (special.expit(A @ ahead) - p)) / len(p)
        new = np.sign(z) * np.maximum(np.abs(z) - limit, 0.0)
        if (ahead - new) @ (new - b) > 0.0:  # it overshoots: begin again without momentum
            t = 1.0
        later = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        ahead, moved = new + (t - 1.0) / later * (new - b), np.abs(new - b).max()
        b, t = new, later
        if moved <= _CHANGE * max(np.abs(b).max(), _CHANGE):
            break
    return b
