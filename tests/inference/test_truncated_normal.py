"""Densities and draws of the truncated and the folded normal; moments of the folded."""

import numpy as np
import pytest
from scipy import integrate, stats

from ardvark.inference import truncated_normal as tn
from ardvark.models.parts.truncated_normal import truncated_moments


@pytest.mark.parametrize("t", [-40.0, -9.5, -3.0, -0.5, 0.0, 0.01, 1.0, 2.5, 8.9, 9.1, 40.0])
def test_folded_moments_and_entropy_match_quadrature(t):
    mean, variance, entropy = (x[0] for x in tn.folded_moments(np.array([t])))

    def log_density(x):
        return np.logaddexp(stats.norm.logpdf(x, t), stats.norm.logpdf(x, -t))

    def moment(f):
        low, high = max(0.0, abs(t) - 12.0), abs(t) + 12.0
        by_density = integrate.quad(
            lambda x: f(x) * np.exp(log_density(x)), low, high, epsabs=0.0, epsrel=1e-11, limit=400
        )
        return by_density[0]

    want = moment(lambda x: x)
    assert mean == pytest.approx(want, rel=1e-10)
    assert variance == pytest.approx(moment(lambda x: (x - want) ** 2), rel=1e-9)
    assert entropy == pytest.approx(moment(lambda x: -log_density(x)), abs=1e-10)


def test_the_two_differ_where_the_paper_confuses_them():
    # m = -0.3, s = 0.5: 0.308 and 0.469 (MODELS.md, section 4)
    t = np.array([-0.6])
    assert 0.5 * truncated_moments(t)[0][0] == pytest.approx(0.308, abs=5e-4)
    assert 0.5 * tn.folded_moments(t)[0][0] == pytest.approx(0.469, abs=5e-4)


def test_extreme_locations_keep_their_leading_order():
    mean, variance, entropy = tn.folded_moments(np.array([1e4, -1e4]))
    np.testing.assert_allclose(mean, 1e4, rtol=1e-12)
    np.testing.assert_allclose(variance, 1.0, rtol=1e-12)
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
    mean, variance, _ = truncated_moments(m / s)
    z = (out.mean(axis=0) - s * mean) / (s * np.sqrt(variance / len(out)))
    assert np.abs(z).max() < 4.0
    for k in range(1, len(m)):
        law = stats.truncnorm(-m[k] / s[k], np.inf, loc=m[k], scale=s[k])
        assert stats.kstest(out[:, k], law.cdf).pvalue > 1e-4
