"""Small problems of PFCVM and RFVM, and exact draws of their posteriors."""

import numpy as np
import pytest
from scipy import special

import ardvark as av
from ardvark.models.parts import ard
from tests.support import rng

SPARSE = {"active_features": 1.0, "active_samples": 1.5}
DENSE = {"active_features": "all", "active_samples": "all"}
VARIANTS = {
    "pfcvm": ("pfcvm", {}),
    "pfcvm-hierarchical": ("pfcvm", {"parametrization": "hierarchical"}),
    "rfvm-none": ("rfvm", {"latent_noise": "none"}),
    "rfvm-explicit": ("rfvm", {"latent_noise": "explicit"}),
    "rfvm-integrated": ("rfvm", {"latent_noise": "integrated", "parametrization": "marginal"}),
}
every_variant = pytest.mark.parametrize("variant", VARIANTS)
every_prior = pytest.mark.parametrize("prior", ["sparse", "dense"])


def posed(variant, prior, data, basis, **given):
    """A problem of a variant; hyperparameters that are given stand in place of the prior's."""
    model, form = VARIANTS[variant]
    settings = (SPARSE if prior == "sparse" else DENSE) | form
    if "feature_rate" in given:
        del settings["active_features"]
    return av.problem(model, data, basis=basis, **settings | given)


def made(variant="pfcvm", prior="sparse", *, N=7, D=4, B=3, **given):
    """A small problem whose likelihood says more than its prior."""
    data = rng().standard_normal((N, D)), np.arange(N) % 2
    return posed(variant, prior, data, None if B is None else np.arange(B), **given)


def log_joint(problem, point, y):
    """Log density with labels y; one point, or a stack of them."""
    return problem.spec.log_joint(point, problem.inputs, y, problem.hypers)


def prior_draws(problem, random, n):
    """Draws of the prior (n, ...), stacked, by the functions that `simulate` is made of."""
    h, D, B = problem.hypers, problem.X.shape[1], len(problem.Z)
    signed = problem.basis_labels is None
    a = ard.draw(random, h.sample_prior, n * B, signed=signed)[1].reshape(n, B)
    point = {
        "feature_weight": ard.draw(random, h.feature_prior, n * D)[1].reshape(n, D),
        "sample_weight": a if signed else a * problem.basis_labels,
        "bias": random.normal(0.0, h.bias_sd, n),
    }
    if getattr(h, "latent_noise", "none") != "none":
        point["tau"] = random.gamma(h.noise_shape, 1.0 / h.noise_rate, n)
    if problem.always:
        size = n, len(problem.always)
        point["covariate_weight"] = random.normal(0.0, h.covariate_sd, size)
    return point | {"eta": problem.decision(point)}


def bounded(point, problem):
    """Bounded functions (..., component) of what every form has."""
    a, theta = point["sample_weight"], point["feature_weight"]
    parts = [
        special.expit(point["eta"]),
        theta / (problem.hypers.feature_prior.scale + theta),
        np.arctan(a / problem.hypers.sample_prior.scale),
        np.arctan(2.0 * theta * (a @ problem.Z)),
        np.arctan(point["bias"])[..., None],
    ]
    if "covariate_weight" in point:
        parts.append(np.arctan(point["covariate_weight"]))
    if "tau" in point:
        parts.append((point["tau"] / (1.0 + point["tau"]))[..., None])
    return np.concatenate(parts, axis=-1)
