"""The request of a fit: equal for options that cannot change the draws, different otherwise."""

from types import SimpleNamespace

import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.methods import registry
from ardvark.inference.methods.reuse import Fits
from ardvark.inference.target.sampling import Sampling
from tests.inference.comparison.quick import Prior, registered
from tests.inference.methods.foreign import paper_variables

PARALLEL = ("exact", "nuts", "gibbs")


@pytest.fixture
def problem(small_data):
    return av.problem("fsklr", small_data(N=12, D=3))


def asked(problem, method, sampling=registry.USUAL, **options):
    return registry.prepare(method, problem, options, sampling)


@pytest.mark.parametrize("method", PARALLEL)
def test_the_number_of_cores_is_no_part_of_a_request(method, small_data):
    """Equal draws of `exact` and `nuts` are tested beside these methods."""
    problem = av.problem("rfvm", small_data(N=12, D=3))
    plain = asked(problem, method)
    others = asked(problem, method, cores=1), asked(problem, method, cores=2), plain.on_one_core()
    assert {other.request for other in others} == {plain.request}


def test_every_other_option_is():
    """Of every method: only `cores` is declared as one that the draws do not depend on."""
    free = {
        (name, declared.name)
        for name, backend in registry.BACKENDS.items()
        for declared in backend.Options.declared()
        if not declared.draws_depend
    }
    assert free == {(name, "cores") for name in PARALLEL}


def test_fits_in_other_processes_run_on_one_core_each_and_silently(problem):
    sampling = Sampling(seed=1, draws=7, progressbar=True)
    plans = {
        "a": asked(problem, "gibbs", sampling),
        "b": asked(problem, "gibbs", sampling, cores=3),  # as asked for
        "c": asked(problem, "fsklr_savb", sampling),
    }
    assert plans["a"].on(1) is plans["a"]
    there = {key: plan.on(2) for key, plan in plans.items()}
    assert (there["a"].options.cores, there["b"].options.cores) == (1, 3)
    assert there["c"].options == plans["c"].options
    for plan in there.values():
        assert plan.sampling == Sampling(seed=1, draws=7, progressbar=False)


def test_a_method_of_this_process_alone_stays_in_it(problem, monkeypatch):
    names = ("NAME", "KIND", "Options", "supports", "fit")
    own = {name: getattr(Prior, name) for name in names}
    registered(monkeypatch, SimpleNamespace(__name__="ardvark.prior", **own))  # but no module
    plan = asked(problem, "prior")
    assert plan.on(1) is plan
    with pytest.raises(InputError, match=r"'prior' was registered in this process.*processes=1"):
        plan.on(2)


def test_gibbs_on_one_core_is_reused_on_two(problem, tmp_path):
    """Both have the same draws: samplers/exact/test_method.py. Under another seed, not."""

    def fits(cores, number=1):
        return Fits({"a": asked(problem, "gibbs", Sampling(seed=number), cores=cores)}, tmp_path)

    tree = av.adopt(problem, paper_variables(problem))
    tree.attrs |= {"method": "gibbs", "request": fits(1).plans["a"].request}
    fits(1).put("a", tree)
    assert fits(2).get("a").identical(tree)
    assert fits(1, number=2).get("a") is None
