"""RFVM: what its approximation does to the posterior."""

import numpy as np
import pytest

from tests.notebooks.running import SIZES, values


@SIZES
@pytest.mark.usefixtures("size")
def test_rfvm_and_its_posterior(full, tmp_path):
    (
        diagnostics, p_exact, p_paper, counted, sd_ratio, scores, erratum, stopping, ends, bounds,
        measured, ratios, signs,
    ) = values(
        "08_rfvm_posterior", tmp_path, "diagnostics", "p_exact", "p_paper", "counted", "sd_ratio",
        "scores", "erratum", "stopping", "ends",
        "{s: f['fit']['program_bound'].values for s, f in programs.items()}",
        "measured", "ratios", "signs",
    )  # fmt: skip
    assert np.argmax(p_paper) == np.argmax(p_exact)
    assert p_paper.max() > 0.99
    assert np.sort(p_paper)[-2] < 0.01
    assert sd_ratio < 0.15
    assert scores.loc["mean field", "accuracy"] < 0.9 < 0.95 < scores.loc["exact", "accuracy"]
    wrong = scores.loc["mean field", ["wrong", "wrong_sure"]]
    assert wrong["wrong_sure"] > 0.7 * wrong["wrong"] > 10 > scores.loc["exact", "wrong_sure"]

    sweeps = stopping.loc["stops at sweep"]
    assert 400 < sweeps.iloc[0] < 500
    assert sweeps.iloc[2].startswith("not within")
    assert erratum.loc["pixels left", "folded"] < 0.75 * erratum.loc["pixels left", "truncated"]
    assert erratum.loc["test accuracy", "folded"] < erratum.loc["test accuracy", "truncated"]

    assert not ends["has settled"].any()
    for bound in bounds.values():  # of a program without draws, from three starts
        assert bound[:500].max() > 1.5 * bound[5]

    names = measured.index
    assert (measured["worst fold"] < 78).all()
    assert (measured["best fold"] > 78).all()
    assert measured.loc[names[2], "genes, %"] > 8 * measured.loc[names[0], "genes, %"]
    assert 0.2 < measured.loc[names[1], "genes, %"] < measured.loc[names[0], "genes, %"] < 3.0
    assert ratios.iloc[1] < 0.15 < 2.0 < ratios.iloc[0]
    assert (signs["diagonal"] == 0.0).all()
    assert signs["all pairs"].between(0.02, 0.3).all()  # 500 simulations of a fixed seed
    if full:
        assert ends["pixels left"].nunique() > 1
        assert all(bound.max() > 1.02 * bound[-1] for bound in bounds.values())
        assert diagnostics["worst R-hat"].max() < 1.02
        assert diagnostics["smallest bulk ESS"].min() > 300
        assert 12 < np.nanmean(counted) < 19
        assert 4 <= (p_exact > 0.5).sum() <= 11
        assert 1500 < sweeps.iloc[1] < 1700
        left = stopping.loc["pixels left"]
        assert left.iloc[0] > left.iloc[1] > left.iloc[2]
