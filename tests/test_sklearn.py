"""The zoo as a scikit-learn estimator: its checks, its tools, and agreement with the zoo's own."""

import inspect
import logging
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import ardvark as av
from ardvark.common.declared import Settings
from ardvark.common.validate import InputError
from ardvark.inference import BACKENDS, register_backend
from ardvark.inference.methods import registry
from ardvark.inference.target.backend import FitFailed, Result
from ardvark.models import ZOO
from ardvark.sklearn import SparseBayesClassifier
from tests.inference.comparison.quick import Prior, registered
from tests.support import rng, seed

FEW = {"draws": 20, "chains": 2}
FAST = {
    "rfvm": {"method_options": {"restarts": 1, "tolerance": 1e-3}},
    "pfcvm": {},
    "jcfo": {
        "hypers": {"kernel": "linear", "scale": "fixed"},
        "method_options": {"starts": 1, "tolerance": 1e-3},
    },
    "sparse_probit": {"hypers": {"scale": "fixed"}},
    "fsklr": {
        "hypers": {"kernel": "linear"},
        "method_options": {"feature_sweeps": 10, "sample_sweeps": 10},
    },
}
"""Settings under which a fit takes a fraction of a second."""

generator = rng(0)
X = generator.normal(size=(40, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 5.0, 1.0, 0.0]
X[:, 3] = 7.0  # constant
Y = np.where((X[:, 1] - 5.0) / 10.0 + 0.3 * generator.normal(size=40) > 0.0, "well", "ill")
FRAME = pd.DataFrame(X, columns=["age", "dose", "size", "site"], index=[f"p{i}" for i in range(40)])


def classifier(model="pfcvm", **changes):
    settings = {"method": "paper"} | FEW | FAST.get(model, {}) | changes
    return SparseBayesClassifier(model, **settings, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(FRAME, Y)


@pytest.fixture
def methods(monkeypatch):
    """Methods that cost nothing, for what holds whatever the draws are."""
    kinds = {"prior": "point", "chain": "mcmc"}
    registered(monkeypatch, *(type(n, (Prior,), {"NAME": n, "KIND": k}) for n, k in kinds.items()))


# --- scikit-learn's own checks --------------------------------------------------------------------

ignoring = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",  # their data are odd, these settings tiny
    "ignore:No features were selected:UserWarning",
    "ignore:The predictions are nearly constant:UserWarning",
)


# the estimator is the same for every model: the cheapest one is the fast form
@ignoring
@pytest.mark.parametrize(
    "model", [pytest.param(m, marks=[] if m == "sparse_probit" else pytest.mark.slow) for m in FAST]
)
def test_scikit_learns_checks_pass(model):
    """All of them: `random_state` makes the draws of a fit repeat, so none has to be left out."""
    check_estimator(classifier(model), on_skip=None)


@pytest.mark.slow
@ignoring
def test_scikit_learns_checks_pass_with_an_exact_sampler():
    options = {"limit": 256, "cores": 1}
    check_estimator(classifier("rfvm", method="exact", method_options=options), on_skip=None)


# --- the same answers as the zoo's own functions --------------------------------------------------


def test_probabilities_are_the_zoos_and_in_the_order_of_the_classes(fitted):
    assert fitted.classes_.tolist() == ["ill", "well"]
    p = av.predict(fitted.problem_, fitted.posterior_, FRAME).mean(("chain", "draw")).values
    proba = fitted.predict_proba(FRAME)
    np.testing.assert_allclose(proba, np.column_stack([1 - p, p]), rtol=1e-12)
    np.testing.assert_allclose(fitted.decision_function(FRAME), np.log(p / (1 - p)), rtol=1e-9)
    np.testing.assert_array_equal(fitted.predict(FRAME), np.where(p > 0.5, "well", "ill"))
    assert fitted.score(FRAME, Y) == np.mean(fitted.predict(FRAME) == Y) > 0.8


def test_many_rows_are_predicted_in_parts(fitted, monkeypatch):
    whole = fitted.predict_proba(FRAME)
    monkeypatch.setattr("ardvark.sklearn._CHUNK", 7 * 20 * 2)
    np.testing.assert_allclose(fitted.predict_proba(FRAME), whole, rtol=1e-12)


def test_the_size_of_an_effect_that_counts_is_a_parameter(fitted):
    small = clone(fitted).set_params(effect=0.05).fit(FRAME, Y)
    p = av.select(small.problem_, small.posterior_, threshold=0.05)["p_active_feature"].values
    np.testing.assert_array_equal(small.feature_importances_, p)
    np.testing.assert_array_equal(small.posterior_["posterior"]["eta"],
                                  fitted.posterior_["posterior"]["eta"])  # fmt: skip
    assert (p >= fitted.feature_importances_).all()
    assert (p > fitted.feature_importances_).any()
    assert "effect above 0.05" in str(small)
    with pytest.raises(InputError, match="effect must be a finite number above 0, got 0"):
        clone(fitted).set_params(effect=0).fit(FRAME, Y)


def test_support_is_the_posteriors(fitted):
    found = av.select(fitted.problem_, fitted.posterior_)
    p = found["p_active_feature"].values
    np.testing.assert_array_equal(fitted.feature_importances_, p)
    np.testing.assert_array_equal(fitted.get_support(), p > 0.5)
    assert fitted.get_support()[1]  # what the labels are made of
    assert not fitted.get_support()[3]  # constant
    kept = fitted.get_feature_names_out()
    assert list(kept) == list(FRAME.columns[p > 0.5])
    np.testing.assert_array_equal(fitted.transform(FRAME), X[:, p > 0.5])
    every = clone(fitted).set_params(threshold=-1.0).fit(FRAME, Y)
    assert every.get_support().all()
    assert every.relevance_.tolist() == list(range(40))
    rows = found["p_active_sample"].values > 0.5
    np.testing.assert_array_equal(fitted.relevance_, np.flatnonzero(rows))


@ignoring
@pytest.mark.usefixtures("methods")
@pytest.mark.parametrize(
    ("model", "hypers"),
    [
        ("pfcvm", {"kernel": "linear"}),
        ("rfvm", {}),
        ("jcfo", {"kernel": "linear"}),
        ("jcfo", {"kernel": "polynomial", "degree": 1}),
        ("rvm", {"kernel": "linear", "feature_scale": 0.5}),
        ("sparse_probit", {}),
        ("horseshoe", {}),
        ("fsklr", {"kernel": "linear", "delta": 0.3}),
    ],
)
def test_coefficients_give_the_posterior_mean_of_eta(model, hypers):
    one = classifier(model, hypers=hypers, method="prior", method_options=None).fit(X, Y)
    eta = one.posterior_["posterior"]["eta"].mean(("chain", "draw")).values
    assert one.coef_.shape == (1, 4)
    np.testing.assert_allclose(X @ one.coef_[0] + one.intercept_[0], eta, rtol=1e-6, atol=1e-8)
    # each draw's own plane, by least squares over the rows that vary
    draws = one.posterior_["posterior"]["eta"].values.reshape(-1, 40)
    plane = np.column_stack([X[:, :3], np.ones(40)])
    w = np.linalg.lstsq(plane, draws.T, rcond=None)[0].T  # (S, 4)
    assert one.coef_sd_.shape == (1, 4)
    np.testing.assert_allclose(one.coef_sd_[0, :3], w[:, :3].std(0), rtol=1e-5, atol=1e-9)
    spread = X.std(axis=0)
    np.testing.assert_allclose(one.effects_[:3, 0], one.coef_[0, :3] * spread[:3], rtol=1e-6)
    ends = np.quantile(w[:, :3] * spread[:3], [0.05, 0.95], axis=0).T
    np.testing.assert_allclose(one.effects_[:3, 1:], ends, rtol=1e-5, atol=1e-9)
    assert one.effects_[3].tolist() == [0.0, 0.0, 0.0]  # constant


@ignoring
@pytest.mark.usefixtures("methods")
def test_there_are_no_coefficients_where_eta_is_not_linear():
    one = classifier(hypers={"kernel": "rbf"}, method="prior")
    assert not hasattr(one, "coef_")
    with pytest.raises(NotFittedError):
        _ = one.relevance_
    one.fit(X, Y)
    assert not hasattr(one, "coef_")
    assert hasattr(one, "relevance_")
    for name in ("coef_", "coef_sd_", "intercept_"):
        with pytest.raises(AttributeError, match=r"rbf kernel\. effects_ has the average partial"):
            getattr(one, name)
    found = av.effects(one.posterior_)[["effect", "low", "high"]]
    np.testing.assert_array_equal(one.effects_, found)


def test_the_text_has_the_effects_beside_the_prior(fitted):
    text = str(fitted)
    assert text.startswith(f"{fitted!r}\nOn average ")
    assert "the prior expects" in text
    assert str(clone(fitted)) == repr(clone(fitted))


@ignoring
@pytest.mark.usefixtures("methods")
@pytest.mark.parametrize("model", list(ZOO))
def test_every_model_fits_predicts_and_is_pickled(model):
    one = clone(classifier(model, method="prior", method_options=None)).fit(X, Y)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(one.decision_function(X), again.decision_function(X))
    assert set(again.predict(X)) <= {"ill", "well"}
    assert again.status_ == one.posterior_.attrs["status"]
    scores_only = ZOO[model].link == "identity"
    assert hasattr(one, "predict_proba") is not scores_only
    assert hasattr(one, "relevance_") is ("sample_weight" in ZOO[model].shared)


@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
def test_random_state_repeats_a_fit():
    def draws(state):
        one = classifier().set_params(random_state=state).fit(X, Y)
        return one.posterior_["posterior"]["eta"].values

    first = draws(seed(1))
    np.testing.assert_array_equal(first, draws(seed(1)))
    assert not np.array_equal(first, draws(seed(2)))
    shared = np.random.RandomState(1)
    assert not np.array_equal(draws(shared), draws(shared))


def test_a_pickle_leaves_out_what_follows_from_the_draws(fitted):
    kept = fitted.__getstate__()["posterior_"]
    assert {"posterior", "selection", "fit"} <= set(kept.children)
    derived = {"log_prior", "pointwise_log_likelihood", "constant_data"}
    assert not derived & set(kept.children)
    whole = vars(fitted)["posterior_"]
    spared = sum(whole[n].to_dataset(inherit=False).nbytes for n in derived & set(whole.children))
    assert len(pickle.dumps(vars(fitted))) - len(pickle.dumps(fitted)) > spared > 0
    again = pickle.loads(pickle.dumps(fitted))
    assert again.posterior_.identical(fitted.posterior_)
    np.testing.assert_array_equal(again.predict_proba(FRAME), fitted.predict_proba(FRAME))
    np.testing.assert_array_equal(again.get_support(), fitted.get_support())
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    assert again.problem_.fingerprint == fitted.problem_.fingerprint
    assert str(again) == str(fitted)


def test_sparse_input_is_made_dense():
    form = sparse.csc_matrix  # others: test_front_door.py
    few = X * (rng(4).random(X.shape) < 0.5)
    dense, same = classifier().fit(few, Y), classifier().fit(form(few), Y)
    np.testing.assert_array_equal(same.predict_proba(form(few)), dense.predict_proba(few))
    assert same.get_support().any()
    chosen = same.transform(form(few))
    assert sparse.issparse(chosen)
    np.testing.assert_array_equal(chosen.toarray(), dense.transform(few))


class Reached(Exception):
    """The fit would begin here."""


def test_every_parameter_reaches_the_function_that_it_is_for(monkeypatch):
    """Each has a value that is not its default and that no other one has."""
    asked = []

    def reached(*args, **named):
        asked.append((args, named))
        raise Reached

    monkeypatch.setattr("ardvark.sklearn.fit", reached)
    of_posterior = {"active_features": 1.5, "active_samples": 4.5, "slab": 2.0, "kernel": "rbf"}
    given = {"draws": 11, "chains": 3, "method_options": {"starts": 13}, "hypers": {"bias_sd": 2.5}}
    one = SparseBayesClassifier(
        "pfcvm", "laplace", **of_posterior, **given, always=["age"], standardize=False,
        random_state=7, verbose=True,
    )  # fmt: skip
    with pytest.raises(Reached):
        one.fit(FRAME, Y)
    ((mine, method), rest) = asked[0]
    expected = av.problem(
        "pfcvm", FRAME, Y, always=["age"], standardize=False, bias_sd=2.5, **of_posterior
    )
    assert mine.fingerprint == expected.fingerprint
    assert method == "laplace"
    assert rest.pop("random_seed") == np.random.RandomState(7).randint(2**31 - 1)
    assert rest == {
        "draws": 11, "chains": 3, "starts": 13, "progressbar": True, "keep": "shared"
    }  # fmt: skip


@ignoring
@pytest.mark.usefixtures("methods")
def test_hyperparameters_have_parameters_of_their_own():
    def fitted_problem(**given):
        return classifier(method="prior", **given).fit(X, Y).problem_

    hypers = {"active_features": 1.5, "active_samples": 4.5, "slab": 2.0, "kernel": "rbf"}
    one, other = fitted_problem(**hypers), fitted_problem(hypers=hypers)
    assert one.fingerprint == other.fingerprint
    for problem in (one, fitted_problem(**hypers, hypers={"slab": None})):
        assert {name: getattr(problem.asked, name) for name in hypers} == hypers


# --- scikit-learn's tools -------------------------------------------------------------------------


def test_cross_validation_calibration_and_several_classes():
    one = classifier("sparse_probit")
    scores = cross_val_score(one, FRAME, Y, cv=2, scoring="roc_auc")
    assert (scores > 0.5).all()
    calibrated = CalibratedClassifierCV(one, cv=2).fit(FRAME, Y)
    assert calibrated.predict_proba(FRAME).shape == (40, 2)
    three = np.digitize(X[:, 1], [0.0, 10.0])
    found = OneVsRestClassifier(one).fit(X, three)
    assert (found.predict(X) == three).mean() > 0.7


class Nothing:
    """A method that finds no weight, so that every decision is a tie."""

    NAME, KIND, Options = "nothing", "point", Settings

    @staticmethod
    def supports(target):
        return None

    @staticmethod
    def fit(target, options, job):
        shapes = target.problem.shapes
        names = ("feature_weight", "sample_weight", "bias", "eta")
        return Result({name: np.zeros((1, 1, *shapes[name])) for name in names})


def test_a_tie_is_the_first_class_for_all(monkeypatch):
    """The estimator, the table and the refits count alike: a constant decision is one class."""
    monkeypatch.setattr(registry, "BACKENDS", dict(BACKENDS))
    register_backend(Nothing)
    with pytest.warns(UserWarning, match="nearly constant: .* 0.5 to 0.5"):
        one = classifier(method="nothing").fit(X, Y)
    np.testing.assert_array_equal(one.predict_proba(X), 0.5)
    assert set(one.predict(X)) == {one.classes_[0]}
    share = float((one.classes_[0] == Y).mean())
    assert 0.3 < share < 0.7
    assert one.score(X, Y) == share
    test = one.problem_.data
    table = av.compare({"nothing": one.posterior_}, problem=one.problem_, test=test).table
    assert table.loc["nothing", "accuracy"] == share
    # without one sample the answer is the same
    few = ["ill", "ill", "well", "well", "well", "well"]
    with pytest.warns(UserWarning, match="nearly constant"):
        left_out = cross_val_predict(classifier(method="nothing"), X[:6], few, cv=LeaveOneOut())
    assert set(left_out) == {"ill"}


def test_it_selects_features_for_others():
    chosen = classifier().set_output(transform="pandas").fit(FRAME, Y)
    kept = FRAME.loc[:, chosen.get_support()]
    pd.testing.assert_frame_equal(chosen.transform(FRAME), kept)
    pipeline = make_pipeline(classifier(), LogisticRegression()).fit(FRAME, Y)
    assert pipeline[-1].n_features_in_ == kept.shape[1]
    by_probability = SelectFromModel(
        classifier(), threshold=0.5, importance_getter="feature_importances_"
    ).fit(FRAME, Y)
    np.testing.assert_array_equal(by_probability.get_support(), chosen.get_support())


def test_names_of_a_frame_are_the_problems():
    one = classifier().fit(FRAME, Y)
    assert one.feature_names_in_.tolist() == list(FRAME.columns)
    assert one.problem_.data.feature_names == tuple(FRAME.columns)
    assert one.problem_.data.sample_names == tuple(FRAME.index)
    assert one.problem_.data.class_names == ("ill", "well")
    repeated = classifier().fit(FRAME.set_axis(["p"] * 40), Y)
    assert repeated.problem_.data.sample_names[:2] == ("0", "1")
    with pytest.raises(ValueError, match="feature names should match"):
        one.predict(FRAME.rename(columns={"age": "years"}))


# --- what is refused, and what is warned of -------------------------------------------------------


def warned(caplog):
    """What the logger warned of; another test may have set it to tell more."""
    return [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_no_convergence_is_a_warning_with_the_remedy(caplog):
    with pytest.warns(ConvergenceWarning) as caught:
        one = classifier(method_options={"max_iterations": 1}).fit(X, Y)
    message = str(caught[0].message)
    assert one.status_ == "not_converged"
    assert one.posterior_.attrs["reason"] in message
    assert "method_options={'max_iterations': ...}" in message
    assert "method='exact'" in message
    assert caught[0].filename == __file__
    assert not warned(caplog)  # told once
    av.fit(one.problem_, "paper", max_iterations=1, draws=4, chains=1, progressbar=False)
    assert "not_converged" in caplog.text  # where nobody else tells it


def test_the_default_is_exact_and_says_how_to_go_on():
    assert SparseBayesClassifier().method == "exact"
    options = {"limit": 256, "sampler": "gibbs"}
    one = classifier("sparse_probit", method="exact", method_options=options)
    with pytest.warns(ConvergenceWarning) as caught:
        one.fit(X, Y)
    message = str(caught[0].message)
    assert "method_options={'limit': 1024}" in message
    # what it advises can be done, also with a stored classifier, whose states are kept
    again = pickle.loads(pickle.dumps(one))
    advised = message.split("classifier.posterior_ = ardvark.")[1].rstrip(".")
    go_on = advised.replace("classifier", "again").replace(")", ", progressbar=False)")
    again.posterior_ = eval(f"av.{go_on}")
    assert again.posterior_.attrs["iterations"] > one.posterior_.attrs["iterations"]
    assert again.status_ == again.posterior_.attrs["status"]
    hasty = clone(one).set_params(method_options={"minutes": 1e-5, "sampler": "gibbs"})
    with pytest.warns(ConvergenceWarning, match=r"method_options=\{'minutes': 4e-05\}"):
        hasty.fit(X, Y)


@pytest.mark.usefixtures("methods")
@pytest.mark.parametrize("method", ["paper", "chain"])
def test_nearly_constant_predictions_are_told(method):
    noise = rng(3).normal(size=(60, 3))
    labels = np.arange(60) % 2
    hypers = {"active_features": 0.01, "active_samples": 0.1, "slab": 0.02}
    one = classifier("rfvm", method=method, method_options=None, draws=100, **hypers)
    with pytest.warns(UserWarning, match="nearly constant|has not converged") as every:
        one.fit(noise, labels)
    caught = [w for w in every if "nearly constant" in str(w.message)]
    message = str(caught[0].message)
    assert re.search(r"at the training rows, P\('1'\) is 0\.\d+ to 0\.\d+", message)
    assert "may be the truth" in message
    assert ("try method='exact'" in message) is (method == "paper")
    assert caught[0].filename == __file__
    odds = one.decision_function(noise)
    assert odds.std() < 0.1
    assert f"vary by {odds.std():.2g} " in message


def test_weights_are_refused_in_a_pipeline_too():
    pipeline = make_pipeline(StandardScaler(), classifier())
    with pytest.raises(InputError, match="sample_weight is not accepted"):
        pipeline.fit(X, Y, sparsebayesclassifier__sample_weight=np.ones(40))
    classifier().fit(X, Y, sample_weight=None)
    assert "sample_weight" not in inspect.signature(SparseBayesClassifier.fit).parameters
    with pytest.raises(TypeError, match="unexpected keyword argument 'drows'"):
        SparseBayesClassifier(drows=3)


def test_a_fit_without_a_result_is_an_error(monkeypatch, caplog):
    def nothing(target, options, job):
        raise FitFailed("there is nothing to return")

    words = {"NAME": "empty", "KIND": "point", "Options": Settings, "fit": nothing}
    monkeypatch.setattr(registry, "BACKENDS", dict(BACKENDS))
    register_backend(type("Empty", (), {**words, "supports": lambda target: None}))
    with pytest.raises(FitFailed, match="empty: there is nothing to return"):
        classifier(method="empty").fit(X, Y)
    assert not warned(caplog)
