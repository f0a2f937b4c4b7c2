"""Every case of a table of timed fits, and every form of an iteration, asks for what exists."""

import inspect

import pytest

import ardvark as av
from ardvark.inference.methods import registry
from lab.priors import sparsity
from lab.problems import problem as posed
from lab.script import synthetic
from lab.speed import exact_speed, memory, nuts_speed, papers_speed
from lab.speed.fits import Case

CASES = [
    *memory.CASES,
    *nuts_speed.forms(),
    *(case for a in papers_speed.ALGORITHMS.values() for case in a.whole),
    *(Case(m, d, "exact", h) for cases in exact_speed.ASKED.values() for m, d, h in cases),
    *(Case(m, d, "nuts", h) for m, d, h in sparsity.SAMPLING),
    *(Case(m, d, "gibbs", h) for m, d, h in sparsity.SAMPLING),
    *(Case(m, d, "nuts", h) for m, d, h in nuts_speed.SETTINGS),
    *(Case(m, d, "mams", h, {"length": x[0]}) for m, d, h, x in nuts_speed.BESIDE),
]
OF_FIT = set(inspect.signature(av.fit).parameters)


def test_a_case_asks_for_what_exists():
    for case in CASES:
        problem = posed(case.model, synthetic(20, 10), **case.hypers)
        options = {name: value for name, value in case.options.items() if name not in OF_FIT}
        registry.prepare(case.method, problem, options)


@pytest.mark.parametrize("name", papers_speed.ALGORITHMS)
def test_each_form_of_an_algorithm_has_an_iteration(name):
    algorithm = papers_speed.ALGORITHMS[name]
    for form in algorithm.forms:
        row = papers_speed.iterations(algorithm, form, (12, 5), 1)
        assert row["form"].startswith(form[0])
        assert row["s an iteration"] > 0.0
