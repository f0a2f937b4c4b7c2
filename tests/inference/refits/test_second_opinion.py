"""Two samplers of one posterior: whether they are said to agree, and that they do."""

import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference.gibbs.sampling import SAMPLERS
from ardvark.inference.refits.second_opinion import compared
from tests.support import rng, seed

X = rng(0).normal(size=(20, 3))
PROBLEM = av.problem("sparse_probit", X, X[:, 0] > 0)


def drawn(random, shift=0.0, scale=1.0, copies=None, draws=1000):
    """A fit whose variables are independent draws; `copies` says which feature a chain has."""
    weight = np.abs(random.normal(1.0, 0.1, size=(4, draws, 3)))
    if copies is not None:
        weight *= np.stack([np.arange(3) == c for c in copies])[:, None]
    posterior = {
        "eta": (("chain", "draw", "obs"), random.normal(shift, scale, size=(4, draws, 20))),
        "bias": (("chain", "draw"), random.normal(size=(4, draws))),
        "feature_weight": (("chain", "draw", "feature"), weight),
    }
    return xr.DataTree.from_dict({"/posterior": xr.Dataset(posterior)})


@pytest.mark.statistical
def test_two_sets_of_draws_of_one_posterior_agree():
    """Each pair is said to disagree with probability 1 %: eight of 40 do with one of 6e-9."""
    beyond = 0
    for run in range(40):
        random = rng(10 + run)
        table, limit = compared(PROBLEM, drawn(random), drawn(random))
        beyond += table["z"].abs().max() >= limit
    assert beyond < 8


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ({"shift": 0.2}, "mean of eta"),
        ({"scale": 0.85}, "sd of eta"),
        ({"copies": (0, 0, 0, 0)}, "mean of whether x3 is active"),
    ],
    ids=["a shift", "a scale", "another copy"],
)
def test_draws_of_another_posterior_do_not(fault, what):
    """A shift of 0.2 sd is 9 errors, an sd of 0.85 is 9 too, and a feature is always active."""
    random = rng(2)
    table, limit = compared(PROBLEM, drawn(random), drawn(random, **fault))
    beyond = table[table["z"].abs() > limit]
    assert (beyond["statistic"] + " of " + beyond["quantity"]).str.startswith(what).any()


def test_a_quantity_that_only_one_fit_lists_is_compared():
    random = rng(3)
    fits = drawn(random), drawn(random, copies=(0, 0, 1, 1))  # of which one never has x3
    for first, second in (fits, fits[::-1]):
        table, _ = compared(PROBLEM, first, second)
        assert {"the weight of x1", "the weight of x3", "bias", "eta[19]"} <= {*table["quantity"]}


@pytest.mark.parametrize("model", ["pfcvm", "jcfo"])
def test_the_other_sampler_is_asked_and_the_fit_keeps_the_answer(model):
    problem = av.problem(model, X[:12, :2], X[:12, 0] > 0)
    given = {"ess": 100.0, "progressbar": False}
    fit = av.fit(problem, "exact", random_seed=seed(1), **given)
    opinion = av.second_opinion(problem, fit, **given)
    samplers = {fit.attrs["sampler"], opinion.other.attrs["sampler"]}
    assert len(samplers) == 2
    assert opinion.other.attrs["seed"] == seed(1) + 1
    assert opinion.fit.attrs["second_opinion"] == opinion.text() == repr(opinion)
    assert "second_opinion" not in fit.attrs
    assert opinion.text().startswith(("agrees: of ", "disagrees: of ", "none: "))
    assert opinion.table["z"].abs().is_monotonic_decreasing


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("model", [n for n in SAMPLERS if not av.ZOO[n].masked])
def test_where_two_exact_samplers_apply_they_agree(model):
    """By the rule itself one of 100 pairs is said to disagree: here the alarm is that of all tests.

    So a pair beyond the limit is asked again under other seeds, and must then agree; two in a row
    have a probability of 1e-4.
    """
    problem = av.problem(model, X, X[:, 0] + 0.5 * X[:, 1] > 0)
    for number in (1, 3, 5):
        fit = av.fit(problem, "exact", random_seed=seed(number), progressbar=False)
        if av.second_opinion(problem, fit, progressbar=False).agrees:
            return
    raise AssertionError("three pairs of runs disagree")


def test_what_cannot_be_asked_is_refused():
    masks = av.problem("sklr", X[:10], X[:10, 0] > 0)
    fit = av.fit(masks, "gibbs", draws=20, tune=5, progressbar=False)
    with pytest.raises(av.InputError, match="gibbs is the only exact sampler for this model"):
        av.second_opinion(masks, fit)
    paper = av.fit(masks, "paper", draws=20, progressbar=False)
    with pytest.raises(av.InputError, match=r"this fit is by 'fsklr_savb'. Exact are nuts, gibbs"):
        av.second_opinion(masks, paper)
