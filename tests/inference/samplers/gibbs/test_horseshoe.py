"""The horseshoe's Gibbs sampler: sweeps by the joint test, and the posterior beside two oracles.

Its steps are tested one by one in `test_horseshoe_steps.py` and `test_horseshoe_growth.py`.
Negative controls: no slab, a wrong order (a weight not drawn after its local scale, which
integrates it out), another prior of tau, labels that are exchanged, a growth that forgets a
Jacobian, pseudo-samples of other labels.
"""

import numpy as np
import pytest
from scipy import special

import ardvark as av
from ardvark.inference.samplers.gibbs.horseshoe import Sampler
from tests.inference.batches import batch_mean, exactly, largest_t, weighted
from tests.inference.samplers.gibbs.runs import FULL, agrees_with_nuts, chains, joint_p, with_counts
from tests.inference.spiral import spiral
from tests.inference.test_horseshoe_posterior import (
    GIVEN,
    X,
    Y,
    by_quadrature,
    of_one_feature,
    of_several,
    prior_draws,
)
from tests.support import ALARM, rng

every_form = pytest.mark.parametrize("form", ["marginal", "hierarchical"])
FEW = {"rounds": 1, "repeats": 1, "exchange_passes": 1, "exchange_tries": 4}
IN_SAMPLES = {"most_columns": 0}  # the steps of a table with more columns than rows


def made(form="marginal", *, N=7, D=3, **given):
    """A small problem whose likelihood says more than its prior."""
    data = rng().standard_normal((N, D)), np.arange(N) % 2
    return av.problem("horseshoe", data, parametrization=form, **GIVEN | given)


def quick(kind=Sampler, **options):
    return with_counts(kind, **FEW | options)


# --- whole sweeps: the joint test -----------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("form", "size", "options"),
    [
        ("marginal", {}, {}),
        ("marginal", {}, IN_SAMPLES),
        ("hierarchical", {"N": 5, "D": 8}, {"block": 2.0}),
    ],
    ids=["in columns", "all in A", "some in A"],
)
def test_sweeps_leave_the_joint_law(form, size, options):
    assert joint_p(made(form, **size), quick(**options)) > ALARM


@pytest.mark.slow
@pytest.mark.statistical
@every_form
@pytest.mark.parametrize("size", [{}, {"N": 5, "D": 8}], ids=str)
@pytest.mark.parametrize("block", [40.0, 2.0])
@pytest.mark.parametrize("options", [{}, IN_SAMPLES], ids=["in columns", "in samples"])
def test_sweeps_leave_the_joint_law_in_full(form, size, block, options):
    assert joint_p(made(form, **size), quick(block=block, **options), **FULL) > ALARM


def test_which_tables_are_swept_in_columns():
    """Those with at least as many rows as columns, the bias and the covariates among them."""
    assert Sampler(made(N=7, D=6)).tall
    assert not Sampler(made(N=7, D=7)).tall
    assert not Sampler(made(N=400, D=Sampler.most_columns)).tall


class NoSlab(Sampler):
    """The weights drawn as if there were no slab."""

    def weights(self, state, working, random):
        c2, state.c2 = state.c2, 1e6
        super().weights(state, working, random)
        state.c2 = c2


class StaleWeights(Sampler):
    """Local scales drawn with the weights integrated out, which then stay as they were."""

    def weights(self, state, working, random):
        beta, eta = state.beta.copy(), working.eta
        super().weights(state, working, random)
        state.beta, working.eta = beta, eta


class WideTau(Sampler):
    """tau under a prior that is ten times as wide."""

    def scales(self, state, working, random):
        tau_0, self.tau_0 = self.tau_0, 10.0 * self.tau_0
        super().scales(state, working, random)
        self.tau_0 = tau_0


class OtherLabels(Sampler):
    """1 for 0."""

    def set_labels(self, y):
        super().set_labels(1 - np.asarray(y))


class NoJacobian(Sampler):
    """The growth of bias, tau and c2 as if it were a change of weights alone."""

    def growth(self, state, random):
        shape, scale = self.slab
        self.slab = shape + 2.0, scale  # 4 u less
        super().growth(state, random)
        self.slab = shape, scale


class StaleLabels(Sampler):
    """Pseudo-samples that were made for other labels."""

    def in_columns(self, state, random):
        self.r = -self.r
        super().in_columns(state, random)
        self.r = -self.r


BROKEN = {
    "growth": (NoJacobian, 200, {}, {}),
    "columns": (StaleLabels, 100, {}, {}),
    "slab": (NoSlab, 400, {"slab_scale": 0.5}, {}),
    "weights": (StaleWeights, 200, {"D": 8}, {"block": 1.0, "exchange_passes": 0}),
    "tau": (WideTau, 100, {}, {}),
    "labels": (OtherLabels, 100, {}, {}),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sweeps_are_caught(name):
    """In each of four seeds log10 p was below -19; of slab at 200 replicates below -5.7."""
    kind, replicates, size, options = BROKEN[name]
    p = joint_p(made(**size), quick(kind, **options), replicates=replicates, sweeps=12)
    assert p < ALARM


# --- the posterior beside oracles -----------------------------------------------------------------


@pytest.mark.statistical
@every_form
def test_the_posterior_is_that_of_quadrature(form):
    """One feature, separable labels: the weight is integrated out on a grid of its scale."""
    problem = av.problem(
        "horseshoe", (X[:, None], Y), standardize=False, parametrization=form, **GIVEN
    )
    found = chains(quick(rounds=3)(problem), 1200)
    t, limit = largest_t(batch_mean(of_one_feature(found)), exactly(by_quadrature()))
    assert t < limit


@pytest.mark.statistical
@pytest.mark.parametrize("block", [40.0, 1.0])
def test_the_posterior_of_several_features(block):
    """Beside weighted draws of the prior; with a small block, most weights are outside A."""
    problem = av.problem("horseshoe", spiral(12, 3), **GIVEN)
    points = prior_draws(problem)
    truth = weighted(problem, points, of_several(points), enough=5000)
    found = chains(quick(rounds=3, block=block)(problem), 1200)
    t, limit = largest_t(batch_mean(of_several(found)), truth)
    assert t < limit


def bounded(point):
    """Bounded functions (..., component)."""
    scales = [np.asarray(point[name])[..., None] for name in ("bias", "tau", "c2")]
    of_weights = [np.arctan(point["beta"]), point["lambda"] / (1.0 + point["lambda"])]
    parts = [special.expit(point["eta"]), *of_weights, np.arctan(np.concatenate(scales, -1))]
    return np.concatenate(parts, axis=-1)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("size", [(30, 5), (12, 30)], ids=str)
def test_gibbs_and_nuts_agree(size):
    x = rng(2).standard_normal(size)
    problem = av.problem("horseshoe", (x, x[:, 0] + 0.5 * rng(3).standard_normal(size[0]) > 0))
    assert agrees_with_nuts(problem, Sampler(problem), bounded)
