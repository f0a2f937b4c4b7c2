"""The request of a fit: equal for options that cannot change the draws, different otherwise."""

import numpy as np
import pytest

import ardvark as av
from ardvark.inference.contract.sampling import Sampling
from ardvark.inference.fitting import registry
from ardvark.inference.fitting.request import request
from ardvark.inference.fitting.reuse import Fits

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


def test_gibbs_on_one_core_is_reused_on_two(problem, tmp_path):
    """Both have the same draws, so the second is not computed."""
    sampling = Sampling(seed=1, draws=30, chains=3)

    def fits(cores, folder):
        plan = registry.prepare("gibbs", problem, {"cores": cores, "tune": 10})
        return Fits({"a": (problem, plan)}, sampling, folder)

    one, two = (fits(cores, None).start()("a") for cores in (1, 2))
    for name, values in one["posterior"].data_vars.items():
        np.testing.assert_array_equal(values, two["posterior"][name], err_msg=name)
    assert one.attrs["request"] == two.attrs["request"]
    fits(1, tmp_path).keep("a", one)
    assert [key for key, _ in fits(2, tmp_path).stored(["a"])] == ["a"]
