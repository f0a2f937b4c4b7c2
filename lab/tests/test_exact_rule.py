"""Runs of `exact` beside a longer one: the smallest form, and what z says."""

import pytest

from lab import rows
from lab.calibration import exact_rule


def test_the_smallest_form_runs(tmp_path):
    work = exact_rule.work([("fsklr", "20x3", "")], seeds=2, ess=100.0)
    found = rows.computed(tmp_path / "rows.csv", work)
    (row,) = exact_rule.table(found).to_dict("records")
    assert (row["problem"], row["by"], row["runs"]) == ("fsklr 20x3", "gibbs", 2)
    assert row["rms z of means"] < 10.0


def test_errors_of_the_right_size_have_a_root_mean_square_of_one():
    run = {"model": "rvm", "data": "9x3", "kernel": None, "by": "nuts", "ended": "converged",
           "iterations": 1, "s": 1.0, "largest |z|": 2.0, "sum z2 active": 0.0,
           "count active": 0}  # fmt: skip
    found = [
        run | {"sum z2 mean": 8.0, "count mean": 2},
        run | {"sum z2 mean": 0.0, "count mean": 6},
    ]
    (row,) = exact_rule.table(found).to_dict("records")
    assert row["rms z of means"] == pytest.approx(1.0)
    assert row["rms z of P(active)"] != row["rms z of P(active)"]  # nothing was counted
