"""The exact sampler of the binary masks: conditionals, detailed balance, enumeration, controls.

The oracle is the whole state space: for every mask, alpha is integrated out by Gauss-Hermite
quadrature centred and scaled by the mode (`marginal`), shown to have converged in its nodes.
"""

import itertools

import numpy as np
import pytest
from polyagamma import random_polyagamma
from scipy import integrate, optimize, special, stats

import ardvark as av
from ardvark.inference.gibbs.mask_moves import (
    Partners,
    Working,
    draw_coefficients,
    exponential,
    log_evidence,
    log_likelihood,
    move_features,
    move_samples,
)
from ardvark.inference.gibbs.masks import Sampler
from ardvark.models.parts.kernels import gram
from ardvark.models.parts.masks import log_mask_prior


def make(model="fsklr", N=6, D=4, B=None, seed=0, **hypers):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    y = (X[:, 0] + 0.7 * X[:, 1] ** 2 + rng.normal(size=N) > 0.5).astype(int)
    y[:2] = 0, 1
    basis = None if B is None else list(range(B))
    return av.problem(model, (X, y), basis=basis, **hypers)


def all_masks(n):
    return np.array(list(itertools.product((0, 1), repeat=n)))


def kernel_matrix(problem, zeta, z):
    """K (N, A) of the model, from its definition."""
    theta = problem.hypers.delta * np.asarray(zeta, dtype=float)
    return gram(problem.X, problem.Z[np.asarray(z) == 1], theta, kernel=problem.hypers.kernel)


def marginal(K, s, xi, nodes):
    """Return ln of the integral of prod sigmoid(s K alpha) N(alpha | 0, 1/xi) over alpha."""
    A = K.shape[1]
    if A == 0:
        return len(s) * np.log(0.5)

    def minus(alpha):
        m = s * (K @ alpha)
        return np.logaddexp(0.0, -m).sum() + 0.5 * xi * alpha @ alpha

    def slope(alpha):
        return -K.T @ (s * special.expit(-s * (K @ alpha))) + xi * alpha

    mode = optimize.minimize(minus, np.zeros(A), jac=slope, tol=1e-12).x
    p = special.expit(K @ mode)
    root = np.linalg.inv(np.linalg.cholesky((K.T * (p * (1 - p))) @ K + xi * np.eye(A))).T
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(*[x] * A, indexing="ij"), -1).reshape(-1, A)
    log_w = sum(np.meshgrid(*[np.log(w)] * A, indexing="ij")).ravel()
    alpha = mode + grid @ root.T
    value = -np.logaddexp(0.0, -s * (alpha @ K.T)).sum(-1) - 0.5 * xi * (alpha**2).sum(-1)
    log_volume = np.log(np.diag(root)).sum() + 0.5 * A * np.log(xi) - 0.5 * A * np.log(2 * np.pi)
    return special.logsumexp(value + 0.5 * (grid**2).sum(-1) + log_w) + log_volume


def normal_marginal(K, s, h):
    """Return ln p(s) of FS-SKR: alpha in closed form, tau by quadrature over its logarithm."""
    values, vectors = np.linalg.eigh(K @ K.T / h.xi)
    values, rotated = np.maximum(values, 0.0), (vectors.T @ s) ** 2

    t = np.linspace(-8.0, 8.0, 801)[:, None]  # ln tau, whose density is the Gamma's times tau
    v = values + np.exp(-t)
    gamma = stats.gamma.logpdf(np.exp(t[:, 0]), h.noise_shape, scale=1 / h.noise_rate) + t[:, 0]
    log_density = gamma - 0.5 * np.sum(np.log(2 * np.pi * v) + rotated / v, axis=1)
    return special.logsumexp(log_density) + np.log(t[1, 0] - t[0, 0])


def exact(problem, nodes=7):
    """Return every state (zeta then z) and its posterior probability."""
    h, s = problem.hypers, 2.0 * problem.y - 1.0
    D, B = problem.X.shape[1], len(problem.Z)
    features = all_masks(D) if h.FEATURE_MASK else np.ones((1, D), dtype=int)
    states, log_p = [], []
    for zeta, z in itertools.product(features, all_masks(B)):
        K = kernel_matrix(problem, zeta, z)
        evidence = normal_marginal(K, s, h) if problem.spec.name == "fs_skr" else None
        log_prior = log_mask_prior(z, h.a_z, h.mask_prior)
        if h.FEATURE_MASK:
            log_prior += log_mask_prior(zeta, h.a_zeta, h.mask_prior)
        log_p.append(log_prior + (marginal(K, s, h.xi, nodes) if evidence is None else evidence))
        states.append(np.concatenate([zeta, z]))
    return np.array(states), special.softmax(log_p)


def run(sampler, sweeps, seed, sweep=None, burn=200, chain=0):
    """Return the masks (sweeps, D + B) of one chain, and its states' alphas."""
    rng = np.random.default_rng(seed)
    state = sampler.start(rng, chain)
    out = np.empty((sweeps, sampler.D + sampler.B), dtype=np.int64)
    for t in range(-burn, sweeps):
        (sweep or Sampler.sweep)(sampler, state, rng)
        if t >= 0:
            out[t, : sampler.D], out[t, sampler.D :] = state.zeta, state.z
    return out


def z_scores(values, truth, batches=100):
    """Return (mean - truth) / its standard error from batch means, per column."""
    means = values[: len(values) // batches * batches].reshape(batches, -1, values.shape[1]).mean(1)
    error = means.std(0, ddof=1) / np.sqrt(batches)
    return (values.mean(0) - truth) / np.maximum(error, 1e-12)


def state_z_scores(problem, masks, smallest=0.01):
    """Return the z-scores of the probabilities of all states above `smallest`."""
    states, p = exact(problem, nodes=15)
    powers = 2 ** np.arange(states.shape[1])
    often = p > smallest
    visits = (masks @ powers)[:, None] == (states[often] @ powers)[None, :]
    return z_scores(visits.astype(float), p[often])


# --- the pieces -----------------------------------------------------------------------------------


def test_exponential_equals_numpy():
    M = np.concatenate([[0.0, 1e-300, 1e-9], np.random.default_rng(0).random(4000) * 2300.0])
    K = np.empty_like(M)
    exponential(M, -0.3, K)
    np.testing.assert_allclose(K, np.exp(-0.3 * M), rtol=4 * np.finfo(float).eps)
    exponential(np.array([1e6]), -1.0, K[:1])
    assert K[0] == pytest.approx(np.exp(-700.0), rel=1e-12)  # a floor, far below any effect


@pytest.mark.parametrize("eta", [0.0, 0.3, 2.0, 10.0, 100.0, 200.0, 1e3, 1e5])
def test_polya_gamma_draws_have_the_moments_of_pg(eta):
    """Mean tanh(c/2)/2c, and E exp(-t omega) = cosh(c/2) / cosh(((c^2 + 2t)/4)^1/2)."""
    n = 200_000
    rng = np.random.default_rng(1)
    omega = random_polyagamma(1.0, np.full(n, eta), method="alternate", random_state=rng)
    mean = 0.25 if eta == 0 else np.tanh(eta / 2) / (2 * eta)
    assert abs(omega.mean() - mean) < 4.5 * omega.std() / np.sqrt(n)
    for t in (1.0, 20.0):
        t = t * max(1.0, eta)  # omega is of the order 1 / (2 eta)
        a, b = eta / 2, np.sqrt((eta**2 + 2 * t) / 4)
        log_ratio = np.logaddexp(a, -a) - np.logaddexp(b, -b)
        value = np.exp(-t * omega)
        assert abs(value.mean() - np.exp(log_ratio)) < 4.5 * value.std() / np.sqrt(n)


@pytest.mark.parametrize("A", [1, 2])
def test_evidence_is_the_integral_over_the_coefficients(A):
    rng = np.random.default_rng(A)
    K, w, r, xi = rng.normal(size=(A, 5)), rng.random(5), rng.normal(size=5), 0.6

    def density(*alpha):
        eta = np.array(alpha) @ K
        prior = np.prod(stats.norm.pdf(alpha, 0.0, xi**-0.5))
        return prior * np.exp(r @ eta - 0.5 * w @ eta**2)

    integral = integrate.nquad(density, [(-25.0, 25.0)] * A, opts={"limit": 200})[0]
    assert log_evidence(K, Working(w, r, xi)) == pytest.approx(np.log(integral), abs=1e-7)


def test_coefficients_have_the_mean_and_covariance_of_their_conditional():
    rng = np.random.default_rng(3)
    K, w, r, xi = rng.normal(size=(3, 9)), rng.random(9), rng.normal(size=9), 0.5
    L = (K * w) @ K.T + xi * np.eye(3)
    noise = np.eye(3)
    center = draw_coefficients(K, Working(w, r, xi), np.zeros(3))
    np.testing.assert_allclose(center, np.linalg.solve(L, K @ r), rtol=1e-12)
    root = np.array([draw_coefficients(K, Working(w, r, xi), e) - center for e in noise]).T
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(L), rtol=1e-10)


@pytest.mark.parametrize("scale", [0.1, 3.0, 300.0])
def test_likelihood_is_the_sum_over_labels(scale):
    """One logarithm serves 500 labels: also where there are more, and where one is left over."""
    rng = np.random.default_rng(0)
    for N in (1, 499, 500, 1777):
        eta, s = scale * rng.normal(size=N), rng.choice([-1.0, 1.0], N)
        expected = -np.logaddexp(0.0, -s * eta).sum()
        assert log_likelihood(eta, s, 0.0) == pytest.approx(expected, rel=1e-13)


def test_likelihood_is_finite_in_the_tails():
    eta = np.array([-800.0, 800.0, 3.0])
    s = np.array([1.0, 1.0, -1.0])
    assert log_likelihood(eta, s, 0.0) == pytest.approx(-800.0 - np.log1p(np.exp(3.0)))
    assert log_likelihood(eta[2:], s[2:], 2.0) == pytest.approx(-16.0)


# --- rung 4: conditionals and detailed balance ----------------------------------------------------


def on_frequency(sampler, state, n, move):
    """Return how often the move ends with each bit on, from the same state n times."""
    rng = np.random.default_rng(8)
    total = np.zeros(sampler.D + sampler.B)
    for _ in range(n):
        copy = sampler.state(sampler.point(state))
        copy.working = state.working
        move(copy, rng)
        total += np.concatenate([copy.zeta, copy.z])
    return total / n


@pytest.mark.parametrize("model", ["fsklr", "fs_skr"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("mask_prior", ["independent", "shared", "printed"])
def test_feature_bits_follow_their_conditional_under_log_joint(model, kernel, mask_prior):
    """P(bit = 1 | rest) against differences of log_joint, three random states, two bits each."""
    problem = make(model, N=8, mask_prior=mask_prior, kernel=kernel, xi=0.5)
    sampler, n = Sampler(problem), 2000
    for seed in range(3):
        rng = np.random.default_rng(seed)
        point = problem.simulate(rng)
        state = sampler.state(point)
        for k in rng.choice(4, 2, replace=False):
            ends = []
            for bit in (0, 1):
                zeta = point["zeta"].copy()
                zeta[k] = bit
                ends.append(problem.log_joint(point | {"zeta": zeta}))
            p = special.expit(ends[1] - ends[0])

            def move(copy, rng, k=k):
                move_features(
                    False, np.array([k]), 0, copy.zeta, sampler.odds_zeta, sampler.partners,
                    sampler.kernel, copy.active, copy.A, copy.alpha[copy.z == 1], copy.eta,
                    sampler.s, copy.tau, copy.working, rng,
                )  # fmt: skip

            found = on_frequency(sampler, state, n, move)[k]
            assert abs(found - p) < 4.5 * np.sqrt(p * (1 - p) / n) + 1e-9


@pytest.mark.parametrize("what", ["samples", "features"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_collapsed_bits_follow_the_evidence(what, kernel):
    """With alpha integrated out: odds from the dense evidence, which the integral above proves."""
    problem = make(N=8, kernel=kernel, xi=0.3)
    sampler, n = Sampler(problem), 2000
    h = problem.hypers
    for seed in range(3):
        rng = np.random.default_rng(seed)
        state = sampler.state(problem.simulate(rng))
        sampler.augment(state, rng)
        bit = int(rng.integers(0, 4))

        def log_p(on, state=state, bit=bit):
            zeta, z = state.zeta.copy(), state.z.copy()
            (z if what == "samples" else zeta)[bit] = on
            K = np.ascontiguousarray(kernel_matrix(problem, zeta, z).T)
            prior = log_mask_prior(zeta, h.a_zeta, h.mask_prior)
            return prior + log_mask_prior(z, h.a_z, h.mask_prior) + log_evidence(K, state.working)

        p = special.expit(log_p(1) - log_p(0))

        def move(copy, rng, bit=bit):
            order = np.array([bit])
            if what == "samples":
                move_samples(
                    order, 0, copy.zeta, copy.z, sampler.odds_z, sampler.kernel, copy.active,
                    copy.A, copy.working, rng,
                )  # fmt: skip
            else:
                move_features(
                    True, order, 0, copy.zeta, sampler.odds_zeta, sampler.partners,
                    sampler.kernel, copy.active, copy.A, copy.alpha[copy.z == 1], copy.eta,
                    sampler.s, copy.tau, copy.working, rng,
                )  # fmt: skip

        place = bit + (4 if what == "samples" else 0)
        found = on_frequency(sampler, state, n, move)[place]
        assert abs(found - p) < 4.5 * np.sqrt(p * (1 - p) / n) + 1e-9


def transitions(sampler, start, sweep, n, bits):
    """Return the empirical transition matrix between the 2^bits masks, and its standard errors."""
    masks = all_masks(bits)
    powers = 2 ** np.arange(bits)[::-1]
    rng = np.random.default_rng(4)
    P = np.zeros((len(masks), len(masks)))
    for row, mask in enumerate(masks):
        for _ in range(n):
            P[row, sweep(start(mask), rng) @ powers] += 1.0 / n
    return P, np.sqrt(np.maximum(P * (1.0 - P), 1.0 / n) / n)  # one visit more or less at least


def check_balance(P, error, p, z=5.0):
    flow = p[:, None] * P
    noise = np.hypot(p[:, None] * error, (p[:, None] * error).T)
    off = ~np.eye(len(p), dtype=bool)
    assert (np.abs(flow - flow.T)[off] <= z * noise[off] + 1e-12).all()
    moved = (P * off).sum(1)
    assert (moved[1:-1] > 0.0).all()  # every mask that is neither empty nor full can swap


@pytest.mark.parametrize("collapsed", [False, True])
def test_feature_swaps_are_in_detailed_balance(collapsed):
    """A swap alone, from each of 16 masks; unequal degrees, so the ratio of degrees matters."""
    problem = make(N=8, xi=0.2)
    sampler = Sampler(problem)
    star = Partners(
        np.array([[1, 2, 3], [0, -1, -1], [0, 3, -1], [0, 2, -1]]), np.array([3, 1, 2, 2])
    )
    rng = np.random.default_rng(1)
    point = problem.simulate(rng)
    point["z"] = np.array([1, 0, 1, 1, 0, 0, 1, 0])
    state = sampler.state(point)
    sampler.augment(state, rng)
    working = state.working
    log_p = []
    for zeta in all_masks(4):
        if collapsed:
            K = np.ascontiguousarray(kernel_matrix(problem, zeta, point["z"]).T)
            prior = log_mask_prior(zeta, problem.hypers.a_zeta, problem.hypers.mask_prior)
            log_p.append(log_evidence(K, working) + prior)
        else:
            log_p.append(problem.log_joint(point | {"zeta": zeta}))

    def swap(state, rng):
        move_features(
            collapsed, np.empty(0, dtype=int), 1, state.zeta, sampler.odds_zeta, star,
            sampler.kernel, state.active, state.A, state.alpha[state.z == 1], state.eta, sampler.s,
            state.tau, working, rng,
        )  # fmt: skip
        return state.zeta

    P, error = transitions(
        sampler, lambda zeta: sampler.state(point | {"zeta": zeta}), swap, 3000, 4
    )
    check_balance(P, error, special.softmax(log_p))


def test_sample_swaps_are_in_detailed_balance():
    problem = make(N=6, B=4, xi=0.2)
    sampler = Sampler(problem)
    rng = np.random.default_rng(2)
    point = problem.simulate(rng)
    state = sampler.state(point)
    sampler.augment(state, rng)
    log_p = []
    for z in all_masks(4):
        K = np.ascontiguousarray(kernel_matrix(problem, point["zeta"], z).T)
        prior = log_mask_prior(z, problem.hypers.a_z, problem.hypers.mask_prior)
        log_p.append(log_evidence(K, state.working) + prior)

    def swap(copy, rng):
        move_samples(
            np.empty(0, dtype=int), 1, copy.zeta, copy.z, sampler.odds_z, sampler.kernel,
            copy.active, copy.A, state.working, rng,
        )  # fmt: skip
        return copy.z

    P, error = transitions(sampler, lambda z: sampler.state(point | {"z": z}), swap, 3000, 4)
    check_balance(P, error, special.softmax(log_p))


def test_kernel_and_inverse_survive_many_moves():
    """M after 150 sweeps of increments equals the sum from scratch, underflowed K included."""
    problem = make(N=30, D=8, delta=40.0)
    sampler, rng = Sampler(problem), np.random.default_rng(0)
    state = sampler.start(rng, 1)
    for _ in range(150):
        sampler.sweep(state, rng)
    on = state.active.sample[: state.A]
    assert sorted(on) == np.flatnonzero(state.z).tolist()
    distance = ((problem.X[None] - problem.Z[on][:, None]) ** 2 * state.zeta).sum(-1)
    np.testing.assert_allclose(state.active.M[: state.A], distance, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(problem.decision(sampler.point(state)), state.eta, atol=1e-9)


# --- rung 5: enumeration --------------------------------------------------------------------------

CASES = [
    ("fsklr", {"mask_prior": "independent"}),
    ("fsklr", {"mask_prior": "shared"}),
    ("fsklr", {"mask_prior": "printed"}),
    ("fsklr", {"mask_prior": "independent", "mask_probability": "explicit"}),
    ("fsklr", {"mask_prior": "independent", "kernel": "linear"}),
    ("fsklr", {"mask_prior": "shared", "kernel": "linear", "mask_probability": "explicit"}),
    ("sklr", {"mask_prior": "independent"}),
    ("fs_skr", {"mask_prior": "independent"}),
    ("fs_skr", {"mask_prior": "shared", "kernel": "linear"}),
]


@pytest.mark.parametrize(("model", "hypers"), CASES)
def test_inclusion_probabilities_equal_enumeration(model, hypers):
    """All 1024 masks (64 for SKLR) at D = 4, N = 6."""
    problem = make(model, xi=0.1, **hypers)
    states, p = exact(problem)
    sampler = Sampler(problem)
    masks = run(sampler, 20_000, seed=5)
    free = slice(None) if problem.hypers.FEATURE_MASK else slice(4, None)
    z = z_scores(masks.astype(float), p @ states)[free]
    assert np.abs(z).max() < 4.0, z  # 10 bits


def test_quadrature_of_the_oracle_has_converged():
    problem = make(xi=0.1)
    states, p = exact(problem, 7)
    monte_carlo = 0.5 / np.sqrt(20_000)  # of 20 000 independent draws, at best
    assert np.abs((exact(problem, 9)[1] - p) @ states).max() < 0.1 * monte_carlo


def hard(seed=8, xi=0.05, delta=0.5):
    """N = 10, two features, two centres, labels that one feature separates, wide coefficients.

    On weaker data wrong orders do not show ; the seeds were chosen for the size
    of the wrong orders' bias, not for the right order's.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 2))
    order = np.argsort(X[:, 0])
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    return av.problem("fsklr", (X, y), basis=[int(order[0]), int(order[-1])], xi=xi, delta=delta)


def steep():
    """Labels that a sum of features separates, coefficients wider still."""
    X = np.random.default_rng(7).normal(size=(10, 2))
    y = (X.sum(1) > np.median(X.sum(1))).astype(int)
    return av.problem("fsklr", (X, y), basis=[0, 1], xi=0.01, delta=0.15)


def stale_omega(self, state, rng):
    """omega is renewed before the features move, not after."""
    self.augment(state, rng)
    self.move_features(state, rng, collapsed=False)
    self.move_samples(state, rng)
    self.coefficients(state, rng)


def stale_alpha(self, state, rng):
    """alpha of the samples that stay on is kept after a collapsed move."""
    self.move_features(state, rng, collapsed=False)
    self.augment(state, rng)
    before, old = state.z.copy(), state.alpha.copy()
    self.move_samples(state, rng)
    self.coefficients(state, rng)
    kept = (before == 1) & (state.z == 1)
    state.alpha = np.where(kept, old, state.alpha)
    self._decide(state)


def omega_between(self, state, rng):
    """omega is drawn anew between the samples and the coefficients."""
    self.move_features(state, rng, collapsed=False)
    self.augment(state, rng)
    self.move_samples(state, rng)
    self.augment(state, rng)
    self.coefficients(state, rng)


def alternating(self, state, rng):
    """Features move given an alpha that the samples have made stale."""
    self.augment(state, rng)
    self.move_samples(state, rng)
    on = state.active.sample[: state.A]
    state.eta = state.alpha[on] @ state.active.K[: state.A] if state.A else np.zeros(self.N)
    self.move_features(state, rng, collapsed=False)
    self.coefficients(state, rng)


@pytest.mark.parametrize("make_problem", [hard, steep])
def test_the_order_of_the_sweep_is_exact(make_problem):
    problem = make_problem()
    masks = run(Sampler(problem), 40_000, seed=2)
    assert np.abs(state_z_scores(problem, masks)).max() < 4.0


@pytest.mark.parametrize(
    ("wrong", "make_problem"),
    [(stale_omega, hard), (stale_alpha, steep), (omega_between, hard), (alternating, hard)],
)
def test_another_order_is_caught(wrong, make_problem):
    problem = make_problem()
    masks = run(Sampler(problem), 40_000, seed=2, sweep=wrong)
    assert np.abs(state_z_scores(problem, masks)).max() > 6.0


@pytest.mark.parametrize("wrong", ["prior", "labels"])
def test_wrong_odds_are_caught(wrong):
    """Prior log-odds of a feature too large by 0.5, or the labels of other rows."""
    problem = hard()
    sampler = Sampler(problem)
    if wrong == "prior":
        sampler.odds_zeta = sampler.odds_zeta + 0.5
    else:
        sampler.set_labels(np.roll(problem.y, 1))
    masks = run(sampler, 20_000, seed=2)
    assert np.abs(state_z_scores(problem, masks)).max() > 6.0


# --- correlated features --------------------------------------------------------------------------


def copies():
    """Two informative features, each three times, and six of noise; labels almost without error."""
    rng = np.random.default_rng(3)
    base, noise = rng.normal(size=(200, 2)), rng.normal(size=(200, 6))
    X = np.concatenate([base[:, :1]] * 3 + [base[:, 1:]] * 3 + [noise], axis=1)
    f = 2.0 * (np.abs(base[:, 0]) - 0.7) + base[:, 1]
    y = (rng.random(200) < special.expit(8.0 * f)).astype(int)
    return av.problem("fsklr", (X, y), a_zeta=0.5, delta=0.5, xi=0.1)


def inclusion_of_copies(problem, sweeps):
    """Return the inclusion probabilities (4, 6) of four chains, and their standard errors."""
    values = np.stack(
        [run(Sampler(problem), sweeps, seed=c, burn=300, chain=c)[:, :6] for c in range(4)]
    ).astype(float)
    means = values.reshape(4, 20, -1, 6).mean(2)
    return values.mean(1), means.std(1, ddof=1) / np.sqrt(20)


@pytest.mark.slow
def test_copies_of_a_feature_are_included_equally():
    """In each of four chains: differences within 4 standard errors, and no error above 0.05."""
    p, error = inclusion_of_copies(copies(), 3000)
    for group in (slice(0, 3), slice(3, 6)):
        q, e = p[:, group], error[:, group]
        for a, b in ((0, 1), (0, 2), (1, 2)):
            assert (np.abs(q[:, a] - q[:, b]) < 4.0 * np.hypot(e[:, a], e[:, b])).all()
    assert error.max() < 0.05
    assert (np.abs(p - p.mean(0)) < 0.05).all()


@pytest.mark.slow
def test_single_flips_fail_on_copies(monkeypatch):
    """The same sweep without swaps: the copies' probabilities differ, or their errors are large."""
    monkeypatch.setattr(Sampler, "SWAPS", 0)
    p, _ = inclusion_of_copies(copies(), 3000)
    assert np.abs(p - p.mean(0)).max() > 0.1
