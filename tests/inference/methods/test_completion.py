"""Prior and predictive draws beside a fit, and what ArviZ makes of a fit of each kind."""

import arviz as az
import matplotlib
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference import read, save
from ardvark.inference.fits.datatree import group
from tests.inference.methods.foreign import as_tree, paper_variables
from tests.models.forms import every_model, make
from tests.support import rng, seed, z_limit

matplotlib.use("Agg")
CHAINS, DRAWS = 4, 100


def exact(problem):
    """Return draws (of the prior) that are called a Markov chain, with an energy."""
    energy = {"energy": rng(5).normal(size=(CHAINS, DRAWS))}
    return av.adopt(problem, as_tree(paper_variables(problem, CHAINS, DRAWS), energy))


@pytest.fixture(scope="module")
def trees():
    """A fit of each kind, completed: no test changes them."""
    problem = make("rfvm", N=12)
    settings = {"draws": DRAWS, "chains": CHAINS, "random_seed": seed(1), "progressbar": False}
    fits = {"mcmc": exact(problem)}
    fits["approximation"] = av.fit(problem, "rfvm_vb", **settings)
    fits["point"] = av.fit(of_kind("point"), "pfcvm_em", **settings)
    assert [tree.attrs["kind"] for tree in fits.values()] == list(fits)
    return {kind: av.complete(of_kind(kind), tree, draws=200) for kind, tree in fits.items()}


def of_kind(kind):
    """The problem of these fits: no method of the RFVM gives a point."""
    return make("pfcvm" if kind == "point" else "rfvm", N=12)


# --- what is drawn --------------------------------------------------------------------------------


@every_model
@pytest.mark.statistical
def test_predictive_labels_follow_their_law(name):
    """Sums over 400 draws of y - E y, plain and weighted by E y - 1/2, standardised, at each row.

    Given the draws labels are independent, with known means and variances: for a score the sums are
    normal, for labels nearly. The plain sum sees a wrong level, the weighted one labels that are
    another draw's. The control hands each draw the labels of the next: over twelve seeds its
    largest z-score, of nine rows, is at least 10, where the limit is 5.8.
    """
    problem = make(name)
    tree = av.complete(problem, exact(problem), draws=400, random_seed=seed(2))
    limit = z_limit(4 * problem.data.N, alarm=1e-6)
    for where in ("posterior", "prior"):
        point = {k: v.values for k, v in tree[where].data_vars.items()}
        y, eta = tree[f"{where}_predictive"]["y"].values, point["eta"]
        if problem.spec.link == "identity":
            mean, variance = (1.0 + eta) / 2.0, 0.25 / point["tau"][..., None]
            scaled = ((y - mean) ** 2 / variance).sum((0, 1))
            assert (stats.chi2.cdf(scaled, 400) > 1e-7).all()
            assert (stats.chi2.sf(scaled, 400) > 1e-7).all()
        else:
            assert set(np.unique(y)) <= {0, 1}
            mean = np.exp(problem.log_predictive(1, eta, point))
            variance = mean * (1.0 - mean)
        assert largest_z(y, mean, variance) < limit
        if where == "posterior":
            assert largest_z(np.roll(y, 1, axis=1), mean, variance) > limit


def largest_z(y, mean, variance):
    weights = np.ones_like(mean), mean - 0.5
    sums = [(w * (y - mean)).sum((0, 1)) for w in weights]
    sds = [np.sqrt((w**2 * variance).sum((0, 1))) for w in weights]
    return np.abs(np.array(sums) / np.array(sds)).max()


def test_the_prior_is_that_of_every_variable_kept(trees):
    for kind, tree in trees.items():
        problem, prior = of_kind(kind), group(tree, "prior")
        assert set(prior.data_vars) == set(tree["posterior"].data_vars)
        assert prior.sizes["draw"] == 200
        point = {k: v.values for k, v in prior.data_vars.items()}
        np.testing.assert_allclose(point["eta"], problem.decision(point), rtol=1e-9, atol=1e-12)
        free = problem.to_free(point) if "psi" in point else {}  # a point has no precisions
        for name, want in free.items():
            np.testing.assert_allclose(point[name], want, rtol=1e-9, atol=1e-12)
        assert prior["feature"].values.tolist() == list(problem.data.feature_names)


def test_completing_changes_nothing_else(tmp_path):
    problem = make("rfvm", N=12)
    tree = exact(problem)
    before = tree.copy(deep=True)
    whole = av.complete(problem, tree, draws=20, random_seed=seed(3))
    assert tree.identical(before)
    added = {"prior", "prior_predictive", "posterior_predictive"}
    assert whole.children.keys() - tree.children.keys() == added
    assert whole.attrs == tree.attrs
    assert whole.identical(av.complete(problem, whole, draws=20, random_seed=seed(3)))
    other = av.complete(problem, tree, draws=20, random_seed=seed(4))
    for name in added:
        assert not group(whole, name).equals(group(other, name))
    save(whole, tmp_path / "whole.nc")
    assert read(tmp_path / "whole.nc").identical(whole)


def test_a_fit_stored_without_log_prior_gets_it():
    problem = make("rfvm", N=12)
    tree = exact(problem)
    old = tree.copy()
    del old["log_prior"]
    whole = av.complete(problem, old, draws=2)
    xr.testing.assert_allclose(group(whole, "log_prior"), group(tree, "log_prior"))


def test_what_cannot_be_completed_is_refused():
    problem = make("rfvm", N=12)
    point = paper_variables(problem)
    shared = {"eta": problem.decision(point)}
    with pytest.raises(InputError, match="the probability of a label needs 'tau'"):
        av.complete(problem, av.adopt(problem, shared), draws=2)
    with pytest.raises(InputError, match="this is a fit of another problem"):
        av.complete(make("rfvm", N=12, bias_sd=2.0), av.adopt(problem, point))
    with pytest.raises(InputError, match="draws must be an integer of at least 1"):
        av.complete(problem, av.adopt(problem, point), draws=0)


# --- ArviZ ----------------------------------------------------------------------------------------

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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PLOTS)
def test_arviz_draws_or_refuses_everything(name, trees):
    check(name, *PLOTS[name], trees)
