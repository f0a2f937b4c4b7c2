"""Can a classifier tell a method's draws from the reference's? A distance of the joint.

Marginals may agree where the joint does not: a mean field has the right shape in no direction but
the axes. The classifier two-sample test (Lopez-Paz & Oquab 2017, ICLR) learns to tell the two sets
of draws apart on some of them, and is scored on the others: an accuracy of 0.5 is a coin's, the
same distribution as far as this classifier sees; 1 is no overlap.

The classifier is Fisher's linear discriminant (a logistic regression's boundary, in closed form) on
the components, their squares, and the squares of the principal components of both sets together,
whose spread is where correlations show. It sees shifts, wrong spreads and wrong correlations, and
no dependence of a higher order. Of more than `COMPONENTS` components it sees an even selection.

Draws that remember each other would let it recognise a chain instead of a distribution. So each
side is thinned to its effective number of draws, and the five folds are contiguous pieces of the
chains: a draw's neighbours are in its own fold.

Its floor follows no rule of `floors.py`. The classifier is given equal numbers of draws for method
and floor, at most half of the reference's.
"""

import numpy as np
from scipy import stats

from ..draws import Draws, Exact
from ..floors import LEVEL
from ..statistic import UNKNOWN, Limit, Shown, Statistic, excess

COMPONENTS = 40
LARGEST = 1000
"""Draws of each side that the classifier sees, at most."""
FEWEST = 100
FOLDS = 5
CLASSIFIED = 20
"""Repeats of the classifier, whose floor is their mean and 1.64 sd."""
_CLIP = 4.0  # standard deviations: an outlier's square must not drown the others
_RIDGE = 1e-3  # of the draws
_FLAT = 1e-9  # share of the variance below which a direction is rounding


def thinned(values: np.ndarray, n: int) -> np.ndarray:
    """Return n draws (n, K) of (S, K), evenly spaced."""
    return values[((np.arange(n) + 0.5) * len(values) / n).astype(int)]


def accuracy(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the cross-validated accuracy of telling the two sets of draws apart.

    Parameters
    ----------
    found, exact : array (n, K)
        As many draws of each, in the order in which they were drawn, chain after chain, thinned to
        where they no longer remember each other.

    Returns
    -------
    float
        NaN with fewer than `FEWEST` draws a side, or where nothing varies.
    """
    n, size = found.shape
    if n < FEWEST:
        return float("nan")
    seen = np.unique(np.linspace(0, size - 1, min(size, COMPONENTS)).astype(int))
    X = _features(np.concatenate([found[:, seen], exact[:, seen]]))
    if X.shape[1] == 0:
        return float("nan")
    X = np.column_stack([np.ones(2 * n), X])
    side = np.repeat([1.0, -1.0], n)
    fold = np.tile(np.arange(n) * FOLDS // n, 2)
    grams = [X[fold == f].T @ X[fold == f] for f in range(FOLDS)]
    sums = [X[fold == f].T @ side[fold == f] for f in range(FOLDS)]
    gram, total = np.sum(grams, axis=0), np.sum(sums, axis=0)
    ridge = _RIDGE * 2 * n * np.eye(len(gram))
    ridge[0, 0] = 0.0
    right = 0.0
    for f in range(FOLDS):
        weights = np.linalg.solve(gram - grams[f] + ridge, total - sums[f])
        margin = side[fold == f] * (X[fold == f] @ weights)
        right += (margin > 0.0).sum() + 0.5 * (margin == 0.0).sum()
    return float(right / (2 * n))


def _features(values: np.ndarray) -> np.ndarray:
    """Return components, squares, and squares of principal components, each of unit variance.

    None of it looks at which side a draw is from.
    """
    z = _standardised(values)
    if z.shape[1] == 0:
        return z
    spread, axes = np.linalg.eigh(z.T @ z / len(z))
    scores = z @ axes[:, spread > _FLAT * spread.sum()]
    z, scores = (np.clip(_standardised(v), -_CLIP, _CLIP) for v in (z, scores))
    squares = [z**2, scores**2] if z.shape[1] > 1 else [z**2]
    return np.column_stack([z, *(_standardised(v) for v in squares)])


def _standardised(values: np.ndarray) -> np.ndarray:
    """Return the columns that vary, at mean 0 and variance 1."""
    mean, sd = values.mean(axis=0), values.std(axis=0)
    varies = sd > 1e-12 * np.abs(mean)
    return (values[:, varies] - mean[varies]) / sd[varies]


# --- the statistic --------------------------------------------------------------------------------


def size(found: Draws, exact: Exact) -> int:
    """Return how many draws of each side the classifier sees; 0 where that is too few."""
    draws = found.effective[0]
    n = int(min(draws, exact.effective[0] / 2, LARGEST)) if np.isfinite(draws) else 0
    return n if n >= FEWEST else 0


def recognised(found: Draws, exact: Exact) -> np.ndarray:
    """Return the classifier's accuracy, NaN where there are too few draws."""
    n = size(found, exact)
    if n == 0:
        return np.asarray(np.nan)
    return np.asarray(accuracy(*(thinned(side.flat, n) for side in (found, exact))))


def noise(_: Statistic, found: Draws, exact: Exact) -> tuple[float, float]:
    """Return floor and median of the accuracy above 0.5 on halves of the reference."""
    n = size(found, exact)
    return exact.once(("two_sample", n), lambda: _of_halves(exact, n))


def _of_halves(exact: Exact, n: int) -> tuple[float, float]:
    if len(exact.blocks) < 4:
        return UNKNOWN
    rng = np.random.default_rng([exact.seed, 3])
    x, B = exact.flat, len(exact.blocks)
    rows_of = [np.arange(b.start, b.stop) for b in exact.blocks]
    found = []
    for _ in range(CLASSIFIED):
        order = rng.permutation(B)
        halves = (np.sort(order[: B // 2]), np.sort(order[B // 2 :]))
        rows = [np.concatenate([rows_of[b] for b in half]) for half in halves]
        found.append(accuracy(*(x[thinned(r, n)] for r in rows)))
    middle = float(np.mean(found)) - 0.5
    coin = 0.5 / np.sqrt(2 * n)  # few blocks have few halves: no less than a coin's
    high = middle + stats.norm.ppf(LEVEL) * max(float(np.std(found, ddof=1)), coin)
    return max(high, 0.0), max(middle, 0.0)


TWO_SAMPLE = Statistic(
    name="two_sample",
    of="draws",
    compute=recognised,
    noise=noise,
    perfect=0.5,
    distance=excess,
    phrase="{quantity}: a classifier recognises {percent} of the draws",
    limits={
        "uncertainty": Limit(
            0.25,
            0.5,
            "A classifier recognises three draws in four of two normals that are 1.35 sds apart. "
            "The accuracy grows with the number of components, so alone it never gives the word "
            "bad.",
            told=3,
        )
    },
    columns={"eta": Shown("recognised", 2)},
    meaning=(
        "For eta: the accuracy of a classifier trained to tell the method's draws from the "
        "reference's. 0.5 is no better than a coin."
    ),
    halves=False,
)
