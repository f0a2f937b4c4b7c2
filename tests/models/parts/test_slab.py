"""The slab: its constant, its two factorisations, and draws by rejection."""

from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, special, stats

from ardvark.models.parts import ard, slab
from tests.support import ALARM, rng, seed

SHAPES = [0.3, 0.5, 1.5, 30.0]
SLABS = [0.05, 1.0, 40.0]  # beside a scale of about 1
RATE = 0.4


def mass_by_quadrature(shape, rate, c):
    """E exp(-x^2 / (2 c^2)) of a Student-t x, over log x on both sides of the slab."""
    scale = np.sqrt(rate / shape)

    def integrand(v):
        x = np.exp(v)
        return 2.0 * x * stats.t.pdf(x, 2.0 * shape, scale=scale) * np.exp(-0.5 * (x / c) ** 2)

    middle = np.log(min(c, scale))
    parts = [(middle - 40.0, middle), (middle, np.log(c)), (np.log(c), np.log(c) + 4.0)]
    return sum(integrate.quad(integrand, *p, epsabs=0, epsrel=1e-11, limit=500)[0] for p in parts)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("c", SLABS)
def test_the_mass_is_the_mean_of_the_slab(shape, c):
    exact = mass_by_quadrature(shape, RATE, c)
    assert np.exp(slab.log_mass(shape, RATE, c)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("z", [1e-12, 1e-3, 1.0, 1e4])
def test_the_mass_of_a_half_cauchy_has_a_closed_form(z):
    """erfcx(sqrt(rate) / slab) at shape 1/2."""
    exact = np.log(special.erfcx(np.sqrt(z)))
    assert slab.log_mass(0.5, z * 4.0, 2.0) == pytest.approx(exact, rel=1e-10, abs=1e-13)


def test_without_a_slab_there_is_no_constant():
    assert slab.log_mass(0.5, 1.0, np.inf) == 0.0
    assert ard.WeightPrior(1.5, 0.3).log_mass == 0.0


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("c", SLABS)
def test_the_density_is_normalised_and_integrates_the_precision_out(signed, c):
    prior = ard.WeightPrior(0.5, RATE, c)

    log_mass = prior.log_mass  # found once, not in each of hundreds of evaluations
    prior = SimpleNamespace(shape=prior.shape, rate=prior.rate, slab=c, log_mass=log_mass)

    def marginal(x):
        return float(np.exp(ard.logp(np.array([x]), None, prior, signed=signed)))

    middle = np.log(min(c, 1.0))
    pieces = [(middle - 40.0, middle), (middle, np.log(c) + 4.0)]
    total = sum(
        integrate.quad(lambda v: np.exp(v) * marginal(np.exp(v)), *p, epsrel=1e-10, limit=300)[0]
        for p in pieces
    )
    assert total == pytest.approx(0.5 if signed else 1.0, rel=1e-8)

    x = 0.7 * c

    def joint(v):
        p = np.array([np.exp(v)])
        return float(np.exp(ard.logp(np.array([x]), p, prior, signed=signed) + v))

    peak = np.log(1.0 / (RATE + 0.5 * x**2))
    value = integrate.quad(joint, peak - 40.0, peak, epsrel=1e-11)[0]
    value += integrate.quad(joint, peak, peak + 6.0, epsrel=1e-11)[0]
    assert value == pytest.approx(marginal(x), rel=1e-8)


@pytest.mark.statistical
@pytest.mark.parametrize("c", [0.05, 0.2, 3.0])
def test_draws_follow_the_density(c):
    """Kolmogorov-Smirnov at an alarm of 3e-6; without the slab p is below 1e-100.

    The narrowest slab is where draws come from the exponential.
    """
    prior = ard.WeightPrior(0.5, RATE, c)
    grid = np.exp(np.linspace(np.log(min(c, 0.9)) - 12.0, np.log(c) + 2.3, 4001))
    density = np.exp(ard.logp(grid[:, None], None, prior)) * grid
    steps = 0.5 * (density[1:] + density[:-1]) * np.diff(np.log(grid))
    cdf = np.concatenate([[0.0], np.cumsum(steps)])
    assert cdf[-1] == pytest.approx(1.0, abs=1e-4)

    precision, x = slab.draw(rng(0), 0.5, RATE, c, 20_000)
    found = stats.kstest(np.abs(x), lambda t: np.interp(t, grid, cdf / cdf[-1])).pvalue
    assert found > ALARM
    endless = np.abs(stats.cauchy.rvs(scale=prior.scale, size=20_000, random_state=rng(1)))
    assert stats.kstest(endless, lambda t: np.interp(t, grid, cdf / cdf[-1])).pvalue < ALARM

    # the precision given x is Gamma(shape + 1/2, rate + x^2 / 2): uniform by its distribution
    u = stats.gamma.cdf(precision, 1.0, scale=1.0 / (RATE + 0.5 * x**2))
    assert stats.kstest(u, "uniform").pvalue > ALARM
    # and x given the precision is normal with the precision 1 / c^2 larger
    z = x * np.sqrt(precision + c**-2.0)
    assert stats.kstest(z, "norm").pvalue > ALARM


def hypers(prior, form):
    """Return what `Weights` reads of the hyperparameters of a model."""
    return SimpleNamespace(parametrization=form, weight_priors=lambda: {"feature_weight": prior})


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["SlabStudentT", "TiltedGamma"])
def test_prior_draws_of_the_pymc_model_are_those_of_the_paper(name):
    """PyMC's own forward sampling against `ard.draw`: two samples of one distribution."""
    prior = ard.WeightPrior(0.5, RATE, 0.8)
    form = "marginal" if name == "SlabStudentT" else "hierarchical"
    with pm.Model(coords={"feature": range(16_000)}) as model:
        ard.Weights("x", "p", "feature").declare(hypers(prior, form))
    x = pm.draw(model["x"], random_seed=seed(2), mode="FAST_COMPILE")
    assert stats.ks_2samp(x, ard.draw(rng(3), prior, 16_000)[1]).pvalue > ALARM


@pytest.mark.parametrize("form", ["marginal", "hierarchical"])
@pytest.mark.parametrize("signed", [False, True])
def test_a_wrong_slab_is_seen_by_the_density(form, signed):
    """Rung 7: without the slab, or without its constant, PyMC's density is another one."""
    prior = ard.WeightPrior(np.float64(0.5), RATE, 0.8)
    weights, h = ard.Weights("x", "p", "feature", signed), hypers(prior, form)
    with pm.Model(coords={"feature": range(3)}) as model:
        weights.declare(h)
    compiled = model.compile_logp(mode="FAST_COMPILE")
    draws = rng(4)
    right, unbounded, no_constant = [], [], []
    for _ in range(20):
        point = weights.draw(draws, h, 3)
        free = weights.free(point, h)
        values = {
            v.name: (free[rv.name] if v.name == rv.name else np.log(free[rv.name]))
            for rv, v in model.rvs_to_values.items()
        }
        at = compiled(values)
        jacobian = weights.log_jacobian(point, h)
        right.append(weights.logp(point, h) + jacobian - at)
        bare = hypers(ard.WeightPrior(*prior[:2]), form)
        unbounded.append(weights.logp(point, bare) + jacobian - at)
        no_constant.append(right[-1] + 3.0 * prior.log_mass)
    np.testing.assert_allclose(right, 0.0, atol=1e-9)
    assert np.ptp(unbounded) > 0.1
    assert np.min(np.abs(no_constant)) > 0.1
