"""What a fit will need is known beforehand: by arithmetic, and beside what it takes."""

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import pytest

import ardvark as av
from ardvark.common import memory
from ardvark.inference.approximations import laplace
from ardvark.inference.methods import run
from ardvark.inference.methods.registry import BACKENDS, Plan
from ardvark.inference.target import length
from ardvark.inference.target.backend import Earlier, Job, Result
from ardvark.inference.target.density import Density
from ardvark.inference.target.length import affordable, needed
from ardvark.inference.target.sampling import Sampling
from ardvark.inference.target.target import Target
from tests.support import rng, seed

N, D = 20, 6
X = rng(0).normal(size=(N, D))


@pytest.fixture(scope="module")
def problem():
    return av.problem("sparse_probit", X, X[:, 0] > 0)


def test_it_is_the_draws_and_the_likelihood_of_all_chains(problem):
    job = Job(seed=0, chains=3, names=("eta", "feature_weight"))
    asked, numbers = (Target(problem), job), 3 * (N + D) + 3 * N
    assert needed(*asked, 100) - needed(*asked, 50) == 50 * 8 * length.COPIES * numbers
    assert affordable(*asked, needed(*asked, 70)) == 70
    assert affordable(*asked, needed(*asked, 70) - 1.0) == 69
    assert affordable(*asked, 0.0) == 0
    going_on = replace(job, earlier=Earlier(*[{}] * 3, 1, 1))
    assert needed(Target(problem), going_on, 100) > needed(*asked, 100)


@pytest.mark.parametrize("method", ["nuts", "gibbs", "advi", "laplace", "exact"])
def test_what_is_too_large_is_refused_before_anything_is_compiled(problem, method, monkeypatch):
    def compiles(*given):
        raise AssertionError("compiled")

    monkeypatch.setattr(Density, "__init__", compiles)
    monkeypatch.setattr("ardvark.inference.samplers.gibbs.method.make_sampler", compiles)
    monkeypatch.setattr(memory, "allowed", lambda: 2e5)
    count = {"exact": 256, "nuts": 1500}.get(method, 1000)  # the first judgement; with tuning
    with pytest.raises(
        av.InputError, match=f"{count} draws of each of 4 chains need about"
    ) as said:
        av.fit(problem, method, progressbar=False)
    assert "0 MB may be taken (50% of what is free" in str(said.value)
    assert 'Ask for less: keep="shared", fewer draws or fewer chains.' in str(said.value)
    with pytest.raises(av.InputError) as said:
        av.fit(problem, method, keep="shared", progressbar=False)
    assert "Ask for less: fewer draws" in str(said.value)


def test_a_method_that_returns_one_draw_is_never_too_large(problem, monkeypatch):
    monkeypatch.setattr(memory, "allowed", lambda: 0.0)
    point = SimpleNamespace(**vars(laplace) | {"KIND": "point"})
    point.fit = lambda target, options, job: Result(job.one_draw({"bias": 0.0}))
    monkeypatch.setitem(BACKENDS, "laplace", point)
    plan = Plan(Target(problem), "laplace", laplace.Options(), Sampling(seed=0))
    assert run.compute(plan).attrs["kind"] == "point"


def test_it_is_near_to_what_a_fit_takes():
    """A factor of 1.4 either way: one copy of the draws more or less is a factor of 1.5 or 2.

    Compiled code's own arrays, which are not traced, are none of those that a fit keeps.
    """
    wide, tune, draws = rng(1).normal(size=(20, 600)), 5, 300
    problem = av.problem("horseshoe", wide, wide[:, 0] > 0)
    given = {"tune": tune, "random_seed": seed(0), "progressbar": False}
    av.fit(problem, "gibbs", draws=10, **given)  # what is compiled once is there before
    tracemalloc.start()
    av.fit(problem, "gibbs", draws=draws, **given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    asked = needed(Target(problem), Job(seed=0), draws + tune)
    assert asked / 1.4 < peak < 1.4 * asked
