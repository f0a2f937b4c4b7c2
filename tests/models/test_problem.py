"""Problems: what defines a posterior, and what is refused, with the message a user reads."""

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.data import Dataset
from ardvark.models import ZOO, ModelSpec, rfvm
from tests.models import toy_model
from tests.models.forms import ALWAYS
from tests.support import rng

generator = rng(0)
X = generator.normal(size=(12, 3))
Y = np.arange(12) % 2


def frame(**changes):
    columns = {"age": X[:, 0].copy(), "dose": X[:, 1].copy(), "size": X[:, 2].copy()}
    return pd.DataFrame({**columns, **changes}, index=[f"p{i}" for i in range(12)])


def test_heavy_tails_are_warned_of_and_underflow_is_refused(caplog):
    problem = av.problem("rfvm", (X, Y), feature_shape=0.8)
    assert "feature_shape = 0.8" in caplog.text
    assert "second moment" in caplog.text
    caplog.clear()  # E w^2 = E 1 / precision = rate / (shape - 1): finite only above 1
    av.problem("rfvm", (X, Y), feature_shape=1.0, sample_shape=1.001)
    assert "feature_shape = 1:" in caplog.text
    assert "sample_shape" not in caplog.text
    problem.simulate(rng(0))
    with pytest.raises(InputError, match=r"cannot simulate with sample_shape = 0.01"):
        av.problem("rfvm", (X, Y), sample_shape=0.01, active_features="all").simulate(rng(0))


def test_standardisation_is_that_of_the_training_rows():
    problem = av.problem("rfvm", (X, Y))
    np.testing.assert_allclose(problem.X.mean(0), 0.0, atol=1e-12)
    np.testing.assert_allclose(problem.X.std(0), 1.0)  # ddof = 0
    np.testing.assert_allclose(problem.standardized(X[:2]), (X[:2] - X.mean(0)) / X.std(0))
    raw = av.problem("rfvm", (X, Y), standardize=False)
    np.testing.assert_array_equal(raw.X, X)


def test_basis_as_rows_or_centres():
    order = [5, 8, 0]  # as given: not sorted, and not its own inverse
    rows = av.problem("pfcvm", (frame(), Y), basis=order)
    assert rows.basis_names == ("p5", "p8", "p0")
    np.testing.assert_array_equal(rows.Z, rows.X[order])
    np.testing.assert_array_equal(rows.basis_labels, 2 * Y[order] - 1)
    assert len(set(Y[order])) == 2
    centres = av.problem("rfvm", (X, Y), basis=X[:4] + 0.5)
    assert centres.basis_names[0] == "centre_0"
    np.testing.assert_allclose(centres.Z, centres.X[:4] + 0.5 / X.std(0))


@pytest.mark.parametrize("name", ["pfcvm", "pcvm"])
def test_labels_in_the_basis(name):
    problem = av.problem(name, (X, Y))
    np.testing.assert_array_equal(problem.basis_labels, 2 * Y - 1)
    np.testing.assert_array_equal(problem.model["basis_labels"].get_value(), 2.0 * Y - 1.0)
    other = av.problem(name, (X, Y), basis_labels=np.ones(12))
    assert other.fingerprint != problem.fingerprint


def test_a_fingerprint_is_that_of_the_posterior():
    base = av.problem("rfvm", (X, Y))
    changed = X.copy()
    changed[3, 1] += 1e-9
    others = [
        av.problem("rfvm", (changed, Y)),
        av.problem("rfvm", (X, 1 - Y)),
        av.problem("rfvm", (X, Y), basis=range(6)),
        av.problem("rfvm", (X, Y), standardize=False),
        av.problem("rfvm", (X, Y), bias_sd=2.0),
        av.problem("rfvm", (X, Y), latent_noise="none"),
    ]
    prints = {p.fingerprint for p in others}
    assert len(prints) == len(others)
    assert base.fingerprint not in prints
    assert base.fingerprint == av.problem("rfvm", (X.copy(), Y)).fingerprint
    # a computed value given by hand is the same posterior; another form is too
    solved = {f"{k}_{what}" for k in ("sample", "feature") for what in ("shape", "rate", "slab")}
    given = {name: getattr(base.hypers, name) for name in solved}
    assert base.fingerprint == av.problem("rfvm", (X, Y), **given).fingerprint
    for form in ({"parametrization": "marginal"}, {"latent_noise": "integrated"}):
        other = av.problem("rfvm", (X, Y), **form)
        assert other.fingerprint == base.fingerprint
        assert other.form != base.form


def test_filled_scales_follow_the_table():
    dense = {"active_features": "all", "active_samples": "all"}
    problem = av.problem("rfvm", (X, Y), **dense)
    assert problem.hypers.sample_rate == 1.5
    assert problem.hypers.feature_rate == pytest.approx(1.5 / (12 * 3))
    fat = rfvm.Hypers(**dense).fill(72, 72, 7129)
    assert fat.feature_rate == pytest.approx(1.5 / 7129**2)


# --- the same problem with other hyperparameters --------------------------------------------------


def test_other_hyperparameters_are_those_of_a_new_problem():
    """What was given stays, what is filled from sizes or from the change is filled anew."""
    labels = np.where(np.arange(12) % 3 == 0, 1, -1)
    given = {"active_features": 1.0, "bias_sd": 2.0}
    made = {"basis": np.arange(12), "basis_labels": labels, "standardize": False}
    problem = av.problem("pfcvm", (X, Y), **made, **given)
    for change in ({"slab": 3.0}, {"active_features": 0.5}, {"bias_sd": 3.0}):
        found = problem.with_hypers(**change)
        wanted = {**given, **change}
        same = av.problem("pfcvm", (X, Y), **made, **wanted)
        assert found.hypers == same.hypers
        assert found.fingerprint == same.fingerprint != problem.fingerprint
        assert found.asked.given() == wanted
        np.testing.assert_array_equal(found.basis_labels, labels)
    taken_back = problem.with_hypers(active_features=None).hypers
    assert taken_back == av.problem("pfcvm", (X, Y), **made, bias_sd=2.0).hypers
    twice = problem.with_hypers(slab=3.0).with_hypers(bias_sd=3.0)  # the first change stays
    both = {**given, "slab": 3.0, "bias_sd": 3.0}
    assert twice.hypers == av.problem("pfcvm", (X, Y), **made, **both).hypers
    assert problem.with_hypers().fingerprint == problem.fingerprint
    assert problem.asked.given() == given


def test_other_hyperparameters_of_some_rows_are_filled_from_those():
    problem = av.problem("rfvm", (X, Y)).take(np.arange(10))
    changed = problem.with_hypers(slab=3.0)
    assert changed.data.N == 10
    assert changed.hypers == av.problem("rfvm", (X[:10], Y[:10]), slab=3.0).hypers


# --- stored and sent ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", list(ZOO))
def test_a_problem_is_pickled_without_what_can_be_made_again(model):
    problem = av.problem(model, (frame(), Y))
    without = len(pickle.dumps(problem))
    _ = problem.model, problem.X, problem.fingerprint
    stored = pickle.dumps(problem)
    assert len(stored) <= without  # no pm.Model, no second X
    for again in (pickle.loads(stored), copy.deepcopy(problem)):
        assert again.fingerprint == problem.fingerprint
        assert again.form == problem.form
        assert again.describe() == problem.describe()
        assert again.data.sample_names == problem.data.sample_names
        assert again.take(np.arange(6)).fingerprint == problem.take(np.arange(6)).fingerprint
        with pytest.raises(ValueError, match="read-only"):
            again.data.X[0, 0] = 7.0


# --- columns that are always in the model ---------------------------------------------------------


def test_the_columns_values_and_prior_are_part_of_the_fingerprint():
    data = Dataset.from_arrays(rng(0).normal(size=(9, 6)), np.arange(9) % 2)
    own = av.problem("rfvm", data, always=ALWAYS)
    X = np.array(data.X)
    X[3, 4] += 0.5
    others = [
        av.problem("rfvm", data, always="x5"),
        av.problem("rfvm", data, always=ALWAYS, covariate_sd=1.0),
        av.problem("rfvm", dataclasses.replace(data, X=X), always=ALWAYS),
        av.problem("rfvm", data, always=ALWAYS, standardize=False),
    ]
    assert len({own.fingerprint, *(p.fingerprint for p in others)}) == 5
    assert own.form == others[0].form
    assert av.problem("rfvm", data, always=ALWAYS).fingerprint == own.fingerprint


def test_a_fold_is_the_problem_of_its_rows():
    """Covariates are standardised again on the rows that stay, and the basis follows them."""
    data = Dataset.from_arrays(rng(0).normal(size=(12, 6)), np.arange(12) % 2)
    rows = [0, 1, 3, 4, 7, 8, 10]
    for basis in (None, [0, 2, 3, 8]):
        problem = av.problem("rfvm", data, always=ALWAYS, basis=basis)
        fold = problem.take(rows)
        asked = None if basis is None else [0, 2, 5]
        fresh = av.problem("rfvm", data.take(rows), always=ALWAYS, basis=asked)
        for name in ("X", "Z", "C"):
            np.testing.assert_array_equal(getattr(fold, name), getattr(fresh, name))
        assert fold.always == ALWAYS
        assert fold.basis_names == fresh.basis_names
    new = problem.at(data.X[rows])
    np.testing.assert_allclose(new.C, problem.C[rows])
    np.testing.assert_allclose(new.X, problem.X[rows])


def table(N=24):
    draws = rng(3)
    frame = pd.DataFrame(draws.normal(size=(N, 3)), columns=["g1", "g2", "g3"])
    frame["age"] = draws.normal(60.0, 9.0, N)
    frame["sex"] = np.where(np.arange(N) % 3 == 0, "m", "f")
    frame["batch"] = np.array(["a", "b", "c"])[np.arange(N) % 3]
    return frame.assign(diagnosis=np.where(np.arange(N) % 2 == 0, "ill", "well"))


@pytest.mark.parametrize("split", [False, True])
def test_a_text_column_has_a_covariate_for_each_level_but_one(split):
    """Of a frame, with the labels in it or beside it: as `av.table` encodes text."""
    frame, names = table(), ["age", "sex", "batch"]
    given = (frame.drop(columns="diagnosis"), frame["diagnosis"]) if split else (frame, "diagnosis")
    problem = av.problem("rfvm", *given, always=names)
    assert problem.always == ("age", "sex=m", "batch=b", "batch=c")  # batch a is the reference
    assert problem.feature_names == ("g1", "g2", "g3")
    np.testing.assert_allclose(problem.C.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(problem.C.std(axis=0), 1.0)
    assert (problem.C[:, 1] > 0).tolist() == (frame["sex"] == "m").tolist()
    whole = av.table(frame, "diagnosis", encode="onehot")
    assert av.problem("rfvm", whole, always=names).fingerprint == problem.fingerprint
    assert av.problem("rfvm", whole, always="batch=b").always == ("batch=b",)


def test_a_problem_says_what_is_always_in_it():
    problem = av.problem("rfvm", table(), "diagnosis", always=["age", "sex", "batch"])
    assert "always in the model: age, sex=m, batch=b, batch=c" in problem.describe()
    assert "covariate_sd     2.5" in problem.describe()
    assert "always in the model" in problem._repr_html_()
    assert "D=3, K=4" in repr(problem)
    assert problem.with_hypers(covariate_sd=1.0).hypers.covariate_sd == 1.0


def test_a_model_without_a_place_for_covariates_says_so(monkeypatch):
    monkeypatch.setitem(ZOO, "toy", ModelSpec.of(toy_model))
    with pytest.raises(InputError, match="takes no covariates"):
        av.problem("toy", table(), "diagnosis", always=["age", "sex", "batch"])


def test_other_rows_need_their_covariates():
    data = Dataset.from_arrays(rng(0).normal(size=(9, 6)), np.arange(9) % 2)
    problem = av.problem("rfvm", data, always=ALWAYS)
    point = problem.simulate(rng(0))
    with pytest.raises(InputError, match="2 covariate"):
        problem.decision(point, problem.X[:2])
    np.testing.assert_allclose(
        problem.decision(point, problem.at(problem.data.X[:2])), point["eta"][:2]
    )
