"""Draws from elsewhere are of the problem's prior, or are refused, or the fit says unchecked."""

import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.common.validate import InputError
from tests.inference.methods.foreign import CHAINS, DRAWS, FORMS, as_tree, paper_variables
from tests.models.forms import Compiled, make
from tests.support import rng


@pytest.fixture(scope="module")
def own():
    """RFVM, and draws of an algorithm of one's own."""
    problem = make("rfvm", N=12)
    return problem, paper_variables(problem, chains=4, draws=50)


def pymc_density(problem, point):
    """What `pm.sample` stores with these draws (chain, draw): the density of PyMC's own graph."""
    compiled = Compiled(problem)
    lp = [[0.0] * DRAWS for _ in range(CHAINS)]
    for c, d in np.ndindex(CHAINS, DRAWS):
        at = compiled.unconstrained({name: x[c, d] for name, x in point.items()})
        lp[c][d] = float(compiled.values(at)[0])
    return np.array(lp)


@pytest.mark.parametrize("form", ["rfvm marginal", "jcfo latent", "fsklr explicit", "horseshoe"])
def test_draws_with_pymcs_own_density_are_checked(form):
    """No form is refused: not by a constant, in float32, six digits or NumPyro's sign."""
    problem = make(form.partition(" ")[0], FORMS[form])
    point = paper_variables(problem)
    lp = pymc_density(problem, point)
    digits = np.array([[float(f"{x:.6g}") for x in chain] for chain in lp])
    single = {n: x.astype("float32") if x.dtype.kind == "f" else x for n, x in point.items()}
    for x, stats in (
        (point, {"lp": lp}),
        (point, {"logp": lp - 1e5}),
        (point, {"lp__": digits}),
        (point, {"lp": -lp}),
        (single, {"lp": lp.astype("float32")}),
    ):
        adopted = av.adopt(problem, as_tree(x, stats))
        assert adopted.attrs["prior_unchecked"] == ""
        again = av.adopt(problem, adopted)
        assert again.attrs["prior_unchecked"] == ""


@pytest.mark.parametrize("name", ["bias_sd", "sample_slab", "feature_rate", "noise_rate"])
def test_draws_of_another_prior_are_refused(name, own):
    """By their own density; and by name, where PyMC stored the hyperparameter with the draws.

    Twice the value changes the density by a sd of at least 0.3 among draws of the prior: no seed
    puts 90 % of 200 of them within 0.01.
    """
    problem, point = own
    value = 2.0 * vars(problem.hypers)[name]
    tree = as_tree(point, {"lp": problem.with_hypers(**{name: value}).log_density(point)})
    with pytest.raises(InputError, match=r"by more than a constant: the difference varies by \d"):
        av.adopt(problem, tree)
    assert av.adopt(problem.with_hypers(**{name: value}), tree).attrs["prior_unchecked"] == ""
    tree["constant_data"] = xr.DataTree(xr.Dataset({name: value}))
    with pytest.raises(InputError, match=f"{name} is {value:.6g} in the model that these draws"):
        av.adopt(problem, tree)


def test_a_small_difference_is_seen_beside_a_large_density(own):
    """In float64 nothing but the difference counts; a density of few digits hides it."""
    problem, point = own
    lp = problem.log_density(point) - 1e6
    other = lp + 0.1 * rng(5).normal(size=lp.shape)
    with pytest.raises(InputError, match="by more than a constant"):
        av.adopt(problem, as_tree(point, {"lp": other}))
    tree = as_tree(point, {"lp": other.astype("float32")})
    assert av.adopt(problem, tree).attrs["prior_unchecked"] == ""


def unchecked(problem, draws, caplog, **settings):
    """Adopt draws; return why their prior is unchecked, which is also logged, once."""
    caplog.clear()
    adopted = av.adopt(problem, draws, **settings)
    why = adopted.attrs["prior_unchecked"]
    assert [r.message for r in caplog.records if "prior unchecked" in r.message] == [
        f"adopted with the prior unchecked: {why}"
    ]
    assert av.adopt(problem, adopted, **settings).attrs["prior_unchecked"] == why
    return why


def test_without_a_density_the_prior_is_unchecked(own, caplog):
    """Arrays, zeros for a step that has none (PyMC) or for ADVI (Stan), one draw, other sizes."""
    problem, point = own
    lp, none = problem.log_density(point), "the draws came without a log density of their own"
    for draws in (
        point,
        as_tree(point),
        as_tree(point, {"lp": np.zeros_like(lp)}),
        as_tree(point, {"lp": np.full_like(lp, np.nan)}),
    ):
        assert unchecked(problem, draws, caplog) == none
    one = {name: x[:1, :1] for name, x in point.items()}
    assert unchecked(problem, as_tree(one, {"lp": lp[:1, :1]}), caplog, kind="point") == none


def test_a_variable_that_is_fixed_is_named(own, caplog):
    """As `pm.do(model, {"bias": 0})` does, whose draws have no bias; PyMC stores it as data."""
    problem, point = own
    fixed = point | {"bias": np.zeros_like(point["bias"])}
    fixed |= problem.to_free(fixed)
    stats = {"lp": problem.log_density(fixed)}
    rest = {name: x for name, x in fixed.items() if name != "bias"}
    rest["eta"] = problem.decision(fixed)
    assert unchecked(problem, as_tree(rest, stats), caplog) == "the draws lack bias"
    assert unchecked(problem, as_tree(fixed, stats), caplog) == (
        "bias has the same value in every draw"
    )
    tree = as_tree(rest, stats)
    tree["constant_data"] = xr.DataTree(xr.Dataset({"bias": 0.0}))
    with pytest.raises(InputError, match="bias is a variable of this problem, and a constant of"):
        av.adopt(problem, tree)


def test_a_verdict_says_that_the_prior_is_unchecked(own):
    problem, point = own
    lp = {"lp": problem.log_density(point)}
    fits = {"checked": av.adopt(problem, as_tree(point, lp)), "not": av.adopt(problem, point)}
    said = {n: v.text(n, 200) for n, v in av.compare(fits, problem=problem).verdict.items()}
    assert "prior unchecked: the draws came without a log density" in said["not"]
    assert "unchecked" not in said["checked"]
