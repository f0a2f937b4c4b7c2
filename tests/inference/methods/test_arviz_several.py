"""What ArviZ makes of several fits at once, and of the rows of one."""

import warnings

import arviz as az
import matplotlib
import numpy as np
import pymc as pm
import pytest

import ardvark as av
from tests.support import rng, seed

matplotlib.use("Agg")
METHODS = {"exact": "mcmc", "advi": "approximation", "rfvm_vb": "approximation"}


@pytest.fixture(scope="module")
def problem():
    X = rng(0).normal(size=(24, 4))
    y = X[:, 0] - X[:, 1] + 0.7 * rng(1).normal(size=24) > 0
    return av.problem("rfvm", X, y)


@pytest.fixture(scope="module")
def fits(problem):
    """By default settings, each with what PyMC draws of the model."""
    prior = pm.sample_prior_predictive(200, model=problem.model, random_seed=seed(2))
    groups = {name: prior[name] for name in ("prior", "prior_predictive")}
    quiet = {"random_seed": seed(3), "progressbar": False}
    found = {}
    for method in METHODS:
        tree = av.fit(problem, method, random_seed=seed(1), progressbar=False)
        labels = pm.sample_posterior_predictive(tree, model=problem.model, **quiet)
        found[method] = tree.assign(
            posterior_predictive=labels["posterior_predictive"], **groups
        )  # fmt: skip
    return found


def test_every_method_keeps_the_same_number_of_draws(fits):
    for method, kind in METHODS.items():
        tree = fits[method]
        assert tree.attrs["kind"] == kind
        assert (tree.attrs["draws"], tree.attrs["chains"]) == (1000, 4)
        assert (tree["posterior"].sizes["draw"], tree["posterior"].sizes["chain"]) == (1000, 4)


@pytest.mark.filterwarnings("ignore")  # ArviZ's own
def test_a_forest_shows_every_fit(fits):
    drawn = az.plot_forest(fits, var_names=["bias"], combined=True)
    assert drawn.viz["twig"]["model"].values.tolist() == list(METHODS)
    for method, tree in fits.items():
        middle = drawn.viz["point_estimate"]["bias"].sel(model=method).item().get_offsets()[0, 0]
        assert middle == pytest.approx(tree["posterior"]["bias"].median().item(), abs=0.2)
        assert np.isfinite(middle)


def test_rows_without_names_are_numbered_by_integers(problem, fits):
    eta = fits["exact"]["posterior"]["eta"]
    np.testing.assert_array_equal(eta.sel(obs=6), eta.isel(obs=6))
    named = av.problem("rfvm", av.Dataset.from_arrays(
        problem.data.X, problem.data.y, sample_names=[f"patient {k}" for k in range(24)]
    ))  # fmt: skip
    tree = av.fit(named, "laplace", draws=10, random_seed=seed(1), progressbar=False)
    assert tree["posterior"]["eta"].sel(obs="patient 6").shape == (4, 10)
    few = av.problem("rfvm", problem.data.take([3, 17, 6, *range(7, 14)]))
    assert few.coords["obs"][:3] == (3, 17, 6)
    assert av.predict(problem, fits["advi"], problem.data.X[:3]).sel(obs=2).shape == (4, 1000)


FOR = {
    "summary": lambda t: az.summary(t, var_names=["bias", "eta"]),
    "forest": lambda t: az.plot_forest(t, var_names=["eta"]),
    "rank": lambda t: az.plot_rank(t, var_names=["bias"]),
    "ppc_pava": az.plot_ppc_pava,
    "prior_posterior": lambda t: az.plot_prior_posterior(t, var_names=["bias"]),
    "loo": az.loo,
    "compare": lambda t: az.compare({"one": t, "other": t}),
    "psense_summary": lambda t: az.psense_summary(t, var_names=["bias"]),
}
PREDICT = ("loo", "compare", "psense_summary")
"""These need terms that predict: draws of an approximation are not weighted, and refused."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FOR)
def test_a_fit_of_each_kind_goes_through_arviz(name, fits):
    import matplotlib.pyplot as plt

    for method, tree in fits.items():
        if name in PREDICT and METHODS[method] != "mcmc":
            with pytest.raises(Exception, match=r"log likelihood not found|trying to compute ELPD"):
                FOR[name](tree)
        else:
            assert FOR[name](tree) is not None
    plt.close("all")


def test_numbers_of_arviz_are_those_of_the_draws(fits):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = az.summary(fits["exact"], var_names=["eta"], round_to="none")
    eta = fits["exact"]["posterior"]["eta"]
    assert table.index[6] == "eta[6]"
    assert table["mean"].iloc[6] == pytest.approx(eta.sel(obs=6).mean().item())
