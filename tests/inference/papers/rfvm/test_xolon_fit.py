"""Fits of XOLON: the choice of its penalty, what a fit contains, degenerate input."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from scipy import special

import ardvark as av
from ardvark.common.progress import Reporter
from ardvark.common.validate import InputError
from ardvark.inference.fits.datatree import pointwise
from ardvark.inference.papers.rfvm import xolon
from ardvark.inference.papers.rfvm.xolon import Objective, Options, folds_of, iterate, solve
from ardvark.inference.target.backend import FitFailed
from tests.inference.papers.rfvm.dense import DENSE
from tests.inference.papers.rfvm.xolon_problems import arrays, direct, made
from tests.support import rng, seed

# --- the choice of c ------------------------------------------------------------------------------


def test_the_problems_own_penalties_are_its_prior_scales():
    problem = made(*arrays(20, 5), **DENSE)
    c1, c2 = xolon.prior_rates(problem)
    assert c1 == pytest.approx(1.0)
    assert c2 == pytest.approx(max(5.0, 100.0**0.5))
    result = direct(problem, select="problem", starts=1)
    assert (result.attrs["c1"], result.attrs["c2"]) == (c1, c2)
    assert "cv_score" not in result.details
    # with both given there is nothing to select
    assert "cv_score" not in direct(problem, c1=1.0, c2=2.0, starts=1).details


def test_cross_validation_scores():
    random = rng(9)
    X = 3.0 + 2.0 * random.standard_normal((31, 4))
    y = (X[:, 0] - 3.0 + random.standard_normal(31) > 0).astype(int)
    problem = made(X, y)
    options = Options(grid=(0.1, 1.0, 40.0), starts=2)
    silent = Reporter(enabled=False)
    tried, scores = xolon.cross_validate(problem, options, rng(3), silent)
    assert tried.tolist() == [40.0, 1.0, 0.1]
    # by a loop: folds as drawn, features standardised on each training part
    again = rng(3)
    fold, starts = folds_of(y, 3, again), again.integers(2**63)
    want = np.zeros((3, 31))
    for k in range(3):
        train = fold != k
        mean, sd = X[train].mean(axis=0), X[train].std(axis=0)
        A, T = (X[train] - mean) / sd, (X[~train] - mean) / sd
        for i, c in enumerate(tried):
            objective = Objective(A, y[train].astype(float), A, c)
            best, _ = solve(objective, options, np.random.default_rng(starts))
            a, v, b = objective.split(best.p)
            eta = b + (T * v) @ A.T @ a
            want[i, ~train] = special.log_expit((2 * y[~train] - 1) * eta)
    np.testing.assert_allclose(scores, want.mean(axis=1), rtol=1e-5)
    # 40 is past the origin: the training part's class sizes alone
    sizes = [y[fold != k].mean() for k in fold]
    constant = np.log(np.where(y == 1, sizes, 1 - np.array(sizes))).mean()
    assert scores[0] == pytest.approx(constant, rel=1e-6)
    chosen = direct(problem, grid=(0.1, 1.0, 40.0), starts=2)
    best = chosen.details["cv_c"][chosen.details["cv_score"].argmax()]
    assert chosen.attrs["c1"] * chosen.attrs["c2"] == pytest.approx(best**2)
    ratio = np.divide(*xolon.prior_rates(problem))
    assert chosen.attrs["c1"] / chosen.attrs["c2"] == pytest.approx(ratio)
    for given in ({"c1": 0.3}, {"c2": 0.3}):
        half = direct(problem, grid=(0.1, 1.0, 40.0), starts=2, **given)
        assert half.attrs[next(iter(given))] == 0.3
        assert half.attrs["c1"] * half.attrs["c2"] == pytest.approx(best**2)


def test_folds_hold_both_classes():
    y = np.array([0] * 11 + [1] * 5)
    fold = folds_of(y, 3, rng(0))
    for k in range(3):
        assert 3 <= (y[fold == k] == 0).sum() <= 4
        assert 1 <= (y[fold == k] == 1).sum() <= 2
    assert folds_of(np.array([0, 0, 0, 1, 1]), 3, rng(0)).max() == 1
    with pytest.raises(FitFailed, match="needs 2 samples of each class; give c1 and c2"):
        folds_of(np.array([0, 0, 0, 1]), 3, rng(0))


# --- degenerate input -----------------------------------------------------------------------------


def check(result):
    assert result.status in ("finished", "not_converged"), result.reason
    for name, values in result.posterior.items():
        assert np.isfinite(values).all(), name
    trace = result.details["objective"]
    assert np.diff(trace).max(initial=0.0) <= 1e-12 * np.abs(trace).max()
    return result


@pytest.mark.parametrize("c", [1e-4, 0.5])
def test_separable_data(c):
    X, y = arrays(20, 40, noise=0.0)
    result = check(direct(made(X, y), c1=c, c2=c, starts=3))
    assert result.status == "finished"
    assert ((result.posterior["eta"][0, 0] > 0) == (y == 1)).all()


def test_constant_columns_get_no_weight():
    X, y = arrays(20, 5)
    X[:, 2:4] = 7.0
    result = check(direct(made(X, y), c1=0.5, c2=0.5, starts=3))
    assert result.status == "finished"
    assert (result.details["feature_weight"][2:4] == 0.0).all()
    # nothing but constants: the origin
    nothing = check(direct(made(np.ones((20, 3)), y), c1=0.5, c2=0.5, starts=2))
    assert "origin" in nothing.reason


def test_a_duplicate_column_changes_nothing_but_where_the_weight_lies():
    X, y = arrays(20, 3)
    once = check(direct(made(X, y), c1=0.5, c2=0.5, starts=6))
    twice = check(direct(made(np.repeat(X, 2, axis=1), y), c1=0.5, c2=0.5, starts=6))
    # Z'a holds every duplicate once: the same eta, the same penalty, their weights added
    assert twice.attrs["objective"] == pytest.approx(once.attrs["objective"], abs=1e-6)
    both = twice.details["feature_weight"].reshape(3, 2).sum(axis=1)
    np.testing.assert_allclose(both, once.details["feature_weight"], atol=1e-4)


def test_two_samples():
    X, y = np.array([[0.0, 1.0, 2.0], [1.0, -1.0, 2.5]]), np.array([0, 1])
    result = check(direct(made(X, y), c1=0.05, c2=0.05, starts=3))
    assert result.status == "finished"
    assert np.diff(result.posterior["eta"][0, 0])[0] > 0
    failed = av.fit(made(X, y), "xolon", random_seed=seed(1), progressbar=False)
    assert failed.attrs["status"] == "failed"
    assert "needs 2 samples of each class" in failed.attrs["reason"]


def test_numbers_far_from_one():
    X, y = arrays(12, 3)
    for scale in (1e-6, 1e6):
        check(direct(made(scale * X, y, standardize=False), c1=0.1, c2=0.1, starts=2))


def test_one_informative_feature_among_3000():
    random = rng(0)
    X = random.standard_normal((40, 3000))
    y = (X[:, 1234] > 0).astype(float)
    X[:, 1234] = 2 * y - 1 + 0.1 * random.standard_normal(40)
    problem = made(X, y)
    result = check(direct(problem, c1=3.0, c2=3.0, starts=2))
    assert result.status == "finished"
    assert result.details["feature_weight"].argmax() == 1234
    assert result.attrs["features"] < 20


def test_memory_is_far_below_a_square_of_the_features():
    X, y = arrays(40, 3000)
    objective = Objective(X, y, X, 3.0)
    start = objective.start(1, rng(0))
    tracemalloc.start()
    iterate(objective, start, Options(max_iterations=30))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * X.nbytes  # a (D, D) array is 75 copies; L-BFGS-B keeps 2 x 20 gradients


# --- the fit as a DataTree ------------------------------------------------------------------------


@pytest.mark.parametrize("latent_noise", ["explicit", "integrated", "none"])
def test_the_decision_is_without_noise_in_every_form(latent_noise):
    X, y = arrays(24, 5, number=1)
    problem = made(X, y, latent_noise=latent_noise)
    settings = {"random_seed": seed(2), "progressbar": False, "starts": 6}
    tree = av.fit(problem, "xolon", c1=0.1, c2=0.1, **settings)
    assert tree.attrs["status"] == "finished"
    posterior = tree["posterior"]
    assert dict(posterior.sizes) == {"chain": 1, "draw": 1, "feature": 5, "basis": 24, "obs": 24}
    assert ("tau" in posterior) == (latent_noise != "none")
    assert "u" not in posterior
    eta = posterior["eta"].values[0, 0]
    want = -np.logaddexp(0, -(2 * y - 1) * eta)
    np.testing.assert_allclose(pointwise(tree)["y"].values[0, 0], want, rtol=1e-10, atol=1e-12)
    new = X[:6] + 0.3
    p = special.expit(
        posterior["bias"].values[0, 0]
        + (problem.standardized(new) * posterior["feature_weight"].values[0, 0])
        @ problem.Z.T @ posterior["sample_weight"].values[0, 0]
    )  # fmt: skip
    for rule in ("draws", "paper"):
        np.testing.assert_allclose(av.predict(problem, tree, new, rule)[0, 0], p, rtol=1e-10)
    fit = tree["fit"]
    assert fit["selected_feature"].values.tolist() == (fit["feature_weight"].values > 0).tolist()
    assert fit["selected_sample"].values.tolist() == (fit["sample_weight"].values != 0).tolist()
    assert fit["kkt_feature"].dims == ("feature",)
    assert np.isnan(tree["sample_stats"]["lp"]).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"c1": 0.0}, "c1 must be a finite number above 0"),
        ({"c2": np.inf}, "c2 must be a finite number above 0"),
        ({"select": "accuracy"}, "select must be one of 'cv', 'problem'"),
        ({"grid": (1.0, -1.0)}, "each value of grid must be"),
        ({"folds": 1}, "folds must be an integer of at least 2"),
        ({"starts": 0}, "starts must be"),
    ],
)
def test_options_out_of_range(given, message):
    with pytest.raises(InputError, match=message):
        Options(**given)
    assert dataclasses.is_dataclass(Options())
