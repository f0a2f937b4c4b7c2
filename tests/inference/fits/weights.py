"""Fits made by hand from weights, and what the models' own decision functions say of them."""

import dataclasses

import numpy as np
import xarray as xr

import ardvark as av
from ardvark.inference.fits.datatree import dataset
from ardvark.models import ZOO
from tests.support import rng

KERNELS = [
    (name, {"kernel": k, **degree})
    for name, spec in ZOO.items()
    for k in spec.kernels
    for degree in ([{"degree": 1}, {"degree": 2}] if k == "polynomial" else [{}])
] + [(name, {}) for name, spec in ZOO.items() if not spec.has_basis]
IDS = ["-".join([n, *map(str, s.values())]) for n, s in KERNELS]


def tree_of(problem, kind="mcmc", **arrays):
    """Return a fit that holds these draws (chain, draw, ...)."""
    dims = {"feature_weight": ("feature",), "sample_weight": ("basis",), "beta": ("feature",)}
    posterior = dataset(arrays, dims, problem.coords, draws=True)
    tree = xr.DataTree.from_dict({"/posterior": posterior})
    tree.attrs = {
        "fingerprint": problem.fingerprint,
        "kind": kind,
        "status": "finished",
        "reason": "",
    }
    return tree


def selected(problem, kind="mcmc", **arrays):
    tree = tree_of(problem, kind, **arrays)
    tree["selection"] = xr.DataTree(av.select(problem, tree))
    return tree


def prior_draws(problem, number=0, chains=2, draws=6):
    """The weights of simulated draws, by name, and whatever else the decision reads."""
    random = rng(number)
    points = [problem.simulate(random) for _ in range(chains * draws)]
    names = [n for n in ("feature_weight", "sample_weight", "bias", "beta") if n in points[0]]
    names = [n for n in names if not problem.spec.has_basis or n != "beta"]
    stacked = {n: np.stack([np.asarray(p[n], dtype=float) for p in points]) for n in names}
    return {n: v.reshape(chains, draws, *v.shape[1:]) for n, v in stacked.items()}


def eta_without(problem, arrays, k):
    """Return eta of every draw with feature k at 0, from the model's own decision."""
    name, hypers = problem.spec.name, problem.hypers
    at_zero = arrays["feature_weight"].copy()
    at_zero[..., k] = 0.0
    if problem.spec.fixed and name != "sklr":  # theta is a hyperparameter
        theta = tuple(at_zero[0, 0].tolist())
        other = dataclasses.replace(
            problem, hypers=dataclasses.replace(hypers, feature_scale=theta)
        )
        return other.decision(arrays)
    if name == "sklr":  # FS-SKLR at this mask
        masked = av.problem("fsklr", problem.data, delta=hypers.delta)
        return masked.decision({**arrays, "feature_weight": at_zero})
    if not problem.spec.has_basis:
        beta = arrays["beta"].copy()
        beta[..., k] = 0.0
        return problem.decision({**arrays, "beta": beta})
    return problem.decision({**arrays, "feature_weight": at_zero})
