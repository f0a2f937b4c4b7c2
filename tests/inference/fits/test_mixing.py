"""Whether chains have mixed, over everything that may be quoted, on draws whose fault is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import signal

import ardvark as av
from ardvark.inference import read, save
from ardvark.inference.comparison.verdicts.findings import findings_of
from ardvark.inference.fits import quotable
from ardvark.inference.fits.activity import activity
from ardvark.inference.fits.convergence import EXACT, FIT, lacking
from ardvark.inference.fits.mixing import BIT_RHAT_LIMIT, RHAT_LIMIT, Mixing, mixing, mixing_of
from ardvark.inference.target.reasons import Reason
from tests.inference.fits.test_convergence import THREE
from tests.made import drawn
from tests.support import rng


def bits(random, p, stay, draws, count):
    """Two-state chains (4, draws, count) of probability p and lag-1 autocorrelation `stay`."""
    on = np.empty((4, draws, count), dtype=bool)
    on[:, 0] = random.random((4, count)) < p
    for t in range(1, draws):
        fresh = random.random((4, count)) < p
        on[:, t] = np.where(random.random((4, count)) < stay, on[:, t - 1], fresh)
    return on


def masks(on):
    """A tree whose feature weights are switched by a mask."""
    arrays = {"eta": rng(9).normal(size=(4, on.shape[1], 2)), "feature_weight": on * 1.0}
    coords = {"feature": [f"x{k}" for k in range(on.shape[-1])]}
    return drawn(arrays, coords=coords, model="fsklr", masked="feature_weight")


# --- bits -----------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(("stay", "draws"), [(0.0, 250), (0.8, 2250)])
def test_bits_that_have_mixed_pass(stay, draws):
    """60 bits, 20 runs, ESS 1000: each run passes with 99 % or more.

    Seven of 20 runs or more fail with probability 7e-10. Independent draws fail far more rarely:
    the variance of the mean of a half-chain is known to be the ESS's.
    """
    on, failed = bits(rng(draws), 0.3, stay, draws, 60 * 20), 0
    for run in range(20):
        found = mixing(None, masks(on[..., 60 * run : 60 * run + 60])).only("mask")
        assert len(found.table) == 60
        failed += not found.beyond(np.inf).table.empty
    assert failed < 7


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
    assert found.rhat.value > found.rhat.limit
    assert found.rhat.limit < 1.0105


def test_a_mask_that_never_changed_has_not_been_sampled():
    on = np.zeros((4, 50, 3), dtype=bool)
    assert mixing(None, masks(on)).frozen.numbers["mask"] == "feature_weight"
    on[1, 7:30, 2] = True
    assert mixing(None, masks(on)).frozen is None


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_numbers_that_have_mixed_and_one_that_has_not():
    """Five independent components of 4 x 2000: R-hat is above 1.01 with probability 1e-14 each.

    Bulk ESS is about 8000 with a relative sd below 0.1.
    """
    draws = {"eta": rng(3).normal(size=(4, 2000, 5)), "tau": rng(4).gamma(2.0, size=(4, 2000))}
    found = mixing(None, draws)
    assert found.table.index.tolist() == [*(f"eta[{k}]" for k in range(5)), "tau"]
    assert lacking(found, replace(EXACT, bulk=3000.0)) == []
    assert [reason.code for reason in lacking(found, replace(EXACT, bulk=1e5))] == ["ess"]
    draws["eta"][0, :, 2] += 3.0
    found = mixing(None, draws)
    assert found.rhat.name == found.ess_bulk.name == "eta[2]"
    draws["tau"][3] *= 5.0
    (reason,) = lacking(mixing(None, draws), FIT)
    assert reason.numbers["others"] == Reason("others", {"more": 1, "of": 6})


@pytest.mark.statistical
@pytest.mark.parametrize(("lag", "draws"), [(0.0, 100), (0.9, 1000)])
def test_noise_is_what_chains_that_agree_stay_below(lag, draws):
    """20 quantities, 40 runs: each run has one above its noise with at most 0.1 % probability.

    Five of 40 or more then have probability 7e-10. Chains two posterior sds apart have an R-hat of
    about 1.6, which no noise of these sizes hides.
    """
    innovations = rng(draws).normal(size=(4, draws + 100, 20 * 40))
    x = signal.lfilter([np.sqrt(1 - lag**2)], [1.0, -lag], innovations, axis=1)[:, 100:]
    runs = [mixing(None, {"eta": x[..., 20 * k : 20 * k + 20]}) for k in range(40)]
    assert sum(not found.beyond(0.0).table.empty for found in runs) < 5
    assert (runs[0].table["noise"] >= runs[0].table["limit"]).all()
    apart = x[..., :20].copy()
    apart[:2, :, 4] += 2.0
    found = mixing(None, {"eta": apart})
    assert found.beyond(0.0).table.index.tolist() == ["eta[4]"]


def test_the_worst_is_the_one_farthest_beyond_its_own_limit():
    found = Mixing((4, 900), THREE)
    for held in (found, Mixing.from_dataset(found.to_dataset())):
        assert held.rhat == (1.02, "c", 1.01)
        assert (held.ess_bulk[:2], held.ess_tail[:2]) == ((300.0, "c"), (450.0, "b"))
        assert held.beyond(np.inf).table.index.tolist() == ["a", "c"]
        assert held.beyond(0.0).table.index.tolist() == ["c"]
        for part in (held.only("eta", "active"), held.without("scalar")):
            assert part.table.index.tolist() == ["a", "b"]
            assert (part.sizes, part.rhat) == ((4, 900), (1.03, "a", 1.02))


def test_what_never_changes():
    """eta that is stuck is condemned; a whole number that is always the same is not.

    Of a model of one's own it is a constant, such as the diagonal of a correlation matrix, if no
    chain has another value.
    """
    eta = rng().normal(size=(4, 500, 2))
    draws = {"eta": eta, "count": np.full((4, 500), 3)}

    def judged(**attrs):
        return mixing(None, drawn(draws, **attrs))

    zoo = {"model": "rvm"}
    assert judged(**zoo).table.index.tolist() == ["eta[0]", "eta[1]"]
    eta[..., 1] = 1.0
    assert judged(**zoo).rhat[:2] == (np.inf, "eta[1]")
    assert judged(**zoo).ess_bulk[:2] == (4.0, "eta[1]")
    assert judged().table.index.tolist() == ["eta[0]"]
    eta[2, :, 1] = 2.0
    assert judged().rhat[:2] == (np.inf, "eta[1]")


def test_every_variable_of_a_model_of_ones_own_is_judged():
    """Its names mean nothing here: `eta`, as in eight schools, is one variable of several."""
    draws = {"eta": rng(1).normal(size=(4, 500, 2)), "beta": rng(2).normal(size=(4, 500, 2, 2))}
    draws["beta"][0, :, 1, 0] += 3.0
    found = mixing(None, draws)
    assert len(found.table) == 6
    assert found.rhat.name == "beta[1,0]"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_no_number_is_condemned(value):
    eta = rng().normal(size=(4, 500, 2))
    eta[1, 7, 0] = value
    found = mixing(None, {"eta": eta})
    assert found.rhat[:2] == (np.inf, "eta[0]")
    assert found.beyond(0.0).table.index.tolist() == ["eta[0]"]


# --- of a problem ---------------------------------------------------------------------------------


def copied(model="pfcvm", **settings):
    """A problem whose last feature is a copy of its first."""
    X = rng(20).normal(size=(30, 4))
    X = np.hstack([X, X[:, :1]])
    return av.problem(model, X, X[:, 0] + 0.5 * X[:, 1] > 0, **settings)


def on_copies(problem, choice, draws=500, number=21):
    """Draws in which x1 or its copy x5 carries the same weight: `choice` (4, draws) says which."""
    random = rng(number)
    a = 0.3 * np.sign(problem.Z[:, 0] + problem.Z[:, 1])
    a = a * random.uniform(0.9, 1.1, size=(4, draws, 30))
    size = random.gamma(20.0, size=(4, draws)) / 5.0
    theta = np.zeros((4, draws, 5))
    theta[..., 0], theta[..., 4] = size * ~choice, size * choice
    theta[..., 1] = random.gamma(20.0, size=(4, draws)) / 10.0
    theta += 1e-4 * random.random(theta.shape)
    arrays = {"feature_weight": theta, "sample_weight": a, "bias": random.normal(size=(4, draws))}
    return {**arrays, "eta": problem.decision(arrays)}


@pytest.mark.parametrize(
    ("settings", "apart"),
    [({}, [2, 3]), ({}, [1]), ({}, [0, 2, 3]), ({"kernel": "rbf"}, [1]),
     ({"kernel": "polynomial"}, [0, 2])],
    ids=str,
)  # fmt: skip
def test_chains_on_different_copies_of_a_feature(settings, apart):
    """eta is the same function of either copy, and knows nothing of it."""
    problem = copied(**settings)
    choice = np.zeros((4, 200), dtype=bool)
    choice[apart] = True
    found = mixing(problem, on_copies(problem, choice, 200))
    assert found.only("eta").rhat.value < 1.05  # what is left is noise
    named = {
        "the weight of x1",
        "the weight of x5",
        "the effect of x1",
        "whether the effect of x5 is above 0.5",
    }
    named |= {"the primal weight of x1"} if problem.kernel.is_primal else set()
    assert named <= set(found.table.index)
    for name in named:
        assert found.table.loc[name, "rhat"] > max(1.3, found.table.loc[name, "limit"])
    assert "x" in found.rhat.name
    assert lacking(found, FIT)
    assert found.ess_bulk.value < 20


@pytest.mark.statistical
def test_chains_that_change_copies_have_mixed():
    """Independent choices, 4 x 2000: R-hat of a number is above 1.01 with probability 1e-14.

    The ESS of each is about 8000.
    """
    problem = copied()
    found = mixing(problem, on_copies(problem, rng(22).random((4, 2000)) < 0.5, 2000))
    assert lacking(found, EXACT) == []
    assert set(found.table["kind"]) == {
        "eta", "scalar", "log likelihood", "weight", "primal weight", "effect", "active"
    }  # fmt: skip


def test_only_what_is_visible_is_quoted():
    """Effects decide: x3 and x4 have none, whatever their weights' chains do."""
    problem = copied()
    arrays = on_copies(problem, np.zeros((4, 100), dtype=bool), 100)
    arrays["feature_weight"][:2, :, 2] = 1e-3
    found = mixing(problem, arrays)
    said = " ".join(found.table.index)
    assert "the weight of x1" in found.table.index
    assert "the effect of x2" in found.table.index
    assert not any(name in said for name in ("x3", "x4", "x5"))
    # always above it: nothing to judge
    assert "whether the effect of x1 is above 0.5" not in found.table.index


def test_an_effect_is_computed_once(monkeypatch):
    problem = copied()
    arrays = on_copies(problem, rng(23).random((4, 100)) < 0.5, 100)
    expected = mixing(problem, arrays)
    found = activity(problem, arrays)
    monkeypatch.setattr(quotable, "activity", None)
    again = mixing(problem, arrays, found)
    pd.testing.assert_frame_equal(again.table, expected.table)


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf"}], ids=str)
def test_the_effects_of_an_activity_are_those_of_the_kernel(settings):
    problem = copied(**settings)
    arrays = on_copies(problem, rng(24).random((4, 12)) < 0.5, 12)
    found = activity(problem, arrays)["feature"]
    assert found.listed.tolist() == [0, 1, 4]
    theta, a = (arrays[n].reshape(48, -1) for n in ("feature_weight", "sample_weight"))
    expected = problem.kernel.feature_effects(problem.X, problem.Z, theta, a, 0.1)
    np.testing.assert_allclose(
        found.effects.reshape(48, 3), expected[:, found.listed], rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(found.active.reshape(48, 5), expected > 0.5)


def test_thinned_draws_have_a_limit_with_their_noise(monkeypatch):
    """Their R-hat counts; their ESS, of few draws, does not."""
    problem = copied(kernel="rbf")
    arrays = on_copies(problem, rng(25).random((4, 400)) < 0.5, 400)
    monkeypatch.setattr("ardvark.inference.fits.activity.FEATURE_BUDGET", 1.0)
    found = mixing(problem, arrays)
    effects = found.only("effect")
    assert len(effects.table) == 3
    assert effects.table["ess_bulk"].isna().all()
    assert effects.table["ess_tail"].isna().all()
    assert (effects.table["limit"] > RHAT_LIMIT).all()
    assert (found.only("weight").table["limit"] == RHAT_LIMIT).all()
    assert (found.only("weight").table["ess_bulk"] > 100).all()


# --- in a fit -------------------------------------------------------------------------------------


def test_a_fit_keeps_its_mixing(tmp_path):
    problem = copied()
    arrays = on_copies(problem, rng(26).random((4, 60)) < 0.5, 60)
    fit = av.adopt(problem, arrays)
    kept, expected = mixing_of(fit), mixing(problem, arrays)
    pd.testing.assert_frame_equal(kept.table, expected.table, check_like=True, check_dtype=False)
    save(fit, tmp_path / "fit.nc")
    again = mixing_of(read(tmp_path / "fit.nc"))
    pd.testing.assert_frame_equal(again.table, kept.table)
    anew = mixing(None, fit).table  # without the problem; what is listed is stored
    assert {*kept.only("weight").table.index} == {*anew.index[anew["kind"] == "weight"]}
    stored = fit["mixing"].to_dataset()
    fit["mixing"] = xr.DataTree(stored.assign(rhat=0.0 * stored["rhat"] + 7.0))
    assert (mixing_of(fit).table["rhat"] == 7.0).all()
    # of a part of its draws it says nothing
    part = fit.copy()
    part["posterior"] = xr.DataTree(fit["posterior"].to_dataset().isel(draw=slice(30)))
    assert mixing_of(part).sizes == (4, 30)


def test_a_single_chain_needs_another():
    problem = copied()
    arrays = on_copies(problem, rng(27).random((4, 50)) < 0.5, 50)
    fit = av.adopt(problem, {name: values[:1] for name, values in arrays.items()})
    assert fit.attrs["status"] == "not_converged"
    assert fit.attrs["reason"] == "R-hat needs at least 2 chains"


def test_weights_that_have_not_mixed_say_nothing_of_predictions():
    """Chains on two copies of a feature: the fit has not converged, its predictions are right."""
    problem = copied()
    choice = np.zeros((4, 2000), dtype=bool)
    choice[:2] = True
    fit = av.adopt(problem, on_copies(problem, choice, 2000))
    assert fit.attrs["status"] == "not_converged"
    found = [f for f in findings_of(fit) if f.reason.code == "rhat"]
    assert [f.cap for f in found] == ["bad"]
    assert "predictions" not in found[0].purposes
