"""Every step of every Gibbs sampler leaves the joint law of weights and labels: see `step_bench`.

Each step has a control, a wrong one, which the same test must see.
"""

import dataclasses
from functools import cache

import numpy as np
import pytest

from ardvark.inference.samplers.gibbs import ard_steps
from tests.inference.samplers.gibbs.step_bench import FAST, FULL, SHORT, Bench, posed, quick
from tests.support import ALARM, rng

DENSE = {"active_features": "all", "active_samples": "all"}
SPARSE = {"active_features": 1.0, "active_samples": 1.5}
MARGINAL, HIERARCHICAL, LATENT = (
    {"parametrization": p} for p in ("marginal", "hierarchical", "latent")
)
NONE, EXPLICIT, INTEGRATED = ({"latent_noise": n} for n in ("none", "explicit", "integrated"))
FIXED, LEARNED = ({"scale": s} for s in ("fixed", "learned"))
FIT = {"gamma1": 0.7, "gamma2": 1.4}
TOLD = {"mask_probability": "explicit"}
HORSESHOE = {"global_scale": 0.4, "slab_scale": 1.5, "slab_df": 5.0, "bias_sd": 0.8}


def masks(prior, **given):
    return {"xi": 0.3, "mask_prior": prior} | given


def polynomial(degree):
    return {"kernel": "polynomial", "degree": degree}


# the sampler's file, the model, N above or below D, whether there are covariates, and the form
CASES = {
    "pfcvm": ("ard_linear", "pfcvm", "tall", False, DENSE | MARGINAL),
    "pfcvm-sparse": ("ard_linear", "pfcvm", "fat", True, SPARSE | HIERARCHICAL),
    "rfvm-none": ("ard_linear", "rfvm", "fat", False, NONE | DENSE | MARGINAL),
    "rfvm-none-sparse": ("ard_linear", "rfvm", "tall", True, NONE | SPARSE | HIERARCHICAL),
    "rfvm-explicit": ("ard_linear", "rfvm", "tall", True, EXPLICIT | DENSE | HIERARCHICAL),
    "rfvm-explicit-sparse": ("ard_linear", "rfvm", "fat", False, EXPLICIT | SPARSE | MARGINAL),
    "rfvm-integrated": ("ard_linear", "rfvm", "fat", True, INTEGRATED | DENSE | MARGINAL),
    "rfvm-both": ("ard_linear", "rfvm", "tall", False, INTEGRATED | SPARSE | HIERARCHICAL),
    "rbf": ("ard_kernel", "pfcvm", "tall", False, {"kernel": "rbf"} | DENSE | MARGINAL),
    "rbf-sparse": ("ard_kernel", "pfcvm", "fat", True, {"kernel": "rbf"} | SPARSE | HIERARCHICAL),
    "degree-1": ("ard_kernel", "pfcvm", "fat", False, polynomial(1) | SPARSE | HIERARCHICAL),
    "degree-2": ("ard_kernel", "pfcvm", "tall", True, polynomial(2) | DENSE | MARGINAL),
    "degree-3": ("ard_kernel", "pfcvm", "fat", True, polynomial(3) | DENSE | HIERARCHICAL),
    "horseshoe": ("horseshoe", "horseshoe", "tall", False, HORSESHOE | MARGINAL),
    "horseshoe-tall": ("horseshoe", "horseshoe", "tall", True, HORSESHOE | HIERARCHICAL),
    "horseshoe-fat": ("horseshoe", "horseshoe", "fat", True, HORSESHOE | MARGINAL),
    "horseshoe-h": ("horseshoe", "horseshoe", "fat", False, HORSESHOE | HIERARCHICAL),
    "jcfo-linear": ("jcfo", "jcfo", "fat", False, FIT | {"kernel": "linear"} | FIXED | MARGINAL),
    "jcfo-slice": ("jcfo", "jcfo", "tall", True, FIT | {"kernel": "linear"} | LEARNED | LATENT),
    "jcfo-1": ("jcfo", "jcfo", "fat", True, FIT | polynomial(1) | LEARNED | HIERARCHICAL),
    "jcfo-1-slice": ("jcfo", "jcfo", "tall", False, FIT | polynomial(1) | FIXED | LATENT),
    "jcfo-2": ("jcfo", "jcfo", "fat", False, FIT | polynomial(2) | LEARNED | HIERARCHICAL),
    "jcfo-3": ("jcfo", "jcfo", "tall", True, FIT | polynomial(3) | FIXED | MARGINAL),
    "jcfo-rbf": ("jcfo", "jcfo", "tall", False, FIT | {"kernel": "rbf"} | LEARNED | HIERARCHICAL),
    "jcfo-rbf-fat": ("jcfo", "jcfo", "fat", True, FIT | {"kernel": "rbf"} | FIXED | LATENT),
    "probit": ("sparse_probit", "sparse_probit", "tall", False, FIXED | HIERARCHICAL),
    "probit-scale": ("sparse_probit", "sparse_probit", "tall", True, LEARNED | MARGINAL),
    "probit-fat": ("sparse_probit", "sparse_probit", "fat", True, FIXED | MARGINAL),
    "probit-fat-scale": ("sparse_probit", "sparse_probit", "fat", False, LEARNED | HIERARCHICAL),
    "fsklr": ("masks", "fsklr", "tall", True, masks("shared", **TOLD)),
    "fsklr-linear": ("masks", "fsklr", "fat", False, masks("printed", kernel="linear")),
    "fsklr-fat": ("masks", "fsklr", "fat", True, masks("independent", **TOLD)),
    "sklr": ("masks", "sklr", "tall", False, masks("independent")),
    "sklr-fat": ("masks", "sklr", "fat", True, masks("shared")),
    "fs_skr": ("masks", "fs_skr", "tall", False, masks("independent")),
    "fs_skr-linear": ("masks", "fs_skr", "fat", True, masks("shared", kernel="linear")),
}  # fmt: skip

# of each step: the steps that it is made with, and the variable that must move
STEPS = {
    "ard_linear": {
        "features": ("omega features bias decide latent", "feature_weight"),
        "crossings": ("omega crossings bias latent", "feature_weight"),
        "samples": ("products omega samples bias latent", "sample_weight"),
        "bias": ("omega bias latent", "bias"),
        "again": ("again", "tau"),
        "balance": ("balance", "sample_weight"),
        "precisions": ("precisions", None),
    },
    "ard_kernel": {
        "spike": ("begin spike kernel", "feature_weight"),
        "crossings": ("begin crossings kernel", "feature_weight"),
        "exchanges": ("begin exchanges kernel", "feature_weight"),
        "walks": ("begin walks kernel", "feature_weight"),
        "scalings": ("begin scalings kernel", "feature_weight"),
        "samples": ("kernel samples", "sample_weight"),
        "precisions": ("precisions", None),
    },
    "horseshoe": {
        "weights": ("omega weights decide", "lambda"),
        "exchanges": ("omega exchanges decide", "lambda"),
        "scales": ("omega scales decide", "c2"),
        "growth": ("growth", "tau"),
        "finish": ("finish", None),
    },
    "jcfo": {
        "features": ("features variances kernel", "feature_weight"),
        "apart": ("apart variances kernel", "feature_weight"),
        "scale": ("scale variances", "sample_weight"),
        "learn_alone": ("learn_alone variances", "feature_scale"),
        "learn_apart": ("learn_apart variances kernel", "feature_scale"),
        "learn_with_weights": ("learn_with_weights variances kernel", "feature_scale"),
        "variances": ("variances", None),
        "weights": ("weights", "sample_weight"),
        "elliptical": ("elliptical", "sample_weight"),
    },
    "sparse_probit": {
        "scale": ("scale variances", "beta"),
        "learn_alone": ("learn_alone variances", "feature_scale"),
        "learn_with_weights": ("learn_with_weights variances", "feature_scale"),
        "variances": ("variances", None),
        "weights": ("weights", "beta"),
        "elliptical": ("elliptical", "beta"),
    },
    "masks": {
        "features": ("features", "zeta"),
        "samples": ("augment samples coefficients", "z"),
        "collapsed_features": ("augment collapsed_features coefficients", "zeta"),
        "coefficients": ("augment coefficients", "alpha"),
        "probabilities": ("probabilities", None),
    },
}
# draws what other steps have integrated out of a point
LAST = {"ard_linear": ["precisions"], "ard_kernel": ["precisions"], "horseshoe": ["finish"]}
LAST |= {"jcfo": [], "sparse_probit": ["variances"], "masks": ["probabilities"]}


def sampler_of(case):
    """The sampler of a case, with fewer proposals in a step."""
    file, model, size, covariates, settings = CASES[case]
    sampler = quick(posed(model, size, covariates, **settings))
    assert type(sampler).__module__.endswith(file)
    if file == "masks":
        sampler.collapsed_every = 1
    # a star: so few features would all be partners, and a chance for the reverse one no error
    name, D = ("feature_pairs" if file == "ard_linear" else "pairs"), sampler.problem.X.shape[1]
    if file in SHORT:
        partner = np.full((D, D - 1), -1)
        partner[0], partner[1:, 0] = np.arange(1, D), 0
        star = {"partner": partner, "degree": np.array([D - 1] + [1] * (D - 1))}
        setattr(sampler, name, getattr(sampler, name)._replace(**star))
    return sampler


def ends_of(bench, sampler, file, step):
    steps = step if step == "sweep" else STEPS[file][step][0].split()
    return bench.ends(sampler, steps, LAST[file])


@cache
def bench_of(case, replicates):
    """The draws of a case, which its right steps and its wrong ones start from."""
    _, model, size, covariates, settings = CASES[case]
    return Bench(posed(model, size, covariates, **settings), replicates)


def check(case, replicates):
    """Each step, and then whole sweeps."""
    sampler, file = sampler_of(case), CASES[case][0]
    bench, wrong = bench_of(case, replicates), {}
    made = {"sweep": (None, "eta")} | STEPS[file]
    for step in made:
        if step in sampler.left_out:
            continue
        ends, variable = ends_of(bench, sampler, file, step), made[step][1]
        p, error = bench.p_value(ends), bench.error(ends)
        moved = 1.0 if variable is None else bench.moved(ends, variable)
        if not (p > ALARM and error < 1e-9 and moved > 0.2):
            wrong[step] = {"p": p, "error": error, "moved": moved}
    assert not wrong


@pytest.mark.statistical
@pytest.mark.parametrize("case", CASES)
def test_steps_leave_the_joint_law(case):
    check(case, FAST)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("case", CASES)
def test_steps_leave_the_joint_law_in_full(case):
    check(case, FULL)


def test_every_step_is_tested():
    for case, (file, *_) in CASES.items():
        sampler = sampler_of(case)
        made = {s for steps, _ in STEPS[file].values() for s in steps.split()}
        assert made | {"complete", "begin", *LAST[file]} >= set(sampler.STEPS)
        assert set(sampler.order(sampler.start(rng(), 0))) | sampler.left_out == set(sampler.STEPS)


# --- wrong steps ----------------------------------------------------------------------------------


def times(name, factor):
    """A number of the sampler that is wrong by a factor."""
    return lambda sampler: setattr(sampler, name, factor * getattr(sampler, name))


def law(name, **factors):
    """A prior with other parameters."""

    def change(sampler):
        prior = getattr(sampler, name)
        other = {k: f * getattr(prior, k) for k, f in factors.items()}
        setattr(sampler, name, prior._replace(**other))

    return change


def hypers(name, **factors):
    def change(sampler):
        h = getattr(sampler, name)
        other = {k: f * getattr(h, k) for k, f in factors.items()}
        setattr(sampler, name, dataclasses.replace(h, **other))

    return change


def within(step, name, factor):
    """A step that takes a number of the state for another one."""

    def change(sampler):
        right = getattr(sampler, step)

        def wrong(state, random):
            setattr(state, name, factor * getattr(state, name))
            right(state, random)
            setattr(state, name, getattr(state, name) / factor)

        setattr(sampler, step, wrong)

    return change


def other_labels(step):
    """1 for 0."""

    def change(sampler):
        right = getattr(sampler, step)

        def wrong(state, random):
            sampler.label_sign = -sampler.label_sign
            right(state, random)
            sampler.label_sign = -sampler.label_sign

        setattr(sampler, step, wrong)

    return change


def exchanged(sampler):
    """The two groups of weights in each other's place."""

    def balance(state, random):
        one, other = (state.x, sampler.sample), (state.theta, sampler.feature)
        v = ard_steps.scale_move(random, 0.7, *one, *other)
        state.theta *= np.exp(v)
        state.x *= np.exp(-v)

    sampler.balance = balance


def without_prior(sampler):
    """The weights of covariates under another prior."""
    sampler.covariates.prior[-2:] *= 400.0


WRONG = {
    ("pfcvm", "features"): law("feature", rate=16.0),
    ("rfvm-none", "crossings"): law("tail", chance=0.01),
    ("rfvm-explicit", "samples"): law("sample", rate=16.0),
    ("pfcvm", "bias"): times("bias_sd", 0.1),
    ("pfcvm-sparse", "bias"): without_prior,
    ("rfvm-explicit", "again"): hypers("noise", noise_rate=8.0),
    ("rfvm-none", "balance"): exchanged,
    ("pfcvm-sparse", "precisions"): law("sample", rate=4.0),
    ("rbf-sparse", "spike"): law("feature", rate=100.0),
    ("rbf", "crossings"): times("share", 1.9),
    ("degree-1", "exchanges"): law("feature", shape=5.0),
    ("degree-1", "walks"): law("feature", shape=8.0),
    ("degree-1", "scalings"): law("feature", shape=4.0),
    ("degree-2", "samples"): times("bias_sd", 0.1),
    ("rbf-sparse", "samples"): without_prior,
    ("rbf-sparse", "precisions"): law("feature", rate=4.0),
    ("horseshoe-fat", "weights"): within("weights", "tau", 8.0),
    ("horseshoe-h", "exchanges"): within("exchanges", "tau", 8.0),
    ("horseshoe", "scales"): times("tau_0", 12.0),
    ("horseshoe-tall", "growth"): lambda s: setattr(s, "slab", (s.slab[0] + 5.0, s.slab[1])),
    ("horseshoe-h", "finish"): times("tau_0", 0.05),
    ("jcfo-linear", "features"): times("root2", 6.0),
    ("jcfo-rbf", "features"): times("root2", 8.0),
    ("jcfo-linear", "apart"): times("root1", 4.0),
    ("jcfo-2", "scale"): times("root1", 4.0),
    ("jcfo-2", "learn_alone"): times("root2", 4.0),
    ("jcfo-1", "learn_apart"): times("root1", 4.0),
    ("jcfo-slice", "learn_with_weights"): other_labels("learn_with_weights"),
    ("jcfo-1-slice", "variances"): times("gamma1", 4.0),
    ("jcfo-1-slice", "weights"): other_labels("weights"),
    ("jcfo-linear", "elliptical"): other_labels("elliptical"),
    ("probit", "scale"): times("gamma", 16.0),
    ("probit-scale", "learn_alone"): times("gamma", 36.0),
    ("probit-scale", "learn_with_weights"): other_labels("learn_with_weights"),
    ("probit", "variances"): times("gamma", 4.0),
    ("probit-fat", "weights"): other_labels("weights"),
    ("probit-scale", "weights"): other_labels("weights"),
    ("probit-fat-scale", "weights"): within("weights", "scale", 8.0),
    ("probit-fat", "elliptical"): other_labels("elliptical"),
    ("fsklr", "features"): times("odds_zeta", -3.0),
    ("sklr", "samples"): times("odds_z", -3.0),
    ("fs_skr", "collapsed_features"): times("odds_zeta", -3.0),
    ("sklr-fat", "coefficients"): hypers("hypers", xi=9.0),
    ("fsklr-fat", "probabilities"): hypers("hypers", a_z=9.0),
}


@pytest.mark.statistical
@pytest.mark.parametrize(("case", "step"), WRONG, ids=map("-".join, WRONG))
def test_a_wrong_step_is_caught(case, step):
    """Over four seeds each, -log10 of the p-value was 14 at least, where 5.5 is enough."""
    sampler, file = sampler_of(case), CASES[case][0]
    bench = bench_of(case, FAST)
    WRONG[case, step](sampler)
    assert bench.p_value(ends_of(bench, sampler, file, step)) < ALARM


ORDERS = {
    "noise not drawn anew": ("rfvm-explicit", "omega features bias decide"),
    "variances before their scale": ("jcfo-2", "variances learn_alone"),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", ORDERS)
def test_another_order_is_caught(name):
    """What a step has integrated out is used before it is drawn anew; `test_masks` has others."""
    case, steps = ORDERS[name]
    sampler = sampler_of(case)
    bench = bench_of(case, FAST)
    ends = bench.ends(sampler, steps.split(), ["precisions"])
    assert bench.p_value(ends) < ALARM
