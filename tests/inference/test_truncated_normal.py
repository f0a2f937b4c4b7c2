"""Moments, entropy, density and draws of the truncated and the folded normal."""

import numpy as np
import pytest
from scipy import integrate, stats

from ardvark.inference import truncated_normal as tn

FAR = [-1e4, -300.0, -50.0, -10.0, -3.001, -3.0, -2.999, -1.0, 0.0, 0.7, 3.0, 12.0, 40.0]


def truncated_log_density(x, t):
    """ln N(x | t, 1) / Phi(t), the tail of Phi by its own asymptotic-free library routine."""
    return stats.norm.logpdf(x, t) - stats.norm.logcdf(t)


def by_quadrature(log_density, t, rtol=1e-10):
    """Mean, variance, entropy and mass, on the interval that holds the mass."""
    low, high = max(0.0, t - 12.0), max(t, 0.0) + 12.0
    if t < -5.0:
        high = 60.0 / -t  # nearly exponential with rate -t

    def moment(f):
        return integrate.quad(f, low, high, epsabs=0.0, epsrel=rtol / 10, limit=400)[0]

    def p(x):
        return np.exp(log_density(x, t))

    mean = moment(lambda x: x * p(x))
    variance = moment(lambda x: (x - mean) ** 2 * p(x))
    return mean, variance, moment(lambda x: -p(x) * log_density(x, t)), moment(p)


@pytest.mark.parametrize("t", FAR)
def test_truncated_moments_and_entropy_match_quadrature(t):
    mean, variance, entropy = (x[0] for x in tn.truncated_moments(np.array([t])))
    # at t = -1e4 the reference density itself is a difference of two numbers near 5e7
    rtol = 1e-6 if t < -100 else 1e-9
    want = by_quadrature(truncated_log_density, t, rtol)
    assert want[3] == pytest.approx(1.0, rel=rtol)
    assert mean == pytest.approx(want[0], rel=rtol)
    assert variance == pytest.approx(want[1], rel=rtol)
    assert entropy == pytest.approx(want[2], rel=rtol, abs=1e-9)


@pytest.mark.parametrize("t", [-40.0, -9.5, -3.0, -0.5, 0.0, 0.01, 1.0, 2.5, 8.9, 9.1, 40.0])
def test_folded_moments_and_entropy_match_quadrature(t):
    mean, variance, entropy = (x[0] for x in tn.folded_moments(np.array([t])))

    def log_density(x, t):
        return np.logaddexp(stats.norm.logpdf(x, t), stats.norm.logpdf(x, -t))

    want = by_quadrature(log_density, abs(t))  # a folded normal does not see the sign
    assert mean == pytest.approx(want[0], rel=1e-10)
    assert variance == pytest.approx(want[1], rel=1e-9)
    assert entropy == pytest.approx(want[2], abs=1e-10)


def test_the_two_differ_where_the_paper_confuses_them():
    # m = -0.3, s = 0.5: 0.308 and 0.469 (MODELS.md, section 4)
    t = np.array([-0.6])
    assert 0.5 * tn.truncated_moments(t)[0][0] == pytest.approx(0.308, abs=5e-4)
    assert 0.5 * tn.folded_moments(t)[0][0] == pytest.approx(0.469, abs=5e-4)


def test_extreme_locations_keep_their_leading_order():
    mean, variance, entropy = tn.truncated_moments(np.array([-1e4, -1e8]))
    x = np.array([1e4, 1e8])  # exponential with rate x
    np.testing.assert_allclose(mean, 1 / x, rtol=3e-8)
    np.testing.assert_allclose(variance, 1 / x**2, rtol=1e-7)
    np.testing.assert_allclose(entropy, 1 - np.log(x), rtol=1e-8)
    for moments in (tn.truncated_moments, tn.folded_moments):
        mean, variance, entropy = moments(np.array([1e4]))
        np.testing.assert_allclose([mean[0], variance[0]], [1e4, 1.0], rtol=1e-12)
        np.testing.assert_allclose(entropy, 0.5 * np.log(2 * np.pi * np.e), rtol=1e-12)


@pytest.mark.parametrize("m", [-4.0, -0.2, 0.0, 1.5])
def test_log_densities_match_scipy(m):
    s, x = 0.4, np.array([1e-6, 0.05, 0.3, 2.0])
    spread = np.full(4, s)
    np.testing.assert_allclose(
        tn.truncated_logpdf(x, np.full(4, m), spread),
        stats.truncnorm.logpdf(x, -m / s, np.inf, loc=m, scale=s),
        rtol=1e-9,
    )
    # |Normal(m, s)|: SciPy's foldnorm takes c = |m| / s
    np.testing.assert_allclose(
        tn.folded_logpdf(x, np.full(4, m), spread),
        stats.foldnorm.logpdf(x, abs(m) / s, scale=s),
        rtol=1e-9,
    )


def test_truncated_draws_follow_the_distribution():
    rng = np.random.default_rng(3)
    m, s = np.array([-2000.0, -3.0, -0.1, 0.0, 0.4, 20.0]), np.array([1.0, 0.5, 1.0, 2.0, 1.0, 3.0])
    out = np.empty((20_000, len(m)))
    tn.truncated_draws(rng, m, s, out)
    assert (out >= 0).all()
    mean, variance, _ = tn.truncated_moments(m / s)
    z = (out.mean(axis=0) - s * mean) / (s * np.sqrt(variance / len(out)))
    assert np.abs(z).max() < 4.0
    for k in range(1, len(m)):
        law = stats.truncnorm(-m[k] / s[k], np.inf, loc=m[k], scale=s[k])
        assert stats.kstest(out[:, k], law.cdf).pvalue > 1e-4
