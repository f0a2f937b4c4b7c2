"""What is asked of chains, by profile, on draws whose fault is known."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from ardvark.inference.fits import convergence
from ardvark.inference.fits.convergence import EXACT, FIT, VERDICT, Profile, lacking
from ardvark.inference.fits.mixing import Mixing, mixing
from ardvark.inference.target.reasons import Reason, joined
from tests.made import drawn
from tests.support import rng


def codes(reasons):
    return [reason.code for reason in reasons]


def tree(values, diverging=0, mask=None):
    """A fit of eta, and of feature weights that a mask switches."""
    stats = np.zeros(values.shape[:2], dtype=bool)
    stats.ravel()[:diverging] = True
    arrays = {"eta": values} | ({} if mask is None else {"feature_weight": 1.0 * mask})
    masked = "" if mask is None else "feature_weight"
    return drawn(arrays, stats={"diverging": stats}, model="fsklr", masked=masked)


@pytest.mark.statistical
def test_what_the_status_of_a_fit_asks():
    """Three components of independent draws: R-hat above 1.01 with probability 1e-12."""
    good = rng(2).normal(size=(4, 1000, 3))
    assert convergence.convergence(tree(good)) == []
    assert convergence.convergence(tree(good, diverging=4)) == []
    (found,) = convergence.convergence(tree(good, diverging=5))
    assert found == Reason("region missed", {"count": 5, "total": 4000})
    slow = tree(good)
    energy = np.cumsum(rng(3).normal(size=(4, 1000)), axis=1)  # its E-FMI is near 0
    slow["sample_stats"]["energy"] = xr.DataArray(energy, dims=("chain", "draw"))
    assert codes(convergence.convergence(slow)) == ["energy"]
    assert codes(convergence.convergence(tree(np.ones((4, 500, 1))))) == ["rhat"]
    good[0, :, 1] += 2.0
    (found,) = convergence.convergence(tree(good))
    assert (found.code, found.numbers["quantity"]) == ("rhat", "eta[1]")


@pytest.mark.statistical
def test_masks_that_are_frozen_in_part_or_as_a_whole():
    """What is called converged is independent draws: R-hat above 1.01 with probability 1e-12."""
    eta, mask = rng(1).normal(size=(4, 1000, 2)), np.zeros((4, 1000, 3), dtype=bool)
    mask[2:, :, 1] = True  # two chains say on, two say off
    mask[..., 2] = rng().random((4, 1000)) < 0.5
    (apart,) = convergence.convergence(tree(eta, mask=mask))
    assert str(apart).startswith("R-hat of the mask of 1 is inf")
    assert codes(convergence.convergence(tree(eta, mask=mask[..., 1:2]))) == ["rhat"]
    (frozen,) = convergence.convergence(tree(eta, mask=mask[..., :1]))
    assert frozen == Reason("frozen", {"mask": "feature_weight"})
    assert convergence.convergence(tree(eta, mask=mask[..., 2:])) == []


def test_too_little_to_judge():
    few = mixing(None, {"eta": rng().normal(size=(4, 3, 2))})
    one = mixing(None, {"eta": rng().normal(size=(1, 50, 2))})
    for profile in (FIT, EXACT, VERDICT):
        assert codes(lacking(few, profile)) == ["draws"]
        assert codes(lacking(one, profile)) == ["chains"]


THREE = pd.DataFrame(
    {
        "kind": ["eta", "active", "scalar"],
        "rhat": [1.03, 1.05, 1.02],
        "limit": [1.02, 1.1, 1.01],
        "ess_bulk": [500.0, np.nan, 300.0],
        "ess_tail": [np.nan, 450.0, 460.0],
        "noise": [1.05, 1.2, 1.015],
    },
    index=pd.Index(["a", "b", "c"], name="quantity"),
)


def test_each_profile_asks_for_its_own():
    """The R-hats of a and c are above their limits, that of c above its noise as well.

    That of a has 500 effective draws, so the status of a fit allows it its noise, too.
    """
    found = Mixing((4, 900), THREE)
    rhat = "R-hat of c is 1.020 (limit 1.01)"
    rhats = f"{rhat}, and 1 more of 3 quantities are above their limit"
    assert joined(lacking(found, FIT)) == rhat
    few = "bulk ESS of c is 300 (at least 1000)"
    assert joined(lacking(found, EXACT)) == f"{rhats}; {few}"
    few = "bulk ESS of c is 300 (at least 400)"
    assert joined(lacking(found, VERDICT)) == f"{rhat}; {few}"
    few = "; ".join(
        f"{kind} ESS of {name} is {size} (at least 4000)"
        for kind, name, size in (("bulk", "c", 300), ("tail", "b", 450))
    )
    assert joined(lacking(found, Profile(bulk=4000.0, tail=4000.0))) == f"{rhats}; {few}"
    assert lacking(found.only("active"), Profile(bulk=1e6, tail=450.0)) == []  # NaN asks nothing
