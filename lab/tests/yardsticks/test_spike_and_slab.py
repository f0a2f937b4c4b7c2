"""The plain spike-and-slab logistic regression: its posterior by enumeration of the masks."""

import itertools

import numpy as np
import pytest
from scipy import special

from lab.yardsticks import spike_and_slab
from tests.support import rng

SLAB = 1.5


def enumerated(X, y):
    """Return P(z_k = 1) and the mean weights: all masks, weights by Gauss-Hermite quadrature."""
    D = X.shape[1]
    nodes, share = np.polynomial.hermite_e.hermegauss(24)
    total, on, mean = 0.0, np.zeros(D), np.zeros(D)
    for mask in itertools.product((0, 1), repeat=D):
        S = sum(mask)
        prior = special.beta(S + 1, D - S + 1)  # of this mask, p ~ Beta(1, 1) integrated out
        grid = np.array(list(itertools.product(range(24), repeat=1 + S)))
        w = SLAB * nodes[grid]
        weight = share[grid].prod(axis=1) / np.sqrt(2 * np.pi) ** (1 + S)
        A = np.column_stack([np.ones(len(y)), X[:, np.array(mask, dtype=bool)]])
        p = weight * special.expit(np.where(y == 1, 1.0, -1.0) * (w @ A.T)).prod(axis=1)
        total += prior * p.sum()
        on += prior * p.sum() * np.array(mask)
        mean[np.flatnonzero(mask)] += prior * (p @ w[:, 1:])
    return on / total, mean / total


@pytest.mark.parametrize("seed", [0, 1])
def test_the_posterior_is_that_of_all_masks_and_weights(seed):
    generator = rng(seed)
    X = generator.normal(size=(16, 3))
    X[:, 1] += X[:, 0]
    y = (X[:, 0] + 0.5 * generator.normal(size=16) > 0).astype(int)
    found = spike_and_slab.sample(X, y, seed, slab=SLAB, ess=2000.0)
    assert found.finished
    on, mean = enumerated(X, y)
    assert np.ptp(on) > 0.1
    for draws, expected in ((found.weight != 0.0, on), (found.weight, mean)):
        array = draws.astype(float)
        effective = spike_and_slab.chains.ess(array, "bulk")
        error = array.std(axis=(0, 1)) / np.sqrt(effective)
        assert np.all(np.abs(array.mean(axis=(0, 1)) - expected) < 5.0 * error)


def test_chains_that_may_not_go_on_have_not_finished():
    X = rng(2).normal(size=(20, 5))
    found = spike_and_slab.sample(X, (X[:, 0] > 0).astype(int), 0, limit=500)
    assert not found.finished
    assert found.weight.shape == (4, 250, 5)
    assert found.rhat > 1.0
