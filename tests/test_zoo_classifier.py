"""The stack as a scikit-learn estimator: its checks, and agreement with `choose`."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import ardvark as av
from ardvark.sklearn import ZooClassifier
from tests.inference.comparison.quick import Prior, registered
from tests.support import rng

generator = rng(0)
X = pd.DataFrame(generator.normal(size=(36, 3)), columns=["age", "dose", "size"])
Y = np.where(X["dose"] + 0.5 * generator.normal(size=36) > 0, "well", "ill")
PLAIN = ["ridge", "share"]
pytestmark = pytest.mark.usefixtures("few_penalties")

ignoring = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
QUICK = {"folds": 2, "draws": 20, "chains": 2, "random_state": 0}


@ignoring
def test_scikit_learns_checks_pass():
    one = ZooClassifier(["sparse_probit:scale=fixed", "share"], method="paper", **QUICK)
    check_estimator(one, on_skip=None)


@pytest.mark.slow
@ignoring
def test_scikit_learns_checks_pass_with_an_exact_sampler():
    options = {"limit": 256, "cores": 1}
    one = ZooClassifier(["rfvm", "share"], fold_options=options, method_options=options, **QUICK)
    check_estimator(one, on_skip=None)


def test_it_is_the_stack_of_a_choice():
    one = ZooClassifier(PLAIN, random_state=3).fit(X, Y)
    assert one.classes_.tolist() == ["ill", "well"]
    seed = int(np.random.RandomState(3).randint(np.iinfo(np.int32).max))
    choice = av.choose(X, Y, candidates=PLAIN, random_seed=seed, progressbar=False)
    pd.testing.assert_series_equal(one.choice_.weights, choice.weights)
    p = choice.fit(progressbar=False).predict_proba(X)
    np.testing.assert_array_equal(one.predict_proba(X), p)
    np.testing.assert_allclose(one.decision_function(X), np.log(p[:, 1] / p[:, 0]), rtol=1e-9)
    np.testing.assert_array_equal(one.predict(X), np.where(p[:, 1] > 0.5, "well", "ill"))
    found = one.stack_.predict(X)
    assert (found["low"] <= found["high"]).all()
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.predict_proba(X), p)
    assert str(again) == str(one)
    assert "Best on the rows held out" in str(one)
    assert str(clone(one)) == repr(clone(one))


def test_columns_that_are_always_in_the_model(monkeypatch):
    registered(monkeypatch, Prior)
    asked = {"candidates": ["rfvm", "share"], "method": "prior", "always": ["age"], "draws": 20}
    one = ZooClassifier(**asked, random_state=3).fit(X, Y)
    seed = int(np.random.RandomState(3).randint(np.iinfo(np.int32).max))
    scores = [
        av.choose(X, Y, **asked | {"always": kept}, random_seed=seed, progressbar=False).table[
            "log_score"
        ]["rfvm"]
        for kept in (["age"], [])
    ]
    assert one.choice_.table["log_score"]["rfvm"] == scores[0] != scores[1]
    with pytest.raises(av.InputError, match="which has names"):
        ZooClassifier(**asked).fit(X.to_numpy(), Y)


def test_scores_of_cross_validation_are_of_whole_choices():
    scores = cross_val_score(ZooClassifier(PLAIN, folds=3, random_state=0), X, Y, cv=2)
    assert scores.shape == (2,)
    assert (scores > 0.5).all()


def test_what_has_not_converged_is_warned_of(monkeypatch):
    class Chain(Prior):
        """Independent draws that are too few to have converged."""

        NAME, KIND = "chain", "mcmc"

    registered(monkeypatch, Chain)
    one = ZooClassifier(["rfvm"], method="chain", draws=10, chains=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="rfvm has not converged"):
        one.fit(X, Y)
    with pytest.raises(av.InputError, match="sample_weight is not accepted"):
        one.fit(X, Y, sample_weight=np.ones(36))
