"""RFVM's variational Bayes against an independent bound, perturbations and Monte Carlo.

Negative controls: updates and rates that are known to be wrong must fail the same checks.
"""

import tracemalloc
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, special, stats

import ardvark as av
from ardvark.inference import fitting
from ardvark.inference.datatree import read, save
from ardvark.inference.papers import rfvm_factors, rfvm_vb
from ardvark.inference.papers.rfvm_factors import Factors
from ardvark.inference.papers.rfvm_vb import Options, iterate
from ardvark.inference.target import Target
from ardvark.models import Inputs, rfvm
from ardvark.models.parts.distributions import logistic_logp
from ardvark.validate import InputError

PARAMETERS = (
    "a", "Sigma", "m", "precision", "b", "var_b", "u", "var_u", "xi",
    "tau_shape", "tau_rate", "psi_shape", "psi_rate", "delta_shape", "delta_rate",
)  # fmt: skip
FACTORS = {
    "a": ("a", "Sigma"),
    "delta": ("delta_shape", "delta_rate"),
    "psi": ("psi_shape", "psi_rate"),
    "b": ("b", "var_b"),
    "u": ("u", "var_u"),
    "xi": ("xi",),
    "tau": ("tau_shape", "tau_rate"),
    "v": ("m", "precision"),
}


# --- problems and an independent bound ----------------------------------------------------------


def hypers(N, B, D, **given):
    return rfvm.Hypers(**given).filled(N, B, D)


WIDE = {"sample_rate": 1.5, "feature_rate": 1.5}


def arrays(N, D, seed, B=None, correlated=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) + correlated * rng.standard_normal((N, 1))
    y = (X @ rng.choice([-2.0, 2.0], D) + 0.5 * rng.standard_normal(N) > 0).astype(float)
    y[:2] = 0.0, 1.0
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y, X if B is None else rng.standard_normal((B, D))


def factors(X, y, Z, h, seed=0, sweeps=2, **options):
    q = Factors(X, y, Z, h, np.random.default_rng(seed), Options(**options))
    for _ in range(sweeps):
        q.sweep()
    return q


def v_moments(parameters, v_factor):
    """Mean, variance and entropy of every q(v_d) by SciPy and quadrature."""
    m, s = parameters["m"], parameters["precision"] ** -0.5
    if v_factor == "truncated":
        law = stats.truncnorm(-m / s, 40.0, loc=m, scale=s)  # its entropy is NaN with inf
        return law.mean(), law.var(), law.entropy()
    law = stats.foldnorm(np.abs(m) / s, scale=s)
    entropy = [
        integrate.quad(
            lambda x, one=one: -np.exp(one.logpdf(x)) * one.logpdf(x), 0, 12 * k + abs(c)
        )[0]
        for one, c, k in zip(
            (stats.foldnorm(abs(c) / k, scale=k) for c, k in zip(m, s, strict=True)),
            m,
            s,
            strict=True,
        )
    ]
    return law.mean(), law.var(), np.array(entropy)


def dense_elbo(p, X, y, Z, h, v_factor):
    """The bound from the parameters alone, with D x D matrices and SciPy's own entropies."""
    v, var_v, entropy_v = v_moments(p, v_factor)
    A, V = p["Sigma"] + np.outer(p["a"], p["a"]), np.outer(v, v) + np.diag(var_v)
    quadratic = np.sum((X.T @ X) * (Z.T @ A @ Z) * V)  # E|X diag(v) Z'a|^2
    f, c = X @ (v * (Z.T @ p["a"])), p["u"] - p["b"]
    R = np.sum(c**2 + p["var_u"] + p["var_b"] - 2 * c * f) + quadratic
    tau, psi, delta = (stats.gamma(p[f"{k}_shape"], scale=1 / p[f"{k}_rate"]) for k in
                       ("tau", "psi", "delta"))  # fmt: skip
    log = {
        k: special.digamma(p[f"{k}_shape"]) - np.log(p[f"{k}_rate"])
        for k in ("tau", "psi", "delta")
    }

    def gamma_prior(mean, mean_log, shape, rate):
        log_density = shape * np.log(rate) - special.gammaln(shape) + (shape - 1) * mean_log
        return np.sum(log_density - rate * mean)

    l2, xi, u2 = np.log(2 * np.pi), p["xi"], p["u"] ** 2 + p["var_u"]
    lam = (special.expit(xi) - 0.5) / (2 * xi)
    joint = np.sum(np.log(special.expit(xi)) + (y - 0.5) * p["u"] - xi / 2 - lam * (u2 - xi**2))
    joint += 0.5 * len(y) * (log["tau"] - l2) - 0.5 * tau.mean() * R
    joint += 0.5 * np.sum(log["psi"] - l2 - psi.mean() * np.diag(A))
    joint += 0.5 * np.sum(log["delta"] + np.log(2 / np.pi) - delta.mean() * (v**2 + var_v))
    joint -= 0.5 * (l2 + np.log(h.bias_sd**2) + (p["b"] ** 2 + p["var_b"]) / h.bias_sd**2)
    joint += gamma_prior(tau.mean(), log["tau"], h.noise_shape, h.noise_rate)
    joint += gamma_prior(psi.mean(), log["psi"], h.sample_shape, h.sample_rate)
    joint += gamma_prior(delta.mean(), log["delta"], h.feature_shape, h.feature_rate)
    gaussian = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * p["Sigma"])[1]
    gaussian += stats.norm.entropy(0, p["var_b"] ** 0.5) + np.sum(
        stats.norm.entropy(0, p["var_u"] ** 0.5)
    )
    entropy = tau.entropy() + np.sum(psi.entropy()) + np.sum(delta.entropy()) + np.sum(entropy_v)
    return float(joint + gaussian + entropy)


def parameters(q):
    return {k: np.copy(getattr(q, k)) for k in PARAMETERS}


# --- the bound ----------------------------------------------------------------------------------


@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_elbo_equals_the_dense_formula(v_factor):
    X, y, Z = arrays(9, 7, seed=1, B=5)
    h = hypers(9, 5, 7, **WIDE, bias_sd=0.7)
    q = factors(X, y, Z, h, sweeps=4, v_factor=v_factor)
    want = dense_elbo(parameters(q), X, y, Z, h, v_factor)
    assert q.elbo() == pytest.approx(want, rel=1e-8)


@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_elbo_is_the_expectation_it_claims_to_be(v_factor):
    X, y, Z = arrays(8, 5, seed=2, B=4)
    h = hypers(8, 4, 5, **WIDE)
    q = factors(X, y, Z, h, sweeps=5, v_factor=v_factor)
    point = q.draws(np.random.default_rng(7), 100_000)
    lam = np.tanh(q.xi / 2) / (4 * q.xi)
    bounded = (
        np.log(special.expit(q.xi)) + (y - 0.5) * point["u"] - q.xi / 2
        - lam * (point["u"] ** 2 - q.xi**2)
    )  # fmt: skip
    likelihood = logistic_logp(y, point["u"])
    assert (bounded <= likelihood + 1e-12).all()
    joint = rfvm.log_joint(point, Inputs(X, Z), y, h) + (bounded - likelihood).sum(axis=1)
    terms = joint - q.log_q(point)
    z = (terms.mean() - q.elbo()) / (terms.std() / len(terms) ** 0.5)
    assert abs(z) < 4.0


@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_elbo_is_below_the_evidence(v_factor):
    X, y = np.array([[-1.2], [0.1], [1.1]]), np.array([0.0, 0.0, 1.0])
    Z, h = np.array([[0.9]]), hypers(3, 1, 1)
    run = iterate(
        Factors(X, y, Z, h, np.random.default_rng(0), Options(v_factor=v_factor)), Options()
    )
    rng, S = np.random.default_rng(11), 400_000
    a = rng.standard_normal(S) * rng.gamma(h.sample_shape, 1 / h.sample_rate, S) ** -0.5
    v = np.abs(rng.standard_normal(S)) * rng.gamma(h.feature_shape, 1 / h.feature_rate, S) ** -0.5
    tau = rng.gamma(h.noise_shape, 1 / h.noise_rate, S)
    eta = rng.normal(0.0, h.bias_sd, S)[:, None] + (v * a * Z[0, 0])[:, None] * X[:, 0]
    u = eta + rng.standard_normal((S, 3)) * tau[:, None] ** -0.5
    likelihood = np.exp(logistic_logp(y, u).sum(axis=1))
    evidence, error = likelihood.mean(), likelihood.std() / S**0.5
    # E_q[ln joint - ln q] with the true likelihood lies between the bound and the evidence
    point = run.q.draws(rng, 50_000)
    gap = rfvm.log_joint(point, Inputs(X, Z), y, h) - run.q.log_q(point)
    slack = 4 * gap.std() / len(gap) ** 0.5
    log_evidence = np.log(evidence) + 4 * error / evidence
    assert run.elbo[-1] < gap.mean() + slack
    assert gap.mean() - slack < log_evidence
    assert np.log(evidence) - run.elbo[-1] < 3.0  # and not far below it


# --- the updates --------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", list(FACTORS))
def test_each_update_is_the_maximum_over_its_factor(factor):
    X, y, Z = arrays(10, 6, seed=3, B=4)
    h = hypers(10, 4, 6, **WIDE)
    q = factors(X, y, Z, h, v_factor="truncated")
    if factor in ("delta", "psi", "v"):
        q.update_a()  # something else moved since
    getattr(q, f"update_{factor}")()
    at = parameters(q)
    top = dense_elbo(at, X, y, Z, h, "truncated")
    rng = np.random.default_rng(5)
    for name in FACTORS[factor]:
        for size in (0.3, 0.03, 0.003):
            for _ in range(6):
                moved = dict(at)
                shift = size * rng.standard_normal(np.shape(at[name]))
                if name == "Sigma":
                    C = np.eye(len(shift)) + shift
                    moved[name] = C @ at[name] @ C.T
                elif factor == "v":
                    # the others of a sequential update were optimal before the last one moved
                    moved[name] = at[name] + 0.0
                    moved[name][-1] += shift[-1] * abs(at[name][-1])
                elif name in ("a", "u", "b"):
                    moved[name] = at[name] + shift
                else:
                    moved[name] = at[name] * np.exp(shift)
                change = dense_elbo(moved, X, y, Z, h, "truncated") - top
                assert change < 1e-10 * abs(top), (name, size)
                assert size < 0.3 or change < -1e-5, (name, size)  # the move is felt


def naive_sweep(q, v_factor):
    """The sequential update with D x D matrices and library moments."""
    G, P = q.Xt @ q.Xt.T, q.Zt @ q.A @ q.Zt.T
    v, m = q.v.copy(), np.empty(len(q.v))
    precision = q.tau * np.diag(G) * np.diag(P) + q.delta
    r = q.u - q.b
    for d in range(len(v)):
        cross = sum(G[d, e] * P[d, e] * v[e] for e in range(len(v)) if e != d)
        m[d] = q.tau * ((q.Xt[d] @ r) * (q.Zt[d] @ q.a) - cross) / precision[d]
        one = {"m": m[d : d + 1], "precision": precision[d : d + 1]}
        v[d] = v_moments(one, v_factor)[0][0]
    return m, precision, v


@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_sequential_update_equals_the_naive_loop(v_factor):
    X, y, Z = arrays(7, 12, seed=4, B=5)
    q = factors(X, y, Z, hypers(7, 5, 12, **WIDE), v_factor=v_factor)
    q.update_a()
    m, precision, v = naive_sweep(q, v_factor)
    q.update_v()
    np.testing.assert_allclose(q.precision, precision, rtol=1e-12)
    np.testing.assert_allclose(q.m, m, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(q.v, v, rtol=1e-9)
    np.testing.assert_allclose(q.M, X @ np.diag(q.v) @ Z.T, rtol=1e-11, atol=1e-13)


def test_simultaneous_update_equals_the_dense_formula():
    X, y, Z = arrays(7, 12, seed=4, B=5)
    q = factors(X, y, Z, hypers(7, 5, 12, **WIDE), v_update="simultaneous")
    q.update_a()
    GP = (X.T @ X) * (Z.T @ q.A @ Z)
    off = GP - np.diag(np.diag(GP))
    precision = q.tau * np.diag(GP) + q.delta
    m = q.tau * ((X.T @ (q.u - q.b)) * (Z.T @ q.a) - off @ q.v) / precision
    np.testing.assert_allclose(q.P, np.diag(Z.T @ q.A @ Z), rtol=1e-12)
    q.update_v()
    np.testing.assert_allclose(q.m, m, rtol=1e-10)
    np.testing.assert_allclose(q.precision, precision, rtol=1e-12)


def test_products_in_blocks_equal_one_product(monkeypatch):
    X, _, Z = arrays(6, 11, seed=5, B=4)
    w = np.random.default_rng(0).random(11)
    monkeypatch.setattr(rfvm_factors, "_BLOCK", 3)
    np.testing.assert_allclose(rfvm_factors._product(X.T, w, Z.T), X @ np.diag(w) @ Z.T, rtol=1e-12)


@pytest.mark.parametrize("damping", [0.0, 0.6])
@pytest.mark.parametrize(
    ("N", "D", "B", "given"),
    [
        (12, 4, None, {}),
        (30, 8, 3, WIDE),
        (8, 60, None, WIDE),
        (10, 400, None, {}),
        (15, 5, None, {"sample_shape": 1e-6, "sample_rate": 1e-6, "feature_shape": 1e-6,
                           "feature_rate": 1e-6, "noise_shape": 1e-3, "noise_rate": 1e-3}),
    ],
)  # fmt: skip
def test_truncated_sequential_never_lowers_the_elbo(N, D, B, given, damping, caplog):
    X, y, Z = arrays(N, D, seed=N, B=B)
    h = hypers(N, len(Z), D, **given)
    q = factors(X, y, Z, h, sweeps=0, v_factor="truncated", damping=damping)
    bounds = []
    for _ in range(60):
        q.sweep()
        bounds.append(q.elbo())
    assert np.isfinite(bounds).all()
    assert (np.diff(bounds) > -1e-9 * np.abs(bounds[1:])).all()


def test_negative_controls_simultaneous_and_folded_lower_the_elbo():
    X, y, Z = arrays(60, 20, seed=0)
    h = hypers(60, 60, 20, **WIDE)
    steps = {}
    for v_update in ("sequential", "simultaneous"):
        q = factors(X, y, Z, h, sweeps=30, v_factor="truncated", v_update=v_update)
        q.m = q.m + 0.5 * q.scale
        q._set_v()
        bounds = []
        for _ in range(6):  # q(v) alone, the rest held
            bounds.append(q.elbo())
            q.update_v()
        steps[v_update] = np.diff(bounds)
    assert (steps["sequential"] > 0).all()
    assert steps["simultaneous"].min() < -100.0
    # its Jacobi matrix is no contraction
    J = q.tau * (X.T @ X) * (Z.T @ q.A @ Z) / q.precision[:, None]
    np.fill_diagonal(J, 0.0)
    assert np.abs(np.linalg.eigvals(J)).max() > 1.5

    # folded: even one feature after the other, the fixed point is no maximum
    X, y, _ = arrays(100, 10, seed=0)
    q = factors(X, y, X[:1], hypers(100, 1, 10, **WIDE), sweeps=0, v_factor="folded")
    run = iterate(q, Options(tolerance=1e-12, max_sweeps=150))
    assert run.falls() > 0


# --- R, and rates that are wrong ----------------------------------------------------------------


def test_R_by_monte_carlo_and_two_wrong_rates():
    X, y, Z = arrays(12, 6, seed=8, B=5)
    q = factors(X, y, Z, hypers(12, 5, 6, **WIDE), sweeps=3, v_factor="truncated")
    point = q.draws(np.random.default_rng(1), 200_000)
    eta = rfvm.decision(point, Inputs(X, Z), hypers(12, 5, 6, **WIDE))
    terms = ((point["u"] - eta) ** 2).sum(axis=1)
    error = terms.std() / len(terms) ** 0.5

    def z(value):
        return (value - terms.mean()) / error

    diagonal = np.sum(q.G * q.var_v * q.P)
    all_pairs = np.sum((X.T @ X) * (Z.T @ q.A @ Z) * np.sqrt(np.outer(q.var_v, q.var_v)))
    assert abs(z(q.R())) < 4.0
    assert abs(z(q.R() - q.var_u.sum())) > 20.0  # without Var(u)
    assert abs(z(q.R() - diagonal + all_pairs)) > 20.0  # as the released code


# --- draws and densities ------------------------------------------------------------------------


@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_draws_have_the_moments_of_q(v_factor):
    X, y, Z = arrays(10, 6, seed=9, B=4)
    q = factors(X, y, Z, hypers(10, 4, 6, **WIDE), sweeps=6, v_factor=v_factor)
    S = 100_000
    point = q.draws(np.random.default_rng(2), S)
    want = {
        "feature_weight": (q.v, q.var_v),
        "sample_weight": (q.a, np.diag(q.Sigma)),
        "delta": (q.delta, q.delta_shape / q.delta_rate**2),
        "psi": (q.psi, q.psi_shape / q.psi_rate**2),
        "tau": (q.tau, q.tau_shape / q.tau_rate**2),
        "bias": (q.b, q.var_b),
        "u": (q.u, q.var_u),
    }
    assert set(want) == set(point)
    for name, (mean, variance) in want.items():
        x = point[name]
        z = (x.mean(axis=0) - mean) / np.sqrt(variance / S)
        assert np.abs(z).max() < 4.5, name
        square = (x - mean) ** 2
        z = (square.mean(axis=0) - variance) / (square.std(axis=0) / S**0.5)
        assert np.abs(z).max() < 4.5, name
    covariance = np.cov(point["sample_weight"].T)
    scale = np.sqrt(np.outer(np.diag(q.Sigma), np.diag(q.Sigma)))
    assert np.abs((covariance - q.Sigma) / scale).max() < 5 / S**0.5


@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_log_q_is_the_sum_of_scipy_densities(v_factor):
    X, y, Z = arrays(9, 5, seed=10, B=4)
    q = factors(X, y, Z, hypers(9, 4, 5, **WIDE), sweeps=3, v_factor=v_factor)
    p = q.draws(np.random.default_rng(4), 20)
    s = q.scale
    law = (
        stats.truncnorm(-q.m / s, np.inf, loc=q.m, scale=s)
        if v_factor == "truncated"
        else stats.foldnorm(np.abs(q.m) / s, scale=s)
    )
    want = law.logpdf(p["feature_weight"]).sum(axis=1)
    want += stats.multivariate_normal(q.a, q.Sigma).logpdf(p["sample_weight"])
    want += stats.norm.logpdf(p["bias"], q.b, q.var_b**0.5)
    want += stats.gamma.logpdf(p["tau"], q.tau_shape, scale=1 / q.tau_rate)
    without = {k: x for k, x in p.items() if k not in ("psi", "delta", "u")}
    np.testing.assert_allclose(q.log_q(without), want, rtol=1e-9)
    want += stats.gamma.logpdf(p["psi"], q.psi_shape, scale=1 / q.psi_rate).sum(axis=1)
    want += stats.gamma.logpdf(p["delta"], q.delta_shape, scale=1 / q.delta_rate).sum(axis=1)
    want += stats.norm.logpdf(p["u"], q.u, q.var_u**0.5).sum(axis=1)
    np.testing.assert_allclose(q.log_q(p), want, rtol=1e-9)


# --- the fit contract -----------------------------------------------------------------------------


def small_problem(seed=0, N=14, D=5, **given):
    X, y, _ = arrays(N, D, seed)
    return av.problem("rfvm", (X, y.astype(int)), **given)


def run_fit(problem, **options):
    settings = {"draws": 30, "chains": 2, "random_seed": 5, "progressbar": False}
    return av.fit(problem, "rfvm_vb", **settings | options)


FORMS = [
    (parametrization, noise)
    for parametrization in ("hierarchical", "marginal")
    for noise in ("explicit", "integrated")
]


@pytest.mark.parametrize(("parametrization", "noise"), FORMS)
def test_fit_fills_the_contract_in_every_form(parametrization, noise, tmp_path):
    problem = small_problem(parametrization=parametrization, latent_noise=noise)
    tree = run_fit(problem)
    assert tree.attrs["status"] == "ok", tree.attrs["reason"]
    posterior = {str(k): x.values for k, x in tree["posterior"].data_vars.items()}
    form = {"psi", "delta"} if parametrization == "hierarchical" else set()
    form |= {"u"} if noise == "explicit" else set()
    point = {k: posterior[k] for k in form | {"feature_weight", "sample_weight", "tau", "bias"}}
    free = problem.to_free(point)
    assert set(posterior) == set(point) | set(free) | {"eta"}
    for name, values in free.items():
        np.testing.assert_allclose(posterior[name], values, rtol=1e-12)
    np.testing.assert_allclose(posterior["eta"], problem.decision(point), rtol=1e-10, atol=1e-12)
    stats_ = tree["sample_stats"]
    np.testing.assert_allclose(stats_["lp"].values, problem.log_density(point), rtol=1e-10)
    ratio = (stats_["lp"] - stats_["log_q"]).values
    assert np.isfinite(ratio).all()
    # E_q[ln joint - ln q] is above the bound; Jacobians cancel
    assert ratio.mean() > tree.attrs["elbo"] - 4 * ratio.std() / ratio.size**0.5
    assert tree["posterior"]["feature_weight"].dims == ("chain", "draw", "feature")
    assert tree["fit"]["selected_feature"].dims == ("feature",)
    assert tree["fit"]["selected_feature"].dtype == bool
    assert tree["fit"]["elbo"].dims == ("sweep",)
    save(tree, tmp_path / "fit.nc")
    back = read(tmp_path / "fit.nc")
    np.testing.assert_array_equal(
        av.predict(problem, back, problem.data.X, rule="paper"),
        av.predict(problem, tree, problem.data.X, rule="paper"),
    )


def test_fit_keeps_what_is_asked():
    tree = run_fit(small_problem(), keep="shared")
    assert set(tree["posterior"].data_vars) == {
        "feature_weight", "sample_weight", "eta", "bias", "tau",
    }  # fmt: skip
    assert np.isfinite(tree["sample_stats"]["log_q"]).all()


@pytest.mark.parametrize(("parametrization", "noise"), FORMS)
@pytest.mark.parametrize("limit", [1e8, 100.0])
def test_no_model_is_built_to_fit_or_predict(parametrization, noise, limit, monkeypatch):
    monkeypatch.setattr(fitting, "LARGEST_KEPT", limit)
    problem = small_problem(parametrization=parametrization, latent_noise=noise)
    tree = run_fit(problem)
    assert np.isfinite(av.predict(problem, tree, problem.data)).all()
    assert "model" not in vars(problem)
    # what is kept is what it was when the model was asked: the limit is of the form's variables
    free = {v.name for v in problem.model.unobserved_RVs}
    kept = free if limit > 1e6 else {"feature_weight", "sample_weight", "eta", "bias", "tau"}
    assert set(tree["posterior"].data_vars) == kept


def test_starts_share_the_columns_and_change_nothing():
    X, y, Z = arrays(9, 6, seed=3, B=4)
    h = hypers(9, 4, 6)
    columns = rfvm_factors.Columns.of(X, Z)
    before = [x.copy() for x in (columns.Xt, columns.Zt, columns.G)]
    options = Options(prune=True, prune_feature=0.99)
    shared, own = (
        Factors(X, y, Z, h, np.random.default_rng(0), options, given) for given in (columns, None)
    )
    assert shared.Xt is columns.Xt
    for q in (shared, own):
        for _ in range(4):
            q.sweep()
            q.prune()
        q.release()
    assert len(shared.features) < 6
    np.testing.assert_array_equal(shared.v, own.v)
    for x, old in zip((columns.Xt, columns.Zt, columns.G), before, strict=True):
        np.testing.assert_array_equal(x, old)
    assert rfvm_factors.Columns.of(X, X).Zt is not columns.Zt
    both = rfvm_factors.Columns.of(X, X)
    assert both.Zt is both.Xt


def test_memory_of_a_fit_is_a_few_copies_of_X(monkeypatch):
    """X, its columns, W, and as many draws as rows: four. A (D, D) array is 67 copies."""
    monkeypatch.setattr(rfvm_vb, "_CHUNK", 1)  # one draw at a time, as at a million features
    X, y, _ = arrays(60, 4000, seed=0)
    small = av.problem("rfvm", (X[:, :20], y.astype(int)))
    run_fit(small, draws=2, keep="shared")  # what is compiled and imported once is no part of it
    problem = av.problem("rfvm", (X, y.astype(int)))
    tracemalloc.start()
    run_fit(problem, draws=30, chains=2, keep="shared", max_sweeps=3, restarts=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6.0 * X.nbytes  # a start that kept its W would be one more


@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_equal_seeds_give_equal_draws(v_factor):
    problem = small_problem()
    one, two, other = (
        run_fit(problem, v_factor=v_factor, random_seed=s)["posterior"].to_dataset()
        for s in (1, 1, 2)
    )
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
        assert (one[name].values != other[name].values).all(), name
    assert (one["bias"].values[0] != one["bias"].values[1]).all()  # chains differ


def test_chunks_of_draws_change_nothing_in_their_law(monkeypatch):
    monkeypatch.setattr(rfvm_vb, "_CHUNK", 100)
    tree = run_fit(small_problem(), draws=23)
    assert tree["posterior"].sizes["draw"] == 23
    ratio = tree["sample_stats"]["lp"] - tree["sample_stats"]["log_q"]
    assert np.isfinite(ratio).all()


def test_restarts_keep_the_best_bound():
    tree = run_fit(small_problem(), restarts=3, tolerance=1e-4)
    assert tree["fit"]["elbo_start"].sizes["start"] == 3
    assert tree.attrs["elbo"] == tree["fit"]["elbo_start"].values.max()
    assert tree["fit"]["elbo"].values[-1] == tree.attrs["elbo"]


def test_supports_and_options_say_what_is_wrong():
    with pytest.raises(InputError, match="latent_noise is 'none'"):
        run_fit(small_problem(latent_noise="none"))
    assert "bare pm.Model" in rfvm_vb.supports(Target(pm.Model()))
    with pytest.raises(InputError, match="v_factor must be one of"):
        Options(v_factor="normal")
    with pytest.raises(InputError, match=r"damping must be a finite number in \[0, 1\)"):
        Options(damping=1.0)
    with pytest.raises(TypeError, match="v_factor"):
        run_fit(small_problem(), v_facto="folded")


def test_too_few_sweeps_is_not_converged():
    tree = run_fit(small_problem(), max_sweeps=2)
    assert tree.attrs["status"] == "not_converged"
    assert "after 2 sweeps" in tree.attrs["reason"]
    assert not bool(tree["fit"]["converged"])


def test_a_bound_that_is_not_finite_fails_by_name(monkeypatch):
    monkeypatch.setattr(Factors, "elbo", lambda self: np.nan)
    tree = run_fit(small_problem())
    assert tree.attrs["status"] == "failed"
    assert "ELBO is not finite" in tree.attrs["reason"]


# --- pruning and prediction -----------------------------------------------------------------------


def test_pruning_agrees_with_none_as_the_threshold_falls():
    problem = small_problem(seed=3, N=30, D=12)
    settings = {"restarts": 1, "tolerance": 1e-9}

    def fitted(**options):
        tree = run_fit(problem, **settings, **options)
        assert tree.attrs["status"] == "ok", tree.attrs["reason"]
        return tree, av.predict(problem, tree, problem.data.X, rule="paper").values

    _, full = fitted()
    gaps, kept = [], []
    for part in (0.9, 0.5, 1e-9):
        tree, p = fitted(prune=True, prune_feature=part, prune_sample=part)
        gaps.append(np.abs(p - full).max())
        kept.append(int(tree["fit"]["features_kept"][-1]))
        weights = tree["posterior"]["feature_weight"].values
        assert weights.shape[-1] == 12
        removed = tree["fit"]["feature_scale"].values == 0.0
        assert removed.sum() == 12 - kept[-1]
        assert (weights[..., removed] == 0.0).all()
        assert (weights[..., ~removed] > 0.0).all()
        assert not tree["fit"]["selected_feature"].values[removed].any()
        if removed.any():
            assert np.isnan(tree["sample_stats"]["lp"]).all()
            assert "log_q" not in tree["sample_stats"]
            assert "delta" not in tree["posterior"]
    assert kept[0] < kept[1] <= kept[2] == 12
    assert gaps[0] > gaps[1] > gaps[2] == 0.0
    assert (
        np.asarray(fitted(prune=True, prune_feature=0.9)[0]["fit"]["features_kept"])[:6] == 12
    ).all()


@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_predictive_moments_by_monte_carlo(v_factor):
    problem = small_problem(seed=6, basis=[0, 3, 4, 8])
    tree = run_fit(problem, v_factor=v_factor, draws=50_000, chains=2, restarts=1)
    X_new = np.random.default_rng(0).standard_normal((3, 5))
    state = {str(k): x.values for k, x in tree["fit"].data_vars.items()}
    mean, variance = rfvm_vb.predictive_moments(state, problem.Z, X_new)
    point = {
        k: tree["posterior"][k].values.reshape(100_000, *tree["posterior"][k].shape[2:])
        for k in ("feature_weight", "sample_weight", "bias")
    }
    f = problem.decision(point, X_new)
    assert np.abs((f.mean(axis=0) - mean) / (f.std(axis=0) / len(f) ** 0.5)).max() < 4.0
    square = (f - mean) ** 2
    plug_in = state["tau_rate"] / state["tau_shape"]  # 1 / <tau>
    z = (square.mean(axis=0) + plug_in - variance) / (square.std(axis=0) / len(f) ** 0.5)
    assert np.abs(z).max() < 4.0
    want = special.expit(mean / np.sqrt(1 + np.pi * variance / 8))
    np.testing.assert_allclose(rfvm_vb.predict_paper(problem, state, X_new), want, rtol=1e-14)


# --- awkward and full-size input ------------------------------------------------------------------


def separable():
    x = np.linspace(-3, 3, 20)
    return np.c_[x, x**2], (x > 0).astype(int)


def duplicated():
    X, y, _ = arrays(16, 3, seed=1)
    return np.repeat(X, 4, axis=1), y.astype(int)


def constant():
    X, y, _ = arrays(16, 4, seed=2)
    X[:, 1:3] = 7.0
    return X, y.astype(int)


def two_rows():
    return np.array([[0.0, 1.0, 2.0], [1.0, -1.0, 2.5]]), np.array([0, 1])


@pytest.mark.parametrize("v_update", ["sequential", "simultaneous"])
@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
@pytest.mark.parametrize("data", [separable, duplicated, constant, two_rows])
def test_degenerate_input_gives_finite_draws_and_a_clear_status(data, v_factor, v_update):
    tree = run_fit(av.problem("rfvm", data()), v_factor=v_factor, v_update=v_update, restarts=1)
    assert tree.attrs["status"] == "ok", tree.attrs["reason"]
    for name, values in tree["posterior"].data_vars.items():
        assert np.isfinite(values).all(), name
    assert np.isfinite(tree["sample_stats"]["lp"] - tree["sample_stats"]["log_q"]).all()


def test_duplicated_columns_share_their_weight():
    problem = av.problem("rfvm", duplicated())
    v = run_fit(problem, v_factor="truncated", tolerance=1e-12)["fit"]["feature_mean"].values
    v = v.reshape(3, 4)
    np.testing.assert_allclose(v, np.broadcast_to(v[:, :1], v.shape), rtol=1e-3)


@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_full_size(v_factor):
    X, y, _ = arrays(72, 7129, seed=0, correlated=False)
    q = factors(X, y, X, hypers(72, 72, 7129), sweeps=0, v_factor=v_factor)
    run = iterate(q, replace(q.options, max_sweeps=12))
    assert np.isfinite(run.elbo).all()
    if v_factor == "truncated":
        assert run.falls() == 0
    point = q.draws(np.random.default_rng(0), 5)
    assert np.isfinite(q.log_q(point)).all()
