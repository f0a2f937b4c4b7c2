"""Chains from their own starts, beside oracles: weighted draws of the prior, quadrature, and NUTS.

`test_steps` shows that a step keeps the posterior, not that a chain finds it. Its cases have every
form; here the default run has one of each sampler's file.
"""

import numpy as np
import pytest

import ardvark as av
from ardvark.inference.samplers.gibbs.method import make_sampler
from tests.inference.batches import batch_mean, exactly, largest_t, weighted
from tests.inference.samplers.gibbs.runs import agrees_with_nuts, chains
from tests.inference.samplers.gibbs.step_bench import quick
from tests.inference.spiral import spiral
from tests.inference.test_horseshoe_posterior import GIVEN, X, Y, by_quadrature, of_one_feature
from tests.support import rng

DENSE = {"active_features": "all", "active_samples": "all"}
TWO = {"kernel": "polynomial", "degree": 2}
SPARSE = {"active_features": 1.0, "active_samples": 1.5}
FIT = {"gamma1": 0.7, "gamma2": 2.5}
CASES = {
    "pfcvm": ("pfcvm", SPARSE, 700),
    "rfvm": ("rfvm", DENSE | {"latent_noise": "explicit"}, 700),
    "rbf": ("pfcvm", {"kernel": "rbf", "active_features": 0.5}, 500),
    "degree-2": ("pfcvm", TWO | DENSE, 500),
    "jcfo": ("jcfo", FIT | {"scale": "fixed"}, 800),
    "jcfo-rbf": ("jcfo", FIT | {"kernel": "rbf", "scale": "learned"}, 1000),
    "sparse_probit": ("sparse_probit", {"gamma1": 0.7, "scale": "learned"}, 1000),
    "horseshoe": ("horseshoe", GIVEN, 1000),
}


def once_a_file(cases, *others):
    """The cases; slow are those whose sampler's file has another one here."""
    return [pytest.param(c, marks=[pytest.mark.slow] * (c in others)) for c in cases]


def posed(name):
    """Six samples, and one informative feature twice; `test_steps` has covariates."""
    model, given, _ = CASES[name]
    x = np.linspace(-1.0, 1.0, 6) + 0.2 * np.cos(7.0 * np.arange(6))
    y = (x > 0).astype(int)
    y[1] = 1
    if av.ZOO[model].has_basis:
        given = given | {"basis": [0, 5]}
    return av.problem(model, np.stack([x, x], axis=1), y, **given)


def bounded(point):
    """Bounded functions (..., component) of what every form of the model has."""
    shared = ("eta", "feature_weight", "sample_weight", "beta")
    single = ("bias", "tau", "c2", "feature_scale")
    parts = [np.asarray(point[n]) for n in shared if n in point]
    known = [np.asarray(point[n]) for n in single if n in point]
    parts += [x[..., None] for x in known if x.ndim < np.ndim(point["eta"])]
    return np.arctan(np.concatenate(parts, axis=-1))


@pytest.mark.statistical
@pytest.mark.parametrize("name", once_a_file(CASES, "pfcvm", "degree-2", "jcfo"))
def test_the_posterior_is_that_of_weighted_draws(name):
    problem, random, n = posed(name), rng(1), 12_000
    drawn = [problem.simulate(random) for _ in range(n)]
    points = {k: np.stack([p[k] for p in drawn]) for k in drawn[0] if k != "y"}
    found = chains(quick(problem), CASES[name][2])
    names = points.keys() & found.keys()
    points, found = ({k: x[k] for k in names} for x in (points, found))
    truth = weighted(problem, points, bounded(points), enough=1000)
    t, limit = largest_t(batch_mean(bounded(found)), truth)
    assert t < limit


@pytest.mark.statistical
@pytest.mark.parametrize("form", once_a_file(["marginal", "hierarchical"], "hierarchical"))
def test_the_posterior_is_that_of_quadrature(form):
    """Horseshoe, one feature, separable labels: the weight is integrated out on a grid."""
    problem = av.problem(
        "horseshoe", (X[:, None], Y), standardize=False, parametrization=form, **GIVEN
    )
    found = chains(quick(problem), 1200)
    t, limit = largest_t(batch_mean(of_one_feature(found)), exactly(by_quadrature()))
    assert t < limit


NUTS = {
    "pfcvm": ("pfcvm", DENSE),
    "rbf": ("pfcvm", DENSE | {"kernel": "rbf"}),
    "degree-3": ("pfcvm", DENSE | {"kernel": "polynomial", "degree": 3}),
    "rfvm": ("rfvm", DENSE | {"latent_noise": "explicit"}),
    "jcfo": ("jcfo", {"scale": "fixed"}),
    "jcfo-rbf": ("jcfo", {"kernel": "rbf", "scale": "fixed"}),
    "sparse_probit": ("sparse_probit", {"scale": "fixed"}),
    "horseshoe": ("horseshoe", {}),
}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", NUTS)
def test_gibbs_and_nuts_agree(name):
    model, given = NUTS[name]
    problem = av.problem(model, spiral(12, 3), **given)
    assert agrees_with_nuts(problem, make_sampler(problem), bounded, draws=4000)
