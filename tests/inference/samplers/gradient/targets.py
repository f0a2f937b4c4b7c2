"""Targets with known answers: models whose numbers are data, and densities without a model.

A model is compiled once for all numbers and lengths, a density of NumPy never.
"""

from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from ardvark.inference.target.backend import Job
from tests.support import seed


def normals(mean, sd):
    """Independent normals, and their sum."""
    with pm.Model(coords={"k": range(len(sd))}) as model:
        x = pm.Normal("x", pm.Data("mean", mean, dims="k"), pm.Data("sd", sd, dims="k"), dims="k")
        pm.Deterministic("total", x.sum())
    return model


def cliff():
    """A standard normal that falls off above 1: nearly every trajectory meets the edge.

    A normal is above 1 with probability 0.16, and a step of 0.001 over the edge is an energy error
    of 1000, which is a divergence.
    """
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("edge", -1e6 * pt.maximum(x - 1.0, 0.0))
    return model


def gaussian(mean, covariance):
    """A Gaussian, written out: its normalising constant is part of it."""
    with pm.Model(coords={"k": range(len(mean))}) as model:
        x = pm.Flat("x", dims="k")
        precision = pm.Data("precision", np.linalg.inv(covariance), dims=("k", "k2"))
        off = x - pm.Data("mean", mean, dims="k")
        constant = np.linalg.slogdet(2.0 * np.pi * np.asarray(covariance))[1]
        square = (off[:, None] * precision * off[None, :]).sum()
        pm.Potential("g", -0.5 * (square + pm.Data("constant", constant)))
    return model


def gamma(shape=4.0, rate=2.0):
    """One Gamma variable, whose unconstrained vector is its logarithm."""
    with pm.Model() as model:
        pm.Gamma("x", pm.Data("shape", shape), pm.Data("rate", rate))
    return model


class Known:
    """What an approximation asks of a `Density`, by a NumPy function of x (P,): value and slope."""

    def __init__(self, value_and_slope, start):
        self.logp_grad, self.start = value_and_slope, np.asarray(start, dtype=float)
        self.size, self.names = len(self.start), ["x"]
        self.bounded = np.ones(self.size, dtype=bool)

    def logp(self, x):
        return np.array([self.logp_grad(row)[0] for row in x])

    def shapes(self, names):
        return dict.fromkeys(names, (self.size,))

    def constrain(self, x, keep=None):
        return {"x": np.array(x)}

    def label(self, i):
        return f"x[{i}]"


def known_gaussian(mean, covariance, start=None):
    """The density of a Gaussian, with its constant."""
    precision = np.linalg.inv(covariance)
    constant = 0.5 * np.linalg.slogdet(2.0 * np.pi * np.asarray(covariance))[1]

    def value_and_slope(x):
        slope = precision @ (mean - x)
        return 0.5 * (slope @ (x - mean)) - constant, slope

    return Known(value_and_slope, np.zeros(len(mean)) if start is None else start)


def approximate(method, density, *, draws=1000, chains=4, number=1, **options):
    """Return the `Result` of `advi` or `laplace` on a density without a model."""
    target = SimpleNamespace(density=density, problem=None, compile_density=lambda: 0.0)
    job = Job(draws=draws, chains=chains, seed=seed(number))
    return method.fit(target, method.Options(**options), job)
