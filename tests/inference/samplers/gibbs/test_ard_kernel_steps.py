"""The moves of the feature weights under kernels in which eta is not linear, each against its law.

Each move is read while it runs without Numba: the log odds of a proposal are the prior's ratio
times that of the proposal's densities, which SciPy has. Compiled, all of them together start at
exact draws of the posterior and end at draws of it.
"""

import math

import numpy as np
import pytest
from scipy import special, stats

from ardvark.inference.samplers.gibbs import ard_kernel_steps as steps
from ardvark.inference.samplers.gibbs.ard_kernel import Sampler
from ardvark.inference.samplers.gibbs.ard_steps import Prior
from ardvark.models.parts.ard import WeightPrior
from tests.inference.samplers.gibbs.ard_problems import made
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
    return sampler.columns, present, steps.Held(sampler.weights.basis_sign * state.x, state.bias)


# --- decision values ------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("B", [4, None])
def test_decision_values_after_a_move(kernel, B):
    """Against the kernel's own matrix; and a move that is made gives the distances anew."""
    problem, random = made(N=9, D=5, B=B, **KERNELS[kernel]), rng()
    sampler = Sampler(problem)
    state = sampler.start(random, 0)
    columns, present, held = parts(sampler, state)
    inner = present.inner.copy()
    K = problem.kernel.gram(problem.X, problem.Z, state.theta)
    np.testing.assert_allclose(sampler.gram(inner), K.T, rtol=1e-10)
    np.testing.assert_array_equal(inner, present.inner)  # not written over
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


# --- what a proposal is accepted by ---------------------------------------------------------------

D = 3
SIGNS = np.array([1.0, -1.0, 1.0, 1.0])
T = stats.t(2.0 * LAW.shape, scale=LAW.scale)


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
    return special.log_expit(columns.label_sign * eta).sum(-1)


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
SHARE = 2.0 * T.sf(VISIBLE)
MOVES = {
    "block": (steps.spike_block, (1.0,), (VISIBLE,)),
    "part of a block": (steps.spike_block, (0.5,), (VISIBLE,)),
    "crossings": (steps.crossings, (4,), (VISIBLE, SHARE)),
    "exchanges": (steps.exchanges, (4, 0.7), (PAIRS,)),
    "walks": (steps.walks, (3, 1.0), (VISIBLE,)),
    "scalings": (steps.scalings, (3, 0.5), ()),
}


def make_move(name, random, columns, present, held, *, compiled=True):
    move, sizes, law = MOVES[name]
    run = move if compiled else move.py_func
    return run(random, *sizes, steps.Given(columns, present, held, PRIOR), *law)


def present_at(columns, held, theta):
    inner = distances(columns, theta)
    return steps.Present(theta.copy(), inner, held.a @ np.exp(-inner))


def chance(j, i):
    """The probability that i is exchanged with j: half of the time with one of its partners."""
    partners = {0: [1, 2], 1: [0], 2: [0]}[i]
    return 0.5 * (j in partners) / len(partners) + 0.5 / (D - 1)


def log_proposals(name, old, new, which):
    """ln q(new -> old) - ln q(old -> new), the Jacobian for a move that is no draw."""
    if "block" in name:  # the weights that are not visible, from t up to visible
        assert (old[which] <= VISIBLE).all()
        assert (new[which] <= VISIBLE).all()
        return T.logpdf(old[which]).sum() - T.logpdf(new[which]).sum()
    if name == "crossings":
        (d,) = which
        assert (old[d] > VISIBLE) != (new[d] > VISIBLE)

        def log_q(x):  # the density of a draw from the side of x
            if x > VISIBLE:
                return stats.pareto.logpdf(x, 2.0 * LAW.shape, scale=VISIBLE)
            return T.logpdf(x) - np.log(T.cdf(VISIBLE) - 0.5)

        return log_q(old[d]) - log_q(new[d])
    if name == "exchanges":
        i, j = which
        assert new[i] == pytest.approx(old[j])
        assert min(old[i], new[j]) > VISIBLE
        return np.log(new[j] / old[i] * chance(i, j) / chance(j, i))
    if name == "walks":
        assert min(old[which[0]], new[which[0]]) > VISIBLE
    return np.log(new / old).sum()  # walks and scalings: steps of logarithms


@pytest.mark.parametrize("name", MOVES)
def test_the_log_odds_of_a_move(name, monkeypatch):
    """What `accept` is given: of the prior, and of the proposal, there and back."""
    (columns, held), random = tiny(), np.random.default_rng(3)
    real, taken = steps.accept, []

    def accept(random, given, growth, which, change, log_odds):
        old = given.present.theta.copy()
        new = growth * old
        new[which] += change
        want = log_proposals(name, old, new, which)
        for theta, sign in ((new, 1.0), (old, -1.0)):
            want += sign * (T.logpdf(theta).sum() - 0.5 * (theta @ theta) / LAW.slab**2)
        assert log_odds == pytest.approx(want, rel=1e-8, abs=1e-8)
        taken.append(real(random, given, growth, which, change, log_odds))
        return taken[-1]

    monkeypatch.setattr(steps, "accept", accept)
    for _ in range(60):
        theta = np.where(random.random(D) < 0.5, 0.3, 2.0) * random.random(D)
        theta[random.integers(D)] += VISIBLE  # one is visible at least
        present, before = present_at(columns, held, theta), sum(taken)
        moved = make_move(name, random, columns, present, held, compiled=False)
        assert moved == sum(taken) - before
        assert (theta != present.theta).any() == (moved > 0)
        if name not in ("crossings", "scalings"):
            assert (theta > VISIBLE).sum() == (present.theta > VISIBLE).sum()
        # what it updates in place belongs to the theta it returns
        now = present_at(columns, held, present.theta)
        np.testing.assert_allclose(present.inner, now.inner, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(present.Ka, now.Ka, rtol=1e-8, atol=1e-9)
    assert 20 < len(taken) > sum(taken) > 5


@pytest.mark.statistical
def test_draws_of_a_decision():
    """Accepted with probability min(1, likelihood ratio e^log_odds); places by counting."""
    (columns, held), random, n = tiny(), rng(4), 3000
    theta, which, change = np.array([0.7, 0.1, 1.2]), np.array([2, 0]), np.array([0.4, -0.5])
    new = theta.copy()
    new[which] += change
    gain = np.diff(log_likelihood(columns, held, np.stack([theta, new])))[0]
    for log_odds in (-gain - 0.8, -gain - 0.1, -gain + 0.5):
        count = 0
        for _ in range(n):
            given = steps.Given(columns, present_at(columns, held, theta), held, PRIOR)
            count += steps.accept(random, given, 1.0, which, change, log_odds)
        p = min(1.0, np.exp(gain + log_odds))
        assert stats.binomtest(count, n, p).pvalue > ALARM / 6
    for i in range(D):
        found = [steps.draw_partner(random, i, D, PAIRS) for _ in range(n)]
        others = [j for j in range(D) if j != i]
        counts = [found.count(j) for j in others]
        assert sum(counts) == n
        want = [n * chance(j, i) for j in others]
        assert stats.chisquare(counts, want).pvalue > ALARM / 6
    found = [steps.nth_visible(np.array([0.1, 0.6, 0.2, 0.9]), VISIBLE, k) for k in range(3)]
    assert found == [1, 3, -1]


# --- moves leave the posterior of theta -----------------------------------------------------------


def p_value(one, other):
    """Of two samples of theta being of one law: every weight, their pairs, and their sum."""

    def looks(x):
        ranks = x / (x + LAW.scale)
        return np.column_stack([ranks, ranks.sum(1), x[:, 0] - x[:, 1], x.max(1), x.min(1)])

    found = [stats.ks_2samp(a, b).pvalue for a, b in zip(looks(one).T, looks(other).T, strict=True)]
    return len(found) * min(found)


@pytest.mark.statistical
def test_all_moves_leave_the_posterior():
    (columns, held), random = tiny(), rng()
    ends = posterior(random, 3000)
    for theta in ends:
        present = present_at(columns, held, theta)
        for name in MOVES:
            make_move(name, random, columns, present, held)
        theta[:] = present.theta
    assert p_value(ends, posterior(random, 20_000)) > ALARM


def test_moves_refuse_what_is_not_finite():
    """A proposal whose likelihood is NaN is rejected, and every loop ends."""
    random = rng()
    columns, _ = tiny()
    broken = steps.Held(np.array([math.nan, 1.0]), 0.0)
    theta = np.array([1.0, 1e-3, 2.0])
    present = steps.Present(theta.copy(), distances(columns, theta), np.zeros(4))
    for name in MOVES:
        make_move(name, random, columns, present, broken)
    np.testing.assert_array_equal(present.theta, theta)
