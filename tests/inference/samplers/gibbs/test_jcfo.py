"""JCFO's Gibbs sampler: whole sweeps against the prior, and the posterior beside two oracles.

Its steps are tested one by one in `test_jcfo_steps.py` and `test_probit_steps.py`. Negative
controls: a dropped Jacobian, a rate without its root, the wrong side of 0, stale weights.
"""

import numpy as np
import pytest

import ardvark as av
from ardvark.inference.samplers.gibbs import probit_steps as steps
from ardvark.inference.samplers.gibbs.jcfo import Sampler
from tests.inference.batches import batch_mean, largest_t, weighted
from tests.inference.checks.geweke import successive_conditional
from tests.inference.samplers.gibbs.jcfo_problems import KERNELS, every_variant, made
from tests.inference.samplers.gibbs.runs import FULL, agrees_with_nuts, chains, joint_p, with_counts
from tests.inference.spiral import spiral
from tests.support import ALARM, rng, seed


def test_which_step_moves_the_features():
    """Truncated normals need a kernel that is linear in theta, and pay where D >= N."""
    assert Sampler(made(N=4, D=6)).truncated
    assert not Sampler(made(N=7, D=6)).truncated
    assert not Sampler(made("rbf", N=4, D=6)).truncated


# --- whole sweeps: the joint test -----------------------------------------------------------------

SIZES = [{"N": 7, "D": 3}, {"N": 7, "D": 3, "B": 2}, {"N": 4, "D": 6, "B": 3}]


def quick(kind=Sampler, **options):
    return with_counts(kind, **options)


@pytest.mark.statistical
@every_variant
def test_sweeps_leave_the_joint_law(kernel, degree, update):
    problem = made(kernel, degree, **SIZES[0])
    assert joint_p(problem, quick(truncated=update == "truncated")) > ALARM


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("size", SIZES)
@every_variant
def test_sweeps_leave_the_joint_law_in_full(kernel, degree, update, size):
    problem = made(kernel, degree, **size)
    assert joint_p(problem, quick(truncated=update == "truncated"), **FULL) > ALARM


@pytest.mark.slow
@pytest.mark.statistical
def test_successive_conditional_chain():
    """In the marginal form: y given z, of the latent one, would never change."""
    problem = made(form="marginal")
    settings = {"iterations": 40_000, "references": 20_000, "random_seed": seed()}
    assert successive_conditional(problem, Sampler(problem), **settings) > ALARM


class NoJacobian(Sampler):
    """The scale of theta against beta with its power left out."""

    def opposite_scale(self, state, random):
        up, down = self.root2 * state.theta.sum(), self.root1 * np.abs(state.beta[1:]).sum()
        return steps.log_scale(random, 0.5, 0.0, 0.0, up, down, 0.0, 0.0)


class NoRoot(Sampler):
    """gamma in the place of its root, as printed in (24): 1 / tau has mean gamma1 / abs(beta)."""

    def variances(self, state, random):
        steps.draw_variances(random, state.beta / self.root1, self.gamma1, state.tau)
        steps.draw_variances(random, state.theta, self.gamma2, state.rho)


class WrongSide(Sampler):
    """z on the side of 0 that its label does not name."""

    def set_labels(self, y):
        super().set_labels(1 - np.asarray(y))

    def state(self, point):
        return super().state({k: v for k, v in point.items() if k != "z"})


class StaleWeights(Sampler):
    """The weights drawn before the latent values that integrate them out, and not after."""

    def weights(self, state, random):
        z = state.z.copy()
        super().weights(state, random)  # beta belongs to the new z
        P = steps.precision_matrix(state.H * np.sqrt(state.tau))
        state.z[:] = z
        steps.latent_scan(random, P, self.label_sign, 3, state.z)


BROKEN = {
    "jacobian": (NoJacobian, "linear", {"N": 4, "D": 6, "B": 2}),
    "root": (NoRoot, "polynomial", {"N": 7, "D": 3, "gamma1": 0.2}),
    "side": (WrongSide, "rbf", {"N": 7, "D": 3}),
    "order": (StaleWeights, "polynomial", {"N": 7, "D": 3, "gamma1": 0.2}),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sweeps_are_caught(name):
    """100 replicates gave p-values below 1e-19 in each of six seeds."""
    kind, kernel, size = BROKEN[name]
    problem = made(kernel, **size)
    settings = {"replicates": 80, "sweeps": 20}
    # the slice and the elliptical steps draw z anew: beside them this order is right
    exposed = {"elliptical_steps": 0, "truncated": True}
    options = exposed if name == "order" else {}
    assert joint_p(problem, quick(kind, **options), **settings) < ALARM
    if options:  # the right sampler with options that no other test has
        assert joint_p(problem, quick(**options), **settings) > ALARM


# --- the posterior beside weighted draws of the prior ---------------------------------------------


def bounded(point, problem):
    """Bounded functions (..., component) of eta, the weights and their product."""
    a, theta = point["sample_weight"], point["feature_weight"]
    parts = [point["eta"], theta, a, np.asarray(point["bias"])[..., None], theta * (a @ problem.Z)]
    return np.concatenate([np.arctan(2.0 * v) for v in parts], axis=-1)


class NoRootOfFeatures(Sampler):
    """gamma2 in the place of its root: the rate of every theta."""

    def __init__(self, problem):
        super().__init__(problem)
        self.root2 = self.gamma2


def prior_draws(problem, n=60_000):
    """Return n draws of the Laplace and exponential priors: tau, rho and z integrated out."""
    random, h = rng(1), problem.hypers
    B, D = problem.Z.shape
    point = {
        "bias": random.laplace(0.0, h.gamma1**-0.5, n),
        "sample_weight": random.laplace(0.0, h.gamma1**-0.5, (n, B)),
        "feature_weight": random.exponential(h.gamma2**-0.5, (n, D)),
    }
    return point | {"eta": problem.decision(point)}


@pytest.mark.statistical
@pytest.mark.parametrize("kernel", ["polynomial", "rbf"])
def test_the_posterior_is_exact(kernel):
    """The latent form's draws beside the marginal form's density; the control has a wrong prior."""
    settings = {"kernel": kernel, "gamma1": 0.7, "gamma2": 2.5, "parametrization": "latent"}
    problem = av.problem("jcfo", spiral(6, 2), basis=[0, 3, 5], scale="fixed", **settings)
    points = prior_draws(problem)
    truth = weighted(problem, points, bounded(points, problem))
    for kind in (Sampler, NoRootOfFeatures):
        found = chains(kind(problem), 1000)
        t, limit = largest_t(batch_mean(bounded(found, problem)), truth)
        assert (t < limit) == (kind is Sampler), (kind.__name__, t)


# --- the same posterior as NUTS -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("kernel", "degree"), KERNELS[:3] + KERNELS[4:])
def test_gibbs_and_nuts_agree(kernel, degree):
    """NUTS in the marginal form, Gibbs in the latent one."""
    settings = {"kernel": kernel, "degree": degree}
    problem = av.problem("jcfo", spiral(12, 3), scale="fixed", **settings)
    sampler = Sampler(problem)
    assert agrees_with_nuts(problem, sampler, lambda point: bounded(point, problem), draws=4000)
