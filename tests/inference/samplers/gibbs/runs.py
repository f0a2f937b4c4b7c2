"""Runs of a Gibbs sampler, and what its draws are compared with."""

import numpy as np
from arviz_stats.base import array_stats

import ardvark as av
from tests.inference.batches import batch_mean, largest_t
from tests.support import rng, seed


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


def agrees_with_nuts(problem, sampler, bounded, draws=1500):
    """Whether the sampler's draws and 1500 of NUTS have one mean of `bounded`, of points.

    A mean has an error of at most 1/20 posterior sd: a shift of 0.5 sd is seen.
    """
    tree = av.fit(problem, "nuts", random_seed=seed(5), draws=1500, progressbar=False)
    assert tree.attrs["status"] == "finished", tree.attrs["reason"]
    nuts = {str(k): v.values for k, v in tree["posterior"].data_vars.items()}
    found = chains(sampler, draws, tune=300)
    assert set(found) == set(nuts)
    x = bounded(found)
    assert array_stats.ess(x, chain_axis=0, draw_axis=1, method="mean").min() > 400
    t, limit = largest_t(batch_mean(x), batch_mean(bounded(nuts)))
    return t < limit
