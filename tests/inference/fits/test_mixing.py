"""Whether chains have mixed, over everything that may be quoted, on draws whose fault is known."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import ardvark as av
from ardvark.inference.fits import mixing as module
from ardvark.inference.fits.activity import activity
from ardvark.inference.fits.diagnostics import inclusion
from ardvark.inference.fits.mixing import BIT_RHAT_LIMIT, RHAT_LIMIT, mixing
from tests.support import rng, z_limit


def bits(random, p, stay, draws, count):
    """Two-state chains (4, draws, count) of probability p and lag-1 autocorrelation `stay`."""
    on = np.empty((4, draws, count), dtype=bool)
    on[:, 0] = random.random((4, count)) < p
    for t in range(1, draws):
        fresh = random.random((4, count)) < p
        on[:, t] = np.where(random.random((4, count)) < stay, on[:, t - 1], fresh)
    return on


def masks(on, **more):
    """A tree whose feature weights are switched by a mask."""
    posterior = {"eta": (("chain", "draw", "obs"), rng(9).normal(size=(4, on.shape[1], 2)))}
    posterior["feature_weight"] = (("chain", "draw", "feature"), on * 1.0)
    data = xr.Dataset(posterior, coords={"feature": [f"x{k}" for k in range(on.shape[-1])]})
    tree = xr.DataTree.from_dict({"/posterior": data})
    tree.attrs = {"masked": "feature_weight", **more}
    return tree


# --- bits -----------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(("stay", "draws"), [(0.0, 250), (0.0, 1000), (0.8, 2250)])
def test_bits_that_have_mixed_pass(stay, draws):
    """60 bits, 40 runs, ESS 1000, 4000 and 1000: each run passes with 99 % or more.

    Ten of 40 runs or more fail with probability 6e-12. Independent draws fail far more rarely: the
    variance of the mean of a half-chain is known to be the ESS's.
    """
    random, failed = rng(draws), 0
    for _ in range(40):
        on = bits(random, 0.3, stay, draws, 60)
        found = mixing(None, masks(on)).only("mask")
        assert len(found.names) == 60
        failed += not (found.rhats < found.limits).all()
    assert failed < 10


@pytest.mark.parametrize("apart", [[0, 1], [0], [1, 2, 3]], ids=["two", "one", "three"])
def test_chains_stuck_on_another_copy_are_found(apart):
    """Bits that never change within a chain, or change twice, and are otherwise elsewhere."""
    on = np.zeros((4, 1000, 2), dtype=bool)
    on[apart, :, 0] = True
    on[..., 1] = ~on[..., 0]
    for flips in (0, 10):
        on[:, :flips] = ~on[:, :flips]
        found = mixing(None, masks(on))
        assert found.rhat.value > BIT_RHAT_LIMIT
        assert found.rhat.name == "the mask of x0"
        assert "R-hat of the mask of x0 is" in found.missing(ess=0.0)
        assert found.ess_bulk.value < 20


@pytest.mark.statistical
def test_chains_that_half_agree_are_found():
    """Independent draws with p = 0.4 in two chains and 0.6 in two.

    R-hat^2 - 1 is 0.04 x 8 / 7 / 0.96 = 0.048 with an sd of 0.009, the variance of the distance of
    means being 2 x 0.24 / 2000: R-hat is 1.024, and below 1.0105 with probability 1e-5 at most. The
    limit is 1.01, for E is 4000 within half-chains, and not the 90 that the usual ESS says.
    """
    p = np.array([0.4, 0.4, 0.6, 0.6])[:, None, None]
    on = rng(1).random((4, 1000, 1)) < p
    found = mixing(None, masks(on)).only("mask")
    assert found.rhat.value > found.limits[0]
    assert found.limits[0] < 1.0105
    assert found.bulk[0] < 300


def test_the_error_of_a_probability_knows_chains_that_are_stuck():
    """Two of four chains, and one: as if each chain were one draw."""
    for apart, p in (([0, 1], 0.5), ([2], 0.25)):
        on = np.zeros((4, 1000, 1))
        on[apart] = 1.0
        found = inclusion(xr.DataArray(on, dims=("chain", "draw", "k")))
        assert found["probability"].item() == p
        # 4 effective draws, and the 3 degrees of freedom that their mean leaves
        assert found["mcse"].item() == pytest.approx(np.sqrt(p * (1 - p) / 3), rel=0.05)


def test_a_mask_that_never_changed_has_not_been_sampled():
    on = np.zeros((4, 50, 3), dtype=bool)
    assert mixing(None, masks(on)).missing() == "no bit of the mask of feature_weight ever changed"
    on[1, 7:30, 2] = True
    assert "ever changed" not in mixing(None, masks(on)).missing()


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_what_is_missing_in_words():
    """Five independent components of 4 x 2000: R-hat is above 1.01 with probability 1e-14 each.

    Bulk ESS is about 8000 with a relative sd below 0.1.
    """
    draws = {"eta": rng(3).normal(size=(4, 2000, 5)), "tau": rng(4).gamma(2.0, size=(4, 2000))}
    found = mixing(None, draws)
    assert found.names == ("eta[0]", "eta[1]", "eta[2]", "eta[3]", "eta[4]", "tau")
    assert found.missing() == ""
    assert found.missing(ess=3000.0) == ""
    assert found.missing(ess=1e5).startswith("bulk ESS of ")
    draws["eta"][0, :, 2] += 3.0
    found = mixing(None, draws)
    assert found.rhat.name == found.ess_bulk.name == "eta[2]"
    value = found.rhat.value
    assert found.missing(ess=0.0) == f"R-hat of eta[2] is {value:.3f} (limit 1.01)"
    draws["tau"][3] *= 5.0
    assert "and 1 more of 6 quantities" in mixing(None, draws).missing(ess=0.0)
    size = found.ess_bulk.value
    assert f"bulk ESS of eta[2] is {size:.0f} (at least 1000)" in found.missing()
    # tails: 400 are enough, and fewer where fewer are asked for
    assert "(at least 400)" in module.Mixing(
        (4, 500), ("a",), ("scalar",), *np.array([[1.0], [1.01], [2000.0], [300.0]])
    ).missing()  # fmt: skip


def test_too_little_to_judge():
    eta = rng().normal(size=(4, 3, 2))
    assert "fewer than 4 draws" in mixing(None, {"eta": eta}).missing()
    assert "at least 2 chains" in mixing(None, {"eta": rng().normal(size=(1, 50, 2))}).missing()


def test_what_never_changes():
    """eta that is stuck is condemned; a whole number that is always the same is not."""
    eta = rng().normal(size=(4, 500, 2))
    draws = {"eta": eta, "count": np.full((4, 500), 3)}
    assert mixing(None, draws).names == ("eta[0]", "eta[1]")
    eta[..., 1] = 1.0
    assert mixing(None, draws).rhat == (np.inf, "eta[1]")
    assert mixing(None, draws).ess_bulk == (4.0, "eta[1]")
