"""Which features a feature may change places with: those it is most correlated with."""

from typing import NamedTuple

import numpy as np


class Partners(NamedTuple):
    """Who may swap with whom: of feature k, `partner[k, :degree[k]]`; a symmetric relation."""

    partner: np.ndarray
    degree: np.ndarray


def correlated(X: np.ndarray, most: int) -> Partners:
    """Return for each column of X (N, D) those it is most correlated with, or they with it.

    The relation is symmetric, so a feature may have more partners than `most`. Correlations come
    in blocks of features: no D x D array. O(N D^2) time.
    """
    D = X.shape[1]
    unit = X - X.mean(axis=0)
    norm = np.sqrt(np.sum(unit**2, axis=0))
    unit = unit / np.where(norm > 0.0, norm, 1.0)
    most = min(most, D - 1)
    pairs = set()
    for first in range(0, D, 512):
        block = np.abs(unit[:, first : first + 512].T @ unit)  # (512, D)
        block[np.arange(len(block)), first + np.arange(len(block))] = -1.0  # not with itself
        nearest = np.argpartition(-block, most - 1, axis=1)[:, :most] if most else block[:, :0]
        for row, others in enumerate(nearest.astype(int)):
            pairs |= {(first + row, int(k)) for k in others} | {
                (int(k), first + row) for k in others
            }
    degree = np.zeros(D, dtype=np.int64)
    for k, _ in pairs:
        degree[k] += 1
    partner = np.full((D, max(1, int(degree.max()))), -1)
    degree[:] = 0
    for k, other in sorted(pairs):
        partner[k, degree[k]] = other
        degree[k] += 1
    return Partners(partner, degree)
