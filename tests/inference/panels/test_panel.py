"""The panel: folds that see nothing of their own rows, sizes, coefficients, files, and words."""

import csv
import dataclasses
import json
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.base import clone

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.methods import registry
from ardvark.inference.panels import evaluation
from ardvark.inference.panels import panel as module
from ardvark.inference.panels.evaluation import Predictions, Scores, kept, partition, scored
from ardvark.inference.panels.panel import often, suggested, tabulated
from ardvark.inference.panels.projection import design
from ardvark.inference.target.sampling import Sampling
from tests.inference.comparison.quick import Prior, registered
from tests.inference.panels.ridge import SMALL, Ridge, fitted, table
from tests.support import rng, seed


@pytest.fixture(autouse=True)
def ridge(monkeypatch):
    registered(monkeypatch, Ridge, Prior)
    monkeypatch.setattr(Ridge, "fitted", ())


@cache
def made():
    problem, fit = fitted(*table())
    return problem, fit, av.panel(problem, fit, progressbar=False)


@pytest.fixture
def small():
    """A problem, its fit and its panel, which no test may change."""
    return made()


def test_projected_draws_are_evenly_spaced_over_all_chains(small, monkeypatch):
    problem, fit, _ = small
    monkeypatch.setattr(evaluation, "DRAWS", 8)
    p = special.expit(fit["posterior"]["eta"].values.reshape(-1, problem.data.N))
    assert len(p) == 120
    np.testing.assert_allclose(Predictions.of(problem, fit).p, p[::17])


# --- folds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "asked"), [({}, (400.0, 32768)), ({"ess": 150.0, "limit": 512}, (150.0, 512))]
)
def test_a_refit_by_exact_asks_for_what_predictions_need(small, given, asked):
    """Else a panel takes as long as five fits of which everything may be quoted."""
    problem, fit, _ = small
    plan = registry.prepare("exact", problem, given, Sampling(draws=60, chains=2, seed=1))
    exact = fit.copy()
    exact.attrs = {**fit.attrs, "method": "exact", "options": json.dumps(vars(plan.options))}
    options = module._plan(problem, exact, None, False).options
    assert (options.ess, options.limit) == asked


def test_a_refit_draws_as_the_fit_did(small):
    problem, fit, _ = small
    other = fit.copy()
    other.attrs = {**fit.attrs, "draws": 70, "chains": 3, "seed": 11}
    for given, own in ((None, 11), (12, 12)):
        found = module._plan(problem, other, given, False).sampling
        assert found == Sampling(draws=70, chains=3, seed=own, keep="shared")


@pytest.mark.parametrize("groups", [None, [str(k // 2) for k in range(37)]])
def test_each_fold_has_its_share_of_both_classes(groups):
    """As near to it as groups of two rows allow, which are in one fold."""
    y = np.array([0] * 23 + [1] * 14)
    fold = partition(y, 5, seed(), groups)
    for label in (0, 1):
        assert np.ptp(np.bincount(fold[y == label], minlength=5)) <= (1 if groups is None else 2)
    assert groups is None or (fold[:-1:2] == fold[1::2]).all()
    assert (fold == partition(y, 5, seed(), groups)).all()
    assert (fold != partition(y, 5, seed(1), groups)).any()


def test_no_fold_sees_its_own_rows(monkeypatch):
    """Other values in the rows of a fold change neither its refit, nor its search, nor its scale.

    The labels stay, because they decide which rows are in the fold.
    """
    frame, y = table(1)
    fold = partition((y == "well").astype(int), 5, 7)
    other = frame.copy()
    other.iloc[fold == 2] = -5.0 * other.iloc[fold == 2] + 100.0
    seen = []

    def recorded(problem, tree, rows, path, sizes, predictions):
        clusters = tree["panel"]["cluster"].values
        train = set(problem.data.sample_names)
        assert not train & set(rows.sample_names)
        assert len(train) + rows.N == 90
        seen[-1].append((problem.fingerprint, tuple(path), clusters, predictions.p))
        return scored(problem, tree, rows, path, sizes, predictions)

    monkeypatch.setattr(module, "scored", recorded)
    for data in (frame, other):
        problem, fit = fitted(data, y)
        seen.append([])
        found = av.panel(problem, fit, random_seed=7, progressbar=False)
        assert found.table.attrs["rows"] == 90
    for k, (a, b) in enumerate(zip(*seen, strict=True)):
        same = [np.array_equal(first, second) for first, second in zip(a, b, strict=True)]
        assert all(same) if k == 2 else not (same[0] or same[2] or same[3])


# --- sizes ----------------------------------------------------------------------------------------


def test_differences_and_errors_by_hand():
    """Four rows in two folds: means, and standard deviations over rows of paired differences."""
    y = np.array([0, 1])
    a = Scores(np.array([-1.0, -2.0]), np.array([[-3.0, -1.0], [-2.0, -1.0]]), -np.ones((2, 2)), y)
    b = Scores(np.array([-1.0, 0.0]), np.array([[-1.0, -1.0], [-2.0, -2.0]]), -np.ones((2, 2)), y)
    found = tabulated([a, b], [0, 3])
    assert found.attrs == {"full": -1.0, "rows": 4}
    assert found["log_score"].tolist() == [-2.0, -1.25]
    assert found["difference"].tolist() == [-1.0, -0.25]
    np.testing.assert_allclose(
        found["se"], [np.std(d, ddof=1) / 2 for d in ([2, 0, 0, 2], [0, -1, 0, 2])]
    )
    assert found["to_best"].equals(found["difference"].rename("to_best"))
    assert found["formula"].tolist() == [-1.0, -1.0]
    # the second size is now better than the full posterior, and is what the first is compared with
    worse = tabulated([Scores(s.full - 1.0, s.draws, s.formula, y) for s in (a, b)], [0, 3])
    np.testing.assert_allclose(worse["to_best"], [-0.75, 0.0])
    np.testing.assert_allclose(worse["to_best_se"], [np.std([2, 1, 0, 0], ddof=1) / 2, 0.0])


@pytest.mark.parametrize(
    ("below", "error", "size"),
    [
        ([-0.5, -0.2, -0.1, 0.0], [0.1, 0.19, 0.1, 0.1], 2),
        ([-0.5, -0.2, -0.1, 0.0], [0.6, 0.1, 0.1, 0.1], 0),
        ([-0.5, -0.2, -0.1, -0.2], [0.1, 0.1, 0.05, 0.1], None),
    ],
)
def test_the_smallest_size_within_one_standard_error_is_suggested(below, error, size):
    frame = pd.DataFrame({"to_best": below, "to_best_se": error}, index=[0, 1, 2, 3])
    assert suggested(frame) == size


def test_shares_of_folds_by_hand():
    found = often([[2, 0, 1], [2, 1, 0]], [0, 1, 2], ["a", "b", "c", "d"])
    assert found.to_numpy().tolist() == [[0.0, 1.0, 1.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.5]]
    assert list(found.index) == ["c", "a", "b"]
    assert found.index.name == "feature"
    tenths = often([[0]] * 3 + [[1]] * 2, [1], ["a", "b"])
    assert tenths[1].tolist() == [0.6, 0.4]  # not 0.6000000000000001


def test_all_features_predict_as_a_linear_posterior_does(small):
    """Projected onto its own features the posterior is itself: only the ridge remains."""
    _, _, panel = small
    assert panel.table.index.tolist() == list(range(7))
    assert abs(panel.table.loc[6, "difference"]) < 1e-3
    assert panel.table.loc[0, "difference"] < -0.1  # without features it is the share of classes
    assert set(panel.at(2).names) == {"x1", "x2"}
    assert panel.chosen.loc["x1", 2] == panel.chosen.loc["x2", 2] == 1.0
    np.testing.assert_allclose(panel.chosen.sum(), np.arange(7))


def test_some_sizes_are_those_of_all(small):
    problem, fit, panel = small
    some = av.panel(problem, fit, sizes=[4, 2, 2], progressbar=False)
    pd.testing.assert_frame_equal(
        some.table.drop(columns=["to_best", "to_best_se"]),
        panel.table.loc[[2, 4]].drop(columns=["to_best", "to_best_se"]),
    )
    assert some.path == panel.path[:4]


def test_refits_are_kept_and_used_again_and_their_time_is_told(small, tmp_path, capsys):
    """All of five, then two that are gone, then none."""
    problem, fit, panel = small
    for made, sizes, told in (
        (5, None, ["panel: 1 fit is done. The other 4"]),
        (2, 3, ["panel: 4 fits are done. The other 1"]),
        (0, 3, []),
    ):
        before = len(Ridge.fitted)
        found = av.panel(problem, fit, sizes=sizes, folder=tmp_path)
        assert len(Ridge.fitted) - before == made
        said = [line for line in capsys.readouterr().err.splitlines() if "may take" in line]
        assert [line.partition(" may")[0] for line in said] == told
        assert found.path == panel.path[:sizes]
        assert len(list(tmp_path.glob("ridge-fold-*.nc"))) == 5
        if made == 5:
            pd.testing.assert_frame_equal(found.table, panel.table)
            for k in (2, 4):
                (tmp_path / f"ridge-fold-{k}.nc").unlink()


def test_of_a_refit_only_its_predictions_are_kept():
    """No draws, which are hundreds of megabytes of a wide table; nothing that is scored changes."""
    frame, y = table(2)
    problem = av.problem("horseshoe", frame, y)
    part, rows = problem.take(np.arange(60)), problem.data.take(np.arange(60, 90), both=False)
    own = av.fit(part, "ridge", random_seed=seed(), **SMALL)
    few = kept(part, rows, own)
    assert not few["posterior"].data_vars
    assert few.attrs == own.attrs
    whole, less = (scored(part, tree, rows, [1, 0], [0, 2]) for tree in (own, few))
    for name in ("full", "draws", "formula"):
        np.testing.assert_allclose(getattr(less, name), getattr(whole, name), rtol=1e-12)
    clusters, known = (Predictions.of(part, tree).clusters for tree in (own, few))
    np.testing.assert_array_equal(clusters.p, known.p)
    np.testing.assert_array_equal(clusters.weight, known.weight)


def test_refits_by_exact_are_foretold_by_the_draws_that_they_need(small, caplog):
    """The fit had 1000 effective draws in 100 s, and a refit asks for 400."""
    caplog.set_level("INFO", "ardvark")
    problem, fit, _ = small
    plan = registry.prepare("exact", problem, {}, Sampling(draws=60, chains=2, seed=1))
    exact = fit.copy()
    exact.attrs = {**fit.attrs, "method": "exact", "options": json.dumps(vars(plan.options))}
    exact.attrs |= {"seconds_run": 100.0, "draws": 1000}
    refit = module._plan(problem, exact, None, False)
    module._foretell(exact, refit, 5, None)
    assert "panel: 5 refits, each 40 s to 100 s, together 3 min to 8 min" in caplog.text
    assert refit.sampling.draws == 500


# --- members, coefficients, files -----------------------------------------------------------------


def test_coefficients_are_in_the_units_of_the_table(small):
    """The formula at the rows of the table against the projection at standardised ones."""
    problem, _, panel = small
    frame = table()[0]
    two = panel.at(2)
    b = two.coefficients["coefficient"]
    eta = b["intercept"] + frame[list(two.names)].to_numpy() @ b[list(two.names)].to_numpy()
    submodel = panel.predictions.submodel(panel.path[:2])
    A = design(problem.X[:, list(panel.path[:2])])
    np.testing.assert_allclose(eta, A @ submodel.formula, rtol=0, atol=1e-9)
    np.testing.assert_allclose(two.coefficients["per_sd"].iloc[1:], submodel.formula[1:])
    assert b["x1"] > 0.0  # by `table`, more of x1 makes "well" likelier
    assert two.coefficients.attrs["towards"] == "well"
    assert "in log odds of 'well'" in two.text()


def test_a_file_and_an_estimator_predict_as_the_formula_does(small, tmp_path):
    _, _, panel = small
    frame = table(5)[0]
    three = panel.at(3)
    three.to_csv(tmp_path / "panel.csv")
    with open(tmp_path / "panel.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["intercept", *three.names]
    by_hand = []
    for _, patient in frame.iterrows():  # as a spreadsheet does it
        eta = float(rows[0]["coefficient"])
        eta += sum(float(row["coefficient"]) * patient[row["name"]] for row in rows[1:])
        by_hand.append(1.0 / (1.0 + np.exp(-eta)))
    model = three.estimator()
    assert model.classes_.tolist() == ["ill", "well"]
    wide = frame.assign(other=1.0)[["other", *frame.columns[::-1]]]
    found = model.predict_proba(wide)
    np.testing.assert_allclose(found[:, 1], by_hand, rtol=1e-9)
    assert (model.predict(wide) == np.where(np.array(by_hand) > 0.5, "well", "ill")).all()
    again = model.fit(*table())  # from labels, as scikit-learn would
    assert again.score(*table()) > 0.7


def test_the_formula_of_no_feature_is_the_mean_prediction(small):
    problem, fit, panel = small
    none = panel.at(0)
    mean = av.predict(problem, fit, problem.data).values.mean()
    share = special.expit(none.coefficients["coefficient"]["intercept"])
    assert share == pytest.approx(mean, abs=1e-5)
    assert none.names == ()
    assert len(none.members) == len(none.alternatives) == 0


def test_a_copy_would_do_as_well_and_noise_would_not():
    frame, y = table(2, N=120)
    near = frame["x2"] + 0.1 * frame["x2"].std() * rng(3).normal(size=len(frame))
    problem, fit = fitted(frame.assign(copy=-4.0 * frame["x1"], near=near), y)
    panel = av.panel(problem, fit, sizes=4, progressbar=False).at(2)
    member = "x1" if "x1" in panel.names else "copy"
    (row,) = panel.alternatives[panel.alternatives["member"] == member].to_dict("records")
    assert {row["member"], row["alternative"]} == {"x1", "copy"}
    assert row["correlation"] == pytest.approx(-1.0)
    assert row["kept"] == pytest.approx(1.0, abs=1e-4)
    assert set(panel.alternatives["alternative"]) <= {"x1", "x2", "copy", "near"}
    assert panel.members.loc[member, "alternatives"] == row["alternative"]
    for gone in ({"index": list(panel.names)}, {"columns": 2}):  # no fold has chosen them
        never = dataclasses.replace(panel, chosen=panel.chosen.drop(**gone)).members
        assert (never["chosen"] == 0.0).all()


def test_columns_that_are_always_in_are_in_every_submodel(tmp_path):
    """With x1 always in, x2 is found first, sizes do not count x1, and units and files have it."""
    frame, y = table(6)
    problem, fit = fitted(frame, y, always=["x1"])
    panel = av.panel(problem, fit, sizes=2, progressbar=False)
    assert panel.names[:1] == panel.at(1).names == ("x2",)
    assert "x1" not in panel.chosen.index
    one = panel.at(1)
    assert list(one.coefficients.index) == ["intercept", "x1", "x2"]
    submodel = panel.predictions.submodel(panel.path[:1])
    eta = design(problem.X[:, list(panel.path[:1])], problem.C) @ submodel.formula
    found = one.estimator().predict_proba(frame)[:, 1]
    np.testing.assert_allclose(found, special.expit(eta), rtol=1e-9)
    assert panel.table.loc[1, "log_score"] > panel.table.loc[0, "log_score"]
    # in the folds too: without x2 the other one is there, and predicts better than a coin
    assert panel.table.loc[0, "log_score"] > np.log(0.5)


def messy():
    """A table with text and missing values whose panel has age and sex always in."""
    frame, y = table(7)
    frame["x6"] = np.where(frame["x6"] > frame["x6"].median(), "high", "low")
    frame.insert(0, "sex", np.resize(["m", "f", "f"], len(frame)))
    frame.insert(0, "age", np.resize([40.0, 50.0, 90.0], len(frame)))
    frame.loc[3, ["age", "x2"]] = np.nan
    frame.loc[4, "sex"] = None
    data = av.table(frame.assign(status=y), "status", encode="onehot", impute="median", na=["?"])
    problem, fit = fitted(data, None, always=["age", "sex"])
    return frame, data, av.panel(problem, fit, sizes=3, folds=2, progressbar=False)


def test_an_estimator_takes_rows_as_they_stood_in_the_table():
    """With the panel's own columns only: it encodes and fills them as training rows were."""
    frame, data, panel = messy()
    two = panel.at(2)
    whole = pd.DataFrame(data.X, columns=list(data.feature_names))
    wanted = two.estimator().predict_proba(whole)  # columns as the fit had them
    model = pickle.loads(pickle.dumps(two.estimator()))
    own = ["age", "sex", *dict.fromkeys(name.partition("=")[0] for name in two.names)]
    np.testing.assert_allclose(model.predict_proba(frame[own]), wanted, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(frame[own[::-1]][3:5]), wanted[3:5], rtol=1e-12)
    marked = frame[own].astype({"age": object}).replace({"age": {40.0: "?"}})
    first = model.predict_proba(frame[own].assign(age=frame["age"].replace(40.0, 50.0)))
    np.testing.assert_allclose(model.predict_proba(marked), first, rtol=1e-12)
    with pytest.raises(InputError, match="the rows lack sex"):
        model.predict_proba(frame[own].drop(columns="sex"))
    again = clone(model).fit(frame[own], np.where(data.y == 1, "well", "ill"))
    assert again.score(frame[own], np.where(data.y == 1, "well", "ill")) > 0.7


# --- refusals -------------------------------------------------------------------------------------


def test_a_refit_that_fails_is_named():
    problem = av.problem("horseshoe", *table())
    options = {"fail_without": "3"}
    fit = av.fit(problem, "prior", random_seed=seed(), **SMALL, **options)
    assert json.loads(fit.attrs["options"]) == options
    with pytest.raises(InputError, match=r"the refit without fold \d failed: it was told to"):
        av.panel(problem, fit, progressbar=False)
