"""Six ways in which approximations lie."""

import numpy as np
import pytest
from scipy import stats

from tests.notebooks.running import SIZES, values


def mean_field(rho, K):
    """1 / sqrt(Lambda_dd) of K unit variances and equal correlations, by Sherman and Morrison."""
    return ((1 - rho) * (1 + (K - 1) * rho) / (1 + (K - 2) * rho)) ** 0.5


def held(true):
    """Coverage of a type-II interval of 90 %, by quadrature over y ~ Normal(true, 1)."""
    y = np.linspace(true - 9.0, true + 9.0, 400_001)
    shrink = np.maximum(y**2 - 1, 0) / np.maximum(y**2, 1)
    inside = np.abs(true - shrink * y) <= 1.645 * np.sqrt(shrink)
    return (stats.norm.pdf(y - true) * inside).sum() * (y[1] - y[0])


@SIZES
@pytest.mark.usefixtures("size")
def test_when_approximations_lie(full, tmp_path):
    factors, edges, folding, collapsed, missed, found, sure, *solved = values(
        "03_when_approximations_lie", tmp_path, "factors", "edges", "folding", "collapsed",
        "missed", "calibration", "sure", "one", "field_sum", "exact_sum", "spread", "shares",
    )  # fmt: skip
    rho = factors.index.values
    for K in (2, 10, 100):
        np.testing.assert_allclose(factors[f"{K} weights"], mean_field(rho, K), rtol=1e-9)
    m = np.array([-2.0, 0.0, 2.0])
    hazard = stats.norm.pdf(m) / stats.norm.cdf(m)
    np.testing.assert_allclose(edges["exact mean"], m + hazard)
    np.testing.assert_allclose(edges["exact sd"], np.sqrt(1 - hazard * (hazard + m)))
    np.testing.assert_allclose(edges["Laplace mass below 0"], stats.norm.cdf(-np.maximum(m, 0)))
    at = folding.index.values
    np.testing.assert_allclose(folding["truncated"], at + stats.norm.pdf(at) / stats.norm.cdf(at))
    np.testing.assert_allclose(folding["folded"], folding["folded"].values[::-1])  # of |m|
    zero = stats.norm.cdf(1 - collapsed.index) - stats.norm.cdf(-1 - collapsed.index)
    # 100 000 draws of a fixed generator: five standard errors are at most 0.008
    np.testing.assert_allclose(collapsed["said to be exactly 0"], zero, atol=0.008)
    interval = [held(true) for true in collapsed.index]
    np.testing.assert_allclose(collapsed["in the 90 % interval"], interval, atol=0.008)
    assert missed["k-hat of q (limit 0.7)"] < 0.0  # as good as can be
    assert missed["mean under q"] - missed["mean under the posterior"] > 5.0
    assert missed["draws of q told from exact ones"] > 0.7
    assert sure.loc["rfvm_vb", "wrong_sure"] > 0.8 * sure.loc["rfvm_vb", "wrong"] > 20
    # the exercises
    one, field, true, spread, shares = solved
    assert field / true < 0.5 * one < 0.1  # the sum is worse than one copy
    # the tail of p / q is that of a power 1 / (1 - sd^2): k is 0.91, 0.51 and below 0
    assert spread[0.3]["k-hat"] > 0.7 > 0.65 > spread[0.7]["k-hat"] > 0 > spread[1.5]["k-hat"]
    assert abs(spread[0.7]["sd of the reweighted draws"] - 1) < 0.1
    assert 0.35 < shares["the posterior is a point"] < 0.43  # 20 000 replicates
    assert shares["else: rank in the two outer tenths"] > 0.25
    if full:
        assert (found["p_value"] < 1e-4).all()
        assert (found["sd_ratio"] < 0.9).all()
        assert found.loc["mean |feature_weight|^1/2", "mean"] > 0.6
        assert sure.loc["exact", "wrong"] < 12
        assert sure.loc["exact", "wrong_sure"] <= 1
