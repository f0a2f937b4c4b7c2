"""`scale="learned"`: a half-Cauchy factor g on the scale of the weights of one kind.

That log_joint is PyMC's density, in every form, is seen in test_contract.py, and that the forms are
one posterior in test_marginal_forms.py. Here: what both take from `models/parts`, by quadrature.
"""

import itertools

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import integrate, stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.models.jcfo import SCALE, SCALE_SLAB
from ardvark.models.parts import ard, slab
from tests.models.forms import make, prior_points, stacked
from tests.support import ALARM, rng

KIND = {"rfvm": "feature", "pfcvm": "feature", "pcvm": "sample", "rvm": "sample"}
NAMES = {  # the weights that g multiplies, and their precisions
    "rfvm": ("feature_weight", "delta"),
    "pfcvm": ("feature_weight", "beta"),
    "pcvm": ("w", "alpha"),
    "rvm": ("sample_weight", "alpha"),
}
LAPLACE = ("jcfo", "sparse_probit")
every_one = pytest.mark.parametrize("name", list(NAMES))


def density(x, g, prior):
    """Half-Cauchy of scale g s times the slab, not normalised, at x > 0; by the definition."""
    s = np.sqrt(2.0 * prior.rate)
    return 2.0 / np.pi * g * s / ((g * s) ** 2 + x**2) * np.exp(-0.5 * (x / prior.slab) ** 2)


def integral(f, low, high):
    """The integral of f over (e^low, e^high), in pieces of log x."""
    edges = np.linspace(low, high, 30)
    pieces = itertools.pairwise(edges)
    return sum(integrate.quad(lambda v: np.exp(v) * f(np.exp(v)), *p)[0] for p in pieces)


@pytest.mark.parametrize("g", [1e-3, 0.4, 1.0, 5.0, 1e4])
def test_the_constant_depends_on_the_scale_as_the_integral_does(g):
    """And the density given g is that of the definition; with the constant of g = 1 it is not."""
    prior = ard.WeightPrior(0.5, 0.03, 0.8)
    scaled = prior.scaled(np.array(g))
    mass = integral(lambda x: density(x, g, prior), np.log(min(g, 1.0)) - 35.0, 3.5)
    assert scaled.log_mass == pytest.approx(np.log(mass), abs=1e-9)
    x = np.array([0.02, 0.5])
    exact = np.log(density(x, g, prior) / mass).sum()
    assert ard.logp(x, None, scaled) == pytest.approx(exact, abs=1e-9)
    if g != 1.0:
        assert abs(prior.log_mass - np.log(mass)) > 0.02


def test_the_symbolic_constant_and_its_slope_are_right_at_every_scale():
    """The slope in log x goes from 0 to -1. That of erfcx alone is lost: at 1e8 it is 0."""
    t = pt.dscalar("t")
    mass = slab.symbolic_half_cauchy_log_mass(pt.exp(2.0 * t), 1.0)
    f = pytensor.function([t], [mass, pt.grad(mass, t)], mode="FAST_COMPILE")
    for log_x in np.linspace(-20.0, 30.0, 41):
        value, slope = f(log_x)
        assert value == pytest.approx(slab.half_cauchy_log_mass(np.exp(2 * log_x), 1.0), rel=1e-12)
        ahead, behind = (
            slab.half_cauchy_log_mass(np.exp(2 * (log_x + h)), 1.0) for h in (1e-4, -1e-4)
        )
        assert slope == pytest.approx((ahead - behind) / 2e-4, rel=1e-6, abs=1e-10)


# --- the prior that `simulate` draws from ---------------------------------------------------------


def uniform_by(prior, x, g):
    """The distribution function of |x| given g, each by quadrature on a grid of log |x|."""
    out = np.empty_like(x)
    for row, scale in enumerate(g):
        peak = min(scale * np.sqrt(2.0 * prior.rate), prior.slab)
        v = np.linspace(np.log(peak) - 14.0, np.log(prior.slab) + 2.3, 3000)
        p = np.exp(v) * density(np.exp(v), scale, prior)
        cdf = integrate.cumulative_trapezoid(p, v, initial=0.0)
        out[row] = np.interp(np.log(np.abs(x[row])), v, cdf / cdf[-1])
    return out


@pytest.mark.statistical
@every_one
def test_simulate_follows_the_program(name):
    """g is half-Cauchy, the weights given g and the precisions given both have their laws.

    Weights drawn at the scale of g = 1 fail.
    """
    problem = make(name, N=12, D=6, scale="learned")
    points = stacked(prior_points(problem, 500, number=20))
    weights, precision = NAMES[name]
    prior, kind = problem.hypers.weight_priors()[f"{KIND[name]}_weight"], KIND[name]
    g, x, p = points[f"{kind}_scale"], points[weights], points[precision]
    rate = g[:, None] ** 2 * prior.rate + 0.5 * x**2
    uniform = {
        "g": 2.0 / np.pi * np.arctan(g),
        "weights": uniform_by(prior, x, g),
        "precisions": stats.gamma.cdf(p, 1.0, scale=1.0 / rate),
    }
    for line, u in uniform.items():
        assert stats.kstest(np.ravel(u), "uniform").pvalue > ALARM / 3, line
    wrong = uniform_by(prior, x, np.ones_like(g))
    assert stats.kstest(np.ravel(wrong), "uniform").pvalue < ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("name", LAPLACE)
def test_simulate_follows_the_program_of_laplace_weights(name):
    """As above; g has its tail cut off, and variances at the scale of g = 1 fail."""
    problem = make(name, N=12, D=6, scale="learned", gamma1=3.0)
    p, h = stacked(prior_points(problem, 500, number=20)), problem.hypers
    g, v = p[SCALE], np.linspace(-16.0, 7.0, 20_000)
    cdf = integrate.cumulative_trapezoid(
        np.exp(v - 0.5 * (np.exp(v) / SCALE_SLAB) ** 2) / (1.0 + np.exp(2.0 * v)), v, initial=0.0
    )
    gamma, variance = (h.gamma2, p["rho"]) if name == "jcfo" else (h.gamma1, p["tau"])
    own = h.gamma1 if name == "jcfo" else 1.0  # of the bias
    uniform = {
        "g": np.interp(np.log(g), v, cdf / cdf[-1]),
        "variances": -np.expm1(-0.5 * gamma * variance / g[:, None] ** 2),
        "bias": -np.expm1(-0.5 * own * p["tau_bias"]),
    }
    for line, u in uniform.items():
        assert stats.kstest(np.ravel(u), "uniform").pvalue > ALARM / 6, line
    wrong = -np.expm1(-0.5 * gamma * variance)
    assert stats.kstest(np.ravel(wrong), "uniform").pvalue < ALARM


# --- what may be asked for ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*NAMES, *LAPLACE])
def test_a_fixed_scale_is_the_posterior_of_before(name):
    """It is no part of what defines the posterior; learned, as by default in LAPLACE, it is."""
    fixed, learned = make(name, scale="fixed"), make(name, scale="learned")
    assert "scale" not in fixed.hypers.posterior_fields()
    assert fixed.fingerprint != learned.fingerprint
    assert make(name).fingerprint == (learned if name in LAPLACE else fixed).fingerprint
    assert fixed.hypers.weight_priors() == learned.hypers.weight_priors()  # the same fill
    scale = f"{KIND.get(name, 'feature')}_scale"
    assert learned.shapes.keys() - fixed.shapes.keys() == {scale}
    assert learned.shapes[scale] == ()


@every_one
def test_a_dense_prior_has_no_learned_scale(name):
    kind = KIND[name]
    for given in ({f"active_{kind}s": "all"}, {f"{kind}_shape": 0.7}, {f"{kind}_shape": 0.5}):
        with pytest.raises(InputError, match=f"needs the sparse prior of the {kind} weights"):
            make(name, scale="learned", **given)
    make(name, scale="learned", **{f"{kind}_shape": 0.5, f"{kind}_slab": 1.0})


def test_only_the_weights_of_features_are_scaled_where_they_are_variables():
    for name in ("rfvm", "pfcvm"):
        make(name, scale="learned", active_samples="all")


@pytest.mark.statistical
def test_the_expected_number_is_met_at_the_median_of_the_scale():
    """P(|theta_d| > t), t fixed: by simulation, by quadrature over g, and at g = 1."""
    problem = av.problem("rfvm", rng(0).normal(size=(60, 30)), np.arange(60) % 2, scale="learned")
    prior, t = problem.hypers.feature_prior, 5.0 * problem.hypers.feature_prior.scale

    def tail(g):
        high = np.log(prior.slab) + 3.0
        return integral(lambda x: density(x, g, prior), np.log(t), high) / np.exp(
            prior.scaled(np.array(g)).log_mass
        )

    grid = np.tan(0.5 * np.pi * (np.arange(200) + 0.5) / 200)  # equally likely
    exact = np.mean([tail(g) for g in grid])
    draws = rng(1)
    found = [np.mean(problem.simulate(draws)["feature_weight"] > t) for _ in range(2000)]
    assert abs(np.mean(found) - exact) < 5.0 * np.std(found) / np.sqrt(len(found)) + 1e-3
    assert exact > 1.2 * tail(1.0)
