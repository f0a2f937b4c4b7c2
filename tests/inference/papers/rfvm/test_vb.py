"""Fits of RFVM's variational Bayes: what they contain, pruning, prediction, awkward input."""

import numpy as np
import pytest
from scipy import special

import ardvark as av
from ardvark.inference.methods import run
from ardvark.inference.papers.rfvm import vb as rfvm_vb
from ardvark.inference.papers.rfvm.factors import Factors
from tests.inference.papers.rfvm.dense import DENSE, arrays
from tests.support import rng, seed, z_limit

FORMS = [
    (parametrization, noise)
    for parametrization in ("hierarchical", "marginal")
    for noise in ("explicit", "integrated")
]


def small_problem(number=0, N=14, D=5, generator=rng, **given):
    X, y, _ = arrays(N, D, number, generator=generator)
    return av.problem("rfvm", (X, y.astype(int)), **given)


def run_fit(problem, **options):
    settings = {"draws": 30, "chains": 2, "random_seed": seed(5), "progressbar": False}
    return av.fit(problem, "rfvm_vb", **settings | options)


# --- the fit contract -----------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(("parametrization", "noise"), FORMS)
def test_the_mean_ratio_is_above_the_bound_in_every_form(parametrization, noise):
    """E_q[ln joint - ln q] >= ELBO: Jacobians cancel, and what is integrated out only adds."""
    problem = small_problem(parametrization=parametrization, latent_noise=noise)
    tree = run_fit(problem, draws=5000)
    ratio = (tree["sample_stats"]["lp"] - tree["sample_stats"]["log_q"]).values
    assert ratio.mean() > tree.attrs["elbo"] - z_limit() * ratio.std() / ratio.size**0.5


@pytest.mark.parametrize(("parametrization", "noise"), FORMS)
@pytest.mark.parametrize("limit", [1e8, 100.0])
def test_no_model_is_built_to_fit_or_predict(parametrization, noise, limit, monkeypatch):
    monkeypatch.setattr(run, "LARGEST_KEPT", limit)
    problem = small_problem(parametrization=parametrization, latent_noise=noise)
    tree = run_fit(problem)
    assert np.isfinite(av.predict(problem, tree, problem.data)).all()
    assert "model" not in vars(problem)
    # what is kept is what it was when the model was asked: the limit is of the form's variables
    free = {v.name for v in problem.model.unobserved_RVs}
    kept = free if limit > 1e6 else {"feature_weight", "sample_weight", "eta", "bias", "tau"}
    assert set(tree["posterior"].data_vars) == kept


def test_restarts_keep_the_best_bound():
    tree = run_fit(small_problem(), restarts=3, tolerance=1e-4)
    assert tree["fit"]["elbo_start"].sizes["start"] == 3
    assert (
        len(np.unique(tree["fit"]["elbo_start"])) == 3
    )  # each start has a random stream of its own
    assert tree.attrs["elbo"] == tree["fit"]["elbo_start"].values.max()
    assert tree["fit"]["elbo"].values[-1] == tree.attrs["elbo"]


def test_a_bound_that_is_not_finite_fails_by_name(monkeypatch):
    monkeypatch.setattr(Factors, "elbo", lambda self: np.nan)
    tree = run_fit(small_problem())
    assert tree.attrs["status"] == "failed"
    assert "ELBO is not finite" in tree.attrs["reason"]


# --- pruning and prediction -----------------------------------------------------------------------


def test_pruning_agrees_with_none_as_the_threshold_falls(monkeypatch):
    """On one fixed data set, prior and start, where the first two thresholds remove something.

    The smallest removes nothing on any data, and then changes nothing.
    """
    problem = small_problem(number=3, N=30, D=12, generator=np.random.default_rng, **DENSE)
    settings = {"restarts": 1, "tolerance": 1e-9, "random_seed": 5}

    def fitted(**options):
        tree = run_fit(problem, **settings, **options)
        assert tree.attrs["status"] == "finished", tree.attrs["reason"]
        return tree, av.predict(problem, tree, problem.data.X, rule="paper").values

    _, full = fitted()
    gaps, kept = [], []
    for part in (0.9, 0.5, 1e-9):
        monkeypatch.setattr(Factors, "shares", (part, part))
        tree, p = fitted(prune=True)
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
    monkeypatch.setattr(Factors, "shares", (0.9, 0.001))
    early = fitted(prune=True)[0]["fit"]["features_kept"].values
    assert (early[:6] == 12).all()  # PRUNE_FROM is 7


def dense_variance(state, Z, X_new):
    """Terms of Var(u) at each new input (4, M), from moments of v v' and c c', c = Z'a (D x D).

    Var(f) = Var(b) + sum_de x_d x_e (<v_d v_e> <c_d c_e> - <v_d> <v_e> <c_d> <c_e>).
    """
    v, c = state["feature_mean"], Z.T @ state["sample_mean"]
    spread = Z.T @ state["sample_factor"] @ state["sample_factor"].T @ Z  # Cov(c)
    of_v = np.diag(state["feature_variance"])
    middle = (np.outer(v, v) * spread, of_v * spread, of_v * np.outer(c, c))
    by_term = np.array([np.einsum("md,de,me->m", X_new, M, X_new) for M in middle])
    rest = state["bias_variance"] + state["tau_rate"] / state["tau_shape"]  # 1 / <tau>
    return np.vstack([by_term, np.full(len(X_new), rest)])


def test_predictive_moments_are_those_of_the_dense_formula():
    """At a q, stored as a fit stores it, in which every term of the variance is felt."""
    random, D, B = rng(0), 5, 4
    state = {
        "feature_mean": random.uniform(0.5, 1.5, D),
        "feature_variance": random.uniform(0.5, 1.5, D),
        "sample_mean": random.uniform(0.5, 1.5, B),
        "sample_factor": random.uniform(0.5, 1.5, (B, B)),
        "bias_mean": 0.3,
        "bias_variance": 2.0,
        "tau_shape": 6.0,
        "tau_rate": 9.0,
    }
    X_new, Z = random.choice([-1.0, 1.0], (3, D)), random.choice([-1.0, 1.0], (B, D))
    Z[:, 0] = 1.0  # so that (a'z_0)^2 > 4, of a variance below 10^4
    terms = dense_variance(state, Z, X_new)
    assert (terms[1:] > 1e-4 * terms.sum(axis=0)).all()
    mean, variance = rfvm_vb.predictive_moments(state, Z, X_new)
    want = 0.3 + (X_new * state["feature_mean"]) @ Z.T @ state["sample_mean"]
    np.testing.assert_allclose(mean, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance, terms.sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("v_factor", ["truncated", "folded"])
def test_the_papers_prediction_of_a_fit(v_factor):
    problem = small_problem(number=6, basis=[0, 3, 4, 8])
    tree = run_fit(problem, v_factor=v_factor, draws=2, restarts=1)
    X_new = rng(0).standard_normal((3, 5))
    state = {str(k): x.values for k, x in tree["fit"].data_vars.items()}
    mean, variance = rfvm_vb.predictive_moments(state, problem.Z, X_new)
    np.testing.assert_allclose(
        variance, dense_variance(state, problem.Z, X_new).sum(axis=0), rtol=1e-10
    )
    want = special.expit(mean / np.sqrt(1 + np.pi * variance / 8))
    rows = X_new * problem.scale + problem.center
    got = av.predict(problem, tree, rows, rule="paper")[0, 0]
    np.testing.assert_allclose(got, want, rtol=1e-10)
