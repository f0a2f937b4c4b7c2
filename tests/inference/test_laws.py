"""What must not change where a table or a fit is only written down in another way.

Columns, rows and chains in another order, labels swapped, arrays column by column, another unit,
another name, a column that does not vary: each law is asked of every kind of model, and of every
function that takes a fit. Nothing is fitted. The draws are those of the prior, in 3 chains of 41,
of 13 rows and 5 features, so that no two axes have the same length and half a chain is no whole
number.

A law sees what examples do not: an index into the wrong axis, rows taken for names, an array that
is read in the order of memory.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference.fits import chains
from ardvark.inference.fits.datatree import group
from ardvark.inference.fits.diagnostics import ess, rhat
from ardvark.inference.fits.mixing import mixing
from ardvark.inference.scoring.held_out import measures, wrong_and_sure
from ardvark.models import ZOO
from tests.inference.comparison.quick import few_prior_draws
from tests.made import dataset, from_prior, table
from tests.support import rng

N, D, M, CHAINS = 13, 5, 7, 3
SIGNED = ("bias", "bias_raw", "beta", "beta_raw", "sample_weight", "sample_weight_raw", "eta",
          "u", "u_raw")  # fmt: skip
"""Variables that change their sign with the labels, where they are not signed by the model."""


def fixed_width(spec):
    """Whether the scale of a kernel depends on the number of columns."""
    return "feature_weight" in spec.fixed or spec.name in ("fsklr", "fs_skr")


MODELS = [name for name in ZOO if name not in ("pcvm", "sklr", "sparse_probit")]
"""Those three are made of the parts of pfcvm, fsklr and jcfo."""
every_model = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(scope="module", autouse=True)
def _few_draws_of_the_prior():
    with pytest.MonkeyPatch.context() as patch:
        few_prior_draws(patch)
        yield


@cache
def made(model):
    """Return a problem and a fit of it, which no test may change."""
    return from_prior(model)


def again(problem, tree, change=lambda name, x: x):
    """Return the draws of a fit, each changed, as a fit of another problem."""
    posterior = group(tree, "posterior")
    names = [name for name in posterior if name in problem.shapes]
    return av.adopt(problem, {str(n): change(n, posterior[n]).values for n in names})


def told_of(model):
    """Return all that is said of the fit of a model."""
    return {name: frame.copy() for name, frame in known(model).items()}


@cache
def known(model):
    return told(*made(model))


def told(problem, tree, new=None):
    """Return all that is said of a fit, by names: frames of numbers that do not know an order.

    What the prior says is by simulation, whose noise is another where columns change places.
    """
    new = table(2, rows=M, first=50) if new is None else new
    mixed = mixing(problem, tree).table
    found = {
        "features": av.effects(tree),
        "samples": av.effects(tree, "sample"),
        "mixing": mixed[["rhat", "ess_bulk", "ess_tail"]],
        "predictions": pd.DataFrame(
            {"p": av.predict(problem, tree, new).mean(("chain", "draw")).values}, index=new.index
        ),
    }
    simulated = ["prior", "bayes_factor", "bayes_factor_error"]
    return {
        name: frame.select_dtypes("number").drop(columns=simulated, errors="ignore").sort_index()
        for name, frame in found.items()
    }


def same(found, expected, rtol=1e-8):
    """Compare what is told of two fits.

    The two draws beside the median are equally far from it, so rounding decides which of them has
    the higher folded rank: that moves an R-hat of 123 draws by less than 0.005.
    """
    assert found.keys() == expected.keys()
    for name, frame in expected.items():
        if "rhat" in frame:
            rhats = [told[name].pop("rhat") for told in (found, expected)]
            pd.testing.assert_series_equal(*rhats, rtol=0.0, atol=0.005)
        pd.testing.assert_frame_equal(found[name], frame, rtol=rtol, atol=1e-10, obj=name)


def beside(problem, tree, chains=CHAINS):
    """Return the distances of a fit with every second draw from one with all of them."""
    posterior, fits = group(tree, "posterior"), {}
    for name, kind, every in (("all", "mcmc", 1), ("some", "approximation", 2)):
        found = {str(n): v.values[:, ::every] for n, v in posterior.items() if n in problem.shapes}
        found = {n: v.reshape(chains, -1, *v.shape[2:]) for n, v in found.items()}
        fits[name] = av.adopt(problem, found, kind=kind)
    frame = av.compare(fits, reference="all", problem=problem).distances
    frame = frame[frame["fit"] == "some"].set_index(["quantity", "statistic"])
    return frame[["value", "component"]].sort_index()


@cache
def beside_of(model):
    return beside(*made(model))


@every_model
def test_predictions_at_the_training_rows_are_those_of_the_fits_eta(model):
    problem, tree = made(model)
    p, eta = av.predict(problem, tree, problem.data), group(tree, "posterior")["eta"].values
    if problem.spec.link != "identity":
        posterior = group(tree, "posterior")
        point = {str(n): v.values for n, v in posterior.items() if n in problem.shapes}
        eta = np.exp(problem.log_predictive(1, eta, point))
    np.testing.assert_allclose(p, eta, rtol=1e-9, atol=1e-12)


@every_model
def test_the_order_of_the_columns_means_nothing(model):
    _, tree = made(model)
    order = [3, 0, 4, 2, 1]  # no cycle of two: its inverse is another order
    other = av.problem(model, dataset(table().iloc[:, order]))
    moved = again(other, tree, lambda _, x: x.isel(feature=order) if "feature" in x.dims else x)
    same(told(other, moved, table(2, M, 50).iloc[:, order]), told_of(model))
    pd.testing.assert_frame_equal(beside(other, moved), beside_of(model), rtol=1e-6)


@every_model
def test_the_order_of_the_rows_means_nothing(model):
    """Samples keep their names; components of eta are numbered by their place."""
    problem, tree = made(model)
    order = rng(4).permutation(N)
    while (order[order] == np.arange(N)).all():
        order = rng(5).permutation(N)
    other = av.problem(model, dataset(table().iloc[order], problem.y[order]))
    axes = {"basis": order, "obs": order}
    moved = again(other, tree, lambda _, x: x.isel({d: o for d, o in axes.items() if d in x.dims}))
    found, expected = told(other, moved), told_of(model)
    names = {f"eta[{place}]": f"eta[{old}]" for place, old in enumerate(order)}
    found["mixing"] = found["mixing"].rename(index=names).sort_index()
    same(found, expected)
    # the classifier takes its folds from the draws, which are the same
    values = [frame["value"] for frame in (beside(other, moved), beside_of(model))]
    pd.testing.assert_series_equal(*values, rtol=1e-6)


@every_model
def test_the_order_of_the_chains_means_nothing(model):
    problem, tree = made(model)
    moved = again(problem, tree, lambda _, x: x.isel(chain=[2, 0, 1]))
    same(told(problem, moved), told_of(model))


@every_model
def test_draws_are_as_far_apart_in_one_chain(model):
    pd.testing.assert_frame_equal(beside(*made(model), chains=1), beside_of(model), rtol=1e-6)


@every_model
def test_which_class_is_called_1_means_nothing(model):
    """Effects and predictions turn round, and what is said of them does not."""
    problem, tree = made(model)
    other = av.problem(model, dataset(table(), 1 - problem.y, classes=("well", "ill")))

    mask = "z" in problem.shapes  # sample weights are a mask times alpha, elsewhere a precision
    signed = (*SIGNED, "alpha") if mask else SIGNED

    def turned(name, x):
        return -x if name in signed else x

    swapped = again(other, tree, turned)
    expected, found = told_of(model), told(other, swapped)
    assert av.effects(swapped).attrs["towards"] != av.effects(tree).attrs["towards"]
    if problem.spec.link == "identity":
        expected["predictions"] *= -1.0
    else:
        expected["predictions"] = 1.0 - expected["predictions"]
    for what in ("features", "samples"):
        frame = expected[what]
        if frame.empty:  # of a model without a basis
            continue
        frame["effect"] *= -1.0
        frame["low"], frame["high"] = -frame["high"], -frame["low"]
        if "odds_ratio" in frame:
            frame["odds_ratio"] = 1.0 / frame["odds_ratio"]
            low, high = 1.0 / frame["odds_high"], 1.0 / frame["odds_low"]
            frame["odds_low"], frame["odds_high"] = low, high
    same(found, expected)


@every_model
def test_the_order_of_memory_means_nothing(model):
    problem, tree = made(model)
    other = av.problem(model, dataset(np.asfortranarray(table().to_numpy()), problem.y))
    assert other.fingerprint == problem.fingerprint
    columns = {
        str(n): np.asfortranarray(v.values)
        for n, v in group(tree, "posterior").items()
        if n in problem.shapes
    }
    new = table(2, M, 50)
    by_columns = pd.DataFrame(np.asfortranarray(new), columns=new.columns, index=new.index)
    same(told(other, av.adopt(other, columns), by_columns), told_of(model))


@every_model
def test_the_units_of_the_columns_mean_nothing(model):
    _, tree = made(model)
    scale, shift = np.array([0.01, 2.0, 1000.0, 1.0, 7.0]), np.array([3.0, 0.0, -50.0, 1.0, 0.2])
    other = av.problem(model, dataset(table() * scale + shift))
    moved = again(other, tree, lambda name, x: x)
    # (x - mean) / sd loses digits where a mean is large beside its sd
    same(told(other, moved, table(2, M, 50) * scale + shift), told_of(model), rtol=1e-6)


@every_model
def test_names_are_only_names(model):
    _, tree = made(model)
    new_names = dict(zip("abcde", ["q", "effect", "b c", "0", "a"], strict=True))
    other = av.problem(model, dataset(table().rename(columns=new_names)))
    moved = again(other, tree)
    expected, found = (
        told_of(model),
        told(other, moved, table(2, M, 50).rename(columns=new_names)),
    )
    back = {new: old for old, new in new_names.items()}
    found["features"] = found["features"].rename(index=back).sort_index()
    del expected["mixing"], found["mixing"]  # whose rows have the names in their words
    same(found, expected)


@pytest.mark.parametrize("model", [name for name in MODELS if not fixed_width(ZOO[name])])
def test_a_column_that_does_not_vary_adds_nothing(model):
    """Where weights are learned. Fixed ones, and those of a mask, are 1 / D of all columns."""
    _, tree = made(model)
    wide, new = table().assign(f=4.0), table(2, M, 50).assign(f=4.0)
    other = av.problem(model, dataset(wide))
    extra = rng(6).permutation(D)[0]

    def with_one_more(_, x):
        """The new column has the draws of another one: whatever they are, it has no effect."""
        return x.isel(feature=[*range(D), extra]) if "feature" in x.dims else x

    moved = again(other, tree, with_one_more)
    found, expected = told(other, moved, new), told_of(model)
    own = found["features"].loc["f"]
    assert (own["effect"], own["p_active"], own["size"]) == (0.0, 0.0, 0.0)
    found["features"] = found["features"].drop(index="f")
    del expected["mixing"], found["mixing"]  # which has a weight more
    same(found, expected)


def test_measures_do_not_know_which_class_is_called_1():
    """F1 does: it is that of class 1."""
    generator = rng(7)
    p = generator.random((3, 41, 60))
    y = (generator.random(60) < p.mean((0, 1))).astype(int)
    mean = p.mean((0, 1))
    one = measures(y, mean > 0.5, p=mean) | wrong_and_sure(y, p)
    other = measures(1 - y, mean < 0.5, p=1.0 - mean) | wrong_and_sure(1 - y, 1.0 - p)
    for name in ("accuracy", "log_score", "auc", "brier", "kappa", "wrong", "wrong_sure"):
        assert other[name] == pytest.approx(one[name], abs=1e-12), name
    order = generator.permutation(60)
    moved = measures(y[order], mean[order] > 0.5, p=mean[order])
    for name in ("accuracy", "log_score", "auc", "brier", "f1", "kappa", "ece"):
        assert moved[name] == pytest.approx(one[name], abs=1e-12), name


@pytest.mark.parametrize("draws", [40, 41, 43])
def test_half_of_an_odd_chain(draws):
    """R-hat splits chains in two: ArviZ's is the definition, also of an odd number of draws."""
    x = rng(8).normal(size=(CHAINS, draws, D)).cumsum(axis=1)
    known = xr.DataArray(x, dims=("chain", "draw", "k"))
    ours = chains.mixed(np.asfortranarray(x))
    for mine, theirs in zip(
        ours, (rhat(known), ess(known, "bulk"), ess(known, "tail")), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)
