"""What the moves of the binary masks are made of, and their proposals by detailed balance.

The loop over samples runs here without Numba too, so that what it decides by can be compared
exactly with the dense evidence, which an integral proves; compiled, it makes the same decisions.
"""

from copy import deepcopy

import numpy as np
import pytest
from polyagamma import random_polyagamma
from scipy import special, stats

from ardvark.inference.samplers.gibbs import mask_moves as moves
from ardvark.inference.samplers.gibbs.mask_kernel import exponential, rebuild
from ardvark.inference.samplers.gibbs.mask_moves import (
    BLOCK,
    Partners,
    Working,
    log_evidence,
    log_likelihood,
)
from ardvark.inference.samplers.gibbs.masks import Sampler
from ardvark.models.parts.masks import log_mask_prior, mask_log_odds
from tests.inference.samplers.gibbs.mask_oracle import all_masks, kernel_matrix, make
from tests.support import ALARM, rng, z_limit

# --- the pieces -----------------------------------------------------------------------------------


def test_exponential_equals_numpy():
    M = np.concatenate([[0.0, 1e-300, 1e-9], rng().random(4000) * 2300.0])
    K = np.empty_like(M)
    exponential(M, -0.3, K)
    np.testing.assert_allclose(K, np.exp(-0.3 * M), rtol=4 * np.finfo(float).eps)
    exponential(np.array([1e6]), -1.0, K[:1])
    assert K[0] == pytest.approx(np.exp(-700.0), rel=1e-12)  # a floor, far below any effect


@pytest.mark.statistical
@pytest.mark.parametrize("eta", [0.0, 0.3, 2.0, 10.0, 100.0, 200.0, 1e3, 1e5])
def test_polya_gamma_draws_have_the_moments_of_pg(eta):
    """Mean tanh(c/2)/2c, and E exp(-t omega) = cosh(c/2) / cosh(((c^2 + 2t)/4)^1/2).

    Three means of 60 000 draws each, normal by their number.
    """
    n = 60_000
    random, limit = rng(1), z_limit(3)
    omega = random_polyagamma(1.0, np.full(n, eta), method="alternate", random_state=random)
    mean = 0.25 if eta == 0 else np.tanh(eta / 2) / (2 * eta)
    assert abs(omega.mean() - mean) < limit * omega.std() / np.sqrt(n)
    for t in (1.0, 20.0):
        t = t * max(1.0, eta)  # omega is of the order 1 / (2 eta)
        a, b = eta / 2, np.sqrt((eta**2 + 2 * t) / 4)
        log_ratio = np.logaddexp(a, -a) - np.logaddexp(b, -b)
        value = np.exp(-t * omega)
        assert abs(value.mean() - np.exp(log_ratio)) < limit * value.std() / np.sqrt(n)


@pytest.mark.parametrize("A", [1, 2])
def test_evidence_is_the_integral_over_the_coefficients(A):
    random = rng(A)
    K, w, r, xi = random.normal(size=(A, 5)), random.random(5), random.normal(size=5), 0.6

    axis, step = np.linspace(-25.0, 25.0, 501, retstep=True)
    alpha = np.stack(np.meshgrid(*[axis] * A, indexing="ij"), axis=-1).reshape(-1, A)
    eta = alpha @ K
    log_f = stats.norm.logpdf(alpha, 0.0, xi**-0.5).sum(-1) + eta @ r - 0.5 * eta**2 @ w
    integral = special.logsumexp(log_f) + A * np.log(step)
    assert log_evidence(K, Working(w, r, xi)) == pytest.approx(integral, abs=1e-7)


@pytest.mark.parametrize("scale", [0.1, 3.0, 300.0])
def test_likelihood_is_the_sum_over_labels(scale):
    """One logarithm serves 500 labels: also where there are more, and where one is left over."""
    random = rng()
    eta, s = scale * random.normal(size=9), random.normal(size=9)
    normal, peak = stats.norm.logpdf(s, eta, 0.4), stats.norm.logpdf(0.0, 0.0, 0.4)
    assert log_likelihood(eta, s, 0.4**-2.0) == pytest.approx((normal - peak).sum(), rel=1e-12)
    for N in (1, 499, 500, 1777):
        eta, s = scale * random.normal(size=N), random.choice([-1.0, 1.0], N)
        expected = -np.logaddexp(0.0, -s * eta).sum()
        assert log_likelihood(eta, s, 0.0) == pytest.approx(expected, rel=1e-13)


def test_likelihood_is_finite_in_the_tails():
    eta = np.array([-800.0, 800.0, 3.0])
    s = np.array([1.0, 1.0, -1.0])
    assert log_likelihood(eta, s, 0.0) == pytest.approx(-800.0 - np.log1p(np.exp(3.0)))
    assert log_likelihood(eta[2:], s[2:], 2.0) == pytest.approx(-16.0)


# --- rung 4: what a move decides by ---------------------------------------------------------------


@pytest.mark.statistical
def test_draws_of_a_decision():
    """A bit by its log-odds, a Metropolis step by its log ratio; the n-th bit by counting."""
    random, n = rng(6), 4000
    for x in (-1.7, -0.2, 0.9):
        for draw, p in ((moves._bit, special.expit(x)), (moves._accept, min(1.0, np.exp(x)))):
            count = sum(bool(draw(x, random)) for _ in range(n))
            assert stats.binomtest(count, n, p).pvalue > ALARM / 6
    mask = np.array([0, 1, 1, 0, 1, 0, 0])
    for value in (0, 1):
        found = [moves._nth(mask, value, i) for i in range(8)]
        assert found == [*np.flatnonzero(mask == value), *[-1] * 8][:8]


def collapsed_log_p(problem, working):
    """Return the function ln p(zeta, z), alpha integrated out, without constants."""
    h = problem.hypers

    def log_p(zeta, z):
        K = np.ascontiguousarray(kernel_matrix(problem, zeta, z).T)
        prior = log_mask_prior(zeta, h.a_zeta, h.mask_prior)
        return prior + log_mask_prior(z, h.a_z, h.mask_prior) + log_evidence(K, working)

    return log_p


def flipped(mask, *bits):
    """Return a mask with these bits changed."""
    other = mask.copy()
    other[list(bits)] = 1 - other[list(bits)]
    return other


def assert_kernel_of(problem, state, A):
    """The active samples are those that are on, with M and K of the present masks."""
    on = state.active.sample[:A]
    assert sorted(on) == np.flatnonzero(state.z).tolist()
    order = np.argsort(np.argsort(on))
    K = kernel_matrix(problem, state.zeta, state.z).T[order]
    np.testing.assert_allclose(state.active.K[:A], K, rtol=1e-9, atol=1e-10)


def twin_of(state, random):
    return deepcopy(state), deepcopy(random)


@pytest.mark.parametrize(
    ("kernel", "mask_prior", "share"),
    [
        ("rbf", "printed", 0.0),
        ("linear", "shared", 0.1),
        ("rbf", "independent", 0.5),
        ("rbf", "printed", 1.0),
    ],
)
def test_samples_move_by_the_odds_of_their_law(kernel, mask_prior, share, monkeypatch):
    """Every bit and swap against the dense evidence, in as many blocks as need own products."""
    settings = {"mask_prior": mask_prior, "kernel": kernel, "a_zeta": 2.0, "a_z": 9.0}
    random = np.random.default_rng(3)  # with these numbers some samples stay on
    problem = make(N=70, B=BLOCK + 5, D=3, random=random, **settings)
    sampler = Sampler(problem)
    point = problem.simulate(random)
    point["z"] = (random.random(sampler.B) < share).astype(int)
    state = sampler.state(point)
    sampler.augment(state, random)
    log_p = collapsed_log_p(problem, state.working)
    twin, same = twin_of(state, random)
    order = random.permutation(sampler.B)
    same.permutation(sampler.B)
    left, changed, swap = [*order], [0], {}

    def bit(log_odds, random):
        j, z = left.pop(0), state.z
        on, off = (z, flipped(z, j)) if z[j] else (flipped(z, j), z)
        want = log_p(state.zeta, on) - log_p(state.zeta, off)
        assert log_odds == pytest.approx(want, rel=1e-7, abs=1e-7)
        taken = real["_bit"](log_odds, random)
        changed[0] += taken != z[j]
        return taken

    def nth(mask, value, n):
        swap.setdefault("bits", mask.copy())
        swap.update(before=mask.copy(), other=real["_nth"](mask, value, n))
        return swap["other"]

    def accept(log_ratio, random):
        new = flipped(state.z, swap["other"])  # the one that leaves has left already
        assert new.sum() == swap["before"].sum()
        want = log_p(state.zeta, new) - log_p(state.zeta, swap["before"])
        assert log_ratio == pytest.approx(want, rel=1e-7, abs=1e-7)
        taken = real["_accept"](log_ratio, random)
        changed[0] += 2 * taken
        return taken

    real = {name: getattr(moves, name) for name in ("_nth", "_bit", "_accept")}
    with monkeypatch.context() as patched:
        for name, fake in (("_nth", nth), ("_bit", bit), ("_accept", accept)):
            patched.setattr(moves, name, fake)
        A, count = run_samples(moves.move_samples.py_func, 12, order, sampler, state, random)
    assert not left
    assert (A, count) == (state.z.sum(), changed[0])
    assert_kernel_of(problem, state, A)
    # compiled, without swaps: NumPy draws their integers in another way
    run_samples(moves.move_samples, 0, order, sampler, twin, same)
    np.testing.assert_array_equal(twin.z, swap["bits"])


def run_samples(move, swaps, order, sampler, state, random):
    """Every bit of an order, and swaps; return A and how many bits changed."""
    return move(
        order, swaps, state.zeta, state.z, sampler.odds_z, sampler.kernel, state.active, state.A,
        state.working, random,
    )  # fmt: skip


STAR = Partners(np.array([[1, 2, 3], [0, -1, -1], [0, 3, -1], [0, 2, -1]]), np.array([3, 1, 2, 2]))


@pytest.mark.statistical
@pytest.mark.parametrize("what", ["pairs", "swaps"])
def test_proposals_of_pairs_and_swaps_balance_the_prior(what):
    """The flow under the prior from mask to mask is symmetric; partners have unequal degrees.

    A flow is the mean of min(1, ratio) over 4000 proposals from each of 16 masks.
    """
    n, masks, random = 4000, all_masks(4), rng(4)
    odds = mask_log_odds(np.arange(4), 4, 1.3, "shared")
    prior = np.exp([log_mask_prior(m, 1.3, "shared") for m in masks])
    total = np.zeros((2, 16, 16))  # of min(1, ratio), and of its square
    for a, mask in enumerate(masks):
        S = int(mask.sum())
        if what == "swaps" and S in (0, 4):
            continue
        for _ in range(n):
            if what == "pairs":
                k, other, ratio = moves._pair(mask, S, odds, STAR, random)
            else:
                k, other, ratio = moves._swap(mask, S, STAR, random)
            if other >= 0:
                b = flipped(mask, k, other) @ [8, 4, 2, 1]
                total[:, a, b] += np.minimum(1.0, np.exp([ratio, 2.0 * ratio]))
    flow, square = total * prior[:, None] ** np.array([1, 2])[:, None, None] / n
    error = np.sqrt((square + square.T - (flow**2 + flow.T**2)) / n)
    possible = np.abs(masks.sum(1)[:, None] - masks.sum(1)) == (2 if what == "pairs" else 0)
    two = np.abs(masks[:, None] - masks).sum(-1) == 2
    assert ((flow > 0.0) <= (possible & two)).all()
    seen = flow + flow.T > 0.0
    assert seen.sum() == (32 if what == "pairs" else 48)
    t = np.abs(flow - flow.T)[seen] / error[seen]
    assert t.max() < z_limit(int(seen.sum()))


def test_a_rebuilt_kernel_says_how_far_it_was_off():
    problem = make(N=7, D=3, B=5)
    sampler, random = Sampler(problem), rng()
    state = sampler.state(problem.simulate(random) | {"z": np.array([0, 1, 1, 0, 1])})
    state.active.M[1, 4] += 0.3
    state.active.M[2, 0] -= 0.7
    assert rebuild(state.zeta, sampler.kernel, state.active, 3) == pytest.approx(0.7)
    assert_kernel_of(problem, state, 3)


def test_kernel_and_inverse_survive_many_moves():
    """M after 150 sweeps of increments equals the sum from scratch, underflowed K included."""
    problem = make(N=30, D=8, delta=40.0)
    sampler, random = Sampler(problem), rng()
    state = sampler.start(random, 1)
    for _ in range(150):
        sampler.sweep(state, random)
    on = state.active.sample[: state.A]
    assert sorted(on) == np.flatnonzero(state.z).tolist()
    distance = ((problem.X[None] - problem.Z[on][:, None]) ** 2 * state.zeta).sum(-1)
    np.testing.assert_allclose(state.active.M[: state.A], distance, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(problem.decision(sampler.point(state)), state.eta, atol=1e-9)
