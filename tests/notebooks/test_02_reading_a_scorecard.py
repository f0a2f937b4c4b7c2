"""Each verdict traced back to its numbers."""

import pytest

from tests.notebooks.running import SIZES, values


@SIZES
@pytest.mark.usefixtures("size")
def test_reading_a_scorecard(full, tmp_path):
    table, p_active, verdict, eta, exact = values(
        "02_reading_a_scorecard", tmp_path, "comparison.verdicts()", "p_active",
        "beside.verdict['bootstrap']", "eta", "problem.y",
    )  # fmt: skip
    assert list(table.index) == ["exact", "advi", "laplace", "rfvm_vb", "xolon"]
    assert set(eta.loc["rfvm_vb", "statistic"]) >= {"error", "sd_ratio", "two_sample"}
    assert set(p_active.columns) == set(table.index)
    assert verdict.words["means"] == verdict.words["uncertainty"] == "bad"
    # of draws without weights nothing can be said about features
    assert verdict.words["ranking"] == verdict.words["selection"] == "unknown"
    assert set(exact) == {0, 1}
    if not full:
        return
    assert (table.loc["laplace"].iloc[:5] == "bad").all()
    paper = table.loc["rfvm_vb"]
    assert (paper[["means", "uncertainty", "ranking"]] == "bad").all()
    assert p_active["laplace"].max() < 0.5 < p_active["exact"].max()
    sd_ratio = eta[eta["statistic"] == "sd_ratio"]["value"]
    assert sd_ratio["rfvm_vb"] < 0.5 < sd_ratio["advi"]
