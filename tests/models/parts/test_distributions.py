"""Rung 1 for the distributions: value, gradient and draws, also far out in the tails."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import integrate, special, stats

from ardvark.models.parts.distributions import (
    FoldedNormal,
    LogisticBernoulli,
    NoisyLogisticBernoulli,
    folded_normal_logp,
    logistic_logp,
    noisy_logistic_logp,
)

ETA = np.array([-1e4, -800.0, -40.0, -1.0, 0.0, 1.0, 40.0, 800.0, 1e4])
MODES = pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])


def value_and_gradient(distribution, y, *parameters, mode):
    inputs = [pt.dvector() for _ in parameters]
    with pm.Model():
        rv = distribution("y", *inputs, observed=y)
    logp = pm.logp(rv, pt.as_tensor(y))
    outputs = [logp, *pt.grad(logp.sum(), inputs)]
    return pytensor.function(inputs, outputs, mode=mode)(*parameters)


@MODES
@pytest.mark.parametrize("label", [0, 1])
def test_logistic_is_finite_and_right_out_to_ten_thousand(label, mode):
    y = np.full(len(ETA), label)
    value, gradient = value_and_gradient(LogisticBernoulli, y, ETA, mode=mode)
    np.testing.assert_allclose(value, special.log_expit((2 * y - 1) * ETA), rtol=1e-12)
    np.testing.assert_allclose(gradient, y - special.expit(ETA), atol=1e-12)
    np.testing.assert_allclose(logistic_logp(y, ETA), value, rtol=1e-12)


@MODES
def test_pymc_still_needs_the_replacement(mode):
    """The reason `LogisticBernoulli` exists. If this fails, PyMC has mended it: use theirs."""
    with pm.Model() as model:
        eta = pm.Flat("eta")
        pm.Bernoulli("y", logit_p=eta, observed=0)
    assert np.isnan(model.compile_dlogp(mode=mode)({"eta": 40.0})).all()


def exact_noisy(m, sd):
    """Return log E sigmoid(m + sd e) by adaptive quadrature around the peak, and its gradient."""

    def log_integrand(e):
        return special.log_expit(m + sd * e) - 0.5 * e * e - 0.5 * np.log(2 * np.pi)

    grid = np.linspace(-1.0, sd + 1.0, 20_001)
    top = log_integrand(grid).max()
    centre = grid[log_integrand(grid).argmax()]
    kink = [p for p in (-m / sd,) if abs(p - centre) < 14]

    def integral(f):
        return integrate.quad(
            lambda e: f(e) * np.exp(log_integrand(e) - top),
            centre - 14, centre + 14, points=[centre, *kink], epsabs=1e-11, epsrel=1e-10, limit=400,
        )[0]  # fmt: skip

    def slope(e):  # d log sigmoid(m + sd e) / dm
        return special.expit(-(m + sd * e))

    mass = integral(lambda e: 1.0)
    return top + np.log(mass), integral(slope) / mass, integral(lambda e: e * slope(e)) / mass


M = (-1e4, -300.0, -40.0, -5.0, -1.0, 0.0, 0.5, 3.0, 20.0, 300.0, 1e4)


@pytest.mark.parametrize("sd", [0.1, 0.5, 1.0, 3.0, 10.0])
def test_noisy_logistic_against_adaptive_quadrature(sd):
    exact = np.array([exact_noisy(m, sd) for m in M])
    np.testing.assert_allclose(noisy_logistic_logp(1, np.array(M), sd), exact[:, 0], atol=4e-8)
    y, scale = np.ones(len(M), dtype=int), np.full(len(M), sd)
    value, d_eta, d_sd = value_and_gradient(
        NoisyLogisticBernoulli, y, np.array(M), scale, mode="NUMBA"
    )
    np.testing.assert_allclose(value, exact[:, 0], atol=4e-8, rtol=1e-9)
    np.testing.assert_allclose(d_eta, exact[:, 1], atol=1e-6)
    np.testing.assert_allclose(d_sd, exact[:, 2], atol=1e-5)


def test_shortcuts_that_fail():
    """Negative controls: the probit approximation, and a window that does not follow the peak."""
    exact = exact_noisy(-100.0, 1.0)[0]
    kappa = special.log_expit(-100.0 / np.sqrt(1 + np.pi / 8))
    assert abs(kappa - exact) > 1.0
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    gauss = np.log(special.expit(2.0 + 10.0 * nodes) @ weights / np.sqrt(2 * np.pi))
    assert abs(gauss - exact_noisy(2.0, 10.0)[0]) > 1e-3


def test_noisy_logistic_extremes_and_symmetry():
    eta = np.array([-1e4, -3.0, 0.0, 2.0, 1e4])
    total = sum(np.exp(noisy_logistic_logp(y, eta, 1.7)) for y in (0, 1))
    np.testing.assert_allclose(total, 1.0, atol=1e-9)
    np.testing.assert_allclose(noisy_logistic_logp(1, eta, 0.01), logistic_logp(1, eta), atol=1e-3)


@pytest.mark.parametrize(("mu", "sigma"), [(0.0, 1.0), (0.7, 1.3), (-2.0, 0.4)])
def test_folded_normal(mu, sigma):
    x = np.array([0.0, 1e-3, 0.5, 2.0, 5.0])
    exact = stats.foldnorm.logpdf(x, abs(mu) / sigma, scale=sigma)
    np.testing.assert_allclose(folded_normal_logp(x, mu, sigma), exact, rtol=1e-10)
    with pm.Model():
        rv = FoldedNormal("x", mu, sigma)
    np.testing.assert_allclose(pm.logp(rv, x).eval(), exact, rtol=1e-10)
    assert folded_normal_logp(-0.1, mu, sigma) == -np.inf


def test_folded_normal_draws_and_transform():
    with pm.Model() as model:
        x = FoldedNormal("x", 0.7, 1.3)
    draws = pm.draw(x, 20_000, random_seed=1)
    exact = stats.foldnorm(0.7 / 1.3, scale=1.3)
    assert abs(draws.mean() - exact.mean()) < 4.5 * exact.std() / np.sqrt(len(draws))
    # sampled through log x, Jacobian included
    at = 0.4
    expected = folded_normal_logp(np.exp(at), 0.7, 1.3) + at
    assert model.compile_logp(mode="FAST_COMPILE")({"x_log__": at}) == pytest.approx(expected)


def test_predictive_draws_have_the_right_mean():
    with pm.Model() as model:
        LogisticBernoulli("plain", np.full(20_000, 0.8), observed=np.zeros(20_000, dtype=int))
        noisy = np.full(20_000, 2.0)
        NoisyLogisticBernoulli("noisy", noisy, 1.5, observed=np.zeros(20_000, dtype=int))
    prior = pm.sample_prior_predictive(1, model=model, random_seed=3)["prior_predictive"]
    expected = {"plain": special.expit(0.8), "noisy": np.exp(noisy_logistic_logp(1, 2.0, 1.5))}
    for name, p in expected.items():
        error = np.sqrt(p * (1 - p) / 20_000)
        assert abs(float(prior[name].mean()) - p) < 4.5 * error
