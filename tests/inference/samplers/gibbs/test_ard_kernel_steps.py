"""What the moves of feature weights are made of where eta is not linear in them."""

from types import FunctionType, SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

from ardvark.inference.samplers.gibbs import ard_kernel_steps as steps
from ardvark.inference.samplers.gibbs.ard_kernel import Sampler
from ardvark.inference.samplers.gibbs.ard_steps import Pairs, Prior, partner_chance
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


# --- what is accepted -----------------------------------------------------------------------------


def accepted(name, sampler, given, *counts):
    """The moves of a step that are all accepted: theta before and after, and their log odds."""
    noted = []

    def accept(_, given, growth, which, change, log_odds):
        before = given.present.theta.copy()
        after = growth * before
        after[which] += change
        noted.append((before, after, log_odds))
        return True

    move = getattr(steps, name).py_func
    move = FunctionType(move.__code__, vars(steps) | {"accept": accept})
    move(rng(6), *counts[:-1], given, *counts[-1])
    return noted


def test_the_odds_of_a_move_are_those_of_prior_and_proposal():
    """All that is not the likelihood, for the density t(x) slab(x) of each weight."""
    shape, rate, slab, D, visible = 1.5, 0.02, 1.5, 7, 0.4
    sampler = Sampler(posed("pfcvm", "fat", False, kernel="rbf"))
    state = sampler.start(rng(), 0)
    state.theta[:] = [0.01, 0.7, 0.05, 1.4, 0.2, 0.9, 0.3]
    sampler.begin(state, rng())
    prior = Prior.of(WeightPrior(shape, rate, slab), positive=True)
    given = state.given._replace(prior=prior)
    t = stats.t(2.0 * shape, scale=WeightPrior(shape, rate, slab).scale)
    partner = np.full((D, D - 1), -1)
    partner[0], partner[1:, 0] = np.arange(1, D), 0  # a star
    pairs = Pairs(visible, partner, np.array([D - 1] + [1] * (D - 1)))

    def log_prior(x):
        return (t.logpdf(x) - 0.5 * (x / slab) ** 2).sum()

    def of_scaling(x, new, d):
        return D * np.log(new[0] / x[0])

    def of_walk(x, new, d):
        return np.log(new[d[0]] / x[d[0]])

    def of_crossing(x, new, d):
        """ln q(old) - ln q(new), of the tail's power law and the rest of t on the other side."""
        share, at = 2.0 * t.sf(visible), (x[d[0]], new[d[0]])
        tail = stats.pareto(2.0 * shape, scale=visible)
        old, now = (
            tail.logpdf(v) if v > visible else np.log(2.0) + t.logpdf(v) - np.log1p(-share)
            for v in at
        )
        return old - now

    def of_exchange(x, new, d):
        """The visible one of the two goes first; both are visible in some."""
        i, j = d if np.isclose(new[d[0]], x[d[1]], rtol=1e-12) else d[::-1]
        back, to = partner_chance(i, j, D, pairs), partner_chance(j, i, D, pairs)
        return np.log(new[j] / x[i]) + np.log(back / to)

    def of_spike(x, new, d):
        return (t.logpdf(x) - t.logpdf(new)).sum()

    moves = {
        "scalings": ((5, 0.3, ()), of_scaling),
        "walks": ((3, 0.2, (visible,)), of_walk),
        "crossings": ((40, (visible, 2.0 * t.sf(visible))), of_crossing),
        "exchanges": ((40, 0.3, (pairs,)), of_exchange),
        "spike_block": ((0.6, (visible,)), of_spike),
    }
    for name, (counts, proposal) in moves.items():
        before = given.present.theta.copy()
        noted = accepted(name, sampler, given, *counts)
        given.present.theta[:] = before
        assert len(noted) >= (1 if name == "spike_block" else 5)
        for x, new, log_odds in noted:
            want = log_prior(new) - log_prior(x) + proposal(x, new, np.flatnonzero(x != new))
            assert log_odds == pytest.approx(want, rel=1e-7, abs=1e-9), name


@pytest.mark.parametrize("covariates", [False, True])
def test_what_is_accepted_is_the_new_likelihood(covariates):
    """With what covariates add to it: the sum at which a move is just accepted, or not."""
    problem = posed("pfcvm", "tall", covariates, kernel="rbf")
    sampler = Sampler(problem)
    state = sampler.start(rng(), 0)
    sampler.begin(state, rng())
    which, change = np.array([1]), np.array([0.3])
    there = sampler.point(state) | {"feature_weight": state.theta + 0.3 * (np.arange(3) == 1)}
    s, eta = sampler.label_sign, problem.decision(there)
    gain = (special.log_expit(s * eta) - special.log_expit(s * state.eta)).sum()
    for more, taken in ((-1e-9, False), (1e-9, True)):
        told = SimpleNamespace(standard_exponential=lambda: 2.0)
        given = state.given
        found = steps.accept.py_func(told, given, 1.0, which, change, -2.0 - gain + more)
        assert found == taken
    np.testing.assert_allclose(given.present.Ka + state.bias, eta, rtol=1e-10)


def test_moves_refuse_what_is_not_finite():
    """A proposal whose likelihood is NaN is rejected, and every loop ends."""
    sampler, random = Sampler(posed("pfcvm", "fat", False, kernel="rbf")), rng()
    state = sampler.start(random, 0)
    state.theta[:] = np.where(np.arange(7) % 2, 1e-3, 1.0)
    state.x[0], before = np.nan, state.theta.copy()
    for step in ("begin", "spike", "crossings", "exchanges", "walks", "scalings"):
        getattr(sampler, step)(state, random)
    np.testing.assert_array_equal(state.theta, before)
