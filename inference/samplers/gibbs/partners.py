"""The features that a feature may pair or swap with: those with which it is most correlated."""

from typing import NamedTuple

import numpy as np

_BLOCK = 2_000_000  # correlations at once: 16 MB


class Partners(NamedTuple):
    """The partners of feature k are `partner[k, :degree[k]]`; the relation is symmetric."""

    partner: np.ndarray
    degree: np.ndarray


def correlated(X: np.ndarray, most: int) -> Partners:
    """Return the most correlated columns for each column of X (N, D), whatever the sign.

    The relation is symmetric, so a feature may have more partners than `most`. Correlations are
    computed in blocks of features, without a D x D array, in O(N D^2) time.
    """
    D = X.shape[1]
    unit = X - X.mean(axis=0)
    norm = np.sqrt(np.sum(unit**2, axis=0))
    unit /= np.where(norm > 0.0, norm, 1.0)
    most = min(most, D - 1)
    nearest = np.empty((D, most), dtype=np.int64)
    size = max(1, _BLOCK // D)
    for first in range(0, D if most else 0, size):
        block = np.abs(unit[:, first : first + size].T @ unit)  # (size, D)
        rows = np.arange(len(block))
        block[rows, first + rows] = -1.0  # not with itself
        np.negative(block, out=block)
        nearest[first + rows] = np.argpartition(block, most - 1, axis=1)[:, :most]
    k, other = np.repeat(np.arange(D), most), nearest.ravel()
    pairs = np.unique(np.concatenate([k * D + other, other * D + k]))
    k, other = pairs // D, pairs % D
    degree = np.bincount(k, minlength=D)
    partner = np.full((D, max(1, int(degree.max()))), -1)
    partner[k, np.arange(len(k)) - np.repeat(np.cumsum(degree) - degree, degree)] = other
    return Partners(partner, degree)
