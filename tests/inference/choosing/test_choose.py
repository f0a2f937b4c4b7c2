"""Candidates on folds: what each is fitted to, what is stored, and what a choice says of them."""

from contextlib import contextmanager

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ardvark as av
from ardvark.common import pieces as pieces_module
from ardvark.common.writer import one_writer
from ardvark.inference.choosing.candidates import Plain, Zoo, candidates, monte_carlo_error
from ardvark.inference.choosing.folds import Refits, partitions
from ardvark.inference.methods.prediction import log_probabilities
from ardvark.inference.scoring import penalised as grids
from ardvark.inference.scoring.penalised import path, penalised
from ardvark.inference.target.backend import FitFailed
from tests.inference.comparison.quick import Prior, registered
from tests.support import rng, seed, z_limit

QUIET = {"progressbar": False, "random_seed": 1}
CHEAP = {"method": "prior", "draws": 30, "chains": 2, **QUIET}
PLAIN = ("l1", "ridge", "share")
pytestmark = pytest.mark.usefixtures("few_penalties")


@pytest.fixture
def prior(monkeypatch):
    """The prior as a method: fits that take no time."""
    registered(monkeypatch, Prior)


@pytest.fixture
def data(small_data):
    return small_data(N=30, D=3)


# --- folds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ones", "N", "folds"), [(13, 40, 5), (2, 9, 4), (7, 15, 8)])
def test_folds_and_classes_are_spread_evenly(ones, N, folds):
    y = rng(0).permutation(np.arange(N) < ones).astype(int)
    held = np.array(partitions(y, folds, 1, 1))
    assert (held.sum(axis=0) == 1).all()
    for rows in (slice(None), y == 1, y == 0):
        assert np.ptp(held[:, rows].sum(axis=1)) <= 1
    assert all(len(set(y[~rows])) == 2 for rows in held)


def test_more_repeats_keep_the_first_partitions():
    y = np.arange(20) % 2
    few, more = np.array(partitions(y, 4, 1, 3)), np.array(partitions(y, 4, 3, 3))
    np.testing.assert_array_equal(few, more[:4])
    assert (more[:4] != more[4:8]).any()
    assert (np.array(partitions(y, 4, 1, 2**40)) != few).any()


@pytest.mark.usefixtures("prior")
def test_a_candidate_is_fitted_as_a_person_would_without_the_fold(data):
    """Standardised, and its hyperparameters filled, by the rows outside."""
    choice = av.choose(data, candidates=["rfvm", "pfcvm:kernel=rbf"], folds=3, repeats=2, **CHEAP)
    for r, f in ((0, 2), (1, 1)):
        held = choice.folds[:, r] == f
        fit_seed = int(np.random.SeedSequence([1, 3 * r + f]).generate_state(1)[0]) >> 1
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
    own = candidates({"mine": {"model": "rfvm", "always": ["x2"]}}, ["x1"])["mine"]
    assert own.problem(data).always == ("x2",)
    other = av.choose(data, candidates=["rfvm", "share"], folds=3, **CHEAP)
    assert (other.log_p["rfvm"] != choice.log_p["rfvm"]).any()


def test_covariates_alone_are_a_candidate(data):
    few = {"folds": 3, "random_seed": 1, "progressbar": False}
    alone = av.choose(data, candidates=["covariates"], always=["x1", "x2"], **few)
    cut = av.Dataset.from_arrays(data.X[:, :2], data.y)
    ridge = av.choose(cut, candidates=["ridge"], **few)
    np.testing.assert_allclose(alone.log_p["covariates"], ridge.log_p["ridge"], rtol=1e-9)
    assert "covariates" in candidates(None, ["x1"])
    assert "covariates" not in candidates(None)
    with pytest.raises(av.InputError, match="needs columns that are always in"):
        candidates(["covariates"])


def predictions(data, held, word):
    return Refits(data, {word: Plain(word)}, [held], 0).start()((word, 0))["log_p"]


def test_no_fold_sees_its_own_rows(data):
    """Labels and features of a held-out row may be anything: the rest of its fold stays the same.

    Other folds have it among their training rows, where it counts.
    """
    X, y = data.X.copy(), data.y.copy()
    X[0], y[0] = X[0] + 2.0, 1 - y[0]
    other = av.Dataset.from_arrays(X, y)
    for held in partitions(data.y, 3, 1, 0):
        for word in ("l1", "ridge", "share"):
            here, there = (predictions(d, held, word) for d in (data, other))
            if held[0]:
                np.testing.assert_array_equal(here[1:], there[1:])
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


@pytest.mark.parametrize("word", ["l1", "elastic_net", "ridge", "share"])
@pytest.mark.parametrize("D", [0, 1, 20])
def test_the_intercept_has_no_penalty(word, D):
    """Where features say nothing the mean prediction is the share of the class; with a penalty it
    is nearer to one half."""
    y = (np.arange(50) < 5).astype(int)
    X = rng(D).normal(size=(50, D)) if D else np.ones((50, 1))
    p = Plain(word).classifier(y, 0).fit(X, y).predict_proba(X)
    assert p[:, 1].sum() == pytest.approx(5.0, abs=5e-5)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_penalties_without_any_feature_are_scored_as_the_share_is():
    y = (np.arange(50) < 5).astype(int)
    found = penalised("elastic_net", y, 0).fit(rng(1).normal(size=(50, 20)), y)
    np.testing.assert_allclose(found.scores_[:, 0], -0.325, atol=2e-3)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("D", [10, 60])
def test_a_penalised_regression_is_at_the_minimum_of_its_loss(C, l1_ratio, D):
    """The gradient of the loss is that of the penalty, and 0 for the intercept; also where a plane
    separates the labels, as it does for 60 features."""
    X, y = rng(0).normal(size=(40, D)), (np.arange(40) < 12).astype(int)
    ((w, b),) = path(X, y, [C], l1_ratio)
    off = expit(X @ w + b) - y
    lasso, ridge = l1_ratio / C, (1.0 - l1_ratio) / C
    gradient = X.T @ off + ridge * w
    assert abs(off.sum()) < 1e-6
    np.testing.assert_allclose(gradient[w != 0], -lasso * np.sign(w[w != 0]), atol=1e-3)
    assert (np.abs(gradient[w == 0]) <= lasso + 1e-3).all()


def test_a_path_ends_where_a_fit_of_its_last_penalty_does():
    X, y = rng(1).normal(size=(50, 80)), np.arange(50) % 2
    *_, (warm, _) = path(X, y, [0.05, 0.5, 5.0], 0.5)
    ((cold, _),) = path(X, y, [5.0], 0.5)
    np.testing.assert_allclose(warm, cold, atol=1e-4)


def test_inner_folds_choose_the_penalty_as_a_search_by_scikit_learn_does(data):
    found = penalised("l1", data.y, 0).fit(data.X, data.y)
    model = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", intercept_scaling=1e4, tol=1e-8, max_iter=10_000
    )
    grid = {"logisticregression__C": found.Cs}
    pipe = make_pipeline(StandardScaler(), model)
    search = GridSearchCV(pipe, grid, cv=found.cv, scoring="neg_log_loss").fit(data.X, data.y)
    np.testing.assert_allclose(found.scores_[0], search.cv_results_["mean_test_score"], atol=2e-3)
    assert search.best_params_["logisticregression__C"] == found.C_
    p = search.predict_proba(data.X)
    np.testing.assert_allclose(found.predict_proba(data.X), p, atol=2e-3)
    np.testing.assert_array_equal(found.predict(data.X), search.predict(data.X))


def test_a_penalised_regression_that_runs_out_of_steps_says_so(data, monkeypatch):
    monkeypatch.setattr(grids, "STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="has not converged in 1 step"):
        penalised("elastic_net", data.y, 0).fit(data.X, data.y)


def test_ridge_is_that_of_its_penalty_on_standardised_features(data):
    fitted = penalised("ridge", data.y, 0).fit(data.X, data.y)
    Z = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    direct = LogisticRegression(C=fitted[-1].C_, max_iter=1000).fit(Z, data.y)
    p = fitted.predict_proba(data.X)
    np.testing.assert_allclose(p, direct.predict_proba(Z), atol=1e-3)


def test_a_classifier_of_ones_own_is_scored_as_scikit_learn_does(data):
    forest = RandomForestClassifier(10, random_state=0)
    choice = av.choose(data, candidates={"forest": forest, "share": "share"}, folds=3, **QUIET)
    held = partitions(data.y, 3, 1, 1)
    splits = [(np.flatnonzero(~rows), np.flatnonzero(rows)) for rows in held]
    p = cross_val_predict(forest, data.X, data.y, cv=splits, method="predict_proba")
    np.testing.assert_allclose(np.exp(choice.log_p["forest"][:, 0]), p, atol=1e-12)
    assert not hasattr(forest, "classes_")  # a clone of it was fitted


def test_candidates_are_words_or_settings_by_name():
    given = {"wide": {"model": "rfvm", "slab": 2}, "plain": "l1", "b": "PFCVM:kernel=rbf"}
    found = candidates(given)
    assert candidates(given) == found  # what is given is as before
    assert found == {
        "wide": Zoo({"model": "rfvm", "slab": 2}),
        "plain": Plain("l1"),
        "b": Zoo({"model": "pfcvm", "kernel": "rbf"}),
    }
    assert candidates({name: c.asked for name, c in found.items()}) == found
    assert len(candidates(None)) == 8
    assert candidates("ridge") == candidates(["ridge"])


# --- stored ---------------------------------------------------------------------------------------


def same(one, other):
    assert list(one.log_p) == list(other.log_p)
    return all((one.log_p[name] == other.log_p[name]).all() for name in one.log_p)


def pieces(folder):
    """The stored pieces, and when they were written."""
    return {p: p.stat().st_mtime_ns for p in folder.rglob("[!.]*.pkl")}


def test_a_run_that_was_stopped_goes_on_and_gives_the_same(data, tmp_path, monkeypatch):
    words = {"candidates": ["ridge", "share"], "folds": 3, **QUIET}
    whole = av.choose(data, **words)
    predict, done = Plain.predict, []

    def stopped(self, *given):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(self)
        return predict(self, *given)

    monkeypatch.setattr(Plain, "predict", stopped)
    with pytest.raises(KeyboardInterrupt):
        av.choose(data, folder=tmp_path, **words)
    monkeypatch.setattr(Plain, "predict", predict)
    stored = pieces(tmp_path)
    assert len(stored) == 4
    resumed = av.choose(data, folder=tmp_path, **words)
    assert pieces(tmp_path).items() >= stored.items()  # not computed again
    assert len(pieces(tmp_path)) == 6
    assert same(resumed, whole)


def test_two_runs_do_not_write_to_one_folder(data, tmp_path):
    with one_writer(tmp_path), pytest.raises(av.InputError, match="another command writes to"):
        av.choose(data, candidates=["share"], folder=tmp_path, **QUIET)


@pytest.mark.slow
def test_processes_and_threads_give_the_same(data):
    one = av.choose(data, candidates=PLAIN, **QUIET)
    assert same(one, av.choose(data, candidates=PLAIN, processes=2, **QUIET))
    with joblib.parallel_config("threading", n_jobs=2):
        assert same(one, av.choose(data, candidates=PLAIN, **QUIET))


def test_threads_have_compiled_models_of_their_own(data):
    """A model is bound to one fold at a time: shared by two threads, it would mix their rows."""
    words = {"candidates": ["rvm"], "method": "laplace", "draws": 50, "folds": 4, **QUIET}
    one = av.choose(data, **words)
    with joblib.parallel_config("threading", n_jobs=2):
        assert same(one, av.choose(data, **words))
    assert not pieces_module._started  # nothing is held when it is over


@pytest.mark.usefixtures("prior")
def test_a_stored_piece_is_used_for_the_same_question_only(data, tmp_path, monkeypatch):
    done = []
    for kind in (Zoo, Plain):

        def counted(self, *given, own=kind.predict):
            done.append(self)
            return own(self, *given)

        monkeypatch.setattr(kind, "predict", counted)

    def fits(**changes):
        """How many pieces are computed."""
        done.clear()
        asked = {"candidates": ["rfvm", "share"], "folds": 3, "folder": tmp_path}
        av.choose(data, **asked | CHEAP | changes)
        return len(done)

    assert fits() == 6
    assert fits() == 0
    assert fits(candidates=["share", "rfvm"]) == 0  # whatever else is compared
    assert fits(repeats=2) == 6
    assert fits(draws=31) == 3  # share has no draws
    assert fits(draws=31) == 0
    assert fits(draws=31, random_seed=2) == 6
    assert fits(candidates={"a": RandomForestClassifier(2)}) == 3
    assert fits(candidates={"b": RandomForestClassifier(2)}) == 0
    assert fits(candidates={"a": RandomForestClassifier(3)}) == 3
    other = {"candidates": ["share"], "folder": tmp_path / "other"}
    assert fits(**other) == 3
    damaged = next(iter(pieces(tmp_path / "other")))
    before = damaged.read_bytes()
    damaged.write_bytes(before[:50])
    assert fits(**other) == 1
    assert len(damaged.read_bytes()) == len(before)


# --- failures, and time ---------------------------------------------------------------------------


@pytest.mark.usefixtures("prior")
def test_a_candidate_that_fails_is_told_and_the_others_are_kept(data, caplog):
    words = CHEAP | {"fail_without": data.sample_names[0]}
    choice = av.choose(data, candidates=["rfvm", *PLAIN], folds=3, **words)
    assert tuple(choice.log_p) == PLAIN
    assert choice.table.index[-1] == "rfvm"
    assert "it was told to" in choice.table.loc["rfvm", "status"]
    assert "Without scores: rfvm" in choice.sentence
    assert "rfvm failed in 1 of 3 folds" in caplog.text
    with pytest.raises(FitFailed, match=r"every candidate failed\. rfvm: FitFailed: it was told"):
        av.choose(data, candidates=["rfvm"], folds=3, **words)


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
    ones = chosen.y[:, None] == 1
    row_means = {
        name: np.where(ones, x[..., 1], x[..., 0]).mean(axis=1) for name, x in chosen.log_p.items()
    }
    each = row_means["share"] - row_means[chosen.best]
    lead, error = chosen.difference("share", chosen.best)
    assert lead == pytest.approx(each.mean())
    assert error == pytest.approx(each.std(ddof=1) / 6.0)
    assert chosen.table.loc["share", "difference"] == lead
    assert chosen.table.loc[chosen.best, ["difference", "difference_se"]].tolist() == [0.0, 0.0]


@pytest.mark.usefixtures("prior")
@pytest.mark.statistical
def test_the_monte_carlo_error_is_the_spread_over_seeds(data):
    """Rows share their draws: errors as of independent rows would be too small."""
    problem, found, told = candidates("sparse_probit")["sparse_probit"].problem(data), [], []
    rows = np.arange(30)
    for s in range(60):
        words = {"draws": 100, "chains": 4, "random_seed": seed(s), "progressbar": False}
        tree = av.fit(problem, "prior", selection=False, **words)
        found.append(log_probabilities(problem, tree, data.X)[rows, data.y].sum())
        told.append(monte_carlo_error(problem, tree, data))
    # the sd of 60 has a standard error of 9 %; draws are few enough for a second order of some %
    assert abs(np.log(np.std(found) / np.mean(told))) < z_limit() * 0.092 + 0.05


# --- a known truth --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.statistical
def test_a_true_model_among_the_candidates_is_not_missed():
    """Nothing does clearly better than the model that made the labels, and a guess does worse."""
    X = rng(5).normal(size=(160, 10))
    template = av.problem("sparse_probit", X, np.arange(160) % 2, gamma1=0.5)
    generator = rng(6)
    drawn = (template.simulate(generator)["y"] for _ in range(1000))
    y = next(y for y in drawn if 40 < y.sum() < 120)
    asked = {
        "true": {"model": "sparse_probit", "gamma1": 0.5},
        "ridge": "ridge",
        "share": "share",
    }
    choice = av.choose(X, y, candidates=asked, random_seed=seed(1), progressbar=False)
    for other in ("ridge", "share"):
        lead, error = choice.difference("true", other)
        assert lead > -0.01 - z_limit() * error
    assert choice.table["error"].max() < 0.02


def test_inner_folds_keep_groups_together():
    y = np.resize([0, 0, 1, 1], 60)
    groups = [f"P{k // 2}" for k in range(60)]
    inner = penalised("ridge", y, 3, groups)[-1].cv
    assert len(inner) == 5
    for train, held in inner:
        assert not {groups[k] for k in train} & {groups[k] for k in held}
    with pytest.raises(av.InputError, match="there are 2 groups, too few for 5 folds"):
        av.choose(np.arange(60.0)[:, None], y, groups=["a", "b"] * 30, candidates=["share"])


# --- how long -------------------------------------------------------------------------------------


def test_the_time_of_plain_candidates_is_foretold(data, caplog):
    caplog.set_level("INFO", "ardvark")
    av.choose(data, candidates=["ridge", "share"], folds=3, **QUIET)
    assert "plain classifiers" not in caplog.text  # a matter of seconds
    forest = {"forest": RandomForestClassifier(3, random_state=0), "share": "share"}
    av.choose(data, candidates=forest, folds=3, **QUIET)
    assert "choose: 6 fits of plain classifiers, which may take" in caplog.text
    assert "how long 1 of them take is not known" in caplog.text


def test_a_count_is_shown_from_the_start(data, monkeypatch):
    states = []

    class Said:
        def __init__(self, *_):
            pass

        @contextmanager
        def stage(self, name, total):
            yield lambda completed=0, note="": states.append((completed, note))

    monkeypatch.setattr("ardvark.inference.choosing.choose.Reporter", Said)
    av.choose(data, candidates=["share"], folds=3, **QUIET)
    assert states[0] == (0, "0 of 3")
    assert states[2] == (2, "2 of 3: share, fold 2: finished")
