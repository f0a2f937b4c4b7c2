"""The tour: one model from its prior to its predictions."""

import numpy as np
import pytest

from tests.notebooks.running import SIZES, values


@SIZES
@pytest.mark.usefixtures("size")
def test_the_tour(full, tmp_path):
    eta, worst, status, table, ranks, certain, mistakes, words, unsure = values(
        "00_tour", tmp_path, "prior_eta", "worst", "exact.attrs['status']", "comparison.table",
        "ranks", "pd.DataFrame(certain)", "mistakes", "judged.verdict['paper'].words", "unsure",
    )  # fmt: skip
    assert 0.5 < np.median(np.abs(eta)) < 3.0
    assert set(ranks.index) == {"exact", "advi", "laplace", "paper"}
    assert len(unsure) == 6
    # the more pixels a prior expects, the larger its decision values; "all" is another prior
    assert (np.diff(certain.loc["median |eta|", [3, 10, 20, 30]].astype(float)) > 0).all()
    assert certain.loc["share of |eta| > 5", 30] > 0.1 > certain.loc["share of |eta| > 5", "all"]
    assert words["ranking"] == "good"
    assert words["predictions"] == words["means"] == words["uncertainty"] == "bad"
    if not full:
        return
    assert worst < 1.05
    assert status in ("finished", "not_converged")
    exact, advi, paper, laplace = (table.loc[m] for m in ("exact", "advi", "paper", "laplace"))
    assert paper["sd_ratio_eta"] < 0.5  # overconfident
    assert 5 * exact["error_eta"] < advi["error_eta"] < paper["error_eta"]  # ADVI is nearest
    assert paper["error_eta"] < laplace["error_eta"]
    assert paper["accuracy"] > exact["accuracy"] - 0.1
    assert table.loc["L1 logistic", "accuracy"] >= table["accuracy"].loc[ranks.index].max()
    assert ranks.loc[["advi", "paper", "laplace"], "rank correlation"].max() < 0.8
    assert ranks.loc["paper", "pixels with an effect (mean)"] < 6
    assert laplace["status"] == "finished"
    assert laplace["active_features"] < 1 < 4 < exact["active_features"]
    assert exact["wrong_sure"] <= 1 < paper["wrong_sure"]
    assert len(mistakes) < 12
    assert ((mistakes["5 %"] < 0.5) & (mistakes["95 %"] > 0.5)).mean() > 0.5
