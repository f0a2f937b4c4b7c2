"""RFVM: a mean field, step by step."""

import nbformat
import numpy as np
import pytest

from tests.notebooks.running import FOLDER, SIZES, values


@SIZES
@pytest.mark.usefixtures("size")
def test_rfvm(full, tmp_path):
    (
        agreement, prior_active, varies, diagnostics, p_exact, p_paper, counted, survivors,
        sd_ratio, scores, erratum, stopping, measured, starts, truncated_gap, rate,
    ) = values(
        "08_rfvm", tmp_path, "agreement", "prior_active", "varies", "diagnostics", "p_exact",
        "p_paper", "counted", "survivors", "sd_ratio", "scores", "erratum", "stopping", "measured",
        "starts", "truncated_gap", "rate",
    )  # fmt: skip
    # the algorithm from scratch is the package's, at the same sweep
    assert agreement.shape == (9, 4)
    assert agreement.to_numpy().max() < 1e-8
    assert truncated_gap < 1e-8
    error = abs(rate["simulation"] - rate["diagonal only"])
    assert error < 5 * rate["its standard error"]  # of draws with a fixed seed
    assert rate["all pairs"] - rate["simulation"] > 30 * rate["its standard error"]

    assert varies.sum() == 52
    assert 6.5 < prior_active.mean() < 9.0  # sd 4 of a draw
    assert np.mean(prior_active > 15) < 0.1
    assert survivors == 1
    assert np.argmax(p_paper) == np.argmax(p_exact)
    assert p_paper.max() > 0.99
    assert np.sort(p_paper)[-2] < 0.01
    assert np.ptp(starts) < 0.01
    assert sd_ratio < 0.15
    assert scores.loc["mean field", "accuracy"] < 0.9 < 0.95 < scores.loc["exact", "accuracy"]

    sweeps = stopping.loc["stops at sweep"]
    assert 400 < sweeps.iloc[0] < 500
    assert sweeps.iloc[2].startswith("not within")
    assert erratum.loc["pixels left", "folded"] < 0.75 * erratum.loc["pixels left", "truncated"]
    assert erratum.loc["test accuracy", "folded"] < erratum.loc["test accuracy", "truncated"]

    names = measured.index
    assert (measured["worst fold"] < 78).all()
    assert (measured["best fold"] > 78).all()
    assert measured.loc[names[2], "genes, %"] > 8 * measured.loc[names[0], "genes, %"]
    assert 0.2 < measured.loc[names[1], "genes, %"] < measured.loc[names[0], "genes, %"] < 3.0
    if full:
        assert diagnostics["worst R-hat"].max() < 1.02
        assert diagnostics["smallest bulk ESS"].min() > 300
        assert 12 < np.nanmean(counted) < 19
        assert 4 <= (p_exact > 0.5).sum() <= 11
        assert 1500 < sweeps.iloc[1] < 1700
        left = stopping.loc["pixels left"]
        assert left.iloc[0] > left.iloc[1] > left.iloc[2]


def test_the_algorithm_has_at_most_sixty_lines_with_their_shapes():
    notebook = nbformat.read(FOLDER / "08_rfvm.ipynb", as_version=4)
    cells = [c.source for c in notebook.cells if c.source.startswith(("def folded", "def sweep"))]
    assert len(cells) == 2
    lines = [line for line in "\n".join(cells).splitlines() if line.strip()]
    assert len(lines) <= 60
    computed = [line for line in lines if " = " in line or " += " in line or "return" in line]
    assert len(computed) > 30
    assert [line for line in computed if "  # (" not in line] == []
