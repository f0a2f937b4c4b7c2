"""PFCVM: its paper's algorithm from scratch, and what it gets right and wrong."""

import numpy as np
import pytest

from tests.notebooks.running import SIZES, values


@SIZES
@pytest.mark.usefixtures("size")
def test_pfcvm(full, tmp_path):
    right, without, apart, slopes, growth, passed, em_apart, left, tables, posterior, colon = (
        values(
            "05_pfcvm", tmp_path, "right", "without", "apart", "slopes", "growth", "passed",
            "em_apart", "left", "tables",
            "exact.attrs['status'], beside, p, active, eta_sd, dropped, unsure, late, thresholds",
            "(number, largest)",
        )
    )  # fmt: skip
    assert np.mean(right) > 0.8  # before any label is seen as data
    assert abs(np.mean(without) - 0.5) < 0.1
    assert len(apart) >= 15
    assert apart.max().max() < 1e-8
    the_misprint(slopes)
    assert abs(growth[-1] - 25 / 4) < 0.05
    assert 150 < passed < 175
    assert em_apart < 1e-8
    assert left[0] < left[1]
    the_table(tables, *colon)
    if full:
        against_the_exact_posterior(*posterior)


def the_misprint(slopes):
    """Section 6: the printed derivative of the polynomial kernel."""
    for P in (2, 3):
        true = slopes[P, "by differences"]
        np.testing.assert_allclose(slopes[P, "right"], true, rtol=1e-4, atol=1e-6)
    true, printed = slopes[2, "by differences"], slopes[2, "printed"]
    assert np.max(printed[true > 1] / true[true > 1]) > 2
    assert np.isnan(slopes[3, "printed"]).all()


def the_table(tables, genes, largest):
    """Section 7: stored results of the paper's table."""
    for table in tables.values():
        ours = table.drop(["printed", "l1_logistic"])
        same = (ours["accuracy"] - table["accuracy"]["printed"]).abs() <= ours["+-"]
        assert not (same & (ours["genes"] < 2 * table["genes"]["printed"])).any()
        assert ours["genes"].max() > 1000
    colon = tables["colon"].drop("printed")
    assert (colon["accuracy"] + 2 * colon["+-"] < 96.77).all()
    assert genes > 5
    assert largest < 0.5


def against_the_exact_posterior(
    status, beside, p, active, eta_sd, dropped, unsure, late, thresholds
):
    """Sections 3 to 5, and the first exercise, by draws."""
    assert status == "finished"
    assert beside.loc["paper", "uncertainty"] == beside.loc["paper", "selection"] == "bad"
    assert np.mean((p["paper"] > 0.5) == (p["exact"] > 0.5)) > 0.95
    assert unsure["paper"] < 0.75 * unsure["exact"]
    assert active["exact"][dropped].max() > 0.5
    assert active["paper"][dropped].max() == 0
    assert np.mean(eta_sd["paper"] > eta_sd["exact"]) > 0.9
    prior = beside.loc["paper, our prior"]
    assert prior["active_features"] < 5
    assert prior["log_score"] < beside.loc["exact", "log_score"] - 0.05
    assert late.max() > 2 * late.min()
    kept = thresholds["pixels kept"]
    assert kept.max() > 2 * kept.min()
    assert np.ptp(thresholds["accuracy"]) < 0.04
