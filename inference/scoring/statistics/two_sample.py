"""Can a classifier tell a method's draws from the reference's? A distance of joint distributions.

Marginals may agree although the joint distributions differ: a mean field has the right shape only
along the axes. The classifier two-sample test (Lopez-Paz & Oquab 2017, ICLR) learns to tell the two
sets of draws apart on some of them, and is scored on the others. An accuracy of 0.5 means that this
classifier sees no difference; 1 means no overlap.

The classifier is Fisher's linear discriminant (a linear boundary, as in logistic regression, but in
closed form). Its features are the components, their squares, and the squares of the principal
components of both sets together, whose variances depend on the correlations. It detects shifts,
wrong variances and wrong correlations, but no dependence of higher order. If there are more than
`COMPONENTS` components, it uses evenly spaced ones.

Autocorrelated draws would let it recognise a chain instead of a distribution. So each side is
thinned to its effective number of draws, and the five folds are contiguous pieces of the chains,
which puts neighbouring draws into the same fold.

`floors.py` does not apply to this statistic. Its floor is computed with the same number of draws
as the statistic, at most half of the reference's.
"""

import numpy as np
from scipy import stats

from ..draws import Draws, ReferenceDraws
from ..floors import LEVEL
from ..statistic import UNKNOWN, Statistic, excess

COMPONENTS = 40
LARGEST = 1000
"""Largest number of draws of each side that the classifier sees."""
FEWEST = 100
FOLDS = 5
CLASSIFIED = 20
"""Number of times that the classifier is run for its floor, which is their mean plus 1.64 sd."""
_CLIP = 4.0  # standard deviations: the square of an outlier must not dominate
_RIDGE = 1e-3  # as a share of the number of draws
_FLAT = 1e-9  # share of the variance below which a direction is rounding error


def thinned(values: np.ndarray, n: int) -> np.ndarray:
    """Return n draws (n, K) of (S, K), evenly spaced."""
    return values[((np.arange(n) + 0.5) * len(values) / n).astype(int)]


def accuracy(fit: np.ndarray, reference: np.ndarray) -> float:
    """Return the cross-validated accuracy of telling the two sets of draws apart.

    Parameters
    ----------
    fit, reference : array (n, K)
        Equal numbers of draws, in the order in which they were drawn, chain after chain, thinned
        until they are nearly independent.

    Returns
    -------
    float
        NaN with fewer than `FEWEST` draws per side, or if nothing varies.
    """
    n, size = fit.shape
    if n < FEWEST:
        return float("nan")
    seen = np.unique(np.linspace(0, size - 1, min(size, COMPONENTS)).astype(int))
    X = _features(np.concatenate([fit[:, seen], reference[:, seen]]))
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
    """Return the columns that vary, with mean 0 and variance 1."""
    mean, sd = values.mean(axis=0), values.std(axis=0)
    varies = sd > 1e-12 * np.abs(mean)
    return (values[:, varies] - mean[varies]) / sd[varies]


# --- the statistic --------------------------------------------------------------------------------


def size(fit: Draws, reference: ReferenceDraws) -> int:
    """Return how many draws of each side the classifier sees; 0 if there are too few."""
    draws = fit.effective[0]
    n = int(min(draws, reference.effective[0] / 2, LARGEST)) if np.isfinite(draws) else 0
    return n if n >= FEWEST else 0


def recognised(fit: Draws, reference: ReferenceDraws) -> np.ndarray:
    """Return the classifier's accuracy; NaN if there are too few draws."""
    n = size(fit, reference)
    if n == 0:
        return np.asarray(np.nan)
    return np.asarray(accuracy(*(thinned(side.flat, n) for side in (fit, reference))))


def noise(_: Statistic, fit: Draws, reference: ReferenceDraws) -> tuple[float, float]:
    """Return floor and median of the accuracy above 0.5 between halves of the reference."""
    n = size(fit, reference)
    return reference.once(("two_sample", n), lambda: _of_halves(reference, n))


def _of_halves(reference: ReferenceDraws, n: int) -> tuple[float, float]:
    if len(reference.blocks) < 4:
        return UNKNOWN
    rng = np.random.default_rng([reference.seed, 3])
    x, B = reference.flat, len(reference.blocks)
    rows_of = [np.arange(b.start, b.stop) for b in reference.blocks]
    accuracies = []
    for _ in range(CLASSIFIED):
        order = rng.permutation(B)
        halves = (np.sort(order[: B // 2]), np.sort(order[B // 2 :]))
        rows = [np.concatenate([rows_of[b] for b in half]) for half in halves]
        accuracies.append(accuracy(*(x[thinned(r, n)] for r in rows)))
    middle = float(np.mean(accuracies)) - 0.5
    coin = 0.5 / np.sqrt(2 * n)  # few blocks give few halves: use at least the sd of a coin
    high = middle + stats.norm.ppf(LEVEL) * max(float(np.std(accuracies, ddof=1)), coin)
    return max(high, 0.0), max(middle, 0.0)


TWO_SAMPLE = Statistic(
    name="two_sample",
    of="draws",
    compute=recognised,
    floor=noise,
    perfect=0.5,
    apart=excess,
    halves=False,
)
