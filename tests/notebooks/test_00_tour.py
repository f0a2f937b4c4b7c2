"""The tour: one model from its prior to its predictions."""

import numpy as np
import pytest

from tests.notebooks.running import SIZES, values


@SIZES
@pytest.mark.usefixtures("size")
def test_the_tour(full, tmp_path):
    eta, worst, status, table, ranks = values(
        "00_tour", tmp_path, "prior_eta", "worst", "exact.attrs['status']", "comparison.table",
        "ranks",
    )  # fmt: skip
    assert 0.5 < np.median(np.abs(eta)) < 3.0
    assert set(ranks.index) == {"exact", "advi", "laplace", "paper"}
    if not full:
        return
    assert worst < 1.05
    assert status in ("finished", "not_converged")
    exact, paper, laplace = (table.loc[m] for m in ("exact", "paper", "laplace"))
    assert paper["sd_ratio_eta"] < 0.5  # overconfident
    assert paper["error_eta"] > 5 * exact["error_eta"]  # far above the noise
    assert paper["accuracy"] > exact["accuracy"] - 0.1
    assert ranks.loc[["paper", "laplace"], "rank correlation"].max() < 0.8
    assert laplace["status"] == "finished"
    assert laplace["active_features"] < 3 < 10 < exact["active_features"]
