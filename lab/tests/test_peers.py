"""The parts of `lab.speed.peers` that need no other sampler."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ardvark.models import ZOO
from lab.speed import peers


def row(problem, sampler, converged=True, **numbers):
    known = {"ess_eta": 800.0, "rhat_eta": 1.004, "seconds": 10.0, "seconds_compile": 6.0}
    limit = {"limit": 15.0}
    return (
        {"problem": problem, "sampler": sampler, "converged": converged} | limit | known | numbers
    )


def test_ratios_are_ours_over_theirs_within_a_problem():
    found = peers.table(
        pd.DataFrame(
            [
                row("one", "ours"),
                row("one", "pymc", seconds=40.0, seconds_compile=24.0),
                row("two", "ours", ess_eta=500.0, seconds=2.0, seconds_compile=8.0),
                row("two", "numpyro", ess_eta=1000.0, seconds=20.0, seconds_compile=5.0),
            ]
        ),
        "ours",
    )
    assert found["ess_s"].tolist() == [80.0, 20.0, 250.0, 50.0]
    assert found["times"].tolist() == [1.0, 4.0, 1.0, 5.0]
    assert found["ess_s_compiled"].tolist() == [50.0, 12.5, 50.0, 40.0]
    assert found["times_compiled"].tolist() == [1.0, 4.0, 1.0, 1.25]


def test_who_has_not_converged_has_no_speed():
    ended = {"problem": "one", "sampler": "blackjax", "converged": False, "limit": 15.0}
    found = peers.table(
        pd.DataFrame(
            [row("one", "ours"), row("one", "pymc", False, rhat_eta=1.02, ess_eta=5e3), ended]
        ),
        "ours",
    )
    assert found["ended"].tolist() == ["converged", "not in 15 min", "not in 15 min"]
    assert found["rhat_eta"].iloc[1] == 1.02
    assert np.isnan(found["rhat_eta"].iloc[2])
    for column in ("ess_s", "times", "ess_s_compiled", "times_compiled"):
        assert found[column].notna().tolist() == [True, False, False]


def test_without_ours_there_is_no_ratio():
    found = peers.table(pd.DataFrame([row("one", "pymc")]), "ours")
    assert found["ess_s"].item() == 80.0
    assert np.isnan(found["times"].item())


def test_seconds_are_theirs_over_those_of_exact_and_a_limit_is_a_bound():
    ended = {"problem": "one", "sampler": "blackjax", "converged": False, "limit": 15.0}
    found = peers.table(
        pd.DataFrame(
            [
                row("one", "exact"),
                row("one", "pymc", seconds=40.0, seconds_compile=24.0),
                row("one", "numpyro", False, seconds=300.0, seconds_compile=20.0),
                ended,
                row("two", "exact", False),
                row("two", "pymc"),
            ]
        ),
        "exact",
    )
    assert found["times"].tolist()[:4] == [1.0, 4.0, 88.0, 90.0]
    assert found["times_compiled"].tolist()[:4] == [1.0, 4.0, 900 / 16, 900 / 16]
    assert found["times"].isna().tolist()[4:] == [True, True]
    assert found["bound"].tolist() == ["", "", "at least", "at least", "at least", ""]


def test_a_bound_below_the_goal_decides_nothing():
    lines = pd.DataFrame(
        {
            "sampler": ["numpyro", "numpyro", "blackjax", "blackjax", "pymc", "pymc"],
            "times": [9.0, 2.0, 3.0, 2.0, 6.0, 9.0],
            "bound": ["", "at least", "", "at least", "at least", ""],
        }
    )
    found = peers.goals(lines, "times", "times those of {sampler}", 5.0)
    assert [goal.met for goal in found] == [None, False, True]


@pytest.mark.parametrize(
    ("spans", "length"),
    [([], 0.0), ([(1.0, 3.0), (1.5, 2.0), (2.0, 4.0), (6.0, 7.0)], 4.0), ([(0.0, 1.0)] * 2, 1.0)],
)
def test_nested_spans_of_compilation_count_once(spans, length):
    assert peers.union(spans) == length
    assert peers.union(spans[::-1]) == length


def test_a_problem_asks_for_what_exists():
    for name, (model, data, hypers) in (peers.PROBLEMS | peers.GENES).items():
        ZOO[model].make_hypers(hypers)
        assert model in name
        assert data.split()[0] in name


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux has it")
def test_what_this_process_holds_is_seen():
    assert peers.memory(os.getpgid(0)) > 10.0
