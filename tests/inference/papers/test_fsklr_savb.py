"""FS-SKLR's search against enumeration, dense loops, quadrature and `log_joint`.

Negative controls: a variational update with a wrong rho, and Algorithm 1's comparison as printed,
must fail the checks that the right ones pass.
"""

import math
import tracemalloc

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, special, stats
from scipy.spatial.distance import cdist

import ardvark as av
from ardvark.inference import fitting
from ardvark.inference.backend import FitFailed, Job
from ardvark.inference.datatree import read, save
from ardvark.inference.papers import fsklr_savb, fsklr_variational
from ardvark.inference.papers.fsklr_savb import Options, Search
from ardvark.inference.papers.fsklr_variational import (
    Labels,
    Rule,
    additive_sweep,
    distance_sweep,
    gaussian,
    jaakkola_jordan,
    log_likelihood,
    logistic,
    precision_root,
)
from ardvark.inference.target import Target
from ardvark.models.parts.masks import log_mask_prior
from ardvark.validate import InputError

FORMS = [("fsklr", "rbf"), ("fsklr", "linear"), ("sklr", "rbf"), ("fs_skr", "rbf"),
         ("fs_skr", "linear")]  # fmt: skip
every_form = pytest.mark.parametrize(("model", "kernel"), FORMS)
every_prior = pytest.mark.parametrize("mask_prior", ["independent", "shared", "printed"])
QUICK = {"feature_sweeps": 8, "sample_sweeps": 8}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(fitting.BACKENDS, "fsklr_savb", fsklr_savb)


def arrays(N=24, D=5, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    y = (X[:, 0] - X[:, 1 % D] + noise * rng.standard_normal(N) > 0).astype(int)
    y[:2] = 0, 1
    return X, y


def made(model="fsklr", kernel="rbf", N=24, D=5, seed=0, **given):
    return av.problem(model, arrays(N, D, seed), kernel=kernel, **given)


def direct(problem, seed=5, **options):
    """The backend's own result: no `pm.Model` is built, which costs more than a small fit."""
    return fsklr_savb.fit(
        Target(problem), Options(**QUICK | options), Job(draws=1, chains=1, seed=seed)
    )


def searching(problem, seed=0, **options):
    return Search(problem, Options(**options), np.random.default_rng(seed))


def point_of(result):
    return {name: values[0, 0] for name, values in result.posterior.items()}


# --- algorithm 2, logistic ------------------------------------------------------------------------


def kernel_matrix(N=14, A=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((N, A)), rng.integers(2, size=N).astype(float), rng.random(N)


def test_lambda_is_half_the_mean_of_a_polya_gamma():
    """PG(1, c) is a sum of gammas: mean sum_k 1 / (2 pi^2 ((k - 1/2)^2 + c^2 / 4 pi^2))."""
    k = np.arange(1, 2_000_001)
    for c in (0.0, 1e-6, 5e-4, 2e-3, 0.7, 9.0):
        series = np.sum(1 / ((k - 0.5) ** 2 + c**2 / (4 * math.pi**2))) / (2 * math.pi**2)
        tail = 1 / (2 * math.pi**2 * k[-1])
        got = 2 * jaakkola_jordan(np.array([c]))[0]
        assert got == pytest.approx(series + tail, rel=1e-10)
    np.testing.assert_allclose(jaakkola_jordan(np.array([1e200])), 0.25e-200)


def test_logistic_is_the_naive_loop():
    K, y, rho = kernel_matrix()
    N, A = K.shape
    xi = 0.7
    for steps in (1, 2, 7):
        q = logistic(K, y, xi, rho, steps, 1e-300)
        r = rho.copy()
        for _ in range(steps):
            P, b = xi * np.eye(A), np.zeros(A)
            for i in range(N):
                P += 2 * np.tanh(r[i] / 2) / (4 * r[i]) * np.outer(K[i], K[i])  # (33)
                b += (y[i] - 0.5) * K[i]
            S = np.linalg.inv(P)
            m = S @ b  # (32)
            r = np.array([np.sqrt(K[i] @ (S + np.outer(m, m)) @ K[i]) for i in range(N)])  # (35)
        np.testing.assert_allclose(q.mean, m, rtol=1e-10)
        np.testing.assert_allclose(q.covariance(), S, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(q.rho, r, rtol=1e-10)
        assert len(q.elbo) == steps


def polya_gamma_elbo(K, y, xi, m, S, c):
    """E_q[ln p(y, omega, alpha)] - E_q[ln q], q(omega_i) = PG(1, c_i), q(alpha) = N(m, S).

    PG(w | 1, c) = cosh(c / 2) exp(-c^2 w / 2) PG(w | 1, 0), so KL_i = ln cosh(c/2) - c^2 E[w] / 2.
    """
    mean_w = np.tanh(c / 2) / (2 * c)
    eta, eta2 = K @ m, np.einsum("ij,jk,ik->i", K, S + np.outer(m, m), K)
    likelihood = -np.log(2) + (y - 0.5) * eta - 0.5 * mean_w * eta2
    kl_w = np.log(np.cosh(c / 2)) - 0.5 * c**2 * mean_w
    A = len(m)
    kl_alpha = 0.5 * (xi * (np.trace(S) + m @ m) - A - A * np.log(xi) - np.linalg.slogdet(S)[1])
    return np.sum(likelihood - kl_w) - kl_alpha


def test_logistic_is_polya_gamma_mean_field():
    """The same bound as a functional of q, and no other q(alpha), q(omega) is better."""
    K, y, rho = kernel_matrix()
    q = logistic(K, y, 0.7, rho, 500, 1e-13)
    S = q.covariance()
    assert q.converged
    best = polya_gamma_elbo(K, y, 0.7, q.mean, S, q.rho)
    assert q.elbo[-1] == pytest.approx(best, abs=1e-9)
    first = logistic(K, y, 0.7, rho, 1, 1e-13)  # also off the fixed point, at the rho it used
    assert first.elbo[0] == pytest.approx(
        polya_gamma_elbo(K, y, 0.7, first.mean, first.covariance(), rho), abs=1e-9
    )
    rng = np.random.default_rng(1)
    for _ in range(30):
        c = q.rho * np.exp(0.1 * rng.standard_normal(len(y)))
        m = q.mean + 0.05 * rng.standard_normal(len(q.mean))
        T = S + 0.02 * np.diag(rng.random(len(m)))
        for other in ((q.mean, S, c), (m, S, q.rho), (q.mean, T, q.rho)):
            assert polya_gamma_elbo(K, y, 0.7, *other) < best


@pytest.mark.parametrize("xi", [1e-3, 1.0, 50.0])
def test_logistic_elbo_never_falls_and_is_a_bound(xi):
    for seed in range(4):
        K, y, rho = kernel_matrix(12, 1 + seed % 2, seed)
        for start in (rho, 40 * rho, 1e-9 * rho):
            q = logistic(K, y, xi, start, 2000, 1e-12)
            assert q.converged
            assert np.diff(q.elbo).min() > -1e-10
            s = 2 * y - 1

            width = np.sqrt(np.diag(q.covariance()))
            axes = [
                np.linspace(m - 12 * w, m + 12 * w, 401) for m, w in zip(q.mean, width, strict=True)
            ]
            a = np.stack(np.meshgrid(*axes), -1).reshape(-1, len(axes))
            joint = special.log_expit(s * (a @ K.T)).sum(1)
            joint += stats.norm.logpdf(a, 0, xi**-0.5).sum(1)
            cell = np.log([axis[1] - axis[0] for axis in axes]).sum()
            evidence = special.logsumexp(joint) + cell
            assert q.elbo[-1] < evidence + 1e-6
            assert q.elbo[-1] > evidence - 1.0


def test_another_rho_lowers_the_elbo():
    """Negative controls: one rho for all observations, and (35) without m m'."""
    K, y, rho = kernel_matrix()
    q = logistic(3 * K, y, 0.1, rho, 5000, 1e-13)
    best = q.elbo[-1]
    spread = np.einsum("ij,jk,ik->i", 3 * K, q.covariance(), 3 * K)
    for wrong in (np.full(14, np.mean(q.rho**2) ** 0.5), spread**0.5):
        assert logistic(3 * K, y, 0.1, wrong, 1, 1.0).elbo[0] < best - 1e-3
    assert logistic(3 * K, y, 0.1, q.rho, 1, 1.0).elbo[0] == pytest.approx(best, abs=1e-9)


def test_the_start_does_not_matter():
    """The bound is concave enough here: U(0, 1) and far starts end in one q."""
    K, y, rho = kernel_matrix(30, 12, 3)
    ends = [logistic(K, y, 1.0, start, 5000, 1e-13) for start in (rho, 30 * rho, 1e-6 * rho)]
    for q in ends[1:]:
        np.testing.assert_allclose(q.mean, ends[0].mean, atol=1e-5)


@pytest.mark.parametrize("fit", ["logistic", "gaussian"])
def test_no_sample_in_use(fit):
    K, y, rho = kernel_matrix(9, 0)
    if fit == "logistic":
        q = logistic(K, y, 1.0, rho, 50, 1e-10)
        assert q.elbo[-1] == pytest.approx(9 * np.log(0.5))
    else:
        q = gaussian(K, 2 * y - 1, 1.0, (3.0, 2.0), 50, 1e-10)
        s = stats.multivariate_t(np.zeros(9), (2.0 / 3.0) * np.eye(9), df=6.0)
        assert q.elbo[-1] == pytest.approx(s.logpdf(2 * y - 1))  # q(tau) is exact there
    assert q.draw(np.random.default_rng(0)).shape == (0,)
    assert q.covariance().shape == (0, 0)


def test_a_stiff_precision_is_still_exact(monkeypatch):
    K, _, rho = kernel_matrix()
    want = 0.3 * np.eye(6) + K.T @ (rho[:, None] * K)
    for limit in (1e10, 0.0):
        monkeypatch.setattr(fsklr_variational, "_STIFF", limit)
        R = precision_root(K, rho, 0.3)
        np.testing.assert_allclose(R.T @ R, want, rtol=1e-12)
        np.testing.assert_array_equal(R, np.triu(R))
    # one column 1e12 times the prior: the square of it would lose xi
    monkeypatch.undo()
    column = 1e12 * np.ones((5, 1))
    R = precision_root(np.c_[column, column], np.ones(5), 1.0)
    along = np.array([1.0, -1.0]) / 2**0.5  # there the data say nothing: precision xi
    assert np.linalg.norm(R @ along) == pytest.approx(1.0, rel=2e-3)


def test_a_kernel_of_low_rank_gives_the_same_q():
    """With an orthonormal basis of the rows of K: bound, moments and rho."""
    K, y, rho = kernel_matrix(14, 3)
    K = K @ np.random.default_rng(1).standard_normal((3, 8))  # rank 3
    basis = np.linalg.svd(K)[2][:3].T
    for model in ("logistic", "gaussian"):
        first, last = (y, rho) if model == "logistic" else (2 * y - 1, (3.0, 2.0))
        run = logistic if model == "logistic" else gaussian
        whole, small = (run(M, first, 0.7, last, 60, 1e-300) for M in (K, K @ basis))
        small.basis = basis
        np.testing.assert_allclose(small.elbo, whole.elbo, rtol=1e-10)
        np.testing.assert_allclose(small.mean, whole.mean, atol=1e-9)
        np.testing.assert_allclose(small.covariance(), whole.covariance(), atol=1e-9)
        assert small.tau_rate == pytest.approx(whole.tau_rate, nan_ok=True)


@pytest.mark.parametrize("rank", [6, 2])
def test_draws_of_q(rank):
    K, y, rho = kernel_matrix()
    basis = None
    if rank < 6:
        basis = np.linalg.qr(K[:rank].T)[0]
        K = K @ basis
    q = logistic(K, y, 0.7, rho, 100, 1e-10)
    q.basis = basis
    rng = np.random.default_rng(0)
    draws = np.array([q.draw(rng) for _ in range(20_000)])
    S = q.covariance()
    sd = np.sqrt(np.diag(S))
    assert np.abs((draws.mean(0) - q.mean) / sd).max() < 4 / 20_000**0.5
    error = (np.cov(draws.T) - S) / np.outer(sd, sd)  # its sd is at most (2 / n)^1/2
    assert np.abs(error).max() < 4.5 * (2 / 20_000) ** 0.5


# --- algorithm 2 with squared errors --------------------------------------------------------------


def test_gaussian_is_coordinate_ascent_of_its_bound():
    K, y, _ = kernel_matrix(14, 4)
    s, xi, (a, b) = 2 * y - 1, 0.8, (3.0, 2.0)
    q = gaussian(K, s, xi, (a, b), 300, 1e-13)
    assert q.converged
    assert np.diff(q.elbo).min() > -1e-12
    assert q.elbo[-1] > q.elbo[0]
    tau, S = q.tau_shape / q.tau_rate, q.covariance()
    np.testing.assert_allclose(S, np.linalg.inv(xi * np.eye(4) + tau * K.T @ K), rtol=1e-6)
    np.testing.assert_allclose(q.mean, tau * S @ K.T @ s, rtol=1e-6)
    R = np.sum((s - K @ q.mean) ** 2) + np.trace(K @ S @ K.T)
    assert q.tau_shape == a + 7.0
    assert q.tau_rate == pytest.approx(b + R / 2)
    # the bound, term by term, by Monte Carlo
    rng = np.random.default_rng(0)
    n = 100_000
    alpha = rng.multivariate_normal(q.mean, S, n)
    noise = rng.gamma(q.tau_shape, 1 / q.tau_rate, n)
    terms = stats.norm.logpdf(s, alpha @ K.T, noise[:, None] ** -0.5).sum(1)
    terms += stats.norm.logpdf(alpha, 0, xi**-0.5).sum(1) + stats.gamma.logpdf(noise, a, 0, 1 / b)
    terms -= stats.multivariate_normal(q.mean, S).logpdf(alpha)
    terms -= stats.gamma.logpdf(noise, q.tau_shape, 0, 1 / q.tau_rate)
    assert abs(terms.mean() - q.elbo[-1]) < 4 * terms.std() / n**0.5

    # ln p(s), alpha integrated exactly and tau by quadrature, is above
    def evidence(t):
        marginal = stats.multivariate_normal(cov=np.eye(14) / t + K @ K.T / xi)
        return np.exp(marginal.logpdf(s) + stats.gamma.logpdf(t, a, 0, 1 / b))

    exact = np.log(integrate.quad(evidence, 1e-6, 30, epsabs=1e-14)[0])
    assert exact - 0.5 < q.elbo[-1] < exact


# --- the sweeps of algorithm 1 --------------------------------------------------------------------


def joint_without_noise(problem, search, zeta, z):
    """ln of the joint density at masks, by the model's own `log_joint`."""
    point = {"z": z.astype(int), "alpha": search.alpha}
    if problem.hypers.FEATURE_MASK:
        point["zeta"] = zeta.astype(int)
    if search.squared_errors:
        point["tau"] = np.asarray(search.labels.tau)
    return float(problem.log_joint(point))


def odds_by_log_joint(problem, search, name, before, after):
    """Log-odds of every bit on the path of one sweep, from differences of `log_joint`."""
    out = np.empty(len(before))
    for k in range(len(before)):
        path = np.r_[after[:k], before[k:]]
        value = []
        for bit in (1, 0):
            path[k] = bit
            masks = (path, search.z) if name == "zeta" else (search.zeta, path)
            value.append(joint_without_noise(problem, search, *masks))
        out[k] = value[0] - value[1]
    return out


@every_prior
@every_form
def test_odds_of_a_sweep_are_differences_of_log_joint(model, kernel, mask_prior):
    problem = made(model, kernel, N=12, D=6, seed=2, mask_prior=mask_prior, xi=0.3)
    search = searching(problem, seed=4)
    flips = 0
    for _ in range(6):
        if problem.hypers.FEATURE_MASK:
            before = search.zeta.copy()
            values = search.sweep_features()
            want = odds_by_log_joint(problem, search, "zeta", before, search.zeta)
            np.testing.assert_allclose(values, want, rtol=1e-7, atol=1e-8)
            flips += np.sum(before != search.zeta)
            search.refit()
        before = search.z.copy()
        values = search.sweep_samples()
        want = odds_by_log_joint(problem, search, "z", before, search.z)
        np.testing.assert_allclose(values, want, rtol=1e-7, atol=1e-8)
        flips += np.sum(before != search.z)
        search.refit()
    assert flips > 3


def test_what_the_printed_comparison_compares():
    """ln p(zeta_k = 1 | others) + ln p(y | zeta_k = 1), not a conditional probability."""
    problem = made(N=8, D=4, mask_prior="shared")
    search = searching(problem, seed=1, comparison="printed")
    before = search.zeta.copy()
    values = search.sweep_features()
    for k in range(4):
        on = np.r_[search.zeta[:k], [True], before[k + 1 :]]
        off = on.copy()
        off[k] = False
        prior = [log_mask_prior(m, problem.hypers.a_zeta, "shared") for m in (on, off)]
        point = {"zeta": on.astype(int), "z": np.ones(8, int), "alpha": search.alpha}
        want = prior[0] - np.logaddexp(*prior) + problem.log_likelihood(point).sum()
        assert values[k] == pytest.approx(want, rel=1e-9)


def sweep_frequencies(comparison, sweeps=6000, seed=0):
    """How often each of 8 feature masks comes up, alpha fixed, and its exact probability."""
    problem = made(N=10, D=3, seed=3, a_zeta=2.0)
    search = searching(problem, seed=seed, comparison=comparison)
    alpha = search.alpha.copy()
    counts = np.zeros(8)
    for _ in range(sweeps):
        for _ in range(3):  # thinned
            search.sweep_features()
            search.eta = search.K @ alpha
        counts[search.zeta @ [1, 2, 4]] += 1
    masks = np.array([[(c >> k) & 1 for k in range(3)] for c in range(8)])
    joint = [joint_without_noise(problem, search, m, np.ones(10)) for m in masks]
    return counts, special.softmax(joint)


def test_sweeps_at_fixed_coefficients_visit_masks_at_their_probability():
    counts, p = sweep_frequencies("normalised")
    n = counts.sum()
    z = (counts - n * p) / np.sqrt(n * p * (1 - p))
    assert (n * p > 30).sum() >= 4
    assert np.abs(z[n * p > 5]).max() < 4.0
    # negative control: algorithm 1's comparison as printed
    counts, p = sweep_frequencies("printed", 300)
    n = counts.sum()
    assert np.abs((counts - n * p) / np.sqrt(n * p * (1 - p))).max() > 20


def test_a_kernel_that_underflowed_comes_back():
    """All on, K is the identity; after most bits are off the distances are still those."""
    rng = np.random.default_rng(0)
    X = 8 * rng.standard_normal((9, 60))
    zeta, square = np.ones(60, bool), cdist(X, X, "sqeuclidean")
    assert (np.exp(-square) == np.eye(9)).all()
    alpha, labels = rng.standard_normal(9), Labels(np.repeat([-1.0, 1.0, 1.0], 3), 0.0)
    eta = np.exp(-square) @ alpha
    u = special.logit(rng.random(60))
    Xt = np.ascontiguousarray(X.T)
    distance_sweep(zeta, Xt, Xt, square, 1.0, alpha, eta, labels, Rule(np.full(60, -4.0), u, False))
    assert 0 < zeta.sum() < 10
    want = cdist(X[:, zeta], X[:, zeta], "sqeuclidean")
    np.testing.assert_allclose(square, want, atol=1e-10)
    np.testing.assert_allclose(eta, np.exp(-want) @ alpha, atol=1e-9)


def test_additive_sweep_keeps_eta():
    rng = np.random.default_rng(0)
    columns, weight, mask = (
        rng.standard_normal((40, 7)),
        rng.standard_normal(40),
        rng.random(40) < 1,
    )
    eta = (mask * weight) @ columns
    rule = Rule(np.zeros(40), special.logit(rng.random(40)), False)
    additive_sweep(mask, columns, weight, eta, Labels(np.ones(7), 2.0), rule)
    assert 0 < mask.sum() < 40
    np.testing.assert_allclose(eta, (mask * weight) @ columns, atol=1e-12)


def test_likelihood_of_saturated_decisions():
    sign = np.array([1.0, -1.0, 1.0])
    eta = np.array([1e4, 1e4, -1e300])
    assert log_likelihood(eta[:2], Labels(sign[:2], 0.0)) == -1e4
    assert log_likelihood(eta, Labels(sign, 0.0)) == pytest.approx(-1e300)
    want = stats.norm.logpdf(sign[:2], 0.5, 0.5**0.5).sum()
    assert log_likelihood(np.full(2, 0.5), Labels(sign[:2], 2.0)) == pytest.approx(want)


# --- the search -----------------------------------------------------------------------------------


@every_form
def test_stages_scores_and_selection(model, kernel):
    problem = made(model, kernel)
    result = direct(problem)
    d, point = result.details, point_of(result)
    stage, objective, chosen = d["stage"], d["objective"], int(d["selected_iteration"])
    expected = [2] * 9 if model == "sklr" else [1] * 9 + [2] * 9
    assert stage.tolist() == expected
    assert d["visited_z"][stage == 1].all()
    assert len(np.unique(d["visited_zeta"][stage == 2], axis=0)) == 1
    assert chosen == np.flatnonzero(stage == 2)[objective[stage == 2].argmax()]
    if model != "sklr":
        first = objective[stage == 1].argmax()
        np.testing.assert_array_equal(d["visited_zeta"][first], d["visited_zeta"][-1])
        assert objective[9] == pytest.approx(objective[first])  # where stage 2 starts
        np.testing.assert_array_equal(point["zeta"], d["visited_zeta"][chosen])
    assert np.diff(objective).min() < 0.0  # a walk, no ascent
    np.testing.assert_array_equal(point["z"], d["visited_z"][chosen])
    np.testing.assert_array_equal(d["features_kept"], d["visited_zeta"].sum(1))
    np.testing.assert_array_equal(d["samples_kept"], d["visited_z"].sum(1))
    # the score is the posterior's density without p(alpha), p(tau)
    h = problem.hypers
    score = float(problem.log_joint(point)) - stats.norm.logpdf(point["alpha"], 0, h.xi**-0.5).sum()
    if model == "fs_skr":
        score -= stats.gamma.logpdf(point["tau"], h.noise_shape, 0, 1 / h.noise_rate)
    assert result.attrs["score"] == pytest.approx(score, rel=1e-9)
    assert objective[chosen] == result.attrs["score"]


def test_score_by_the_bound():
    problem = made()
    d = direct(problem, score="bound").details
    h = problem.hypers
    want = d["elbo"] + log_mask_prior(d["visited_zeta"], h.a_zeta, h.mask_prior)
    want = want + log_mask_prior(d["visited_z"], h.a_z, h.mask_prior)
    np.testing.assert_allclose(d["objective"], want, rtol=1e-12)


@pytest.mark.parametrize("model", ["fsklr", "fs_skr"])
def test_mean_coefficients_are_the_mean_of_q(model):
    result = direct(made(model), alpha="mean")
    point, d = point_of(result), result.details
    np.testing.assert_array_equal(point["alpha"], d["alpha_mean"])
    if model == "fs_skr":
        assert point["tau"] == d["tau_shape"] / d["tau_rate"]
    drawn = direct(made(model))
    assert (point_of(drawn)["alpha"] != drawn.details["alpha_mean"]).any()


def test_coefficients_of_unused_samples_are_prior_draws_inside_and_zero_outside():
    problem = made(N=40, xi=4.0)
    search = searching(problem, seed=3)
    off = []
    for _ in range(60):
        search.sweep_samples()
        search.refit()
        off.append(search.alpha[~search.z])
    off = np.concatenate(off)
    assert len(off) > 500
    assert off.std() == pytest.approx(0.5, abs=4 * 0.5 / (2 * len(off)) ** 0.5)
    result = direct(problem)
    point = point_of(result)
    assert (point["alpha"][point["z"] == 0] == 0.0).all()
    assert (point["alpha"][point["z"] == 1] != 0.0).all()


def test_the_precision_of_the_error_is_drawn_from_its_q():
    search = searching(made("fs_skr"))
    tau = []
    for _ in range(1000):
        search.refit()
        tau.append(search.labels.tau)
    q = search.q  # the gaussian bound has no random start: one q
    assert stats.kstest(tau, stats.gamma(q.tau_shape, 0, 1 / q.tau_rate).cdf).pvalue > 1e-3


def test_the_stored_q_is_the_one_of_the_selected_masks():
    problem = made(N=40)
    result = direct(problem, vb_tolerance=1e-12, vb_iterations=5000)
    point, d = point_of(result), result.details
    active = d["active_sample"]
    np.testing.assert_array_equal(active, np.flatnonzero(point["z"]))
    zeta = point["zeta"] == 1
    K = np.exp(-problem.hypers.delta * cdist(problem.X[:, zeta], problem.Z[active][:, zeta]) ** 2)
    q = logistic(K, problem.y.astype(float), problem.hypers.xi, np.ones(40), 5000, 1e-12)
    np.testing.assert_allclose(d["alpha_mean"][active], q.mean, atol=1e-5)
    np.testing.assert_allclose(d["alpha_covariance"], q.covariance(), atol=1e-5)
    assert d["elbo"][d["selected_iteration"]] == pytest.approx(q.elbo[-1], abs=1e-8)


@every_form
def test_the_printed_prior_is_that_of_a_problem_that_has_it(model, kernel):
    delta = {"delta": 0.2}
    ours = direct(made(model, kernel, mask_prior="printed", **delta))
    option = direct(made(model, kernel, **delta), prior="printed")
    other = direct(made(model, kernel, **delta))
    for name, values in ours.posterior.items():
        np.testing.assert_array_equal(values, option.posterior[name])
    np.testing.assert_array_equal(ours.details["objective"], option.details["objective"])
    assert not np.array_equal(ours.details["objective"], other.details["objective"])


@every_form
def test_the_comparison_as_printed_turns_everything_off(model, kernel):
    result = direct(made(model, kernel), comparison="printed")
    assert result.status == "not_converged"
    assert 'use comparison="normalised"' in result.reason
    kept = result.details["samples_kept" if model == "sklr" else "features_kept"]
    assert (kept[1:9] == 0).all()


@pytest.mark.parametrize("model", ["fsklr", "sklr", "fs_skr"])
@pytest.mark.parametrize("mask_prior", ["independent", "shared"])
def test_explicit_probabilities_are_conditional_means(model, mask_prior):
    forms = ("explicit", "integrated")
    explicit, integrated = (
        direct(made(model, D=4, mask_prior=mask_prior, mask_probability=form)) for form in forms
    )
    point, h = point_of(explicit), made(model, D=4).hypers
    for name, values in integrated.posterior.items():
        np.testing.assert_array_equal(values, explicit.posterior[name])
    masks = [("sample", point["z"], h.a_z)]
    if model != "sklr":
        masks.append(("feature", point["zeta"], h.a_zeta))
    for what, mask, a in masks:
        got = np.atleast_1d(point[f"{what}_mask_probability"])
        groups = [mask] if mask_prior == "shared" else [mask[k : k + 1] for k in range(len(mask))]
        assert len(got) == len(groups)
        for value, bits in zip(got, groups, strict=True):
            # q = u^(n/a) has the prior Beta(a/n, 1); tanh-sinh would do, a dense midpoint rule too
            u = (np.arange(400_000) + 0.5) / 400_000
            q = u ** (len(mask) / a)
            weight = q ** bits.sum() * (1 - q) ** (len(bits) - bits.sum())
            assert value == pytest.approx((q * weight).sum() / weight.sum(), rel=1e-4)
    assert np.isfinite(explicit.sample_stats["lp"]).all()


def planted(N=80, D=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    y = (X[:, 7] - X[:, 21] + 0.3 * rng.standard_normal(N) > 0).astype(int)
    return X, y


@pytest.mark.parametrize(("model", "kernel"), [f for f in FORMS if f[0] != "sklr"])
def test_planted_features_are_found(model, kernel):
    problem = av.problem(model, planted(), kernel=kernel)
    result = direct(problem, feature_sweeps=30, sample_sweeps=20)
    assert result.status == "ok"
    assert {7, 21} <= set(np.flatnonzero(result.details["selected_feature"]))
    assert result.attrs["features"] <= 10
    assert result.attrs["samples"] < 40
    X, y = planted(400, seed=1)
    p = fsklr_savb.predict_paper(problem, result.details, problem.standardized(X))
    cut = 0.0 if model == "fs_skr" else 0.5
    assert np.mean((p > cut) == (y == 1)) > 0.8


# --- the fit contract -----------------------------------------------------------------------------


@every_form
def test_what_a_fit_contains(model, kernel, tmp_path):
    problem = made(model, kernel)
    tree = av.fit(
        problem, "paper", draws=7, chains=3, random_seed=1, progressbar=False, **QUICK
    )  # fmt: skip
    assert tree.attrs["method"] == "fsklr_savb"
    assert tree.attrs["kind"] == "search"
    assert tree.attrs["status"] == "ok", tree.attrs["reason"]
    posterior = tree["posterior"]
    assert posterior.sizes["chain"] == posterior.sizes["draw"] == 1
    names = {"z", "alpha", "sample_weight", "feature_weight", "eta"}
    names |= {"zeta"} if model != "sklr" else set()
    names |= {"tau"} if model == "fs_skr" else set()
    assert set(posterior.data_vars) == names
    point = {str(k): v.values[0, 0] for k, v in posterior.data_vars.items()}
    np.testing.assert_allclose(problem.decision(point), point["eta"], rtol=1e-8, atol=1e-10)
    assert tree["sample_stats"]["lp"].item() == pytest.approx(float(problem.log_density(point)))
    assert (point["feature_weight"] == point.get("zeta", 1)).all()
    np.testing.assert_array_equal(point["sample_weight"], point["z"] * point["alpha"])
    details = tree["fit"]
    assert details["visited_zeta"].dims == ("iteration", "feature")
    assert details["visited_z"].dims == ("iteration", "basis")
    assert details["selected_feature"].dims == ("feature",)
    assert details["selected_sample"].dims == ("basis",)
    assert details["selected_sample"].dtype == bool
    for name in ("objective", "features_kept", "samples_kept", "elbo"):
        assert details[name].dims == ("iteration",)
    A, D = point["z"].sum(), problem.data.D
    assert tree.attrs["samples"] == A
    assert tree.attrs["sample_sparsity"] == pytest.approx(1 - A / 24)
    assert tree.attrs["feature_sparsity"] == pytest.approx(1 - point["feature_weight"].sum() / D)
    assert details["alpha_covariance"].dims == ("active", "active_other")
    save(tree, tmp_path / "fit.nc")
    back = read(tmp_path / "fit.nc")
    assert tree.identical(back)
    X_new = np.random.default_rng(0).standard_normal((4, D))
    eta = problem.decision(point, problem.standardized(X_new))
    want = eta if model == "fs_skr" else special.expit(eta)
    for rule in ("paper", "draws"):
        got = av.predict(problem, back, X_new, rule=rule).values[0, 0]
        np.testing.assert_allclose(got, want, rtol=1e-9)
    with pytest.raises(TypeError, match="sweeps"):
        av.fit(problem, "fsklr_savb", sweeps=3)


def test_fit_keeps_what_is_asked():
    tree = av.fit(made("fs_skr"), "fsklr_savb", keep="shared", progressbar=False, **QUICK)
    assert set(tree["posterior"].data_vars) == {"feature_weight", "sample_weight", "eta", "tau"}


def test_equal_seeds_give_equal_searches():
    one, two, other = (direct(made(), seed=s) for s in (1, 1, 2))
    for name, values in one.details.items():
        np.testing.assert_array_equal(values, two.details[name])
    assert not np.array_equal(one.details["objective"], other.details["objective"])


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_basis_of_other_centres(kernel):
    for basis in ([0, 3, 9, 11, 17], np.random.default_rng(0).standard_normal((3, 5))):
        result = direct(made(kernel=kernel, basis=basis))
        assert result.posterior["z"].shape == (1, 1, len(basis))
        assert result.status == "ok"


def test_supports_and_options_say_what_is_wrong():
    assert "bare pm.Model" in fsklr_savb.supports(Target(pm.Model()))
    assert "the model is 'rfvm'" in fsklr_savb.supports(Target(av.problem("rfvm", arrays())))
    for model, kernel in FORMS:
        assert fsklr_savb.supports(Target(made(model, kernel))) is None
    for bad in (
        {"comparison": "literal"},
        {"prior": "shared"},
        {"score": "joint"},
        {"alpha": "mode"},
        {"feature_sweeps": 0},
        {"sample_sweeps": -1},
        {"vb_iterations": 0},
        {"vb_tolerance": 0.0},
    ):
        with pytest.raises(InputError, match=next(iter(bad))):
            Options(**bad)


def test_too_few_iterations_are_not_converged():
    result = direct(made(), vb_iterations=1)
    assert result.status == "not_converged"
    assert "raise vb_iterations" in result.reason
    assert not result.details["converged"]


# --- awkward input --------------------------------------------------------------------------------


def separable():
    x = np.linspace(-3, 3, 20)
    return np.c_[x, x**2], (x > 0).astype(int)


def duplicated():
    X, y = arrays(16, 3, seed=1)
    return np.repeat(X, 4, axis=1), y


def constant():
    X, y = arrays(16, 4, seed=2)
    X[:, 1:3] = 7.0
    return X, y


def all_constant():
    return np.ones((6, 3)), np.arange(6) % 2


def two_rows():
    return np.array([[0.0, 1.0, 2.0], [1.0, -1.0, 2.5]]), np.array([0, 1])


def check(result):
    assert result.status in ("ok", "not_converged"), result.reason
    for values in (*result.posterior.values(), *result.details.values()):
        assert np.isfinite(values).all()
    assert np.isfinite(result.sample_stats["lp"]).all()
    return result


@pytest.mark.parametrize("data", [separable, duplicated, constant, all_constant, two_rows])
@every_form
def test_degenerate_input(data, model, kernel):
    for given in ({}, {"mask_prior": "shared"}):
        problem = av.problem(model, data(), kernel=kernel, **given)
        for options in ({}, {"alpha": "mean", "score": "bound"}, {"comparison": "printed"}):
            check(direct(problem, **options))


def test_a_constant_decision_is_said():
    result = check(direct(av.problem("fsklr", all_constant())))
    assert result.attrs["features"] == 0
    assert "has no feature: its decision is constant" in result.reason


@pytest.mark.parametrize("model", ["fsklr", "fs_skr"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_saturated_probabilities(model, kernel):
    X, y = arrays(12, 3)
    for size in (1e4, 1e12):
        problem = av.problem(model, (size * X, y), standardize=False, kernel=kernel)
        check(direct(problem))
    problem = av.problem(model, (1e160 * X, y), standardize=False, kernel=kernel, delta=1.0)
    with pytest.raises(FitFailed, match="standardise X"):
        direct(problem)
    tree = av.fit(problem, "fsklr_savb", progressbar=False)
    assert tree.attrs["status"] == "failed"


@pytest.mark.parametrize(("kernel", "N"), [("linear", 40), ("rbf", 24)])
def test_one_informative_feature_among_20000(kernel, N):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, 20_000)), np.arange(N) % 2
    X[:, 1234] = 2 * y - 1 + 0.2 * rng.standard_normal(N)
    problem = av.problem("fsklr", (X, y), kernel=kernel)
    result = check(direct(problem, feature_sweeps=8))
    assert result.attrs["features"] < 60
    assert (result.details["features_kept"][1:] < 200).all()
    if kernel == "linear":
        assert result.details["selected_feature"][1234]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_memory_is_a_few_copies_of_X(kernel):
    """An (N, N, D) array is 40 copies, a (D, D) one 75."""
    X, y = arrays(40, 3000)
    problem = av.problem("fsklr", (X, y), kernel=kernel)
    assert problem.X.nbytes == problem.Z.nbytes
    direct(problem, feature_sweeps=1, sample_sweeps=1)
    tracemalloc.start()
    direct(problem, feature_sweeps=2, sample_sweeps=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * X.nbytes
