"""Diagnostics that cannot be fooled: each on draws whose fault is known."""

import numpy as np
import pytest
import xarray as xr

from ardvark.inference import diagnostics
from ardvark.inference.diagnostics import convergence, inclusion, moved


def chains(values):
    return xr.DataArray(values, dims=("chain", "draw", "x_dim_0")[: values.ndim])


@pytest.mark.parametrize("k", [1 / 3, 1 / 2, 3 / 4])
def test_khat_reads_the_tail_of_known_ratios(k):
    """Ratios Pareto(1 / k) have tail index k.

    The estimate uses the 3 sqrt(S) largest ratios, so its sd is about (1 + k) / sqrt(3 sqrt(S)).
    """
    rng = np.random.default_rng(11)
    samples, repeats = 20_000, 20
    found = [
        diagnostics.khat(np.log1p(rng.pareto(1 / k, samples)), np.zeros(samples))
        for _ in range(repeats)
    ]
    error = (1 + k) / np.sqrt(3 * np.sqrt(samples)) / np.sqrt(repeats)
    assert np.mean(found) == pytest.approx(k, abs=4 * error + 0.03)  # 0.03: its prior's pull to 0.5
    # negative control: the sign that ArviZ's function takes for granted
    swapped = diagnostics.khat(np.zeros(samples), np.log1p(rng.pareto(1 / k, samples)))
    assert swapped < k - 0.2


def test_khat_of_equal_densities_and_of_draws_outside_the_support():
    lp = np.random.default_rng(0).normal(size=1000)
    assert diagnostics.khat(lp, lp) == -np.inf
    assert np.isnan(diagnostics.khat(np.full(1000, np.nan), lp))


def test_khat_limit_depends_on_the_number_of_draws():
    assert diagnostics.khat_limit(4000) == 0.7
    assert diagnostics.khat_limit(100) == pytest.approx(0.5)
    assert diagnostics.khat_limit(1) == 0.0  # a single point can never be reweighted


def test_rhat_sees_chains_that_disagree():
    rng = np.random.default_rng(1)
    good = rng.normal(size=(4, 500))
    assert diagnostics.rhat(chains(good))[0] < 1.01
    apart = good + np.array([0.0, 0.0, 0.0, 1.0])[:, None]
    assert diagnostics.rhat(chains(apart))[0] > 1.1


def test_a_constant_chain_is_never_perfect():
    stuck = np.ones((4, 500, 1))
    assert diagnostics.rhat(chains(stuck))[0] == np.inf
    assert diagnostics.ess(chains(stuck), "bulk")[0] == 4.0  # ArviZ counts 2000
    both = [
        diagnostics.rhat(chains(v)) for v in (stuck, np.random.default_rng(0).normal(size=(4, 500)))
    ]
    assert diagnostics.worst(both, np.max) == np.inf


def tree(values, diverging=0):
    stats = np.zeros(values.shape[:2], dtype=bool)
    stats.ravel()[:diverging] = True
    return xr.DataTree.from_dict(
        {
            "/posterior": xr.Dataset({"eta": (("chain", "draw", "obs"), values)}),
            "/sample_stats": xr.Dataset({"diverging": (("chain", "draw"), stats)}),
        }
    )


def test_convergence_in_words():
    rng = np.random.default_rng(2)
    good = rng.normal(size=(4, 500, 3))
    assert diagnostics.convergence(tree(good)) == ("ok", "")
    assert diagnostics.convergence(tree(good, diverging=20)) == ("ok", "")
    status, why = diagnostics.convergence(tree(good, diverging=21))
    assert status == "not_converged"
    assert "21 of 2000 transitions diverged" in why
    good[0, :, 1] += 2.0
    status, why = diagnostics.convergence(tree(good))
    assert status == "not_converged"
    assert "worst R-hat of eta" in why
    status, why = diagnostics.convergence(tree(np.ones((4, 500, 1))))
    assert status == "not_converged"
    status, why = diagnostics.convergence(tree(good[:, :3]))
    assert "fewer than 4 draws" in why


# --- binary masks ---------------------------------------------------------------------------------


def two_state_chain(rng, p, stay, chains, draws):
    """Bits whose probability is p and whose lag-1 autocorrelation is `stay`."""
    bits = np.empty((chains, draws, 1))
    bits[:, 0] = rng.random((chains, 1)) < p
    for t in range(1, draws):
        fresh = rng.random((chains, 1)) < p
        bits[:, t] = np.where(rng.random((chains, 1)) < stay, bits[:, t - 1], fresh)
    return xr.DataArray(bits, dims=("chain", "draw", "feature"), name="feature_weight")


def test_inclusion_error_is_that_of_a_correlated_chain():
    """Batch means against p (1 - p) (1 + r) / (1 - r) / n, the variance of a two-state chain."""
    p, r, chains, draws = 0.3, 0.9, 4, 20_000
    found = inclusion(two_state_chain(np.random.default_rng(0), p, r, chains, draws))
    exact = np.sqrt(p * (1 - p) * (1 + r) / (1 - r) / (chains * draws))
    batches = chains * 141
    assert found["mcse"].item() == pytest.approx(exact, rel=4.0 / np.sqrt(2 * batches) + 0.1)
    assert abs(found["probability"].item() - p) < 4 * exact
    expected = chains * draws * (1 - r) * 2 * p * (1 - p)
    assert found["flips"].item() == pytest.approx(expected, abs=5 * np.sqrt(expected))


def test_frozen_bits_are_flagged_and_never_perfect():
    values = np.zeros((4, 400, 3))
    values[2:, :, 1] = 1.0  # two chains say on, two say off
    values[..., 2] = np.random.default_rng(0).random((4, 400)) < 0.5
    weight = xr.DataArray(values, dims=("chain", "draw", "feature"), name="feature_weight")
    found = inclusion(weight)
    assert found["unmoved"].values.tolist() == [True, False, False]
    assert np.isnan(found["mcse"].values[0])
    assert found["mcse"].values[1] > 0.05  # 0.5 / sqrt(batches), although no chain ever moved
    assert found["spread"].values[1] == 0.5
    assert found["flips"].values[1] == 0

    eta = np.random.default_rng(1).normal(size=(4, 400, 2))
    data = {"eta": (("chain", "draw", "obs"), eta), "feature_weight": weight}
    tree = xr.DataTree.from_dict({"/posterior": xr.Dataset(data)})
    tree.attrs["masked"] = "feature_weight"
    status, reason = convergence(tree)
    assert status == "not_converged"
    assert "mask of feature_weight" in reason
    assert moved(tree, tree["posterior"]["feature_weight"]).shape == (4, 400, 2)
    frozen = xr.DataTree.from_dict(
        {"/posterior": xr.Dataset(data)[["eta", "feature_weight"]] * 1.0}
    )
    frozen["posterior"] = frozen["posterior"].to_dataset().isel(feature=[0])
    frozen.attrs["masked"] = "feature_weight"
    assert convergence(frozen) == (
        "not_converged",
        "no bit of the mask of feature_weight ever changed",
    )
    good = xr.DataTree.from_dict({"/posterior": xr.Dataset(data).isel(feature=[2])})
    good.attrs["masked"] = "feature_weight"
    assert convergence(good) == ("ok", "")
