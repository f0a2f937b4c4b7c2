"""JCFO's two steps against quadrature, finite differences and dense formulas.

Negative controls: the rates as printed in (24), (25) must fail the checks that the right ones pass.
"""

import tracemalloc

import numpy as np
import pytest
from scipy import integrate, stats

from ardvark.inference.papers.jcfo import em as jcfo_em
from ardvark.inference.papers.jcfo import em_steps as jcfo_em_steps
from ardvark.inference.papers.jcfo.em import Options
from ardvark.inference.papers.jcfo.em_steps import Basis, State, profile, solve
from ardvark.models.parts.kernels import make_kernel
from tests.inference.papers.jcfo.problems import RATES, arrays, climb, every_kernel, made
from tests.support import rng

# --- E-step ---------------------------------------------------------------------------------------


def test_latent_moments_by_quadrature():
    for eta in (-6.0, -1.3, 0.0, 0.4, 5.0):
        for label, (low, high) in ((1.0, (0.0, 20.0)), (0.0, (-20.0, 0.0))):
            at = np.linspace(low, high, 200_001)
            density = stats.norm.pdf(at, eta)
            want = integrate.simpson(at * density, at) / integrate.simpson(density, at)
            got = jcfo_em_steps.latent_mean(np.array([label]), np.array([eta]))[0]
            assert got == pytest.approx(want, rel=1e-8)
            s = 2 * label - 1
            score = jcfo_em_steps.score(np.array([label]), np.array([eta]))[0]
            assert got == pytest.approx(eta + score, abs=1e-12)  # (23)
            h = 1e-5
            slope = (stats.norm.logcdf(s * (eta + h)) - stats.norm.logcdf(s * (eta - h))) / (2 * h)
            assert score == pytest.approx(slope, rel=1e-6)


def test_latent_moments_of_saturated_probabilities():
    y, eta = np.array([1.0, 0.0, 1.0, 0.0]), np.array([-1e8, 1e8, 1e8, -1e8])
    v, score = jcfo_em_steps.latent_mean(y, eta), jcfo_em_steps.score(y, eta)
    np.testing.assert_allclose(v, [1e-8, -1e-8, 1e8, -1e8], rtol=1e-10)
    np.testing.assert_allclose(score, [1e8, -1e8, 0.0, 0.0], rtol=1e-10)


@pytest.mark.parametrize("gamma", [0.3, 4.0])
def test_inverse_variances_by_quadrature_and_not_as_printed(gamma):
    for weight in (-0.2, 1.7):
        # tau = exp(u): both integrals of (24) on a grid in u
        u = np.linspace(-25.0, 8.0, 20_001)
        tau = np.exp(u)
        joint = stats.expon.pdf(tau, scale=2 / gamma) * stats.norm.pdf(weight, 0, tau**0.5) * tau
        want = integrate.simpson(joint / tau, u) / integrate.simpson(joint, u)
        assert jcfo_em_steps.precision(weight, gamma**0.5) == pytest.approx(want, rel=1e-6)
        assert (
            abs(jcfo_em_steps.precision(weight, gamma) / want - 1) > 0.4
        )  # erratum: (24) as printed


# --- M-step ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("N", "M"), [(7, 12), (12, 7), (9, 9)])
def test_primal_dual_and_singular_value_forms_are_one(N, M, monkeypatch):
    random = rng(N)
    H, v = random.standard_normal((N, M)), random.standard_normal(N)
    variance = random.exponential(size=M)
    omega = np.diag(1 / variance)
    want = np.linalg.solve(omega + H.T @ H, H.T @ v)  # (29)
    variance_0 = np.where(np.arange(M) == 2, 0.0, variance)
    primal_0 = profile(H, v, variance_0, "primal")
    for form in ("primal", "dual", "smaller", "singular"):
        if form == "singular":
            monkeypatch.setattr(jcfo_em_steps, "_STIFF", 0.0)
        beta, r = profile(H, v, variance, form)
        np.testing.assert_allclose(beta, want, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(r, v - H @ want, rtol=1e-12, atol=1e-12)
        beta, r = profile(H, v, variance_0, form)
        assert beta[2] == 0.0
        np.testing.assert_allclose(beta, primal_0[0], rtol=1e-12, atol=1e-12)


def test_a_stiff_ridge_regression_is_still_exact():
    random = rng(0)
    U, V = (np.linalg.qr(random.standard_normal((6, 6)))[0] for _ in range(2))
    d = 10.0 ** np.arange(-2, 10, 2)
    v = random.standard_normal(6)
    beta, r = profile(U @ np.diag(d) @ V.T, v, np.ones(6))
    # the matrix itself is rounded: 1e8 * 1e-16 in every direction
    np.testing.assert_allclose(U.T @ r, U.T @ v / (1 + d * d), rtol=1e-4, atol=1e-11)
    np.testing.assert_allclose(V.T @ beta, U.T @ v * d / (1 + d * d), rtol=1e-4)


@every_kernel
def test_slope_is_the_sum_over_pairs(kernel, degree):
    random = rng(1)
    X, Z, theta = (
        random.standard_normal((6, 4)),
        random.standard_normal((5, 4)),
        random.exponential(size=4),
    )
    r, weight = random.standard_normal(6), random.standard_normal(5)
    H, W = Basis(X, Z, make_kernel(kernel, degree)).evaluate(theta)
    np.testing.assert_allclose(H[:, 0], 1.0)
    np.testing.assert_allclose(H[:, 1:], make_kernel(kernel, degree).gram(X, Z, theta))
    pairs = X[:, None] * Z[None]  # (N, B, D)
    if kernel == "rbf":
        dK = -H[:, 1:, None] * (X[:, None] - Z[None]) ** 2
    elif kernel == "linear":
        dK = pairs
    else:
        dK = degree * ((1 + pairs @ theta) ** (degree - 1))[:, :, None] * pairs
    got = Basis(X, Z, make_kernel(kernel, degree)).slope(W, r, weight)
    np.testing.assert_allclose(got, np.einsum("i,j,ijk->k", r, weight, dK), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("N", [5, 15])
@every_kernel
def test_gradient_28_by_finite_differences(kernel, degree, N):
    """At N = 5 the dual form, at N = 15 the primal one (B = 8)."""
    random = rng(2)
    X, Z = random.standard_normal((N, 4)), random.standard_normal((8, 4))
    beta, theta = random.standard_normal(9), random.exponential(size=4)
    v = random.standard_normal(N)
    objective = jcfo_em_steps.profiled(
        Basis(X, Z, make_kernel(kernel, degree)), beta, theta, v, (0.7, 1.3)
    )
    phi = random.exponential(size=4)
    gradient = objective(phi)[1]
    for k in range(4):
        h = 1e-4 * np.eye(4)[k]  # four points: the error is of the order of 1e-16
        near, far = (objective(phi + s * h)[0] - objective(phi - s * h)[0] for s in (1, 2))
        slope = (8 * near - far) / 12e-4
        # rounding of the objective, 1e-12 where the ridge regression is stiff, over 1e-4
        assert gradient[k] == pytest.approx(slope, abs=1e-6 * np.abs(gradient).max())


def Q(basis, v, omega, delta, beta, theta):
    H, _ = basis.evaluate(theta)
    return -0.5 * np.sum((H @ beta - v) ** 2) - 0.5 * omega @ beta**2 - 0.5 * delta @ theta**2


@every_kernel
def test_m_step_is_a_joint_maximum_of_Q(kernel, degree):
    X, y = arrays(12, 5)
    basis, rates = Basis(X, X, make_kernel(kernel, degree)), RATES[kernel, degree]
    random = rng(3)
    beta, theta = 0.3 * random.standard_normal(13), 0.1 + random.exponential(size=5)
    v = jcfo_em_steps.latent_mean(y, basis.evaluate(theta)[0] @ beta)
    omega, delta = jcfo_em_steps.precision(beta, rates[0]), jcfo_em_steps.precision(theta, rates[1])
    new_beta, new_theta = jcfo_em_steps.maximise(basis, beta, theta, v, rates, 500)
    best = Q(basis, v, omega, delta, new_beta, new_theta)
    assert best > Q(basis, v, omega, delta, beta, theta)
    assert (new_theta >= 0).all()
    for size in (1e-1, 1e-2):
        for _ in range(50):
            b = new_beta + size * random.standard_normal(13) * np.abs(new_beta)
            t = np.abs(new_theta + size * random.standard_normal(5) * (new_theta + 0.01))
            assert Q(basis, v, omega, delta, b, t) <= best


@every_kernel
def test_an_m_step_to_rounding_has_no_slope_left(kernel, degree):
    """By default a slope of up to 1e-4 remains; a line search alone ends near 1e-8."""
    X, y = arrays(12, 5)
    X[:, 4] = 0.0  # a constant feature, whose theta goes to 0
    basis, rates = Basis(X, X, make_kernel(kernel, degree)), RATES[kernel, degree]
    random = rng(3)
    beta, theta = 0.3 * random.standard_normal(13), 0.1 + random.exponential(size=5)
    v = jcfo_em_steps.latent_mean(y, basis.evaluate(theta)[0] @ beta)
    objective = jcfo_em_steps.profiled(basis, beta, theta, v, rates)
    loose, tight = (
        jcfo_em_steps.maximise(basis, beta, theta, v, rates, 5000, tolerance)
        for tolerance in (1e-4, 1e-12)
    )
    values, slopes = [], []
    for _, found in (loose, tight):
        phi = np.sqrt(rates[1] / theta) * found
        value, slope = objective(phi)
        values.append(value)
        slopes.append(np.abs(slope[phi > 0.0]).max(initial=0.0))
        assert (slope[phi == 0.0] >= 0.0).all()
    assert slopes[1] < 1e-11
    assert values[1] <= values[0] + 1e-12
    np.testing.assert_allclose(tight[1], loose[1], atol=1e-3)


def test_the_seed_has_its_transpose():
    random = rng(4)
    for shape in ((6, 9), (9, 6)):
        H, y = random.standard_normal(shape), random.integers(2, size=shape[0]).astype(float)
        for epsilon in (1e-6, 1.0):
            want = np.linalg.lstsq(
                np.r_[H, epsilon**0.5 * np.eye(shape[1])], np.r_[y, np.zeros(shape[1])]
            )[0]
            got = jcfo_em_steps.ridge_seed(H, y, epsilon)
            np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)
    basis = Basis(*2 * (arrays(8, 3)[0],))
    beta, theta = jcfo_em_steps.seed(basis, y[:8], (1.0, 1.0), 0, random)
    assert (theta == 1.0).all()
    np.testing.assert_array_equal(beta, jcfo_em_steps.ridge_seed(basis.evaluate(theta)[0], y[:8]))


# --- the climb ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("N", "D"), [(12, 150), (40, 5)])
@every_kernel
def test_log_posterior_never_falls(kernel, degree, N, D):
    X, y = arrays(N, D)
    basis = Basis(X, X, make_kernel(kernel, degree))
    for number in (0, 1):
        run = climb(basis, y, RATES[kernel, degree], number, max_iterations=60)
        trace = np.array(run.objective)
        assert np.isfinite(trace).all()
        assert np.diff(trace).min() > -1e-10 * np.abs(trace).max()
        assert trace[-1] - trace[0] > 1.0
        assert len(run.features) == len(run.samples) == len(trace)
        assert (np.diff(run.features) <= 0).all()  # what is 0 stays 0
        assert (np.diff(run.samples) <= 0).all()


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "rbf"])
def test_units_of_X_change_nothing(kernel):
    """X in units c times smaller is theta / c^2 and a rate c^2 times larger: the same climb.

    An optimiser whose stopping rule has a scale stops at once where theta is small.
    """
    X, y = arrays(25, 30)
    rates = RATES[kernel, 1]
    ends = []
    for c in (1.0, 100.0, 0.01):
        scaled = (rates[0], rates[1] * c**2)
        run = climb(Basis(c * X, c * X, make_kernel(kernel)), y, scaled, 1, max_iterations=40)
        ends.append(run.objective[-1] - 30 * np.log(c**2))
    # in exact arithmetic they are one; what the optimiser rounds goes through 40 iterations
    np.testing.assert_allclose(ends, ends[0], atol=1e-3)


def test_the_printed_rates_fail_the_check_of_the_trace():
    """Negative control: a step by (24), (25) as printed lowers the log posterior of (12), (15)."""
    X, y = arrays(40, 5)
    basis, gamma = Basis(X, X), (4.0, 9.0)
    state = climb(basis, y, (2.0, 3.0)).state
    trace = []
    for rates in ((2.0, 3.0), gamma):  # with the roots, and as printed
        state.rates = rates
        before = log_posterior_of(state, (2.0, 3.0))
        state.step(50, 1e-4)
        trace.append(log_posterior_of(state, (2.0, 3.0)) - before)
    assert trace[0] > -1e-10
    assert trace[1] < -1e-3


def log_posterior_of(state, rates):
    return jcfo_em_steps.log_posterior(state.y, state.eta, state.beta, state.theta, rates)


def basis_of(problem):
    return jcfo_em.basis_of(problem, problem.X, problem.Z)


@every_kernel
def test_objective_is_the_marginal_log_posterior(kernel, degree):
    problem = made(15, 4, kernel=kernel, degree=degree)
    random = rng(0)
    beta, theta = random.standard_normal(16), random.exponential(size=4)
    rates = problem.hypers.gamma1**0.5, problem.hypers.gamma2**0.5
    state = State(basis_of(problem), problem.y.astype(float), beta, theta, rates)
    point = {"bias": beta[0], "sample_weight": beta[1:], "feature_weight": theta}
    assert state.objective == pytest.approx(float(problem.log_joint(point)), rel=1e-10)
    np.testing.assert_allclose(state.eta, problem.decision(point), rtol=1e-8, atol=1e-10)


def test_pruning_only_saves_time():
    """On fixed data, where no pruned weight decides between two maxima; the gap shrinks."""
    X, y = arrays(25, 8, generator=np.random.default_rng)
    basis, rates = Basis(X, X), (1.0, 8.0)
    given = {"generator": np.random.default_rng}
    high, low, off = (
        climb(basis, y, rates, prune=p, **given).objective[-1] for p in (1e-2, 1e-4, 0.0)
    )
    assert abs(low - off) < abs(high - off)
    assert abs(high - off) < 1e-5  # 100 times the tolerance at which a climb ends


def revivable(random):
    """A state with two weights of each kind at 0, and the slopes of all; columns point up at 0."""
    X, Z = random.standard_normal((12, 4)), random.standard_normal((6, 4))
    y = (np.arange(12) % 2).astype(float)
    beta, theta = random.standard_normal(7), random.uniform(0.5, 1.5, 4)
    beta[[2, 3]], theta[[1, 2]] = 0.0, 0.0
    of_theta = State(Basis(X, Z), y, beta, theta, (1.0, 1.0)).full_slopes()[1]
    X[:, 1:3] *= np.sign(of_theta[1:3])  # eta does not depend on them
    state = State(Basis(X, Z), y, beta, theta, (1.0, 1.0))
    return state, *state.full_slopes()


def with_rates(state, *rates):
    return State(state.basis, state.y, state.beta, state.theta, rates)


def test_each_kind_of_weight_is_revived_by_its_own_rate():
    """theta's slope is above its rate and below beta's, then the reverse."""
    state, of_beta, of_theta = revivable(rng(0))
    assert (of_theta[1:3] > 0.0).all()
    large = 2.0 * max(np.abs(of_beta).max(), of_theta.max())

    middle = np.sqrt(of_theta[1] * of_theta[2])  # one slope above it, one below
    theta_only = with_rates(state, large, middle)
    assert theta_only.revive()
    assert ((theta_only.theta > 0.0) == ((state.theta > 0.0) | (of_theta > middle))).all()
    np.testing.assert_array_equal(theta_only.beta, state.beta)

    beta_only = with_rates(state, 0.5 * np.abs(of_beta[2:4]).min(), large)
    assert beta_only.revive()
    np.testing.assert_array_equal(np.sign(beta_only.beta[2:4]), np.sign(of_beta[2:4]))
    np.testing.assert_array_equal(beta_only.theta, state.theta)

    assert not with_rates(state, large, large).revive()


def test_no_start_ends_higher_than_the_one_returned():
    X, y = arrays(20, 6)
    options = Options(starts=4, max_iterations=100)
    best, finals = solve(Basis(X, X, make_kernel("rbf")), y, (0.5, 1.0), options, rng(0))
    assert best.objective[-1] == finals.max()
    assert len(finals) == 4


@pytest.mark.parametrize(("kernel", "degree"), [("linear", 1), ("polynomial", 2), ("rbf", 1)])
def test_memory_is_a_few_copies_of_X(kernel, degree):
    """An (N, N, D) array is 40 copies, a (D, D) one 75."""
    X, y = arrays(40, 3000)
    basis = Basis(X, X, make_kernel(kernel, degree))
    climb(basis, y, (1.0, 20.0), 1, max_iterations=1)
    tracemalloc.start()
    climb(basis, y, (1.0, 20.0), 1, max_iterations=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * X.nbytes
