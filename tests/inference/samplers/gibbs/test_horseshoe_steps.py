"""What the steps of the horseshoe are made of, beside its definition or dense linear algebra."""

import itertools

import numpy as np
import pytest
from scipy import stats

import ardvark as av
from ardvark.inference.samplers.gibbs import horseshoe_steps as steps
from ardvark.inference.samplers.gibbs.ard_steps import Pairs, partner_chance
from ardvark.inference.samplers.gibbs.horseshoe_steps import Scales
from ardvark.inference.samplers.gibbs.method import make_sampler
from ardvark.inference.samplers.gibbs.partners import correlated
from ardvark.inference.samplers.gibbs.working import Working
from tests.support import ALARM, rng, z_limit

CASES = {  # linear, precision, scales: faint, a clear slab, both modes, beyond the slab, a flat one
    "faint": (0.8, 2.0, Scales(0.05, 4.0)),
    "slab": (30.0, 9.0, Scales(0.01, 4.0)),
    "both": (9.5, 9.0, Scales(0.003, 4.0)),
    "bound": (60.0, 9.0, Scales(0.5, 1.0)),
    "wide": (3.0, 1.0, Scales(5.0, 2.0)),
}
each_case = pytest.mark.parametrize("case", CASES)


def v_of(local, scales):
    """The variance of a weight, from the definition of the prior."""
    return 1.0 / ((scales.tau * local) ** -2.0 + 1.0 / scales.c2)


def local_density(case):
    """Return the grid of ln lambda, and the probability of each point, from the definition."""
    linear, precision, scales = CASES[case]
    at = np.linspace(-14.0, 16.0, 6001)
    v = v_of(np.exp(at), scales)
    log_p = stats.halfcauchy.logpdf(np.exp(at)) + at
    log_p += -0.5 * np.log1p(v * precision) + 0.5 * linear**2 * v / (1.0 + v * precision)
    p = np.exp(log_p - log_p.max())
    return at, p / p.sum()


def bins(case):
    """Return cuts of ln lambda and the probabilities of the parts between, each above 2 %."""
    at, p = local_density(case)
    cumulated = np.cumsum(p)
    places = np.unique(np.searchsorted(cumulated, np.linspace(0.05, 0.95, 13)))
    cuts = at[places]
    return cuts, np.diff(np.concatenate([[0.0], cumulated[places], [1.0]]))


def moved(case, step, n=40_000):
    """Return the share of each part after one step from exact draws of lambda."""
    at, p = local_density(case)
    random, (linear, precision, scales) = rng(), CASES[case]
    start = np.exp(random.choice(at, size=n, p=p))
    end = [step(random, linear, precision, scales, x) for x in start]
    return start, np.array(end)


def z_of(case, end):
    """Return the largest z of the shares of the parts of `bins`."""
    cuts, want = bins(case)
    found = np.bincount(np.searchsorted(cuts, np.log(end)), minlength=len(want)) / len(end)
    return np.abs((found - want) / np.sqrt(want * (1.0 - want) / len(end))).max(), len(want)


@pytest.mark.statistical
@each_case
def test_a_step_of_a_local_scale_leaves_its_conditional(case):
    start, end = moved(case, steps.draw_local)
    z, parts = z_of(case, end)
    assert z < z_limit(parts)
    assert (start != end).mean() > 0.25  # it moves


def test_a_proposal_is_a_mixture_of_two_half_cauchys():
    share, peak = 0.3, 50.0
    x = np.exp(np.linspace(-8.0, 12.0, 50))
    q = share * stats.halfcauchy.pdf(x) + (1.0 - share) * stats.halfcauchy.pdf(x, scale=peak)
    found = [steps.log_excess(a, share, peak) for a in x]
    np.testing.assert_allclose(found, np.log(q / stats.halfcauchy.pdf(x)), rtol=1e-9, atol=1e-12)


@pytest.mark.statistical
def test_a_half_cauchy_draw():
    random = rng()
    x = np.array([steps.draw_half_cauchy(random, 3.0) for _ in range(20_000)])
    assert stats.kstest(x, stats.halfcauchy(scale=3.0).cdf).pvalue > ALARM


# --- pairs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("v", [(0.3, 2.0), (1e-9, 4.0)], ids=str)
@pytest.mark.parametrize("cross", [0.0, 1.7, -2.9])
def test_two_weights_are_integrated_out(v, cross):
    """Beside dense algebra: m = det(I + V P)^-1/2 exp(L' (P + V^-1)^-1 L / 2)."""
    L, P = np.array([2.0, -1.2]), np.array([[3.0, cross], [cross, 4.0]])
    precision = P + np.diag(1.0 / np.array(v))
    want = 0.5 * L @ np.linalg.solve(precision, L)
    want -= 0.5 * np.linalg.slogdet(np.eye(2) + np.diag(v) @ P)[1]
    assert steps.log_pair_integral(*v, tuple(L), (3.0, 4.0), cross) == pytest.approx(want)


# --- the scales -----------------------------------------------------------------------------------


@pytest.fixture
def block():
    """The Block of a state with two of five features in A, and what it is made of."""
    given = {"global_scale": 0.4, "slab_scale": 1.5, "slab_df": 5.0, "bias_sd": 0.8}
    data = rng().standard_normal((7, 5)), np.arange(7) % 2
    sampler = make_sampler(av.problem("horseshoe", data, **given))
    state = sampler.start(rng(1), 0)
    state.local[:] = [0.3, 40.0, 1.0, 9.0, 0.1]
    state.eta, omega = sampler.decision(state), rng(2).gamma(2.0, 0.1, 7)
    state.working = Working(sampler.always, sampler.Xt, omega, 0.5 * sampler.label_sign, state.eta)
    return sampler.integrated(state, state.local > 5.0)[2], state


def by_dense_algebra(state, s, c2):
    """ln p(s tau, c2, s times the weights outside A, r | omega), with the Jacobian in ln s, ln c2.

    The likelihood exp(r'eta - eta'W eta / 2) is that of r / omega ~ Normal(eta, omega^-1/2).
    """
    A, B, working = [1, 3], [0, 2, 4], state.working
    scales = Scales(s * state.tau, c2)
    v, X, beta = v_of(state.local, scales), working.rows.T, s * state.beta[B]
    covariance = np.diag(1.0 / working.W) + 0.8**2 + (X[:, A] * v[A]) @ X[:, A].T
    r = working.r / working.W
    total = stats.multivariate_normal.logpdf(r, X[:, B] @ beta, covariance)
    total += stats.norm.logpdf(beta, 0.0, v[B] ** 0.5).sum()
    total += stats.halfcauchy.logpdf(scales.tau, scale=0.4)
    total += stats.invgamma.logpdf(c2, 2.5, scale=2.5 * 1.5**2)
    return total + (len(B) + 1) * np.log(s) + np.log(c2)


def test_the_density_of_the_scales(block):
    """At the block, and at that of a smaller tau."""
    block, state = block
    for s, at in ((1.0, block), (0.3, steps.scaled(block, 0.3))):
        places = [(1.0, state.c2), (0.3, state.c2), (2.5, 0.7), (1.0, 9.0)]
        found = [steps.log_scales(at, g, Scales(s * state.tau, c2)) for g, c2 in places]
        want = [by_dense_algebra(state, s * g, c2) for g, c2 in places]
        np.testing.assert_allclose(np.diff(found), np.diff(want), rtol=1e-9)
    up = [steps.log_along(0.5, axis, block, Scales(state.tau, state.c2)) for axis in (0, 1)]
    here, e = by_dense_algebra(state, 1.0, state.c2), np.exp(0.5)
    want = [by_dense_algebra(state, e, state.c2), by_dense_algebra(state, 1.0, e * state.c2)]
    zero = steps.log_along(0.0, 0, block, Scales(state.tau, state.c2))
    np.testing.assert_allclose(np.array(up) - zero, np.array(want) - here, rtol=1e-9)


def test_many_small_weights_do_not_overflow(block):
    block, state = block
    at = Scales(state.tau, 2.0)
    many, none = (
        np.diff([steps.log_scales(block._replace(t=t), s, at) for s in (1.0, 1.5)])
        for t in (np.full(5000, 3.0), np.empty(0))
    )
    want = 2500.0 * (np.log1p(1.5**2 * 1.5) - np.log1p(1.5))
    assert (many - none)[0] == pytest.approx(want)


# --- what the scans keep --------------------------------------------------------------------------


def test_a_row_of_partners_says_both_chances():
    """Two chances taken from two rows would differ where one side's degree is used for both."""
    columns = rng(6).normal(size=(8, 12))
    star = Pairs(0.5, np.array([[1, 2], [0, -1], [0, -1], [-1, -1]]), np.array([2, 1, 1, 0]))
    for pairs in (star, Pairs(0.5, *correlated(columns, 2))):
        D = len(pairs.degree)
        for i, j in itertools.permutations(range(D), 2):
            expected = partner_chance(j, i, D, pairs), partner_chance(i, j, D, pairs)
            assert steps.partner_chances(i, j, D, pairs) == expected
