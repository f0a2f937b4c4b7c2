"""Each verdict traced back to its numbers."""

import pytest

from tests.notebooks.running import SIZES, values


@SIZES
@pytest.mark.usefixtures("size")
def test_reading_a_scorecard(full, tmp_path):
    table, scores, p_active, verdict, eta, exact, spread, words, seen = values(
        "02_reading_a_scorecard", tmp_path, "comparison.verdicts()", "comparison.table", "p_active",
        "beside.verdict['bootstrap']", "eta", "problem.y", "spread", "words", "seen",
    )  # fmt: skip
    assert list(table.index) == ["exact", "advi", "laplace", "rfvm_vb"]
    assert set(eta.loc["rfvm_vb", "statistic"]) >= {"error", "sd_ratio", "two_sample"}
    assert set(p_active.columns) == set(table.index)
    assert verdict.words["uncertainty"] == "bad"
    # the quick form has so few draws that a mean off by 1.8 sd may be noise
    assert verdict.words["means"] in (("bad",) if full else ("bad", "unknown"))
    # of draws without weights nothing can be said about features
    assert verdict.words["ranking"] == verdict.words["selection"] == "unknown"
    assert set(exact) == {0, 1}
    # the exercises: damage is seen where it was done
    assert words["spread halved"]["uncertainty"] == "bad"
    # a shift of one sd is near the limit of bad intervals: few draws may leave them rough
    shifted = words["means shifted"]["uncertainty"]
    assert shifted == "bad" if full else shifted in ("bad", "rough")
    assert words["spread halved"]["selection"] == words["means shifted"]["selection"] == "unknown"
    assert all(abs(row["value"] - shift) < 0.011 for shift, row in seen.items())
    if not full:
        return
    others = table.drop(index="exact")
    assert (others["predictions"] == "bad").all()
    assert (scores["accuracy"].loc[["advi", "rfvm_vb"]] > 0.85).all()
    assert scores["accuracy"]["rfvm_vb"] > 0.9 > 0.7 > scores["accuracy"]["laplace"]
    assert (table.loc["laplace"].iloc[:5] == "bad").all()
    paper = table.loc["rfvm_vb"]
    assert (paper[["means", "uncertainty"]] == "bad").all()
    assert paper["ranking"] in ("bad", "rough")
    assert p_active["laplace"].max() < 0.5 < p_active["exact"].max()
    sd_ratio = eta[eta["statistic"] == "sd_ratio"]["value"]
    assert sd_ratio["rfvm_vb"] < 0.5 < sd_ratio["advi"]
    coverage = eta[eta["statistic"] == "coverage_50"]["value"]
    assert coverage["rfvm_vb"] < 0.1 < coverage["advi"] < 0.5
    assert not eta.loc[["advi", "rfvm_vb"], "inside"].any()
    assert spread["advi"]["sample_weight"] < 0.6 < 0.7 < spread["advi"]["eta"]
    names = ["eta", "feature_weight", "sample_weight"]
    assert spread["rfvm_vb"][names].max() < 0.4
    assert words["spread halved"]["means"] == "good" != words["means shifted"]["means"]
    assert seen[0.05]["inside"]
    assert not seen[0.5]["inside"]
    assert seen[0.2]["means"] == "good" != seen[0.5]["means"]
    assert seen[2.0]["means"] == "bad"
