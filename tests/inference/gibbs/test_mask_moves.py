"""The moves of the binary masks: their pieces, full conditionals and detailed balance.

Each conditional is a difference of `log_joint`, or of the dense evidence that an integral proves. A
test of draws fails with probability ALARM whatever the seed.
"""

from copy import deepcopy

import numpy as np
import pytest
from polyagamma import random_polyagamma
from scipy import integrate, special, stats

from ardvark.inference.gibbs.mask_kernel import exponential
from ardvark.inference.gibbs.mask_moves import (
    BLOCK,
    Partners,
    Working,
    draw_coefficients,
    log_evidence,
    log_likelihood,
    move_features,
    move_samples,
)
from ardvark.inference.gibbs.masks import Sampler
from ardvark.models.parts.masks import log_mask_prior
from tests.inference.gibbs.mask_oracle import all_masks, kernel_matrix, make
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

    Three means of 200 000 draws each, normal by their number.
    """
    n = 200_000
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

    def density(*alpha):
        eta = np.array(alpha) @ K
        prior = np.prod(stats.norm.pdf(alpha, 0.0, xi**-0.5))
        return prior * np.exp(r @ eta - 0.5 * w @ eta**2)

    integral = integrate.nquad(density, [(-25.0, 25.0)] * A, opts={"limit": 200})[0]
    assert log_evidence(K, Working(w, r, xi)) == pytest.approx(np.log(integral), abs=1e-7)


def test_coefficients_have_the_mean_and_covariance_of_their_conditional():
    random = rng(3)
    K, w, r, xi = random.normal(size=(3, 9)), random.random(9), random.normal(size=9), 0.5
    L = (K * w) @ K.T + xi * np.eye(3)
    noise = np.eye(3)
    center = draw_coefficients(K, Working(w, r, xi), np.zeros(3))
    np.testing.assert_allclose(center, np.linalg.solve(L, K @ r), rtol=1e-12)
    root = np.array([draw_coefficients(K, Working(w, r, xi), e) - center for e in noise]).T
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(L), rtol=1e-10)


@pytest.mark.parametrize("scale", [0.1, 3.0, 300.0])
def test_likelihood_is_the_sum_over_labels(scale):
    """One logarithm serves 500 labels: also where there are more, and where one is left over."""
    random = rng()
    for N in (1, 499, 500, 1777):
        eta, s = scale * random.normal(size=N), random.choice([-1.0, 1.0], N)
        expected = -np.logaddexp(0.0, -s * eta).sum()
        assert log_likelihood(eta, s, 0.0) == pytest.approx(expected, rel=1e-13)


def test_likelihood_is_finite_in_the_tails():
    eta = np.array([-800.0, 800.0, 3.0])
    s = np.array([1.0, 1.0, -1.0])
    assert log_likelihood(eta, s, 0.0) == pytest.approx(-800.0 - np.log1p(np.exp(3.0)))
    assert log_likelihood(eta[2:], s[2:], 2.0) == pytest.approx(-16.0)


# --- rung 4: conditionals and detailed balance ----------------------------------------------------


def times_on(sampler, state, n, move):
    """Return how many times of n the move, from the same state, ends with each bit on."""
    random = rng(8)
    total = np.zeros(sampler.D + sampler.B, dtype=int)
    for _ in range(n):
        copy = sampler.state(sampler.point(state))
        copy.working = state.working
        move(copy, random)
        total += np.concatenate([copy.zeta, copy.z])
    return total


@pytest.mark.statistical
@pytest.mark.parametrize("model", ["fsklr", "fs_skr"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("mask_prior", ["independent", "shared", "printed"])
def test_feature_bits_follow_their_conditional_under_log_joint(model, kernel, mask_prior):
    """P(bit = 1 | rest) against differences of log_joint, three random states, two bits each.

    Exact binomial tests of six counts.
    """
    problem = make(model, N=8, mask_prior=mask_prior, kernel=kernel, xi=0.5)
    sampler, n = Sampler(problem), 2000
    for number in range(3):
        random = rng(number)
        point = problem.simulate(random)
        state = sampler.state(point)
        for k in random.choice(4, 2, replace=False):
            ends = []
            for bit in (0, 1):
                zeta = point["zeta"].copy()
                zeta[k] = bit
                ends.append(problem.log_joint(point | {"zeta": zeta}))
            p = special.expit(ends[1] - ends[0])

            def move(copy, random, k=k):
                move_features(
                    False, np.array([k]), 0, 0, copy.zeta, sampler.odds_zeta, sampler.partners,
                    sampler.kernel, copy.active, copy.A, copy.alpha[copy.z == 1], copy.eta,
                    sampler.s, copy.tau, copy.working, random,
                )  # fmt: skip

            found = times_on(sampler, state, n, move)[k]
            assert stats.binomtest(found, n, p).pvalue > ALARM / 6


@pytest.mark.statistical
@pytest.mark.parametrize("what", ["samples", "features"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_collapsed_bits_follow_the_evidence(what, kernel):
    """With alpha integrated out: odds from the dense evidence, which the integral above proves.

    Exact binomial tests of three counts.
    """
    problem = make(N=8, kernel=kernel, xi=0.3)
    sampler, n = Sampler(problem), 2000
    h = problem.hypers
    for number in range(3):
        random = rng(number)
        state = sampler.state(problem.simulate(random))
        sampler.augment(state, random)
        bit = int(random.integers(0, 4))

        def log_p(on, state=state, bit=bit):
            zeta, z = state.zeta.copy(), state.z.copy()
            (z if what == "samples" else zeta)[bit] = on
            K = np.ascontiguousarray(kernel_matrix(problem, zeta, z).T)
            prior = log_mask_prior(zeta, h.a_zeta, h.mask_prior)
            return prior + log_mask_prior(z, h.a_z, h.mask_prior) + log_evidence(K, state.working)

        p = special.expit(log_p(1) - log_p(0))

        def move(copy, random, bit=bit):
            order = np.array([bit])
            if what == "samples":
                move_samples(
                    order, 0, copy.zeta, copy.z, sampler.odds_z, sampler.kernel, copy.active,
                    copy.A, copy.working, random,
                )  # fmt: skip
            else:
                move_features(
                    True, order, 0, 0, copy.zeta, sampler.odds_zeta, sampler.partners,
                    sampler.kernel, copy.active, copy.A, copy.alpha[copy.z == 1], copy.eta,
                    sampler.s, copy.tau, copy.working, random,
                )  # fmt: skip

        place = bit + (4 if what == "samples" else 0)
        found = times_on(sampler, state, n, move)[place]
        assert stats.binomtest(found, n, p).pvalue > ALARM / 3


def transitions(sampler, start, sweep, n, bits):
    """Return how often each of the 2^bits masks went to each other, n times from every one."""
    masks = all_masks(bits)
    powers = 2 ** np.arange(bits)[::-1]
    random = rng(4)
    counts = np.zeros((len(masks), len(masks)), dtype=int)
    for row, mask in enumerate(masks):
        for _ in range(n):
            counts[row, sweep(start(mask), random) @ powers] += 1
    return counts


def check_balance(counts, p):
    """Detailed balance p_a P_ab = p_b P_ba, pair by pair.

    Given their sum the counts of a -> b and b -> a are then binomial with p_b / (p_a + p_b), if
    rare; if not, they vary less, and the test is on the safe side.
    """
    pairs = [(a, b) for a in range(len(p)) for b in range(a) if counts[a, b] + counts[b, a]]
    for a, b in pairs:
        there, back = counts[a, b], counts[b, a]
        found = stats.binomtest(there, there + back, p[b] / (p[a] + p[b]))
        assert found.pvalue > ALARM / len(pairs)
    moved = counts.sum(1) - np.diag(counts)
    assert (moved[1:-1] > 0).all()  # every mask that is neither empty nor full can move


@pytest.mark.statistical
@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize(("pairs", "swaps"), [(1, 0), (0, 1)])
def test_pairs_and_swaps_of_features_are_in_detailed_balance(collapsed, pairs, swaps):
    """One attempt, from each of 16 masks; unequal degrees, so the ratio of degrees matters.

    The data are the same in every run: on others a swap may be too rare to be seen at all.
    """
    random = np.random.default_rng(1)
    problem = make(N=8, xi=2.0, random=random)
    sampler = Sampler(problem)
    star = Partners(
        np.array([[1, 2, 3], [0, -1, -1], [0, 3, -1], [0, 2, -1]]), np.array([3, 1, 2, 2])
    )
    point = problem.simulate(random)
    point["z"] = np.array([1, 0, 1, 1, 0, 0, 1, 0])
    state = sampler.state(point)
    sampler.augment(state, random)
    working = state.working
    log_p = []
    for zeta in all_masks(4):
        if collapsed:
            K = np.ascontiguousarray(kernel_matrix(problem, zeta, point["z"]).T)
            prior = log_mask_prior(zeta, problem.hypers.a_zeta, problem.hypers.mask_prior)
            log_p.append(log_evidence(K, working) + prior)
        else:
            log_p.append(problem.log_joint(point | {"zeta": zeta}))

    def move(state, random):
        move_features(
            collapsed, np.empty(0, dtype=int), pairs, swaps, state.zeta, sampler.odds_zeta, star,
            sampler.kernel, state.active, state.A, state.alpha[state.z == 1], state.eta, sampler.s,
            state.tau, working, random,
        )  # fmt: skip
        return state.zeta

    counts = transitions(sampler, lambda zeta: sampler.state(point | {"zeta": zeta}), move, 3000, 4)
    on = all_masks(4).sum(1)
    moved = (counts > 0) & ~np.eye(16, dtype=bool)
    assert set(np.abs(on[:, None] - on)[moved]) == {2 if pairs else 0}
    check_balance(counts, special.softmax(log_p))


@pytest.mark.statistical
def test_sample_swaps_are_in_detailed_balance():
    random = np.random.default_rng(2)  # fixed data, as above
    problem = make(N=6, B=4, xi=0.2, random=random)
    sampler = Sampler(problem)
    point = problem.simulate(random)
    state = sampler.state(point)
    sampler.augment(state, random)
    log_p = []
    for z in all_masks(4):
        K = np.ascontiguousarray(kernel_matrix(problem, point["zeta"], z).T)
        prior = log_mask_prior(z, problem.hypers.a_z, problem.hypers.mask_prior)
        log_p.append(log_evidence(K, state.working) + prior)

    def swap(copy, random):
        move_samples(
            np.empty(0, dtype=int), 1, copy.zeta, copy.z, sampler.odds_z, sampler.kernel,
            copy.active, copy.A, state.working, random,
        )  # fmt: skip
        return copy.z

    counts = transitions(sampler, lambda z: sampler.state(point | {"z": z}), swap, 3000, 4)
    check_balance(counts, special.softmax(log_p))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_a_visit_of_samples_in_several_blocks_equals_one_by_dense_evidence(share):
    """Bit by bit, with the same uniform numbers: as many blocks as need their own products."""
    problem = make(N=2 * BLOCK + 20, random=np.random.default_rng(3), mask_prior="printed")
    sampler, random = Sampler(problem), rng()
    point = problem.simulate(random)
    point["z"] = (random.random(len(problem.Z)) < share).astype(int)
    state = sampler.state(point)
    sampler.augment(state, random)
    z, order, twin = state.z.copy(), random.permutation(len(state.z)), deepcopy(random)
    move_samples(
        order, 0, state.zeta, state.z, sampler.odds_z, sampler.kernel, state.active, state.A,
        state.working, random,
    )  # fmt: skip

    def log_p(z):
        K = np.ascontiguousarray(kernel_matrix(problem, state.zeta, z).T)
        prior = log_mask_prior(z, problem.hypers.a_z, problem.hypers.mask_prior)
        return prior + log_evidence(K, state.working)

    for j in order:
        off, on = z.copy(), z.copy()
        off[j], on[j] = 0, 1
        z = on if twin.random() < special.expit(log_p(on) - log_p(off)) else off
    np.testing.assert_array_equal(state.z, z)


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
