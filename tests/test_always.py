"""Columns that are always in the model, where a user meets them: effects, files, commands."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import ardvark as av
from ardvark.cli.export import tables
from ardvark.common.validate import InputError
from ardvark.sklearn import SparseBayesClassifier
from tests.inference.comparison.quick import Prior, registered
from tests.made import from_prior
from tests.support import rng, seed

pytestmark = pytest.mark.usefixtures("few_penalties")

PLAIN = {"latent_noise": "none"}  # the form whose density other files compile with covariates


def frame(N=60):
    draws = rng(0)
    found = pd.DataFrame(draws.normal(size=(N, 3)), columns=["g1", "g2", "g3"])
    found.insert(1, "age", draws.normal(60.0, 10.0, N))
    found["smoker"] = (draws.random(N) < 0.4).astype(float)
    eta = 0.12 * (found["age"] - 60.0) + 2.0 * found["g1"]
    return found.assign(status=np.where(eta + draws.logistic(size=N) > 0, "well", "ill"))


def drawn_from(problem):
    return from_prior(problem, chains=3, draws=61)[1]


@pytest.fixture(scope="module")
def problem():
    return av.problem("rfvm", frame(), "status", always=["smoker", "age"], **PLAIN)


@pytest.fixture(scope="module")
def fit(problem):
    """Draws of the prior: what is computed from draws holds of any."""
    return drawn_from(problem)


def test_odds_ratios_are_of_one_unit_of_the_column(problem, fit):
    """By hand, from the draws and the standard deviation of the column in the table."""
    table = av.effects(fit, "covariate")
    assert table.index.tolist() == ["smoker", "age"]
    drawn = fit["posterior"]["covariate_weight"].values.reshape(-1, 2)
    np.testing.assert_allclose(table["effect"], drawn.mean(axis=0))
    for k, name in enumerate(table.index):
        log_ratio = drawn[:, k] / frame()[name].std(ddof=0)
        found = table.loc[name, ["odds_low", "odds_ratio", "odds_high"]].to_numpy(float)
        np.testing.assert_allclose(np.log(found), np.quantile(log_ratio, [0.05, 0.5, 0.95]))
    assert table.attrs["towards"] == "well"
    assert "Always in the model" in " ".join(repr(av.summary(fit)).split())  # wherever lines end


def test_without_covariates_nothing_is_said_of_them():
    own = av.problem("rfvm", frame()[["g1", "g2", "status"]], "status", **PLAIN)
    tree = drawn_from(own)
    assert av.effects(tree, "covariate").empty
    assert "Always" not in av.inference.selection_text(tree)
    effects = tables(own, None, {"gibbs": tree})["effects"]
    assert set(effects.index.get_level_values("kind")) == {"feature", "sample"}


def test_a_probit_model_has_effects_and_no_odds():
    own = av.problem("sparse_probit", frame(), "status", always=["age"])
    assert list(av.effects(drawn_from(own), "covariate")) == [
        "effect", "effect_sd", "low", "high"
    ]  # fmt: skip


def test_exported_files_have_the_covariates(problem, fit):
    found = tables(problem, None, {"own": fit})
    rows = found["effects"].loc["covariate"]
    assert rows.index.tolist() == ["smoker", "age"]
    assert rows[["effect", "low", "high", "odds_ratio"]].notna().all(axis=None)
    p = av.predict(problem, fit, problem.data).mean(("chain", "draw"))
    np.testing.assert_allclose(found["predictions"]["own"], p)


def test_the_command_line_takes_them(tmp_path, command, monkeypatch):
    """A study remembers them: the report, new rows and exported files are of the same problem."""
    registered(monkeypatch, Prior)
    monkeypatch.setattr(av.inference.Comparison, "pictures", lambda comparison: {})
    path, out = tmp_path / "own.csv", tmp_path / "out"
    frame().to_csv(path, index=False)
    words = ["compare", "rfvm", path, "--target", "status", "--methods", "prior", "--out", out]
    words += ["--set", "latent_noise=none"]
    done = command(*words, "--draws", 50, "--always", "smoker,age", "--test-size", 0.2)
    assert done.returncode == 0, done.stderr
    assert "always in the model: smoker, age" in done.stderr
    assert json.loads((out / "study.json").read_text())["always"] == ["smoker", "age"]
    page = (out / "report.html").read_text()
    assert "<h2>Always in the model</h2>" in page
    assert '<th scope="row">odds ratio of age</th>' in page
    frame().drop(columns="status").iloc[:4].to_csv(tmp_path / "new.csv", index=False)
    done = command("predict", out, tmp_path / "new.csv", "--method", "prior")
    assert done.returncode == 0, done.stderr
    assert len(pd.read_csv(out / "predicted-new.csv")) == 4
    assert re.search(r"row\W+P\(well\)\W+5 %\W+95 %\W+predicted\W", done.stdout)
    assert "covariate" in pd.read_csv(out / "effects.csv")["kind"].to_numpy()


def test_methods_are_told_for_what_compare_would_be_given(tmp_path, command):
    """All its options: cleaning, covariates and their reference, a split; and the time."""
    own = frame().assign(site=rng(1).choice(["Lund", "Oslo", "Turku"], 60))
    own.to_csv(tmp_path / "own.csv", index=False)
    words = ["methods", "--for", "rfvm", tmp_path / "own.csv", "--target", "status"]
    words += ["--encode", "onehot", "--always", "site,age", "--reference", "site=Oslo"]
    done = command(*words, "--test-size", "0.25", "--set", "slab=2.0", "--draws", "100")
    assert done.returncode == 0, done.stderr
    train, _ = av.table(tmp_path / "own.csv", "status", encode="onehot").split(0.25)
    assert f"rfvm on own: {train.N} samples, 4 features" in done.stdout
    assert "exact: may take " in done.stdout


def test_the_estimator_takes_them():
    """In the columns of X; what is always in the model stays in what `transform` keeps."""
    X, y = frame().drop(columns="status"), frame()["status"]
    given = {"always": ["age", "smoker"], "hypers": PLAIN, "method_options": {"tune": 100}}
    state = seed(2) % 2**31
    with pytest.warns(ConvergenceWarning):  # it is as short as that
        classifier = SparseBayesClassifier(
            "rfvm", "gibbs", draws=100, chains=2, random_state=state, **given
        ).fit(X, y)
    assert np.isnan(classifier.feature_importances_).tolist() == [False, True, False, False, True]
    assert classifier.get_support()[[1, 4]].all()
    assert classifier.effects_.shape == (5, 3)
    mean = classifier.posterior_["posterior"]["eta"].mean(("chain", "draw"))
    eta = X.to_numpy() @ classifier.coef_[0] + classifier.intercept_[0]
    np.testing.assert_allclose(eta, mean, atol=1e-9)
    p = classifier.predict_proba(X)[:, 1]
    older = classifier.predict_proba(X.assign(age=X["age"] + 20.0))[:, 1]
    assert p.mean() < older.mean()
    with pytest.raises(InputError, match="which has names"):
        SparseBayesClassifier("rfvm", "laplace", always=["age"]).fit(X.to_numpy(), y)
