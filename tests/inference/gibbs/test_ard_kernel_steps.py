"""The moves of the feature weights under kernels in which eta is not linear, each against its law.

A move that leaves a law invariant starts at draws of that law, so where it ends are draws too:
exact two-sample Kolmogorov-Smirnov tests.
"""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from ardvark.inference.gibbs import ard_kernel_steps as steps
from ardvark.inference.gibbs.ard_kernel import Sampler
from ardvark.inference.gibbs.ard_steps import Prior
from ardvark.models.parts.ard import WeightPrior
from tests.inference.gibbs.ard_problems import made
from tests.support import ALARM, rng

LAW = WeightPrior(0.5, 0.02, 1.5)
PRIOR = Prior.of(LAW, positive=True)
VISIBLE = 0.5
KERNELS = {
    "rbf": {"kernel": "rbf"},
    "degree-1": {"kernel": "polynomial", "degree": 1},
    "degree-3": {"kernel": "polynomial", "degree": 3},
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def parts(sampler, state):
    """What the moves take."""
    inner = sampler.inner(state.theta)
    present = steps.Present(state.theta.copy(), inner, state.eta - state.bias)
    return sampler.columns, present, steps.Held(sampler.weights.sign * state.x, state.bias)


# --- decision values ------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("B", [4, None])
def test_decision_values_after_a_move(kernel, B):
    """Against the kernel's own matrix; and a move that is made gives the distances anew."""
    problem, random = made(N=9, D=5, B=B, **KERNELS[kernel]), rng()
    sampler = Sampler(problem)
    state = sampler.start(random, 0)
    columns, present, held = parts(sampler, state)
    assert columns.symmetric == (B is None)
    kept = np.triu(np.ones_like(present.inner)) if columns.symmetric else 1.0
    present.inner[kept == 0.0] = np.nan  # nothing may read these
    which = np.array([3, 0])
    for growth in (1.0, 1.7):
        theta = growth * present.theta
        change = random.exponential(1.0, 2) - theta[which]
        theta[which] += change
        want = problem.hypers.kernel_of().gram(problem.X, problem.Z, theta) @ held.a
        found = np.empty(9)
        steps.decide(columns, present.inner, growth, which, change, held.a, found)
        np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-12)
        inner = present.inner.copy()
        steps.shift(columns, inner, growth, which, change)
        now = np.where(kept == 0.0, np.nan, sampler.inner(theta))
        np.testing.assert_allclose(inner, now, rtol=1e-10, atol=1e-12)
    want = special.log_expit(columns.s * state.eta).sum()
    found = steps.log_likelihood(columns.s, present.Ka, state.bias)
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


# --- moves leave the posterior of theta -----------------------------------------------------------

D = 3
SIGNS = np.array([1.0, -1.0, 1.0, 1.0])


def tiny():
    """Four rows, two centres, of features that are nearly alike: held sample weights and bias."""
    fixed = np.random.default_rng(7)  # the likelihood is one, whatever the run's seeds
    X = fixed.standard_normal((4, D))
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    Xt = np.ascontiguousarray(X.T)
    columns = steps.Columns(2, 0, Xt, np.ascontiguousarray(Xt[:, [0, 3]]), SIGNS, False)
    return columns, steps.Held(np.array([3.0, -2.5]), 0.4)


def distances(columns, theta):
    """S (B, N) of one theta, by its definition."""
    gaps = (columns.Zt[:, :, None] - columns.Xt[:, None, :]) ** 2
    return np.einsum("d,dbn->bn", theta, gaps)


def log_likelihood(columns, held, theta):
    """Of many theta (n, D), by its definition."""
    gaps = (columns.Zt[:, :, None] - columns.Xt[:, None, :]) ** 2
    K = np.exp(-np.einsum("kd,dbn->kbn", theta, gaps))
    eta = held.bias + np.einsum("b,kbn->kn", held.a, K)
    return special.log_expit(columns.s * eta).sum(-1)


def posterior(random, n):
    """Exact draws (about n, D) of theta given the sample weights and the bias, by rejection."""
    columns, held = tiny()
    found = []
    while sum(map(len, found)) < n:
        x = np.abs(LAW.scale * random.standard_t(1.0, (20_000, D)))
        log_kept = -0.5 * (x**2).sum(-1) / LAW.slab**2 + log_likelihood(columns, held, x)
        found.append(x[np.log(random.random(len(x))) < log_kept])
    return np.concatenate(found)[:n]


PAIRS = steps.Pairs(
    VISIBLE, np.array([[1, 2], [0, -1], [0, -1]]), np.array([2, 1, 1])
)  # a star: 0 has two partners, the others only it
SHARE = 2.0 * stats.t.sf(VISIBLE, 1.0, scale=LAW.scale)
MOVES = {
    "block": lambda random, *at: steps.spike_block(random, 1.0, *at, PRIOR, VISIBLE),
    "part of a block": lambda random, *at: steps.spike_block(random, 0.5, *at, PRIOR, VISIBLE),
    "crossings": lambda random, *at: steps.crossings(random, 4, *at, PRIOR, VISIBLE, SHARE),
    "exchanges": lambda random, *at: steps.exchanges(random, 4, 0.7, *at, PRIOR, PAIRS),
    "walks": lambda random, *at: steps.walks(random, 3, 1.0, *at, PRIOR, VISIBLE),
    "scalings": lambda random, *at: steps.scalings(random, 3, 0.5, *at, PRIOR),
}


def ends(move, random, n):
    """Starts at draws of the posterior, ends after the move, and how many of them moved."""
    columns, held = tiny()
    starts = posterior(random, n)
    out, moved = starts.copy(), 0
    for k, theta in enumerate(starts):
        inner = distances(columns, theta)
        present = steps.Present(theta.copy(), inner, held.a @ np.exp(-inner))
        move(random, columns, present, held)
        out[k] = present.theta
        moved += bool((out[k] != theta).any())
        # what it updates in place belongs to the theta it returns
        np.testing.assert_allclose(inner, distances(columns, out[k]), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(present.Ka, held.a @ np.exp(-inner), rtol=1e-8, atol=1e-9)
    return starts, out, moved / n


def p_value(one, other):
    """Of two samples of theta being of one law: every weight, their pairs, and their sum."""

    def looks(x):
        ranks = x / (x + LAW.scale)
        return np.column_stack([ranks, ranks.sum(1), x[:, 0] - x[:, 1], x.max(1), x.min(1)])

    found = [stats.ks_2samp(a, b).pvalue for a, b in zip(looks(one).T, looks(other).T, strict=True)]
    return len(found) * min(found)


@pytest.mark.statistical
@pytest.mark.parametrize("name", MOVES)
def test_a_move_leaves_the_posterior(name):
    random = rng()
    _, found, moved = ends(MOVES[name], random, 4000)
    assert moved > 0.05
    assert p_value(found, posterior(random, 40_000)) > ALARM


@pytest.mark.statistical
def test_a_block_knows_a_slab_that_is_narrower_than_the_spike():
    """Without a likelihood, weights below visible keep t(x) slab(x), here of scales 1 and 1/2."""
    law, visible, random = WeightPrior(0.5, 0.5, 0.5), 2.0, rng()
    prior = Prior.of(law, positive=True)
    x = np.linspace(0.0, visible, 2001)
    f = stats.t.pdf(x, 1.0, scale=law.scale) * np.exp(-0.5 * (x / law.slab) ** 2)
    F = integrate.cumulative_trapezoid(f, x, initial=0.0)
    columns, _ = tiny()
    held = steps.Held(np.zeros(2), 0.4)
    found = np.interp(random.random((500, D)), F / F[-1], x)
    for theta in found:
        present = steps.Present(theta, distances(columns, theta), np.zeros(4))
        for _ in range(20):
            steps.spike_block(random, 0.5, columns, present, held, prior, visible)
    assert stats.kstest(found.ravel(), lambda at: np.interp(at, x, F / F[-1])).pvalue > ALARM


@pytest.mark.statistical
def test_all_moves_reach_the_posterior_from_anywhere():
    """From theta far apart, in which other weights are visible."""
    random = rng()
    columns, held = tiny()
    found = np.empty((1500, D))
    for k in range(len(found)):
        theta = np.array([(1e-6, 2.0)[k % 2], 1e-6, (1e-6, 1.0)[k % 2]])
        inner = distances(columns, theta)
        present = steps.Present(theta, inner, held.a @ np.exp(-inner))
        for _ in range(25):
            for move in MOVES.values():
                move(random, columns, present, held)
        found[k] = present.theta
    assert p_value(found, posterior(random, 40_000)) > ALARM


class Exact:
    """A likelihood that is constant: the moves then leave the prior with its slab."""

    @staticmethod
    def cdf(x):
        """The distribution function of one weight."""
        x = np.atleast_1d(x)
        grid = LAW.scale * np.sinh(np.linspace(0.0, np.arcsinh(12.0 / LAW.scale), 20_001))
        f = stats.t.pdf(grid, 1.0, scale=LAW.scale) * np.exp(-0.5 * (grid / LAW.slab) ** 2)
        F = integrate.cumulative_trapezoid(f, grid, initial=0.0)
        return np.interp(x, grid, F / F[-1])


@pytest.mark.statistical
def test_without_a_likelihood_the_prior_is_left():
    """Sample weights of 0: every move together leaves each weight its prior."""
    random = rng()
    columns, _ = tiny()
    held = steps.Held(np.zeros(2), 0.4)
    found = np.empty((1500, D))
    for k in range(len(found)):
        theta = np.full(D, (1e-5, 1.0)[k % 2])
        present = steps.Present(theta, distances(columns, theta), np.zeros(4))
        for _ in range(25):
            for move in MOVES.values():
                move(random, columns, present, held)
        found[k] = present.theta
    for d in range(D):
        assert stats.kstest(found[:, d], Exact.cdf).pvalue > ALARM / D


# --- negative controls ----------------------------------------------------------------------------


WRONG = {
    "tail density": ("log_tail", lambda *_: 0.0, "crossings", 4),
    "prior of a walk": ("log_prior", lambda *_: 0.0, "walks", 6),
    "chance of a pair": ("partner_chance", lambda *_: 1.0, "exchanges", 30),
    "prior of a scale": ("log_group", lambda *_: 0.0, "scalings", 4),
}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_term_is_seen(name, monkeypatch):
    """Not compiled, so that the loops see the wrong term."""
    term, value, move, tries = WRONG[name]
    run = getattr(steps, move).py_func
    monkeypatch.setattr(steps, term, value)
    width = {"crossings": (), "walks": (1.0,), "exchanges": (0.7,), "scalings": (0.5,)}[move]
    law = {"crossings": (VISIBLE, SHARE), "walks": (VISIBLE,), "exchanges": (PAIRS,)}.get(move, ())

    def wrong(random, *at):
        run(random, tries, *width, *at, PRIOR, *law)

    random = rng()
    _, found, _ = ends(wrong, random, 4000)
    assert p_value(found, posterior(random, 40_000)) < ALARM


def test_a_weight_stays_on_its_side_where_it_must():
    """Blocks and walks never change which weights are visible; exchanges never how many."""
    random = rng()
    for name in ("block", "part of a block", "walks", "exchanges"):
        starts, found, _ = ends(MOVES[name], random, 300)
        before, after = starts > VISIBLE, found > VISIBLE
        if name == "exchanges":
            np.testing.assert_array_equal(before.sum(1), after.sum(1))
        else:
            np.testing.assert_array_equal(before, after)


def test_moves_refuse_what_is_not_finite():
    """A proposal whose likelihood is NaN is rejected, and every loop ends."""
    random = rng()
    columns, _ = tiny()
    broken = steps.Held(np.array([math.nan, 1.0]), 0.0)
    theta = np.array([1.0, 1e-3, 2.0])
    present = steps.Present(theta.copy(), distances(columns, theta), np.zeros(4))
    for move in MOVES.values():
        move(random, columns, present, broken)
    np.testing.assert_array_equal(present.theta, theta)
