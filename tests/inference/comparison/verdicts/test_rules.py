"""From distances and findings to a verdict: each rule by numbers made by hand, without a fit."""

import pytest

from ardvark.inference.comparison.verdicts.findings import Finding
from ardvark.inference.comparison.verdicts.purposes import PURPOSES
from ardvark.inference.comparison.verdicts.verdict import judged
from ardvark.inference.scoring.distances import frame
from ardvark.inference.scoring.limits import LIMITS
from ardvark.inference.scoring.statistic import Distance
from ardvark.inference.scoring.statistics import STATISTICS
from ardvark.inference.target.reasons import Reason


def scores(**deviations):
    """Return distances without noise: deviations by quantity__statistic."""
    return frame(
        [at(*name.split("__"), value, value, 0.0, 0.0) for name, value in deviations.items()]
    )


def at(quantity, statistic, *numbers):
    """Return a distance of a fit: value, deviation, floor and median of the noise."""
    return Distance("fit", quantity, statistic, *numbers)


def test_the_papers_algorithm_of_the_demo():
    found = judged(
        scores(
            probability__difference=0.04, probability__agreement=0.04, eta__error=0.1,
            eta__sd_ratio_worst=2.7, ranking__captured=0.7, selection__p_active=0.87,
        ),
        [],
    )  # fmt: skip
    assert found.level == "do not use"  # neither its predictions nor its ranking are good
    assert "leading" in found.because[0].numbers["text"]
    better = judged(
        scores(
            probability__difference=0.01, eta__error=0.5, eta__sd_ratio_worst=2.7,
            ranking__captured=0.7,
        ),
        [],
    )  # fmt: skip
    assert better.level == "with care"
    assert better.words["means"] == "rough"


ROUGH = {"probability__difference": 0.04, "ranking__captured": 0.3}


@pytest.mark.parametrize(
    ("distances", "findings"),
    [
        ({"eta__error": 1.5}, []),  # bad, but of means
        ({}, [Finding(Reason("point"), "bad", ("uncertainty", "parameters"))]),
        ({}, [Finding(Reason("not many draws", {"draws": 80, "least": 400.0}), "rough")]),
    ],
)
def test_do_not_use_quotes_what_decided_it(distances, findings):
    """Rough predictions beside a ranking that is no better; whatever else is as bad comes after."""
    found = judged(scores(**ROUGH | distances), findings)
    assert found.level == "do not use"
    assert "0.04" in found.because[0].numbers["text"]
    assert len(found.reasons) == 3


def test_do_not_use_quotes_the_finding_that_decided_it():
    point = Finding(Reason("point"), "bad", ("uncertainty", "parameters"))
    stuck = Finding(Reason("stuck", {"which": "2"}), "bad")
    found = judged(scores(eta__error=1.5, probability__difference=0.01), [point, stuck])
    assert found.because[:2] == (stuck.reason, point.reason)


def test_of_several_reasons_for_a_word_the_most_telling_is_given():
    """Of four that all say rough: the sd, else a coverage, the worst first, else a classifier.

    The less telling one is nearer to its second limit each time.
    """
    rough = {"sd_ratio_worst": 0.25, "coverage_90": 0.15, "coverage_50": 0.15, "two_sample": 0.49}
    told = {
        "sd_ratio_worst": "eta: the sd is",
        "coverage_90": "in its 90 % interval",
        "coverage_50": "in its 50 % interval",
        "two_sample": "eta: a classifier recognises",
    }
    while rough:
        found = judged(scores(**{f"eta__{name}": value for name, value in rough.items()}), [])
        assert found.words["uncertainty"] == "rough"
        (reason,) = found.reasons
        first = next(iter(rough))
        assert told[first] in reason
        del rough[first]


@pytest.mark.parametrize("limit", LIMITS, ids=lambda x: f"{x.purpose} {x.statistic}")
def test_each_limit_decides_its_purpose(limit):
    """Below the first limit good, above it rough, above the second bad: nothing else is touched."""
    assert 0.0 < limit.good < limit.rough
    assert len(limit.why) > 20
    for value, word in (
        (0.99 * limit.good, "good"),
        (0.99 * limit.rough, "rough"),
        (1.01 * limit.rough, "bad"),
    ):
        for quantity in limit.quantities:
            found = judged(frame([at(quantity, limit.statistic, value, value, 0.0, 0.0)]), [])
            assert found.words[limit.purpose] == word
            others = [w for p, w in found.words.items() if p != limit.purpose]
            assert set(others) == {"unknown"}


def test_every_limit_is_of_a_purpose_and_a_statistic_and_every_purpose_has_limits():
    assert {limit.purpose for limit in LIMITS} == set(PURPOSES)
    assert {limit.statistic for limit in LIMITS} <= set(STATISTICS)
    rules = [(x.purpose, x.statistic, q) for x in LIMITS for q in x.quantities]
    assert len(set(rules)) == len(rules)
    own = {n: [p.said(w) for w in ("good", "rough", "bad")] for n, p in PURPOSES.items()}
    assert all(p.meaning and bool(p.quoted) != all(own[n]) for n, p in PURPOSES.items())


def test_a_distance_within_its_noise_counts_as_none():
    """The floor is 0.1 above the median: the noise is 0.2 + 2.51 x 0.1 = 0.451."""
    means = {v: judged(frame([at("eta", "error", v, v, 0.3, 0.2)]), []) for v in (0.45, 0.46)}
    assert means[0.45].words["means"] == "unknown"  # it would hide twice the limit
    assert means[0.46].words["means"] == "rough"
    small = judged(frame([at("eta", "error", 0.3, 0.3, 0.26, 0.2)]), [])
    assert small.words["means"] == "good"
    sds = judged(frame([at("eta", "sd_ratio_worst", 1.3, 0.26, 0.25, 0.2)]), [])
    assert sds.words["uncertainty"] == "good"


def test_noise_that_hides_a_defect_is_said():
    """Predictions are known to be right; means might be wrong by twice their limit, unseen."""

    def found(floor, ratio_floor=0.1):
        right = at("probability", "difference", 0.0, 0.0, 0.0, 0.0)
        error = at("eta", "error", 0.1, 0.1, floor, 0.1)
        ratio = at("eta", "sd_ratio", 1.1, 0.1, ratio_floor, 0.1)
        return judged(frame([right, error, ratio]), [])

    assert found(0.2).level == "trust"
    hidden = found(3.0)
    assert hidden.level == "with care"
    assert hidden.words["means"] == "unknown"
    assert [reason.code for reason in hidden.because] == ["hidden"]
    # shares of draws in intervals see a wrong sd with less noise than the typical sd itself
    assert found(0.2, ratio_floor=0.4).level == "trust"


def test_the_error_of_a_mask_is_one_of_probabilities():
    """Of sds it is not: means stay unknown."""
    found = judged(frame([at("feature_weight", "inclusion", 0.2, 0.2, 0.05, 0.02)]), [])
    assert found.words == dict.fromkeys(PURPOSES, "unknown") | {"selection": "rough"}
