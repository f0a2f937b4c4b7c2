"""The sampler of PFCVM's other kernels: whole sweeps, and the posterior beside two oracles.

Its moves are tested one by one in `test_ard_kernel_steps.py`. Negative controls: a slab that the
acceptance leaves out, a dropped Jacobian, omega drawn before the feature weights move and used
after.
"""

import numpy as np
import pytest
from scipy import stats

from ardvark.inference.samplers.gibbs import ard_kernel_steps
from ardvark.inference.samplers.gibbs.ard_kernel import Sampler
from ardvark.inference.samplers.gibbs.sample_weights import SampleWeights, centred
from tests.inference.batches import batch_mean, largest_t, weighted
from tests.inference.samplers.gibbs.ard_problems import (
    bounded,
    every_prior,
    made,
    posed,
    prior_draws,
)
from tests.inference.samplers.gibbs.runs import FULL, agrees_with_nuts, chains, joint_p, with_counts
from tests.inference.spiral import spiral
from tests.support import ALARM, rng

KERNELS = {
    "rbf": {"kernel": "rbf"},
    "degree-1": {"kernel": "polynomial", "degree": 1},
    "degree-2": {"kernel": "polynomial", "degree": 2},
    "degree-3": {"kernel": "polynomial", "degree": 3},
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def quick(kind=Sampler, **options):
    given = {"exchanges": 3, "walks": 1, "scalings": 1, "sample_scans": 1, "sample_tries": 2}
    return with_counts(kind, **given | options)


# --- the centred steps of the sample weights ------------------------------------------------------


def test_the_rows_of_a_centred_step():
    """A change of a_j at fixed c, in the normal likelihood and the prior of b, by hand."""
    random, eta, Kt = rng(), rng(1).normal(size=7), rng(2).normal(size=(3, 7))
    omega, r, b = random.gamma(2.0, 0.1, 7), random.choice([-0.5, 0.5], 7), 0.4

    def log_density(eta, bias):
        likelihood = r @ eta - 0.5 * omega @ eta**2
        return likelihood + stats.norm.logpdf(bias, 0.0, 0.7)

    rows, W = centred(Kt, omega, 0.7)
    score = np.append(r - omega * eta, -W[-1] * b)
    for j in range(3):
        d = random.normal()
        bias = b - d * (omega @ Kt[j]) / omega.sum()
        moved = eta + d * Kt[j] + bias - b
        want = log_density(moved, bias) - log_density(eta, b)
        assert score @ (d * rows[j]) - 0.5 * W @ (d * rows[j]) ** 2 == pytest.approx(want)
        assert omega @ (moved - eta) == pytest.approx(0.0, abs=1e-12)


class NoBiasPrior(SampleWeights):
    """The prior of the bias left out of the centred steps."""

    def scan(self, state, Kt, random):
        sd, self.bias_sd = self.bias_sd, 1e6
        super().scan(state, Kt, random)
        self.bias_sd = sd


class NoBias(Sampler):
    """The sampler with these steps."""

    def __init__(self, problem):
        super().__init__(problem)
        self.weights = NoBiasPrior(problem, self.weights.pairs, self.weights.tries)


@pytest.mark.statistical
def test_a_bias_without_its_prior_is_caught():
    problem = made("pfcvm", "dense", kernel="rbf", bias_sd=0.3)
    assert joint_p(problem, quick(NoBias), replicates=100, sweeps=12) < ALARM


# --- whole sweeps: the joint test -----------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kernel", "prior", "variant"),
    [
        ("rbf", "sparse", "pfcvm-hierarchical"),
        ("rbf", "dense", "pfcvm"),
        ("degree-1", "dense", "pfcvm-hierarchical"),
        ("degree-3", "sparse", "pfcvm"),
    ],
)
def test_sweeps_leave_the_joint_law(kernel, prior, variant):
    problem = made(variant, prior, **KERNELS[kernel])
    assert joint_p(problem, quick()) > ALARM


@pytest.mark.slow
@pytest.mark.statistical
@every_kernel
@every_prior
@pytest.mark.parametrize("size", [{"D": 12}, {"N": 5, "D": 2, "B": None}], ids=str)
def test_sweeps_leave_the_joint_law_in_full(kernel, prior, size):
    """With D = 12 fewer than half of the weights are visible under the prior."""
    problem = made("pfcvm", prior, **KERNELS[kernel] | size)
    assert joint_p(problem, quick(exchanges=6, scalings=2), **FULL) > ALARM


class NoSlab(Sampler):
    """The slab of the features is not part of their law."""

    def __init__(self, problem):
        super().__init__(problem)
        self.prior = self.prior._replace(slab=np.inf)


class NoJacobian(Sampler):
    """A scale move with a Jacobian of one power too many."""

    def features(self, state, random):
        super().features(state, random)
        columns = self.columns
        for _ in range(6):
            u = random.normal(0.0, 0.7)
            a, inner = self.weights.basis_sign * state.x, self.inner(state.theta)
            new, old = np.empty_like(state.eta), np.empty_like(state.eta)
            none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
            gain = 0.0
            for growth, out, sign in ((np.exp(u), new, 1), (1.0, old, -1)):
                ard_kernel_steps.decide(columns, inner, growth, none, nothing, a, out)
                gain += sign * ard_kernel_steps.log_likelihood(columns.label_sign, out, state.bias)
                gain += sign * ard_kernel_steps.log_group(state.theta, self.prior, growth)
            if np.log(random.random()) < gain:  # D u is missing
                state.theta *= np.exp(u)


class StaleOmega(Sampler):
    """omega drawn given the decision values from before the feature weights moved."""

    def sweep(self, state, random):
        before, right = state.eta.copy(), self.weights.augment
        self.weights.augment = lambda eta, rng: right(before, rng)
        super().sweep(state, random)
        self.weights.augment = right


# where decision values are large omega depends on them most
WIDE = {"feature_rate": 1.0, "sample_rate": 400.0, "sample_shape": 1.5, "active_samples": None}
BROKEN = {
    "slab": (NoSlab, 40, {"feature_shape": 0.5, "feature_rate": 0.3, "feature_slab": 0.4}),
    "jacobian": (NoJacobian, 40, {"D": 8}),
    "order": (StaleOmega, 120, WIDE | {"N": 12, "D": 3, "B": 4}),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sweeps_are_caught(name):
    """150 replicates gave p-values below 1e-99 (slab), 1e-84 (Jacobian) and 1e-17 (order)."""
    kind, replicates, given = BROKEN[name]
    problem = made("pfcvm", "dense", kernel="rbf", **given)
    settings = {"replicates": replicates, "sweeps": 15}
    options = {"sample_scans": 5, "crossing_share": 3.0}
    assert joint_p(problem, quick(kind, **options), **settings) < ALARM
    if kind is StaleOmega:  # the right order, where the wrong one shows
        assert joint_p(problem, quick(**options), **settings) > ALARM


# --- the posterior beside weighted draws of the prior ---------------------------------------------


def twins(**given):
    """Six samples, two centres, and one informative feature twice."""
    x = np.linspace(-1.0, 1.0, 6) + 0.2 * np.cos(7.0 * np.arange(6))
    y = (x > 0).astype(int)
    y[1] = 1
    return posed("pfcvm", "sparse", (np.stack([x, x], axis=1), y), [0, 5], **given)


POSTERIORS = {
    "rbf": {"kernel": "rbf", "active_features": 0.5},
    "degree-2": {"kernel": "polynomial", "degree": 2, "active_features": 0.5},
    "dense": {"kernel": "rbf", "feature_rate": 1.0, "active_samples": "all", "bias_sd": 4.0},
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", POSTERIORS)
def test_the_posterior_is_exact(name):
    problem = twins(**POSTERIORS[name])
    point = prior_draws(problem, rng(1), 60_000)
    truth = weighted(problem, point, bounded(point, problem))
    found = chains(quick(crossing_share=2.0)(problem), 700)
    t, limit = largest_t(batch_mean(bounded(found, problem)), truth)
    assert t < limit


# --- the same posterior as NUTS -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.statistical
@every_kernel
def test_gibbs_and_nuts_agree(kernel):
    problem = posed("pfcvm", "dense", spiral(12, 3), None, **KERNELS[kernel])
    assert agrees_with_nuts(problem, Sampler(problem), lambda point: bounded(point, problem))
