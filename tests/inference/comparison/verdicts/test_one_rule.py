"""A verdict never says more than the status of its fit, and too few draws are not wrong ones."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference.comparison.verdicts.verdict import verdicts
from ardvark.inference.scoring.distances import measure
from tests.inference.comparison.verdicts.test_verdict import posterior, tree_of
from tests.support import rng, seed, z_limit


def alone(tree):
    return verdicts({"fit": tree}, "fit")["fit"]


# --- a status that is not "finished" --------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("reason", ["bulk ESS of v is 607 (at least 1000)", "told otherwise"])
def test_a_fit_that_has_not_converged_is_never_called_converged(reason):
    """Its own draws are perfect (ESS 4000): the status alone says what was not reached."""
    tree = tree_of(*posterior(1), status="not_converged", reason=reason, method="exact")
    found = alone(tree)
    assert found.level == "with care"
    assert ([r.code for r in found.because], found.longer) == (["longer"], True)
    assert [remedy.action for remedy in found.advice] == ["resume"]
    assert alone(tree_of(*posterior(1), method="exact")).level == "converged"


@pytest.mark.statistical
def test_of_exact_as_many_effective_draws_are_asked_as_it_was_asked_for():
    """About 600 effective draws of 4 x 150: enough for another method, 1000 were asked of exact."""
    few = posterior(1, shape=(4, 150))
    found = alone(tree_of(*few, method="exact"))
    assert found.level == "with care"
    reason = found.because[0]
    assert (reason.numbers["kind"], reason.numbers["least"]) == ("bulk", 1000.0)
    assert 1000.0 not in [r.numbers.get("least") for r in alone(tree_of(*few)).because]


# --- too few draws --------------------------------------------------------------------------------


def autoregressive(number, lag, shape):
    """Return eta and weights as `posterior` does, each an AR(1) of this lag-one correlation."""
    from scipy import signal

    eta, weight = posterior(number, shape=shape)
    out = []
    for x in (eta, weight):
        centre = x.mean(axis=(0, 1))
        noise = rng(number + 50).normal(size=x.shape) * np.sqrt(1.0 - lag**2)
        noise[:, 0] /= np.sqrt(1.0 - lag**2)
        out.append(centre.round(1) + signal.lfilter([1.0], [1.0, -lag], noise, axis=1))
    return out


@pytest.mark.statistical
def test_too_few_draws_are_told_to_run_longer_and_nothing_else():
    """An AR(1) of lag 0.9 has 4000 / 19 = 211 effective draws, with a relative sd of a tenth."""
    fit = tree_of(*autoregressive(2, 0.9, (4, 1000)))
    found = alone(fit)
    assert found.level == "with care"
    assert (found.because[0].code, found.longer) == ("ess", True)
    shown = av.compare({"fit": fit})
    text = " ".join(shown.text().split())
    assert f"fit: {found.statement.removesuffix('.')}; try {found.remedies[0]}" in text
    assert text.count(found.remedies[0]) == 1


@pytest.mark.statistical
def test_few_draws_of_an_approximation():
    exact, few = tree_of(*posterior(1)), tree_of(*posterior(2, shape=(1, 300)), "approximation")
    fits = {"exact": exact, "few": few}
    found = verdicts(fits, "exact", measure(fits, "exact"))["few"]
    assert found.words["predictions"] == "rough"
    assert ("not many draws", 300) in [(r.code, r.numbers.get("draws")) for r in found.because]


# --- every variable of a model of one's own -------------------------------------------------------


def own(kind="mcmc", **variables):
    """Return a fit of a `pm.Model` with these draws (chain, draw, ...)."""
    data = {n: (("chain", "draw", *"klm"[: x.ndim - 2]), x) for n, x in variables.items()}
    tree = xr.DataTree.from_dict({"/posterior": xr.Dataset(data)})
    method = {"mcmc": "nuts", "approximation": "advi"}[kind]
    tree.attrs = {"kind": kind, "status": "finished", "reason": "", "method": method}
    return tree


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "defect"),
    [
        *((name, "sd") for name in ("beta", "eta", "feature_weight", "b_raw", "covariate_weight")),
        ("beta", "mean"),
        ("eta", "none"),
    ],
)
def test_a_vector_is_judged_component_by_component(name, defect):
    """As in AR(5): alpha and sigma are right, one of five coefficients is not.

    Of 8000 independent draws a ratio of sds is known to 0.01 and a mean to 0.02 sd.
    """
    draws = [
        {
            "alpha": rng(10 * k).normal(size=(4, 2000)),
            "sigma": rng(10 * k + 1).gamma(9.0, size=(4, 2000)),
            name: rng(10 * k + 2).normal(size=(4, 2000, 5)),
        }
        for k in range(2)
    ]
    if defect == "sd":
        draws[1][name][..., 3] *= 0.23
    elif defect == "mean":
        draws[1][name][..., 3] += 2.0
    fits = {"exact": own(**draws[0]), "advi": own("approximation", **draws[1])}
    found = av.compare(fits, reference="exact").verdict["advi"]
    assert found.level == ("trust" if defect == "none" else "do not use")
    if defect != "none":
        assert found.reasons[0].startswith(f"{name}[3]: ")


@pytest.mark.statistical
def test_a_model_with_a_vector_alone_is_judged():
    """As a mean field has two coefficients: the sds within the other, a tenth of the true ones."""
    r = 0.995
    first, other = rng(1).normal(size=(2, 4, 1000))
    exact = np.stack([first, r * first + np.sqrt(1 - r * r) * other], axis=-1)
    within = np.sqrt(1 - r * r) * rng(2).normal(size=(4, 1000, 2))
    fits = {"exact": own(b=exact), "advi": own("approximation", b=within)}
    found = av.compare(fits, reference="exact").verdict["advi"]
    assert found.level == "do not use"
    assert found.words["parameters"] == "bad"


@pytest.mark.statistical
def test_a_variable_that_happens_to_be_positive_is_not_compared_as_its_log():
    """All draws of the reference are above 4.5, and one of the fit's is below 0.

    Its log would be that of the smallest number, 700 away from the others: 33 times the sd.
    """
    right, other = (4.5 + np.abs(rng(k).normal(size=(4, 1000))) for k in (1, 2))
    other[0, 0] = -0.1
    fits = {"exact": own(mu=right), "laplace": own("approximation", mu=other)}
    assert av.compare(fits, reference="exact").verdict["laplace"].level == "trust"


# --- targets whose moments are known --------------------------------------------------------------


def funnel():
    v = pm.Normal("v", 0.0, 3.0)
    pm.Normal("x", 0.0, pm.math.exp(v / 2.0), shape=9)


def far_modes():
    pm.NormalMixture("v", w=[0.5, 0.5], mu=[-10.0, 10.0], sigma=1.0)


def cauchy():
    pm.Cauchy("v", 0.0, 1.0)


KNOWN = {
    funnel: {0.05: -4.934, 0.5: 0.0, 0.95: 4.934},
    far_modes: {0.05: -11.2816, 0.95: 11.2816},
    cauchy: {0.05: -6.3138, 0.5: 0.0, 0.95: 6.3138},
}
"""Quantiles of v: those of a normal of sd 3; the 10 and 90 % ones of one mode; tan(0.45 pi)."""


@pytest.mark.statistical
@pytest.mark.parametrize("target", KNOWN)
def test_converged_stands_over_nothing_that_is_off_by_more_than_its_noise(target):
    """All chains start in one of two modes with probability 2^-19 (`samplers/gradient/starts.py`).

    The share of draws below a quantile has a Monte Carlo error sqrt(p (1 - p) / ESS); here ESS is
    at least that of the tails that was asked for, 400.
    """
    with pm.Model() as model:
        target()
    settings = {"random_seed": seed(1), "progressbar": False, "limit": 2048}
    found = av.fit(model, "exact", **settings)
    level = av.compare({"exact": found}).verdict["exact"].level
    x = found["posterior"]["v"].values
    off = [
        abs((x <= q).mean() - p) / np.sqrt(p * (1.0 - p) / 400.0) for p, q in KNOWN[target].items()
    ]
    if found.attrs["status"] != "finished":
        assert level != "converged"
    elif level == "converged":
        assert max(off) < z_limit(len(off))
    assert target is not far_modes or level == "do not use"
