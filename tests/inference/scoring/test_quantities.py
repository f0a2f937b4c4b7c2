"""What is compared: weights whose sign a model leaves open are ranked by their size."""

import numpy as np
import pytest
import xarray as xr

from ardvark.inference.scoring.distances import measure
from tests.inference.fits.selections import selection
from tests.made import drawn
from tests.models.forms import make
from tests.support import rng

SHAPE = (4, 250)
LOCATION = np.array([0.1, -3.0, 2.0, -0.5, 1.0, 4.0])
D = len(LOCATION)


@pytest.fixture(scope="module")
def problem():
    """RFVM, whose primal weights are v * (Z'a): one sample weight, so that they are known."""
    return make("rfvm", N=8, D=D)


def fit_of(problem, number, sign=1.0):
    """Return draws whose primal weights are `sign` (1 + noise) LOCATION, all signs among them."""
    generator = rng(number)
    a = np.zeros((*SHAPE, problem.sizes["sample_weight"]))
    a[..., 2] = sign * (1.0 + 0.1 * generator.normal(size=SHAPE))
    v = np.abs(LOCATION / problem.Z[2]) * (1.0 + 0.1 * generator.normal(size=(*SHAPE, D)))
    return drawn({"feature_weight": v, "sample_weight": a}, model="rfvm", form=problem.form)


@pytest.mark.parametrize("flipped", ["other", "exact", "both"])
def test_a_ranking_does_not_know_the_signs_of_weights(problem, flipped):
    """(v, a) and (v, -a) rank the features alike, whichever side has which."""
    signs = {"other": (1.0, -1.0), "exact": (-1.0, 1.0), "both": (-1.0, -1.0)}[flipped]

    def ranking(exact, other):
        fits = {"exact": fit_of(problem, 1, exact), "other": fit_of(problem, 2, other)}
        found = measure(fits, "exact", problem).query("fit == 'other'")
        value = found.set_index(["quantity", "statistic"])["value"]
        assert (value["primal_weight", "error"] > 10.0) == (exact != other)
        return value["ranking"].to_dict()

    once = ranking(1.0, 1.0)
    assert ranking(*signs) == pytest.approx(once)
    assert once["captured"] == pytest.approx(1.0)


def test_where_nothing_is_active_the_largest_weights_are_compared():
    """Of 30 features the ten largest: a shift of one of them is seen, that of another one not."""
    size = 30
    order = rng(3).permutation(size)  # of the mean weight, from 1 to 30

    def fit(number, shifted=()):
        weight = 1.0 + order + 0.1 * rng(number).normal(size=(*SHAPE, size))
        weight[..., list(shifted)] += 1.0  # ten sds
        tree = drawn({"feature_weight": weight}, model="rfvm")
        never = selection(np.full(size, 0.01), mcse_feature=np.full(size, 0.001))
        return tree.assign(selection=xr.DataTree(never))

    def error(shifted):
        fits = {"exact": fit(1), "other": fit(2, shifted)}
        found = measure(fits, "exact").set_index(["fit", "quantity", "statistic"])
        return found.loc["other", "feature_weight", "error"]

    assert error(np.flatnonzero(order < 20)).value < 1.0
    for place in (20, 29):  # the least of the ten, and the largest
        k = int(np.flatnonzero(order == place)[0])
        found = error([k])
        assert found.value > 5.0
        assert found.component == f"the weight of {k}"


def test_every_bit_of_a_mask_is_compared():
    """Also one that the reference has switched off, though weights of its kind are not."""
    share = np.array([0.9, 0.5, 0.0, 0.0])  # of the draws in which a feature is on

    def fit(number, share):
        bits = (rng(number).uniform(size=(*SHAPE, 4)) < share).astype(float)
        tree = drawn({"feature_weight": bits}, model="fsklr", masked="feature_weight")
        found = selection(share, mcse_feature=np.full(4, 0.001))
        return tree.assign(selection=xr.DataTree(found))

    fits = {"exact": fit(1, share), "other": fit(2, np.array([0.9, 0.5, 0.8, 0.0]))}
    found = measure(fits, "exact").query("fit == 'other' and quantity == 'feature_weight'")
    assert found["value"].max() > 0.7
