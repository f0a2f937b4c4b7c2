"""The verdict on draws made by hand: each defect is named, and a right posterior is trusted."""

import functools

import numpy as np
import pytest
import xarray as xr

from ardvark.inference.comparison.verdicts import remedies
from ardvark.inference.comparison.verdicts.findings import findings_of
from ardvark.inference.comparison.verdicts.remedies import Remedy
from ardvark.inference.comparison.verdicts.verdict import verdicts
from ardvark.inference.scoring.distances import measure
from tests.inference.fits.selections import selection_of
from tests.made import drawn
from tests.support import rng

N, D = 20, 24
LOCATION = np.linspace(-2.0, 2.0, N)
WEIGHT = np.linspace(0.5, 12.0, D)  # half of them are active
SHAPE = (4, 1000)
"""Of independent draws an R-hat above 1.01 is a chi-squared of 7 degrees of freedom above 77."""


def posterior(number, shift=0.0, scale=1.0, order=None, shape=SHAPE):
    """Return eta and feature weights of independent components, the same law for each number."""
    generator = rng(number)
    eta = LOCATION + shift + scale * generator.normal(size=(*shape, N))
    weight = WEIGHT + scale * generator.normal(size=(*shape, D))
    return eta, weight if order is None else weight[..., order]


def tree_of(eta, weight, kind="mcmc", stats=None, **attrs):
    """Return a fit that holds them, with P(y = 1) = 1 / (1 + exp(-eta)) at the training rows."""
    attrs = {"model": "rfvm", "fingerprint": "same", "form": "one"} | attrs
    arrays = {"eta": eta, "feature_weight": weight}
    tree = drawn(arrays, kind, np.arange(N) % 2, stats=stats, **attrs)
    tree["selection"] = xr.DataTree(selection_of(np.abs(weight) > 6.25))
    return tree


def measured(others, exact=None):
    """Return the verdicts on fits beside a reference, "exact", by default one that has converged.

    All are measured at once: the noise of the reference is then computed once.
    """
    fits = {"exact": tree_of(*posterior(1)) if exact is None else exact, **others}
    return verdicts(fits, "exact", measure(fits, "exact"))


@functools.cache
def beside():
    """Return the verdicts on a right fit and on those with a defect, beside one reference."""
    eta, weight = posterior(2)
    others = {
        "mcmc": tree_of(eta, weight),
        "approximation": tree_of(eta, weight, "approximation"),
        "half": tree_of(*posterior(2, scale=0.5), "approximation"),
        "shifted": tree_of(*posterior(2, shift=1.5), "approximation"),
        "permuted": tree_of(*posterior(2, order=np.roll(np.arange(D), 7)), "approximation"),
        "inactive": tree_of(eta, weight * 1e-3, "approximation"),
        "state": tree_of(eta.mean((0, 1))[None, None], weight.mean((0, 1))[None, None], "point"),
    }
    return measured(others)


# --- what is right is trusted ---------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["mcmc", "approximation"])
def test_a_second_run_is_as_good_as_the_reference(kind):
    """No limit is near: a mean is known to 0.02 sd, its limit is 0.25."""
    found = beside()[kind]
    assert found.level == "trust", found.text(kind)
    assert set(found.words.values()) == {"good", "unknown"}
    assert found.words["parameters"] == "unknown"  # these fits have none
    assert found.reasons == found.remedies == ()


# --- negative controls, each named ----------------------------------------------------------------


DEFECTS = {
    # P(|Z| < 0.5 x 1.645) = 59 % of the posterior lies in its 90 % intervals
    "half": ({"means": "good", "ranking": "good", "uncertainty": "bad"}, "distance"),
    "shifted": ({"means": "bad", "uncertainty": "bad", "ranking": "good"}, "distance"),
    # seven places on: its ten leading ones carry 48.5 of 97.5
    "permuted": ({"ranking": "bad", "selection": "bad", "predictions": "good"}, "distance"),
    "inactive": ({"selection": "bad"}, "less visible"),
    # P at the mean of eta is not the mean of P, but its class is nearly the same
    "state": (
        {"means": "good", "ranking": "good", "predictions": "rough", "uncertainty": "bad"},
        "point",
    ),
}
"""By fit: some of its words, and the code of a reason."""


@pytest.mark.statistical
@pytest.mark.parametrize("name", DEFECTS)
def test_each_defect_is_named(name):
    """Of 4000 draws a ratio of sds is known to 1.1 %, and a mean to 0.02 sd: no limit is near."""
    words, code = DEFECTS[name]
    found = beside()[name]
    assert found.words.items() >= words.items()
    assert code in [reason.code for reason in found.because]


@pytest.mark.statistical
def test_an_ignored_mode():
    """Two modes, 6 sds apart and equal, of which the method finds one: half of the spread."""
    eta, weight = posterior(1)
    side = 6.0 * (rng(5).random(SHAPE) < 0.5)[..., None]
    found = measured({"q": tree_of(*posterior(2), "approximation")}, tree_of(eta + side, weight))
    assert found["q"].words["uncertainty"] == "bad"


# --- diagnostics, each with its remedy ------------------------------------------------------------


def test_few_effective_draws():
    """100 draws in all, if as many effective ones: each of 25 counts for 16 times as many."""
    tree = tree_of(*posterior(1, shape=(4, 25)))
    (found,) = [f for f in findings_of(tree) if f.reason.code == "ess"]
    draws = remedies.enough_draws(25, found.reason.numbers["value"])
    assert found.remedy == Remedy("fit", "nuts", {"draws": draws})
    assert found.cap == "rough"


@pytest.mark.parametrize(
    ("draws", "ess", "needed"), [(1000, 180.0, 2300), (1000, 100.0, 4000), (50, 390.0, 52)]
)
def test_how_many_draws_are_enough(draws, ess, needed):
    assert remedies.enough_draws(draws, ess) == needed


def test_chains_that_disagree():
    eta, weight = posterior(1)
    tree = tree_of(eta + np.array([0.0, 0.0, 0.0, 5.0])[:, None, None], weight)
    found = verdicts({"exact": tree}, "exact")["exact"]
    assert (found.level, found.because[0].code) == ("do not use", "rhat")
    assert found.advice == (remedies.USE_EXACT,)
    tree.attrs["method"] = "exact"  # never what is already in use
    again = verdicts({"exact": tree}, "exact")["exact"]
    assert [remedy.action for remedy in again.advice] == ["resume"]


# --- what is measured -----------------------------------------------------------------------------


def test_lp_is_compared_between_fits_of_one_form_only():
    stats = {"lp": rng(6).normal(size=SHAPE)}
    exact = tree_of(*posterior(1), stats=stats)
    fits = {"exact": exact, "same": tree_of(*posterior(2), stats=stats)}
    fits["else"] = tree_of(*posterior(2), stats=stats, form="another")
    lp = measure(fits, "exact").query("quantity == 'lp' and statistic == 'error'")
    assert dict(zip(lp["fit"], lp["value"], strict=True))["same"] == 0.0
    assert "else" not in set(lp["fit"])


def test_the_table_of_distances():
    fits = {"exact": tree_of(*posterior(1)), "q": tree_of(*posterior(2), "approximation")}
    frame = measure(fits, "exact")
    rows = frame.set_index(["fit", "quantity", "statistic"])
    row = rows.loc[("q", "eta", "error")]
    assert row["deviation"] == row["value"]
    assert row["limit"] == 0.25
    assert np.isnan(rows.loc[("q", "eta", "sd_ratio"), "limit"])  # decides nothing
    assert 0.0 < row["typical"] < row["floor"]
    halves = frame[frame["fit"] == "exact"]
    assert halves["floor"].isna().all()
    # a classifier and P(active) take no halves
    assert set(halves["statistic"]) == set(frame["statistic"]) - {"two_sample", "p_active"}
    assert set(frame["quantity"]) == {
        "eta", "feature_weight", "probability", "ranking", "selection",
    }  # fmt: skip
