"""Fits with columns that are always in the model: what they contain, predict and refuse."""

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.fits.mixing import mixing_of
from ardvark.inference.methods.prediction import linear_rule
from ardvark.inference.methods.registry import applicable
from ardvark.models import ZOO
from tests.support import rng, seed

ALWAYS = ("age", "sex=m")
SHORT = {"gibbs": {"tune": 100}}


def table(N=40, number=0):
    draws = rng(number)
    frame = pd.DataFrame(draws.normal(size=(N, 3)), columns=["g1", "g2", "g3"])
    frame.insert(1, "age", draws.normal(60.0, 9.0, N))
    frame["sex"] = np.where(draws.random(N) < 0.4, "m", "f")
    eta = 0.15 * (frame["age"] - 60.0) + 2.0 * frame["g1"]
    return frame.assign(diagnosis=np.where(eta + draws.logistic(size=N) > 0, "well", "ill"))


@pytest.fixture(scope="module")
def data():
    return av.table(table(), "diagnosis", encode="onehot")


@pytest.fixture(scope="module")
def problem(data):
    return av.problem("rfvm", data, always=["age", "sex"], latent_noise="none")


@pytest.fixture(scope="module", params=["gibbs", "laplace"])
def fit(request, problem):
    """By a method that has steps of its own for them, and by one that reads the density."""
    how = {"draws": 100, "chains": 2, "random_seed": seed(1), "progressbar": False}
    return av.fit(problem, request.param, **how, **SHORT.get(request.param, {}))


def test_a_fit_names_the_covariates_and_selects_none_of_them(fit):
    found = fit["posterior"]["covariate_weight"]
    assert found.dims == ("chain", "draw", "covariate")
    assert tuple(found["covariate"].values) == ALWAYS
    assert fit["selection"]["p_active_feature"].sizes == {"feature": 3}
    assert tuple(fit["constant_data"]["C"].dims) == ("obs", "covariate")
    assert np.isfinite(fit["log_prior"].to_dataset().to_array()).all()


def test_predictions_use_the_covariates_of_the_new_rows(problem, data, fit):
    """In whatever order the columns are, and of words too by the table that cleaned them."""
    p = av.predict(problem, fit, data)
    eta = fit["posterior"]["eta"]
    np.testing.assert_allclose(p, 1.0 / (1.0 + np.exp(-eta)), atol=1e-12)
    frame = pd.DataFrame(data.X, columns=data.feature_names)
    np.testing.assert_array_equal(av.predict(problem, fit, frame[frame.columns[::-1]]), p)
    clean = data.clean(table().drop(columns="diagnosis"))
    np.testing.assert_array_equal(av.predict(problem, fit, clean), p)
    older = frame.assign(age=frame["age"] + 9.0)
    assert not np.allclose(av.predict(problem, fit, older), p)
    with pytest.raises(InputError, match=r"lacks what is always in the model: age\."):
        av.predict(problem, fit, frame.drop(columns="age"))


def test_the_linear_rule_has_a_coefficient_for_every_column(problem, data, fit):
    rule = linear_rule(problem, fit)
    mean = fit["posterior"]["eta"].mean(("chain", "draw"))
    np.testing.assert_allclose(data.X @ rule.coefficients + rule.intercept, mean, atol=1e-9)


@pytest.fixture(scope="module")
def chains(problem):
    how = {"draws": 200, "chains": 2, "random_seed": seed(2), "progressbar": False}
    return av.fit(problem, "gibbs", **how, **SHORT["gibbs"])


def test_covariates_are_judged_and_compared_as_scalars(problem, data, chains):
    """Seen by no other test: chains that disagree about a covariate alone would have converged."""
    table = mixing_of(chains).table
    assert {"the weight of age", "the weight of sex=m"} <= set(table.index)
    fits = {
        "gibbs": chains,
        "laplace": av.fit(problem, "laplace", draws=200, chains=2, random_seed=seed(3),
                          progressbar=False),
    }  # fmt: skip
    comparison = av.compare(fits, reference="gibbs", problem=problem, test=data)
    assert "laplace" in comparison.table.index
    found = comparison.distances
    scalar = found[found["quantity"] == "scalar"]
    assert len(scalar)


@pytest.mark.parametrize("name", [n for n, spec in ZOO.items() if spec.paper_method])
def test_the_algorithm_of_a_paper_takes_no_covariates(name):
    """One error, which names what does take them."""
    own = av.problem(name, table(12), "diagnosis", always=["age", "sex"])
    with pytest.raises(InputError, match=r"takes no covariates \(always\)"):
        av.fit(own, "paper", progressbar=False)
    assert not [m for m in applicable(own) if m == ZOO[name].paper_method]


def test_the_error_names_the_methods_that_take_covariates(problem):
    with pytest.raises(InputError, match=r"Methods that do: .*nuts.*advi"):
        av.fit(problem, "rfvm_vb", progressbar=False)


def confounded(number):
    """500 rows in which age alone matters, and a feature follows it (correlation 0.7).

    The rows keep their seed, because what is tested is their own posterior.
    """
    draws = np.random.default_rng(number)
    age, X = draws.normal(size=500), draws.normal(size=(500, 12))
    X[:, 0] = 0.7 * age + 0.51**0.5 * X[:, 0]
    y = np.where(draws.random(500) < 1.0 / (1.0 + np.exp(-1.5 * age)), "ill", "well")
    return pd.DataFrame(X, columns=[f"g{k}" for k in range(12)]).assign(age=age, diagnosis=y)


@pytest.mark.statistical
@pytest.mark.parametrize("number", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_a_feature_that_follows_a_confounder_is_active_only_without_it(number):
    """P(active) above 0.9 becomes one below 0.1, by the exact sampler."""
    frame = confounded(number)
    settings = {"active_features": 0.5, "latent_noise": "none", "basis": range(10)}
    problems = {
        "alone": av.problem("rfvm", frame.drop(columns="age"), "diagnosis", **settings),
        "adjusted": av.problem("rfvm", frame, "diagnosis", always="age", **settings),
    }
    p = {}
    for name, own in problems.items():
        how = {"draws": 300, "chains": 2, "random_seed": seed(7), "progressbar": False}
        found = av.fit(own, "gibbs", tune=200, **how)["selection"]
        p[name] = float(found["p_active_feature"].sel(feature="g0"))
    assert p["alone"] > 0.9
    assert p["adjusted"] < 0.1
