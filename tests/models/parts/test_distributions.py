"""Rung 1 for the distributions: value, gradient and draws, also far out in the tails."""

import functools

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import special, stats

from ardvark.models.parts.distributions import (
    LogisticBernoulli,
    NoisyLogisticBernoulli,
    logistic_logp,
    noisy_logistic_logp,
)
from ardvark.models.parts.noisy_logistic import log_mean_sigmoid
from tests.support import ALARM, seed

ETA = np.array([-1e4, -800.0, -40.0, -1.0, 0.0, 1.0, 40.0, 800.0, 1e4])
MODES = pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])


@functools.cache
def compiled(mode):
    """Return (y, eta) -> log p(y) and its gradient, compiled once for all values."""
    y, eta = pt.lvector(), pt.dvector()
    with pm.Model():
        logp = pm.logp(LogisticBernoulli("y", eta), y)
    return pytensor.function([y, eta], [logp, pt.grad(logp.sum(), eta)], mode=mode)


@MODES
@pytest.mark.parametrize("label", [0, 1])
def test_logistic_is_finite_and_right_out_to_ten_thousand(label, mode):
    y = np.full(len(ETA), label)
    value, gradient = compiled(mode)(y, ETA)
    np.testing.assert_allclose(value, special.log_expit((2 * y - 1) * ETA), rtol=1e-12)
    np.testing.assert_allclose(gradient, y - special.expit(ETA), atol=1e-12)
    np.testing.assert_allclose(logistic_logp(y, ETA), value, rtol=1e-12)


def test_pymc_still_needs_the_replacement():
    """The reason `LogisticBernoulli` exists. If this fails, PyMC has mended it: use theirs."""
    with pm.Model() as model:
        eta = pm.Flat("eta")
        pm.Bernoulli("y", logit_p=eta, observed=0)
    assert np.isnan(model.compile_dlogp(mode="FAST_COMPILE")({"eta": 40.0})).all()


@pytest.mark.parametrize("sd", [0.1, 0.5, 1.0, 3.0, 10.0])
def test_two_rules_for_the_noisy_logistic_agree(sd):
    """`log_joint`'s, and that of the compiled density, which `test_noisy_logistic.py` proves."""
    m = np.array([-1e4, -300.0, -40.0, -5.0, -1.0, 0.0, 0.5, 3.0, 20.0, 300.0, 1e4])
    expected = log_mean_sigmoid(m, np.full(len(m), sd))[0]
    np.testing.assert_allclose(noisy_logistic_logp(1, m, sd), expected, atol=4e-8)


def test_shortcuts_that_fail():
    """Negative controls: the probit approximation, and a window that does not follow the peak."""
    exact, near = log_mean_sigmoid(np.array([-100.0, 2.0]), np.array([1.0, 10.0]))[0]
    kappa = special.log_expit(-100.0 / np.sqrt(1 + np.pi / 8))
    assert abs(kappa - exact) > 1.0
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    gauss = np.log(special.expit(2.0 + 10.0 * nodes) @ weights / np.sqrt(2 * np.pi))
    assert abs(gauss - near) > 1e-3


def test_noisy_logistic_extremes_and_symmetry():
    eta = np.array([-1e4, -3.0, 0.0, 2.0, 1e4])
    total = sum(np.exp(noisy_logistic_logp(y, eta, 1.7)) for y in (0, 1))
    np.testing.assert_allclose(total, 1.0, atol=1e-9)
    np.testing.assert_allclose(noisy_logistic_logp(1, eta, 0.01), logistic_logp(1, eta), atol=1e-3)


@pytest.mark.statistical
def test_predictive_draws_have_the_right_mean():
    N = 20_000
    with pm.Model() as model:
        LogisticBernoulli("plain", np.full(N, 0.8), observed=np.zeros(N, dtype=int))
        noisy = np.full(N, 2.0)
        NoisyLogisticBernoulli("noisy", noisy, 1.5, observed=np.zeros(N, dtype=int))
    draws = pm.draw(model.observed_RVs, random_seed=seed(3), mode="FAST_COMPILE")
    expected = (special.expit(0.8), np.exp(noisy_logistic_logp(1, 2.0, 1.5)))
    for y, p in zip(draws, expected, strict=True):
        assert stats.binomtest(int(y.sum()), N, float(p)).pvalue > ALARM / 2
