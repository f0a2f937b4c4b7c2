"""The Gibbs sampler of sparse probit: sweeps, and the posterior beside two oracles.

Its steps are tested one by one in `test_probit_steps.py` and `test_probit_columns.py`. Negative
controls: gamma in the place of its root, the wrong side of 0, a scale move without its Jacobian,
latent values of other weights, products of another table.
"""

import numpy as np
import pytest

import ardvark as av
from ardvark.inference.samplers.gibbs import probit_steps as steps
from ardvark.inference.samplers.gibbs.sparse_probit import Sampler
from tests.inference.batches import batch_mean, largest_t, weighted
from tests.inference.samplers.gibbs.runs import FULL, agrees_with_nuts, chains, joint_p, with_counts
from tests.inference.spiral import spiral
from tests.support import ALARM, rng

every_form = pytest.mark.parametrize("form", ["marginal", "hierarchical"])


def made(form="hierarchical", *, N=7, D=3, **given):
    """A small problem whose likelihood says more than its prior, at a fixed scale."""
    data = rng().standard_normal((N, D)), np.arange(N) % 2
    given = {"gamma1": 0.7, "scale": "fixed"} | given
    return av.problem("sparse_probit", data, parametrization=form, **given)


def quick(kind=Sampler, **options):
    return with_counts(kind, **options)


def test_latent_values_are_drawn_on_their_sides():
    problem = made()
    point, sampler, random = problem.simulate(rng()), Sampler(problem), rng(1)
    state = sampler.state(point)
    sampler.set_labels(point["y"])
    sampler.sweep(state, random)
    np.testing.assert_array_equal(state.z > 0.0, point["y"] == 1)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("form", "size", "elliptical", "columns"),
    [
        ("hierarchical", {}, 0, True),
        ("marginal", {"scale": "learned"}, 0, True),
        ("marginal", {}, 2, False),
        ("hierarchical", {"N": 4, "D": 6}, 2, True),
        ("marginal", {"N": 4, "D": 6}, 0, True),
    ],
)
def test_sweeps_leave_the_joint_law(form, size, elliptical, columns):
    kind = quick(elliptical_steps=elliptical, latent_scans=1, columns=columns)
    assert joint_p(made(form, **size), kind) > ALARM


@pytest.mark.slow
@pytest.mark.statistical
@every_form
@pytest.mark.parametrize("size", [{}, {"N": 4, "D": 6}], ids=str)
def test_sweeps_leave_the_joint_law_in_full(form, size):
    assert joint_p(made(form, **size), quick(), **FULL) > ALARM


class NoRoot(Sampler):
    """gamma in the place of its root."""

    def variances(self, state, random):
        steps.draw_variances(random, state.beta / self.gamma**0.5, self.gamma, state.tau)


class WrongSide(Sampler):
    """z on the side of 0 that its label does not name."""

    def set_labels(self, y):
        super().set_labels(1 - np.asarray(y))


class NoJacobian(Sampler):
    """The scale move without its power."""

    def scale(self, state, random):
        error = state.z - state.eta
        size = self.gamma**0.5 * np.abs(state.beta).sum()
        u = steps.log_scale(random, 0.5, 0.0, 0.5 * (error @ error), size, 0.0, 0.0, 0.0)
        for array in (state.beta, state.z, state.eta):
            array *= np.exp(u)


class OtherTable(Sampler):
    """H'H of columns that are twice as large."""

    def gram(self, H):
        return 4.0 * super().gram(H)


class StaleWeights(Sampler):
    """The weights drawn before the latent values that integrate them out, and not after."""

    def weights(self, state, random):
        z = state.z.copy()
        super().weights(state, random)  # beta belongs to the new z
        P = steps.precision_matrix(self.H * np.sqrt(state.tau))
        state.z[:] = z
        steps.latent_scan(random, P, self.label_sign, 3, state.z)


BROKEN = {
    "root": (NoRoot, {"gamma1": 0.2}),
    "side": (WrongSide, {}),
    "jacobian": (NoJacobian, {}),
    "order": (StaleWeights, {"gamma1": 0.2}),
    "table": (OtherTable, {"gamma1": 0.2}),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sweeps_are_caught(name):
    kind, size = BROKEN[name]
    # the elliptical steps draw z anew: beside them this order is right
    options = {"elliptical_steps": 0} if name == "order" else {"elliptical_steps": 1}
    assert joint_p(made(**size), quick(kind, **options), replicates=120, sweeps=12) < ALARM


def bounded(point):
    """Bounded functions (..., component)."""
    bias = np.asarray(point["bias"])[..., None]
    return np.arctan(np.concatenate([point["eta"], point["beta"], bias], axis=-1))


@pytest.mark.statistical
def test_the_posterior_is_exact():
    """Beside weighted draws of the prior; 800 sweeps of four chains."""
    problem, n, random = made(N=6, D=2), 60_000, rng(1)
    scale = problem.hypers.gamma1**-0.5
    point = {"bias": random.laplace(0.0, scale, n), "beta": random.laplace(0.0, scale, (n, 2))}
    point["eta"] = problem.decision(point)
    truth = weighted(problem, point, bounded(point))
    found = chains(Sampler(problem), 800)
    t, limit = largest_t(batch_mean(bounded(found)), truth)
    assert t < limit


@pytest.mark.slow
@pytest.mark.statistical
def test_gibbs_and_nuts_agree():
    problem = av.problem("sparse_probit", spiral(12, 3), scale="fixed")
    assert agrees_with_nuts(problem, Sampler(problem), bounded)
