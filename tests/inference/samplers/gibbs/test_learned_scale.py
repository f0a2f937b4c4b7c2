"""The steps of a learned scale, and whole sweeps of the samplers that have them.

Negative controls: the constant of the prior does not follow the scale, the draw of the spike has no
part in the acceptance, precisions drawn before the scale moves and kept after it.
"""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import ardvark as av
from ardvark.inference.samplers.gibbs import ard_kernel, ard_linear, fixed_kernel
from ardvark.inference.samplers.gibbs import learned_scale as steps
from tests.inference.batches import batch_mean, exactly, largest_t
from tests.inference.checks.toy import sbc
from tests.inference.samplers.gibbs.runs import FULL, agrees_with_nuts, joint_p, with_counts
from tests.inference.spiral import spiral
from tests.support import ALARM, rng, seed

FEW = {"active_features": 1.0, "active_samples": 1.5}
HIERARCHICAL = {"parametrization": "hierarchical"}
NOISELESS = {"latent_noise": "none", "parametrization": "marginal"}
QUICK = {
    ard_linear: {
        "rounds": 2,
        "feature_scans": 1,
        "sample_scans": 1,
        "feature_tries": 4,
        "sample_tries": 2,
    },
    ard_kernel: {"exchanges": 3, "walks": 1, "scalings": 1, "sample_scans": 1, "sample_tries": 2},
    fixed_kernel: {"rounds": 2, "tries": 2},
}
CASES = {
    "pfcvm": ("pfcvm", FEW | HIERARCHICAL, ard_linear),
    "rfvm": ("rfvm", FEW, ard_linear),
    "rfvm-none": (
        "rfvm",
        FEW | {"latent_noise": "none", "parametrization": "marginal"},
        ard_linear,
    ),
    "rbf": ("pfcvm", {"kernel": "rbf"} | HIERARCHICAL, ard_kernel),
    "polynomial": ("pfcvm", {"kernel": "polynomial"}, ard_kernel),
    "pcvm": ("pcvm", {"active_samples": 1.5} | HIERARCHICAL, fixed_kernel),
    "rvm": ("rvm", {"active_samples": 1.5, "kernel": "rbf"}, fixed_kernel),
}
every_case = pytest.mark.parametrize("case", CASES)
SCALES = {"pfcvm": "feature_scale", "rvm": "sample_scale"}
WEIGHTS = {"pfcvm": "feature_weight", "rvm": "sample_weight"}


def made(case, N=7, D=4, B=3, **given):
    """A small problem whose scale is learned."""
    model, settings, _ = CASES[case]
    data = rng().standard_normal((N, D)), np.arange(N) % 2
    return av.problem(model, data, basis=np.arange(B), scale="learned", **settings | given)


def quick(case, kind=None):
    module = CASES[case][2]
    return with_counts(kind or module.Sampler, **QUICK[module])


# --- one step -------------------------------------------------------------------------------------


def log_prior(problem, point):
    """Log density of everything but the labels, with the precisions integrated out."""
    return float(sum(problem.log_prior(point).values()))


def scale_of(problem, case):
    h = problem.hypers
    prior = h.feature_prior if case == "pfcvm" else h.sample_prior
    return steps.LearnedScale(steps.Prior.of(prior, positive=case == "pfcvm"), 5)


@pytest.mark.parametrize("case", SCALES)
def test_the_density_of_a_move_is_the_models(case):
    """Any set S, held by chance or not: the change of log p, the Jacobian, and the chance of S."""
    problem, random = made(case, N=9, D=5, B=5, slab=0.5), rng(3)
    name, weights = SCALES[case], WEIGHTS[case]
    for g in (0.05, 1.0, 40.0):
        point = problem.simulate(random) | {name: np.asarray(g)}
        x, learned = np.abs(point[weights]), scale_of(problem, case)
        phi2 = x**2 / (2.0 * learned.prior.rate * g**2)
        moves = np.array([True, False, True, False, False])

        held = ~moves

        def log_chance(f, cut, held=held):  # of the weights that are held
            return np.log(f / (cut + f))[held].sum() if cut else 0.0

        for cut in (0.0, 3.0):
            ridge = steps.Ridge(g, 5, float(np.sum(x[moves] ** 2)), phi2[held], cut)
            for u in (-1.3, 0.6):
                growth = np.where(moves, math.exp(u), 1.0)
                moved = point | {name: g * np.exp(u), weights: point[weights] * growth}
                exact = log_prior(problem, moved) - log_prior(problem, point) + 3.0 * u
                exact += log_chance(phi2 * np.exp(-2.0 * u), cut) - log_chance(phi2, cut)
                found = steps.log_ridge(u, ridge, learned.prior)
                found -= steps.log_ridge(0.0, ridge, learned.prior)
                assert found == pytest.approx(exact, abs=1e-8)


@pytest.mark.statistical
@pytest.mark.parametrize("slab", ["right", "missing"])
def test_the_scale_alone_has_its_full_conditional(slab):
    """By a grid of the model's own density; without the constant in g another law is drawn."""
    problem, random = made("pfcvm", N=9, D=5, B=5, slab=0.5), rng(4)
    point = problem.simulate(random) | {"feature_weight": np.array([0.01, 0.2, 1e-3, 0.7, 0.4])}
    t = np.linspace(-12.0, 14.0, 2000)
    log_p = [log_prior(problem, point | {"feature_scale": np.exp(v)}) + v for v in t]
    cdf = integrate.cumulative_trapezoid(np.exp(log_p - np.max(log_p)), t, initial=0.0)
    learned, g, found = scale_of(problem, "pfcvm"), 1.0, []
    if slab == "missing":
        learned.prior = learned.prior._replace(slab=np.inf)
    for _ in range(6000):
        g = learned.alone(random, point["feature_weight"], g)
        u = np.interp(np.log(g), t, cdf / cdf[-1])
        found.append([u, abs(2.0 * u - 1.0)])
    x, limit = largest_t(batch_mean(np.array(found)[None], 40), exactly([0.5, 0.5]))
    assert (x < limit) == (slab == "right")


def test_a_fixed_scale_changes_no_step():
    """The thresholds and the prior are the sampler's own, and no random number is drawn."""
    for case in ("pfcvm", "rbf"):
        problem = made(case).with_hypers(scale="fixed")
        sampler = quick(case)(problem)
        state = sampler.start(rng(0), 0)
        assert sampler.learned is None
        assert state.scale == 1.0
        assert "feature_scale" not in sampler.point(state)


# --- whole sweeps: the joint test -----------------------------------------------------------------


@pytest.mark.statistical
@every_case
def test_sweeps_leave_the_joint_law(case):
    assert joint_p(made(case), quick(case), basis_labels="fixed") > ALARM


@pytest.mark.slow
@pytest.mark.statistical
@every_case
def test_sweeps_leave_the_joint_law_in_full(case):
    for size in ({"D": 12}, {"N": 5, "D": 2}):
        assert joint_p(made(case, **size), quick(case), **FULL) > ALARM


class NoConstant(ard_linear.Sampler):
    """The constant of the prior does not follow the scale."""

    def __init__(self, problem):
        super().__init__(problem)
        self.learned.prior = self.learned.prior._replace(slab=np.inf)

    def feature_law(self, state):
        prior, tail, pairs = super().feature_law(state)
        return prior._replace(slab=self.feature.slab), tail, pairs


class NoChance(steps.LearnedScale):
    """Who is held depends on the weights, and the density of the move does not know it."""

    def split(self, random, x, g):
        moves, ridge = super().split(random, x, g)
        return moves, ridge._replace(cut=0.0)


class NoChanceOfS(fixed_kernel.Sampler):
    """The spike moves as if it had been chosen without looking at the weights."""

    def __init__(self, problem):
        super().__init__(problem)
        self.weights.learned = NoChance(self.weights.prior, len(problem.Z))


BROKEN = {"constant": (NoConstant, "pfcvm"), "chance": (NoChanceOfS, "rvm")}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sweeps_are_caught(name):
    """Over three seeds each, p was at most 2e-16 (constant) and 3e-15 (chance)."""
    kind, case = BROKEN[name]
    problem = made(case, slab=0.1, D=8) if name == "constant" else made(case, B=5)
    assert joint_p(problem, quick(case, kind), replicates=150, sweeps=15) < ALARM


class StalePrecisions(ard_linear.Sampler):
    """Precisions are drawn, and then the scale moves."""

    def learn(self, state, random):
        self.precisions(state, random)
        super().learn(state, random)

    def sweep(self, state, random):
        self.precise = False
        super().sweep(state, random)
        self.precise = True


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [ard_linear.Sampler, StalePrecisions])
def test_precisions_are_drawn_with_the_scale_that_is_returned(kind):
    """(g^2 d + theta^2 / 2) beta is exponential given the rest; the joint test misses the order."""
    problem, random = made("pfcvm"), rng(6)
    sampler, found = quick("pfcvm", kind)(problem), []
    for _ in range(300):
        state = sampler.state(problem.simulate(random))
        sampler.sweep(state, random)
        point = sampler.point(state)
        rate = problem.hypers.feature_rate * point["feature_scale"] ** 2
        found.append((rate + 0.5 * point["feature_weight"] ** 2) * point["beta"])
    p = stats.kstest(np.concatenate(found), "expon").pvalue
    assert (p > ALARM) == (kind is ard_linear.Sampler)


# --- the posterior beside NUTS, and simulation-based calibration ----------------------------------


def bounded(problem, case):
    """Bounded functions of the weights, the scale and eta."""
    name = "sample_scale" if case in ("pcvm", "rvm") else "feature_scale"
    h = problem.hypers

    def of(point):
        parts = [np.tanh(0.5 * point["eta"]), np.arctan(point["bias"])[..., None]]
        parts += [np.arctan(np.log(point[name]))[..., None]]
        parts += [np.arctan(point["sample_weight"] / h.sample_prior.scale)]
        if name == "feature_scale":
            theta = point["feature_weight"]
            parts += [theta / (h.feature_prior.scale + theta)]
        return np.concatenate(parts, axis=-1)

    return of


@pytest.mark.slow
@pytest.mark.statistical
@every_case
def test_gibbs_and_nuts_agree(case):
    model, settings, _ = CASES[case]
    data = spiral(12, 3)
    problem = av.problem(model, data, basis=np.arange(4), scale="learned", **settings)
    assert agrees_with_nuts(problem, quick(case)(problem), bounded(problem, case), draws=4000)


@pytest.mark.slow
@pytest.mark.statistical
@every_case
def test_gibbs_is_calibrated(case):
    settings = {"replicates": 200, "tune": 300, "cores": 1, "random_seed": seed()}
    found = sbc(made(case, N=10, B=5), "gibbs", **settings)
    assert found.failed == 0
    assert found.p_value > ALARM, found.table.head()
