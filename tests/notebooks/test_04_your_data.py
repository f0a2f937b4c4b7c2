"""A table of one's own."""

import numpy as np
import pytest

from tests.notebooks.running import SIZES, values

VARIABLES = (
    "problem.data.constant_features", "effects", "three", "sensitivity.table", "comparison.table",
    "comparison.distances.set_index(['fit', 'quantity', 'statistic'])['value']",
    "beside.table", "accuracy", "choice", "at_least_one",
    "[av.effects(f).loc['radius', 'effect'] for f in (exact, refit)]",
    "[av.effects(f).loc['radius', 'p_active'] for f in (exact, refit)]",
    "np.log(np.where(test.y == 1, p_new, 1 - p_new)).mean()", "mixed.table",
)  # fmt: skip


@SIZES
@pytest.mark.usefixtures("size")
def test_your_data(full, tmp_path):
    names, active, three, moved, table, off, beside, accuracy, choice, *solved = values(
        "04_your_data", tmp_path, *VARIABLES
    )
    assert names == ("scanner",)
    assert (active.loc["scanner", ["p_active", "effect"]] == 0).all()
    assert np.isnan(active.loc["scanner", "p_direction"])
    assert (active["low"] <= active["high"]).all()
    assert (three["5 %"] <= three["95 %"]).all()
    assert (np.diff(three["P(malignant)"]) >= 0).all()
    assert list(table.index[:3]) == ["exact", "paper", "advi"]
    assert list(beside.index) == ["exact", "walk", "pymc"]
    assert (beside.loc[["walk", "pymc"], "kind"] == "mcmc").all()
    assert beside["rhat"]["walk"] > 1.05
    assert accuracy > 0.8
    if not full:
        return
    assert table["rhat"]["exact"] < 1.05
    assert table["p_active_selection"]["paper"] > 0.5
    assert off["advi", "feature_weight", "sd_ratio"] < 0.9
    ahead = choice["minus the first"] / choice["its standard error"]
    assert ahead["pfcvm, rbf"] < 1  # the other kernel predicts no better
    assert active["p_active"]["hospital_south"] < 0.2
    assert active["bayes_factor"]["hospital_south"] < 3.0
    assert moved["change_train"].iloc[1:].max() < 0.03 < 0.1 < moved["change_p"].max()
    assert beside["verdict"]["walk"] == "do not use"
    assert beside["verdict"]["pymc"] != "do not use"
    assert beside["error_eta"]["pymc"] < 0.5
    assert abs(np.log(beside["sd_ratio_eta"]["pymc"])) < 0.25
    exercises(choice, *solved)


def exercises(choice, at_least_one, effect, p_radius, log_score, mixed):
    """What is said in the solutions."""
    assert at_least_one["hospital_south"] < 0.1
    assert set(at_least_one[at_least_one > 0.5].index) == {"texture", "concave points"}
    assert effect[1] > 1.5 * effect[0]  # the radius takes over
    assert p_radius[1] > p_radius[0]
    assert abs(log_score - choice["log score"]["pfcvm, linear"]) < 0.05
    assert mixed["rhat"]["exact"] < mixed["rhat"]["langevin"] < mixed["rhat"]["walk"]
