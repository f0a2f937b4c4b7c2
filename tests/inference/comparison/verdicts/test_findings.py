"""What one fit says against itself: alone, beside itself, beside another; chains in part frozen."""

import numpy as np
import pytest

from ardvark.inference.comparison.verdicts.findings import Finding, findings_of
from ardvark.inference.comparison.verdicts.purposes import PURPOSES
from ardvark.inference.comparison.verdicts.remedies import USE_EXACT, USE_REFERENCE
from ardvark.inference.comparison.verdicts.verdict import verdicts
from ardvark.inference.target.reasons import Reason
from tests.inference.comparison.verdicts.test_verdict import LOCATION, D, posterior, tree_of
from tests.support import rng

NONE_VISIBLE = Finding(
    Reason("invisible or lost", {"which": Reason("none visible")}),
    "unknown",
    ("ranking", "selection"),
    USE_EXACT,
)


def weights(*active):
    """Return feature weights (1, 1000, D) of which so many draws have the first one visible."""
    found = np.zeros((1, 1000, D))
    found[0, : len(active), 0] = active
    return found


def point_tree(weight, kind="approximation", number=2, **groups):
    """Return a fit whose eta says nothing against it."""
    eta = posterior(number, shape=weight.shape[:2])[0]
    return tree_of(eta, weight, kind, **groups)


# --- no effect is visible -------------------------------------------------------------------------


def test_no_visible_effect_is_said_without_a_reference_and_with_the_fit_as_its_own():
    tree = point_tree(weights())
    assert findings_of(tree) == findings_of(tree, None) == findings_of(tree, tree) == [NONE_VISIBLE]


def test_no_visible_effect_is_compared_with_the_reference():
    """Half a feature on average is as good as none; so is what the reference has, where it is."""
    some = point_tree(weights(*[12.0] * 500))
    many = point_tree(np.full((1, 1000, D), 12.0), number=1)
    (found,) = findings_of(some, many)
    assert (found.reason.code, found.reason.numbers["reference"]) == ("less visible", float(D))
    assert found.reason.numbers["which"].numbers["visible"] == 0.5
    assert (found.cap, found.remedy) == ("bad", USE_REFERENCE)
    (found,) = findings_of(some)
    assert found.reason.code == "invisible or lost"
    assert findings_of(point_tree(weights(), number=1), some) == []
    assert findings_of(many, some) == findings_of(many) == []


def test_about_one_visible_effect_is_the_same_answer_on_either_side_of_one():
    most, always = point_tree(weights(*[12.0] * 950)), point_tree(weights(*[12.0] * 1000), number=1)
    assert findings_of(most, always) == []
    assert findings_of(point_tree(weights(*[12.0] * 500)), always)


def test_of_too_few_draws_not_even_the_visible_effects_are_counted():
    many = point_tree(np.full((1, 1000, D), 12.0), number=1)
    (found,) = findings_of(point_tree(weights()[:, :20]), many)
    assert (found.cap, found.reason.code) == ("unknown", "few draws")
    assert found.reason.numbers["draws"] == 20


def test_an_empty_posterior_may_be_the_truth():
    """Converged chains in which nothing is visible: said, and nothing is held against them."""
    tree = tree_of(*(x * y for x, y in zip(posterior(2), (1.0, 1e-3), strict=True)))
    found = verdicts({"exact": tree}, "exact")["exact"]
    assert found.level == "converged"
    assert [reason.code for reason in found.because] == ["invisible"]
    assert found.remedies == ()


# --- k-hat ----------------------------------------------------------------------------------------


def test_khat_caps_a_fit_alone_and_one_that_is_its_own_reference():
    """Ratios of tail index 1, p / q = 1 / u at the mid-points of (0, 1).

    Beside another fit the distances themselves are known, and k-hat is a remark.
    """
    u = (np.arange(4000) + 0.5).reshape(4, 1000) / 4000
    stats = {"lp": -np.log(u), "log_q": np.zeros_like(u)}
    tree = tree_of(*posterior(2), "approximation", stats=stats)
    (alone,) = findings_of(tree)
    assert alone.reason.code == "khat"
    assert (alone.cap, alone.purposes) == ("bad", ("means", "uncertainty", "parameters"))
    assert findings_of(tree, tree) == [alone]
    (beside,) = findings_of(tree, tree_of(*posterior(1)))
    assert (beside.reason, beside.purposes) == (alone.reason, ())


# --- chains that forget their middle faster than their tails --------------------------------------


def test_few_effective_draws_of_the_tails_cap_the_uncertainty_alone():
    """A hundred draws in 500 have ten times the sd, and nearly all that is beyond 5 and 95 %.

    Those quantiles' indicators have p = 1/4 there and 0 elsewhere. So their correlation is 0.2 at
    first and 0 after 80 draws: of 4000 draws about 180 are effective. The signs are independent,
    so the bulk has nearly all of them.
    """
    eta, weight = posterior(2)
    loud = np.where(np.arange(1000) % 500 < 100, 10.0, 1.0)[None, :, None]
    tree = tree_of(LOCATION + loud * (eta - LOCATION), weight)
    (found,) = findings_of(tree)
    assert (found.reason.code, found.reason.numbers["kind"]) == ("ess", "tail")
    assert (found.cap, found.purposes) == ("rough", ("uncertainty",))
    assert (found.remedy.action, [*found.remedy.changes]) == ("fit", ["draws"])
    words = verdicts({"exact": tree}, "exact")["exact"].words
    assert words == dict.fromkeys(PURPOSES, "good") | {"uncertainty": "rough"}


# --- energies -------------------------------------------------------------------------------------


def test_one_chain_whose_energy_moves_slowly_is_enough():
    """A cosine of angle w a draw has the E-FMI 2 (1 - cos w), here 0.1; white noise has 2."""
    energy = rng(3).normal(size=(4, 1000))
    energy[2] = np.cos(np.arccos(0.95) * np.arange(1000))
    (found,) = findings_of(tree_of(*posterior(2), stats={"energy": energy}))
    assert found.reason.code == "energy"
    assert found.reason.numbers["value"] == pytest.approx(0.1, abs=0.005)
    assert (found.cap, found.purposes) == ("rough", ("uncertainty", "parameters"))
    energy[2] = energy[1]
    assert findings_of(tree_of(*posterior(2), stats={"energy": energy})) == []


# --- chains that are frozen in part ---------------------------------------------------------------


def test_a_component_that_is_frozen_in_one_chain_is_no_chain_that_never_moved():
    """Three sds from where the other chains are: R-hat says so, and the chain did move."""
    eta, weight = posterior(2)
    eta[1, :, 0] = LOCATION[0] + 3.0
    first, *others = findings_of(tree_of(eta, weight))
    assert (first.reason.code, first.reason.numbers["quantity"]) == ("rhat", "eta[0]")
    assert "stuck" not in [f.reason.code for f in others]


@pytest.mark.parametrize(
    ("chains", "code", "which"), [((2,), "stuck", "2"), ((0, 3), "several stuck", "0, 3")]
)
def test_a_frozen_chain_is_named_beside_a_component_that_moves_in_none(chains, code, which):
    """A component that is constant in every chain, as a pruned one is, says nothing of a chain."""
    eta, weight = posterior(2)
    eta[..., 4] = 0.75
    eta[list(chains)] = eta[list(chains), :1]
    first, *_ = findings_of(tree_of(eta, weight))
    assert (first.reason, first.cap) == (Reason(code, {"which": which}), "bad")
