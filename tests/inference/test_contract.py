"""The contract of `fit`, for every backend in the registry: one call, one kind of object."""

import dataclasses
import json
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import special, stats

import ardvark as av
from ardvark.common.declared import Settings
from ardvark.common.validate import InputError
from ardvark.inference import BACKENDS, read, save
from ardvark.inference.fits.convergence import EXACT
from ardvark.inference.fits.datatree import POINTWISE, SAMPLE_STATS, pointwise
from ardvark.inference.methods import registry, run
from ardvark.inference.samplers.exact.rule import SAMPLERS
from ardvark.inference.target.backend import KINDS, FitFailed, Result
from ardvark.inference.target.length import most_kept
from ardvark.inference.target.sampling import Sampling
from ardvark.models import SHARED, ZOO
from tests.support import rng, seed

every_backend = pytest.mark.parametrize("method", list(BACKENDS))
# what a contract asks holds for short runs too; how good long ones are is tested in their rooms
OPTIONS = {
    "exact": {"ess": 100.0, "limit": 256},
    "advi": {"step_sizes": (0.05, 0.01)},
    "jcfo_em": {"starts": 2},
    "nuts": {"tune": 100},
    "gibbs": {"tune": 100},
    "pfcvm_lp": {"hyperprior": "model"},  # whose q covers every variable: it has a density
}
MODEL = {
    "gibbs": "fsklr",
    "pfcvm_lp": "pfcvm",
    "pfcvm_em": "pfcvm",
    "jcfo_em": "jcfo",
    "fsklr_savb": "fsklr",
}
ONE_DRAW = ("point", "search")
# their one point has weights of 0, where the density of a positive weight's logarithm is 0
WITHOUT_LP = {"pfcvm_em", "jcfo_em"}


def fit(problem, method, **settings):
    settings = {"draws": 60, "chains": 2, "random_seed": seed(3), "progressbar": False, **settings}
    return av.fit(problem, method, **{**OPTIONS.get(method, {}), **settings})


@pytest.fixture(scope="module", params=list(BACKENDS))
def fitted(request, small_data):
    """A method, a problem that it applies to, and its fit: no test changes them."""
    hypers = {"scale": "fixed"} if request.param == "jcfo_em" else {}
    problem = av.problem(MODEL.get(request.param, "rfvm"), small_data(), **hypers)
    return request.param, problem, fit(problem, request.param)


def probability(problem, point, y):
    """P(y | eta) from the definition of each link; latent noise by a trapezoid."""
    m = (2.0 * y - 1.0) * point["eta"]
    if problem.spec.link == "probit":
        return stats.norm.cdf(m)
    if problem.spec.link == "logistic":
        return special.expit(m)
    if problem.spec.link == "identity":
        return point["eta"]  # a score
    e = np.linspace(-9.0, 9.0, 1001)
    sd = point["tau"][..., None, None] ** -0.5
    values = special.expit(m[..., None] + sd * e) * stats.norm.pdf(e)
    return values.sum(-1) * (e[1] - e[0])


def arrays(tree):
    return {str(k): v.values for k, v in tree["posterior"].data_vars.items()}


@every_backend
def test_a_backend_has_its_names(method):
    backend = BACKENDS[method]
    assert method == backend.NAME
    assert backend.KIND in KINDS
    assert dataclasses.is_dataclass(backend.Options)
    options = backend.Options()
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.anything = 1
    assert backend.__doc__
    assert len(backend.__doc__) > 400


def test_what_a_fit_contains(fitted, tmp_path):
    method, problem, tree = fitted
    N, D, B = problem.data.N, problem.data.D, len(problem.basis)
    posterior = tree["posterior"]
    sizes = (1, 1) if BACKENDS[method].KIND in ONE_DRAW else (2, 60)
    if method == "exact":  # it keeps as many as it needs: those of the last judgement
        ended = tree["fit"]["judged_iterations"].values[-1]
        warm_up = SAMPLERS[tree.attrs["sampler"]].WARM_UP
        held = round(ended * (1.0 - warm_up) / tree.attrs["every"])
        ess = json.loads(tree.attrs["options"])["ess"]
        sizes = (2, min(held, max(60, round(4 * ess / 2))))
    assert (tree.attrs["chains"], tree.attrs["draws"]) == sizes
    assert (posterior.sizes["chain"], posterior.sizes["draw"]) == sizes
    shapes = {"feature_weight": ("feature", D), "sample_weight": ("basis", B), "eta": ("obs", N)}
    for name in problem.spec.shared:
        dim, size = shapes[name]
        assert posterior[name].dims == ("chain", "draw", dim)
        assert posterior[name].sizes[dim] == size
    assert posterior["feature"].values.tolist() == list(problem.data.feature_names)
    assert posterior["obs"].values.tolist() == list(range(N))
    # eta is what its own weights say
    point = arrays(tree)
    np.testing.assert_allclose(problem.decision(point), point["eta"], rtol=1e-8, atol=1e-10)
    assert set(tree["sample_stats"].data_vars) <= set(SAMPLE_STATS)
    assert tree["observed_data"]["y"].values.tolist() == problem.y.tolist()
    data = tree["constant_data"]
    np.testing.assert_allclose(data["center"], problem.data.X.mean(axis=0))
    np.testing.assert_allclose(data["scale"], problem.data.X.std(axis=0))
    original = data["X"].values * data["scale"].values + data["center"].values
    np.testing.assert_allclose(original, problem.data.X, atol=1e-12)
    np.testing.assert_array_equal(data["Z"], data["X"])  # every row is a basis centre
    attrs = tree.attrs
    assert attrs["method"] == method
    assert attrs["kind"] == BACKENDS[method].KIND
    assert attrs["status"] in ("finished", "not_converged")
    assert attrs["fingerprint"] == problem.fingerprint
    assert attrs["form"] == problem.form
    assert attrs["seconds_run"] > 0
    hypers = json.loads(attrs["hypers"])
    assert hypers.get("kernel") == getattr(problem.hypers, "kernel", None)
    assert None not in hypers.values()
    assert "pymc" in json.loads(attrs["versions"])
    json.loads(attrs["options"])
    for name in posterior.data_vars:
        assert np.isfinite(posterior[name]).all()

    assert tree["selection"].to_dataset().identical(av.select(problem, tree))
    dims = {"chain": sizes[0], "draw": sizes[1], "feature": D, "quantile": 5, "t": 9}
    assert tree["selection"].sizes == dims | ({"basis": B} if problem.spec.has_basis else {})

    # the size that is announced before a fit is made
    sampling = Sampling(draws=60, chains=2, seed=0)
    most = run.stored_size(problem, sampling, exact=method == "exact")
    if method == "exact":  # announced for its default `ess`
        most *= most_kept(sampling, OPTIONS["exact"]["ess"]) / most_kept(sampling, EXACT.bulk)
    kept = [*posterior.data_vars.values(), *pointwise(tree).data_vars.values()]
    found = sum(v.nbytes for v in kept)
    assert found == pytest.approx(most) if method == "nuts" else found <= most

    save(tree, tmp_path / "fit.nc")
    assert tree.identical(read(tmp_path / "fit.nc"))
    assert [p.name for p in tmp_path.iterdir()] == ["fit.nc"]


def test_likelihood_and_prediction_are_those_of_the_link(fitted):
    """Pointwise, noise integrated out in every form, at the rows that were fitted."""
    _, problem, tree = fitted
    predicts = tree.attrs["kind"] == "mcmc" and not problem.spec.labels_in_basis
    assert ("log_likelihood" in tree.children) == predicts  # ArviZ's name, for ArviZ's loo
    assert (POINTWISE in tree.children) != predicts
    likelihood = pointwise(tree)["y"]
    assert likelihood.dims == ("chain", "draw", "obs")
    want = np.log(probability(problem, arrays(tree), problem.y))
    np.testing.assert_allclose(likelihood, want, rtol=1e-6, atol=1e-9)
    predicted = av.predict(problem, tree, problem.data)
    want = probability(problem, arrays(tree), 1)
    np.testing.assert_allclose(predicted, want, rtol=1e-6, atol=1e-9)


def test_lp_is_the_density_of_the_unconstrained_vector(fitted):
    """`lp` from each method equals the paper's density plus the Jacobian, up to one constant."""
    method, problem, tree = fitted
    found = tree["sample_stats"]
    without = "lp" not in found or bool(np.isnan(found["lp"]).all())
    assert without == (method in WITHOUT_LP)
    if without:
        point = arrays(tree)
        assert (point["feature_weight"] == 0.0).any() or (point["sample_weight"] == 0.0).any()
        return
    difference = found["lp"].values - problem.log_density(arrays(tree))
    np.testing.assert_allclose(difference, difference.flat[0], atol=1e-6)
    assert ("log_q" in found) == (BACKENDS[method].KIND == "approximation")
    if "log_q" in found:
        assert np.isfinite(found["log_q"]).all()


def test_equal_seeds_equal_draws(fitted):
    method, problem, tree = fitted
    again, other = fit(problem, method), fit(problem, method, random_seed=seed(4))
    for name in problem.spec.shared:
        np.testing.assert_array_equal(tree["posterior"][name], again["posterior"][name])
        if BACKENDS[method].KIND not in ONE_DRAW:  # another start may well end at the same point
            assert not np.array_equal(tree["posterior"][name], other["posterior"][name])
            first, second = tree["posterior"][name].values
            assert not np.array_equal(first, second)  # each chain has a stream of its own


def test_keep_shared(fitted):
    method, problem, _ = fitted
    kept = set(fit(problem, method, keep="shared")["posterior"].data_vars)
    assert set(problem.spec.shared) <= kept
    assert not kept & {"delta", "alpha", "zeta"}
    assert ("bias" in kept) == (problem.spec.name != "fsklr")  # a scalar; FS-SKLR has none


@pytest.mark.parametrize(
    "change",
    [
        {"hypers": {"parametrization": "marginal"}},
        {"hypers": {"bias_sd": 2.0}},
        {"options": {"starts": 2}},
        {"draws": 61},
        {"chains": 3},
        {"seed": 4},
        {"keep": "shared"},
        {"method": "advi"},
    ],
    ids=str,
)
def test_a_request_is_another_when_anything_has_changed(change, dataset):
    """Else a stored fit of something else would be used again."""

    def asked(hypers=None, method="laplace", options=None, **settings):
        problem = av.problem("rfvm", dataset, **(hypers or {}))
        sampling = replace(Sampling(draws=60, chains=2, seed=3), **settings)
        return registry.prepare(method, problem, options or {}, sampling).request

    assert asked() == asked()
    assert asked(**change) != asked()


def test_a_request_is_of_its_data(small_data):
    problems = [av.problem("rfvm", small_data(seed=number)) for number in (0, 1)]
    first, second = (registry.prepare("laplace", problem, {}).request for problem in problems)
    assert first != second


class _Prior:
    """A method that returns one draw of the prior, which is enough to ask what is kept of it."""

    NAME, KIND, Options = "prior", "approximation", Settings
    supports = staticmethod(lambda target: None)

    @staticmethod
    def fit(target, options, job):
        problem = target.zoo_problem
        point = problem.simulate(rng(5))
        point |= problem.to_free(point)
        return Result(job.one_draw({k: x for k, x in point.items() if k in problem.shapes}))


@pytest.mark.parametrize("name", list(ZOO))
def test_prediction_needs_no_more_than_keep_shared_keeps(name, dataset, monkeypatch):
    """Also of a model whose decision value is not made of the shared quantities alone."""
    monkeypatch.setattr(registry, "BACKENDS", {"prior": _Prior})
    problem = av.problem(name, dataset)
    whole, kept = (fit(problem, "prior", keep=keep) for keep in ("all", "shared"))
    wanted = {k for k in (*SHARED, *ZOO[name].needed) if k in problem.sizes}
    assert wanted <= {*kept["posterior"].data_vars}
    expected = probability(problem, arrays(whole), 1)
    rows = [7, 0, 3]
    found = av.predict(problem, kept, dataset.X[rows])
    np.testing.assert_allclose(found, expected[..., rows], rtol=1e-6, atol=1e-9)


def test_keep_all_has_a_limit(problem, monkeypatch, caplog):
    monkeypatch.setattr(registry, "BACKENDS", {"prior": _Prior})
    monkeypatch.setattr(run, "LARGEST_KEPT", 1000)
    tree = fit(problem, "prior")
    assert "keeping only feature_weight, sample_weight, eta and the scalars" in caplog.text
    assert "delta" not in tree["posterior"]


def test_the_paper_is_an_alias(problem):
    assert registry.resolve("paper", problem) == "rfvm_vb"
    assert fit(problem, "paper").attrs["method"] == "rfvm_vb"
    with pytest.raises(InputError, match=r"needs a problem made by ardvark.problem"):
        registry.resolve("paper", None)


class _Custom:
    NAME, KIND = "custom", "point"

    @dataclasses.dataclass(frozen=True)
    class Options:
        fail: bool = False
        nan: bool = False

    @staticmethod
    def supports(target):
        return None

    @staticmethod
    def fit(target, options, job):
        if options.fail:
            raise FitFailed("it was told to")
        eta = np.full((1, 1, target.problem.data.N), np.nan if options.nan else 0.0)
        tau = np.ones((1, 1))
        return Result(posterior={"eta": eta, "tau": tau})


def test_a_backend_of_ones_own(problem, monkeypatch, caplog):
    monkeypatch.setattr(registry, "BACKENDS", dict(BACKENDS))
    registry.register_backend(_Custom)
    tree = av.fit(problem, "custom")
    assert isinstance(tree, xr.DataTree)
    assert tree.attrs["seconds_run"] > 0.0  # it does not time itself
    assert tree.attrs["status"] == "finished"
    # a failure is an object too, with its reason, never a silent NaN
    for options, reason in (({"fail": True}, "it was told to"), ({"nan": True}, "not finite")):
        tree = av.fit(problem, "custom", **options)
        assert tree.attrs["status"] == "failed"
        assert reason in tree.attrs["reason"]
        assert reason in caplog.text
        assert not tree["posterior"].data_vars
    # a notebook's cell that runs again replaces it; what the package has stays
    registry.register_backend(type("Better", (_Custom,), {"KIND": "approximation"}))
    assert av.fit(problem, "custom").attrs["kind"] == "approximation"
    for name in ("nuts", "paper"):
        with pytest.raises(InputError, match=f"the package already has a method {name!r}"):
            registry.register_backend(type("Taken", (_Custom,), {"NAME": name}))
    with pytest.raises(InputError, match="missing: KIND, Options, supports, fit"):
        registry.register_backend(type("Half", (), {"NAME": "half"}))
    plain = staticmethod(lambda target, options, job: {"eta": np.zeros((1, 1, 3))})
    registry.register_backend(type("Plain", (_Custom,), {"fit": plain}))
    with pytest.raises(TypeError, match=r"'custom': fit must return .*Result, got dict"):
        av.fit(problem, "custom")
    for shape, said in (
        ((7,), r"eta must have the shape \(chain, draw, "),
        ((1, 1, 99), "got .*99"),
    ):
        odd = staticmethod(
            lambda target, options, job, shape=shape: Result({"eta": np.zeros(shape)})
        )
        registry.register_backend(type("Odd", (_Custom,), {"fit": odd}))
        with pytest.raises(TypeError, match=said):
            av.fit(problem, "custom")
    named = staticmethod(lambda target, options, job: Result({"feature_weights": np.zeros((1, 1))}))
    registry.register_backend(type("Named", (_Custom,), {"fit": named}))
    with pytest.raises(InputError) as raised:
        av.fit(problem, "custom")
    known = ", ".join(sorted(problem.shapes))
    assert str(raised.value) == (
        "method 'custom': unknown variable 'feature_weights'. Did you mean 'feature_weight' or "
        f"'feature_weight_raw' or 'sample_weight'? Known: {known}."
    )
    with pm.Model() as bare:
        pm.Normal("a")
        pm.Deterministic("b", 2.0 * bare["a"])
    with pytest.raises(InputError, match=r"'feature_weights'\. Known: a, b\."):
        av.fit(bare, "custom")
