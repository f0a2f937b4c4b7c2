"""Fits of `pfcvm_lp` and `pfcvm_em`: draws, prediction, what they contain, awkward input."""

import numpy as np
import pytest
from scipy import special, stats

import ardvark as av
from ardvark.inference.papers.pfcvm import curvature as pfcvm_curvature
from ardvark.inference.papers.pfcvm import em as pfcvm_em
from ardvark.inference.papers.pfcvm import engine as pfcvm_engine
from ardvark.inference.papers.pfcvm import lp as pfcvm_lp
from ardvark.inference.papers.pfcvm.engine import Engine
from tests.inference.papers.pfcvm.dense import EM, details_of, fit, make
from tests.inference.papers.whitened import check_standard_normal
from tests.support import ALARM, rng

# --- draws and prediction -------------------------------------------------------------------------


def pooled(tree, name):
    x = tree["posterior"][name].values
    return x.reshape(-1, *x.shape[2:])


@pytest.mark.statistical
def test_componentwise_draws_are_truncated_normals():
    tree = fit(make(N=16, D=6), draws=5000, max_iterations=8, feature_threshold=30.0)
    d, p_values = details_of(tree), []
    for name, prefix in (("w", "sample"), ("feature_weight", "feature")):
        kept, x = d[f"selected_{prefix}"], pooled(tree, name)
        m, s = d[f"{prefix}_mode"][kept], d[f"{prefix}_sd"][kept]
        assert (x[:, ~kept] == 0.0).all()
        u = stats.truncnorm(-m / s, np.inf, loc=m, scale=s).cdf(x[:, kept])
        p_values += [stats.kstest(column, "uniform").pvalue for column in u.T]
    white = (pooled(tree, "bias") - d["bias_mode"]) / d["bias_sd"]
    p_values.append(stats.kstest(white, "norm").pvalue)
    assert min(p_values) > ALARM / len(p_values)
    signs = tree["constant_data"]["basis_labels"].values
    np.testing.assert_array_equal(pooled(tree, "sample_weight"), pooled(tree, "w") * signs)


@pytest.mark.statistical
def test_joint_draws_have_the_covariance_of_q():
    """The RVM's weights; what q(theta) is made of is that of its sd."""
    tree = fit(make("rvm", N=10, D=20), draws=10_000, hyperprior="model")
    d = details_of(tree)
    x = np.c_[pooled(tree, "bias"), pooled(tree, "sample_weight")]
    Sigma = d["sample_factor"] @ d["sample_factor"].T
    sd = np.diag(Sigma) ** 0.5
    np.testing.assert_allclose(sd, np.r_[d["bias_sd"], d["sample_sd"]], rtol=1e-8)
    u = np.r_[d["bias_mode"], d["sample_mode"]]
    check_standard_normal(np.linalg.solve(d["sample_factor"], (x - u).T).T)
    d = details_of(fit(make(N=10, D=20), hyperprior="model"))
    R, V = d["feature_root"], d["feature_diagonal"]
    Sigma = np.linalg.inv(np.diag(V) + R.T @ R)
    np.testing.assert_allclose(np.diag(Sigma) ** 0.5, d["feature_sd"], rtol=1e-8)


@pytest.mark.parametrize(
    ("model", "kernel", "degree"),
    [("pfcvm", "rbf", 1), ("pcvm", "linear", 1), ("rvm", "polynomial", 3)],
)
def test_the_papers_prediction_of_a_fit(model, kernel, degree, monkeypatch):
    """Moments by dense matrices; the probability against the integral of sigmoid(eta).

    (1 + pi v / 8)^-1/2 is wrong by at most 0.0177 in probability, whatever mean and variance: the
    logistic function against the normal one, at variances without end.
    """
    problem = make(model, N=16, D=4, kernel=kernel, degree=degree)
    monkeypatch.setattr(pfcvm_engine, "RVM_THRESHOLD", 50.0)
    tree = fit(problem, feature_threshold=50.0)
    d = details_of(tree)
    X_new = rng(1).standard_normal((3, 4))
    signs = 1.0 if problem.basis_labels is None else problem.basis_labels
    K = problem.kernel.gram(X_new, problem.Z, d["feature_mode"])
    phi = np.c_[np.ones(3), K * signs]
    mean, variance = pfcvm_engine.predictive_moments(problem, d, X_new)
    want = phi @ np.r_[d["bias_mode"], d["sample_mode"]]
    np.testing.assert_allclose(mean, want, rtol=1e-9, atol=1e-12)
    Sigma = d["sample_factor"] @ d["sample_factor"].T
    np.testing.assert_allclose(variance, np.diag(phi @ Sigma @ phi.T), rtol=1e-9, atol=1e-12)
    got = pfcvm_lp.predict_paper(problem, d, X_new)
    t = np.linspace(-9, 9, 2001)
    eta = mean[:, None] + variance[:, None] ** 0.5 * t
    exact = (special.expit(eta) * stats.norm.pdf(t)).sum(axis=1) * (t[1] - t[0])
    np.testing.assert_allclose(got, exact, atol=0.018)
    rows = X_new * problem.scale + problem.center
    np.testing.assert_allclose(av.predict(problem, tree, rows, rule="paper")[0, 0], got, rtol=1e-9)


# --- pfcvm_em ---


def test_the_pruned_terms_stay_in_the_trace():
    problem = make(N=60, D=6, kernel="rbf", noise=0.3, number=4)
    run = pfcvm_em.iterate(Engine.start(problem, EM(), False), EM())
    path, kept = np.array(run.objective), np.array(run.features) + np.array(run.samples)
    assert kept[-1] < kept[0]
    first = Engine.start(problem, EM(), False)
    first.climb(pfcvm_engine.ROUNDS, 1e-10)
    assert path[0] == pytest.approx(pfcvm_em.log_posterior(first))
    # A weight is pruned at a precision of 1e8, at 1e-4: eta_i moves by about that, and so does the
    # log-likelihood of each of 60 rows; twice, for a feature and a sample.
    assert np.diff(path).min() > -2 * 60 * 1e-4


# --- the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
def test_lp_and_log_q_only_where_q_covers_the_posterior(model, monkeypatch):
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
    monkeypatch.setattr(pfcvm_engine, "RVM_THRESHOLD", threshold)
    pruned = fit(problem, feature_threshold=threshold, **settings)
    assert 0 < pruned["fit"]["selected_sample"].values.sum() < 12
    assert not pruned["sample_stats"].data_vars


# --- collapse and awkward input -------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pfcvm_lp", "pfcvm_em"])
@pytest.mark.parametrize("model", ["pfcvm", "rvm"])
def test_a_collapse_is_said(method, model, monkeypatch):
    monkeypatch.setattr(pfcvm_engine, "RVM_THRESHOLD", 1e-3)
    tree = fit(make(model), method, feature_threshold=1e-3)
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


def test_a_failing_factorisation_has_a_reason(monkeypatch):
    def fail(*_, **__):
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr(pfcvm_curvature.linalg, "cholesky", fail)
    for method in ("pfcvm_lp", "pfcvm_em"):
        tree = fit(make(), method)
        assert tree.attrs["status"] == "failed"
        assert "iteration 1 failed" in tree.attrs["reason"]
