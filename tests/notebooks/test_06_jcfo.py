"""JCFO: its paper's EM from scratch, the many maxima, and a mode beside the posterior."""

import numpy as np
import pytest

from tests.notebooks.running import SIZES, values


@SIZES
@pytest.mark.usefixtures("size")
def test_jcfo(full, tmp_path):
    counts, apart, climbed, tops, integrals, misprint, tables, exercises, posterior = values(
        "06_jcfo", tmp_path, "counts", "apart", "[state[2] for state in states]",
        "(heights, origin)", "integrals", "(misprint, same)", "tables",
        "(by_gamma, drops, back, probit_apart)",
        "exact.attrs['status'], beside, p, active, number, zero",
    )  # fmt: skip
    # a prior draw by default, and with a third of the rate of theta
    assert np.mean(counts["default"]) < 1.5 < 5 < np.mean(counts["a tenth"]) < 12
    assert apart.drop(columns="pixels above 0").max().max() < 1e-8
    assert (np.diff(climbed) > -1e-9).all()
    heights, origin = tops
    assert heights.max() < origin  # at all starts, which are the same in every run
    assert len(np.unique(heights.round(2))) > 1
    table = integrals["E[1 / tau] by integration"]
    np.testing.assert_allclose(table, integrals["with the root"], rtol=1e-4)
    assert (np.abs(table / integrals["as printed"] - 1).drop(1.0) > 0.4).all()
    pixels, same = misprint
    assert pixels["with the roots"] > pixels["as printed"] == 0
    assert same < 1e-8
    the_table(tables)
    the_exercises(*exercises)
    if full:
        the_mode_beside_the_posterior(*posterior)


def the_table(tables):
    """Section 8: stored results of the paper's table."""
    ours = tables["colon"].loc[["jcfo-printed", "jcfo-one"]]
    assert (ours["ours"] + 2 * ours["+-"] < 96.8).all()
    for table in tables.values():
        gap = table["ours"]["l1_logistic"] - table["ours"][["jcfo-printed", "jcfo-one"]]
        assert (gap > -table["+-"]["l1_logistic"]).all()
        assert table["ours"]["linear_svm"] > table["printed"]["linear_svm"]


def the_exercises(by_gamma, drops, back, probit_apart):
    assert by_gamma["pixels"].iloc[0] == 0
    assert by_gamma["log score"].iloc[0] == pytest.approx(np.log(0.5), abs=1e-3)
    assert (np.diff(by_gamma["log score"]) > 0).all()
    assert max(drops.values()) < 0
    assert np.abs(back[0]).sum() + back[1].sum() < 1e-6
    assert probit_apart < 1e-8


def the_mode_beside_the_posterior(status, beside, p, active, number, zero):
    """Sections 3 and 6, by draws."""
    assert status == "finished"
    assert beside.loc["mode", "uncertainty"] == beside.loc["mode", "selection"] == "bad"
    assert beside.loc["exact", "log_score"] > beside.loc["mode", "log_score"] + 0.04
    away = {name: np.abs(value - 0.5).mean() for name, value in p.items()}
    assert away["mode"] < away["exact"]
    assert set(active["mode"]) == {0.0, 1.0}
    assert active["exact"][active["mode"] == 0].max() > 0.6
    assert active["mode"].sum() < 0.5 * number.mean()
    assert zero["draws"] == 0 < 0.8 < zero["mode"]
