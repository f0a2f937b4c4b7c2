"""Moments and entropy of the truncated normal against quadrature and their limits."""

import numpy as np
import pytest
from scipy import integrate, stats

from ardvark.models.parts.truncated_normal import truncated, truncated_moments

FAR = [-1e4, -300.0, -50.0, -10.0, -3.001, -3.0, -2.999, -1.0, 0.0, 0.7, 3.0, 12.0, 40.0]


def log_density(x, t):
    """ln N(x | t, 1) / Phi(t), the tail of Phi by its own asymptotic-free library routine."""
    return stats.norm.logpdf(x, t) - stats.norm.logcdf(t)


@pytest.mark.parametrize("t", FAR)
def test_moments_and_entropy_match_quadrature(t):
    low, high = max(0.0, t - 12.0), max(t, 0.0) + 12.0
    if t < -5.0:
        high = 60.0 / -t  # nearly exponential with rate -t
    # at t = -1e4 the reference density itself is a difference of two numbers near 5e7
    rtol = 1e-6 if t < -100 else 1e-9

    def moment(f):
        return integrate.quad(f, low, high, epsabs=0.0, epsrel=rtol / 10, limit=400)[0]

    def p(x):
        return np.exp(log_density(x, t))

    assert moment(p) == pytest.approx(1.0, rel=rtol)
    want = moment(lambda x: x * p(x))
    mean, variance, entropy = (x[0] for x in truncated_moments(np.array([t])))
    assert mean == pytest.approx(want, rel=rtol)
    assert variance == pytest.approx(moment(lambda x: (x - want) ** 2 * p(x)), rel=rtol)
    second = moment(lambda x: x * x * p(x))
    assert variance + mean**2 == pytest.approx(second, rel=rtol)
    want = moment(lambda x: -p(x) * log_density(x, t))
    assert entropy == pytest.approx(want, rel=rtol, abs=1e-9)


def test_extreme_locations_keep_their_leading_order():
    mean, variance, entropy = truncated_moments(np.array([-1e4, -1e8]))
    x = np.array([1e4, 1e8])  # exponential with rate x
    np.testing.assert_allclose(mean, 1 / x, rtol=3e-8)
    np.testing.assert_allclose(variance, 1 / x**2, rtol=1e-7)
    np.testing.assert_allclose(entropy, 1 - np.log(x), rtol=1e-8)
    mean, variance, entropy = truncated_moments(np.array([1e4]))
    np.testing.assert_allclose([mean[0], variance[0]], [1e4, 1.0], rtol=1e-12)
    np.testing.assert_allclose(entropy, 0.5 * np.log(2 * np.pi * np.e), rtol=1e-12)


def test_arrays_of_any_shape():
    t = np.linspace(-6.0, 4.0, 12)[::2].reshape(2, 3).T
    found = truncated_moments(t)
    for index in np.ndindex(t.shape):
        np.testing.assert_array_equal([x[index] for x in found], truncated(t[index]))
    for x, one in zip(truncated_moments(np.array(-3)), truncated(-3.0), strict=True):
        assert x.shape == ()
        assert x == one
    assert truncated_moments(np.zeros((0, 4)))[1].shape == (0, 4)
