"""Draws from elsewhere become what `fit` returns, or one error says why not."""

import arviz as az
import arviz_stats
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference import read, save
from ardvark.inference.fits.datatree import POINTWISE, group, pointwise
from tests.inference.methods.foreign import CHAINS, DRAWS, FORMS, as_tree, paper_variables
from tests.models.forms import make
from tests.support import rng, seed

OTHER = {"rfvm": {"bias_sd": 2.0}, "fsklr": {"xi": 2.0}}


@pytest.fixture(scope="module", params=FORMS)
def given(request):
    """A problem of each form, and draws of the paper's variables: no test changes them."""
    problem = make(request.param.partition(" ")[0], FORMS[request.param])
    return problem, paper_variables(problem)


@pytest.fixture(scope="module")
def own():
    """RFVM, and draws of an algorithm of one's own."""
    problem = make("rfvm", N=12)
    return problem, paper_variables(problem, chains=4, draws=50)


def variables(tree):
    return {str(k): v.values for k, v in group(tree, "posterior").items()}


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


# --- what is computed -----------------------------------------------------------------------------


def test_from_the_papers_variables_everything_follows(given):
    """Free variables, eta, likelihood, lp: each from its own definition."""
    problem, point = given
    tree = av.adopt(problem, point)
    found = variables(tree)
    assert {name: x.shape for name, x in found.items()} == {
        name: (CHAINS, DRAWS, *shape) for name, shape in problem.shapes.items()
    }
    for name, want in {**point, **problem.to_free(point)}.items():
        close(found[name], want)
    close(found["eta"], problem.decision(point))
    close(pointwise(tree)["y"].values, problem.log_likelihood(point))
    close(tree["sample_stats"]["lp"].values, problem.log_density(found))
    assert tree.attrs["kind"] == "mcmc"
    assert tree.attrs["form"] == problem.form
    for name in problem.spec.dims.keys() & found.keys():
        dims = tree["posterior"][name].dims[2:]
        assert dims == (problem.spec.dims[name] if dims else ())
    assert tree["selection"].to_dataset().identical(av.select(problem, tree))


def test_from_the_free_variables_everything_follows(given):
    """What PyMC's graph makes of them, where the draws hold no deterministic."""
    problem, point = given
    free = problem.to_free(point)
    whole, tree = av.adopt(problem, point), av.adopt(problem, free)
    for name, want in variables(whole).items():
        close(variables(tree)[name], want)
    close(tree["sample_stats"]["lp"].values, whole["sample_stats"]["lp"].values)


@pytest.mark.parametrize(("model", "method"), [("rfvm", "rfvm_vb"), ("pfcvm", "pfcvm_em")])
def test_what_fit_returned_comes_back(model, method, dataset):
    """One code finishes both: no group of the fit is another, but what only its method knows."""
    problem = av.problem(model, dataset)
    tree = av.fit(problem, method, draws=30, chains=2, random_seed=seed(1), progressbar=False)
    again = av.adopt(problem, tree, kind=tree.attrs["kind"])
    for name in tree.children.keys() - {"fit", "sample_stats"}:
        xr.testing.assert_allclose(group(tree, name), group(again, name), rtol=1e-9)
    assert ("log_q" in again["sample_stats"]) == ("log_q" in tree["sample_stats"])
    assert POINTWISE in again.children
    assert again.attrs["method"] == "adopted"


def test_the_shared_quantities_alone_are_compared(own, caplog):
    problem, point = own
    exact = av.adopt(problem, point)
    some = {name: point[name] for name in ("feature_weight", "sample_weight")}
    tree = av.adopt(problem, {**some, "eta": problem.decision(point)})
    assert "without the likelihood, log_prior, lp" in caplog.text
    assert "lp" not in tree["sample_stats"]
    found = av.compare({"whole": exact, "shared": tree}, problem=problem).distances
    errors = found.query("fit == 'shared' and statistic == 'error'").set_index("quantity")
    assert (errors.loc[["eta", "feature_weight"], "value"] < 1e-9).all()
    with pytest.raises(InputError, match=r"eta needs 'bias', which is missing"):
        av.predict(problem, tree, problem.data)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter:UserWarning")
def test_an_adopted_fit_goes_everywhere(own, tmp_path):
    """compare, predict, ArviZ's loo, selection, disk; the report is drawn in the test below."""
    problem, point = own
    tree = av.adopt(problem, point)
    p = av.predict(problem, tree, problem.data)
    close(p.values, np.exp(problem.log_predictive(1, problem.decision(point), point)))
    other = av.adopt(problem, paper_variables(problem, 4, 50, number=1), kind="approximation")
    both = {"own": tree, "other": other}
    comparison = av.compare(both, problem=problem, test=problem.data)
    assert comparison.reference == "own"
    assert np.isnan(comparison.table.loc["own", "seconds_run"])
    assert az.loo(tree).n_samples == 200
    with pytest.raises(TypeError, match="log likelihood not found"):
        az.loo(other)
    assert av.inference.selection_text(tree)
    save(tree, tmp_path / "own.nc")
    assert read(tmp_path / "own.nc").identical(tree)


def test_an_approximation_with_its_density_is_reweighed(own):
    """q is the prior, so p / q is the likelihood."""
    problem, point = own
    log_q = problem.log_density(point) - problem.log_likelihood(point).sum(-1)
    groups = {"/posterior": av.adopt(problem, point)["posterior"].to_dataset()}
    groups["/sample_stats"] = xr.Dataset({"log_q": (("chain", "draw"), log_q)})
    tree = av.adopt(problem, xr.DataTree.from_dict(groups), kind="approximation")
    close(tree["sample_stats"]["log_q"].values, log_q)
    stats, terms = tree["sample_stats"], tree.assign(log_likelihood=tree[POINTWISE])
    assert arviz_stats.loo_approximate_posterior(
        terms, log_p=stats["lp"], log_q=stats["log_q"]
    ).approx_posterior
    del groups["/posterior"]["psi"]  # without lp there is nothing to weigh by
    assert "log_q" not in av.adopt(problem, xr.DataTree.from_dict(groups))["sample_stats"]


# --- trees of other libraries ---------------------------------------------------------------------


def test_statistics_by_the_names_of_nutpie(own):
    problem, point = own
    random = rng(3)
    stats = {
        "depth": random.integers(1, 9, (4, 50)),
        "mean_tree_accept": random.random((4, 50)),
        "diverging": np.zeros((4, 50), dtype=bool),
        "energy": random.normal(size=(4, 50)),
        "logp": problem.log_density(point) + 7.0,  # another constant: not ours
        "index_in_trajectory": np.ones((4, 50)),
    }
    tree = as_tree(point, stats, observed=problem.y)
    tree["posterior"].attrs["sampling_time"] = 2.5
    adopted = av.adopt(problem, tree)
    found = adopted["sample_stats"]
    assert set(found.data_vars) == {"tree_depth", "acceptance_rate", "diverging", "energy", "lp"}
    np.testing.assert_array_equal(found["tree_depth"], stats["depth"])
    close(found["lp"].values, problem.log_density(point))
    assert adopted.attrs["seconds_run"] == 2.5


@pytest.mark.parametrize("name", ["lp", "logp"])
def test_a_foreign_density_is_not_ours(name, own):
    """Its constants are another library's: without every variable there is no lp, not that one."""
    problem, point = own
    some = {n: point[n] for n in ("feature_weight", "sample_weight")}
    some["eta"] = problem.decision(point)
    adopted = av.adopt(problem, as_tree(some, {name: rng(4).normal(size=(4, 50))}))
    assert "lp" not in group(adopted, "sample_stats")


def test_coordinates_are_matched_by_name(own):
    """Features in another order are put into the problem's; others are refused."""
    problem, point = own
    order, names = [2, 0, 3, 1], np.array(problem.data.feature_names)
    moved = point | {"feature_weight": point["feature_weight"][..., order]}
    tree = as_tree(moved, coords={"feature": names[order]})
    close(variables(av.adopt(problem, tree))["feature_weight"], point["feature_weight"])
    numbered = as_tree(point, coords={"feature": np.arange(4)})  # by default: as they come
    close(variables(av.adopt(problem, numbered))["feature_weight"], point["feature_weight"])
    with pytest.raises(InputError, match="the names along 'feature' differ"):
        av.adopt(problem, as_tree(point, coords={"feature": ["a", "b", "c", "d"]}))


def test_draws_in_single_precision_are_taken(own):
    problem, point = own
    single = {name: x.astype(np.float32) for name, x in point.items()}
    tree = av.adopt(problem, single | {"eta": problem.decision(point).astype(np.float32)})
    found = variables(tree)
    assert found["eta"].dtype == np.float64
    close(found["eta"], problem.decision(found))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rfvm", "fsklr"])
def test_draws_of_pymc_itself(name):
    """`pm.sample(model=problem.model)`, masks included; PyMC stored the density of its own NUTS."""
    problem = make(name)
    tree = pm.sample(
        20, tune=20, chains=2, cores=1, nuts_sampler="pymc", model=problem.model,
        progressbar=False, random_seed=seed(1), compute_convergence_checks=False,
    )  # fmt: skip
    adopted = av.adopt(problem, tree)
    assert adopted.attrs["seconds_run"] > 0.0
    for variable in problem.shapes:
        close(variables(adopted)[variable], tree["posterior"][variable].values)
    lp = adopted["sample_stats"]["lp"].values
    assert np.isfinite(lp).all()
    assert adopted.attrs["prior_unchecked"] == ""
    np.testing.assert_allclose(lp, tree["sample_stats"]["lp"].values, atol=1e-6)
    with pytest.raises(InputError, match="differs from this problem's by more than a constant"):
        av.adopt(problem.with_hypers(**OTHER[name]), tree.drop_nodes("constant_data"))


# --- what is refused ------------------------------------------------------------------------------


def spoilt(x, value, at=(1, 2)):
    out = np.array(x)
    out[at] = value
    return out


REFUSED = {
    "a name": (lambda p: p | {"thetaa": p["bias"]}, "unknown variable of rfvm 'thetaa'"),
    "no chain": (
        lambda p: {k: x[0] for k, x in p.items()},
        r"must have the shape \(chain, draw.*\), got .*For one chain, pass array\[None\]",
    ),
    "a shape": (
        lambda p: p | {"feature_weight": p["feature_weight"][..., :2]},
        r"feature_weight must have the shape \(chain, draw, 4\), got \(4, 50, 2\)",
    ),
    "a length": (
        lambda p: p | {"bias": p["bias"][:, :9]},
        r"same number of chains and draws, at least one: bias has \(4, 9\)",
    ),
    "no draws": (lambda p: {k: x[:, :0] for k, x in p.items()}, "at least one"),
    "nothing": (lambda p: {}, "there are no draws: expected some of psi, "),
    "nothing shared": (
        lambda p: {"bias": p["bias"], "psi": p["psi"]},
        "none of .* can be computed from these draws. They lack .*feature_weight",
    ),
    "words": (lambda p: p | {"bias": p["bias"].astype(str)}, "bias must contain numbers"),
    "a NaN": (
        lambda p: p | {"psi": spoilt(p["psi"], np.nan, (1, 2, 3))},
        "psi contains 1 NaN or infinite value.*chain 1, draw 2, component 3",
    ),
    "a negative precision": (
        lambda p: p | {"tau": spoilt(p["tau"], -1.0)},
        "tau must be above 0: 1 value.*chain 1, draw 2",
    ),
    "a negative relevance": (
        lambda p: p | {"feature_weight": spoilt(p["feature_weight"], -1.0)},
        "feature_weight must be above 0: 4 value",
    ),
    "no density": (
        lambda p: p | {"psi": spoilt(p["psi"], 0.0)},
        "1 of 200 draws are outside the support, the first in chain 1, draw 2",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_draw_of_the_posterior_is_refused(case, own):
    problem, point = own
    spoil, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        av.adopt(problem, spoil(point))


def test_an_approximation_may_leave_the_support_while_it_has_a_likelihood(own):
    """As a Gaussian of a positive weight does: no density there, said by NaN, but an eta."""
    problem, point = own
    outside = point | {"feature_weight": spoilt(point["feature_weight"], -1.0)}
    tree = av.adopt(problem, outside, kind="approximation")
    assert np.argwhere(np.isnan(tree["sample_stats"]["lp"].values)).tolist() == [[1, 2]]
    close(variables(tree)["eta"], problem.decision(outside))
    with pytest.raises(InputError, match="the likelihood of some draws is NaN"):
        av.adopt(problem, point | {"tau": spoilt(point["tau"], -1.0)}, kind="approximation")


def test_a_mask_that_is_none_is_refused():
    problem = make("fsklr")
    point = paper_variables(problem)
    with pytest.raises(InputError, match=r"zeta is a mask and must be 0 or 1.*chain 1, draw 2"):
        av.adopt(problem, point | {"zeta": spoilt(point["zeta"].astype(float), 0.5)})


def test_a_latent_value_on_the_wrong_side_of_its_label_is_refused():
    """Draws of other labels: in the latent form their density is 0."""
    problem = make("jcfo", {"parametrization": "latent"})
    point = paper_variables(problem)
    with pytest.raises(InputError, match="12 of 12 draws are outside the support"):
        av.adopt(problem, point | {"z": -point["z"]})


def test_weights_on_another_scale_are_refused(own):
    """The negative control of the check of eta: inputs that were not standardised."""
    problem, point = own
    raw = problem.spec.decision(
        point, problem.inputs.__class__(problem.data.X, problem.data.X), problem.hypers
    )
    assert np.abs(raw - problem.decision(point)).max() > 0.01
    with pytest.raises(
        InputError, match=r"eta differs by up to .* from the eta that the weights give"
    ):
        av.adopt(problem, point | {"eta": raw})


def test_a_posterior_group_alone_is_taken(own):
    problem, point = own
    whole = as_tree(point)
    alone = av.adopt(problem, whole["posterior"])
    expected = av.adopt(problem, whole)["posterior"]["eta"]
    np.testing.assert_array_equal(alone["posterior"]["eta"], expected)


def test_draws_of_other_data_are_refused(own):
    problem, point = own
    with pytest.raises(InputError, match="the labels in observed_data differ from those"):
        av.adopt(problem, as_tree(point, observed=1 - problem.y))
    with pytest.raises(InputError, match="this is a fit of another problem"):
        av.adopt(make("rfvm", N=12, bias_sd=2.0), av.adopt(problem, point))
    with pytest.raises(InputError, match="the draws have no dimension 'chain' and no 'draw'"):
        av.adopt(problem, xr.DataTree.from_dict({"/posterior": xr.Dataset({"bias": 1.0})}))
    with pytest.raises(InputError, match=r"adopt needs a DataTree, .*got list"):
        av.adopt(problem, [1.0])
    with pytest.raises(InputError, match="kind must be one of"):
        av.adopt(problem, point, kind="draws")


# --- trees that were not adopted ------------------------------------------------------------------


def test_bare_trees_are_compared_without_a_problem(own):
    """Their distances are those of the same draws adopted; foreign lp and the rest are not read."""
    problem, point = own
    shared = {k: point[k] for k in ("feature_weight", "sample_weight")}
    shared["eta"] = problem.decision(point)
    other = {k: 1.5 * x + 0.1 for k, x in shared.items()}
    lp = {"lp": rng(2).normal(size=(4, 50))}
    bare = {n: as_tree(x, lp) for n, x in {"a": shared, "b": other}.items()}
    found = av.compare(bare, reference="a").distances
    assert set(found["quantity"]) == {*shared, "ranking"}
    whole = av.adopt(problem, shared).drop_nodes("selection")  # it would choose what is compared
    altered = whole.copy(deep=True)
    for name, x in other.items():
        altered["posterior"][name].values[:] = x
    want = av.compare({"a": whole, "b": altered}, reference="a").distances
    rows = want["quantity"].isin(shared)
    np.testing.assert_allclose(
        found.loc[found["quantity"].isin(shared), "value"], want.loc[rows, "value"], rtol=1e-9
    )


def test_a_tree_that_was_not_adopted_says_so(own):
    problem, point = own
    bare, fit = as_tree(point), av.adopt(problem, point)
    message = r"'mine' was not created by ardvark: wrap it with ardvark\.adopt"
    with pytest.raises(InputError, match=message):
        av.compare({"mine": bare, "fit": fit})
    with pytest.raises(InputError, match=message):
        av.compare({"mine": bare}, problem=problem)
    for use in (av.select, lambda p, t: av.predict(p, t, p.data)):
        with pytest.raises(InputError, match=r"Wrap them with ardvark\.adopt\(problem, draws\)"):
            use(problem, bare)
    empty = xr.DataTree.from_dict({"/posterior": xr.Dataset({"beta": (("chain", "draw"), [[1]])})})
    with pytest.raises(InputError, match="contains none of feature_weight, sample_weight, eta"):
        av.compare({"mine": empty})


@pytest.mark.parametrize("what", ["tree", "list", "numbers"])
def test_compare_of_something_else(what, own):
    problem, point = own
    fits = {"tree": av.adopt(problem, point), "list": [1], "numbers": {"a": np.ones(3)}}[what]
    with pytest.raises(InputError, match="compare needs a dict that maps row names"):
        av.compare(fits)
