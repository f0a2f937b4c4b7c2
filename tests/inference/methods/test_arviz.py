"""What ArviZ makes of a fit of each kind, with the predictive draws that PyMC adds."""

import arviz as az
import matplotlib
import numpy as np
import pymc as pm
import pytest

import ardvark as av
from tests.inference.methods.foreign import as_tree, paper_variables
from tests.models.forms import every_model, make
from tests.support import rng, seed

matplotlib.use("Agg")
CHAINS, DRAWS = 4, 100


@pytest.fixture(scope="module")
def trees():
    """A fit of each kind, completed: no test changes them."""
    problem, of_point = make("rfvm", N=12), make("pfcvm", N=12)  # no method of RFVM gives a point
    settings = {"draws": DRAWS, "chains": CHAINS, "random_seed": seed(1), "progressbar": False}
    energy = {"energy": rng(5).normal(size=(CHAINS, DRAWS))}
    fits = {"mcmc": av.adopt(problem, as_tree(paper_variables(problem, CHAINS, DRAWS), energy))}
    fits["approximation"] = av.fit(problem, "rfvm_vb", **settings)
    fits["point"] = av.fit(of_point, "pfcvm_em", **settings)
    assert [tree.attrs["kind"] for tree in fits.values()] == list(fits)
    problems = dict.fromkeys(fits, problem) | {"point": of_point}
    return {kind: completed(problems[kind], tree) for kind, tree in fits.items()}


def completed(problem, tree):
    """Return the fit with what PyMC draws of its model, as the how-to has it."""
    prior = pm.sample_prior_predictive(200, model=problem.model, random_seed=seed(2))
    quiet = {"random_seed": seed(3), "progressbar": False}
    labels = pm.sample_posterior_predictive(tree, model=problem.model, **quiet)
    groups = {n: prior[n] for n in ("prior", "prior_predictive")}
    return tree.assign(posterior_predictive=labels["posterior_predictive"], **groups)


@every_model
@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_the_prior_can_be_drawn_from_by_pymc(name):
    problem = make(name)
    drawn = pm.sample_prior_predictive(5, model=problem.model, random_seed=seed(4))["prior"]
    point = {k: v.values for k, v in drawn.data_vars.items()}
    np.testing.assert_allclose(point["eta"], problem.decision(point), rtol=1e-9, atol=1e-12)


ANY = ("mcmc", "approximation", "point")
NUMBERS = {
    "summary": (lambda t: az.summary(t, var_names=["eta"]), ANY),
    "ess": (az.ess, ANY),
    "rhat": (az.rhat, ANY),
    "mcse": (az.mcse, ANY),
    "hdi": (az.hdi, ANY),
    "bfmi": (az.bfmi, ("mcmc",)),
    "loo": (az.loo, ("mcmc",)),
    "compare": (lambda t: az.compare({"one": t, "other": t}), ("mcmc",)),
    "loo_pit": (az.loo_pit, ("mcmc",)),
    "psense": (lambda t: az.psense(t, var_names=["bias"]), ("mcmc", "approximation")),
}
"""What computes, and the kinds of fit that it is for: it refuses the others."""
PLOTS = {
    "plot_trace": (lambda t: az.plot_trace(t, var_names=["bias"]), ANY),
    "plot_forest": (lambda t: az.plot_forest(t, var_names=["bias"]), ANY),
    "plot_rank": (lambda t: az.plot_rank(t, var_names=["bias"]), ("mcmc", "approximation")),
    "plot_pair": (lambda t: az.plot_pair(t, var_names=["bias", "tau"]), ANY),
    "plot_energy": (az.plot_energy, ("mcmc",)),
    "plot_prior_posterior": (lambda t: az.plot_prior_posterior(t, var_names=["bias"]), ANY),
    "plot_loo_pit": (az.plot_loo_pit, ("mcmc",)),
    "plot_psense_dist": (
        lambda t: az.plot_psense_dist(t, var_names=["bias"]),
        ("mcmc",),  # it shows prior and likelihood
    ),
    "plot_ppc_dist": (az.plot_ppc_dist, ANY),
    "plot_ppc_dist of the prior": (lambda t: az.plot_ppc_dist(t, group="prior_predictive"), ANY),
    "plot_ppc_interval": (az.plot_ppc_interval, ANY),
    "plot_ppc_pava": (az.plot_ppc_pava, ANY),
    "plot_ppc_pit": (az.plot_ppc_pit, ANY),
    "plot_ppc_rootogram": (az.plot_ppc_rootogram, ANY),
    "plot_ppc_tstat": (az.plot_ppc_tstat, ANY),
}
REASONS = {
    "loo": "log likelihood not found",
    "psense": "log prior not found",
    "compare": "Encountered error trying to compute ELPD",
    "loo_pit": "log likelihood not found",
    "plot_loo_pit": "log likelihood not found",
    "bfmi": "energy.* are not present",
    "plot_energy": "no attribute 'energy'|sample_dims",  # a point has no statistics
    "plot_rank": "at least 2 chains",
    "plot_psense_dist": "log (prior|likelihood) not found",
}


def check(name, function, kinds, trees):
    import matplotlib.pyplot as plt

    for kind, tree in trees.items():
        if kind in kinds:
            function(tree)
        else:
            with pytest.raises(Exception, match=REASONS[name]):
                function(tree)
        plt.close("all")


@pytest.mark.filterwarnings("ignore")  # ArviZ's own
@pytest.mark.parametrize("name", NUMBERS)
def test_arviz_computes_or_refuses(name, trees):
    check(name, *NUMBERS[name], trees)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["plot_prior_posterior", "plot_ppc_pava", "plot_energy"])
def test_arviz_draws_or_refuses(name, trees):
    check(name, *PLOTS[name], trees)


@pytest.mark.filterwarnings("ignore")
def test_a_forest_shows_every_fit(trees):
    several = {kind: trees[kind] for kind in ("mcmc", "approximation")}
    drawn = az.plot_forest(several, var_names=["bias"], combined=True)
    assert drawn.viz["twig"]["model"].values.tolist() == list(several)
    for kind, tree in several.items():
        middle = drawn.viz["point_estimate"]["bias"].sel(model=kind).item().get_offsets()[0, 0]
        assert middle == pytest.approx(tree["posterior"]["bias"].median().item(), abs=0.3)


@pytest.mark.filterwarnings("ignore")
def test_numbers_of_arviz_are_those_of_the_draws(trees):
    table = az.summary(trees["mcmc"], var_names=["eta"], round_to="none")
    eta = trees["mcmc"]["posterior"]["eta"]
    assert table.index[6] == "eta[6]"
    assert table["mean"].iloc[6] == pytest.approx(eta.sel(obs=6).mean().item())


def test_rows_without_names_are_numbered_by_integers(trees):
    eta = trees["mcmc"]["posterior"]["eta"]
    np.testing.assert_array_equal(eta.sel(obs=6), eta.isel(obs=6))
    problem = make("rfvm", N=12)
    few = av.problem("rfvm", problem.data.take([3, 7, 6, 1]))
    assert few.coords["obs"] == (3, 7, 6, 1)
    assert av.predict(problem, trees["mcmc"], problem.data.X[:3]).sel(obs=2).shape == (4, DRAWS)
    names = [f"patient {k}" for k in range(12)]
    named = av.Dataset.from_arrays(problem.data.X, problem.data.y, sample_names=names)
    assert av.problem("rfvm", named).coords["obs"] == tuple(names)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PLOTS)
def test_arviz_draws_or_refuses_everything(name, trees):
    check(name, *PLOTS[name], trees)
