"""The Gibbs sampler of PFCVM and RFVM: states, whole sweeps, and the posterior beside two oracles.

Its steps are tested one by one in `test_ard_steps.py`. Negative controls: a slab that the
acceptance leaves out, a dropped Jacobian, omega drawn from decision values that are no longer
those of the state, latent values drawn with another omega than they were integrated out with.
"""

import copy
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import special, stats

import ardvark as av
from ardvark.inference.calibration.joint import joint_test
from ardvark.inference.gibbs import ard_steps as steps
from ardvark.inference.gibbs.ard import Options, Sampler
from tests.inference.batches import Mean, batch_mean, exactly, largest_t
from tests.inference.gibbs.ard_problems import (
    bounded,
    every_prior,
    every_variant,
    log_joint,
    made,
    posed,
    prior_draws,
)
from tests.inference.spiral import spiral
from tests.support import ALARM, rng, seed

QUICK = dict.fromkeys(("rounds", "feature_scans", "sample_scans"), 1)
QUICK |= {"feature_pairs": 4, "sample_pairs": 2}


def with_options(kind=Sampler, **options):
    """A class of samplers with these options; by default a sweep is short."""

    class Made(kind):
        def __init__(self, problem):
            super().__init__(problem, Options(**QUICK | options))

    return Made


# --- states ---------------------------------------------------------------------------------------


@every_variant
@pytest.mark.parametrize("form", ["marginal", "hierarchical"])
def test_points_are_those_of_the_problem(variant, form):
    problem = made(variant, parametrization=form)
    sampler, random = Sampler(problem), rng()
    state = sampler.start(random, 0)
    for _ in range(3):
        sampler.sweep(state, random)
        point = sampler.point(state)
        np.testing.assert_allclose(point["eta"], problem.decision(point), rtol=1e-9, atol=1e-10)
        assert np.isfinite(problem.log_density(point))
    for name, value in problem.to_free(point).items():
        np.testing.assert_array_equal(point[name], value)
    assert set(point) == {v.name for v in problem.model.unobserved_RVs}
    assert all(v.dtype == np.float64 for v in point.values())
    assert sampler.stats(state) == {}
    before = copy.deepcopy(point)
    sampler.sweep(state, random)
    for name, value in point.items():  # copies
        np.testing.assert_array_equal(value, before[name])


@every_variant
def test_state_starts_at_a_point(variant):
    problem = made(variant)
    point = problem.simulate(rng())
    sampler = Sampler(problem)
    sampler.set_labels(point["y"])
    again = sampler.point(sampler.state(point))
    for name in {"bias", "sample_weight", "feature_weight", "tau", "u", "w"} & set(again):
        np.testing.assert_array_equal(again[name], point[name])
    np.testing.assert_allclose(again["eta"], point["eta"], rtol=1e-10)
    # noisy decision values, where absent, are drawn by the first sweep
    state, random = sampler.state({k: v for k, v in point.items() if k != "u"}), rng(1)
    assert np.isnan(state.u).all()
    sampler.sweep(state, random)
    assert np.isfinite(state.u).all() or not sampler.noise
    assert np.isfinite(log_joint(problem, sampler.point(state), point["y"]))


def test_equal_seeds_give_equal_draws_in_threads():
    sampler = Sampler(made("rfvm-explicit", N=30, D=40, B=None))

    def chain(c):
        random = rng(100 + c)
        state = sampler.start(random, c)
        for _ in range(10):
            sampler.sweep(state, random)
        return sampler.point(state)["eta"]

    one = [chain(c) for c in range(4)]
    with ThreadPoolExecutor(4) as pool:
        many = list(pool.map(chain, range(4)))
    np.testing.assert_array_equal(one, many)
    assert len({e.tobytes() for e in one}) == 4


def test_fat_data_need_a_few_copies_of_it():
    """D x D would be 288 MB."""
    problem, random = made("rfvm-explicit", N=40, D=6000, B=None), rng()
    sampler = Sampler(problem, Options(rounds=1))
    sampler.sweep(sampler.start(random, 0), random)  # compiled code is no copy of X
    tracemalloc.start()
    sampler = Sampler(problem, Options(rounds=1))
    state = sampler.start(random, 0)
    sampler.sweep(state, random)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(state.eta).all()
    assert peak < 100e6


# --- whole sweeps: the joint test -----------------------------------------------------------------


@pytest.mark.statistical
@every_variant
@every_prior
def test_sweeps_leave_the_joint_law(variant, prior):
    """200 replicates see about 0.5 sd; the slow test has 3000."""
    found = joint_test(
        made(variant, prior),
        with_options(rounds=2, feature_scans=2),
        replicates=200,
        sweeps=4,
        references=19,
        basis_labels="fixed",
        random_seed=seed(),
    )
    assert found.failed == 0
    assert found.p_value > ALARM, found.table.head()


@pytest.mark.slow
@pytest.mark.statistical
@every_variant
@every_prior
@pytest.mark.parametrize("size", [{}, {"N": 5, "D": 2, "B": None}], ids=str)
def test_sweeps_leave_the_joint_law_in_full(variant, prior, size):
    found = joint_test(
        made(variant, prior, **size),
        with_options(rounds=2, feature_scans=2, sample_scans=2),
        replicates=3000,
        sweeps=8,
        references=49,
        random_seed=seed(),
    )
    assert found.failed == 0
    assert found.p_value > ALARM, found.table.head()


class NoSlab(Sampler):
    """The slab of the features is not part of their law."""

    def __init__(self, problem, options):
        super().__init__(problem, options)
        self.feature = self.feature._replace(slab=np.inf)


class Walk(Sampler):
    """The scale by a random walk: a right one, whose Jacobian a subclass leaves out."""

    def power(self, state):
        return len(state.theta) - len(state.x)

    def scale(self, state, random):
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


BROKEN = {
    "slab": (NoSlab, "pfcvm", {"feature_shape": 0.5, "feature_rate": 0.3, "feature_slab": 0.4}),
    "jacobian": (NoJacobian, "rfvm-none", {"D": 8, "B": 2}),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sweeps_are_caught(name):
    """200 replicates gave p-values of 1e-110 (slab) and 1e-40 (Jacobian), in three seeds alike."""
    kind, variant, given = BROKEN[name]
    problem = made(variant, "dense", **given)
    settings = {"replicates": 120, "sweeps": 15, "references": 19, "random_seed": seed()}
    wrong = joint_test(problem, with_options(kind), **settings)
    assert wrong.failed == 0
    assert wrong.p_value < ALARM
    if kind is NoJacobian:
        assert joint_test(problem, with_options(Walk), **settings).p_value > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("half", ["features", "samples"])
def test_noise_is_drawn_anew_wherever_it_was_integrated_out(half):
    """From draws of the joint law, (u - eta) tau^(1/2) is standard normal after each half too."""
    problem, random = made("rfvm-explicit", "dense"), rng(5)
    sampler, found = with_options()(problem), []
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


def weighted(problem, n=100_000):
    """The posterior's Mean of `bounded` by importance sampling from the prior."""
    point = prior_draws(problem, rng(1), n)
    weight = special.softmax(problem.log_likelihood(point, point["eta"]).sum(-1))
    assert 1.0 / (weight**2).sum() > 3000  # 7000 and more
    f = bounded(point, problem)
    value = weight @ f
    return Mean(value, np.sqrt((weight**2) @ (f - value) ** 2), np.inf)


def chains(problem, kind, draws, tune=50, number=50, **options):
    """Points (chain, draw, ...) of four chains."""
    sampler, found = with_options(kind, **options)(problem), []
    for c in range(4):
        random = rng(number + c)
        state = sampler.start(random, c)
        points = []
        for sweep in range(tune + draws):
            sampler.sweep(state, random)
            if sweep >= tune:
                points.append(sampler.point(state))
        found.append({k: np.stack([p[k] for p in points]) for k in points[0]})
    return {k: np.stack([f[k] for f in found]) for k in found[0]}


class StaleOmega(Sampler):
    """omega drawn given the decision values of the pass before."""

    def augment(self, state, random):
        now, state.eta = state.eta, getattr(state, "before", state.eta)
        working = super().augment(state, random)
        state.before = state.eta = now
        working.score = 0.5 * self.s - working.W * now
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

    Over three seeds the largest t was 61 to 67 (noise) and 19 to 27 (omega); the limit is 6.3.
    """
    variant, prior, given, broken = POSTERIORS[name]
    problem = twins(variant, prior, **given)
    truth = weighted(problem)
    found = chains(problem, Sampler, 1500)
    t, limit = largest_t(batch_mean(bounded(found, problem)), truth)
    assert t < limit
    if broken is not None:
        wrong = chains(problem, broken, 4000 if name == "omega" else 500)
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
        super().set_labels(y, np.ones_like(self.sign))


CASES = [pytest.param(variant, marks=pytest.mark.slow) for variant in ("pfcvm", "rfvm-explicit")]


@pytest.mark.statistical
@pytest.mark.parametrize("variant", CASES)
def test_gibbs_and_nuts_agree(variant):
    """Dense priors. A mean has an error of at most 1/20 posterior sd: a shift of 0.5 sd is seen.

    The control's largest t was 190. Weighted draws of the prior, above, are the sharper oracle.
    """
    problem = posed(variant, "dense", spiral(12, 3), None)
    tree = av.fit(problem, "nuts", random_seed=seed(5), draws=1500, progressbar=False)
    assert tree.attrs["status"] == "finished", tree.attrs["reason"]
    nuts = {str(k): v.values for k, v in tree["posterior"].data_vars.items()}
    kinds = (Sampler, NoSign) if variant == "pfcvm" else (Sampler,)
    for kind in kinds:
        found = chains(problem, kind, 1500, sample_scans=3)
        assert set(found) == set(nuts)
        x = bounded(found, problem)
        assert array_stats.ess(x, chain_axis=0, draw_axis=1, method="mean").min() > 400
        t, limit = largest_t(batch_mean(x), batch_mean(bounded(nuts, problem)))
        assert (t < limit) == (kind is Sampler)
