"""A table of one's own."""

import numpy as np
import pytest

from tests.notebooks.running import SIZES, values


@SIZES
@pytest.mark.usefixtures("size")
def test_your_data(full, tmp_path):
    names, active, three, moved, table, beside, found, accuracy, choice = values(
        "04_your_data", tmp_path, "problem.data.constant_features", "active", "three",
        "sensitivity.table", "comparison.table", "beside.table", "found", "accuracy", "choice",
    )  # fmt: skip
    assert names == ("scanner",)
    assert (active.loc["scanner", ["p_active", "by 0.5 or more"]] == 0).all()
    assert (active["by 0.5 or more"] <= active["p_active"]).all()  # a stricter threshold
    assert (three["5 %"] <= three["95 %"]).all()
    assert (np.diff(three["P(malignant)"]) >= 0).all()
    assert list(table.index[:3]) == ["nuts", "paper", "advi"]
    assert list(beside.index) == ["nuts", "walk", "pymc"]
    assert (beside.loc[["walk", "pymc"], "kind"] == "mcmc").all()
    assert beside["rhat_eta"]["walk"] > 1.05
    assert accuracy > 0.8
    if not full:
        return
    assert table["rhat_eta"]["nuts"] < 1.05
    assert table["p_active_selection"]["paper"] > 0.5
    assert table["sd_ratio_feature_weight"]["advi"] < 0.9
    # both linear models predict alike, and the other kernel no better
    ahead = choice["minus the first"] / choice["its standard error"]
    assert abs(ahead["rfvm, linear"]) < 2
    assert ahead["pfcvm, rbf"] < 1
    assert active["by 0.5 or more"]["hospital_south"] < 0.2 < active["p_active"]["hospital_south"]
    assert moved["change_train"].iloc[1:].max() < 0.03 < 0.1 < moved["change_p"].max()
    assert (moved["leading"] >= 5).all()  # of six
    assert np.ptp(found["mean_test_score"]) < 0.5 * found["std_test_score"].min()
    assert beside["verdict"]["walk"] == "do not use"
    assert beside["verdict"]["pymc"] != "do not use"
    assert beside["error_eta"]["pymc"] < 0.5
    assert abs(np.log(beside["sd_ratio_eta"]["pymc"])) < 0.25
