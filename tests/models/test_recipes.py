"""What the page "These are PyMC models" shows, in one form of every model, or two.

What is computed from draws is compared with the same computed in NumPy. A trace is made of prior
draws where only its names and shapes matter; `pm.sample` itself is run on one form of each model.
"""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import ardvark as av
from ardvark.models.new_rows import rows_of
from tests.models.forms import ALWAYS, PLAIN, every_model, make, one_form
from tests.support import rng, seed

FAST = {"mode": PLAIN}
NEW = rng(5).normal(size=(6, 6))
DRAWS = 5


@pytest.fixture(scope="module", params=one_form())
def problem(request):
    name, choice, covariates = request.param
    return make(name, choice, N=8, **({"D": 6, "always": ALWAYS} if covariates else {}))


@pytest.fixture(scope="module")
def drawn(problem):
    """Prior draws, with the data that PyMC stores beside them."""
    return pm.sample_prior_predictive(
        DRAWS, model=problem.model, random_seed=seed(2), compile_kwargs=FAST
    )


@pytest.fixture(scope="module")
def trace(drawn):
    """The same as if they had been sampled."""
    kept = {"/posterior": drawn["prior"].to_dataset()}
    kept |= {f"/{name}": drawn[name].to_dataset() for name in ("constant_data", "observed_data")}
    return xr.DataTree.from_dict(kept)


def arrays(group):
    return {str(name): values.values for name, values in group.data_vars.items()}


def observed(problem):
    (label,) = problem.model.observed_RVs
    return label.name


def test_prior_and_prior_predictive(problem, drawn):
    point = arrays(drawn["prior"])
    np.testing.assert_allclose(point["eta"], problem.decision(point), rtol=1e-7, atol=1e-10)
    assert drawn["prior_predictive"][observed(problem)].shape == (1, DRAWS, 8)


def predicted(problem, trace, **settings):
    return pm.sample_posterior_predictive(
        trace, model=problem.model, random_seed=seed(3), progressbar=False, compile_kwargs=FAST,
        **settings,
    )  # fmt: skip


def test_posterior_predictive_keeps_what_was_sampled(problem, trace):
    label = observed(problem)
    found = predicted(problem, trace, var_names=[label, "eta"])["posterior_predictive"]
    assert found[label].shape == (1, DRAWS, 8)
    np.testing.assert_allclose(found["eta"], trace["posterior"]["eta"], rtol=1e-9, atol=1e-12)


def test_new_rows_are_given_in_the_units_of_the_table(problem, trace):
    """Eta of the new rows is that of the model's own function, and the old rows come back."""
    label = observed(problem)
    with problem.model:
        rows = NEW[:, : problem.data.X.shape[1]]
        given = problem.new_rows(rows)
        old = {name: problem.model[name].get_value() for name in given["new_data"]}
        pm.set_data(**given)
        try:
            names = [label, *problem.row_variables]
            found = predicted(
                problem, trace, sample_vars=names, var_names=[label, "eta"], predictions=True
            )["predictions"]
        finally:
            pm.set_data(old, coords={"obs": problem.coords["obs"]})
    assert found[label].shape == (1, DRAWS, 6)
    assert found["obs"].values.tolist() == [*range(6)]
    expected = problem.decision(arrays(trace["posterior"]), problem.at(rows))
    np.testing.assert_allclose(found["eta"], expected, rtol=1e-7, atol=1e-10)


def test_new_rows_without_a_column_name_it():
    """A feature, and a covariate, without which there is no prediction either."""
    problem = make("rvm", D=6, always=ALWAYS)
    rows = pd.DataFrame(NEW, columns=problem.data.feature_names)
    for missing, words in (("x1", "lacks 1 feature.*'x1'"), ("x2", "always in the model: x2")):
        with pytest.raises(av.InputError, match=words):
            problem.new_rows(rows.drop(columns=missing))


def test_new_rows_are_found_by_the_names_of_columns_and_keep_their_own():
    data = make("rvm").data
    rows = pd.DataFrame(NEW[:, :4], index=list("uvwxyz"), columns=data.feature_names)
    for given, names in ((rows, tuple("uvwxyz")), (NEW[:, :4], tuple("012345"))):
        X, found = rows_of(data, given)
        np.testing.assert_array_equal(X, NEW[:, :4])
        assert found == names
    turned, _ = rows_of(data, rows[["x3", "x1", "x4", "x2"]])
    np.testing.assert_array_equal(turned, NEW[:, :4])


def test_only_latent_noise_has_a_value_for_each_row(problem):
    form = vars(problem.hypers)
    noisy = form.get("latent_noise") == "explicit" or form.get("parametrization") == "latent"
    assert bool(problem.row_variables) == noisy


def test_an_intervention(problem, drawn):
    first = problem.model.free_RVs[0].name
    value = drawn["prior"][first].values[0, 0]
    done = pm.do(problem.model, {first: value})
    found = pm.sample_prior_predictive(3, model=done, random_seed=seed(4), compile_kwargs=FAST)
    point = arrays(found["prior"])
    assert first not in point
    point[first] = np.broadcast_to(value, (1, 3, *np.shape(value)))
    np.testing.assert_allclose(point["eta"], problem.decision(point), rtol=1e-7, atol=1e-10)


def test_an_observation_of_a_variable(problem, drawn):
    model = problem.model
    first = next(rv.name for rv in model.free_RVs if model.rvs_to_transforms[rv] is None)
    value = drawn["prior"][first].values[0, 0]
    seen = pm.observe(model, {first: value})
    assert first not in {rv.name for rv in seen.free_RVs}
    at = model.initial_point()
    whole = model.compile_logp(**FAST)(at | {first: np.asarray(value)})
    rest = {name: x for name, x in at.items() if name != first}
    assert float(seen.compile_logp(**FAST)(rest)) == pytest.approx(float(whole), rel=1e-9)


def test_back_by_adopt(problem, trace):
    fit = av.adopt(problem, trace)
    assert fit.attrs["fingerprint"] == problem.fingerprint
    assert fit.attrs["draws"] == DRAWS


def test_draws_of_an_intervention_are_not_of_the_problem():
    problem = make("rvm", N=8)
    done = pm.do(problem.model, {"bias": 0.0})
    found = pm.sample_prior_predictive(3, model=done, random_seed=seed(4), compile_kwargs=FAST)
    kept = {"/posterior": found["prior"].to_dataset()}
    kept["/constant_data"] = found["constant_data"].to_dataset()
    with pytest.raises(av.InputError, match="bias is a variable of this problem, and a constant"):
        av.adopt(problem, xr.DataTree.from_dict(kept))


@pytest.mark.slow
@every_model
def test_the_sampler_of_pymc(name):
    problem = make(name, N=8)
    sampled = pm.sample(
        4, tune=4, chains=2, cores=1, model=problem.model, nuts_sampler="pymc",
        random_seed=seed(1), progressbar=False, compile_kwargs=FAST,
        compute_convergence_checks=False,
    )  # fmt: skip
    assert av.adopt(problem, sampled).attrs["prior_unchecked"] == ""
