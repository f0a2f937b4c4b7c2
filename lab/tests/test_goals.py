"""A goal of a record is met by what it names: worked out from made-up rows and times."""

from types import SimpleNamespace

import pytest

from lab.priors import sparsity
from lab.speed import compiled_speed, exact_speed

QUICK = SimpleNamespace(quick=True)


@pytest.mark.parametrize(
    ("worse", "met"),
    [
        ({}, True),
        ({"R-hat": 1.02}, False),
        ({"ESS": 390.0}, False),
        ({"seconds": 61.0}, False),
    ],
)
def test_every_run_of_a_problem_must_reach_its_goal(worse, met, monkeypatch):
    good = {"model": "pfcvm", "prior": "", "data": "sonar", "method": "nuts", "R-hat": 1.001,
            "ESS": 900.0, "seconds": 20.0}  # fmt: skip
    bad = good | {"method": "gibbs", "ESS": 1.0}  # no run of NUTS: it does not count
    for rows in ([good, good | worse, bad], [good | worse, good, bad]):
        monkeypatch.setattr(sparsity.fits, "rows", lambda *_, rows=rows: rows)
        (goal,) = sparsity.sampling_part(QUICK).goals
        assert goal.met is met


@pytest.mark.parametrize(("density", "met"), [(1.4, True), (1.6, False)])
def test_a_density_may_take_one_and_a_half_times_its_floor(density, met, monkeypatch):
    took = iter([density * 20.0, 20.0])  # microseconds: the density's, then the floor's
    monkeypatch.setattr(compiled_speed, "least", lambda call, spell: next(took))
    monkeypatch.setattr(compiled_speed, "gradient_of", lambda model, X: (None, X[0]))
    monkeypatch.setattr(compiled_speed, "JUDGED", ("12 x 5",))
    found = compiled_speed.density_part(QUICK)
    (goal,) = found.goals
    assert (goal.measured, goal.met) == (f"{density:g}", met)


@pytest.mark.parametrize(
    ("worse", "said"),
    [
        ({}, "1 of 1"),
        ({"seconds": 61.0}, "0 of 1; missed: rvm sonar 61 s for 60"),
        ({"ended": "time"}, "0 of 1; missed: rvm sonar 20 s for 60, 1 of 2 not converged"),
    ],
)
def test_every_seed_of_a_case_must_converge_in_time(worse, said):
    good = {"model": "rvm", "prior": "", "data": "sonar", "seconds": 20.0, "ended": "converged"}
    goal = exact_speed.judged([(60.0, good), (60.0, good | worse)])
    assert (goal.measured, goal.met) == (said, not worse)
