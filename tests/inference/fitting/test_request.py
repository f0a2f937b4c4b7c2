"""The request of a fit: equal for options that cannot change the draws, different otherwise."""

import pytest

import ardvark as av
from ardvark.inference.contract.sampling import Sampling
from ardvark.inference.fitting import registry
from ardvark.inference.fitting.request import request
from ardvark.inference.fitting.reuse import Fits
from tests.inference.fitting.test_adoption import paper_variables

PARALLEL = ("exact", "nuts", "mams", "gibbs")


@pytest.fixture
def problem(small_data):
    return av.problem("fsklr", small_data(N=12, D=3))


def asked(problem, method, **options):
    return request(problem, registry.prepare(method, problem, options), Sampling(seed=1))


@pytest.mark.parametrize("method", PARALLEL)
def test_the_number_of_cores_is_no_part_of_a_request(method, small_data):
    """Equal draws of `exact`, `nuts` and `mams` are tested beside these methods."""
    problem = av.problem("rfvm", small_data(N=12, D=3))
    plain = asked(problem, method)
    assert asked(problem, method, cores=1) == asked(problem, method, cores=2) == plain
    plan = registry.prepare(method, problem, {})
    assert request(problem, plan.on_one_core(), Sampling(seed=1)) == plain


def test_every_other_option_is():
    """Of every method: only `cores` is declared as one that the draws do not depend on."""
    free = {
        (name, declared.name)
        for name, backend in registry.BACKENDS.items()
        for declared in backend.Options.declared()
        if not declared.draws_depend
    }
    assert free == {(name, "cores") for name in PARALLEL}


def test_another_option_seed_or_size_is_another_request(problem):
    plan = registry.prepare("gibbs", problem, {})
    requests = [
        request(problem, plan, Sampling(**sizes))
        for sizes in ({"seed": 1}, {"seed": 2}, {"seed": 1, "draws": 7}, {"seed": 1, "chains": 2},
                      {"seed": 1, "keep": "shared"})
    ]  # fmt: skip
    requests += [asked(problem, "gibbs", tune=7), asked(problem, "gibbs", thin=2)]
    assert len(set(requests)) == len(requests)


def test_fits_in_other_processes_run_on_one_core_each_and_silently(problem):
    plans = {
        "a": registry.prepare("gibbs", problem, {}),
        "b": registry.prepare("gibbs", problem, {"cores": 3}),  # as asked for
        "c": registry.prepare("fsklr_savb", problem, {}),
    }
    asked = {key: (problem, plan) for key, plan in plans.items()}
    fits = Fits(asked, Sampling(seed=1, draws=7, progressbar=True))
    assert fits.on(1) is fits
    there = fits.on(2)
    options = {key: plan.options for key, (_, plan) in there.asked.items()}
    assert (options["a"].cores, options["b"].cores) == (1, 3)
    assert options["c"] == plans["c"].options
    assert there.sampling == Sampling(seed=1, draws=7, progressbar=False)


def test_gibbs_on_one_core_is_reused_on_two(problem, tmp_path):
    """Both have the same draws: tests/inference/exact/test_method.py. Under another seed, not."""

    def fits(cores, number=1):
        plan = registry.prepare("gibbs", problem, {"cores": cores, "tune": 10})
        return Fits({"a": (problem, plan)}, Sampling(seed=number), tmp_path)

    tree = av.adopt(problem, paper_variables(problem))
    asked = request(problem, fits(1).asked["a"][1], Sampling(seed=1))
    tree.attrs |= {"method": "gibbs", "request": asked}
    fits(1).put("a", tree)
    assert fits(2).get("a").identical(tree)
    assert fits(1, number=2).get("a") is None
