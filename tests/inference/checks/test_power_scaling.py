"""Power scaling, where the answer is known: quantities of the prior, and quantities of the data."""

import numpy as np
import pytest
import xarray as xr
from arviz_stats import psense
from scipy import stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.checks.power_scaling import LIMIT, power_scaling
from ardvark.inference.references import references
from tests.inference.methods.foreign import paper_variables
from tests.models.forms import make
from tests.support import rng

LEAD = ("chain", "draw")


def conjugate(draws=1000, number=0):
    """Exact draws of two normal means, each with its prior Normal(0, sd) as one part.

    `weak` has one observation 2 with the sd 10 under the prior sd 1: its posterior precision is 1
    of the prior and 0.01 of the data. `strong` has 50 observations of sd 1 under the prior sd 10.
    """
    random = rng(number)
    data = {"weak": (np.array([2.0]), 10.0, 1.0), "strong": (np.linspace(-1, 2, 50), 1.0, 10.0)}
    quantities, prior, likelihood = {}, {}, {}
    for name, (y, noise, sd) in data.items():
        precision = sd**-2 + len(y) * noise**-2
        mean = y.sum() * noise**-2 / precision
        x = random.normal(mean, precision**-0.5, size=(4, draws))
        quantities[name] = xr.DataArray(x, dims=LEAD)
        prior[name] = (LEAD, stats.norm.logpdf(x, 0.0, sd))
        likelihood[name] = ((*LEAD, f"{name}_obs"), stats.norm.logpdf(y, x[..., None], noise))
    groups = {"/log_prior": xr.Dataset(prior), "/log_likelihood": xr.Dataset(likelihood)}
    return xr.DataTree.from_dict(groups), quantities


def test_a_stored_reference():
    """Its selection counts all draws of the run, of which few are stored."""
    problem = av.problem("rfvm", "digits38")
    tree = references.stored(problem)
    sizes = (tree[name].sizes["draw"] for name in ("posterior", "selection"))
    assert next(sizes) < next(sizes)
    found = power_scaling(tree)
    assert {"eta", "active features"} < set(found.index)
    assert np.isfinite(found[["prior", "likelihood"]]).all(axis=None)
    # the counts of the stored draws, and not those of the first draws of the run
    chosen = tree["selection"]["active_features"][:, tree.attrs["thin"] - 1 :: tree.attrs["thin"]]
    own = power_scaling(tree, {"count": chosen})
    assert own.loc["count", "prior"] == found.loc["active features", "prior"]


@pytest.mark.statistical
def test_what_counts_is_known():
    """A doubled prior shrinks the sd of `weak` by 2^-1/2; its data move it by 0.02 sd. Inversely
    for `strong`.

    An sd that shrinks so has a sensitivity of 0.09. Monte Carlo error: weights of sd 0.007 that
    are independent of x move its distribution function by a Brownian bridge of height
    0.007 / sqrt(20000), over log2(1.01) 0.003; 0.05 is ten of these from 0.09, and more from 0.
    """
    tree, quantities = conjugate(draws=5000, number=1)
    found = power_scaling(tree, quantities)
    assert (found["khat"] < 0.7).all()
    weak, strong = found.loc["weak"], found.loc["strong"]
    assert weak["prior"] > LIMIT
    assert weak["likelihood"] < LIMIT
    assert weak["diagnosis"] == "strong prior or weak likelihood"
    assert strong["likelihood"] > LIMIT
    assert strong["prior"] < LIMIT
    assert strong["diagnosis"] == ""
    # the prior of the one has nothing to do with the other
    assert weak["prior_weak"] > LIMIT
    assert strong["prior_strong"] < LIMIT
    assert weak["prior_strong"] < LIMIT


def test_the_numbers_are_arvizs():
    tree, quantities = conjugate(draws=200)
    found = power_scaling(tree, quantities, alphas=(0.9, 1.1))
    for name, x in quantities.items():
        tree["posterior"] = xr.DataTree(x.to_dataset(name=name))
        for column, settings in (
            ("prior", {"group": "prior"}),
            ("likelihood", {"group": "likelihood"}),
            ("prior_weak", {"group": "prior", "group_var_names": "weak"}),
        ):
            wanted = float(psense(tree, alphas=(0.9, 1.1), **settings)[name])
            assert found.loc[name, column] == pytest.approx(wanted, rel=1e-12)


def test_draws_that_were_not_looked_at_are_left_out():
    """Every second draw is NaN, as of a count that was thinned; a vector counts by its worst."""
    tree, quantities = conjugate(draws=200)
    weak, strong = quantities["weak"], quantities["strong"]
    thinned = weak.where(np.arange(200) % 2 == 0)
    both = xr.concat([weak, strong], "k").transpose(*LEAD, "k")
    found = power_scaling(tree, {"thinned": thinned, "both": both, "weak": weak})
    half = tree.isel(draw=slice(None, None, 2))
    alone = power_scaling(half, {"weak": weak.isel(draw=slice(None, None, 2))})
    assert found.loc["thinned", "prior"] == pytest.approx(alone.loc["weak", "prior"], rel=1e-12)
    whole = power_scaling(tree, {"weak": weak, "strong": strong})
    for column in ("prior", "likelihood"):
        assert found.loc["both", column] == whole[column].max()
    assert list(found.index) == ["thinned", "both", "weak"]


@pytest.mark.statistical
def test_heavy_importance_weights_are_seen():
    """Log densities t with one degree of freedom: their exponentials have no mean at any power."""
    tree, quantities = conjugate(number=2)
    heavy = stats.t.rvs(1.0, size=(4, 1000), random_state=rng(3)) * 100.0
    tree["log_prior"] = xr.DataTree(xr.Dataset({"rest": (LEAD, heavy)}))
    found = power_scaling(tree, quantities)
    assert (found["diagnosis"] == "weights fail: refit").all()


def test_a_fit_has_what_it_needs():
    problem = make("rfvm", N=12)
    fit = av.adopt(problem, paper_variables(problem, draws=100))
    assert set(fit["log_prior"].data_vars) == {"feature_weight", "sample_weight", "rest"}
    point = {str(k): v.values for k, v in fit["posterior"].data_vars.items()}
    for name, values in problem.log_prior(point).items():
        np.testing.assert_allclose(fit["log_prior"][name], values, rtol=1e-12)
        assert fit["log_prior"][name].dims == LEAD
    found = power_scaling(fit)
    assert list(found.index) == ["bias", "eta", "margin", "active features", "active samples"]
    parts = [f"prior_{part}" for part in ("feature_weight", "sample_weight", "rest")]
    assert {*found} == {"prior", "likelihood", *parts, "khat", "diagnosis"}
    sign = 2.0 * problem.y - 1.0
    margin = (fit["posterior"]["eta"] * sign).mean("obs")
    alone = power_scaling(fit, {"margin": margin})
    assert found.loc["margin", "prior"] == pytest.approx(alone.loc["margin", "prior"], rel=1e-9)
    few = fit.isel(draw=slice(0, 40))
    with pytest.raises(InputError, match="at least 100 draws"):
        power_scaling(few)
    del fit["log_prior"]
    with pytest.raises(InputError, match="needs the group log_prior, which this fit lacks"):
        power_scaling(fit)
