"""Two samplers of one posterior: whether they are said to agree, and that they do."""

from dataclasses import asdict

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import ardvark as av
from ardvark.inference.checks import second_opinion
from ardvark.inference.checks.second_opinion import compared
from ardvark.inference.samplers.gibbs.method import SAMPLER_OF
from ardvark.inference.target.sampling import Sampling
from tests.support import rng, seed

X = rng(0).normal(size=(20, 3))
PROBLEM = av.problem("sparse_probit", X, X[:, 0] > 0)


def drawn(random, shift=0.0, scale=1.0, copies=None, draws=1000, **attrs):
    """A fit whose variables are independent draws; `copies` says which feature a chain has."""
    weight = np.abs(random.normal(1.0, 0.1, size=(4, draws, 3)))
    if copies is not None:
        weight *= np.stack([np.arange(3) == c for c in copies])[:, None]
    posterior = {
        "eta": (("chain", "draw", "obs"), random.normal(shift, scale, size=(4, draws, 20))),
        "bias": (("chain", "draw"), random.normal(size=(4, draws))),
        "feature_weight": (("chain", "draw", "feature"), weight),
    }
    tree = xr.DataTree.from_dict({"/posterior": xr.Dataset(posterior)})
    tree.attrs = {"fingerprint": PROBLEM.fingerprint, "status": "finished", "reason": "", **attrs}
    return tree


@pytest.mark.statistical
def test_two_sets_of_draws_of_one_posterior_agree():
    """Each pair is said to disagree with probability 1 %: seven of 20 do with one of 7e-10."""
    beyond = 0
    for run in range(20):
        random = rng(10 + run)
        table, limit = compared(PROBLEM, drawn(random, draws=250), drawn(random, draws=250))
        beyond += table["z"].abs().max() >= limit
    assert beyond < 7


def test_the_numbers_are_arvizs_and_the_limit_is_that_of_as_many_comparisons():
    random = rng(4)
    fits = drawn(random, draws=200), drawn(random, draws=300)
    eta = fits[1]["posterior"]["eta"].values
    eta[..., 7] = np.repeat(eta[:, ::10, 7], 10, axis=1)  # one effective draw of ten
    table, limit = compared(PROBLEM, *fits)
    rows = table.set_index(["quantity", "statistic"])
    one, other = (tree["posterior"]["eta"][..., 7] for tree in fits)
    for kind in ("mean", "sd"):
        row = rows.loc[("eta[7]", kind)]
        values = [float(getattr(x, {"mean": "mean", "sd": "std"}[kind])()) for x in (one, other)]
        error = np.hypot(*(float(az.mcse(x.values, method=kind)) for x in (one, other)))
        assert row.tolist() == pytest.approx([*values, error, (values[0] - values[1]) / error])
    assert (table["z"].abs().diff().dropna() <= 0.0).all()
    # of everything compared that component has the fewest effective draws
    fewest = float(az.ess(other.values, method="mean"))
    assert limit == pytest.approx(stats.t.isf(0.01 / (2 * len(table)), fewest / 5.0))


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


@pytest.mark.parametrize(("sampler", "asks"), [("gibbs", "nuts"), ("nuts", "gibbs")])
def test_the_other_sampler_is_asked_and_the_fit_keeps_the_answer(sampler, asks, monkeypatch):
    """With the sizes of the fit, under the seed after its own; real runs are in the docstring."""
    random, asked = rng(5), []
    sizes = {"draws": 123, "chains": 3, "keep": "shared"}
    fit = drawn(random, method="exact", sampler=sampler, seed=7, draws=200)
    fit.attrs |= sizes
    other = drawn(random, sampler=asks, seed=8, draws=200)
    monkeypatch.setattr(second_opinion, "compute", lambda plan: asked.append(plan) or other)
    opinion = av.second_opinion(PROBLEM, fit, progressbar=False, ess=123.0)
    (plan,) = asked
    assert plan.target.problem is PROBLEM
    assert (plan.name, plan.options.sampler, plan.options.ess) == ("exact", asks, 123.0)
    assert asdict(plan.sampling) == asdict(Sampling(**sizes, seed=8, progressbar=False))
    assert opinion.fit.attrs["second_opinion"] == opinion.text() == repr(opinion)
    assert "second_opinion" not in fit.attrs
    worst, agrees = opinion.table.iloc[0], abs(opinion.table["z"]).max() < opinion.limit
    assert opinion.text() == (
        f"{'agrees' if agrees else 'disagrees'}: of {len(opinion.table)} comparisons with {asks} "
        f"under seed 8 the largest |z| is {abs(worst['z']):.1f} (limit {opinion.limit:.1f}), of "
        f"the {worst['statistic']} of {worst['quantity']}"
    )
    av.second_opinion(PROBLEM, fit, random_seed=3, progressbar=False)
    assert asked[1].sampling.seed == 3
    other["posterior"]["bias"].values[:] += 1.0
    against = av.second_opinion(PROBLEM, fit, progressbar=False)
    assert not against.agrees
    assert against.text().startswith("disagrees: of ")
    other.attrs |= {"status": "not_converged", "reason": "R-hat is 2"}
    assert av.second_opinion(PROBLEM, fit, progressbar=False).text() == (
        "none: the other sampler has not converged (R-hat is 2)"
    )


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("model", [n for n in SAMPLER_OF if not av.ZOO[n].masked])
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

    def fit(method):
        return drawn(rng(6), draws=4, method=method, fingerprint=masks.fingerprint)

    with pytest.raises(av.InputError, match="gibbs is the only exact sampler for this model"):
        av.second_opinion(masks, fit("gibbs"))
    with pytest.raises(av.InputError, match=r"is by .fsklr_savb.\. Exact are gibbs, nuts, mams"):
        av.second_opinion(masks, fit("fsklr_savb"))
