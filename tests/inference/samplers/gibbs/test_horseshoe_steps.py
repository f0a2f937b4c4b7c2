"""The steps of the horseshoe's Gibbs sampler, each beside quadrature or dense linear algebra."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

import ardvark as av
from ardvark.inference.samplers.gibbs import horseshoe_steps as steps
from ardvark.inference.samplers.gibbs.ard_steps import Pairs, partner_chance
from ardvark.inference.samplers.gibbs.horseshoe import Sampler
from ardvark.inference.samplers.gibbs.horseshoe_steps import Scales
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


@each_case
def test_a_weight_is_integrated_out(case):
    linear, precision, scales = CASES[case]
    for local in (0.2, 1.0, 40.0):
        v = v_of(local, scales)
        assert steps.variance(local, scales) == pytest.approx(v)
        kept = v / (1.0 + v * precision)
        x = kept * linear + kept**0.5 * np.linspace(-12.0, 12.0, 4001)
        log_f = stats.norm.logpdf(x, 0.0, v**0.5) + linear * x - 0.5 * precision * x**2
        peak = log_f.max()
        want = np.log(integrate.trapezoid(np.exp(log_f - peak), x)) + peak
        assert steps.log_integral(v, linear, precision) == pytest.approx(want, abs=1e-7)


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


@pytest.mark.statistical
@pytest.mark.parametrize("case", ["both", "slab"])
def test_a_step_without_its_proposal_is_caught(case):
    """Negative control: the ratio of the proposals left out."""

    def wrong(random, linear, precision, scales, local):
        share, peak = steps.proposal(linear, precision, scales)
        new = abs(random.standard_cauchy()) * (1.0 if random.random() < share else peak)
        gain = np.diff(
            [steps.log_integral(v_of(x, scales), linear, precision) for x in (local, new)]
        )
        return new if random.standard_exponential() > -gain[0] else local

    z, parts = z_of(case, moved(case, wrong)[1])
    assert z > z_limit(parts)


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


@pytest.mark.statistical
def test_two_weights_are_drawn():
    v, L, P, cross, n = (0.3, 2.0), (2.0, -1.2), (3.0, 4.0), 1.7, 20_000
    covariance = np.linalg.inv(np.array([[P[0] + 1 / v[0], cross], [cross, P[1] + 1 / v[1]]]))
    random, root = rng(), np.linalg.cholesky(covariance)
    x = np.array([steps.draw_pair(random, *v, L, P, cross) for _ in range(n)])
    white = np.linalg.solve(root, (x - covariance @ L).T)
    moments = np.array(
        [*white.mean(1), *(white**2 - 1.0).mean(1) / 2**0.5, (white[0] * white[1]).mean()]
    )
    assert np.abs(moments).max() * n**0.5 < z_limit(5)


# --- the scales -----------------------------------------------------------------------------------


@pytest.fixture
def state():
    """A sampler whose A has two of five features, a state of it and omega."""
    data = rng().standard_normal((7, 5)), np.arange(7) % 2
    given = {"global_scale": 0.4, "slab_scale": 1.5, "slab_df": 5.0, "bias_sd": 0.8}
    sampler = Sampler(av.problem("horseshoe", data, **given))
    state = sampler.start(rng(1), 0)
    state.local[:] = [0.3, 40.0, 1.0, 9.0, 0.1]
    return sampler, state, rng(2).gamma(2.0, 0.1, 7)


def block_of(sampler, state, omega):
    """The Block of a state, whose A is the second and the fourth feature."""
    working = Working(sampler.always, sampler.Xt, omega, sampler.r, state.eta)
    return sampler.integrated(state, working, state.local > 5.0)[2]


def by_dense_algebra(sampler, state, omega, s, c2):
    """Return ln p(tau s, c2, scaled weights, r | omega) + ln of the Jacobian, by its definition.

    The likelihood exp(r'eta - eta'W eta / 2) is that of r / omega ~ Normal(eta, omega^-1/2).
    """
    A, B = [1, 3], [0, 2, 4]
    scales = Scales(s * state.tau, c2)
    v = v_of(state.local, scales)
    X = sampler.Xt.T
    beta = s * state.beta[B]
    covariance = np.diag(1.0 / omega) + 0.8**2 + (X[:, A] * v[A]) @ X[:, A].T
    mean = X[:, B] @ beta
    total = stats.multivariate_normal.logpdf(sampler.r / omega, mean, covariance)
    total += stats.norm.logpdf(beta, 0.0, v[B] ** 0.5).sum()
    total += stats.halfcauchy.logpdf(scales.tau, scale=0.4)
    total += stats.invgamma.logpdf(c2, 2.5, scale=2.5 * 1.5**2)
    return total + (len(B) + 1) * np.log(s) + np.log(c2)


def test_the_density_of_the_scales(state):
    sampler, state, omega = state
    block = block_of(sampler, state, omega)
    places = [(1.0, state.c2), (0.3, state.c2), (2.5, 0.7), (1.0, 9.0)]
    found = [steps.log_scales(block, s, Scales(state.tau, c2)) for s, c2 in places]
    want = [by_dense_algebra(sampler, state, omega, s, c2) for s, c2 in places]
    np.testing.assert_allclose(np.diff(found), np.diff(want), rtol=1e-9)
    after = steps.scaled(block, 0.3)
    found = [steps.log_scales(after, s, Scales(0.3 * state.tau, 0.7)) for s in (1.0, 2.0)]
    want = [by_dense_algebra(sampler, state, omega, s, 0.7) for s in (0.3, 0.6)]
    np.testing.assert_allclose(np.diff(found), np.diff(want), rtol=1e-9)


def test_many_small_weights_do_not_overflow(state):
    sampler, state, omega = state
    block = block_of(sampler, state, omega)._replace(t=np.full(5000, 3.0))
    found = [steps.log_scales(block, s, Scales(state.tau, 2.0)) for s in (1.0, 1.5)]
    one = [
        steps.log_scales(block._replace(t=np.empty(0)), s, Scales(state.tau, 2.0))
        for s in (1.0, 1.5)
    ]
    want = 2500.0 * (np.log1p(1.5**2 * 1.5) - np.log1p(1.5))
    assert np.diff(found)[0] - np.diff(one)[0] == pytest.approx(want)


@pytest.mark.statistical
@pytest.mark.parametrize("axis", [0, 1])
def test_a_slice_step_leaves_the_density(state, axis):
    sampler, state, omega = state
    block, scales = block_of(sampler, state, omega), Scales(state.tau, state.c2)
    at = np.linspace(-25.0, 25.0, 5001)
    log_p = np.array([steps.log_along(u, axis, block, scales) for u in at])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    random, n = rng(3), 6000
    end = np.empty(n)
    for k, u in enumerate(random.choice(at, size=n, p=p)):
        here, now = block, Scales(state.tau, state.c2 * np.exp(u))
        if axis == 0:
            here, now = steps.scaled(block, np.exp(u)), Scales(state.tau * np.exp(u), state.c2)
        end[k] = u + steps.draw_along(random, axis, here, now)
    cumulated = np.cumsum(p)
    assert stats.kstest(np.interp(end, at, cumulated), "uniform").pvalue > ALARM


@pytest.mark.statistical
def test_the_block_is_drawn(state):
    """Beside dense algebra, with the bias first."""
    sampler, state, omega = state
    block, n, random = block_of(sampler, state, omega), 20_000, rng(4)
    scales = Scales(state.tau, state.c2)
    x = np.array([steps.draw_block(random, block, scales) for _ in range(n)])
    H = np.vstack([np.ones(7), sampler.Xt[[1, 3]]])
    prior = np.append(0.8**2, v_of(state.local[[1, 3]], scales))
    covariance = np.linalg.inv((H * omega) @ H.T + np.diag(1.0 / prior))
    e = state.beta[[0, 2, 4]] @ sampler.Xt[[0, 2, 4]]
    white = np.linalg.solve(
        np.linalg.cholesky(covariance), (x - covariance @ (H @ (sampler.r - omega * e))).T
    )
    products = (white @ white.T / n - np.eye(3))[np.tril_indices(3)]
    moments = np.append(
        white.mean(1), products / np.where(np.eye(3)[np.tril_indices(3)], 2**0.5, 1.0)
    )
    assert np.abs(moments).max() * n**0.5 < z_limit(9)


# --- what the scans keep --------------------------------------------------------------------------


def test_scans_keep_the_score(state):
    """The score is r - W eta after a scan, and the lambdas of an exchange are permuted."""
    sampler, state, omega = state
    rest = state.eta - state.beta @ sampler.Xt
    score = sampler.r - omega * state.eta
    given = rng(5), sampler.Xt, omega, Scales(state.tau, state.c2)
    steps.weight_scan(*given, score, state.beta, state.local)
    np.testing.assert_allclose(score, sampler.r - omega * (rest + state.beta @ sampler.Xt))
    before = np.sort(state.local)
    pairs = Pairs(0.5, *correlated(sampler.Xt.T, 2))
    count = steps.exchange_scan(given[0], 200, *given[1:], pairs, score, state.beta, state.local)
    assert count > 0
    np.testing.assert_array_equal(np.sort(state.local), before)
    np.testing.assert_allclose(score, sampler.r - omega * (rest + state.beta @ sampler.Xt))


def test_a_row_of_partners_says_both_chances():
    """Two chances taken from two rows would differ where one side's degree is used for both."""
    columns = rng(6).normal(size=(8, 12))
    star = Pairs(0.5, np.array([[1, 2], [0, -1], [0, -1], [-1, -1]]), np.array([2, 1, 1, 0]))
    for pairs in (star, Pairs(0.5, *correlated(columns, 2))):
        D = len(pairs.degree)
        for i, j in itertools.permutations(range(D), 2):
            expected = partner_chance(j, i, D, pairs), partner_chance(i, j, D, pairs)
            assert steps.partner_chances(i, j, D, pairs) == expected
