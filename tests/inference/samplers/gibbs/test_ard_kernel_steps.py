"""What the moves of feature weights are made of where eta is not linear in them."""

import numpy as np
import pytest
from scipy import special, stats

from ardvark.inference.samplers.gibbs import ard_kernel_steps as steps
from ardvark.inference.samplers.gibbs.ard_kernel import Sampler
from ardvark.inference.samplers.gibbs.ard_steps import Prior
from ardvark.models.parts.ard import WeightPrior
from tests.inference.samplers.gibbs.step_bench import posed
from tests.support import ALARM, rng

KERNELS = {
    "rbf": {"kernel": "rbf"},
    "degree-1": {"kernel": "polynomial", "degree": 1},
    "degree-3": {"kernel": "polynomial", "degree": 3},
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


# --- decision values ------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("size", ["tall", "fat"])
def test_decision_values_after_a_move(kernel, size):
    """Against the kernel's own matrix; and a move that is made gives the distances anew."""
    problem, random = posed("pfcvm", size, False, **KERNELS[kernel]), rng()
    sampler = Sampler(problem)
    state = sampler.start(random, 0)
    sampler.begin(state, random)
    columns, present, held, _ = state.given
    inner = present.inner.copy()
    K = problem.kernel.gram(problem.X, problem.Z, state.theta)
    np.testing.assert_allclose(sampler.gram(inner), K.T, rtol=1e-10)
    np.testing.assert_array_equal(inner, present.inner)  # not written over
    assert columns.symmetric == (size == "fat")
    kept = np.triu(np.ones_like(present.inner)) if columns.symmetric else 1.0
    present.inner[kept == 0.0] = np.nan  # nothing may read these
    which = np.array([2, 0])
    for growth in (1.0, 1.7):
        theta = growth * present.theta
        change = random.exponential(1.0, 2) - theta[which]
        theta[which] += change
        want = problem.hypers.kernel_of().gram(problem.X, problem.Z, theta) @ held.a
        found = np.empty(len(state.eta))
        steps.decide(columns, present.inner, growth, which, change, held.a, found)
        np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-12)
        inner = present.inner.copy()
        steps.shift(columns, inner, growth, which, change)
        now = np.where(kept == 0.0, np.nan, sampler.inner(theta))
        np.testing.assert_allclose(inner, now, rtol=1e-10, atol=1e-12)
    want = special.log_expit(columns.label_sign * state.eta).sum()
    found = steps.log_likelihood(columns.label_sign, present.Ka, state.bias)
    assert found == pytest.approx(want, rel=1e-12)
    extreme = steps.log_likelihood(np.array([1.0, -1.0]), np.array([900.0, 900.0]), 0.0)
    assert extreme == pytest.approx(-900.0, rel=1e-12)


# --- the laws of proposals ------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("shape", [0.5, 1.5])
def test_draws_of_either_side(shape):
    given = WeightPrior(shape, 0.02, 1.5)
    prior, random = Prior.of(given, positive=True), rng()
    t = stats.t(2.0 * shape, scale=given.scale)
    visible = t.isf(0.2)  # 0.4 of the positive side
    spike = [steps.draw_spike(random, prior, visible) for _ in range(4000)]
    assert stats.kstest(spike, lambda x: (2.0 * t.cdf(x) - 1.0) / 0.6).pvalue > ALARM / 2
    tail = [steps.draw_tail(random, prior, visible) for _ in range(4000)]
    law = stats.pareto(2.0 * shape, scale=visible)
    assert stats.kstest(tail, law.cdf).pvalue > ALARM / 2
    x = visible * np.array([1.0001, 1.3, 5.0, 400.0])
    found = [steps.log_tail(v, prior, visible) for v in x]
    np.testing.assert_allclose(found, law.logpdf(x), rtol=1e-10)


def test_moves_refuse_what_is_not_finite():
    """A proposal whose likelihood is NaN is rejected, and every loop ends."""
    sampler, random = Sampler(posed("pfcvm", "fat", False, kernel="rbf")), rng()
    state = sampler.start(random, 0)
    state.theta[:] = np.where(np.arange(7) % 2, 1e-3, 1.0)
    state.x[0], before = np.nan, state.theta.copy()
    for step in ("begin", "spike", "crossings", "exchanges", "walks", "scalings"):
        getattr(sampler, step)(state, random)
    np.testing.assert_array_equal(state.theta, before)
