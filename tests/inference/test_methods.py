"""The contract of a method: what it declares, who decides whether it applies, what a job is."""

import ast
import dataclasses
from pathlib import Path
from typing import get_args

import numpy as np
import pymc as pm
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference import BACKENDS
from ardvark.inference.checks.sbc import sbc
from ardvark.inference.comparison import study
from ardvark.inference.methods import registry
from ardvark.inference.samplers.gibbs.method import SAMPLER_OF
from ardvark.inference.target.backend import About, Job, continuous_only, only_for
from ardvark.inference.target.draws import Draws, draw_in_chunks
from ardvark.inference.target.sampling import Sampling
from ardvark.inference.target.target import Target
from ardvark.models import ZOO, Problem

every_backend = pytest.mark.parametrize("method", list(BACKENDS))
PAPERS = ("rfvm_vb", "pfcvm_lp", "pfcvm_em", "jcfo_em", "fsklr_savb")
# as their papers do, where two methods apply: by evidence (Tipping 2001; Jiang et al. 2019), or
# by EM (Chen, Tino, Yao 2009)
TRAINED_BY = {"rvm": "pfcvm_lp", "pfcvm": "pfcvm_lp", "pcvm": "pfcvm_em"}
FOLDER = Path(__file__).parents[2] / "inference" / "papers"
FIXED = {model: {"scale": "fixed"} for model in ("jcfo", "sparse_probit")}
"""The models that learn a scale by default, and what their paper's algorithm needs."""


# --- what a method declares -----------------------------------------------------------------------


@every_backend
def test_a_method_says_what_it_is(method):
    about = BACKENDS[method].ABOUT
    assert isinstance(about, About)
    for sentence in dataclasses.astuple(about):
        assert 20 < len(sentence) < 160
        assert not sentence[0].islower()
        assert sentence.endswith(".")


def test_the_names_an_editor_completes_are_the_registry():
    assert get_args(registry.MethodName) == (*BACKENDS, "paper")


@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_algorithm_has_the_skeleton(name):
    """The same names in the same order; what the engine defines is imported at the top."""
    needed = ["NAME", "KIND", "ABOUT", "Options", "supports", "iterate", "fit", "predict_paper"]
    order = [*needed[:5], "Run", "iterate", "_verdict", "_details", *needed[6:]]
    own, imported = [], []
    for node in ast.parse((FOLDER / f"{name.replace('_', '/')}.py").read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.append(node.name)
        elif isinstance(node, ast.Assign):
            own += [t.id for t in node.targets if isinstance(t, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            own.append(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            imported += [a.name for a in node.names]
    found = [n for n in own if n in order]
    assert found == [n for n in order if n in found]
    assert set(needed) <= {*own, *imported}
    assert set(needed) - set(own) <= {"iterate"}


# --- whether a method applies ---------------------------------------------------------------------


@pytest.mark.parametrize("name", list(ZOO))
def test_whether_a_method_applies_is_decided_without_the_model(name, dataset):
    problem = av.problem(name, dataset)
    refusals = registry.refusals(problem)
    for method, why_not in refusals.items():
        if why_not is None:
            plan = registry.prepare(method, problem, {})
            assert (plan.name, plan.backend) == (method, BACKENDS[method])
            assert plan.options == BACKENDS[method].Options()
        else:
            with pytest.raises(InputError, match=f"{method!r} does not apply to this problem: "):
                registry.prepare(method, problem, {})
    assert "model" not in vars(problem)
    own = ZOO[name].paper_method
    if own in BACKENDS:
        fixed = problem.with_hypers(**FIXED.get(name, {}))
        assert registry.prepare("paper", fixed, {}).name == own
        assert own == TRAINED_BY.get(name, own)
    generic = {m for m in ("nuts", "advi", "laplace") if refusals[m] is None}
    assert generic == (set() if ZOO[name].masked else {"nuts", "advi", "laplace"})


OWN = {
    "rfvm_vb": {"rfvm"},
    "pfcvm_lp": {"pfcvm", "pcvm", "rvm"},
    "pfcvm_em": {"pfcvm", "pcvm", "rvm"},
    "jcfo_em": {"jcfo", "sparse_probit"},
    "fsklr_savb": {"fsklr", "sklr", "fs_skr"},
}


def test_a_papers_algorithm_is_for_the_papers_models(dataset):
    own = {name: av.problem(name, dataset, **FIXED.get(name, {})) for name in ZOO}
    refusals = {name: registry.refusals(problem) for name, problem in own.items()}
    found = {m: {name for name in ZOO if refusals[name][m] is None} for m in OWN}
    assert found == OWN
    with pm.Model() as model:
        pm.Normal("x")
    for method in OWN:
        assert "not a bare pm.Model" in BACKENDS[method].supports(Target(model))
        others = set(ZOO) - OWN[method]
        assert all(f"the model is {name!r}" in refusals[name][method] for name in others)


def test_only_a_method_that_reads_the_model_builds_it(dataset, tmp_path, monkeypatch):
    """Study, prior sensitivity and calibration of the RFVM's own method: at D = 1e6 a model is a
    copy of X."""

    def refuse(self):
        raise AssertionError("the model was built")

    monkeypatch.setattr(Problem, "fitted_model", property(refuse))
    problem = av.problem("rfvm", dataset)
    sizes = {"draws": 5, "chains": 2}
    sampling = Sampling(seed=0, **sizes)
    vb = {"restarts": 1, "max_sweeps": 3}
    fits = study.run(problem, {"paper": vb}, tmp_path / "study", sampling)
    for tree in fits.values():
        assert tree.attrs["status"] != "failed", tree.attrs["reason"]
    rest = {"processes": 1, "progressbar": False, **sizes}
    other = {"wide bias": {"bias_sd": 5.0}}
    table = av.sensitivity(problem, "rfvm_vb", priors=other, **rest, **vb).table
    assert (table["status"] != "failed").all()
    assert sbc(problem, "rfvm_vb", sampling, replicates=2, **vb).failed == 0
    with pytest.raises(AssertionError, match="was built"):
        av.fit(problem, "laplace")


def test_a_bare_model_is_asked_itself():
    with pm.Model() as model:
        pm.Normal("x")
        pm.Bernoulli("bit", 0.5)
    target = Target(model)
    assert continuous_only("It")(target).startswith(
        "It takes no discrete variables, and this model has bit; sum them out"
    )
    assert "needs a problem for the models 'a' or 'b'" in only_for(("a", "b"), "made")(target)
    with pytest.raises(InputError, match="does not apply to this model: NUTS takes"):
        registry.prepare("nuts", target, {})
    with pytest.raises(InputError, match=r"needs a problem made by ardvark.problem"):
        _ = target.zoo_problem
    with pytest.raises(InputError, match=r"needs a Problem or a pm.Model, got int"):
        Target(3)


@pytest.mark.parametrize("model", FIXED)
def test_the_paper_of_a_default_that_learns_its_scale_is_left_out_with_a_word(model, dataset):
    default = av.problem(model, dataset)
    with pytest.raises(InputError, match=rf'"{model}", data, scale="fixed"'):
        av.fit(default, "paper")
    assert registry.usual(default) == ["exact", "advi", "laplace"]
    assert registry.without_own(default).startswith("Not jcfo_em, the paper's algorithm: it has no")
    fixed = default.with_hypers(scale="fixed")
    assert registry.usual(fixed) == ["exact", "advi", "laplace", "jcfo_em"]
    assert registry.without_own(fixed) == ""
    assert registry.without_own(av.problem("horseshoe", dataset)) == ""  # it has none


def test_each_model_with_a_gibbs_sampler_is_in_the_zoo():
    assert set(SAMPLER_OF) <= set(ZOO)


# --- a job and its draws --------------------------------------------------------------------------


def test_a_job_has_a_stream_a_chain_and_keeps_what_it_names():
    job = Job(draws=5, chains=3, seed=11, names=("a",))
    streams = np.random.SeedSequence(11).spawn(3)
    for rng, stream in zip(job.generators(), streams, strict=True):
        assert rng.random() == np.random.default_rng(stream).random()
    assert job.keeps("a")
    assert not job.keeps("b")
    found = job.one_draw({"a": [1.0, 2.0], "b": 3.0})
    assert set(found) == {"a"}
    np.testing.assert_array_equal(found["a"], [[[1.0, 2.0]]])
    assert set(Job(draws=1, chains=1, seed=0).one_draw({"a": 1, "b": 2})) == {"a", "b"}


@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_draws_do_not_depend_on_the_size_of_a_chunk(size):
    job, done = Job(draws=7, chains=2, seed=5, names=("x", "n")), []

    def draw(rng, S):
        x = rng.standard_normal((S, 2))
        return {"x": x, "n": (x[:, 0] > 0).astype(int), "dropped": x}, {"lp": x.sum(axis=1)}

    out = draw_in_chunks(job, job.generators(), size, draw, done.append)
    want = np.stack([rng.standard_normal((7, 2)) for rng in job.generators()])
    assert set(out.posterior) == {"x", "n"}
    np.testing.assert_array_equal(out.posterior["x"], want)
    np.testing.assert_array_equal(out.posterior["n"], want[..., 0] > 0)
    assert out.posterior["n"].dtype.kind == "i"
    np.testing.assert_array_equal(out.sample_stats["lp"], want.sum(axis=-1))
    assert done[-1] == 14
    assert done == sorted(done)


def test_chains_may_be_filled_in_any_order():
    job = Job(draws=4, chains=2, seed=0)
    out, x = Draws(job), np.arange(8.0).reshape(2, 4)
    for chain, first in ((1, 2), (0, 0), (1, 0), (0, 2)):
        out.add(chain, first, {"x": x[chain, first : first + 2]}, {})
    np.testing.assert_array_equal(out.posterior["x"], x)
    assert out.sample_stats == {}


# --- a method of one's own ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kernel"), [("rfvm", "linear"), ("pfcvm", "rbf"), ("fsklr", "rbf")]
)
def test_without_names_one_exact_method_is_compared(name, kernel, dataset):
    problem = av.problem(name, dataset, kernel=kernel)
    usual, all_of_them = registry.usual(problem), registry.applicable(problem)
    assert [m for m in usual if BACKENDS[m].KIND == "mcmc"] == ["exact"]
    assert set(all_of_them) - set(usual) <= {"nuts", "gibbs"}
    assert registry.resolve("paper", problem) in usual
