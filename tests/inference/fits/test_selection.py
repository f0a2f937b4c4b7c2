"""Selection by the posterior: P(effect), how many, n90, and what is said of it."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference import read, save
from ardvark.inference import selection_text as words
from ardvark.inference.comparison.table import compare
from ardvark.inference.fits import activity, selection
from ardvark.inference.fits.diagnostics import inclusion
from ardvark.inference.fits.selection import summary
from ardvark.inference.target.backend import Result
from tests.inference.comparison.quick import Prior, registered
from tests.inference.fits.weights import (
    IDS,
    KERNELS,
    eta_without,
    prior_draws,
    selected,
    tree_of,
)
from tests.support import rng


@pytest.mark.parametrize(("name", "settings"), KERNELS, ids=IDS)
def test_active_is_what_moves_eta_when_taken_out(name, settings, small_data):
    """Every model and kernel: brute force through its own decision function."""
    problem = av.problem(name, small_data(N=12, D=4), **settings)
    arrays = prior_draws(problem)
    eta = problem.decision(arrays)

    def effect(other):
        change = np.std(eta - other, axis=-1)  # (chain, draw)
        return np.where(change < 1e-14, 0.0, change)  # rounding, where all rows change alike

    features = np.stack([effect(eta_without(problem, arrays, k)) for k in range(4)], axis=-1)
    threshold = float(np.quantile(features[features > 0], 0.4)) * (1 + 1e-6)
    found = av.select(problem, tree_of(problem, **arrays), threshold)
    active = features > threshold
    assert 0 < active.mean() < 1
    np.testing.assert_array_equal(found["p_active_feature"], active.mean((0, 1)))
    known = inclusion(xr.DataArray(active, dims=("chain", "draw", "k")))["mcse"]
    np.testing.assert_allclose(found["mcse_feature"], known)
    np.testing.assert_array_equal(found["active_features"], active.sum(-1))
    np.testing.assert_array_equal(found["n90_features"], activity.carriers(features))
    assert found.attrs["threshold"] == threshold
    if "sample_weight" not in problem.spec.shared:
        assert "p_active_sample" not in found
        return
    out = []
    for j in range(12):
        at_zero = arrays["sample_weight"].copy()
        at_zero[..., j] = 0.0
        out.append(effect(problem.decision({**arrays, "sample_weight": at_zero})))
    active = np.stack(out, axis=-1) > threshold
    np.testing.assert_array_equal(found["p_active_sample"], active.mean((0, 1)))
    np.testing.assert_array_equal(found["active_samples"], active.sum(-1))
    np.testing.assert_array_equal(found["n90_samples"], activity.carriers(np.stack(out, -1)))


def test_how_many_carry_the_effect():
    """Squares 9 and 1: one of them is 90 %. Ten equal ones: nine. None at all: none."""
    effects = np.zeros((5, 10))
    effects[0, [3, 7]] = 1.0, 3.0
    effects[1] = 0.1
    effects[2, [0, 1]] = 1.0, 2.999  # 0.8999 of the sum
    effects[4, :4] = [4.0, 3.0, 2.0, 1.0]  # 16, 25, 29 of 30
    assert activity.carriers(effects).tolist() == [1, 9, 2, 0, 3]


def two_features(small_data, on):
    """RFVM with w = v * (Z'a) = v: a primal weight of 1 where `on`, 0.25 elsewhere."""
    data = small_data(N=12, D=on.shape[-1])
    problem = av.problem("rfvm", data)
    a = np.linalg.lstsq(problem.Z.T, np.ones(data.D), rcond=None)[0]
    v = np.where(on, 1.0, 0.25)
    return problem, {"feature_weight": v, "sample_weight": np.tile(a, (*on.shape[:2], 1))}


def test_the_threshold_is_half_a_logit_a_standard_deviation(small_data):
    problem, arrays = two_features(small_data, np.ones((1, 3, 2), dtype=bool))
    arrays["feature_weight"][0] = [[0.4999, 0.5001], [1.0, 0.0], [0.0, 0.0]]
    found = av.select(problem, tree_of(problem, **arrays))
    np.testing.assert_allclose(found["p_active_feature"], [1 / 3, 1 / 3])
    assert found["active_features"].values.tolist() == [[1, 1, 0]]
    assert found["n90_features"].values.tolist() == [[2, 1, 0]]
    told = {"threshold": 0.5, "thin_features": 1, "thin_samples": 1}
    assert {name: found.attrs[name] for name in told} == told


@pytest.mark.parametrize(
    ("model", "settings"), [("rfvm", {}), ("pfcvm", {"kernel": "rbf"}), ("sparse_probit", {})]
)
def test_the_curve_is_the_share_of_draws_above_each_size(model, settings, small_data):
    """Counted by asking for each size; it falls with the size, as the prior's does."""
    problem = av.problem(model, small_data(N=12, D=4), **settings)
    tree = tree_of(problem, **prior_draws(problem, draws=40))
    found = av.select(problem, tree)
    assert found["t"].values.tolist() == list(activity.SIZES)
    each = {t: av.select(problem, tree, threshold=t) for t in activity.SIZES}
    for what in ("feature", "sample") if problem.spec.has_basis else ("feature",):
        curve, prior = found[f"curve_{what}"], found[f"prior_curve_{what}"]
        assert 0.0 < float(curve.mean()) < 1.0
        assert (curve.diff("t") <= 0.0).all()
        assert (prior.diff("t") <= 0.0).all()
        for t, at in each.items():
            np.testing.assert_allclose(curve.sel(t=t), at[f"p_active_{what}"], rtol=1e-12)
            np.testing.assert_allclose(prior.sel(t=t), at[f"prior_{what}"], rtol=1e-12)
        visible = selection.summary(found, what)["visible"]
        assert visible == pytest.approx(float(each[0.1][f"active_{what}s"].mean()))


def test_a_fit_can_be_asked_about_another_size(small_data):
    problem, arrays = two_features(small_data, rng(4).random((2, 40, 3)) < 0.5)
    tree = selected(problem, **arrays)
    assert selection.select_at(problem, tree, 0.5) is tree
    other = selection.select_at(problem, tree, 0.2)
    assert other["selection"].to_dataset().identical(av.select(problem, tree, 0.2))
    assert (other["selection"]["p_active_feature"] == 1.0).all()
    assert other["posterior"].identical(tree["posterior"])
    assert tree["selection"].attrs["threshold"] == 0.5  # it is left as it was
    bare = tree_of(problem, **arrays)
    assert selection.select_at(problem, bare, 0.2) is bare  # nothing was selected


def test_an_indicator_that_never_changes_has_no_error(small_data):
    on = np.zeros((2, 50, 3), dtype=bool)
    on[..., 0] = True
    on[0, 7, 2] = True
    problem, arrays = two_features(small_data, on)
    found = av.select(problem, tree_of(problem, **arrays))
    assert found["p_active_feature"].values.tolist() == [1.0, 0.0, 0.01]
    assert np.isnan(found["mcse_feature"].values).tolist() == [True, True, False]


@pytest.mark.parametrize("kernel", ["linear", "rbf", "polynomial"])
def test_a_constant_feature_has_no_effect(kernel):
    """Not standardised, or centres that are no rows: eta moves with the others alone."""
    X = rng(1).normal(size=(10, 3))
    X[:, 1] = 4.0
    y = np.arange(10) % 2
    for settings in ({"standardize": False}, {"basis": X + 1.0}):
        problem = av.problem("jcfo", (X, y), kernel=kernel, degree=2, **settings)
        v, a = np.full((1, 2, 3), 0.2), np.ones((1, 2, 10))
        arrays = {"feature_weight": v, "sample_weight": a, "bias": np.zeros((1, 2))}
        eta = problem.decision(arrays)
        moved = [np.std(eta - eta_without(problem, arrays, k)) for k in range(3)]
        assert moved[1] < 1e-12
        active = [moved[0] > 0.1, False, moved[2] > 0.1]
        found = av.select(problem, tree_of(problem, **arrays), threshold=0.1)
        assert found["p_active_feature"].values.tolist() == active
        assert (found["active_features"] == sum(active)).all()
        n90 = activity.carriers(np.array([moved[0], 0.0, moved[2]]))
        assert (found["n90_features"] == n90).all()


def test_expensive_draws_are_thinned_evenly(small_data, monkeypatch):
    problem = av.problem("pfcvm", small_data(N=12, D=3), kernel="rbf")
    arrays = prior_draws(problem, chains=2, draws=30)
    whole = tree_of(problem, **arrays)
    monkeypatch.setattr(activity, "FEWEST", 4)
    full = av.select(problem, whole)
    some = av.select(problem, tree_of(problem, **{k: v[:, ::4] for k, v in arrays.items()}))
    assert full.attrs["thin_features"] == full.attrs["thin_samples"] == 1
    cost = 12.0 * 12 * 12 * 3  # terms times an exponential's worth
    monkeypatch.setattr(activity, "FEATURE_BUDGET", cost * 60 / 4)
    monkeypatch.setattr(activity, "SAMPLE_BUDGET", 1e-9)
    thin = av.select(problem, whole)
    assert thin.attrs["thin_features"] == 4
    assert thin.attrs["thin_samples"] == 15  # never below the fewest
    looked = np.tile(np.arange(30) % 4 == 0, (2, 1))
    for name in ("active_features", "n90_features", "share_features"):
        expected = np.where(looked, full[name].values, np.nan)
        np.testing.assert_array_equal(thin[name].values, expected)
    np.testing.assert_array_equal(thin["p_active_feature"], some["p_active_feature"])
    for name in ("effect_feature", "effect_sd_feature", "effect_at_feature", "size_feature"):
        np.testing.assert_allclose(thin[name], some[name], rtol=1e-12)
    assert int((~np.isnan(thin["active_samples"])).sum()) == 4
    numbers = selection.summary(thin, "feature")
    assert numbers["active"] == full["active_features"].values[looked].mean()


# --- in a fit -------------------------------------------------------------------------------------


def test_a_fit_keeps_it(problem, tmp_path, monkeypatch):
    registered(monkeypatch, Prior)
    settings = {"draws": 10, "chains": 2, "random_seed": 1, "progressbar": False}
    tree = av.fit(problem, "prior", **settings)
    found = tree["selection"].to_dataset()
    assert found.identical(av.select(problem, tree))
    assert found["p_active_feature"]["feature"].values.tolist() == list(problem.data.feature_names)
    assert found["active_samples"].dims == ("chain", "draw")
    without = av.fit(problem, "prior", selection=False, **settings)
    assert "selection" not in without.children
    np.testing.assert_array_equal(without["posterior"]["eta"], tree["posterior"]["eta"])
    shared = av.fit(problem, "prior", keep="shared", **settings)
    assert shared["selection"].to_dataset().identical(found)
    save(tree, tmp_path / "fit.nc")
    assert read(tmp_path / "fit.nc")["selection"].identical(tree["selection"])


def test_what_has_no_weights_has_no_selection(problem, monkeypatch):
    class Zero(Prior):
        NAME = "zero"

        @staticmethod
        def fit(target, options, job):
            return Result({"x": np.zeros((job.chains, job.draws, 3))})

    registered(monkeypatch, Prior, Zero)
    with pm.Model() as bare:
        pm.Normal("x", shape=3)
    quiet = {"draws": 10, "chains": 1, "random_seed": 1, "progressbar": False}
    assert "selection" not in av.fit(bare, "zero", **quiet).children
    failed = av.fit(problem, "prior", fail_without="nobody", **quiet)
    assert failed.attrs["status"] == "failed"
    assert "selection" not in failed.children
    assert words(failed) == ""


def test_the_table_counts_what_is_active(small_data):
    """Four draws of three features worked out by hand, beside what the prior expects."""
    on = np.array([[[1, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0]]], dtype=bool)
    problem, arrays = two_features(small_data, on)
    arrays["feature_weight"][~on] = 0.0
    arrays["sample_weight"][:, 3] = 0.0
    tree = selected(problem, **arrays)
    row = compare({"a": tree}).table.loc["a"]
    assert row["active_features"] == 1.0
    assert row["prior_features"] == tree["selection"].attrs["prior_features"]
    numbers = summary(tree["selection"].to_dataset(), "feature")
    assert (numbers["low"], numbers["high"], numbers["n90"]) == (0.0, 2.0, 1)
    assert numbers["selected"] == 1  # 0.75; 0.25 and 0 are not
