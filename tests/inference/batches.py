"""Means of Markov chains with an error that holds: batch means and Student's t.

An error from an estimated effective size is itself noisy, which a normal limit forgets. The means
of long batches are nearly independent and normal, and Student's t accounts for their number.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from tests.support import t_limit


class Mean(NamedTuple):
    """Means (K,), their standard errors (K,) and degrees of freedom."""

    value: np.ndarray
    error: np.ndarray
    df: float


def batch_mean(x, batches=10):
    """Return the Mean of draws x (chain, draw, K), each chain cut into so many batches.

    A batch must be much longer than the memory of the chain; what is left over is dropped.
    """
    x = np.asarray(x, dtype=float)
    size = x.shape[1] // batches
    means = x[:, : size * batches].reshape(-1, size, x.shape[2]).mean(1)  # (batch, K)
    n = len(means)
    return Mean(means.mean(0), means.std(0, ddof=1) / np.sqrt(n), n - 1)


def exactly(value, error=0.0):
    """Return the Mean whose value is known, or has an error that is."""
    value = np.atleast_1d(value)
    return Mean(value, np.broadcast_to(error, value.shape), np.inf)


def weighted(problem, points, f, enough=3000):
    """Return the posterior's Mean of f (n, K): n draws of the prior, weighed by the likelihood.

    It needs no sampler and no PyMC. `points` holds eta (n, N); as few draws as `enough` must not
    have all of the weight.
    """
    weight = special.softmax(problem.log_likelihood(points, points["eta"]).sum(-1))
    assert 1.0 / (weight**2).sum() > enough
    value = weight @ f
    return Mean(value, np.sqrt((weight**2) @ (f - value) ** 2), np.inf)


def largest_t(one, other):
    """Return the largest standardised difference, and its limit for that many comparisons.

    The smaller number of degrees of freedom serves for both, which is on the safe side. A chain
    that never came where it should have been has no error: t is infinite.
    """
    with np.errstate(divide="ignore"):
        t = np.abs(one.value - other.value) / np.hypot(one.error, other.error)
    return t.max(), t_limit(min(one.df, other.df), len(t))
