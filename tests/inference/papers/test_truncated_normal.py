"""Densities and draws of the truncated and the folded normal; moments of the folded."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from ardvark.inference.papers import truncated_normal as tn
from ardvark.models.parts.truncated_normal import truncated_moments
from tests.support import ALARM, rng


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


@pytest.mark.statistical
def test_truncated_draws_follow_the_distribution():
    """Six exact Kolmogorov-Smirnov tests, a false alarm of ALARM together."""
    m, s = np.array([-2000.0, -3.0, -0.1, 0.0, 0.4, 20.0]), np.array([1.0, 0.5, 1.0, 2.0, 1.0, 3.0])
    out = np.empty((20_000, len(m)))
    tn.truncated_draws(rng(3), m, s, out)
    assert (out >= 0).all()
    for k, t in enumerate(m / s):

        def cdf(x, t=t):  # one minus a ratio of normal tails, exact where SciPy's cdf is 0 or 1
            return -np.expm1(special.log_ndtr(t - x) - special.log_ndtr(t))

        assert stats.kstest(out[:, k] / s[k], cdf).pvalue > ALARM / len(m)


class Refused:
    """A source of numbers that no rejection step accepts."""

    def standard_normal(self):
        return -1e3

    def standard_exponential(self):
        return 1e3

    def random(self):
        return 1.0 - 2.0**-53


@pytest.mark.parametrize("t", [0.5, -0.5])
def test_a_draw_that_is_never_accepted_is_an_error(t):
    with pytest.raises(RuntimeError, match="no draw of the truncated normal was accepted"):
        tn.truncated_draw.py_func(Refused(), t)


def test_nan_comes_out_as_nan():
    out = np.empty((1, 1))
    tn.truncated_draws(rng(), np.array([np.nan]), np.ones(1), out)
    assert np.isnan(out).all()
