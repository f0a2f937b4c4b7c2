"""A column without variation in the training rows contributes nothing to any row, anywhere.

A weight that no training row tells anything of has its prior's spread. Times the value of a new row
it may be larger than all that was learned.
"""

import hashlib
import json
import logging

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.choosing.candidates import Plain
from ardvark.inference.fits.covariates import always_text
from ardvark.inference.methods.prediction import linear_rule
from ardvark.inference.scoring.baselines import baselines
from ardvark.models import ZOO
from ardvark.sklearn import SparseBayesClassifier
from tests.inference.comparison.quick import Prior, registered
from tests.inference.fits.weights import IDS, KERNELS
from tests.support import rng, seed

N = 20
Y = np.arange(N) % 2
FEW = {"method": "prior", "draws": 20, "chains": 1}
STILL = {
    "zeros": np.zeros(N),
    "a tenth": np.full(N, 0.1),
    "large": np.full(N, 1e9 / 7.0),
    "small": np.full(N, 1e-9 / 7.0),
    "one sum in two orders": np.where(Y == 1, 0.3, 0.1 + 0.2),
    "large, rounded": 1e9 + np.spacing(1e9) * (np.arange(N) % 3 - 1),
}
"""Columns that are constant, some of them but for rounding."""
MOVING = {
    "one row differs": np.where(np.arange(N) == 7, 3.0, 2.0),
    "rare": np.where(np.arange(N) < 2, 1.0, 0.0),
    "large": 1e9 + 1e-3 * np.arange(N),
    "small": 1e-9 * (1.0 + np.arange(N)),
}
"""Columns that vary, though little."""
SOME = {kind: STILL[kind] for kind in ("a tenth", "one sum in two orders")}
each_kind = pytest.mark.parametrize("still", list(STILL.values()), ids=list(STILL))
some_kinds = pytest.mark.parametrize("still", list(SOME.values()), ids=list(SOME))


def table(still, number=0):
    """Return a frame in which `gene` and `site` are the same column, and `age` and `x` vary."""
    draws = rng(number).normal(size=(N, 2))
    return pd.DataFrame({"x": draws[:, 0], "gene": still, "age": draws[:, 1], "site": still})


def changed(frame, values=(-1e5, 1e5, 1.0, 0.0)):
    """Return the first rows with other values in both columns without variation."""
    return frame.iloc[: len(values)].assign(gene=list(values), site=list(reversed(values)))


def points(problem, size=4):
    """Return draws of the prior, stacked; it is wider than a posterior."""
    draws = rng(1)
    found = [problem.simulate(draws) for _ in range(size)]
    return {name: np.stack([point[name] for point in found]) for name in found[0]}


def eta_at(problem, found, frame):
    """Return eta at the rows of a frame, which are in one order in memory: sums keep their bits."""
    return problem.decision(found, problem.at(np.ascontiguousarray(frame.to_numpy())))


@pytest.fixture
def prior(monkeypatch):
    """The prior as a method: fits that take no time."""
    registered(monkeypatch, Prior)


# --- eta ------------------------------------------------------------------------------------------


@some_kinds
@pytest.mark.parametrize("standardize", [True, False], ids=["standardised", "as it is"])
@pytest.mark.parametrize(("name", "settings"), KERNELS, ids=IDS)
def test_eta_is_the_same_with_any_value(name, settings, standardize, still):
    """Bit by bit, of a feature and of a covariate; also of training rows, whose bias it were."""
    frame = table(still)
    made = {"always": ["site", "age"], "standardize": standardize, **settings}
    problem = av.problem(name, frame, Y, **made)
    other = av.problem(name, frame.assign(gene=-5.0, site=3.0), Y, **made)
    found = points(problem)
    eta = eta_at(problem, found, frame.iloc[:4])
    np.testing.assert_array_equal(eta_at(problem, found, changed(frame)), eta)
    np.testing.assert_array_equal(other.decision(found), problem.decision(found))
    for array in (problem.X[:, 1], problem.Z[:, 1], problem.C[:, 0]):
        assert not array.any()


@some_kinds
@pytest.mark.parametrize(
    ("name", "settings"),
    [(n, s) for n, s in KERNELS if ZOO[n].has_basis],
    ids=[i for i, (n, _) in zip(IDS, KERNELS, strict=True) if ZOO[n].has_basis],
)
def test_centres_of_ones_own_may_vary_where_the_rows_do_not(name, settings, still):
    frame = table(still)[["x", "gene", "age"]]
    centres = frame.iloc[:5].assign(gene=[0.0, 1.0, -2.0, 1e5, 3.0]).to_numpy()
    labels = {"basis_labels": [1, -1, 1, 1, -1]} if ZOO[name].labels_in_basis else {}
    problem, plain = (
        av.problem(name, frame, Y, basis=basis, **labels, **settings)
        for basis in (centres, frame.to_numpy()[:5])
    )
    found = points(problem)
    np.testing.assert_array_equal(problem.decision(found), plain.decision(found))
    eta = eta_at(problem, found, frame.assign(gene=1e5))
    np.testing.assert_array_equal(eta, eta_at(plain, found, frame))


@pytest.mark.parametrize("column", list(MOVING.values()), ids=list(MOVING))
def test_a_column_that_varies_a_little_is_standardised(column):
    problem = av.problem("horseshoe", table(column), Y, always=["site"])
    C, X = problem.C[:, 0], problem.X[:, 1]
    np.testing.assert_allclose([X.mean(), C.mean(), X.std(), C.std()], [0, 0, 1, 1], atol=1e-3)
    found = points(problem)
    further = table(column).assign(site=column + 2.0 * np.ptp(column)).to_numpy()
    assert (problem.decision(found, problem.at(further)) != problem.decision(found)).all()


@each_kind
def test_a_fold_has_the_rule_of_its_own_rows(still):
    """One row differs, and is held out: its value does not count, whatever it is."""
    for name in ("horseshoe", "pfcvm"):
        folds = []
        for value in (1.0 + 2.0 * still[0], 1e5):
            frame = table(np.where(np.arange(N) == 7, value, still))
            problem = av.problem(name, frame, Y, always=["site"], **kernel(name))
            fold = problem.take(np.arange(N) != 7)
            eta = fold.decision(points(fold), fold.at(problem.data.X[7:8]))
            folds.append((fold.fingerprint, *eta.ravel()))
            assert np.isinf(fold.scale[1])
            assert np.isfinite(problem.scale).all()
        assert folds[0] == folds[1]


def kernel(name):
    return {"kernel": "rbf"} if "rbf" in ZOO[name].kernels else {}


def test_a_fold_of_a_table_with_mean_0_and_sd_1_is_standardised():
    """Whether a problem is standardised is not guessed from its numbers."""
    signs = np.column_stack([2.0 * Y - 1.0, np.repeat([1.0, -1.0], N // 2)])
    fold = av.problem("rfvm", signs, Y).take(np.arange(N) > 2)
    np.testing.assert_allclose(fold.X.std(axis=0), 1.0)
    left = av.problem("rfvm", signs, Y, standardize=False).take(np.arange(N) > 2)
    np.testing.assert_array_equal(left.X, signs[3:])


# --- identity -------------------------------------------------------------------------------------


def once(problem, X, basis):
    """Return the fingerprint of a time in which such columns were centred only."""
    center, spread = X.mean(axis=0), X.std(axis=0)
    scale = np.where(X.max(axis=0) == X.min(axis=0), 1.0, spread)
    digest = hashlib.sha256(problem.spec.name.encode())
    for array in ((X - center) / scale, problem.y, (basis - center) / scale, center, scale):
        digest.update(np.ascontiguousarray(array))
    digest.update(b"-" if problem.basis_labels is None else problem.basis_labels)
    digest.update(json.dumps(problem.posterior_fields(), sort_keys=True).encode())
    return digest.hexdigest()[:16]


@each_kind
@pytest.mark.parametrize("name", ["pfcvm", "horseshoe"])
def test_the_fingerprint_is_what_it_was_where_the_posterior_is(name, still):
    """It was another one where a column was scaled by its rounding, or where centres vary."""
    X = np.ascontiguousarray(table(still).to_numpy())
    constant = bool((still == still[0]).all())
    problem = av.problem(name, X, Y, **kernel(name))
    assert (problem.fingerprint == once(problem, X, X)) == constant
    some = av.problem(name, X, Y, basis=[3, 0, 8], **kernel(name))
    assert (some.fingerprint == once(some, X, X[[3, 0, 8]])) == constant
    if name == "pfcvm":
        centres = X[:3] + np.eye(4)[1]
        own = av.problem(name, X, Y, basis=centres, basis_labels=[1, 1, -1], kernel="rbf")
        assert own.fingerprint != once(own, X, centres)


# --- predictions ----------------------------------------------------------------------------------


def warned(caplog):
    """Return the warnings, and forget them."""
    found = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    caplog.clear()
    return found


@pytest.mark.usefixtures("prior")
@pytest.mark.parametrize("standardize", [True, False], ids=["standardised", "as it is"])
def test_a_prediction_names_the_columns_and_the_rows(caplog, standardize):
    frame = table(STILL["one sum in two orders"])
    problem = av.problem("horseshoe", frame, Y, always=["site"], standardize=standardize)
    fit = av.fit(problem, **FEW, random_seed=seed(), progressbar=False)
    before = av.predict(problem, fit, frame)
    assert not warned(caplog)
    new = frame.copy()
    new.index = [f"p{i}" for i in range(N)]
    new.loc["p3":"p11", "gene"], new.loc["p4", "site"] = 1e5, 0.0
    np.testing.assert_array_equal(av.predict(problem, fit, new), before)
    assert warned(caplog) == [
        "9 of 20 rows have a new value in 2 column(s) that did not vary in training, and that "
        "therefore contribute nothing: gene (row p3, p4, p5, p6, p7 and 4 more), site (row p4)"
    ]
    rule = linear_rule(problem, fit)
    still = [frame.columns.get_loc(name) for name in ("gene", "site")]
    assert not rule.coefficients[still].any()
    assert not rule.coefficients_sd[still].any()


@pytest.mark.usefixtures("prior")
@pytest.mark.filterwarnings("ignore:The predictions are nearly constant:UserWarning")
def test_the_estimator_warns_once_and_count_rows_of_the_whole(caplog, monkeypatch):
    X = table(STILL["a tenth"]).to_numpy()
    new = X.copy()
    new[[4, 17], 1] = 1e5
    told = "2 of 20 rows have a new value in 1 column(s)"
    options = {"draws": 20, "chains": 1, "random_state": 0, "method": "prior"}
    one = SparseBayesClassifier("horseshoe", **options)
    monkeypatch.setattr("ardvark.sklearn._CHUNK", 7 * 20)
    p = one.fit(X, Y).predict_proba(X)
    warned(caplog)
    for rows in (new, sparse.csr_array(new)):
        np.testing.assert_array_equal(one.predict_proba(rows), p)
        (said,) = warned(caplog)
        assert said.startswith(told)
        assert said.endswith(": x2 (row 4, 17)")


@pytest.mark.usefixtures("prior")
def test_a_comparison_with_held_out_rows_warns_once(caplog):
    frame = table(STILL["a tenth"])
    train, test = (Dataset.from_arrays(f, Y) for f in (frame, frame.assign(gene=1e5)))
    problem = av.problem("horseshoe", train)
    fits = {
        name: av.fit(problem, **FEW, random_seed=seed(number), progressbar=False)
        for number, name in enumerate(("one", "two"))
    }
    warned(caplog)
    found = av.compare(fits, problem=problem, test=test)
    (said,) = warned(caplog)
    assert said.startswith("20 of 20 rows")
    same = av.compare(fits, problem=problem, test=train)
    assert not warned(caplog)
    np.testing.assert_array_equal(found.table["log_score"], same.table["log_score"])


# --- folds, plain classifiers, panels -------------------------------------------------------------


@pytest.mark.usefixtures("prior", "few_penalties")
def test_a_choice_scores_a_row_without_what_does_not_vary_outside_its_fold(caplog):
    """A count that one row has: how large it is must not matter where that row is held out."""
    words = ("horseshoe", "pfcvm:kernel=rbf", "l1", "ridge", "elastic_net")
    one, two = (
        av.choose(
            Dataset.from_arrays(table(np.where(np.arange(N) == 7, value, 0.1)), Y),
            candidates=words,
            folds=2,
            random_seed=seed(),
            progressbar=False,
            **FEW,
        )
        for value in (1.0, 1e5)
    )
    held = one.folds[:, 0] == one.folds[7, 0]
    for word in words:
        np.testing.assert_array_equal(one.log_p[word][held], two.log_p[word][held])
    assert not warned(caplog)  # nobody asked for these predictions


@pytest.mark.usefixtures("few_penalties")
def test_plain_classifiers_do_without_it():
    frame = table(STILL["one sum in two orders"])
    train, test = (Dataset.from_arrays(f, Y) for f in (frame, frame.assign(gene=1e5, site=-1e9)))
    for kind in ("l1", "ridge", "elastic_net"):
        fitted = Plain(kind).classifier(train.y, 0).fit(train.X, train.y)
        p = [fitted.predict_proba(data.X) for data in (test, train)]
        np.testing.assert_array_equal(*p)
    there, here = (baselines(train, data) for data in (test, train))
    for name in there:
        np.testing.assert_array_equal(there[name].decided, here[name].decided)
    np.testing.assert_array_equal(there["L1 logistic"].p, here["L1 logistic"].p)


@pytest.mark.usefixtures("prior")
@some_kinds
def test_a_panel_gives_it_no_coefficient(still):
    frame = table(still)
    problem = av.problem("horseshoe", frame, Y, always=["site"])
    fit = av.fit(problem, **FEW, random_seed=seed(), progressbar=False)
    panel = av.panel(problem, fit, sizes=[3], folds=2, progressbar=False).at(3)
    assert set(panel.names) == {"x", "gene", "age"}
    coefficients = panel.coefficients[["coefficient", "per_sd"]]
    assert not coefficients.loc[["gene", "site"]].to_numpy().any()
    assert coefficients.loc[["x", "age"]].to_numpy().all()
    assert panel.coefficients.loc[["gene", "site"], "posterior_low"].isna().all()
    model = panel.estimator()
    wild = frame.assign(gene=1e5, site=-1e9)
    np.testing.assert_array_equal(model.predict_proba(wild), model.predict_proba(frame))


@pytest.mark.usefixtures("prior")
def test_no_effect_is_claimed_for_a_covariate_that_does_not_vary():
    """Not an odds ratio of 1, which would be a finding, and not that of the prior."""
    problem = av.problem("horseshoe", table(STILL["a tenth"]), Y, always=["site", "age"])
    fit = av.fit(problem, **FEW, random_seed=seed(), progressbar=False)
    found = av.effects(fit, "covariate")
    assert found.loc["site"].isna().all()
    assert found.loc["age"].notna().all()
    assert ": site (does not vary), age (" in always_text(fit)
    screen = av.compare({"fit": fit}, problem=problem).text()
    assert "  site                 does not vary" in screen
