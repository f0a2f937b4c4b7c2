"""The growth of everything that has the size of eta, beside the model's own density."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ardvark as av
from ardvark.inference.samplers.gibbs import horseshoe_growth as growth
from ardvark.inference.samplers.gibbs.horseshoe import Sampler
from tests.support import ALARM, rng

GIVEN = {"global_scale": 0.4, "slab_scale": 1.5, "slab_df": 5.0, "bias_sd": 0.8}


@pytest.fixture(params=[0, 2], ids=["no covariate", "two covariates"])
def posed(request):
    """A problem, its sampler and a point."""
    random = rng()
    names = [f"x{k}" for k in range(4 + request.param)]
    X = pd.DataFrame(random.standard_normal((9, len(names))), columns=names)
    always = names[4:]
    given = GIVEN | ({"covariate_sd": 1.3} if always else {})
    problem = av.problem("horseshoe", X, np.arange(9) % 2, always=always, **given)
    return problem, Sampler(problem), problem.simulate(random)


def given_of(sampler, state):
    """What the density of u is given."""
    always = np.append(state.bias, state.covariate) / sampler.fixed
    square = float(always @ always)
    return growth.Growth(state.tau, state.c2, square, len(always), sampler.tau_0, *sampler.slab)


def moved(problem, sampler, state, u):
    """The log density of the problem at the moved point, with the Jacobian of the move.

    The density is that of (b, f, ln c2, ln tau, ln lambda, beta over its sd). Of these only b and f
    are stretched.
    """
    s = np.exp(u)
    state.tau, state.c2 = s * state.tau, s * s * state.c2
    state.bias, state.covariate, state.beta = s * state.bias, s * state.covariate, s * state.beta
    point = sampler.point(state)
    point["eta"] = s * point["eta"]
    return float(problem.log_density(point)) + len(sampler.fixed) * u


def test_the_density_is_that_of_the_moved_point(posed):
    problem, sampler, point = posed
    sign = 2.0 * sampler.r
    at = sampler.state(point)
    found = [growth.log_growth(u, sign, at.eta, given_of(sampler, at)) for u in (0.0, -0.7, 1.1)]
    want = [moved(problem, sampler, sampler.state(point), u) for u in (0.0, -0.7, 1.1)]
    np.testing.assert_allclose(np.diff(found), np.diff(want), rtol=1e-9)


def test_large_decision_values_neither_overflow_nor_vanish():
    eta = np.concatenate([np.full(2000, 1e4), [-3e4, -800.0]])
    assert growth.log_likelihood(np.ones(2002), eta, 2.0) == pytest.approx(-6e4 - 1600.0)
    assert growth.log_likelihood(np.ones(5000), np.zeros(5000), 1.0) == pytest.approx(
        -5000.0 * np.log(2.0)
    )


@pytest.mark.statistical
def test_a_step_leaves_the_density(posed):
    _, sampler, point = posed
    state, sign, random = sampler.state(point), 2.0 * sampler.r, rng(3)
    given = given_of(sampler, state)
    at = np.linspace(-25.0, 25.0, 5001)
    log_p = np.array([growth.log_growth(u, sign, state.eta, given) for u in at])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    end = np.empty(6000)
    for k, u in enumerate(random.choice(at, size=len(end), p=p)):
        s = np.exp(u)
        here = given._replace(tau=s * given.tau, c2=s * s * given.c2, square=s * s * given.square)
        end[k] = u + np.log(growth.draw_growth(random, 0.5, sign, s * state.eta, here))
    assert stats.kstest(np.interp(end, at, np.cumsum(p)), "uniform").pvalue > ALARM


def test_the_sampler_moves_all_of_it(posed):
    """tau and beta grow alike, c2 by the square, and eta is that of the grown weights."""
    _, sampler, point = posed
    state, before = sampler.state(point), sampler.state(point)
    sampler.growth(state, rng(4))
    s = state.tau / before.tau
    assert s != 1.0
    np.testing.assert_allclose(state.c2, s * s * before.c2)
    np.testing.assert_allclose(state.beta, s * before.beta)
    np.testing.assert_allclose(
        np.append(state.bias, state.covariate), s * np.append(before.bias, before.covariate)
    )
    np.testing.assert_array_equal(state.local, before.local)
    np.testing.assert_allclose(state.eta, sampler.decision(state))
