"""The numbers of a cell against their definitions, on draws whose differences are known."""

import numpy as np
import pytest
from scipy import special

import ardvark as av
from ardvark.inference.scoring.distances import frame
from lab.matrix.numbers import NAMES, between, numbers

X = np.random.default_rng(0).normal(size=(30, 12))
PROBLEM = av.problem("rvm", X, X[:, 0] > 0.2)
SIZE = (4, 250)


def draws(shift=0.0, scale=1.0, bias=0.0):
    """Return draws of weights, the same noise each time, moved and stretched."""
    noise = np.random.default_rng(3)
    a = noise.normal(size=(*SIZE, 30)) * 0.2
    mean = a.mean(axis=(0, 1))
    b = noise.normal(size=SIZE)
    return {
        "sample_weight": mean + scale * (a - mean) + shift * a.std(axis=(0, 1)),
        "bias": b + bias * b.std(),
        "feature_weight": np.ones((*SIZE, 12)),
    }


def of_other(comparison):
    return comparison.distances.query("fit == 'other'")


def beside(**changes):
    exact, other = (av.adopt(PROBLEM, draws(**c), kind="mcmc") for c in ({}, changes))
    comparison = av.compare({"exact": exact, "other": other}, "exact", PROBLEM)
    return numbers(PROBLEM, other, exact, of_other(comparison)), exact, other


def test_equal_draws_have_no_error():
    found, _, _ = beside()
    for name in ("eta_error", "bias_error", "effect_error", "p_off", "p_worst", "p_active_off"):
        assert found[name] == pytest.approx(0.0, abs=1e-12)
    for name in ("eta_width", "bias_width", "effect_width", "agreement", "slope"):
        assert found[name] == pytest.approx(1.0)
    assert np.isnan(found["top"])  # the feature weights are all 1
    assert set(found) == set(NAMES)


def test_a_moved_bias_is_found_in_its_sds():
    found, exact, other = beside(bias=1.5)
    assert found["bias_error"] == pytest.approx(1.5)
    assert found["bias_width"] == pytest.approx(1.0)
    p = [special.expit(t["posterior"]["eta"].values).mean(axis=(0, 1)) for t in (other, exact)]
    assert found["p_worst"] == pytest.approx(np.abs(p[0] - p[1]).max())
    assert found["p_off"] == pytest.approx(np.abs(p[0] - p[1]).mean())
    assert between(other, exact) == pytest.approx(found["p_off"])
    assert np.isnan(between(other, None))
    slope = np.polynomial.polynomial.polyfit(special.logit(p[1]), special.logit(p[0]), 1)[1]
    assert found["slope"] == pytest.approx(slope)
    right = [np.log(np.where(PROBLEM.y == 1, q, 1 - q)).mean() for q in p]
    assert [found["log_score"], found["log_score_exact"]] == pytest.approx(right)


def test_halved_spread_is_found_in_the_leading_effects():
    found, _, _ = beside(scale=0.5)
    assert found["effect_width"] == pytest.approx(0.5)
    assert found["effect_error"] == pytest.approx(0.0, abs=1e-9)


def test_heavy_tails_do_not_reach_a_width():
    found, exact, other = beside(scale=0.5)
    eta = other["posterior"]["eta"]
    eta.values[0, 0] = 1e9  # one draw of a thousand, which decides an sd
    comparison = av.compare({"exact": exact, "other": other}, "exact", PROBLEM)
    again = numbers(PROBLEM, other, exact, of_other(comparison))
    assert again["eta_width"] == pytest.approx(found["eta_width"], rel=0.1)


def test_the_exact_fit_itself_has_no_differences():
    _, exact, _ = beside()
    found = numbers(PROBLEM, exact, exact, frame([]))
    known = {name for name, value in found.items() if not np.isnan(value)}
    assert known == {
        *("active", "active_exact", "p_active_most", "p_off_base", "p_draw"),
        *("log_score", "log_score_exact", "log_score_base"),
    }
    p = special.expit(exact["posterior"]["eta"].values)
    alone = [np.abs(draw - p.mean(axis=(0, 1))).mean() for draw in p.reshape(-1, p.shape[-1])]
    assert found["p_draw"] == pytest.approx(np.mean(alone))
    share = PROBLEM.y.mean()
    entropy = share * np.log(share) + (1 - share) * np.log(1 - share)
    assert found["log_score_base"] == pytest.approx(entropy)
