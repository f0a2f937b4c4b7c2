"""`pfcvm_lp` and `pfcvm_em` against dense formulas, finite differences, quadrature and Monte Carlo.

Negative controls: misprinted formulas must fail the checks that the right ones pass.
"""

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, special, stats
from threadpoolctl import threadpool_limits

import ardvark as av
from ardvark.inference import fitting
from ardvark.inference.datatree import read, save
from ardvark.inference.papers import pfcvm_curvature, pfcvm_draws, pfcvm_em, pfcvm_engine, pfcvm_lp
from ardvark.inference.papers.pfcvm_curvature import Block, Curvature
from ardvark.inference.papers.pfcvm_engine import Engine
from ardvark.inference.target import Target
from ardvark.models.parts.kernels import gram
from ardvark.models.parts.truncated_normal import truncated_moments
from ardvark.validate import InputError

KERNELS = [("linear", 1), ("rbf", 1), ("polynomial", 2), ("polynomial", 3)]
every_kernel = pytest.mark.parametrize(("kernel", "degree"), KERNELS)
LP, EM = pfcvm_lp.Options, pfcvm_em.Options


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    for module in (pfcvm_lp, pfcvm_em):
        monkeypatch.setitem(fitting.BACKENDS, module.NAME, module)
    with threadpool_limits(1, user_api="blas"):  # as in a fit; small matrices, many of them
        yield


def make(model="pfcvm", N=14, D=5, seed=0, noise=0.7, **given):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    y = (X[:, 0] - X[:, 1] + noise * rng.standard_normal(N) > 0).astype(int)
    y[:2] = 0, 1
    return av.problem(model, (X, y), **given)


def start(problem, update_bias=True, **options):
    return Engine.start(problem, LP(**options), update_bias)


def anywhere(problem, seed=1, low=-0.1, **options):
    """An engine away from any mode, some weights below 0."""
    e, rng = start(problem, **options), np.random.default_rng(seed)
    e.sample.u = np.r_[0.3, rng.uniform(low, 0.6, len(e.s))]
    e.sample.p = rng.uniform(0.5, 3.0, len(e.sample.u))
    if e.free_theta:
        e.feature.u = rng.uniform(low, 0.6, e.X.shape[1])
        e.feature.p = rng.uniform(0.5, 3.0, e.X.shape[1])
    return e


def fit(problem, method="pfcvm_lp", **options):
    settings = {"draws": 20, "chains": 2, "random_seed": 3, "progressbar": False}
    return av.fit(problem, method, **settings | options)


# --- an independent, dense form -------------------------------------------------------------------


def dense_eta(e, u_w, theta):
    K = gram(e.X, e.Z, theta, kernel=e.hypers.kernel, degree=e.hypers.degree)
    return u_w[0] + K @ (e.s * u_w[1:])


def dense_Q(e, u_w, theta):
    """Q as in the paper, with ln 2 for each sigmoid; nothing of the engine but its numbers."""
    eta = dense_eta(e, u_w, theta)
    value = np.sum(np.where(e.y == 1, np.log(special.expit(eta)), np.log(special.expit(-eta))))
    for u, p, lam in ((u_w, e.sample.p, e.sample.lam), (theta, e.feature.p, e.feature.lam)):
        value += np.sum(-0.5 * p * u**2 + np.log(2.0 * special.expit(lam * u)))
    return value


def gradient(f, x, step=1e-6):
    out = np.empty(len(x))
    for k in range(len(x)):
        h = np.zeros(len(x))
        h[k] = step
        out[k] = (f(x + h) - f(x - h)) / (2 * step)
    return out


def second_order(e):
    """E_kl = sum_i (y_i - sigma_i) d2 eta_i / d theta_k d theta_l (D, D), loop by loop."""
    X, Z, theta, h = e.X, e.Z, e.feature.u, e.hypers
    a, residual = e.s * e.sample.u[1:], e.y - special.expit(dense_eta(e, e.sample.u, theta))
    S = (X * theta) @ Z.T
    out = np.zeros((len(theta), len(theta)))
    for i in range(len(X)):
        for j in range(len(Z)):
            if h.kernel == "rbf":
                square = (X[i] - Z[j]) ** 2
                out += residual[i] * a[j] * np.exp(-square @ theta) * np.outer(square, square)
            elif h.kernel == "polynomial":
                P, xz = h.degree, X[i] * Z[j]
                factor = P * (P - 1) * (1 + S[i, j]) ** (P - 2)
                out += residual[i] * a[j] * factor * np.outer(xz, xz)
    return out


# --- derivatives ----------------------------------------------------------------------------------


@every_kernel
def test_gradients_of_Q(kernel, degree):
    e = anywhere(make(kernel=kernel, degree=degree), low=0.02 if kernel == "rbf" else -0.1)
    of_w, of_theta = e.gradients()
    w, theta = e.sample.u, e.feature.u
    assert e.Q() == pytest.approx(dense_Q(e, w, theta), rel=1e-12)
    np.testing.assert_allclose(of_w, gradient(lambda u: dense_Q(e, u, theta), w), atol=1e-6)
    np.testing.assert_allclose(of_theta, gradient(lambda u: dense_Q(e, w, u), theta), atol=1e-6)


@every_kernel
def test_curvature_is_the_hessian_without_E(kernel, degree):
    """-d2 Q / d theta d theta' = D'CD + B + O - E, and in w without any E."""
    e = anywhere(make(kernel=kernel, degree=degree), low=0.02)
    of_w, of_theta = e.curvatures()
    w, theta = e.sample.u, e.feature.u

    def of(block, at):
        block.u = at
        return e.gradients()[0 if block is e.sample else 1]

    def hessian(block, at):
        return np.array([gradient(lambda u, k=k: of(block, u)[k], at) for k in range(len(at))])

    H_w = hessian(e.sample, w)
    e.sample.u = w
    np.testing.assert_allclose(np.diag(of_w.V) + of_w.R.T @ of_w.R, -H_w, atol=2e-5)
    H_theta = hessian(e.feature, theta)
    e.feature.u = theta
    gauss_newton = np.diag(of_theta.V) + of_theta.R.T @ of_theta.R
    E = second_order(e)
    np.testing.assert_allclose(gauss_newton - E, -H_theta, atol=2e-5 * np.abs(H_theta).max())
    assert (np.abs(E).max() > 0.1) == (kernel != "linear")  # E is felt where it is left out
    assert np.linalg.eigvalsh(gauss_newton).min() > 0.0


def test_negative_controls_of_the_misprints():
    """K^((P-1)/P) in D and beta (1 - sigmoid) in k_w are no derivatives of anything here."""
    e = anywhere(make(kernel="polynomial", degree=2))
    w, theta = e.sample.u, e.feature.u
    S = (e.X * theta) @ e.Z.T
    assert (1 + S).min() < 0.0  # where the printed power loses the sign
    right = gradient(lambda u: dense_Q(e, w, u), theta)
    common = -e.feature.p * theta + 5.0 * special.expit(-5.0 * theta)
    residual = e.y - special.expit(dense_eta(e, w, theta))
    K = (1 + S) ** 2
    printed = 2 * e.X * ((np.sqrt(K) * (e.s * w[1:])) @ e.Z)
    np.testing.assert_allclose(e.jacobian(theta).T @ residual + common, right, atol=1e-6)
    assert np.abs(printed.T @ residual + common - right).max() > 0.1

    block = e.sample
    printed_k = block.p * special.expit(-5.0 * w)
    slope = gradient(lambda u: dense_Q(e, u, theta), w)
    Phi = e.design(theta)
    assert np.abs(Phi.T @ residual - block.p * w + printed_k - slope)[1:].max() > 0.5


# --- Sigma ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("N", "K"), [(6, 40), (6, 6), (12, 5)])
@pytest.mark.parametrize("saturated", [False, True])
def test_woodbury_equals_dense(N, K, saturated):
    rng = np.random.default_rng(N + K)
    V, R = 10.0 ** rng.uniform(-3, 4, K), rng.standard_normal((N, K))
    if saturated:
        R[: N - 2] = 0.0  # C = 0
    c = Curvature(V, R)
    Sigma = np.linalg.inv(np.diag(V) + R.T @ R)
    g = rng.standard_normal((K, 3))
    np.testing.assert_allclose(c.solve(g), Sigma @ g, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(c.solve(g[:, 0]), Sigma @ g[:, 0], rtol=1e-9, atol=1e-9)
    assert c.log_det() == pytest.approx(np.linalg.slogdet(Sigma)[1], rel=1e-11)
    variance, share = c.moments()
    np.testing.assert_allclose(variance, np.diag(Sigma), rtol=1e-9)
    np.testing.assert_allclose(share, 1.0 - V * np.diag(Sigma), atol=1e-12)
    np.testing.assert_allclose(c.factor() @ c.factor().T, Sigma, rtol=1e-8, atol=1e-10)
    L = c.inverse_factor()
    np.testing.assert_allclose(L @ L.T, np.diag(V) + R.T @ R, rtol=1e-12, atol=1e-12)
    S = 40_000
    draws = c.draws(rng, S)
    scale = np.sqrt(np.outer(np.diag(Sigma), np.diag(Sigma)))
    assert np.abs((draws.T @ draws / S - Sigma) / scale).max() < 5.5 * (2 / S) ** 0.5


def test_gamma_without_cancellation():
    e = anywhere(make(N=9, D=20), low=0.0)
    for block, curvature in zip((e.sample, e.feature), e.curvatures(), strict=True):
        dense = np.linalg.inv(np.diag(curvature.V) + curvature.R.T @ curvature.R)
        got = block.gamma(curvature.moments()[1])
        np.testing.assert_allclose(got, 1.0 - block.p * np.diag(dense), rtol=1e-9)
    # p so large that 1 - p Sigma_kk is rounding noise; gamma = (O + r^2) / (p + O + r^2)
    one, p, r = np.ones(1), 1e17, 3.0
    for N in (1, 2):  # the K x K and the N x N form
        block = Block(
            0 * one, p * one, 5 * one, 0 * one, 0 * one, np.zeros(1, int), one > 2, one > 2
        )
        R = np.zeros((1, 2)) if N == 1 else np.zeros((2, 1))
        R[0, 0] = r
        V = np.full(R.shape[1], p + 6.25)
        got = block.gamma(Curvature(V, R).moments()[1][:1])
        assert got[0] == pytest.approx((6.25 + r**2) / (p + 6.25 + r**2), rel=1e-9)


# --- modes, evidence, updates ---------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
def test_the_returned_state_is_a_maximum_of_Q(model, kernel, degree):
    problem = make(model, kernel=kernel, degree=degree, N=18)
    run = pfcvm_lp.iterate(start(problem), LP())
    e = run.engine
    assert run.kkt < 1e-4
    w, theta = e.sample.u, e.feature.u
    sd = run.of_w.moments()[0] ** 0.5
    slope = gradient(lambda u: dense_Q(e, u, theta), w, 1e-5)
    assert np.abs(slope * sd).max() < 1e-4
    if model != "pfcvm":
        np.testing.assert_array_equal(theta, problem.hypers.feature_scale)
        return
    slope = gradient(lambda u: dense_Q(e, w, u), theta, 1e-5)
    free = ~e.held(e.feature, slope)
    assert np.abs((slope * run.of_theta.moments()[0] ** 0.5)[free]).max() < 1e-4


def test_newton_climbs_from_far_away():
    for scale in (1e-3, 1.0, 30.0):
        e = anywhere(make(N=20, D=60))
        e.feature.u = e.feature.u * scale
        before = e.Q()
        for _ in range(3):
            e.climb(1, 1e-10)
            assert e.Q() >= before
            before = e.Q()
        e.climb(300, 1e-12)
        of_w, of_theta = e.gradients()
        assert max(np.abs(of_w).max(), np.abs(of_theta).max()) < 1e-4


@every_kernel
def test_objective_equals_the_dense_evidence(kernel, degree):
    e = anywhere(make(kernel=kernel, degree=degree), low=0.02, hyperprior="model")
    got = e.evidence(*e.curvatures())
    want = dense_Q(e, e.sample.u, e.feature.u)
    root = np.sqrt(special.expit(dense_eta(e, e.sample.u, e.feature.u)))
    C = np.diag(root**2 * (1 - root**2))
    for block, J in ((e.sample, e.design(e.feature.u)), (e.feature, e.jacobian(e.feature.u))):
        s = special.expit(block.lam * block.u)
        H = J.T @ C @ J + np.diag(block.p + block.lam**2 * s * (1 - s))
        want += 0.5 * np.log(block.p).sum() - 0.5 * np.linalg.slogdet(H)[1]
        want += np.sum(block.c * np.log(block.p) - block.d * block.p)
    assert got == pytest.approx(want, rel=1e-10)


def test_objective_is_the_log_evidence_where_laplace_is_good():
    """One real weight and the bias, many data: against quadrature, to the order of 1/N."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal(300)
    y = (rng.random(300) < special.expit(0.8 * x + 0.2)).astype(int)
    problem = av.problem("rvm", (x[:, None], y), basis=np.array([[1.0]]), feature_scale=1.0)
    e = start(problem)
    e.climb(5, 1e-12)
    K = e.kernel(e.feature.u)[:, 0]

    def density(w, b):
        eta = b + K * w
        value = -np.logaddexp(0.0, -(2 * y - 1) * eta).sum() - e.Q()
        value += stats.norm.logpdf(w, 0, e.sample.p[1] ** -0.5)
        return np.exp(value + stats.norm.logpdf(b, 0, e.sample.p[0] ** -0.5))

    (b, w), (sb, sw) = e.sample.u, e.curvatures()[0].moments()[0] ** 0.5
    box = (b - 9 * sb, b + 9 * sb, w - 9 * sw, w + 9 * sw)
    evidence = integrate.dblquad(density, *box, epsrel=1e-6)[0]
    assert e.evidence(*e.curvatures()) == pytest.approx(np.log(evidence) + e.Q(), abs=0.02)


def test_objective_is_continuous_under_pruning():
    e = anywhere(make(N=12, D=6), low=0.05)
    gaps = []
    for p in (1e4, 1e8):
        with_it, without = e.copy(), e.copy()
        for state in (with_it, without):
            state.feature.p = np.where(np.arange(6) == 2, p, state.feature.p)
            state.sample.p = np.where(np.arange(13) == 5, p, state.sample.p)
        without.thresholds = (p / 10, p / 10)
        without.prune(1)
        assert len(without.feature.u) == 5
        assert len(without.sample.u) == 12
        for state in (with_it, without):
            state.climb(200, 1e-12)
        values = [state.evidence(*state.curvatures()) for state in (with_it, without)]
        gaps.append(abs(values[0] - values[1]))
    assert gaps[0] < 5e-3
    assert gaps[1] < 1e-3 * gaps[0]


@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
@pytest.mark.parametrize("hyperprior", ["paper", "model"])
def test_mackay_and_em_share_their_fixed_points(model, hyperprior):
    problem = make(model, N=40, D=4, noise=1.0, kernel="rbf" if model == "pfcvm" else "linear")
    options = LP(hyperprior=hyperprior, stopping="change", tolerance=1e-11, max_iterations=2000,
                 sample_threshold=20.0 if hyperprior == "paper" else None)  # fmt: skip
    run = pfcvm_lp.iterate(start(problem, hyperprior=hyperprior), options)
    assert not run.reason, run.reason
    e = run.engine
    assert len(e.sample.u) > 1
    for update, rtol in (("em", 2e-3), ("mackay", 2e-3)):
        new = e.copy()
        pfcvm_lp.update_precisions(new, run.of_w, run.of_theta, update, 0.0)
        moved = np.r_[new.sample.p / e.sample.p, new.feature.p / e.feature.p]
        # precisions on their slow way to infinity are no fixed points yet
        settled = np.r_[e.sample.p, e.feature.p] < 1e3
        np.testing.assert_allclose(moved[settled], 1.0, rtol=rtol)


def test_damping_and_the_formulas_of_the_updates():
    e = anywhere(make(N=12, D=6), low=0.05, hyperprior="model")
    curvatures = e.curvatures()
    for update in ("mackay", "em"):
        moved = e.copy()
        pfcvm_lp.update_precisions(moved, *curvatures, update, 0.0)
        for block, new, curvature in (
            (e.sample, moved.sample, curvatures[0]), (e.feature, moved.feature, curvatures[1]),
        ):  # fmt: skip
            Sigma = np.diag(np.linalg.inv(np.diag(curvature.V) + curvature.R.T @ curvature.R))
            if update == "mackay":
                want = (1 - block.p * Sigma + 2 * block.c) / (block.u**2 + 2 * block.d)
            else:
                want = (1 + 2 * block.c) / (block.u**2 + Sigma + 2 * block.d)
            np.testing.assert_allclose(new.p, want, rtol=1e-9)
    half = e.copy()
    pfcvm_lp.update_precisions(half, *curvatures, "em", 0.5)
    np.testing.assert_allclose(half.feature.p, np.sqrt(e.feature.p * moved.feature.p), rtol=1e-12)


def test_without_data_the_precision_grows_by_a_quarter_of_lambda_squared():
    problem = av.problem("pfcvm", (np.full((6, 3), 2.0), np.arange(6) % 2))
    for lam in (5.0, 2.0):
        e = start(problem, smoothing=lam, feature_threshold=np.inf, initial_feature_precision=1e3)
        steps = []
        for _ in range(5):
            e.climb(3, 1e-14)
            before = e.feature.p
            pfcvm_lp.update_precisions(e, *e.curvatures(), "mackay", 0.0)
            steps.append(e.feature.p - before)
        np.testing.assert_allclose(steps, lam**2 / 4, rtol=0.02)

    # (28): p^2 grows by a constant, which is near 78 for lambda = 5
    e = start(problem, feature_threshold=np.inf)
    path = []
    for _ in range(1000):
        e.climb(1, 1e-14)
        pfcvm_lp.update_precisions(e, *e.curvatures(), "em", 0.0)
        path.append(e.feature.p[0])
    rate = (path[999] ** 2 - path[499] ** 2) / 500
    assert rate == pytest.approx(78.0, rel=0.1)


# --- special cases, pruning, scale ----------------------------------------------------------------


def test_pfcvm_with_theta_fixed_is_pcvm():
    whole, theta = make(N=16, D=4), np.array([0.3, 0.2, 0.0, 0.1])
    part = make("pcvm", N=16, D=4, feature_scale=theta)
    a, b = start(whole), start(part)
    a.feature.u, a.free_theta = theta, False
    for e in (a, b):
        e.climb(5, 1e-12)
    np.testing.assert_allclose(a.sample.u, b.sample.u, rtol=1e-9)
    assert a.evidence(*a.curvatures()) == pytest.approx(b.evidence(*b.curvatures()))


def test_rvm_finds_tippings_fixed_point():
    """Against a plain loop with dense matrices, from the same start."""
    problem = make("rvm", N=40, D=2, noise=1.0, kernel="rbf", feature_scale=0.5)
    run = pfcvm_lp.iterate(
        start(problem, update_bias=False), LP(stopping="change", tolerance=1e-10)
    )
    assert not run.reason
    e = run.engine
    Phi = np.c_[np.ones(40), gram(problem.X, problem.Z, np.full(2, 0.5), kernel="rbf")]
    kept, alpha, u = np.arange(41), np.ones(41), np.zeros(41)
    for _ in range(2000):
        P = Phi[:, kept]
        for _ in range(30):
            p = special.expit(P @ u)
            H = P.T @ ((p * (1 - p))[:, None] * P) + np.diag(alpha)
            u = u + np.linalg.solve(H, P.T @ (problem.y - p) - alpha * u)
        gamma = 1 - alpha * np.diag(np.linalg.inv(H))
        alpha[1:] = (np.maximum(gamma, 1e-16) / u**2)[1:]
        keep = alpha < 1e9
        kept, alpha, u = kept[keep], alpha[keep], u[keep]
    assert set(kept[1:] - 1) == set(e.sample.index[e.sample.p < 1e6][1:])
    big = e.sample.p < 1e6
    np.testing.assert_allclose(e.sample.u[big], u, rtol=1e-3)
    np.testing.assert_allclose(e.sample.p[big], alpha, rtol=1e-3)


def settle(problem, threshold, iterations):
    """Run with features pruned above a threshold, samples never; return eta and the engine."""
    e = start(problem, feature_threshold=threshold, sample_threshold=np.inf)
    options = LP(stopping="change", tolerance=1e-15, max_iterations=iterations)
    e = pfcvm_lp.iterate(e, options).engine
    return e.design(e.feature.u) @ e.sample.u, e


@pytest.mark.parametrize(("kernel", "seed"), [("rbf", 3), ("linear", 1)])
def test_pruning_agrees_with_none_as_the_threshold_rises(kernel, seed):
    """Where the scale settles; where it drifts (below) no threshold is high enough."""
    problem = make(N=40, D=6, seed=seed, kernel=kernel)
    full, e = settle(problem, np.inf, 150)
    assert len(e.feature.u) == 6
    assert (e.feature.p < 1e3).any()
    gaps = []
    for threshold in (100.0, 1000.0):
        eta, e = settle(problem, threshold, 150)
        assert 1 <= len(e.feature.u) < 6
        gaps.append(np.abs(eta - full).max())
    assert gaps[0] > 2 * gaps[1] > 0.0
    assert gaps[1] < 5e-3


def test_the_scale_drifts_away_on_other_data():
    """A known difficulty, not a wish: unpruned, every theta goes to 0 and w makes up for it."""
    _, e = settle(make(N=40, D=6, seed=0), np.inf, 60)
    assert e.feature.p.min() > 1e4
    assert e.feature.u.max() < 0.02
    assert e.sample.u[1:].max() > 20.0
    assert ((e.eta(e.feature.u) > 0) == e.y).mean() > 0.7


def test_rescaling_leaves_eta_and_the_prior():
    e = anywhere(make(), low=0.05)
    before, prior = e.eta(e.feature.u), np.sum(e.feature.p * e.feature.u**2)
    weights = np.sum(e.sample.p[1:] * e.sample.u[1:] ** 2)
    e.rescale()
    assert e.feature.u.max() == 1.0
    np.testing.assert_allclose(e.eta(e.feature.u), before, rtol=1e-12)
    assert np.sum(e.feature.p * e.feature.u**2) == pytest.approx(prior)
    assert np.sum(e.sample.p[1:] * e.sample.u[1:] ** 2) == pytest.approx(weights)


def test_an_rbf_kernel_never_grows():
    problem = make(N=40, D=6, seed=2, kernel="rbf")
    e = start(problem)
    assert e.kernel(np.full(6, -0.1)) is None
    assert e.kernel(np.r_[0.5 * np.ones(5), -1e-9]) is not None  # below 0, and harmless
    # labels from which a feature is repelled: the same side of it, far apart in it
    run = pfcvm_lp.iterate(e, LP(update="em", max_iterations=30))
    e = run.engine
    K = e.kernel(e.feature.u)
    assert K is not None
    assert K.max() <= 1.0
    if e.bounded:
        assert (e.feature.u >= 0.0).all()
    assert run.kkt < 1e-3


def test_the_bound_is_a_constrained_maximum():
    """With theta >= 0 enforced the state satisfies the Karush-Kuhn-Tucker conditions."""
    e = anywhere(make(N=40, D=6, seed=2, kernel="rbf"), low=0.02)
    e.bounded = True
    e.feature.p = np.full(6, 1e-3)
    e.feature.lam = np.full(6, 0.05)  # hardly any push off 0
    e.climb(500, 1e-12)
    g, u = e.gradients()[1], e.feature.u
    assert (u >= 0.0).all()
    assert (u == 0.0).any()
    assert (g[u == 0.0] <= 1e-8).all()
    assert np.abs(g[u > 0.0]).max() < 1e-4


# --- EM -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
@pytest.mark.parametrize("hyperprior", ["paper", "model"])
@every_kernel
def test_em_never_lowers_the_log_posterior(model, hyperprior, kernel, degree):
    problem = make(model, kernel=kernel, degree=degree, N=20, D=8)
    options = EM(hyperprior=hyperprior)
    e = Engine.start(problem, options, False)
    path = []
    for _ in range(30):
        e.climb(1, 1e-10)
        path.append(pfcvm_em.log_posterior(e))
        for block in (e.sample, e.feature):
            pfcvm_em.expect(block)
        if max(e.sample.p.max(), e.feature.p.max()) > 1e14:
            break  # the next precision is capped: no E-step any more
    assert len(path) > 1
    assert (np.diff(path) > -1e-9 * (1.0 + np.abs(path[1:]))).all()


def test_negative_control_28_is_no_e_step():
    """(28), which the paper calls the same formula, lowers the log posterior that EM raises."""
    e = start(make(N=20, D=8), update_bias=False, hyperprior="model")
    path = []
    for _ in range(10):
        e.climb(5, 1e-12)
        path.append(pfcvm_em.log_posterior(e))
        pfcvm_lp.update_precisions(e, *e.curvatures(), "em", 0.0)
    assert np.diff(path).min() < -1e-4


@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
def test_em_objective_is_the_models_log_joint(model):
    """Up to a constant, once the smoothing is sharp; and EM's end is a maximum of it."""
    problem = make(model, N=20, D=4, parametrization="marginal")
    options = EM(hyperprior="model", smoothing=1e9)
    e, rng = Engine.start(problem, options, False), np.random.default_rng(0)
    gaps = []
    for _ in range(5):
        w = rng.gamma(2.0, 1.0, 20)
        e.sample.u = np.r_[rng.standard_normal(), w]
        signs = 1.0 if problem.basis_labels is None else problem.basis_labels
        point = {"bias": e.sample.u[0], "w": w, "sample_weight": signs * w}
        if e.free_theta:
            e.feature.u = rng.gamma(2.0, 0.1, 4)
        point["feature_weight"] = e.feature.u
        gaps.append(pfcvm_em.log_posterior(e) - problem.log_joint(point))
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-10)

    options = EM(hyperprior="model", tolerance=1e-12)
    e = pfcvm_em.iterate(Engine.start(problem, options, False), options).engine

    def value(u):
        state = e.copy()
        state.sample.u = u
        return pfcvm_em.log_posterior(state)

    assert np.abs(gradient(value, e.sample.u, 1e-5)).max() < 1e-3


def test_the_pruned_terms_stay_in_the_trace():
    problem = make(N=60, D=6, kernel="rbf", noise=0.3, seed=4)
    run = pfcvm_em.iterate(Engine.start(problem, EM(), False), EM())
    path, kept = np.array(run.log_posterior), np.array(run.features) + np.array(run.samples)
    assert kept[-1] < kept[0]
    assert np.diff(path).min() > -1e-2  # a pruned weight of 1e-4 hardly moves the likelihood


# --- draws and prediction -------------------------------------------------------------------------


def pooled(tree, name):
    x = tree["posterior"][name].values
    return x.reshape(-1, *x.shape[2:])


def details_of(tree):
    return {str(k): v.values for k, v in tree["fit"].data_vars.items()}


def test_componentwise_draws_are_truncated_normals():
    tree = fit(make(N=16, D=6), draws=20_000, max_iterations=8, feature_threshold=30.0)
    d, S = details_of(tree), 40_000
    for name, prefix in (("w", "sample"), ("feature_weight", "feature")):
        m, s, x = d[f"{prefix}_mode"], d[f"{prefix}_sd"], pooled(tree, name)
        kept = d[f"selected_{prefix}"]
        assert (x[:, ~kept] == 0.0).all()
        assert (x[:, kept] > 0.0).all()
        mean, variance, _ = truncated_moments((m / np.where(s > 0, s, 1.0))[kept])
        want, sd = s[kept] * mean, s[kept] * variance**0.5
        assert np.abs((x[:, kept].mean(axis=0) - want) / (sd / S**0.5)).max() < 4.5
        np.testing.assert_allclose(x[:, kept].std(axis=0), sd, rtol=0.05)
    bias = pooled(tree, "bias")
    assert abs(bias.mean() - d["bias_mode"]) < 4.5 * d["bias_sd"] / S**0.5
    signs = tree["constant_data"]["basis_labels"].values
    np.testing.assert_array_equal(pooled(tree, "sample_weight"), pooled(tree, "w") * signs)


@pytest.mark.parametrize("model", ["pfcvm", "rvm"])
def test_joint_draws_have_the_covariance_of_q(model):
    problem = make(model, N=10, D=20)
    tree = fit(problem, draws=20_000, positive="none", hyperprior="model")
    d, S = details_of(tree), 40_000
    x = np.c_[pooled(tree, "bias"), pooled(tree, "w" if model == "pfcvm" else "sample_weight")]
    Sigma = d["sample_factor"] @ d["sample_factor"].T
    u = np.r_[d["bias_mode"], d["sample_mode"]]
    sd = np.diag(Sigma) ** 0.5
    np.testing.assert_allclose(sd, np.r_[d["bias_sd"], d["sample_sd"]], rtol=1e-8)
    assert np.abs((x.mean(axis=0) - u) / (sd / S**0.5)).max() < 4.5
    assert np.abs((np.cov(x.T) - Sigma) / np.outer(sd, sd)).max() < 5.5 * (2 / S) ** 0.5
    if model == "rvm":
        return
    R, V = d["feature_root"], d["feature_diagonal"]
    Sigma = np.linalg.inv(np.diag(V) + R.T @ R)
    x, sd = pooled(tree, "feature_weight"), np.diag(Sigma) ** 0.5
    np.testing.assert_allclose(sd, d["feature_sd"], rtol=1e-8)
    assert (x < 0.0).any()
    assert np.abs((np.cov(x.T) - Sigma) / np.outer(sd, sd)).max() < 5.5 * (2 / S) ** 0.5


@every_kernel
@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
def test_the_papers_prediction_by_monte_carlo(model, kernel, degree):
    problem = make(model, N=16, D=4, kernel=kernel, degree=degree)
    tree = fit(problem, sample_threshold=50.0)
    d, rng = details_of(tree), np.random.default_rng(1)
    X_new = rng.standard_normal((3, 4))
    mean, variance = pfcvm_engine.predictive_moments(problem, d, X_new)
    S = 30_000
    u = np.r_[d["bias_mode"], d["sample_mode"]]
    bw = u + rng.standard_normal((S, 17)) @ d["sample_factor"].T
    signs = 1.0 if problem.basis_labels is None else problem.basis_labels
    K = gram(X_new, problem.Z, d["feature_mode"], kernel=kernel, degree=problem.hypers.degree)
    eta = bw[:, :1] + (signs * bw[:, 1:]) @ K.T
    assert np.abs((eta.mean(axis=0) - mean) / (eta.std(axis=0) / S**0.5)).max() < 4.5
    square = (eta - mean) ** 2
    z = (square.mean(axis=0) - variance) / (square.std(axis=0) / S**0.5)
    assert np.abs(z).max() < 4.5
    got = pfcvm_lp.predict_paper(problem, d, X_new)
    # kappa is good to about 0.02 in probability, and better than the plug-in where it matters
    np.testing.assert_allclose(got, special.expit(eta).mean(axis=0), atol=0.03)
    rows = X_new * problem.scale + problem.center
    np.testing.assert_allclose(av.predict(problem, tree, rows, rule="paper")[0, 0], got, rtol=1e-9)


def test_em_predicts_by_its_one_state():
    problem = make(N=30, D=4)
    tree = fit(problem, "pfcvm_em", hyperprior="model")
    paper, draws = (av.predict(problem, tree, problem.data.X, rule=r) for r in ("paper", "draws"))
    assert draws.shape == (1, 1, 30)
    np.testing.assert_allclose(paper, draws, rtol=1e-9)
    np.testing.assert_allclose(paper[0, 0], special.expit(tree["posterior"]["eta"][0, 0]))


# --- the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pfcvm_lp", "pfcvm_em"])
@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_fit_fills_the_contract(method, model, kernel, tmp_path):
    problem = make(model, N=18, D=5, kernel=kernel)
    tree = fit(problem, method, hyperprior="model" if method == "pfcvm_em" else "paper")
    posterior, B, D = tree["posterior"], 18, 5
    draws = {"chain": 2, "draw": 20} if method == "pfcvm_lp" else {"chain": 1, "draw": 1}
    for name, dim, size in (("feature_weight", "feature", D), ("sample_weight", "basis", B),
                            ("eta", "obs", 18)):  # fmt: skip
        assert dict(posterior[name].sizes) == draws | {dim: size}
    assert set(posterior.data_vars) == {"feature_weight", "sample_weight", "eta", "bias"} | (
        {"w"} if model != "rvm" else set()
    )
    point = {str(k): v.values for k, v in posterior.data_vars.items()}
    np.testing.assert_allclose(problem.decision(point), point["eta"], rtol=1e-9, atol=1e-12)
    d = tree["fit"]
    for name in ("selected_feature", "selected_sample"):
        assert d[name].dtype == bool
    assert d["selected_feature"].dims == ("feature",)
    assert d["objective"].dims == d["features_kept"].dims == d["samples_kept"].dims
    if model == "pfcvm":
        np.testing.assert_array_equal(d["feature_pruned_at"].values == 0, d["selected_feature"])
    assert d["samples_kept"].values[int(d["best_iteration"]) - 1 if "best_iteration" in d else -1] \
        == tree.attrs["samples_kept"] == int(d["selected_sample"].sum())  # fmt: skip
    save(tree, tmp_path / "fit.nc")
    assert tree.identical(read(tmp_path / "fit.nc"))


@pytest.mark.parametrize("method", ["pfcvm_lp", "pfcvm_em"])
def test_equal_seeds_give_equal_draws(method):
    problem = make()
    one, two, other = (fit(problem, method, random_seed=s)["posterior"] for s in (1, 1, 2))
    for name in one.data_vars:
        np.testing.assert_array_equal(one[name], two[name])
        if method == "pfcvm_lp":
            assert not np.array_equal(one[name], other[name])
            assert not np.array_equal(one[name][0], one[name][1])


def test_chunks_and_keep(monkeypatch):
    monkeypatch.setattr(pfcvm_draws, "_CHUNK", 100)
    tree = fit(make(), draws=23, keep="shared")
    assert set(tree["posterior"].data_vars) == {"feature_weight", "sample_weight", "eta", "bias"}
    assert tree["posterior"].sizes["draw"] == 23


@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
def test_lp_and_log_q_only_where_q_covers_the_posterior(model):
    problem = make(model, N=12, D=3, parametrization="marginal")
    whole = fit(problem, hyperprior="model")
    point = {str(k): v.values for k, v in whole["posterior"].data_vars.items()}
    stats_ = whole["sample_stats"]
    np.testing.assert_allclose(stats_["lp"], problem.log_density(point), rtol=1e-10)
    d = details_of(whole)
    Sigma, u = d["sample_factor"] @ d["sample_factor"].T, np.r_[d["bias_mode"], d["sample_mode"]]
    want = problem.spec.log_jacobian(point, problem.hypers)
    if model == "rvm":
        x = np.concatenate([point["bias"][..., None], point["sample_weight"]], axis=-1)
        want = want + stats.multivariate_normal(u, Sigma).logpdf(x)
    else:
        want = want + stats.norm.logpdf(point["bias"], u[0], Sigma[0, 0] ** 0.5)
        pairs = [("w", "sample")] + ([("feature_weight", "feature")] if model == "pfcvm" else [])
        for name, prefix in pairs:
            m, s = d[f"{prefix}_mode"], d[f"{prefix}_sd"]
            each = stats.norm.logpdf(point[name], m, s) - stats.norm.logcdf(m / s)
            want = want + each.sum(axis=-1)
    np.testing.assert_allclose(stats_["log_q"], want, rtol=1e-8)
    hierarchical = make(model, N=12, D=3, parametrization="hierarchical")
    assert "lp" not in fit(hierarchical, hyperprior="model")["sample_stats"]
    settings = {"max_iterations": 3, "stopping": "change"}
    threshold = float(np.median(fit(problem, **settings)["fit"]["sample_precision"]))
    pruned = fit(problem, sample_threshold=threshold, **settings)
    assert 0 < pruned["fit"]["selected_sample"].values.sum() < 12
    assert not pruned["sample_stats"].data_vars


def test_supports_and_options_say_what_is_wrong():
    for module in (pfcvm_lp, pfcvm_em):
        assert "bare pm.Model" in module.supports(Target(pm.Model()))
        assert "'rfvm'" in module.supports(Target(make("rfvm")))
        assert module.supports(Target(make("rvm"))) is None
    for wrong in ({"update": "newton"}, {"positive": "joint"}, {"scale": "unit"},
                  {"stopping": "never"}, {"hyperprior": "flat"}):  # fmt: skip
        with pytest.raises(InputError, match="must be one of"):
            LP(**wrong)
    with pytest.raises(InputError, match="feature_threshold must be a number above 0"):
        LP(feature_threshold=0.0)
    with pytest.raises(InputError, match=r"damping must be a finite number in \[0, 1\)"):
        LP(damping=1.0)
    with pytest.raises(InputError, match='scale="fixed" needs a free theta and the linear kernel'):
        fit(make(kernel="rbf"), scale="fixed")


# --- collapse, awkward and full-size input --------------------------------------------------------


@pytest.mark.parametrize("method", ["pfcvm_lp", "pfcvm_em"])
@pytest.mark.parametrize("model", ["pfcvm", "rvm"])
def test_a_collapse_is_said(method, model):
    tree = fit(make(model), method, sample_threshold=1e-3, feature_threshold=1e-3)
    assert tree.attrs["status"] == "not_converged"
    assert "collapsed: iteration 1 pruned the last" in tree.attrs["reason"]
    d = details_of(tree)
    np.testing.assert_array_equal(d["sample_pruned_at"] == 0, d["selected_sample"])
    # nothing rises above the first state, or the bias alone is left
    assert np.isfinite(tree["posterior"]["eta"]).all()
    if tree.attrs["samples_kept"] == 0:
        assert (tree["posterior"]["sample_weight"] == 0.0).all()
        eta = tree["posterior"]["eta"].values
        np.testing.assert_allclose(eta, np.broadcast_to(eta[..., :1], eta.shape))


def test_too_few_iterations_are_not_converged():
    for method in ("pfcvm_lp", "pfcvm_em"):
        tree = fit(make(), method, max_iterations=2)
        assert tree.attrs["status"] == "not_converged"
        assert "after 2 iterations" in tree.attrs["reason"]


def test_a_failing_factorisation_has_a_reason(monkeypatch):
    def fail(*_, **__):
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr(pfcvm_curvature.linalg, "cholesky", fail)
    for method in ("pfcvm_lp", "pfcvm_em"):
        tree = fit(make(), method)
        assert tree.attrs["status"] == "failed"
        assert "iteration 1 failed" in tree.attrs["reason"]


def separable():
    x = np.linspace(-3, 3, 20)
    return np.c_[x, x**2], (x > 0).astype(int)


def duplicated():
    X = np.random.default_rng(1).standard_normal((16, 3))
    return np.repeat(X, 4, axis=1), (X[:, 0] > 0).astype(int)


def constant():
    X = np.random.default_rng(2).standard_normal((16, 4))
    y = (X[:, 0] > 0).astype(int)
    X[:, 1:3] = 7.0
    return X, y


def two_rows():
    return np.array([[0.0, 1.0, 2.0], [1.0, -1.0, 2.5]]), np.array([0, 1])


def saturated():
    X, y = separable()
    return np.repeat(X, 300, axis=1) * 40.0, y


@pytest.mark.parametrize("data", [separable, duplicated, constant, two_rows, saturated])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "polynomial"])
def test_awkward_input_ends_in_a_clear_status(data, kernel):
    for model in ("pfcvm", "rvm"):
        problem = av.problem(model, data(), kernel=kernel, standardize=data is not saturated)
        for method in ("pfcvm_lp", "pfcvm_em"):
            tree = fit(problem, method)
            assert tree.attrs["status"] in ("ok", "not_converged", "failed")
            assert (tree.attrs["status"] == "ok") == (tree.attrs["reason"] == "")
            for name, values in tree["posterior"].data_vars.items():
                assert np.isfinite(values).all(), name


def test_duplicated_columns_share_their_weight():
    theta = details_of(fit(av.problem("pfcvm", duplicated()), max_iterations=5))["feature_mode"]
    theta = theta.reshape(3, 4)
    np.testing.assert_allclose(theta, np.broadcast_to(theta[:, :1], (3, 4)), rtol=1e-6)


def test_one_informative_feature_among_many():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20000))
    problem = av.problem("pfcvm", (X, (X[:, 7] > 0).astype(int)))
    early = {"initial_feature_precision": 100.0, "initial_sample_precision": 100.0}
    for options in ({"max_iterations": 6, **early}, {"hyperprior": "model"}):
        tree = fit(problem, draws=2, chains=1, **options)
        assert tree["posterior"]["feature_weight"].shape == (1, 2, 20000)
        assert int(details_of(tree)["feature_mode"].argmax()) == 7


def test_a_drift_that_loses_the_informative_feature_is_said():
    """The paper's text (stop when little changes) against its algorithm 1 (stop at the top)."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 500))
    problem = av.problem("pfcvm", (X, (X[:, 7] > 0).astype(int)))
    top, end = (fit(problem, stopping=s) for s in ("rise", "change"))
    assert top.attrs["status"] == "ok"
    assert details_of(top)["feature_mode"].argmax() == 7
    assert end.attrs["status"] == "not_converged"
    assert "the objective fell by" in end.attrs["reason"]
    assert not details_of(end)["selected_feature"][7]
    assert end.attrs["objective"] < top.attrs["objective"] - 10
