"""The sampler of PFCVM's other kernels: states, whole sweeps, and the posterior beside two oracles.

Its moves are tested one by one in `test_ard_kernel_steps.py`. Negative controls: a slab that the
acceptance leaves out, a dropped Jacobian, omega drawn before the feature weights move and used
after.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from arviz_stats.base import array_stats

import ardvark as av
from ardvark.inference.calibration.joint import joint_test
from ardvark.inference.gibbs import ard, ard_kernel_steps
from ardvark.inference.gibbs.ard_kernel import Options, Sampler
from ardvark.inference.gibbs.sampling import make_sampler
from tests.inference.batches import batch_mean, largest_t
from tests.inference.gibbs.ard_problems import bounded, every_prior, made, posed, prior_draws
from tests.inference.gibbs.runs import assert_points_of_the_problem, chains, weighted, with_options
from tests.inference.spiral import spiral
from tests.support import ALARM, rng, seed

KERNELS = {
    "rbf": {"kernel": "rbf"},
    "degree-1": {"kernel": "polynomial", "degree": 1},
    "degree-2": {"kernel": "polynomial", "degree": 2},
    "degree-3": {"kernel": "polynomial", "degree": 3},
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
FORMS = {"marginal": "pfcvm", "hierarchical": "pfcvm-hierarchical"}


def quick(kind=Sampler, **options):
    given = {"exchanges": 3, "walks": 1, "scalings": 1, "sample_scans": 1, "sample_pairs": 2}
    return with_options(kind, Options, **given | options)


# --- states ---------------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("variant", FORMS.values())
def test_points_are_those_of_the_problem(kernel, variant):
    assert_points_of_the_problem(Sampler(made(variant, **KERNELS[kernel])), rng())


@every_kernel
@pytest.mark.parametrize("B", [3, None])
def test_state_starts_at_a_point(kernel, B):
    problem = made(B=B, **KERNELS[kernel])
    point, sampler = problem.simulate(rng()), Sampler(problem)
    again = sampler.point(sampler.state(point))
    for name in ("bias", "sample_weight", "feature_weight", "w"):
        np.testing.assert_array_equal(again[name], point[name])
    np.testing.assert_allclose(again["eta"], point["eta"], rtol=1e-9)


def test_the_kernel_chooses_the_sampler():
    assert isinstance(make_sampler(made(kernel="linear")), ard.Sampler)
    for settings in KERNELS.values():
        assert isinstance(make_sampler(made(**settings)), Sampler)


def test_equal_seeds_give_equal_draws_in_threads():
    sampler = Sampler(made(N=30, D=40, B=None, kernel="rbf"))

    def chain(c):
        random = rng(100 + c)
        state = sampler.start(random, c)
        for _ in range(5):
            sampler.sweep(state, random)
        return sampler.point(state)["eta"]

    one = [chain(c) for c in range(4)]
    with ThreadPoolExecutor(4) as pool:
        many = list(pool.map(chain, range(4)))
    np.testing.assert_array_equal(one, many)
    assert len({e.tobytes() for e in one}) == 4


# --- whole sweeps: the joint test -----------------------------------------------------------------


@pytest.mark.statistical
@every_kernel
@every_prior
def test_sweeps_leave_the_joint_law(kernel, prior):
    """200 replicates see about 0.5 sd; the slow test has 3000."""
    variant = "pfcvm" if kernel == "degree-2" else "pfcvm-hierarchical"
    found = joint_test(
        made(variant, prior, **KERNELS[kernel]),
        quick(),
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
@every_kernel
@every_prior
@pytest.mark.parametrize("size", [{"D": 12}, {"N": 5, "D": 2, "B": None}], ids=str)
def test_sweeps_leave_the_joint_law_in_full(kernel, prior, size):
    """With D = 12 fewer than half of the weights are visible under the prior."""
    found = joint_test(
        made("pfcvm", prior, **KERNELS[kernel] | size),
        quick(exchanges=6, scalings=2),
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
        self.prior = self.prior._replace(slab=np.inf)


class NoJacobian(Sampler):
    """A scale move with a Jacobian of one power too many."""

    def features(self, state, random):
        super().features(state, random)
        columns = self.columns
        for _ in range(6):
            u = random.normal(0.0, 0.7)
            a, inner = self.weights.sign * state.x, self.inner(state.theta)
            new, old = np.empty_like(state.eta), np.empty_like(state.eta)
            none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
            gain = 0.0
            for growth, out, sign in ((np.exp(u), new, 1), (1.0, old, -1)):
                ard_kernel_steps.decide(columns, inner, growth, none, nothing, a, out)
                gain += sign * ard_kernel_steps.log_likelihood(columns.s, out, state.bias)
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
    "slab": (NoSlab, {"feature_shape": 0.5, "feature_rate": 0.3, "feature_slab": 0.4}),
    "jacobian": (NoJacobian, {"D": 8}),
    "order": (StaleOmega, WIDE | {"N": 12, "D": 3, "B": 4}),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sweeps_are_caught(name):
    """p-values over three seeds: below 1e-99 (slab), 1e-84 (Jacobian) and 1e-17 (order)."""
    kind, given = BROKEN[name]
    problem = made("pfcvm", "dense", kernel="rbf", **given)
    settings = {"replicates": 150, "sweeps": 15, "references": 19, "random_seed": seed()}
    options = {"sample_scans": 5, "crossings": 3.0}
    wrong = joint_test(problem, quick(kind, **options), **settings)
    assert wrong.failed == 0
    assert wrong.p_value < ALARM
    assert joint_test(problem, quick(**options), **settings).p_value > ALARM


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
    point = prior_draws(problem, rng(1), 100_000)
    truth = weighted(problem, point, bounded(point, problem))
    found = chains(quick(crossings=2.0)(problem), 1500)
    t, limit = largest_t(batch_mean(bounded(found, problem)), truth)
    assert t < limit


# --- the same posterior as NUTS -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.statistical
@every_kernel
def test_gibbs_and_nuts_agree(kernel):
    """Dense priors. A mean has an error of at most 1/20 posterior sd: a shift of 0.5 sd is seen."""
    problem = posed("pfcvm", "dense", spiral(12, 3), None, **KERNELS[kernel])
    tree = av.fit(problem, "nuts", random_seed=seed(5), draws=1500, progressbar=False)
    assert tree.attrs["status"] == "finished", tree.attrs["reason"]
    nuts = {str(k): v.values for k, v in tree["posterior"].data_vars.items()}
    found = chains(Sampler(problem), 1500)
    assert set(found) == set(nuts)
    x = bounded(found, problem)
    assert array_stats.ess(x, chain_axis=0, draw_axis=1, method="mean").min() > 400
    t, limit = largest_t(batch_mean(x), batch_mean(bounded(nuts, problem)))
    assert t < limit
