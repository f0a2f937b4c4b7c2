"""The contract of `fit`, for every backend in the registry: one call, one kind of object."""

import dataclasses
import json

import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference import BACKENDS, fitting, read, save
from ardvark.inference.backend import KINDS, FitFailed, Result
from ardvark.inference.datatree import SAMPLE_STATS
from ardvark.models import SHARED, ZOO
from ardvark.validate import InputError

every_backend = pytest.mark.parametrize("method", list(BACKENDS))
QUICK = {"nuts": {"tune": 100}, "gibbs": {"tune": 100}}
MODEL = {
    "gibbs": "fsklr",
    "pfcvm_lp": "pfcvm",
    "pfcvm_em": "pfcvm",
    "jcfo_em": "jcfo",
    "fsklr_savb": "fsklr",
}
ONE_DRAW = ("point", "search")


@pytest.fixture
def problem(request, dataset):
    """A problem the test's backend applies to: RFVM's, or that of its own model."""
    method = request.node.callspec.params["method"] if hasattr(request.node, "callspec") else ""
    return av.problem(MODEL.get(method, "rfvm"), dataset)


def fit(problem, method, **settings):
    settings = {"draws": 60, "chains": 2, "random_seed": 3, "progressbar": False, **settings}
    return av.fit(problem, method, **QUICK.get(method, {}), **settings)


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


@every_backend
def test_what_a_fit_contains(method, problem, tmp_path):
    tree = fit(problem, method)
    N, D, B = problem.data.N, problem.data.D, len(problem.basis)
    posterior = tree["posterior"]
    sizes = (1, 1) if BACKENDS[method].KIND in ONE_DRAW else (2, 60)
    assert (posterior.sizes["chain"], posterior.sizes["draw"]) == sizes
    shapes = {"feature_weight": ("feature", D), "sample_weight": ("basis", B), "eta": ("obs", N)}
    for name, (dim, size) in shapes.items():
        assert posterior[name].dims == ("chain", "draw", dim)
        assert posterior[name].sizes[dim] == size
    assert posterior["feature"].values.tolist() == list(problem.data.feature_names)
    assert posterior["obs"].values.tolist() == list(problem.data.sample_names)
    # eta is what its own weights say
    point = {str(k): v.values for k, v in posterior.data_vars.items()}
    np.testing.assert_allclose(problem.decision(point), point["eta"], rtol=1e-8, atol=1e-10)
    # the pointwise likelihood is that of eta, noise integrated out
    likelihood = tree["log_likelihood"]["y"]
    assert likelihood.dims == ("chain", "draw", "obs")
    np.testing.assert_allclose(likelihood, problem.log_likelihood(point), rtol=1e-8, atol=1e-10)
    assert set(tree["sample_stats"].data_vars) <= set(SAMPLE_STATS)
    assert tree["observed_data"]["y"].values.tolist() == problem.y.tolist()
    assert tree["constant_data"]["X"].shape == (N, D)
    attrs = tree.attrs
    assert attrs["method"] == method
    assert attrs["kind"] == BACKENDS[method].KIND
    assert attrs["status"] in ("ok", "not_converged")
    assert attrs["fingerprint"] == problem.fingerprint
    assert attrs["form"] == problem.form
    assert attrs["seconds_run"] > 0
    hypers = json.loads(attrs["hypers"])
    assert hypers["kernel"] == problem.hypers.kernel
    assert None not in hypers.values()
    assert "pymc" in json.loads(attrs["versions"])
    json.loads(attrs["options"])
    for name in posterior.data_vars:
        assert np.isfinite(posterior[name]).all()

    save(tree, tmp_path / "fit.nc")
    assert tree.identical(read(tmp_path / "fit.nc"))
    assert [p.name for p in tmp_path.iterdir()] == ["fit.nc"]


@every_backend
def test_lp_is_the_density_of_the_unconstrained_vector(method, problem):
    """`lp` from each method equals the paper's density plus the Jacobian, up to one constant."""
    tree = fit(problem, method)
    stats = tree["sample_stats"]
    if "lp" not in stats or np.isnan(stats["lp"]).all():
        # only where q does not cover every free variable, or the one point has a weight of 0
        assert method in MODEL or BACKENDS[method].KIND == "point"
        return
    point = {str(k): v.values for k, v in tree["posterior"].data_vars.items()}
    lp = stats["lp"].values
    difference = lp - problem.log_density(point)
    np.testing.assert_allclose(difference, difference.flat[0], atol=1e-6)
    if "log_q" in tree["sample_stats"]:
        assert np.isfinite(tree["sample_stats"]["log_q"]).all()


@every_backend
def test_equal_seeds_equal_draws(method, problem):
    a, b = fit(problem, method), fit(problem, method)
    c = fit(problem, method, random_seed=4)
    for name in SHARED:
        np.testing.assert_array_equal(a["posterior"][name], b["posterior"][name])
        if BACKENDS[method].KIND not in ONE_DRAW:  # another start may well end at the same point
            assert not np.array_equal(a["posterior"][name], c["posterior"][name])


@every_backend
def test_keep_shared(method, problem):
    kept = set(fit(problem, method, keep="shared")["posterior"].data_vars)
    assert set(SHARED) <= kept
    assert not kept & {"delta", "alpha", "zeta"}
    assert ("bias" in kept) == (problem.spec.name != "fsklr")  # a scalar; FS-SKLR has none


def test_prediction_needs_no_more_than_keep_shared_keeps(dataset):
    """Also for a model whose decision value is not made of the shared quantities alone."""
    names = ["rfvm", *(name for name, spec in ZOO.items() if spec.needed)]
    assert len(names) > 1
    for name in names:
        problem = av.problem(name, dataset)
        tree = fit(problem, "laplace", keep="shared", draws=5)
        assert np.isfinite(av.predict(problem, tree, dataset)).all()


def test_keep_all_has_a_limit(problem, monkeypatch, caplog):
    monkeypatch.setattr(fitting, "LARGEST_KEPT", 1000)
    tree = fit(problem, "laplace")
    assert "keeping feature_weight, sample_weight, eta and the scalars only" in caplog.text
    assert "delta" not in tree["posterior"]


@every_backend
def test_an_unknown_option_lists_the_known_ones(method, problem):
    with pytest.raises(TypeError, match=f"'{method}' has no option 'tunes'.*Its options: "):
        av.fit(problem, method, tunes=3)


def test_the_paper_is_an_alias(problem):
    assert fitting.resolve("paper", problem) == "rfvm_vb"
    assert fit(problem, "paper").attrs["method"] == "rfvm_vb"
    with pytest.raises(InputError, match="needs a problem of the zoo"):
        fitting.resolve("paper", None)


def test_bad_calls_are_refused_before_any_work(problem):
    with pytest.raises(InputError, match=r"unknown method 'nut'. Did you mean 'nuts'"):
        av.fit(problem, "nut")
    with pytest.raises(InputError, match=r"fit needs a Problem or a pm.Model, got ndarray"):
        av.fit(np.ones(3), "nuts")
    with pytest.raises(InputError, match="draws must be an integer of at least 1, got 0"):
        av.fit(problem, "nuts", draws=0)
    with pytest.raises(InputError, match="keep must be one of"):
        av.fit(problem, "nuts", keep="some")
    with pytest.raises(InputError, match="target_accept must lie between 0 and 1"):
        av.fit(problem, "nuts", target_accept=1.5)


def test_the_own_algorithm_does_not_fit_another_posterior(dataset):
    silent = av.problem("rfvm", dataset, latent_noise="none")
    with pytest.raises(InputError, match="method 'rfvm_vb' does not apply"):
        av.fit(silent, "paper")


class _Custom:
    NAME, KIND = "custom", "point"

    @dataclasses.dataclass(frozen=True)
    class Options:
        fail: bool = False
        nan: bool = False

    @staticmethod
    def supports(model, problem):
        return None

    @staticmethod
    def fit(target, options, *, draws, chains, seed, keep, report):
        if options.fail:
            raise FitFailed("it was told to")
        eta = np.full((1, 1, target.problem.data.N), np.nan if options.nan else 0.0)
        tau = np.ones((1, 1))
        return Result(posterior={"eta": eta, "tau": tau})


def test_a_backend_of_ones_own(problem, monkeypatch, caplog):
    monkeypatch.setattr(fitting, "BACKENDS", dict(BACKENDS))
    fitting.register_backend(_Custom)
    tree = av.fit(problem, "custom")
    assert isinstance(tree, xr.DataTree)
    assert tree.attrs["status"] == "ok"
    # a failure is an object too, with its reason, never a silent NaN
    for options, reason in (({"fail": True}, "it was told to"), ({"nan": True}, "not finite")):
        tree = av.fit(problem, "custom", **options)
        assert tree.attrs["status"] == "failed"
        assert reason in tree.attrs["reason"]
        assert reason in caplog.text
        assert not tree["posterior"].data_vars
    with pytest.raises(InputError, match="a backend named 'custom' exists already"):
        fitting.register_backend(_Custom)
    with pytest.raises(InputError, match="missing: KIND, Options, supports, fit"):
        fitting.register_backend(type("Half", (), {"NAME": "half"}))


def test_another_fold_rebinds_compiled_code(problem):
    """X, y, Z and the filled rates are data: after `pm.set_data` the compiled code is the fold's.

    The draws must be those of a problem made from the other fold, number by number; compiled code
    that kept the old data would give the draws of the old one.
    """
    import pymc as pm

    rng = np.random.default_rng(8)
    other = av.problem("rfvm", (rng.normal(size=problem.X.shape), rng.permutation(problem.y)))
    before = {method: fit(problem, method) for method in ("nuts", "laplace")}
    with problem.model:
        pm.set_data({"X": other.X, "Z": other.Z, "label": other.y})
    for method, old in before.items():
        rebound, fresh = fit(problem, method), fit(other, method)
        np.testing.assert_array_equal(rebound["posterior"]["eta"], fresh["posterior"]["eta"])
        assert not np.array_equal(rebound["posterior"]["eta"], old["posterior"]["eta"])
