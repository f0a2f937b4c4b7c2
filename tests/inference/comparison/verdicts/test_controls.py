"""Wrong posteriors that once were trusted, and right ones that were condemned.

Draws are made by hand on a problem of 16 x 12; those of
a spike with a tail are as a sparse prior makes them.
"""

import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference.comparison.verdicts.remedies import USE_EXACT, USE_REFERENCE
from ardvark.inference.comparison.verdicts.verdict import verdicts
from ardvark.inference.scoring.distances import measure
from ardvark.inference.target.reasons import Reason
from tests.inference.fits.selections import selection_of
from tests.made import drawn as a_fit
from tests.support import rng

SHAPE, N, D = (4, 1000), 16, 12
SIZES = np.array([3.0, 1.5, *[0.0] * (D - 2)])
"""The mean weights: two features are active, the others only now and then."""


def drawn(number, shape=SHAPE, **changes):
    """Return the right posterior, by variable: the same law for each number.

    `weight` (chain, draw, D), `tau` and `bias` (chain, draw), `P` (chain, draw, N). A feature that
    is not active has a spike of sd 0.02 and, in one draw of twenty, a tail.
    """
    generator = rng(number)
    tail = generator.random((*shape, D)) < 0.05
    noise = generator.normal(size=(*shape, D)) * np.where(tail, 1.0, 0.02)
    noise[..., :2] = 0.4 * generator.normal(size=(*shape, 2))
    found = {
        "weight": SIZES + noise,
        "tau": np.exp(0.3 * generator.normal(size=shape)),
        "bias": 0.3 * generator.normal(size=shape),
    }
    return found | changes


def made(found, kind="mcmc", method=None, rows=None, **attrs):
    """Return a fit of these draws; eta is X w + b."""
    X = np.random.default_rng(7).normal(size=(N, D))
    eta = np.einsum("...d,nd->...n", found["weight"], X) + found["bias"][..., None]
    if rows is not None:
        eta = rows(eta)
    arrays = {"eta": eta, "feature_weight": np.abs(found["weight"])}
    arrays |= {name: found[name] for name in ("bias", "tau")}
    told = {"model": "rfvm", "fingerprint": "same", "seed": 1} | attrs
    told |= {} if method is None else {"method": method}
    tree = a_fit(arrays, kind, np.arange(N) % 2, **told)
    tree["selection"] = xr.DataTree(selection_of(np.abs(found["weight"]) > 0.1))
    return tree


def beside(tree, exact=None, probability=None):
    """Return the verdicts on an independent reference, "exact", and on a fit beside it."""
    return beside_one({"other": tree}, exact, probability)


def beside_one(trees, exact=None, probability=None):
    """Return the verdicts on one reference and on fits that are measured from it at once."""
    fits = {"exact": made(drawn(1)) if exact is None else exact, **trees}
    return verdicts(fits, "exact", measure(fits, "exact", probability=probability))


def alone(tree):
    return verdicts({"fit": tree}, None)["fit"]


# --- what is right --------------------------------------------------------------------------------


@pytest.mark.statistical
def test_a_right_posterior_is_trusted_beside_an_independent_reference():
    """The other exact sampler speaks for the reference; draws of an approximation do not."""
    trees = {
        "other": made(drawn(2), method="gibbs"),
        "q": made(drawn(2, (4, 2500)), "approximation"),
    }
    found = beside_one(trees)
    for name in trees:
        assert found[name].level == "trust", found[name].text(name)
    assert (found["exact"].level, found["exact"].basis) == ("trust", "opinion")
    del trees["other"]
    assert beside_one(trees)["exact"].level == "converged"


def test_beside_a_reference_that_cannot_be_trusted_chains_are_judged_by_themselves():
    """And an approximation is not judged: adopted draws do not prove what they are of."""
    exact = made(drawn(1), method="adopted")
    trees = {"chains": made(drawn(2)), "q": made(drawn(3), "approximation")}
    found = beside_one(trees, exact)
    levels = {name: verdict.level for name, verdict in found.items()}
    assert levels == {"exact": "not judged", "chains": "converged", "q": "not judged"}


def test_the_references_own_draws_are_no_second_run():
    """The share is that of the fit's draws, however many the reference has."""
    part = {name: x[:, :250] for name, x in drawn(1).items()}
    found = beside_one({"part": made(part), "all": made(drawn(1))})
    for name in ("part", "all"):
        assert found[name].level == "not judged"
        assert Reason("copied", {"percent": 100.0}) in found[name].because


def test_ten_to_forty_exact_draws_are_unknown_and_not_bad():
    """Condemned once, in 14 of 16 trials: eight of them miss that with probability 1e-7."""
    cases = [(count, number) for count in (8, 12, 20, 44) for number in (2, 3)]
    found = beside_one({str(case): made(drawn(case[1], (4, case[0] // 4))) for case in cases})
    for case in cases:
        verdict = found[str(case)]
        assert verdict.level == "not judged"
        (reason,) = verdict.because
        assert (reason.code, reason.numbers["draws"]) == ("few draws", case[0])
        assert set(verdict.words.values()) == {"unknown"}


@pytest.mark.statistical
def test_a_hundred_exact_draws_are_used_with_care_at_most():
    cases = [(kind, number) for kind in ("mcmc", "approximation") for number in range(2, 8)]
    found = beside_one({str(case): made(drawn(case[1], (4, 25)), case[0]) for case in cases})
    del found["exact"]
    for name, verdict in found.items():
        assert verdict.level in ("with care", "not judged"), verdict.text(name)
        assert "bad" not in verdict.words.values()


# --- what is wrong --------------------------------------------------------------------------------


def two_copies(number):
    """Two copies of a feature; two chains are stuck on each."""
    found = drawn(number)
    found["weight"][:2, :, 1] = found["weight"][:2, :, 0]
    found["weight"][:2, :, 0] = 0.02 * rng(number + 50).normal(size=(2, SHAPE[1]))
    return made(found, rows=lambda _: made(drawn(number))["posterior"]["eta"].values)


def test_two_chains_stuck_on_each_of_two_copies():
    """R-hat of eta is that of right chains; that of the weights is not."""
    for found in (alone(two_copies(2)), beside(two_copies(2))["other"]):
        assert found.level == "with care"
        assert found.words["predictions"] == "good"
        assert found.words["ranking"] == found.words["selection"] == "bad"
        apart = [r.numbers["quantity"] for r in found.because if r.code == "rhat"]
        assert apart[0] in ("the weight of 0", "the weight of 1")
        assert any(remedy in found.advice for remedy in (USE_EXACT, USE_REFERENCE))


@pytest.mark.statistical
def test_tau_four_times_too_large():
    found, fixed = drawn(2), drawn(2)
    found["tau"] = 4.0 * found["tau"]
    fixed["tau"] = np.ones(SHAPE)
    both = beside_one({"found": made(found), "fixed": made(fixed, "approximation")})
    verdict = both["found"]
    assert verdict.level == "with care"
    assert verdict.words["parameters"] == "bad"
    assert [name for name, word in verdict.words.items() if word == "bad"] == ["parameters"]
    assert both["fixed"].words["parameters"] == "bad"


@pytest.mark.statistical
def test_the_largest_effects_sd_and_a_clipped_second_one():
    """0.6 times the sd of one weight of twelve, and another clipped to its middle 80 %."""
    found, middle = drawn(2), {}
    w = found["weight"]
    w[..., 0] = SIZES[0] + 0.6 * (w[..., 0] - SIZES[0])
    middle[1] = np.quantile(w[..., 1], (0.1, 0.9))
    w[..., 1] = np.clip(w[..., 1], *middle[1])
    verdict = beside(made(found, rows=lambda _: made(drawn(2))["posterior"]["eta"].values))["other"]
    assert verdict.level == "with care"
    assert verdict.words["uncertainty"] in ("rough", "bad")


@pytest.mark.statistical
def test_one_test_row_in_fifty_with_a_wrong_probability():
    generator = rng(11)
    logit = np.linspace(-3.0, 3.0, 50) + 0.3 * generator.normal(size=(2, *SHAPE, 50))
    exact, other = 1.0 / (1.0 + np.exp(-logit))
    other[..., 0] = 1.0 - other[..., 0]  # 0.05 becomes 0.95
    verdict = beside(made(drawn(2)), None, {"exact": exact, "other": other})["other"]
    assert verdict.level != "trust"
    assert verdict.words["predictions"] == "bad"


def test_adopted_draws_alone_are_not_judged(small_data):
    """Halved feature weights, well mixed: what is wrong cannot be seen."""
    problem = av.problem("rfvm", small_data(N=12, D=4))
    generator, given = np.random.default_rng(0), {}
    points = [problem.simulate(generator) for _ in range(800)]
    for name in ("feature_weight", "sample_weight", "bias", "tau"):
        values = np.array([point[name] for point in points])
        given[name] = values.reshape(4, 200, *values.shape[1:])
    given["feature_weight"] *= 0.5
    fit = av.adopt(problem, given)
    verdict = av.summary(fit).verdict
    assert verdict.level == "not judged"
    assert (verdict.because[0].code, verdict.advice[-1]) == ("adopted", USE_EXACT)
    comparison = av.compare({"mine": fit}, problem=problem)
    assert comparison.verdict["mine"].level == "not judged"

    class Calibration:
        ranks, p_value = np.zeros((200, 5)), 0.4

        def text(self):
            return "no error found"

    mine = Calibration()
    told = av.adopt(problem, given, calibration=mine)
    assert av.summary(told).verdict.level in ("converged", "with care")
    mine.p_value = 1e-5
    wrong = av.summary(av.adopt(problem, given, calibration=mine)).verdict
    assert wrong.level == "do not use"
    mine.p_value, mine.ranks = 0.4, np.zeros((20, 5))  # too few replicates to be believed
    assert av.summary(av.adopt(problem, given, calibration=mine)).verdict.level == "not judged"


# --- computation and model are two questions ------------------------------------------------------


def test_a_model_that_loses_to_the_majority_is_said_beside_a_good_word(tmp_path):
    """Labels that X does not predict, four of five alike; P that follows X."""
    generator = np.random.default_rng(3)
    X, y = generator.normal(size=(400, 5)), (np.arange(400) % 5 == 0).astype(int)
    data = av.Dataset.from_arrays(X, y, name="noise")
    train, test = data.take(np.arange(40)), data.take(np.arange(40, 400))
    problem = av.problem("sparse_probit", train)
    weight = np.zeros((4, 1000, 5))
    weight[..., 0] = 2.0 + 0.1 * rng(1).normal(size=(4, 1000))
    given = {"beta": weight, "bias": 0.1 * rng(2).normal(size=(4, 1000))}
    fit = av.adopt(problem, given)
    fit.attrs["method"] = "nuts"
    comparison = av.compare({"exact": fit}, problem=problem, test=test)
    assert comparison.verdict["exact"].level == "converged"
    line = "predicts worse than the majority"
    assert comparison.verdict["exact"].model.startswith(line)
    page = comparison.to_html(tmp_path / "page.html", pictures={}).read_text()
    for told in (" ".join(comparison.text(full=True).split()), repr(comparison), page):
        assert line in told.partition("Scorecard")[0]
