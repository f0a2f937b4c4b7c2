"""Candidates on folds: what each is fitted to, what is stored, and what a choice says of them."""

import json
import pickle
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import ardvark as av
from ardvark.inference import Choice, Stack
from ardvark.inference.choosing import elastic_net, stacking
from ardvark.inference.choosing.candidates import PENALISED, Baseline, Zoo, candidates
from ardvark.inference.choosing.choose import estimate
from ardvark.inference.choosing.elastic_net import ElasticNet
from ardvark.inference.choosing.folds import Folds, partition, partitions
from ardvark.inference.choosing.stack import quantiles
from ardvark.inference.target.backend import FitFailed
from tests.inference.comparison.quick import Prior, registered
from tests.support import rng, seed, z_limit

QUIET = {"progressbar": False, "random_seed": 1}
CHEAP = {"method": "prior", "draws": 30, "chains": 2, **QUIET}
PLAIN = ("l1", "ridge", "share")
ALL_PENALTIES = dict(PENALISED)
pytestmark = pytest.mark.usefixtures("few_penalties")


@pytest.fixture
def prior(monkeypatch):
    """The prior as a method: fits that take no time."""
    registered(monkeypatch, Prior)


@pytest.fixture
def all_penalties(monkeypatch):
    """The penalties as another process has them, which knows nothing of `few_penalties`."""
    for word, grid in ALL_PENALTIES.items():
        monkeypatch.setitem(PENALISED, word, grid)


@pytest.fixture
def data(small_data):
    return small_data(N=30, D=3)


# --- folds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ones", "N", "folds"), [(13, 40, 5), (2, 9, 4), (7, 15, 15)])
def test_folds_and_classes_are_spread_evenly(ones, N, folds):
    y = rng(0).permutation(np.arange(N) < ones).astype(int)
    fold = partition(y, folds, rng(1))
    for rows in (slice(None), y == 1, y == 0):
        sizes = np.bincount(fold[rows], minlength=folds)
        assert np.ptp(sizes) <= 1
    assert all(len(set(y[fold != f])) == 2 for f in range(folds))


def test_more_repeats_keep_the_first_partitions():
    y = np.arange(20) % 2
    few, more = partitions(y, 4, 1, 3), partitions(y, 4, 3, 3)
    np.testing.assert_array_equal(few[:, 0], more[:, 0])
    assert (more[:, 0] != more[:, 1]).any()
    assert (partitions(y, 4, 1, 4) != few).any()


@pytest.mark.usefixtures("prior")
def test_a_candidate_is_fitted_as_a_person_would_without_the_fold(data):
    """Standardised, and its hyperparameters filled, by the rows outside."""
    choice = av.choose(data, candidates=["rfvm", "pfcvm:kernel=rbf"], folds=3, repeats=2, **CHEAP)
    for r in range(2):
        for f in range(3):
            held = choice.folds[:, r] == f
            number = 3 * r + f
            fit_seed = int(np.random.SeedSequence([1, number]).generate_state(1)[0]) >> 1
            for name, given in (("rfvm", {}), ("pfcvm:kernel=rbf", {"kernel": "rbf"})):
                model = name.partition(":")[0]
                problem = av.problem(model, (data.X[~held], data.y[~held]), **given)
                words = {"draws": 30, "chains": 2, "random_seed": fit_seed, "progressbar": False}
                tree = av.fit(problem, "prior", **words)
                p = av.predict(problem, tree, data.X[held]).values.reshape(60, -1).mean(axis=0)
                found = np.exp(choice.log_p[name][held, r])
                np.testing.assert_allclose(found, np.column_stack([1 - p, p]), atol=1e-12)


@pytest.mark.usefixtures("prior")
def test_columns_that_are_always_in_a_model_are_in_every_fold(data):
    choice = av.choose(data, candidates=["rfvm", "share"], always=["x1"], folds=3, **CHEAP)
    assert choice.asked == {"rfvm": {"model": "rfvm", "always": ["x1"]}, "share": "share"}
    stack = choice.fit(threshold=-1.0, progressbar=False)
    assert stack.members["rfvm"].problem.always == ("x1",)
    other = av.choose(data, candidates=["rfvm", "share"], folds=3, **CHEAP)
    assert (other.log_p["rfvm"] != choice.log_p["rfvm"]).any()


def work(data, folds, *names):
    return Folds(data, folds, candidates(names), {}, 0, None)


def test_no_fold_sees_its_own_rows(data):
    """Labels and features of a held-out row may be anything: the rest of its fold stays the same.

    Other folds have it among their training rows, where it counts.
    """
    folds = partitions(data.y, 3, 1, 0)
    X, y = data.X.copy(), data.y.copy()
    X[0], y[0] = X[0] + 2.0, 1 - y[0]
    other = av.Dataset.from_arrays(X, y)
    names = ["l1", "elastic_net", "ridge", "share"]
    one, two = (work(d, folds, *names).run(work(d, folds, *names).keys) for d in (data, other))
    for (name, fold), row in one.items():
        here, there = np.array(row["log_p"]), np.array(two[name, fold]["log_p"])
        inside = np.flatnonzero(folds[:, 0] == fold)
        if fold == folds[0, 0]:
            same = inside != 0
            np.testing.assert_array_equal(here[same], there[same])
        else:
            assert (here != there).any()


def test_a_tables_levels_and_medians_are_learned_outside_the_fold():
    frame = pd.DataFrame(
        {"a": [1.0, 2.0, 3.0, None, 50.0, 60.0], "b": list("uvuvuw"), "y": list("nynyny")}
    )
    table = av.table(frame, "y", encode="onehot", impute="median")
    train, held = table.apart(np.arange(6) >= 4)
    assert train.X[3, 0] == 2.0  # with the rows of the fold it were 3
    assert table.X[3, 0] == 3.0
    assert train.feature_names == held.feature_names == ("a", "b=v")
    assert (train.N, held.N) == (4, 2)


# --- plain candidates -----------------------------------------------------------------------------


def test_the_intercept_has_no_penalty():
    """Where features say nothing the prediction is the share; with a penalty it is nearer to one
    half, and saga, which watches the weights alone, says anything."""
    y = np.arange(50) < 5
    constant = av.Dataset.from_arrays(np.ones((50, 2)), y)
    for name in ("l1", "elastic_net", "ridge", "share"):
        member = Baseline(name, name).fit(constant, 0)
        assert member.draws(constant.X[:1])[0, 0] == pytest.approx(0.1, abs=1e-3), name


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("ratio", [1.01, 0.3, 0.01])
def test_an_elastic_net_is_at_the_minimum_of_its_loss(ratio, l1_ratio):
    """The gradient of the loss is that of the penalty, and 0 for the intercept."""
    X, y = rng(0).normal(size=(40, 60)), np.arange(40) < 12
    found = ElasticNet(ratio, l1_ratio).fit(X, y)
    least = np.abs(X.T @ (y - y.mean())).max() / (40 * l1_ratio)
    lasso, ridge = ratio * least * l1_ratio, ratio * least * (1.0 - l1_ratio)
    off = found.predict_proba(X)[:, 1] - y
    w, gradient = found.coef_, X.T @ off / 40 + ridge * found.coef_
    assert abs(off.mean()) < 2e-4
    np.testing.assert_allclose(gradient[w != 0], -lasso * np.sign(w[w != 0]), atol=2e-4)
    assert (np.abs(gradient[w == 0]) <= lasso + 2e-4).all()
    assert (w != 0).any() == (ratio < 1.0)
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)


def test_an_elastic_net_that_runs_out_of_steps_says_so(data, monkeypatch):
    monkeypatch.setattr(elastic_net, "_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="no optimum after 2 steps"):
        ElasticNet(0.01).fit(data.X, data.y)


def test_ridge_is_that_of_its_penalty_on_standardised_features(data):
    member = Baseline("ridge", "ridge").fit(data, 0)
    C = member.classifier[-1].C
    Z = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    direct = LogisticRegression(C=C, max_iter=1000).fit(Z, data.y)
    np.testing.assert_allclose(member.draws(data.X)[0], direct.predict_proba(Z)[:, 1], atol=1e-3)
    assert member.log_p(data.X).shape == (30, 2)
    assert member.error(data.X, data.y) == 0.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["rfmv"], "unknown candidate 'rfmv'. Did you mean 'rfvm'"),
        (["rfvm", "rfvm"], "'rfvm' occurs twice"),
        ([], "candidates is empty"),
        (["fs_skr"], "gives no probabilities"),
        (["l1:slab=2"], "'l1' has no hyperparameters"),
        (["pfcvm:rbf"], "expected MODEL:name=value, got 'rbf'"),
        ({"stack": "l1"}, "may have the name 'stack'"),
        ({"mine": {"kernel": "rbf"}}, "unknown candidate ''"),
    ],
)
def test_candidates_that_are_none_are_refused(given, message):
    with pytest.raises(av.InputError, match=message):
        candidates(given)


def test_candidates_are_words_or_settings_by_name():
    given = {"wide": {"model": "rfvm", "slab": 2}, "plain": "l1", "b": "PFCVM:kernel=rbf"}
    found = candidates(given)
    assert candidates(given) == found  # what is given is as before
    assert found == (
        Zoo("wide", "rfvm", {"slab": 2}),
        Baseline("plain", "l1"),
        Zoo("b", "pfcvm", {"kernel": "rbf"}),
    )
    assert candidates({c.name: c.asked() for c in found}) == found
    assert len(candidates(None)) == 8
    assert candidates("ridge") == candidates(["ridge"])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"folds": 1}, av.InputError, "folds must be an integer from 2 to 30"),
        ({"folds": 31}, av.InputError, "folds must be"),
        ({"repeats": 0}, av.InputError, "repeats must be"),
        ({"candidates": ["rfvm:slabs=2"]}, TypeError, "did you mean 'slab'"),
        ({"candidates": ["rfvm"], "esss": 3}, TypeError, "has no option 'esss'"),
        ({"candidates": ["rfvm"], "method": "jcfo_em"}, av.InputError, "does not apply"),
        ({"draws": 0}, av.InputError, "draws must be"),
        ({"random_seed": -1}, av.InputError, "random_seed must be"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(changes, error, message, data, tmp_path):
    with pytest.raises(error, match=message):
        av.choose(data, **{"out": tmp_path / "out", "progressbar": False} | changes)
    assert not (tmp_path / "out").exists()


def test_a_class_of_one_row_is_refused():
    with pytest.raises(av.InputError, match="class 'True' has only one sample"):
        av.choose(np.eye(5), np.arange(5) < 1, candidates=PLAIN)


# --- stored ---------------------------------------------------------------------------------------


def same(one, other):
    return all((one.log_p[name] == other.log_p[name]).all() for name in one.log_p)


RUN = """
import sys, numpy as np, ardvark as av
data = av.load("digits38").take(range(40))
av.choose(data, candidates=["elastic_net", "share"], out=sys.argv[1], random_seed=1)
"""


@pytest.mark.usefixtures("all_penalties")
def test_a_run_that_was_killed_goes_on_and_gives_the_same(tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", RUN, str(out)], stderr=subprocess.DEVNULL)
    pieces = out / "folds"
    limit = time.monotonic() + 120.0
    while len(list(pieces.glob("*.json"))) < 3 and time.monotonic() < limit:
        time.sleep(0.02)
    process.kill()
    process.wait()
    stored = {p: p.stat().st_mtime_ns for p in pieces.glob("*.json")}
    assert 3 <= len(stored) < 10
    data = av.load("digits38").take(range(40))
    names = ["elastic_net", "share"]
    resumed = av.choose(data, candidates=names, out=out, **QUIET)
    assert {p: p.stat().st_mtime_ns for p in stored} == stored  # not computed again
    assert len(list(pieces.glob("*.json"))) == 10
    assert same(resumed, av.choose(data, candidates=names, **QUIET))


def test_another_process_gets_the_same_work(data):
    here = work(data, partitions(data.y, 3, 1, 0), "ridge")
    there = pickle.loads(pickle.dumps(here))
    assert there.start()(("ridge", 1))["log_p"] == here.start()(("ridge", 1))["log_p"]


@pytest.mark.slow
@pytest.mark.usefixtures("all_penalties")
def test_processes_give_the_same(data):
    one = av.choose(data, candidates=PLAIN, **QUIET)
    assert same(one, av.choose(data, candidates=PLAIN, processes=2, **QUIET))


@pytest.mark.usefixtures("prior")
def test_a_stored_piece_is_used_for_the_same_question_only(data, tmp_path, monkeypatch):
    def fits(**changes):
        """How many pieces are computed."""
        done = []
        own = Folds._fit
        monkeypatch.setattr(
            Folds,
            "_fit",
            lambda self, key, *, models: done.append(key) or own(self, key, models=models),
        )
        av.choose(
            data, **{"candidates": ["rfvm", "share"], "folds": 3, "out": tmp_path} | CHEAP | changes
        )
        monkeypatch.setattr(Folds, "_fit", own)
        return len(done)

    assert fits() == 6
    assert fits() == 0
    assert fits(candidates=["share", "rfvm"]) == 0  # whatever else is compared
    assert fits(repeats=2) == 6
    assert fits(draws=31) == 3  # share has no draws
    assert fits(draws=31, random_seed=2) == 6
    damaged = tmp_path / "folds" / "rfvm-000.json"
    damaged.write_text(damaged.read_text()[:50])
    assert fits(draws=31, random_seed=2) == 1
    row = json.loads(damaged.read_text())
    damaged.write_text(json.dumps(row | {"status": "failed"}))
    assert fits(draws=31, random_seed=2) == 1


# --- failures, and time ---------------------------------------------------------------------------


@pytest.mark.usefixtures("prior")
def test_a_candidate_that_fails_is_told_and_the_others_are_kept(data, caplog):
    words = CHEAP | {"fail_without": data.sample_names[0]}
    choice = av.choose(data, candidates=["rfvm", *PLAIN], folds=3, **words)
    assert choice.names == PLAIN
    assert choice.table.index[-1] == "rfvm"
    assert "it was told to" in choice.table.loc["rfvm", "status"]
    assert "Without scores: rfvm" in choice.sentence
    assert "rfvm failed in 1 of 3 folds" in caplog.text
    with pytest.raises(FitFailed, match=r"every candidate failed\. rfvm: FitFailed: it was told"):
        av.choose(data, candidates=["rfvm"], folds=3, **words)


def test_the_rest_takes_as_long_as_the_first_fold_did():
    ended = {("a", 0): {"seconds": 30.0}, ("b", 0): {"seconds": 1.0}, ("b", 1): {"seconds": 9.0}}
    left = [("a", 1), ("a", 2), ("b", 2)]
    assert estimate(ended, left, 1) == ("choose: 3 fits are done. The other 3 may take about 61 s.")
    assert "about 30 s" in estimate(ended, left, 2)
    assert "about 8 s" in estimate(ended, left, av.Dask(workers=8))


def test_the_time_is_told_once_the_first_fold_is_done(data, capsys):
    av.choose(data, candidates=PLAIN, folds=4)
    assert "choose: 3 fits are done. The other 9 may take about" in capsys.readouterr().err


# --- scores ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chosen(few_penalties):
    generator = rng(3)
    X = generator.normal(size=(36, 2))
    y = X[:, 0] + generator.normal(size=36) > 0
    return av.choose(X, y, candidates=["ridge", "l1", "share"], folds=4, repeats=2, **QUIET)


def test_scores_are_those_of_scikit_learn(chosen):
    y, table = chosen.y, chosen.table
    for name, log_p in chosen.log_p.items():
        p = np.exp(log_p[..., 1])
        each = [log_loss(y, p[:, r]) for r in range(2)]
        assert table.loc[name, "log_score"] == pytest.approx(-np.mean(each), rel=1e-9)
        brier = [brier_score_loss(y, p[:, r]) for r in range(2)]
        assert table.loc[name, "brier"] == pytest.approx(np.mean(brier), rel=1e-9)
        auc = [roc_auc_score(y, p[:, r]) for r in range(2)]
        assert table.loc[name, "auc"] == pytest.approx(np.mean(auc), rel=1e-9)


def test_differences_are_paired_by_row(chosen):
    """Repeats of a row are no rows of their own: the error would be too small by their root."""
    row_means = {name: chosen._of_labels(x).mean(axis=1) for name, x in chosen.log_p.items()}
    each = row_means["share"] - row_means[chosen.best]
    lead, error = chosen.difference("share", chosen.best)
    assert lead == pytest.approx(each.mean())
    assert error == pytest.approx(each.std(ddof=1) / 6.0)
    assert chosen.table.loc["share", "difference"] == lead
    assert chosen.table.loc[chosen.best, ["difference", "difference_se"]].tolist() == [0.0, 0.0]


def test_the_stack_is_scored_by_weights_of_the_other_folds(chosen):
    L = chosen.labelled
    for n, r in ((0, 0), (5, 1)):
        outside = chosen.folds[:, r] != chosen.folds[n, r]
        w = stacking.stack(L[outside].reshape(-1, 3))
        for label in (0, 1):
            mixed = sum(
                wk * np.exp(x[n, r, label]) for wk, x in zip(w, chosen.log_p.values(), strict=True)
            )
            assert np.exp(chosen.stack_log_p[n, r, label]) == pytest.approx(mixed, rel=1e-9)
    np.testing.assert_allclose(np.exp(chosen.stack_log_p).sum(axis=-1), 1.0, rtol=1e-9)
    assert chosen.weights.sum() == pytest.approx(1.0)
    assert chosen.table.loc["share", "weight_high"] == chosen.bootstrap["share"].quantile(0.95)


def test_a_choice_is_stored_and_read(chosen, tmp_path):
    chosen.save(tmp_path / "choice.json")
    again = Choice.load(tmp_path / "choice.json")
    pd.testing.assert_frame_equal(again.table, chosen.table)
    assert str(again) == str(chosen)
    with pytest.raises(av.InputError, match="loaded without its rows"):
        again.fit()
    stack = again.fit(chosen.data, progressbar=False)
    assert repr(stack) == repr(chosen.fit(progressbar=False))
    with pytest.raises(av.InputError, match="other rows than the table that was chosen for"):
        again.fit(chosen.data.take(range(30)))
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(av.InputError, match="contains no choice"):
        Choice.load(tmp_path / "other.json")


@pytest.mark.usefixtures("prior")
@pytest.mark.statistical
def test_the_monte_carlo_error_is_the_spread_over_seeds(data):
    """Rows share their draws: errors as of independent rows would be too small."""
    (zoo,) = candidates(["sparse_probit"])
    problem, found, told = zoo.problem(data), [], []
    rows = np.arange(30)
    for s in range(60):
        words = {"draws": 100, "chains": 4, "random_seed": seed(s), "progressbar": False}
        member = zoo.fitted(problem, av.fit(problem, "prior", selection=False, **words))
        found.append(member.log_p(data.X)[rows, data.y].sum())
        told.append(member.error(data.X, data.y))
    # the sd of 60 has a standard error of 9 %; draws are few enough for a second order of some %
    assert abs(np.log(np.std(found) / np.mean(told))) < z_limit() * 0.092 + 0.05


# --- the stack on all rows ------------------------------------------------------------------------


@pytest.mark.usefixtures("prior")
def test_the_stack_is_the_mixture_of_fits_to_all_rows(data, tmp_path):
    choice = av.choose(data, candidates=["rfvm", "sparse_probit", "l1"], folds=3, **CHEAP)
    choice.__dict__["weights"] = pd.Series({"rfvm": 0.5, "sparse_probit": 0.005, "l1": 0.495})
    stack = choice.fit(folder=tmp_path, progressbar=False)
    assert stack.weights == {"rfvm": 0.5 / 0.995, "l1": 0.495 / 0.995}  # one is too small
    assert not stack.unconverged
    problem = av.problem("rfvm", data)
    words = {"draws": 30, "chains": 2, "random_seed": 1, "keep": "shared", "progressbar": False}
    p = av.predict(problem, av.fit(problem, "prior", **words), data.X).values.reshape(60, -1)
    plain = Baseline("l1", "l1").fit(data, 1).draws(data.X)[0]
    w = stack.weights["rfvm"]
    mean = w * p.mean(axis=0) + (1.0 - w) * plain
    np.testing.assert_allclose(stack.predict_proba(data.X)[:, 1], mean, rtol=1e-9)
    found = stack.predict(data)
    assert found.index.tolist() == list(data.sample_names)
    # the point of l1 has nearly half of the mass: intervals reach from it into the draws
    assert (found["low"] <= plain + 1e-12).all()
    assert (found["high"] >= plain - 1e-12).all()
    assert set(found["predicted"]) <= set(data.class_names)
    stack.save(tmp_path / "stack")
    again = Stack.load(tmp_path / "stack")
    pd.testing.assert_frame_equal(again.predict(data), found)
    tree, stored = again.members["rfvm"].tree, stack.members["rfvm"].tree
    assert tree.identical(stored)
    assert [p.name for p in tmp_path.glob("*.nc")] == ["prior-rfvm.nc"]
    (tmp_path / "no").write_bytes(b"1")
    with pytest.raises(av.InputError, match="contains no stack"):
        Stack.load(tmp_path / "no")
    with pytest.raises(av.InputError, match="no candidate has so much weight"):
        choice.fit(threshold=1.0)


def test_weighted_quantiles_are_those_of_repeated_values():
    """Shares in twentieths are values repeated so often."""
    generator = rng(4)
    values = generator.normal(size=(6, 5))
    counts = np.array([1, 3, 2, 7, 4, 3])
    found = quantiles(values, counts / 20.0, (0.05, 0.5, 0.95))
    repeated = np.sort(np.repeat(values, counts, axis=0), axis=0)
    np.testing.assert_array_equal(found, repeated[[0, 9, 18]])


# --- a known truth --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.statistical
def test_a_true_model_among_the_candidates_is_not_missed():
    """The stack does as well as the model that made the labels, and better than a guess."""
    X = rng(5).normal(size=(160, 10))
    template = av.problem("sparse_probit", X, np.arange(160) % 2, gamma1=0.5)
    generator = rng(6)
    drawn = (template.simulate(generator)["y"] for _ in range(1000))
    y = next(y for y in drawn if 40 < y.sum() < 120)
    words = {"gamma1": 0.5}
    asked = {"true": {"model": "sparse_probit", **words}, "ridge": "ridge", "share": "share"}
    choice = av.choose(X, y, candidates=asked, random_seed=seed(1), progressbar=False)
    lead, error = choice.difference("stack", "true")
    assert lead > -0.01 - z_limit() * error
    lead, error = choice.difference("stack", "share")
    assert lead > -0.01 - z_limit() * error
    assert choice.table["error"].max() < 0.02
