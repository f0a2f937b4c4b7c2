"""The verdict on draws made by hand: each defect is named, and a right posterior is trusted."""

import functools
import json
import re

import numpy as np
import pytest
import xarray as xr

from ardvark.inference.comparison.verdicts import remedies
from ardvark.inference.comparison.verdicts.findings import findings_of
from ardvark.inference.comparison.verdicts.purposes import PURPOSES
from ardvark.inference.comparison.verdicts.remedies import Remedy
from ardvark.inference.comparison.verdicts.saying import LEVELS
from ardvark.inference.comparison.verdicts.verdict import verdicts
from ardvark.inference.scoring.distances import measure
from tests.inference.fits.selections import selection_of
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


def tree_of(eta, weight, kind="mcmc", fingerprint="same", **groups):
    """Return a fit that holds them, with P(y = 1) = 1 / (1 + exp(-eta)) at the training rows."""
    dims = ("chain", "draw")
    y = (np.arange(N) % 2).astype(int)
    stats = {k: (dims, v) for k, v in groups.pop("stats", {}).items()}
    contents = {
        "/posterior": {
            "eta": ((*dims, "obs"), eta),
            "feature_weight": ((*dims, "feature"), weight),
        },
        "/sample_stats": stats,
        "/log_likelihood": {"y": ((*dims, "obs"), -np.logaddexp(0.0, (1 - 2 * y) * eta))},
        "/observed_data": {"y": ("obs", y)},
    }
    tree = xr.DataTree.from_dict({k: xr.Dataset(v) for k, v in contents.items()})
    tree["selection"] = xr.DataTree(selection_of(np.abs(weight) > 6.25))
    tree.attrs = {"kind": kind, "status": "finished", "reason": "", "model": "rfvm"}
    tree.attrs["method"] = {"mcmc": "nuts", "approximation": "advi", "point": "laplace"}[kind]
    tree.attrs |= {"fingerprint": fingerprint, "form": "one", **groups}
    return tree


def measured(others, exact=None):
    """Return the verdicts on fits beside a reference, "exact", by default one that has converged.

    All are measured at once: the noise of the reference is then computed once.
    """
    fits = {"exact": tree_of(*posterior(1)) if exact is None else exact, **others}
    return verdicts(fits, "exact", measure(fits, "exact"))


NOT_CONVERGED = {
    "the ELBO was still rising after 60000 iterations (stage 1 of 3)": (
        "still rising",
        ('ardvark.fit(problem, "advi", max_iterations=240000)',),
    ),
    "the ELBO fell at the end of a stage": (
        "fell",
        ('ardvark.fit(problem, "advi", step_sizes=(0.005, 0.002, 0.0005, 0.0001))',),
    ),
    "the mode ran to a boundary: log theta = -14.6": ("told", ("use the reference",)),
    "it changes; raise max_iterations": ("unfinished", ()),
}
"""What a method says of itself, the code of it, and the remedies."""


def funnel(divergent, **attrs):
    """Draws whose energies, moving slowly and far, and divergences are those of a funnel."""
    energy = np.cumsum(rng(3).normal(size=SHAPE), axis=1)
    stats = {"energy": energy, "diverging": np.zeros(SHAPE, dtype=bool)}
    stats["diverging"].ravel()[:divergent] = True
    options = {"options": json.dumps({"target_accept": 0.9}), **attrs}
    return tree_of(*posterior(2), stats=stats, **options)


def one_chain_stuck():
    eta, weight = posterior(2)
    eta[2] = eta[2, 0]
    return tree_of(eta, weight)


@functools.cache
def beside():
    """Return the verdicts on a right fit and on those with a defect, beside one reference."""
    eta, weight = posterior(2)
    chosen = {"options": json.dumps({"target_accept": None}), "target_accept": 0.95}
    failed = tree_of(eta, weight)
    failed["posterior"] = xr.DataTree(xr.Dataset())
    failed.attrs |= {"status": "failed", "reason": "it ran out of luck"}
    others = {
        "mcmc": tree_of(eta, weight),
        "approximation": tree_of(eta, weight, "approximation"),
        "half": tree_of(*posterior(2, scale=0.5), "approximation"),
        "shifted": tree_of(*posterior(2, shift=1.5), "approximation"),
        "permuted": tree_of(*posterior(2, order=np.roll(np.arange(D), 7)), "approximation"),
        "stuck": one_chain_stuck(),
        "inactive": tree_of(eta, weight * 1e-3, "approximation"),
        "failed": failed,
        "state": tree_of(eta.mean((0, 1))[None, None], weight.mean((0, 1))[None, None], "point"),
        "chosen": funnel(5, **chosen),
        **{f"{count} diverged": funnel(count) for count in (1, 4, 5, 41)},
    }
    for reason, (code, _) in NOT_CONVERGED.items():
        others[reason] = tree_of(eta, weight, "approximation")
        said = {"status": "not_converged", "reason": reason, "reason_code": code}
        others[reason].attrs |= said
    return measured(others)


# --- what is right is trusted ---------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["mcmc", "approximation"])
def test_a_second_run_is_as_good_as_the_reference(kind):
    """No limit is near: a mean is known to 0.02 sd, its limit is 0.25."""
    found = beside()[kind]
    assert found.level == "trust", found.text(kind)
    assert found.sentence.startswith("as good as the reference for predictions, means, ")
    assert set(found.words.values()) == {"good", "unknown"}
    assert found.words["parameters"] == "unknown"  # these fits have none
    assert found.reasons == found.remedies == ()


# --- negative controls, each named ----------------------------------------------------------------


DEFECTS = {
    # whichever is farther beyond its limit: the ratio, or what is in the middle half
    "half": (
        {"means": "good", "ranking": "good", "uncertainty": "bad"},
        "do not report its intervals",
        # P(|Z| < 0.5 x 1.645) = 59 %, of the worst of several components a little less
        r".*sd is 0\.(4[89]|5|5[12]) times|.*5[5-9] % of the posterior lies in its 90 %",
    ),
    "shifted": (
        {"means": "bad", "uncertainty": "bad", "ranking": "good"},
        "do not report its means or its intervals",
        r"eta\[\d+\]: the mean is off by 1\.",
    ),
    # seven places on: its ten leading ones carry 48.5 of 97.5
    "permuted": (
        {"ranking": "bad", "selection": "bad", "predictions": "good"},
        "do not report its means, its intervals or its ranking",
        r"its leading features carry (49|5[01]) % of what the reference's carry",
    ),
    "inactive": (
        {"selection": "bad"},
        "",
        "no feature has an effect above 0.1 in any of its draws",
    ),
    # P at the mean of eta is not the mean of P, but its class is nearly the same
    "state": (
        {"means": "good", "ranking": "good", "predictions": "rough", "uncertainty": "bad"},
        "",
        "it is a single state, with no spread",
    ),
}
"""By fit: some of its words, a part of the sentence, and how one of the reasons begins."""


@pytest.mark.statistical
@pytest.mark.parametrize("name", DEFECTS)
def test_each_defect_is_named(name):
    """Of 4000 draws a ratio of sds is known to 1.1 %, and a mean to 0.02 sd: no limit is near."""
    words, sentence, reason = DEFECTS[name]
    found = beside()[name]
    assert found.words.items() >= words.items()
    assert sentence in found.sentence
    assert any(re.match(reason, said) for said in found.reasons)


@pytest.mark.statistical
def test_an_ignored_mode():
    """Two modes, 6 sds apart and equal, of which the method finds one: half of the spread."""
    eta, weight = posterior(1)
    side = 6.0 * (rng(5).random(SHAPE) < 0.5)[..., None]
    found = measured({"q": tree_of(*posterior(2), "approximation")}, tree_of(eta + side, weight))
    assert found["q"].words["uncertainty"] == "bad"
    said = " ".join(found["q"].reasons)
    # 1 / sqrt(1 + 9) = 0.316
    assert re.search(r"the sd is 0\.3[0-3] times that of the reference", said)


def test_draws_of_another_problem():
    fits = {"exact": tree_of(*posterior(1)), "other": tree_of(*posterior(2), fingerprint="else")}
    found = verdicts(fits, "exact")["other"]
    assert found.level == "do not use"
    assert "its draws are of a different problem (fingerprint else)" in found.sentence


def test_a_chain_that_never_moved():
    for found in (beside()["stuck"], verdicts({"a": one_chain_stuck()}, "a")["a"]):
        assert found.level == "do not use"
        assert found.sentence == "do not use: chain 2 never moved."
        assert found.remedies


def test_a_funnel_that_diverges():
    found = beside()["5 diverged"]  # more than one in a thousand
    assert found.words["uncertainty"] == found.words["means"] == "rough"
    assert found.words["predictions"] == found.words["ranking"] == "good"
    text = " ".join(found.reasons)
    assert "5 of 4000 transitions diverged" in text
    assert "E-FMI" in text
    assert 'ardvark.fit(problem, "nuts", target_accept=0.95)' in found.remedies
    few = beside()["4 diverged"]  # NUTS makes no second run for so few: the energies decide
    assert (few.words["means"], few.words["uncertainty"]) == ("good", "rough")
    assert "4 of 4000 transitions diverged" in " ".join(few.reasons)
    # none was given, and the sampler took 0.95
    assert 'ardvark.fit(problem, "nuts", target_accept=0.99)' in beside()["chosen"].remedies
    many = beside()["41 diverged"]
    assert many.level == "do not use"
    assert "41 of 4000 transitions diverged" in many.sentence


# --- diagnostics, each with its remedy ------------------------------------------------------------


def test_one_chain():
    eta, weight = posterior(1, shape=(1, 2000))
    found = measured({"other": tree_of(*posterior(2), "approximation")}, tree_of(eta, weight))
    assert found["exact"].sentence == "not judged: chains=1: R-hat needs at least 2."
    assert found["exact"].remedies == ('ardvark.fit(problem, "nuts", chains=4)',)
    assert found["other"].level == "not judged"
    assert "the reference, exact, cannot be trusted: chains=1" in found["other"].sentence


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
    assert found.level == "do not use"
    assert "R-hat of eta[" in found.sentence
    assert found.remedies == ('ardvark.fit(problem, "exact")',)
    tree.attrs["method"] = "exact"  # never what is already in use
    again = verdicts({"exact": tree}, "exact")["exact"]
    assert again.remedies == ("ardvark.resume(problem, fit)",)


def test_trajectories_at_the_largest_depth_are_a_remark():
    depth = np.full(SHAPE, 8)
    options = json.dumps({"max_treedepth": 8})
    (found,) = findings_of(tree_of(*posterior(1), stats={"tree_depth": depth}, options=options))
    assert found.purposes == ()
    assert found.remedy == Remedy("fit", "nuts", {"max_treedepth": 10})


@pytest.mark.parametrize("reason", NOT_CONVERGED)
def test_a_method_that_says_that_it_did_not_converge(reason):
    found = beside()[reason]
    assert found.level == "do not use"
    assert found.reasons[0] == reason
    assert found.remedies == NOT_CONVERGED[reason][1]


def test_a_failed_fit():
    assert beside()["failed"].sentence == "do not use: there are no draws: it ran out of luck."


# --- words and sentences --------------------------------------------------------------------------


def test_the_level_is_said_once_in_print():
    found = verdicts({"nuts": one_chain_stuck()}, "nuts")["nuts"]
    lines = found.text("nuts", 200).splitlines()
    assert lines[0] == "nuts [do not use]: chain 2 never moved."
    assert len(lines) == 2
    assert lines[1].startswith("  try: ")


def test_a_verdict_in_print():
    found = beside()["1 diverged"]
    lines = found.text("nuts", 60).splitlines()
    assert lines[0].startswith("nuts [with care]: ")
    assert max(map(len, lines)) <= 60
    assert any(line.startswith("  why: ") for line in lines)
    assert any(line.startswith("  try: ") for line in lines)
    assert set(LEVELS) == {
        "trust", "converged", "with care", "do not use", "not judged",
    }  # fmt: skip
    assert list(found.words) == list(PURPOSES)


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
    row = frame.set_index(["fit", "quantity", "statistic"]).loc[("q", "eta", "error")]
    assert row["deviation"] == row["value"]
    assert 0.0 < row["typical"] < row["floor"]
    halves = frame[frame["fit"] == "exact"]
    assert halves["floor"].isna().all()
    # a classifier and P(active) take no halves
    assert set(halves["statistic"]) == set(frame["statistic"]) - {"two_sample", "p_active"}
    assert set(frame["quantity"]) == {
        "eta", "feature_weight", "probability", "ranking", "selection",
    }  # fmt: skip
