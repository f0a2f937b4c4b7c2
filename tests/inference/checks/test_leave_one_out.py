"""Leave-one-out from the draws of one fit: the exact answer, and where it is refused."""

import arviz as az
import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference import read, save
from ardvark.inference.checks import leave_one_out as loo
from ardvark.inference.fits.datatree import POINTWISE, pointwise, with_derived, without_derived
from ardvark.models import ZOO
from tests.inference.comparison.quick import Prior, registered
from tests.support import rng, seed, t_limit, z_limit

# --- a problem whose answer is known --------------------------------------------------------------


def eight_points():
    """Eight points on a circle, labels that no line divides, and light prior tails.

    So 1 / p(y_n | draw), whose posterior mean is the answer, has a finite variance.
    """
    angle = np.pi * np.arange(8) / 4.0
    X, y = np.column_stack([np.cos(angle), np.sin(angle)]), [0, 1, 1, 0, 1, 0, 0, 1]
    light = {"sample_shape": 20.0, "sample_rate": 5.0, "feature_shape": 20.0, "bias_sd": 0.5}
    return av.problem("rfvm", (X, y), latent_noise="none", **light)


def prior_draws(problem, S, generator):
    """Return S draws of the weights at once, as the model's docstring has them."""
    h, (B, D) = problem.hypers, problem.Z.shape
    psi = generator.gamma(h.sample_shape, 1.0 / h.sample_rate, (S, B))
    delta = generator.gamma(h.feature_shape, 1.0 / h.feature_rate, (S, D))
    return {
        "sample_weight": generator.normal(size=(S, B)) * psi**-0.5,
        "feature_weight": np.abs(generator.normal(size=(S, D))) * delta**-0.5,
        "bias": generator.normal(0.0, h.bias_sd, S),
    }


def weighed_mean(f, weight):
    """Return the mean of f (S, N) under normalised weights (S, 1), and its relative error."""
    mean = (weight * f).sum(axis=0)
    return mean, np.linalg.norm(weight * (f - mean), axis=0) / mean


@pytest.fixture(scope="module")
def exact():
    """log p(y_n | the others) = -log E[1 / l_n], the mean over the posterior of l_n, by weighing.

    100 000 prior draws are weighed by the likelihood, 80 000 effective ones: no code is shared with
    PyMC or ArviZ. Returns the problem, the eight answers and their standard errors.
    """
    problem = eight_points()
    log_p = problem.log_likelihood(prior_draws(problem, 100_000, rng(1)))
    weight = np.exp(log_p.sum(axis=1, keepdims=True))
    mean, error = weighed_mean(np.exp(-log_p), weight / weight.sum())
    return problem, -np.log(mean), error


def as_tree(problem, point, log_p, chains, **sample_stats):
    """Return a fit that holds these draws, laid out in chains."""

    def laid_out(x, *dims):
        return ("chain", "draw", *dims), x.reshape(chains, -1, *x.shape[1:])

    tree = xr.DataTree.from_dict(
        {
            "/posterior": xr.Dataset({"eta": laid_out(problem.decision(point), "obs")}),
            "/log_likelihood": xr.Dataset({"y": laid_out(log_p, "obs")}),
            "/sample_stats": xr.Dataset({k: laid_out(v) for k, v in sample_stats.items()}),
        }
    )
    kind = "approximation" if sample_stats else "mcmc"
    tree.attrs = {"kind": kind, "method": "made", "fingerprint": problem.fingerprint}
    return tree


@pytest.mark.statistical
def test_from_draws_of_the_posterior_it_is_the_exact_answer_at_a_fixed_basis(exact):
    """Independent posterior draws, by rejection: a prior draw is kept with probability L / max L.

    The in-sample score is the control: its largest z-score is 42 to 44 over twelve seeds, eight
    times the limit at a standard deviation of 1.
    """
    problem, answer, error = exact
    generator = rng(2)
    point = prior_draws(problem, 100_000, generator)
    log_p = problem.log_likelihood(point)
    total = log_p.sum(axis=1)
    kept = np.flatnonzero(np.log(generator.random(len(total))) < total - total.max())
    kept = kept[: len(kept) // 4 * 4]  # 40 000, for four chains
    point, log_p = {k: v[kept] for k, v in point.items()}, log_p[kept]
    estimate = av.loo(problem, as_tree(problem, point, log_p, 4))
    assert (estimate.pareto_k < estimate.good_k).all()
    _, own_error = weighed_mean(np.exp(-log_p), np.full((len(kept), 1), 1.0 / len(kept)))

    def largest_z(found):
        return np.abs((found - answer) / np.hypot(error, own_error)).max()

    assert largest_z(estimate.elpd_i.values) < z_limit(8)
    assert largest_z(np.log(np.exp(log_p).mean(axis=0))) > z_limit(8)


@pytest.mark.statistical
def test_from_an_approximation_its_draws_are_reweighed(exact):
    """An approximation as far off as the prior: reweighed by p / q as well, the exact answer.

    Without that their largest z-score is 90 to 100 over twelve seeds: the control.
    """
    problem, answer, error = exact
    point = prior_draws(problem, 40_000, rng(3))
    log_p = problem.log_likelihood(point)
    # q is the prior, so p / q is the likelihood, but for a constant
    log_q = rng(4).normal(size=len(log_p))
    tree = as_tree(problem, point, log_p, 4, lp=log_q + log_p.sum(axis=1), log_q=log_q)
    estimate = av.loo(problem, tree)
    assert estimate.approx_posterior
    weight = np.exp(log_p.sum(axis=1, keepdims=True))
    _, own_error = weighed_mean(np.exp(-log_p), weight / weight.sum())

    def largest_z(found):
        return np.abs((found - answer) / np.hypot(error, own_error)).max()

    assert largest_z(estimate.elpd_i.values) < z_limit(8)
    naive = loo._psis(as_tree(problem, point, log_p, 4))
    assert largest_z(naive.elpd_i.values) > z_limit(8)


@pytest.mark.slow
@pytest.mark.statistical
def test_from_a_markov_chain_it_is_the_exact_answer_at_a_fixed_basis(exact):
    """The same of NUTS, whose draws remember each other: errors from the means of 40 batches."""
    problem, answer, error = exact
    tree = av.fit(problem, "nuts", draws=4000, random_seed=seed(2), progressbar=False)
    estimate = av.loo(problem, tree)
    f = np.exp(-tree["log_likelihood"]["y"].values)  # (4, 4000, 8)
    batches = f.reshape(40, 400, 8).mean(axis=1)
    own_error = batches.std(axis=0, ddof=1) / np.sqrt(40) / batches.mean(axis=0)
    t = (estimate.elpd_i.values - answer) / np.hypot(error, own_error)
    assert np.abs(t).max() < t_limit(39, 8)


# --- what it refuses, and what it says ------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"), [("pfcvm", "mcmc"), ("pfcvm", "point"), ("pcvm", "approximation")]
)
def test_refused_where_labels_are_in_the_basis(name, kind, dataset, tmp_path):
    """Ours says why and what to run instead; ArviZ finds no terms to take for predictions."""
    problem, random = av.problem(name, dataset), rng(3)
    points = [problem.simulate(random) for _ in range(40)]
    draws = {n: np.stack([p[n] for p in points]).reshape(2, 20, *np.shape(points[0][n]))
             for n in problem.shapes if n in points[0]}  # fmt: skip
    fit = av.adopt(problem, draws, kind)
    found = f"not valid for {name}. The label .* Use av.refit_loo\\(problem, 'adopted', folder"
    with pytest.raises(InputError, match=found):
        av.loo(problem, fit)
    save(fit, tmp_path / "fit.nc")
    for tree in (fit, read(tmp_path / "fit.nc"), with_derived(problem, without_derived(fit))):
        with pytest.raises(TypeError, match="log likelihood not found"):
            az.loo(tree)
        with pytest.raises(Exception, match="Encountered error trying to compute ELPD"):
            az.compare({"one": tree, "other": tree})
        want = problem.log_likelihood(draws)
        np.testing.assert_allclose(pointwise(tree)["y"], want, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("name", "kind"), [("pfcvm", "mcmc"), ("rfvm", "approximation")])
def test_a_file_of_an_earlier_version_does_not_mislead_either(name, kind, dataset, tmp_path):
    problem = av.problem(name, dataset)
    fit = av.adopt(problem, {"eta": np.zeros((1, 4, dataset.N))}, kind)
    terms = xr.DataTree(xr.Dataset({"y": (("chain", "draw", "obs"), np.zeros((1, 4, dataset.N)))}))
    for old in ("log_likelihood", "unweighted_log_likelihood"):
        tree = fit.copy()
        for known in ("log_likelihood", POINTWISE):
            if known in tree.children:
                del tree[known]
        tree[old] = terms
        save(tree, tmp_path / "fit.nc")
        assert {"log_likelihood", "unweighted_log_likelihood"}.isdisjoint(read(tmp_path / "fit.nc"))
        assert POINTWISE in read(tmp_path / "fit.nc").children


def test_every_model_with_labels_in_its_basis_says_so():
    assert {name for name, spec in ZOO.items() if spec.labels_in_basis} == {"pfcvm", "pcvm"}


def test_other_fits_it_cannot_use(problem, dataset, monkeypatch):
    registered(monkeypatch, Prior)
    tree = av.fit(problem, "prior", draws=20, chains=2, random_seed=seed(1))
    with pytest.raises(InputError, match=r"'prior' \(point\) gives none"):
        av.loo(problem, tree)
    with pytest.raises(InputError, match="this is a fit of another problem"):
        av.loo(av.problem("rfvm", dataset, bias_sd=2.0), tree)
    outside = av.fit(problem, "paper", draws=20, chains=2, random_seed=seed(1), progressbar=False)
    outside["sample_stats"]["lp"].values[0, 3] = -np.inf
    with pytest.raises(InputError, match="1 draws of 'rfvm_vb' lie outside"):
        av.loo(problem, outside)


def test_high_k_hats_are_a_message_not_a_python_warning(problem, caplog):
    tree = av.fit(problem, "paper", draws=500, chains=2, random_seed=seed(1), progressbar=False)
    log_p, log_q = (tree["sample_stats"][k] for k in ("lp", "log_q"))
    tree["sample_stats"]["lp"] = log_q + 8.0 * (log_p - log_q)
    estimate = av.loo(problem, tree)
    high = int((estimate.pareto_k > estimate.good_k).sum())
    assert high > 0
    assert f"for {high} of 24 samples" in caplog.text
