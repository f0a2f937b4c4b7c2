"""What sparse means."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from tests.notebooks.running import DATA, SIZES, values


def laplace_mean(y, rate):
    """E[w | y] under exp(-rate |w|) and y ~ Normal(w, 1): a normal each side of 0."""
    right = np.exp(-rate * y + rate**2 / 2) * stats.norm.cdf(y - rate)
    left = np.exp(rate * y + rate**2 / 2) * stats.norm.cdf(-y - rate)
    return (right * (y - rate) + left * (y + rate)) / (right + left)


def at_zero_by_formula(rate, y=3.0, near=0.01):
    """P(|w| < near | y) under (1 + w^2 / (2 rate))^-1/2, whose integral is c asinh(w / c)."""
    c = np.sqrt(2 * rate)

    def both(w):
        return stats.norm.pdf(y, w) + stats.norm.pdf(y, -w)

    spike = both(0.5 * near) * c * np.arcsinh(near / c)
    rest = integrate.quad(lambda w: both(w) / np.sqrt(1 + (w / c) ** 2), near, 15, limit=500)[0]
    return spike / (spike + rest)


VARIABLES = (
    "observed", "mean", "mode", "at_zero", "counts", "expected", "table",
    "{k: f['selection']['p_active_feature'].values for k, f in fits.items()}",
    "nothing", "lasso_counts", "groups", "half_way", "asked_for", "both",
)  # fmt: skip


@SIZES
@pytest.mark.usefixtures("size")
def test_what_sparse_means(full, tmp_path):
    (
        observed, mean, mode, at_zero, counts, expected, table, p_active, nothing, lasso, groups,
        *solved,
    ) = values("01_sparsity", tmp_path, *VARIABLES)  # fmt: skip
    exercises(*solved)
    one_weight(observed, mean, mode, at_zero)
    many_weights(counts, expected)
    the_lasso(nothing, lasso)
    assert (groups["P(it or a partner active)"] > groups["the same, prior"]).all()
    assert (groups["active partners, it active"] < groups["active partners, it not"]).all()
    sparse, dense = table["sparse"], table["dense"]
    assert sparse["active pixels (mean)"] < 0.75 * dense["active pixels (mean)"]
    if not full:
        return
    assert max(sparse["worst R-hat of eta"], dense["worst R-hat of eta"]) < 1.05
    assert 3 * sparse["pixels with P > 0.5"] < 64 < 3 * dense["pixels with P > 0.5"]
    assert sparse["images with P > 0.5"] <= 2 < 0.1 * dense["images with P > 0.5"]
    assert sparse["accuracy, held out"] > dense["accuracy, held out"] - 0.04
    leading = np.argsort(-p_active["sparse"])[:4]
    assert (p_active["dense"][leading] > 0.8).all()
    assert (leading % 8 < 4).all()  # on the left


def one_weight(observed, mean, mode, at_zero):
    """Section 1: shrinkage, and the limit that does not arrive."""
    flat, laplace = np.array(list(at_zero.values())), "Laplace"
    formula = [at_zero_by_formula(float(rate)) for rate in at_zero]
    np.testing.assert_allclose(flat, formula, rtol=0.01)
    assert (np.diff(flat) > 0).all()
    np.testing.assert_allclose(mean[laplace], laplace_mean(observed, 3.0), atol=0.005)
    np.testing.assert_allclose(mode[laplace], np.maximum(observed - 3.0, 0.0), atol=0.003)
    assert (np.abs(mode[laplace][observed < 2.99]) < 1e-9).all()
    assert (mean[laplace][observed > 0] > 0).all()
    cauchy = "Cauchy with slab"
    assert (mode[cauchy][observed >= 1] > 1e-4).all()
    assert (observed - mean[cauchy])[-1] < 1 < 2.9 < (observed - mean[laplace])[-1]


def many_weights(counts, expected):
    """Section 2: how many weights make a decision value."""
    n90 = {key: row["n90 (median)"] for key, row in counts.items()}
    seen = {key: row["active weights (mean)"] for key, row in counts.items()}
    for D in (64, 2000):
        assert 7 < seen[D, "Cauchy with slab"] < 10
        assert n90[D, "Cauchy with slab"] < 15
    for name in ("Student-t (dense)", "Laplace"):
        assert n90[64, name] > 2 * n90[64, "Cauchy with slab"]
        assert n90[2000, name] > 200
        assert seen[2000, name] < 0.1 * n90[2000, name]
    sparse, dense = expected["sparse"], expected["dense"]
    for what in ("features", "samples"):
        assert abs(sparse[f"active {what}"] / sparse[f"asked {what}"] - 1) < 0.35
        assert 2 * sparse[f"active {what}"] < dense[f"active {what}"]


def the_lasso(nothing, lasso):
    """Section 4: the mode is sparse, and the posterior is not."""
    usual, strong, cauchy = nothing.values()
    assert usual["mode: weights above 1/2"] == strong["mode: weights above 1/2"] == 0
    assert usual["a draw: weights above 1/2"] > 100
    assert max(strong["a draw: weights above 1/2"], cauchy["a draw: weights above 1/2"]) < 5
    # var of a Laplace(1 / rate) is 2 / rate^2, and an observation of nothing only narrows it
    assert 5 * usual["mode: length of the vector"] < usual["a draw: length of the vector"]
    assert usual["a draw: length of the vector"] < np.sqrt(1000 * 2 / (2 * np.log(1000)))
    assert lasso["weights exactly 0: at the mode"] > 0.5 * lasso["pixels that vary"]
    assert lasso["weights exactly 0: in any draw"] == 0
    mode = lasso["active pixels: at the mode"]
    assert lasso["active pixels: mean over draws"] > 2 * mode > 0


def exercises(half_way, asked_for, both):
    """What is said in the solutions."""
    assert 3 < half_way["Cauchy with slab"] < half_way["Student-t (dense)"] < 4.5
    assert abs(half_way["Laplace"] - 6) < 0.15
    active = {key: row["active weights (mean)"] for key, row in asked_for.items()}
    assert max(active.values()) / min(active.values()) < 1.3
    assert asked_for[20_000, 2.0]["length (mean)"] > 1.1 * asked_for[20_000, 1.0]["length (mean)"]
    kept, wrong = both["Cauchy with slab, scale 1/1000"].values()
    assert kept > 6 > 3 > wrong
    for name, row in both.items():  # a penalty fails at one or at the other
        large, small = row.values()
        assert name.startswith("Cauchy") or large < 4 or small > 100


def test_the_stored_posterior_of_colon():
    path = DATA / "colon_sparse.csv"
    assert path.stat().st_size < 100_000
    assert path.read_text().startswith("# ARDVARK_DATA=... python notebooks/data/colon_sparse.py")
    rows = pd.read_csv(path, comment="#").set_index(["what", "name"])["value"]
    p = rows["p_active"]
    assert len(p) == rows["fit", "genes"] == 2000
    assert p.max() < 0.5  # no gene is singled out
    assert rows["fit", "rhat_eta"] < 1.01
    active = rows["active"]
    counts = active.index.astype(float)
    for name in ("n90", "active"):  # shares of draws, rounded to four digits
        assert abs(rows[name].sum() - 1) < 1e-4 * len(rows[name])
    # the mean number of active genes is the sum of their probabilities
    assert abs(counts @ active.values - p.sum()) < 0.15
    # P(one or more) is between the largest and the sum of the members' means
    assert (rows["any"] >= p[rows["any"].index] - 1e-4).all()
    assert (rows["any"] <= p[rows["any"].index] + rows["without"] + 1e-3).all()
