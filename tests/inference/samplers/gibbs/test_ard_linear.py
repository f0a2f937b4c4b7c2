"""The Gibbs sampler of PFCVM and RFVM: whole sweeps, and the posterior beside two oracles.

Its steps are tested one by one in `test_ard_steps.py`. Negative controls: a slab that the
acceptance leaves out, a dropped Jacobian, omega drawn from decision values that are no longer
those of the state, latent values drawn with another omega than they were integrated out with.
"""

import numpy as np
import pytest
from scipy import stats

from ardvark.inference.samplers.gibbs import ard_steps as steps
from ardvark.inference.samplers.gibbs.ard_linear import Sampler
from tests.inference.batches import batch_mean, exactly, largest_t, weighted
from tests.inference.samplers.gibbs.ard_problems import (
    VARIANTS,
    bounded,
    every_prior,
    every_variant,
    made,
    posed,
    prior_draws,
)
from tests.inference.samplers.gibbs.runs import FULL, agrees_with_nuts, chains, joint_p, with_counts
from tests.inference.spiral import spiral
from tests.support import ALARM, rng

QUICK = dict.fromkeys(("rounds", "feature_scans", "sample_scans"), 1)
QUICK |= {"feature_tries": 4, "sample_tries": 2}


def quick(kind=Sampler, **options):
    """A class of samplers whose sweep is short."""
    return with_counts(kind, **QUICK | options)


# --- whole sweeps: the joint test -----------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("variant", "prior"),
    [*zip(VARIANTS, ("sparse", "dense", "dense", "sparse", "dense"), strict=True)],
)
def test_sweeps_leave_the_joint_law(variant, prior):
    kind = quick(rounds=2, feature_scans=2)
    assert joint_p(made(variant, prior), kind) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("variant", ["pfcvm", "rfvm-explicit"])
def test_sweeps_in_samples_leave_the_joint_law(variant):
    """The steps of a table with more columns than rows; those above are in columns."""
    assert made(variant).X.shape == (7, 4)
    assert quick()(made(variant)).tall
    kind = quick(rounds=2, feature_scans=2, most_columns=0)
    assert joint_p(made(variant, "sparse"), kind) > ALARM


@pytest.mark.slow
@pytest.mark.statistical
@every_variant
@every_prior
@pytest.mark.parametrize("columns", [128, 0])
@pytest.mark.parametrize("size", [{}, {"N": 5, "D": 2, "B": None}], ids=str)
def test_sweeps_leave_the_joint_law_in_full(variant, prior, columns, size):
    kind = quick(rounds=2, feature_scans=2, sample_scans=2, most_columns=columns)
    assert joint_p(made(variant, prior, **size), kind, **FULL) > ALARM


class NoSlab(Sampler):
    """The slab of the features is not part of their law."""

    def __init__(self, problem):
        super().__init__(problem)
        self.feature = self.feature._replace(slab=np.inf)


class Walk(Sampler):
    """The scale by a random walk: a right one, whose Jacobian a subclass leaves out."""

    def power(self, state):
        return len(state.theta) - len(state.x)

    def balance(self, state, random):
        for _ in range(3):
            t = random.normal(0.0, 0.7)
            gain = self.power(state) * t
            for x, prior, sign in ((state.theta, self.feature, 1), (state.x, self.sample, -1)):
                gain += steps.log_group(x, prior, np.exp(sign * t))
                gain -= steps.log_group(x, prior, 1.0)
            if np.log(random.random()) < gain:
                state.theta *= np.exp(t)
                state.x *= np.exp(-t)


class NoJacobian(Walk):
    """The scale moves without their Jacobian."""

    def power(self, state):
        return 0


class StaleFactor(Sampler):
    """Pseudo-samples that were made for the other labels."""

    def in_columns(self, state, working):
        rows, W, score = super().in_columns(state, working)
        return rows, W, -score


BROKEN = {
    "columns": (StaleFactor, "pfcvm", {"feature_shape": 0.5, "feature_rate": 0.3}),
    "slab": (NoSlab, "pfcvm", {"feature_shape": 0.5, "feature_rate": 0.3, "feature_slab": 0.4}),
    "jacobian": (NoJacobian, "rfvm-none", {"D": 8, "B": 2}),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sweeps_are_caught(name):
    """200 replicates gave p-values of 1e-110 (slab) and 1e-40 (Jacobian), in three seeds alike."""
    kind, variant, given = BROKEN[name]
    problem = made(variant, "dense", **given)
    settings = {"replicates": 100 if kind is NoJacobian else 50, "sweeps": 15}
    assert joint_p(problem, quick(kind), **settings) < ALARM
    if kind is NoJacobian:
        assert joint_p(problem, quick(Walk), **settings) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("half", ["features", "samples"])
def test_noise_is_drawn_anew_wherever_it_was_integrated_out(half):
    """From draws of the joint law, (u - eta) tau^(1/2) is standard normal after each half too."""
    problem, random = made("rfvm-explicit", "dense"), rng(5)
    sampler, found = quick()(problem), []
    for _ in range(300):
        point = problem.simulate(random)
        sampler.set_labels(point["y"])
        state = sampler.state(point)
        if half == "features":
            sampler.features(state, random, every=True)
        else:
            sampler.samples(state, random, sampler.products(state))
        found.append((state.u - state.eta) * np.sqrt(state.tau))
    assert stats.kstest(np.concatenate(found), stats.norm.cdf).pvalue > ALARM


# --- the posterior beside weighted draws of the prior ---------------------------------------------


def twins(variant, prior, **given):
    """Six samples, two centres, and one informative feature twice."""
    x = np.linspace(-1.0, 1.0, 6) + 0.2 * np.cos(7.0 * np.arange(6))
    y = (x > 0).astype(int)
    y[1] = 1
    return posed(variant, prior, (np.stack([x, x], axis=1), y), [0, 5], **given)


class StaleOmega(Sampler):
    """omega drawn given the decision values of the pass before."""

    def augment(self, state, random):
        now, state.eta = state.eta, getattr(state, "before", state.eta)
        working = super().augment(state, random)
        state.before = state.eta = now
        working.score = 0.5 * self.label_sign - working.W * now
        return working


class StaleNoise(Sampler):
    """tau drawn given the u that was integrated out, before it is drawn anew."""

    def latent(self, state, working, random):
        u = state.u
        super().latent(state, working, random)
        h = self.problem.hypers
        rate = h.noise_rate + 0.5 * np.sum((u - state.eta) ** 2)
        state.tau = float(random.gamma(h.noise_shape + 0.5 * len(u), 1.0 / rate))


# where decision values are large omega depends on them most
WIDE = {"bias_sd": 8.0, "feature_rate": 3.0}
POSTERIORS = {
    "pfcvm": ("pfcvm", "sparse", {}, None),
    "rfvm": ("rfvm-explicit", "sparse", {}, None),
    "omega": ("rfvm-none", "dense", WIDE, StaleOmega),
    "noise": ("rfvm-explicit", "dense", WIDE, StaleNoise),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", POSTERIORS)
def test_the_posterior_is_exact(name):
    """No component is off, and with broken steps one is.

    Over three seeds the largest t was 61 to 67 (noise, 500 draws) and 19 to 27 (omega, 4000 draws);
    the limit is 6.3.
    """
    variant, prior, given, broken = POSTERIORS[name]
    problem = twins(variant, prior, **given)
    points = prior_draws(problem, rng(1), 60_000)
    truth = weighted(problem, points, bounded(points, problem))
    found = chains(quick()(problem), 800)
    t, limit = largest_t(batch_mean(bounded(found, problem)), truth)
    assert t < limit
    if broken is not None:
        wrong = chains(quick(broken)(problem), 2500 if name == "omega" else 200)
        t, limit = largest_t(batch_mean(bounded(wrong, problem)), truth)
        assert t > limit
        return
    # the two copies of the feature are visible equally often, and mostly one at a time
    theta = found["feature_weight"]
    visible = theta > 4.0 * problem.hypers.feature_prior.scale
    difference = visible[..., :1].astype(float) - visible[..., 1:]
    t, limit = largest_t(batch_mean(difference), exactly(0.0))
    assert t < limit
    assert 0.05 < visible[..., 0].mean() < 0.95


# --- the same posterior as NUTS -------------------------------------------------------------------


class NoSign(Sampler):
    """PFCVM without its labels in the basis."""

    def set_labels(self, y, basis_labels=None):
        super().set_labels(y, np.ones_like(self.basis_sign))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("variant", "kind"), [("pfcvm", Sampler), ("pfcvm", NoSign), ("rfvm-explicit", Sampler)]
)
def test_gibbs_and_nuts_agree(variant, kind):
    """Dense priors. The control's largest t was 190.

    Weighted draws of the prior, above, are the sharper oracle.
    """
    problem = posed(variant, "dense", spiral(12, 3), None)
    sampler = quick(kind, sample_scans=3)(problem)
    found = agrees_with_nuts(problem, sampler, lambda point: bounded(point, problem))
    assert found == (kind is Sampler)
