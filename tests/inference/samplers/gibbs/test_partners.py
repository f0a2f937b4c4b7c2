"""Which features may change places: the most correlated ones, whatever their units."""

import numpy as np
import pytest

from ardvark.inference.samplers.gibbs import partners
from tests.support import rng


def brute_force(X, most):
    """Each feature's partners as a set, one feature after the other."""
    with np.errstate(invalid="ignore", divide="ignore"):
        R = np.abs(np.nan_to_num(np.corrcoef(X, rowvar=False)))
    np.fill_diagonal(R, -1.0)
    nearest = [set(np.argsort(-row)[:most].tolist()) for row in R]
    D = len(R)
    return [{m for m in range(D) if m in nearest[k] or k in nearest[m]} for k in range(D)]


@pytest.mark.parametrize("block", [1, 21, 10_000])
def test_partners_are_the_most_correlated_in_any_units(block, monkeypatch):
    monkeypatch.setattr(partners, "_BLOCK", block)
    random = rng(0)
    X = random.normal(size=(40, 3)) @ random.normal(size=(3, 7)) + random.normal(size=(40, 7))
    X = X * 10.0 ** np.array([0, 3, -2, 1, -4, 2, 0]) + 5.0
    for most in (1, 2, 6):
        found = partners.correlated(X, most)
        sets = [set(row[:d].tolist()) for row, d in zip(found.partner, found.degree, strict=True)]
        assert sets == brute_force(X, most)
        assert all(len(s) == d for s, d in zip(sets, found.degree, strict=True))


def test_a_constant_feature_does_not_hide_the_others():
    X = rng(1).normal(size=(30, 4))
    X[:, 2] = 3.0  # correlated with none: any partner is as good for it
    X[:, 3] = X[:, 0] + 0.01 * X[:, 1]
    found = partners.correlated(X, 1)
    assert 3 in found.partner[0, : found.degree[0]]
    assert 0 in found.partner[3, : found.degree[3]]
