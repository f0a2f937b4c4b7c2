"""Draws and formulas that JCFO and sparse probit share, each against SciPy's law or function."""

import numpy as np
import pytest
from scipy import special, stats

from ardvark.inference.samplers.gibbs import probit_steps as steps
from ardvark.inference.samplers.gibbs.positive_draw import positive_draw
from tests.support import ALARM, rng

ESS_FLOOR = 400


def ks(draws, cdf):
    return stats.kstest(draws, cdf).pvalue


# --- draws ----------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("precision", [0.04, 1.0, 1e6])
@pytest.mark.parametrize("t", [-1e4, -41.0, -10.01, -9.99, -3.0, -0.2, 0.0, 0.7, 40.0])
def test_truncated_normal_draws(t, precision):
    random = rng()
    sd = precision**-0.5
    x = np.array([positive_draw(random, t / sd, precision) for _ in range(4000)])
    assert (x > 0).all()
    assert ks(x / sd, stats.truncnorm(-t, np.inf, loc=t).cdf) > ALARM


@pytest.mark.statistical
def test_truncated_normal_limits():
    """No precision at all leaves the exponential; so does a mean too far away for its square."""
    random = rng()
    for precision in (0.0, 1e-300, 1.0):
        x = np.array([positive_draw(random, -1e200, precision) for _ in range(2000)])
        assert ks(x * 1e200, stats.expon.cdf) > ALARM / 3
    # a failure comes out, and does not loop for ever
    assert np.isnan(positive_draw(random, np.nan, 1.0))
    assert np.isnan(positive_draw(random, -1.0, np.nan))


@pytest.mark.statistical
@pytest.mark.parametrize("gamma", [0.3, 50.0])
@pytest.mark.parametrize("weight", [0.0, 1e-9, 0.05, 1.0, 30.0])
def test_variance_draws(weight, gamma):
    random = rng()
    tau = np.empty(4000)
    steps.draw_variances(random, np.full(len(tau), -weight), gamma, tau)
    if weight < 1e-6:  # the limit 1 / tau ~ gamma / chi-squared(1)
        assert ks(gamma * tau, stats.chi2(1).cdf) > ALARM
    else:
        law = stats.invgauss(1 / (np.sqrt(gamma) * weight), scale=gamma)
        assert ks(1 / tau, law.cdf) > ALARM


def test_log_likelihood():
    random = rng()
    for scale in (0.1, 3.0, 50.0, 1e4):
        eta, sign = scale * random.standard_normal(500), random.choice([-1.0, 1.0], 500)
        want = special.log_ndtr(sign * eta).sum()
        assert steps.log_likelihood(sign, eta) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e7])
def test_precision_matrix(size):
    """(I + c v v')^-1 = I - c v v' / (1 + c v'v); the plain inverse fails where c is large."""
    v = rng().standard_normal((6, 1))
    want = np.eye(6) - v @ v.T / (size**-2 + v.T @ v)
    error = np.abs(steps.precision_matrix(size * v) - want).max()
    plain = np.abs(np.linalg.inv(np.eye(6) + size**2 * v @ v.T) - want).max()
    assert error < 1e-8
    assert plain < 1e-8 or size > 1e6
    assert plain > 1e-4 or size < 1e6


# --- scales ---------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    "parameters",
    [(3.0, 0.0, 2.0, 1.5, 0.7, 1.2), (-2.0, 0.0, 0.3, 4.0, -0.5, 3.0), (9.0, 4.0, 1.0, 0, 0, 0)],
)
def test_slice_step_of_a_scale(parameters):
    """Five steps, each from u = 0 of the point reached, from a draw of the density of u."""
    random = rng()
    power, up2, up, down, offset, tilt = (float(p) for p in parameters)
    u = np.linspace(-12.0, 6.0, 40_001)
    log_p = np.array([steps.log_scale_density(x, power, up2, up, down, offset, tilt) for x in u])
    p = np.exp(log_p - log_p.max())
    assert max(p[0], p[-1]) < 1e-9
    mass = np.append(0.0, np.cumsum(0.5 * (p[1:] + p[:-1])))
    mass /= mass[-1]
    ends = np.interp(random.random(3000), mass, u)
    for i in range(len(ends)):
        for _ in range(5):
            r = np.exp(ends[i])
            now = (up2 * r * r, up * r, down / r, offset, tilt / r)
            ends[i] += steps.log_scale(random, 0.8, power, *now)
    assert ks(ends, lambda x: np.interp(x, u, mass)) > ALARM
