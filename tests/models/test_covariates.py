"""Columns that are always in the model (`always=`): its density, its draws, and which they are."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.data import Dataset
from ardvark.models import ZOO, ModelSpec
from tests.models import toy_model
from tests.models.forms import (
    Compiled,
    at_own_labels,
    every_model,
    in_short,
    make,
    prior_points,
    stacked,
    unlike,
)
from tests.support import ALARM, rng

ALWAYS = ("x5", "x2")  # neither the first columns, nor in the order of the data
TWO_FORMS = [
    pytest.param(name, choice, id="-".join([name, *choice.values()]))
    for name, spec in ZOO.items()
    for choice in {str(c): c for c in (in_short(spec)[0], in_short(spec)[-1])}.values()
]


def adjusted(name, choice=None, **settings):
    """Return a problem with four features and two covariates, and no two equal hyperparameters."""
    given = unlike(name, choice=choice, covariates=True) | settings
    return make(name, choice, N=9, D=6, always=ALWAYS, **given)


# --- the density ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "choice"), TWO_FORMS)
def test_pymc_density_is_the_papers_density(name, choice):
    """Seen by no other test: a covariate, or its prior, in one of `build` and `log_joint` only."""
    problem = adjusted(name, choice, **({"basis": [5, 8, 0, 3]} if ZOO[name].has_basis else {}))
    compiled, points = Compiled(problem), prior_points(problem, 6)
    ours = np.array([float(at_own_labels(problem, point)) for point in points])
    theirs = np.array([compiled.densities(point)[0] for point in points])
    assert np.isfinite(ours).all()
    assert np.abs(ours - theirs).max() < 1e-6 + 1e-10 * np.abs(ours).max()
    assert problem.shapes["covariate_weight"] == (2,)
    assert problem.model.named_vars_to_dims["covariate_weight"] == ("covariate",)
    together = at_own_labels(problem, stacked(points))
    np.testing.assert_allclose(together, ours, rtol=1e-12)


@every_model
def test_covariates_add_their_own_normal_prior_and_a_linear_part(name):
    """Against the model without them, from columns standardised by hand.

    Seen by no other test: an error that `build` and `log_joint` share, such as a wrong column.
    """
    problem = adjusted(name)
    kept = [k for k, n in enumerate(problem.data.feature_names) if n not in ALWAYS]
    without = Dataset.from_arrays(problem.data.X[:, kept], problem.y)
    alone = av.problem(name, without, **unlike(name))
    point = prior_points(problem, 1)[0]
    g, raw = point["covariate_weight"], problem.data.X[:, [4, 1]]
    C = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    np.testing.assert_array_equal(problem.X, alone.X)
    shift = problem.decision(point) - alone.decision(point)
    np.testing.assert_allclose(shift, C @ g, atol=1e-12)
    eta = problem.decision(point)
    assert problem.spec.log_jacobian(point, problem.hypers) == alone.spec.log_jacobian(
        point, alone.hypers
    )
    if "z" in point and "u" not in point and problem.spec.link == "probit":
        return  # the latent form's likelihood is another one
    if "u" in point:  # explicit noise: of u, whose mean is eta
        point = {k: v for k, v in point.items() if k != "u"}
        problem, alone = (p.with_hypers(latent_noise="integrated") for p in (problem, alone))
    y = (np.arange(9) % 2).astype(float)
    of_labels = [
        p.spec.log_predictive(y, at, point, p.hypers).sum()
        for p, at in ((problem, eta), (alone, alone.decision(point)))
    ]
    found = problem.spec.log_joint(point, problem.inputs, y, problem.hypers)
    before = alone.spec.log_joint(point, alone.inputs, y, alone.hypers)
    prior = stats.norm.logpdf(g, 0.0, 0.6).sum()
    assert found - before == pytest.approx(prior + of_labels[0] - of_labels[1], abs=1e-8)


@every_model
@pytest.mark.statistical
def test_weights_are_drawn_from_their_prior(name):
    problem = adjusted(name)
    drawn = np.array([p["covariate_weight"] for p in prior_points(problem, 300)])
    p = stats.kstest(drawn.ravel(), stats.norm(0.0, 0.6).cdf).pvalue
    assert p > ALARM / len(ZOO)
    assert stats.kstest(drawn.ravel(), stats.norm(0.0, 1.0).cdf).pvalue < 1e-6  # the control


@every_model
def test_the_prior_of_covariates_is_part_of_the_log_prior(name):
    problem = adjusted(name)
    point = prior_points(problem, 1)[0]
    moved = point | {"covariate_weight": point["covariate_weight"] + 1.0}
    before, after = (problem.log_prior(p)["rest"] for p in (point, moved))
    g = point["covariate_weight"]
    expected = stats.norm.logpdf(g + 1.0, 0.0, 0.6).sum() - stats.norm.logpdf(g, 0.0, 0.6).sum()
    assert after - before == pytest.approx(expected, abs=1e-9)


# --- without any, and who they are ----------------------------------------------------------------


@every_model
def test_without_covariates_nothing_is_said_of_them(name):
    problem = make(name)
    assert problem.C is None
    assert "covariate" not in problem.coords
    assert not [n for n in problem.shapes if "covariate" in n]
    assert not [n for n in problem.simulate(rng(0)) if "covariate" in n]
    assert "covariate_sd" not in problem.recorded() | problem.posterior_fields()


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


@pytest.mark.parametrize(
    ("data", "given", "message"),
    [
        (table(), {"always": ["agee"]}, "unknown column 'agee'"),
        (table(), {"always": ["diagnosis"]}, "unknown column 'diagnosis'"),
        (table()[["g1", "g2", "diagnosis"]], {"always": ["g1", "g2"]}, "every column"),
        (table(), {"always": 3}, "list of column names"),
        (table()[["g1", "diagnosis"]], {"covariate_sd": 1.0}, "there are none"),
        (table().assign(site="x"), {"always": ["sex", "batch"]}, "cannot be used"),
        (table().assign(age=np.nan), {"always": ["age", "sex", "batch"]}, "cannot be used"),
    ],
)
def test_what_cannot_be_is_one_error(data, given, message):
    with pytest.raises(InputError, match=message):
        av.problem("rfvm", data, "diagnosis", **given)


def test_arrays_have_no_names_to_be_always_in():
    with pytest.raises(InputError, match="without names"):
        av.problem("rfvm", np.eye(4), [0, 1, 0, 1], always=["x1"])


def test_a_model_without_a_place_for_covariates_says_so(monkeypatch):
    monkeypatch.setitem(ZOO, "toy", ModelSpec.of(toy_model))
    with pytest.raises(InputError, match="takes no covariates"):
        av.problem("toy", table(), "diagnosis", always=["age", "sex", "batch"])


def test_other_rows_need_their_covariates():
    problem = adjusted("rfvm")
    point = problem.simulate(rng(0))
    with pytest.raises(InputError, match="2 covariate"):
        problem.decision(point, problem.X[:2])
    np.testing.assert_allclose(
        problem.decision(point, problem.at(problem.data.X[:2])), point["eta"][:2]
    )
