"""Diagnostics that cannot be fooled: each on draws whose fault is known."""

import numpy as np
import pytest
import xarray as xr

from ardvark.inference.fits import datatree, diagnostics
from ardvark.inference.fits.diagnostics import inclusion
from tests.inference.fits.test_mixing import bits
from tests.support import rng, z_limit


def chains(values):
    return xr.DataArray(values, dims=("chain", "draw", "x_dim_0")[: values.ndim])


@pytest.mark.statistical
@pytest.mark.parametrize("k", [1 / 3, 1 / 2, 3 / 4])
def test_khat_reads_the_tail_of_known_ratios(k):
    """Ratios Pareto(1 / k) have tail index k.

    The estimate uses the M = 3 sqrt(S) largest ratios, so its sd is (1 + k) / sqrt(M), and a prior
    worth ten of them pulls it to 0.5. What bias is left is of the order 1 / M: 0.006 in 400 runs.
    """
    random = rng(11)
    samples, repeats = 20_000, 60
    found = [
        diagnostics.khat(np.log1p(random.pareto(1 / k, samples)), np.zeros(samples))
        for _ in range(repeats)
    ]
    M = 3 * np.sqrt(samples)
    error = (1 + k) / np.sqrt(M) / np.sqrt(repeats)
    expected = (M * k + 5) / (M + 10)
    assert np.mean(found) == pytest.approx(expected, abs=z_limit() * error + 0.01)
    # negative control: the sign that ArviZ's function takes for granted. Bounded ratios have an
    # index of -0.94 with sd 0.05, 20 sd away
    swapped = diagnostics.khat(np.zeros(samples), np.log1p(random.pareto(1 / k, samples)))
    assert swapped < k - 0.2


def test_khat_of_equal_densities_and_of_draws_outside_the_support():
    lp = rng().normal(size=1000)
    assert diagnostics.khat(lp, lp) == -np.inf
    assert np.isnan(diagnostics.khat(np.full(1000, np.nan), lp))


def test_khat_limit_depends_on_the_number_of_draws():
    assert diagnostics.khat_limit(4000) == 0.7
    assert diagnostics.khat_limit(100) == pytest.approx(0.5)
    assert diagnostics.khat_limit(1) == 0.0  # a single point can never be reweighted


def test_a_constant_chain_is_never_perfect():
    stuck = np.ones((4, 500, 1))
    assert diagnostics.rhat(chains(stuck))[0] == np.inf
    assert diagnostics.ess(chains(stuck), "bulk")[0] == 4.0  # ArviZ counts 2000


def test_energies_worked_out_by_hand():
    energy = np.array([[0.0, 2.0, 0.0, 2.0], [0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0]])
    np.testing.assert_allclose(diagnostics.bfmi(energy), [3.0, 1.0, np.nan])


def test_draws_in_pieces_are_the_draws_at_once(monkeypatch):
    point = {"a": rng(3).normal(size=(3, 7, 2)), "b": rng(4).normal(size=(3, 7))}

    def of(some):
        return {"sum": some["a"].sum(-1) * some["b"], "same": some["a"]}

    monkeypatch.setattr(datatree, "_CHUNK", 7.0)  # two draws at a time
    found = datatree.by_pieces(of, point)
    np.testing.assert_array_equal(found["sum"], of(point)["sum"])
    np.testing.assert_array_equal(found["same"], point["a"])


# --- binary masks ---------------------------------------------------------------------------------


@pytest.mark.statistical
def test_inclusion_error_is_that_of_a_correlated_chain():
    """Probability, error and flips of a two-state chain, whose laws are known; three comparisons.

    The mean of n draws has variance p (1 - p) (c - 2 r (1 - r^n) / (n (1 - r)^2)) / n with
    c = (1 + r) / (1 - r). The error is of a sum of about T = 80 autocovariances of 80 000 draws, so
    its square has a relative sd of (4 T / 80 000)^1/2 = 0.06 (Priestley 1981, sec. 5.3). A renewal
    takes T = 1/a + 1/b draws on average, a and b the probabilities of switching on and off, with
    variance V = (1 - a)/a^2 + (1 - b)/b^2; two flips each, n draws have 2 n / T of them with
    variance 4 n V / T^3.
    """
    p, r, chains, draws, limit = 0.3, 0.9, 4, 20_000, z_limit(3)
    on = bits(rng(), p, r, draws, 1)
    found = inclusion(xr.DataArray(on, dims=("chain", "draw", "feature")))
    total = chains * draws

    def variance(n):
        return p * (1 - p) * ((1 + r) / (1 - r) - 2 * r * (1 - r**n) / (n * (1 - r) ** 2)) / n

    ratio = found["mcse"].item() ** 2 / (variance(draws) / chains)
    assert abs(ratio - 1.0) < limit * 0.06
    assert abs(found["probability"].item() - p) < limit * np.sqrt(variance(draws) / chains)
    a, b = (1 - r) * p, (1 - r) * (1 - p)
    T, V = 1 / a + 1 / b, (1 - a) / a**2 + (1 - b) / b**2
    flips = found["flips"].item()
    assert abs(flips - 2 * (total - chains) / T) < limit * np.sqrt(4 * total * V / T**3)


@pytest.mark.statistical
def test_frozen_bits_are_flagged_and_never_perfect():
    values = np.zeros((4, 1000, 3))
    values[2:, :, 1] = 1.0  # two chains say on, two say off
    values[..., 2] = rng().random((4, 1000)) < 0.5
    weight = xr.DataArray(values, dims=("chain", "draw", "feature"), name="feature_weight")
    found = inclusion(weight)
    assert found["unmoved"].values.tolist() == [True, False, False]
    assert np.isnan(found["mcse"].values[0])
    assert found["mcse"].values[1] > 0.25  # four draws, although no chain ever moved
    assert found["spread"].values[1] == 0.5
    assert found["flips"].values[1] == 0
