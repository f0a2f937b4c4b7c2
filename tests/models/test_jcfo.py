"""JCFO, sparse probit regression and the probit link: what the contract test does not see."""

import tracemalloc

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, special, stats

from ardvark.models import jcfo
from ardvark.models.parts.probit import PositiveNormal, ProbitBernoulli, probit_logp
from tests.models import forms
from tests.models.forms import log_joint_at
from tests.models.integrals import over_the_positive, without
from tests.support import ALARM, rng, seed

both_modes = pytest.mark.parametrize("mode", [None, "FAST_COMPILE"], ids=["default", "fast"])
FORMS = ("marginal", "hierarchical", "latent")


def make(name="jcfo", N=6, D=3, **settings):
    return forms.make(name, N=N, D=D, **settings)


def joint(problem, point, **changes):
    """Return log_joint at the labels that were drawn with the point."""
    return log_joint_at(problem, {**point, **changes}, point["y"])


# --- the link -------------------------------------------------------------------------------------

T = np.array([0.0, 1e-9, 0.3, 1.0, 1.001, 5.0, 8.0, 37.0, 38.0, 40.0, 1e3, 1e4, 1e8])
T = np.concatenate([-T[:0:-1], T])


@both_modes
def test_probit_is_exact_with_a_finite_gradient_far_out(mode):
    with pm.Model() as model:
        eta = pm.Flat("eta", shape=2 * len(T))
        ProbitBernoulli("y", eta, observed=np.repeat([0, 1], len(T)))
    at = {"eta": np.tile(T, 2)}
    sign = np.repeat([-1.0, 1.0], len(T))
    t = sign * at["eta"]
    value = model.compile_logp(mode=mode, sum=False)(at)[1]
    gradient = model.compile_dlogp(mode=mode)(at)
    np.testing.assert_allclose(value, special.log_ndtr(t), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(probit_logp((sign + 1) / 2, at["eta"]), special.log_ndtr(t))
    # d log Phi(t) / dt = phi(t) / Phi(t), written so that neither underflows
    below = np.sqrt(2 / np.pi) / special.erfcx(-np.minimum(t, 0.0) / np.sqrt(2))
    ratio = np.where(t < 0, below, stats.norm.pdf(t) / stats.norm.cdf(np.maximum(t, 0.0)))
    np.testing.assert_allclose(gradient, sign * ratio, rtol=1e-12, atol=1e-300)


@pytest.mark.statistical
def test_predictive_draws_follow_the_link():
    S, eta = 4000, np.array([-40.0, -2.0, 0.0, 0.7, 40.0])
    with pm.Model():
        y = ProbitBernoulli("y", np.tile(eta, (S, 1)))
        x = PositiveNormal("x", np.tile(eta, (S, 1)))
    y_draws, x_draws = pm.draw([y, x], random_seed=seed(5), mode="FAST_COMPILE")
    assert (x_draws > 0).all()
    for k, t in enumerate(eta):
        p = special.ndtr(t)
        assert stats.binomtest(int(y_draws[:, k].sum()), S, p).pvalue > ALARM / 10
        truth = stats.truncnorm(-t, np.inf, loc=t)
        assert stats.kstest(x_draws[:, k], truth.cdf).pvalue > ALARM / 10


def test_positive_normal_completes_the_probit():
    eta = np.array([-40.0, -1.3, 0.0, 0.4, 40.0])
    x = np.array([0.01, 0.5, 2.0, 1.0, 39.0])
    with pm.Model() as model:
        PositiveNormal("x", eta, default_transform=None)
        ProbitBernoulli("y", eta, observed=np.ones(5, dtype=int))
    parts = model.compile_logp(mode="FAST_COMPILE", sum=False)({"x": x})
    np.testing.assert_allclose(sum(parts), stats.norm.logpdf(x, eta), rtol=1e-12, atol=1e-12)


# --- one posterior, three forms -------------------------------------------------------------------


def test_printed_rates_are_told_apart():
    """Eqs. (24), (25) print gamma for its root: a Laplace of rate gamma1 is another density."""
    small, gammas = {"N": 2, "D": 1, "basis": [0]}, {"gamma1": 1.7, "gamma2": 0.6}
    problem = make(parametrization="hierarchical", **small, **gammas)
    weights = {"bias": 0.3, "sample_weight": np.array([-0.5]), "feature_weight": np.array([4.0])}
    point = problem.simulate(rng(7)) | weights
    right = without(problem, point, ("tau_bias", "tau", "rho"), over_the_positive)
    for wrong in ({}, {"gamma1": 1.7**2}, {"gamma2": 0.6**2}):
        marginal = make(parametrization="marginal", **small, **gammas | wrong)
        difference = abs(joint(marginal, point) - right)
        assert difference > 0.1 if wrong else difference < 1e-6


@pytest.mark.parametrize("gamma", [0.4, 3.0])
def test_expected_precisions_have_a_root(gamma):
    """E[1/tau | beta] = sqrt(gamma1) / |beta|, where (24) prints gamma1 / |beta|."""
    beta = 0.8

    def density(tau):
        return np.exp(jcfo.laplace_logp(beta, gamma, np.asarray(tau)))

    norm = integrate.quad(density, 0, np.inf, epsrel=1e-10)[0]
    mean = integrate.quad(lambda t: density(t) / t, 0, np.inf, epsrel=1e-10)[0] / norm
    np.testing.assert_allclose(mean, np.sqrt(gamma) / beta, rtol=1e-7)
    assert abs(mean / (gamma / beta) - 1) > 0.3


def test_outside_the_support_the_density_is_zero():
    for form in FORMS:
        problem = make(parametrization=form)
        point = problem.simulate(rng(1))
        assert np.isfinite(joint(problem, point))
        negative = point["feature_weight"] * np.array([1.0, -1.0, 1.0])
        assert joint(problem, point, feature_weight=negative) == -np.inf
        if form != "marginal":
            for name in ("tau", "rho", "tau_bias"):
                assert joint(problem, point, **{name: -point[name]}) == -np.inf
    flipped = point["z"] * np.where(np.arange(6) == 2, -1.0, 1.0)
    assert joint(problem, point, z=flipped) == -np.inf


# --- kernels --------------------------------------------------------------------------------------


def test_draws_are_scored_one_kernel_matrix_at_a_time():
    S, N, D = 40, 50, 200
    problem = make(N=N, D=D, kernel="rbf")
    generator = rng(8)
    point = {
        "feature_weight": generator.exponential(1 / D, size=(S, D)),
        "sample_weight": generator.normal(size=(S, N)),
        "bias": generator.normal(size=S),
    }
    problem.decision(point)  # standardises X once
    tracemalloc.start()
    problem.decision(point)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * (6 * N * (N + D) + 3 * S * N)  # (S, N, N, D) would be 160 MB


# --- special case: no kernel ----------------------------------------------------------------------


@pytest.mark.parametrize("form", ["marginal", "hierarchical"])
def test_jcfo_with_x_for_its_kernel_matrix_is_sparse_probit(form):
    """Centres at the unit vectors and theta = 1 make the linear kernel's matrix X itself."""
    D = 3
    common = {"D": D, "standardize": False, "parametrization": form, "gamma1": 2.3}
    common["scale"] = "fixed"  # learned, the bias of sparse probit has a prior of its own
    kernel = make(basis=np.eye(D), kernel="linear", **common)
    plain = make("sparse_probit", **common)
    generator = rng(9)
    ones = np.ones(D)
    theta_prior = jcfo._exponential_logp(
        ones, kernel.hypers.gamma2, ones if form == "hierarchical" else None
    ).sum()
    for _ in range(5):
        point = plain.simulate(generator)
        as_jcfo = {**point, "sample_weight": point["beta"], "feature_weight": ones, "rho": ones}
        np.testing.assert_allclose(
            kernel.decision(as_jcfo), plain.decision(point), rtol=1e-12, atol=1e-10
        )
        np.testing.assert_allclose(
            joint(kernel, as_jcfo) - theta_prior, joint(plain, point), rtol=1e-12
        )


# --- simulation, hyperparameters, bad input -------------------------------------------------------


def test_filled_scales():
    D, N = 3, 6
    rbf = make(kernel="rbf").hypers
    np.testing.assert_allclose([rbf.gamma1**-0.5, rbf.gamma2**-0.5], [3 / N**0.5, 1 / (2 * D)])
    kept = make(gamma1=2, gamma2=0.5).hypers
    assert (kept.gamma1, kept.gamma2) == (2.0, 0.5)
    np.testing.assert_allclose(make("sparse_probit").hypers.gamma1 ** -0.5, D**-0.5)


def test_degree_is_part_of_the_posterior_only_where_it_is_used():
    assert make(kernel="rbf").fingerprint == make(kernel="rbf", degree=2).fingerprint
    assert make().fingerprint == make(degree=np.int64(1)).fingerprint
    assert make().fingerprint != make(degree=2).fingerprint
