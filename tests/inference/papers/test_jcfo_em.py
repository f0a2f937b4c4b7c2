"""JCFO's expectation-maximisation against quadrature, finite differences and other optimisers.

Negative controls: the rates as printed in (24), (25) must fail the checks that the right ones pass.
"""

import dataclasses
import tracemalloc

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, optimize, stats

import ardvark as av
from ardvark.inference import fitting
from ardvark.inference.backend import Job
from ardvark.inference.datatree import read, save
from ardvark.inference.papers import jcfo_em
from ardvark.inference.papers import jcfo_em_steps as jcfo_steps
from ardvark.inference.papers.jcfo_em import Options
from ardvark.inference.papers.jcfo_em_steps import Basis, State, iterate, profile, solve
from ardvark.inference.progress import Reporter
from ardvark.inference.target import Target
from ardvark.models.parts.kernels import gram
from ardvark.models.parts.probit import probit_logp
from ardvark.validate import InputError

KERNELS = [("linear", 1), ("polynomial", 1), ("polynomial", 2), ("polynomial", 3), ("rbf", 1)]
every_kernel = pytest.mark.parametrize(("kernel", "degree"), KERNELS)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(fitting.BACKENDS, "jcfo_em", jcfo_em)


def arrays(N, D, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    y = (X[:, 0] - X[:, 1 % D] + noise * rng.standard_normal(N) > 0).astype(float)
    y[:2] = 0.0, 1.0
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def made(N, D, seed=0, model="jcfo", **given):
    X, y = arrays(N, D, seed)
    return av.problem(model, (X, y.astype(int)), **given)


def run_fit(problem, **options):
    settings = {"random_seed": 5, "progressbar": False} | options
    return av.fit(problem, "jcfo_em", **settings)


def basis_of(problem):
    return jcfo_em.basis_of(problem, problem.X, problem.Z)


def point_of(tree):
    return {str(k): v.values[0, 0] for k, v in tree["posterior"].data_vars.items()}


RATES = {
    ("linear", 1): (1.0, 3.0),
    ("polynomial", 1): (2.0, 4.0),
    ("polynomial", 2): (2.0, 6.0),
    ("polynomial", 3): (4.0, 12.0),
    ("rbf", 1): (0.5, 1.0),
}


def gammas(kernel, degree):
    rates = RATES[kernel, degree]
    return {"gamma1": rates[0] ** 2, "gamma2": rates[1] ** 2}


# --- E-step ---------------------------------------------------------------------------------------


def test_latent_moments_by_quadrature():
    for eta in (-6.0, -1.3, 0.0, 0.4, 5.0):
        for label, (low, high) in ((1.0, (0.0, 20.0)), (0.0, (-20.0, 0.0))):
            at = np.linspace(low, high, 200_001)
            density = stats.norm.pdf(at, eta)
            want = integrate.simpson(at * density, at) / integrate.simpson(density, at)
            got = jcfo_steps.latent_mean(np.array([label]), np.array([eta]))[0]
            assert got == pytest.approx(want, rel=1e-8)
            s = 2 * label - 1
            score = jcfo_steps.score(np.array([label]), np.array([eta]))[0]
            assert got == pytest.approx(eta + score, abs=1e-12)  # (23)
            h = 1e-5
            slope = (stats.norm.logcdf(s * (eta + h)) - stats.norm.logcdf(s * (eta - h))) / (2 * h)
            assert score == pytest.approx(slope, rel=1e-6)


def test_latent_moments_of_saturated_probabilities():
    y, eta = np.array([1.0, 0.0, 1.0, 0.0]), np.array([-1e8, 1e8, 1e8, -1e8])
    v, score = jcfo_steps.latent_mean(y, eta), jcfo_steps.score(y, eta)
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
        assert jcfo_steps.precision(weight, gamma**0.5) == pytest.approx(want, rel=1e-6)
        assert abs(jcfo_steps.precision(weight, gamma) / want - 1) > 0.4  # erratum: (24) as printed


# --- M-step ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("N", "M"), [(7, 12), (12, 7), (9, 9)])
def test_primal_dual_and_singular_value_forms_are_one(N, M, monkeypatch):
    rng = np.random.default_rng(N)
    H, v = rng.standard_normal((N, M)), rng.standard_normal(N)
    variance = rng.exponential(size=M)
    omega = np.diag(1 / variance)
    want = np.linalg.solve(omega + H.T @ H, H.T @ v)  # (29)
    variance_0 = np.where(np.arange(M) == 2, 0.0, variance)
    primal_0 = profile(H, v, variance_0, "primal")
    for form in ("primal", "dual", "smaller", "singular"):
        if form == "singular":
            monkeypatch.setattr(jcfo_steps, "_STIFF", 0.0)
        beta, r = profile(H, v, variance, form)
        np.testing.assert_allclose(beta, want, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(r, v - H @ want, rtol=1e-12, atol=1e-12)
        beta, r = profile(H, v, variance_0, form)
        assert beta[2] == 0.0
        np.testing.assert_allclose(beta, primal_0[0], rtol=1e-12, atol=1e-12)


def test_a_stiff_ridge_regression_is_still_exact():
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((6, 6)))[0] for _ in range(2))
    d = 10.0 ** np.arange(-2, 10, 2)
    v = rng.standard_normal(6)
    beta, r = profile(U @ np.diag(d) @ V.T, v, np.ones(6))
    # the matrix itself is rounded: 1e8 * 1e-16 in every direction
    np.testing.assert_allclose(U.T @ r, U.T @ v / (1 + d * d), rtol=1e-4, atol=1e-11)
    np.testing.assert_allclose(V.T @ beta, U.T @ v * d / (1 + d * d), rtol=1e-4)


@every_kernel
def test_slope_is_the_sum_over_pairs(kernel, degree):
    rng = np.random.default_rng(1)
    X, Z, theta = rng.standard_normal((6, 4)), rng.standard_normal((5, 4)), rng.exponential(size=4)
    r, weight = rng.standard_normal(6), rng.standard_normal(5)
    H, W = Basis(X, Z, kernel, degree).evaluate(theta)
    np.testing.assert_allclose(H[:, 0], 1.0)
    np.testing.assert_allclose(H[:, 1:], gram(X, Z, theta, kernel=kernel, degree=degree))
    pairs = X[:, None] * Z[None]  # (N, B, D)
    if kernel == "rbf":
        dK = -H[:, 1:, None] * (X[:, None] - Z[None]) ** 2
    elif kernel == "linear":
        dK = pairs
    else:
        dK = degree * ((1 + pairs @ theta) ** (degree - 1))[:, :, None] * pairs
    got = Basis(X, Z, kernel, degree).slope(W, r, weight)
    np.testing.assert_allclose(got, np.einsum("i,j,ijk->k", r, weight, dK), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("N", [5, 15])
@every_kernel
def test_gradient_28_by_finite_differences(kernel, degree, N):
    """At N = 5 the dual form, at N = 15 the primal one (B = 8)."""
    rng = np.random.default_rng(2)
    X, Z = rng.standard_normal((N, 4)), rng.standard_normal((8, 4))
    beta, theta = rng.standard_normal(9), rng.exponential(size=4)
    v = rng.standard_normal(N)
    objective = jcfo_steps.profiled(Basis(X, Z, kernel, degree), beta, theta, v, (0.7, 1.3))
    phi = rng.exponential(size=4)
    for k in range(4):
        h = 1e-6 * np.eye(4)[k]
        slope = (objective(phi + h)[0] - objective(phi - h)[0]) / 2e-6
        assert objective(phi)[1][k] == pytest.approx(slope, rel=1e-6, abs=1e-7)


def Q(basis, v, omega, delta, beta, theta):
    H, _ = basis.evaluate(theta)
    return -0.5 * np.sum((H @ beta - v) ** 2) - 0.5 * omega @ beta**2 - 0.5 * delta @ theta**2


@every_kernel
def test_m_step_is_a_joint_maximum_of_Q(kernel, degree):
    X, y = arrays(12, 5)
    basis, rates = Basis(X, X, kernel, degree), RATES[kernel, degree]
    rng = np.random.default_rng(3)
    beta, theta = 0.3 * rng.standard_normal(13), 0.1 + rng.exponential(size=5)
    v = jcfo_steps.latent_mean(y, basis.evaluate(theta)[0] @ beta)
    omega, delta = jcfo_steps.precision(beta, rates[0]), jcfo_steps.precision(theta, rates[1])
    new_beta, new_theta = jcfo_steps.maximise(basis, beta, theta, v, rates, 500)
    best = Q(basis, v, omega, delta, new_beta, new_theta)
    assert best > Q(basis, v, omega, delta, beta, theta)
    assert (new_theta >= 0).all()
    for size in (1e-1, 1e-2):
        for _ in range(50):
            b = new_beta + size * rng.standard_normal(13) * np.abs(new_beta)
            t = np.abs(new_theta + size * rng.standard_normal(5) * (new_theta + 0.01))
            assert Q(basis, v, omega, delta, b, t) <= best


def test_the_seed_has_its_transpose():
    rng = np.random.default_rng(4)
    for shape in ((6, 9), (9, 6)):
        H, y = rng.standard_normal(shape), rng.integers(2, size=shape[0]).astype(float)
        for epsilon in (1e-6, 1.0):
            want = np.linalg.lstsq(
                np.r_[H, epsilon**0.5 * np.eye(shape[1])], np.r_[y, np.zeros(shape[1])]
            )[0]
            got = jcfo_steps.ridge_seed(H, y, epsilon)
            np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)
    basis = Basis(*2 * (arrays(8, 3)[0],))
    beta, theta = jcfo_steps.seed(basis, y[:8], (1.0, 1.0), 0, rng)
    assert (theta == 1.0).all()
    np.testing.assert_array_equal(beta, jcfo_steps.ridge_seed(basis.evaluate(theta)[0], y[:8]))


# --- the whole climb ------------------------------------------------------------------------------


def climb(basis, y, rates, number=0, options=None, **given):
    options = options or Options(**given)
    rng = np.random.default_rng(number)
    return iterate(State(basis, y, *jcfo_steps.seed(basis, y, rates, number, rng), rates), options)


@pytest.mark.parametrize(("N", "D"), [(12, 150), (40, 5)])
@every_kernel
def test_log_posterior_never_falls(kernel, degree, N, D):
    X, y = arrays(N, D)
    basis = Basis(X, X, kernel, degree)
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
        run = climb(Basis(c * X, c * X, kernel), y, scaled, 1, max_iterations=40)
        ends.append(run.objective[-1] - 30 * np.log(c**2))
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
        state.step(50)
        trace.append(log_posterior_of(state, (2.0, 3.0)) - before)
    assert trace[0] > -1e-10
    assert trace[1] < -1e-3


def log_posterior_of(state, rates):
    return jcfo_steps.log_posterior(state.y, state.eta, state.beta, state.theta, rates)


@every_kernel
def test_objective_is_the_marginal_log_posterior(kernel, degree):
    problem = made(15, 4, kernel=kernel, degree=degree)
    rng = np.random.default_rng(0)
    beta, theta = rng.standard_normal(16), rng.exponential(size=4)
    rates = problem.hypers.gamma1**0.5, problem.hypers.gamma2**0.5
    state = State(basis_of(problem), problem.y.astype(float), beta, theta, rates)
    point = {"bias": beta[0], "sample_weight": beta[1:], "feature_weight": theta}
    assert state.objective == pytest.approx(float(problem.log_joint(point)), rel=1e-10)
    np.testing.assert_allclose(state.eta, problem.decision(point), rtol=1e-8, atol=1e-10)


def slopes_by_differences(problem, tree):
    """d log-likelihood / d (bias, sample_weight, feature_weight), without the module's formulas."""
    point = {k: point_of(tree)[k] for k in ("bias", "sample_weight", "feature_weight")}
    out = {}
    for name, at in point.items():
        slope = np.empty(np.size(at))
        for j in range(np.size(at)):
            ends = []
            for sign in (1, -1):
                moved = np.atleast_1d(at).astype(float).copy()
                moved[j] += sign * 1e-6
                ends.append(problem.log_likelihood(point | {name: moved.reshape(np.shape(at))}))
            slope[j] = (ends[0].sum() - ends[1].sum()) / 2e-6
        out[name] = slope
    return out


@every_kernel
def test_optimality_conditions_at_the_end(kernel, degree):
    """Without violations only because of `revive`; the paper's algorithm may leave some."""
    problem = made(24, 5, seed=1, kernel=kernel, degree=degree, **gammas(kernel, degree))
    tree = run_fit(problem, revive=True, starts=1, tolerance=1e-9)
    assert tree.attrs["status"] == "ok", tree.attrs["reason"]
    assert tree.attrs["kkt_violations"] == 0
    assert tree.attrs["kkt_nonzero"] < 2e-3
    point, slopes = point_of(tree), slopes_by_differences(problem, tree)
    names = {"bias": "kkt_bias", "sample_weight": "kkt_sample", "feature_weight": "kkt_feature"}
    for (name, residual), rate in zip(
        names.items(), np.array(RATES[kernel, degree])[[0, 0, 1]], strict=True
    ):
        weight, g = np.atleast_1d(point[name]), slopes[name]
        np.testing.assert_allclose(g[weight != 0], rate * np.sign(weight[weight != 0]), rtol=3e-3)
        size = g if name == "feature_weight" else np.abs(g)
        assert (size[weight == 0] < rate * (1 + 2e-3)).all()
        assert tree["fit"][residual].values.max() < 2e-3
    assert tree.attrs["features"] == (point["feature_weight"] > 0).sum()
    assert tree.attrs["samples"] == (point["sample_weight"] != 0).sum()


def penalised_optimum(H, y, rate, start=None):
    """The mode of L1-penalised probit regression by split variables beta = p - q: convex."""
    M = H.shape[1]
    s = 2 * y - 1

    def minus(pq):
        eta = H @ (pq[:M] - pq[M:])
        g = -H.T @ (s * np.exp(stats.norm.logpdf(eta) - stats.norm.logcdf(s * eta)))
        return -stats.norm.logcdf(s * eta).sum() + rate * pq.sum(), np.r_[g + rate, -g + rate]

    found = optimize.minimize(
        minus, np.full(2 * M, 0.01), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * M),
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    return found.x[:M] - found.x[M:], -found.fun


@pytest.mark.parametrize(("N", "D", "rate"), [(40, 6, 2.0), (20, 60, 1.5)])
def test_sparse_probit_is_the_convex_optimum(N, D, rate):
    problem = made(N, D, model="sparse_probit", gamma1=rate**2, parametrization="marginal")
    tree = run_fit(problem, tolerance=1e-10)
    assert tree.attrs["status"] == "ok"
    H = np.c_[np.ones(N), problem.X]
    beta, best = penalised_optimum(H, problem.y, rate)
    point = point_of(tree)
    constant = (D + 1) * np.log(rate / 2)
    assert tree.attrs["log_posterior"] - constant == pytest.approx(best, abs=1e-5)
    np.testing.assert_allclose(np.r_[point["bias"], point["beta"]], beta, atol=3e-3)
    assert set(np.flatnonzero(point["beta"])) == set(np.flatnonzero(np.abs(beta[1:]) > 1e-3))
    assert tree.attrs["kkt_violations"] == 0
    # the marginal form has no Jacobian
    assert tree["sample_stats"]["lp"].item() == pytest.approx(tree.attrs["log_posterior"])


@every_kernel
def test_theta_fixed_is_the_convex_optimum_in_beta(kernel, degree):
    X, y = arrays(25, 4)
    H, _ = Basis(X, X, kernel, degree).evaluate(np.full(4, 0.05))
    run = climb(Basis(H[:, 1:]), y, (0.8, 1.0), tolerance=1e-10, max_iterations=20_000)
    _, best = penalised_optimum(H, y, 0.8)
    found = run.objective[-1] - 26 * np.log(0.4)
    assert found == pytest.approx(best, abs=2e-4)


@every_kernel
def test_another_optimiser_finds_nothing_higher_nearby(kernel, degree):
    """L-BFGS-B on the marginal log posterior itself, beta split in two, from the end of the EM."""
    X, y = arrays(24, 5, seed=1)
    basis, rates = Basis(X, X, kernel, degree), RATES[kernel, degree]
    run = climb(basis, y, rates, 1, revive=True, tolerance=1e-9)
    M = 25

    def minus(x):
        beta, theta = x[:M] - x[M : 2 * M], x[2 * M :]
        H, W = basis.evaluate(theta)
        r = jcfo_steps.score(y, H @ beta)
        value = probit_logp(y, H @ beta).sum() - rates[0] * x[: 2 * M].sum()
        slope = H.T @ r
        tail = basis.slope(W, r, beta[1:]) - rates[1]
        return -value + rates[1] * theta.sum(), -np.r_[slope - rates[0], -slope - rates[0], tail]

    beta, theta = run.state.beta, run.state.theta
    start = np.r_[np.maximum(beta, 0), np.maximum(-beta, 0), theta]
    found = optimize.minimize(
        minus, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start),
        options={"maxiter": 2000, "ftol": 1e-15},
    )  # fmt: skip
    assert -found.fun < -minus(start)[0] + 1e-4


# --- the origin, starts, and weights at 0 ---------------------------------------------------------


def origin(basis, y, rates, N, D):
    beta = np.zeros(N + 1)
    beta[0] = penalised_optimum(np.ones((len(y), 1)), y, rates[0])[0][0]
    return State(basis, y, beta, np.zeros(D), rates)


@every_kernel
def test_the_origin_is_a_local_maximum_whatever_the_data(kernel, degree):
    X, y = arrays(20, 4, noise=0.0)
    y[np.argsort(X[:, 0] - X[:, 1])] = np.repeat([0.0, 1.0], 10)  # balanced: beta_0 is 0 there
    basis, rates = Basis(X, X, kernel, degree), (0.3, 0.3)  # a weak prior: the data pull hard
    top = origin(basis, y, rates, 20, 4).objective
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-4):
        for _ in range(200):
            beta, theta = size * rng.standard_normal(21), size * rng.exponential(size=4)
            assert State(basis, y, beta, theta, rates).objective < top
    # and not the highest
    assert climb(basis, y, rates, max_iterations=50).objective[-1] > top + 5


def test_more_starts_escape_the_origin():
    """The paper's seed, theta = 1, is far out in scale on fat data, and falls from there to 0."""
    problem = made(30, 400, kernel="linear", gamma1=1.0, gamma2=1600.0)
    alone = run_fit(problem, starts=1)
    assert alone.attrs["status"] == "not_converged"
    assert "ended at the origin" in alone.attrs["reason"]
    assert alone.attrs["features"] == 0
    assert not alone["fit"]["selected_feature"].any()
    several = run_fit(problem)
    assert several.attrs["status"] == "ok", several.attrs["reason"]
    assert several.attrs["features"] > 0
    finals = several["fit"]["objective_start"].values
    assert len(finals) == 6
    assert finals[0] == pytest.approx(alone.attrs["log_posterior"])
    assert several.attrs["log_posterior"] == pytest.approx(finals.max())
    assert finals.max() > finals[0] + 1


def test_weights_at_zero_that_would_rise_are_reported_and_revived():
    X, y = arrays(60, 20)
    given = {"kernel": "linear", "gamma1": 1.0, "gamma2": 9.0}
    problem = av.problem("jcfo", (X, y.astype(int)), **given)
    paper = run_fit(problem, starts=1)
    assert paper.attrs["kkt_violations"] > 0
    assert paper.attrs["kkt_zero"] > 0.1
    assert "revive=True" in paper.attrs["reason"]
    zero = paper["fit"]["feature_weight"].values == 0.0
    assert paper["fit"]["kkt_feature"].values[zero].max() == paper.attrs["kkt_zero"]
    better = run_fit(problem, starts=1, revive=True)
    assert better.attrs["kkt_violations"] == 0
    assert better.attrs["log_posterior"] > paper.attrs["log_posterior"] + 0.1
    assert np.diff(better["fit"]["objective"].values).min() > -1e-9


def test_pruning_only_saves_time():
    X, y = arrays(25, 8)
    basis, rates = Basis(X, X), (1.0, 8.0)
    ends = [climb(basis, y, rates, prune=p).objective[-1] for p in (1e-3, 0.0)]
    np.testing.assert_allclose(ends, ends[-1], atol=1e-4)


# --- printed rates --------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["jcfo", "sparse_probit"])
def test_printed_rates_at_gamma_are_ours_at_its_square(model):
    given = {"gamma1": 2.0} | ({"gamma2": 5.0} if model == "jcfo" else {})
    squared = {k: v**2 for k, v in given.items()}
    printed = run_fit(made(25, 6, model=model, **given), printed_rates=True, starts=1)
    ours = run_fit(made(25, 6, model=model, **squared), starts=1)
    for name, values in ours["posterior"].data_vars.items():
        np.testing.assert_array_equal(values, printed["posterior"][name])
    np.testing.assert_array_equal(ours["fit"]["objective"], printed["fit"]["objective"])
    # negative control: it is no maximum of the posterior that (12) states
    assert ours.attrs["kkt_nonzero"] < 1e-2
    assert printed.attrs["kkt_nonzero"] > 0.3
    right = run_fit(made(25, 6, model=model, **given), starts=1)
    assert right.attrs["kkt_nonzero"] < 1e-2
    assert right.attrs["log_posterior"] > printed.attrs["log_posterior"] + 0.1


# --- the filter and the hold-out ------------------------------------------------------------------


def planted(N=80, D=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    y = (X[:, [7, 300, 1400]] @ [1.0, -1.0, 1.0] + 0.2 * rng.standard_normal(N) > 0).astype(int)
    return X, y


def test_prefilter_keeps_planted_features():
    problem = av.problem("jcfo", planted(), kernel="linear")
    tree = run_fit(problem, prefilter=40, starts=2, tolerance=1e-5)
    kept = np.flatnonzero(~tree["fit"]["filtered"].values)
    assert {7, 300, 1400} <= set(kept)
    assert 15 <= len(kept) <= 40
    weight = point_of(tree)["feature_weight"]
    assert weight.shape == (1500,)
    assert set(np.argsort(weight)[-3:]) == {7, 300, 1400}
    # gammas that were filled from D are filled from what is kept; a given one is not touched
    small = problem.spec.Hypers(kernel="linear").filled(80, 80, len(kept))
    assert tree["fit"]["gamma2"].item() == small.gamma2
    given = av.problem("jcfo", planted(), kernel="linear", gamma2=123.0)
    assert jcfo_em.own_gammas(given, len(kept)) == (1.0, 123.0)
    assert jcfo_em.own_gammas(problem, 1500) == (problem.hypers.gamma1, problem.hypers.gamma2)


def test_prefilter_without_anything_to_filter():
    X, y = arrays(20, 5)
    np.testing.assert_array_equal(jcfo_em.prefilter(X, y, 5, Options()), np.arange(5))
    np.testing.assert_array_equal(jcfo_em.prefilter(0 * X, y, 2, Options()), np.arange(5))
    with pytest.raises(InputError, match="is that filter itself"):
        run_fit(made(20, 5, model="sparse_probit"), prefilter=2)


@pytest.mark.parametrize("model", ["jcfo", "sparse_probit"])
def test_gammas_by_holdout(model):
    problem = made(30, 6, model=model)
    grids = {"gamma1_grid": (1.0, 1e4)} | ({"gamma2_grid": (25.0, 1e6)} if model == "jcfo" else {})
    tree = run_fit(problem, select="holdout", starts=1, tolerance=1e-5, **grids)
    tried, score = tree["fit"]["holdout_gamma"].values, tree["fit"]["holdout_score"].values
    assert len(tried) == len(score) == (4 if model == "jcfo" else 2)
    assert tried[:, 0].tolist() == sorted(tried[:, 0], reverse=True)
    assert tree.attrs["gamma1"] == tried[score.argmax(), 0] == 1.0
    if model == "jcfo":
        assert tree.attrs["gamma2"] == tried[score.argmax(), 1] == 25.0
    assert (score <= 0.0).all()
    # the last fit is one to all rows, at the gammas chosen
    again = {"gamma1": 1.0} | ({"gamma2": 25.0} if model == "jcfo" else {})
    assert run_fit(made(30, 6, model=model, **again), starts=1, tolerance=1e-5).attrs[
        "log_posterior"
    ] == pytest.approx(tree.attrs["log_posterior"])


def test_holdout_scores_are_those_of_a_problem_without_the_rows():
    """Standardisation, basis and scores of the inner fit, from a problem of the kept rows."""
    rng = np.random.default_rng(1)
    X, y = arrays(30, 4)
    problem = av.problem("jcfo", (5.0 + X * [1, 2, 3, 4], y.astype(int)))
    options = Options(select="holdout", gamma2_grid=(9.0, 1.0), gamma1_grid=(4.0,), starts=1)
    choice = jcfo_em.choose(problem, y, options, np.random.default_rng(1), Reporter(enabled=False))
    held = jcfo_em.holdout_rows(y, 0.1, rng)
    assert 0 < held.sum() <= 4
    assert {0.0, 1.0} == set(y[~held])
    for (gamma1, gamma2), score in zip(choice.tried, choice.scores, strict=True):
        inner = av.problem("jcfo", problem.data.take(~held), gamma1=gamma1, gamma2=gamma2)
        tree = run_fit(inner, starts=1, tolerance=1e-4)
        p = av.predict(inner, tree, problem.data.X[held], rule="paper").values[0, 0]
        assert score == pytest.approx(np.log(np.where(y[held] == 1, p, 1 - p)).mean(), abs=1e-6)


def test_holdout_needs_two_of_a_class():
    tree = run_fit(av.problem("jcfo", two_rows()), select="holdout")
    assert tree.attrs["status"] == "failed"
    assert "2 samples of a class" in tree.attrs["reason"]
    assert jcfo_em.holdout_rows(np.array([0.0, 1.0, 1.0]), 0.1, np.random.default_rng(0)).sum() == 1


# --- the fit contract -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["marginal", "hierarchical", "latent"])
def test_what_a_fit_of_jcfo_contains(form, tmp_path):
    problem = made(20, 5, kernel="linear", gamma2=4.0, parametrization=form)
    tree = run_fit(problem, draws=7, chains=3, starts=1)
    assert tree.attrs["kind"] == "point"
    posterior = tree["posterior"]
    assert posterior.sizes["chain"] == posterior.sizes["draw"] == 1
    point = point_of(tree)
    assert set(point) == {"bias", "sample_weight", "feature_weight", "eta"}
    np.testing.assert_allclose(problem.decision(point), point["eta"], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        tree["log_likelihood"]["y"].values[0, 0], problem.log_likelihood(point), rtol=1e-10
    )
    assert (point["feature_weight"] == 0).any()
    assert np.isnan(tree["sample_stats"]["lp"].item())
    marginal = dataclasses.replace(problem.hypers, parametrization="marginal")
    joint = dataclasses.replace(problem, hypers=marginal).log_joint(point)
    assert tree.attrs["log_posterior"] == pytest.approx(float(joint))
    assert tree["fit"]["objective"].values[-1] == pytest.approx(float(joint))
    details = tree["fit"]
    for name, dim in (
        ("selected_feature", "feature"), ("selected_sample", "basis"), ("kkt_sample", "basis"),
        ("filtered", "feature"), ("objective", "iteration"), ("features_kept", "iteration"),
        ("samples_kept", "iteration"), ("objective_start", "start"),
    ):  # fmt: skip
        assert details[name].dims == (dim,)
    assert details["features_kept"].values[-1] == tree.attrs["features"]
    assert details["samples_kept"].values[-1] == tree.attrs["samples"]
    save(tree, tmp_path / "fit.nc")
    back = read(tmp_path / "fit.nc")
    assert tree.identical(back)
    X_new = np.random.default_rng(0).standard_normal((4, 5))
    paper = av.predict(problem, back, X_new, rule="paper").values
    want = stats.norm.cdf(problem.decision(point, problem.standardized(X_new)))
    np.testing.assert_allclose(paper[0, 0], want, rtol=1e-10)
    np.testing.assert_allclose(av.predict(problem, tree, X_new).values, paper, rtol=1e-10)


def test_lp_where_no_weight_is_zero():
    problem = made(30, 2, kernel="linear", gamma1=0.1, gamma2=0.1, parametrization="marginal")
    tree = run_fit(problem)
    point = point_of(tree)
    assert (point["feature_weight"] > 0).all()
    assert tree["sample_stats"]["lp"].item() == pytest.approx(float(problem.log_density(point)))


def test_what_a_fit_of_sparse_probit_contains():
    for form in ("marginal", "hierarchical"):
        problem = made(30, 8, model="sparse_probit", gamma1=9.0, parametrization=form)
        tree = run_fit(problem)
        point = point_of(tree)
        assert set(point) == {"bias", "beta", "feature_weight", "eta"}
        np.testing.assert_array_equal(point["feature_weight"], np.abs(point["beta"]))
        assert "selected_sample" not in tree["fit"]
        paper = av.predict(problem, tree, problem.data.X, rule="paper").values[0, 0]
        np.testing.assert_allclose(paper, stats.norm.cdf(point["eta"]), rtol=1e-10)
        assert np.isnan(tree["sample_stats"]["lp"].item()) == (form == "hierarchical")
    strong = run_fit(made(30, 8, model="sparse_probit", gamma1=1e8))
    assert strong.attrs["status"] == "ok"
    assert "gamma1 is too large" in strong.attrs["reason"]


def test_equal_seeds_give_equal_points():
    problem = made(25, 30, kernel="linear", gamma2=25.0)
    options = {"starts": 3, "tolerance": 1e-4}
    one, two, other = (run_fit(problem, random_seed=s, **options) for s in (1, 1, 2))
    for name in one["posterior"].data_vars:
        np.testing.assert_array_equal(one["posterior"][name], two["posterior"][name])
    finals = [t["fit"]["objective_start"].values for t in (one, two, other)]
    np.testing.assert_array_equal(finals[0], finals[1])
    assert finals[0][0] == finals[2][0]  # the paper's seed has nothing random
    assert (finals[0][1:] != finals[2][1:]).any()


def test_fit_keeps_what_is_asked():
    kept = set(run_fit(made(20, 5, gamma2=4.0), keep="shared", starts=1)["posterior"].data_vars)
    assert kept == {"bias", "sample_weight", "feature_weight", "eta"}


def test_a_basis_of_other_centres():
    X, y = arrays(20, 4)
    given = {"kernel": "rbf", **gammas("rbf", 1)}
    for basis in ([0, 3, 9, 11, 17], np.random.default_rng(0).standard_normal((3, 4))):
        problem = av.problem("jcfo", (X, y.astype(int)), basis=basis, **given)
        for options in ({}, {"select": "holdout"}):
            tree = run_fit(problem, starts=1, tolerance=1e-5, **options)
            assert tree["posterior"].sizes["basis"] == len(basis)
            assert np.diff(tree["fit"]["objective"].values).min() > -1e-9


def test_supports_and_options_say_what_is_wrong():
    assert "bare pm.Model" in jcfo_em.supports(Target(pm.Model()))
    with pytest.raises(InputError, match="the model is 'rfvm'"):
        run_fit(made(10, 2, model="rfvm"))
    for bad in (
        {"select": "cv"},
        {"prune": 1.0},
        {"holdout": 0.0},
        {"starts": 0},
        {"prefilter": 0},
    ):
        with pytest.raises(InputError, match=next(iter(bad))):
            Options(**bad)
    with pytest.raises(InputError, match="each value of gamma2_grid"):
        Options(gamma2_grid=(1.0, -1.0))
    with pytest.raises(TypeError, match="revive"):
        run_fit(made(10, 2), reviv=True)


def test_too_few_iterations_is_not_converged():
    tree = run_fit(made(20, 5, kernel="linear", gamma2=4.0), max_iterations=2)
    assert tree.attrs["status"] == "not_converged"
    assert "after 2 iterations" in tree.attrs["reason"]
    assert not bool(tree["fit"]["converged"])


# --- awkward input --------------------------------------------------------------------------------


def separable():
    x = np.linspace(-3, 3, 20)
    return np.c_[x, x**2], (x > 0).astype(int)


def duplicated():
    X, y = arrays(16, 3, seed=1)
    return np.repeat(X, 4, axis=1), y.astype(int)


def constant():
    X, y = arrays(16, 4, seed=2)
    X[:, 1:3] = 7.0
    return X, y.astype(int)


def two_rows():
    return np.array([[0.0, 1.0, 2.0], [1.0, -1.0, 2.5]]), np.array([0, 1])


def direct(problem, **options):
    """The backend's own result: no `pm.Model` is built, which costs more than a small fit."""
    return jcfo_em.fit(Target(problem), Options(**options), Job(draws=1, chains=1, seed=5))


def check(result):
    assert result.status in ("ok", "not_converged"), result.reason
    for name, values in result.posterior.items():
        assert np.isfinite(values).all(), name
    trace = result.details["objective"]
    assert np.isfinite(trace).all()
    assert np.diff(trace).min() > -1e-10 * np.abs(trace).max()
    assert np.isfinite(
        [result.attrs[k] for k in ("kkt_nonzero", "kkt_zero", "log_posterior")]
    ).all()
    return result


@pytest.mark.parametrize("data", [separable, duplicated, constant, two_rows])
@every_kernel
def test_degenerate_input(data, kernel, degree):
    problem = av.problem("jcfo", data(), kernel=kernel, degree=degree, gamma1=0.04, gamma2=0.04)
    check(direct(problem, starts=2, max_iterations=40))


@pytest.mark.parametrize("data", [separable, duplicated, constant, two_rows])
def test_degenerate_input_of_sparse_probit(data):
    check(direct(av.problem("sparse_probit", data(), gamma1=1e-4), max_iterations=200))


def test_constant_columns_get_no_weight():
    tree = run_fit(av.problem("jcfo", constant(), kernel="linear", gamma2=1.0), starts=2)
    assert (point_of(tree)["feature_weight"][1:3] == 0.0).all()


def test_saturated_probabilities():
    X, y = arrays(12, 3)
    problem = av.problem("jcfo", (1e4 * X, y.astype(int)), standardize=False, degree=3)
    check(direct(problem, starts=2, max_iterations=50))
    problem = av.problem("sparse_probit", (1e6 * X, y.astype(int)), standardize=False, gamma1=1e-6)
    check(direct(problem, max_iterations=50))


def test_a_kernel_that_overflows_ends_its_start_only():
    X, y = arrays(10, 50)
    problem = av.problem("jcfo", (X, y.astype(int)), degree=60)
    alone = run_fit(problem, starts=1)  # theta = 1: about 50^60
    assert alone.attrs["status"] == "failed"
    assert "the kernel overflows" in alone.attrs["reason"]
    several = check(direct(problem, starts=2, max_iterations=30))
    finals = several.details["objective_start"]
    assert finals[0] == -np.inf
    assert np.isfinite(finals[1])


def test_one_informative_feature_among_20000():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 20_000))
    y = (X[:, 1234] > 0).astype(float)
    X[:, 1234] = 2 * y - 1 + 0.1 * rng.standard_normal(40)
    problem = av.problem("jcfo", (X, y.astype(int)), kernel="linear", gamma1=1.0, gamma2=400.0)
    result = check(direct(problem, starts=2, tolerance=1e-3))
    assert result.status == "ok"
    assert result.details["feature_weight"].argmax() == 1234
    assert 1234 in jcfo_em.prefilter(problem.X, y, 50, Options())


def test_no_start_ends_higher_than_the_one_returned():
    X, y = arrays(20, 6)
    options = Options(starts=4, max_iterations=100)
    best, finals = solve(Basis(X, X, "rbf"), y, (0.5, 1.0), options, np.random.default_rng(0))
    assert best.objective[-1] == finals.max()
    assert len(finals) == 4


@pytest.mark.parametrize(("kernel", "degree"), [("linear", 1), ("polynomial", 2), ("rbf", 1)])
def test_memory_is_a_few_copies_of_X(kernel, degree):
    """An (N, N, D) array is 40 copies, a (D, D) one 75."""
    X, y = arrays(40, 3000)
    basis = Basis(X, X, kernel, degree)
    climb(basis, y, (1.0, 20.0), 1, max_iterations=1)
    tracemalloc.start()
    climb(basis, y, (1.0, 20.0), 1, max_iterations=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * X.nbytes
