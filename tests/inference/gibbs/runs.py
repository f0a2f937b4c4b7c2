"""Runs of a sampler, and the oracle that needs none: weighted draws of the prior."""

import numpy as np
from scipy import special

from tests.inference.batches import Mean
from tests.support import rng


def with_options(kind, options, **given):
    """A class of samplers of a kind with these options."""

    class Made(kind):
        def __init__(self, problem):
            super().__init__(problem, options(**given))

    return Made


def weighted(problem, points, f):
    """The posterior's Mean of f (n, K), by importance sampling from n draws of the prior."""
    weight = special.softmax(problem.log_likelihood(points, points["eta"]).sum(-1))
    assert 1.0 / (weight**2).sum() > 3000
    value = weight @ f
    return Mean(value, np.sqrt((weight**2) @ (f - value) ** 2), np.inf)


def chains(sampler, draws, tune=50, number=50):
    """Points (chain, draw, ...) of four chains."""
    found = []
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


def assert_points_of_the_problem(sampler, random):
    """Sweeps give finite points of the problem's form, as copies."""
    problem = sampler.problem
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
    before = {name: value.copy() for name, value in point.items()}
    sampler.sweep(state, random)
    assert (sampler.point(state)["eta"] != before["eta"]).any()
    for name, value in point.items():
        np.testing.assert_array_equal(value, before[name])
