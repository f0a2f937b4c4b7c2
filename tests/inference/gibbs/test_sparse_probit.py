"""The Gibbs sampler of sparse probit: states, sweeps, and the posterior beside two oracles.

Its steps are JCFO's, tested one by one in `test_jcfo_steps.py`. Negative controls: gamma in the
place of its root, the wrong side of 0, a scale move without its Jacobian, latent values that
belong to other weights.
"""

import numpy as np
import pytest
from arviz_stats.base import array_stats

import ardvark as av
from ardvark.inference.calibration.joint import joint_test
from ardvark.inference.gibbs import jcfo_steps as steps
from ardvark.inference.gibbs.sparse_probit import Options, Sampler
from tests.inference.batches import batch_mean, largest_t
from tests.inference.gibbs.runs import assert_points_of_the_problem, chains, weighted, with_options
from tests.inference.spiral import spiral
from tests.support import ALARM, rng, seed

every_form = pytest.mark.parametrize("form", ["marginal", "hierarchical"])


def made(form="hierarchical", *, N=7, D=3, **given):
    """A small problem whose likelihood says more than its prior."""
    data = rng().standard_normal((N, D)), np.arange(N) % 2
    return av.problem("sparse_probit", data, parametrization=form, **{"gamma1": 0.7} | given)


def quick(kind=Sampler, **options):
    return with_options(kind, Options, **options)


@every_form
def test_points_are_those_of_the_problem(form):
    assert_points_of_the_problem(Sampler(made(form)), rng())


@every_form
def test_state_starts_at_a_point(form):
    problem = made(form)
    point, sampler, random = problem.simulate(rng()), Sampler(problem), rng(1)
    state = sampler.state(point)
    again = sampler.point(state)
    for name in {"bias", "beta", "tau", "tau_bias", "eta"} & set(again):
        np.testing.assert_allclose(again[name], point[name], rtol=1e-12)
    # latent values, where absent, are drawn on their sides by the first sweep
    sampler.set_labels(point["y"])
    sampler.sweep(state, random)
    np.testing.assert_array_equal(state.z > 0.0, point["y"] == 1)


@pytest.mark.statistical
@every_form
@pytest.mark.parametrize("size", [{}, {"N": 4, "D": 6}], ids=str)
@pytest.mark.parametrize("elliptical", [0, 2])
def test_sweeps_leave_the_joint_law(form, size, elliptical):
    """200 replicates see about 0.5 sd; the slow test has 3000."""
    kind = quick(elliptical_steps=elliptical, latent_scans=1)
    found = joint_test(
        made(form, **size), kind, replicates=200, sweeps=4, references=19, random_seed=seed()
    )
    assert found.failed == 0
    assert found.p_value > ALARM, found.table.head()


@pytest.mark.slow
@pytest.mark.statistical
@every_form
@pytest.mark.parametrize("size", [{}, {"N": 4, "D": 6}], ids=str)
def test_sweeps_leave_the_joint_law_in_full(form, size):
    found = joint_test(
        made(form, **size), quick(), replicates=3000, sweeps=8, references=49, random_seed=seed()
    )
    assert found.failed == 0
    assert found.p_value > ALARM, found.table.head()


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


class StaleWeights(Sampler):
    """The weights drawn before the latent values that integrate them out, and not after."""

    def weights(self, state, random):
        z = state.z.copy()
        super().weights(state, random)  # beta belongs to the new z
        P = steps.precision_matrix(self.H * np.sqrt(state.tau))
        state.z[:] = z
        steps.latent_scan(random, P, self.sign, 3, state.z)


BROKEN = {
    "root": (NoRoot, {"gamma1": 0.2}),
    "side": (WrongSide, {}),
    "jacobian": (NoJacobian, {}),
    "order": (StaleWeights, {"gamma1": 0.2}),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sweeps_are_caught(name):
    kind, size = BROKEN[name]
    problem = made(**size)
    settings = {"replicates": 150, "sweeps": 20, "references": 19, "random_seed": seed()}
    # the elliptical steps draw z anew: beside them this order is right
    options = {"elliptical_steps": 0} if name == "order" else {}
    wrong = joint_test(problem, quick(kind, **options), **settings)
    assert wrong.failed == 0
    assert wrong.p_value < ALARM


def bounded(point):
    """Bounded functions (..., component)."""
    bias = np.asarray(point["bias"])[..., None]
    return np.arctan(np.concatenate([point["eta"], point["beta"], bias], axis=-1))


@pytest.mark.statistical
def test_the_posterior_is_exact():
    """Beside weighted draws of the prior; 1500 sweeps of four chains."""
    problem, n, random = made(N=6, D=2), 100_000, rng(1)
    scale = problem.hypers.gamma1**-0.5
    point = {"bias": random.laplace(0.0, scale, n), "beta": random.laplace(0.0, scale, (n, 2))}
    point["eta"] = problem.decision(point)
    truth = weighted(problem, point, bounded(point))
    found = chains(Sampler(problem), 1500)
    t, limit = largest_t(batch_mean(bounded(found)), truth)
    assert t < limit


@pytest.mark.slow
@pytest.mark.statistical
def test_gibbs_and_nuts_agree():
    """A mean has an error of at most 1/20 posterior sd: a shift of 0.5 sd is seen."""
    problem = av.problem("sparse_probit", spiral(12, 3))
    tree = av.fit(problem, "nuts", random_seed=seed(5), draws=1500, progressbar=False)
    assert tree.attrs["status"] == "finished", tree.attrs["reason"]
    nuts = {str(k): v.values for k, v in tree["posterior"].data_vars.items()}
    found = chains(Sampler(problem), 1500)
    assert set(found) == set(nuts)
    x = bounded(found)
    assert array_stats.ess(x, chain_axis=0, draw_axis=1, method="mean").min() > 400
    t, limit = largest_t(batch_mean(x), batch_mean(bounded(nuts)))
    assert t < limit
