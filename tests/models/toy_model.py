"""Toy, a logistic regression with normal weights: the smallest file that is a model.

Nobody (2000), "A toy", arXiv 0000.00000.

The generative model
--------------------
X (N, D) inputs, y (N,) in {0, 1}::

    beta_k  ~ Normal(0, weight_sd)           weight, `beta`                                 (D,)
    eta_i   = x_i'beta                       decision value, `eta`                          (N,)
    y_i     ~ Bernoulli(sigmoid(eta_i))      label                                          (N,)

Departures from the paper
-------------------------
- There is no paper.

Known difficulties
------------------
- None.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import special, stats

from ardvark.common.declared import hyper
from ardvark.models.parts.distributions import log_predictive as log_predictive
from ardvark.models.parts.distributions import logistic_logp
from ardvark.models.spec import BaseHypers, Coords, Inputs, ModelCard, Point


@dataclass(frozen=True, kw_only=True)
class Hypers(BaseHypers):
    """Hyperparameters of the toy."""

    weight_sd: float = hyper(
        None, "prior standard deviation of a weight", above=0.0, paper="-", why="filled: D^-1/2"
    )

    def fill(self, N: int, B: int, D: int) -> Self:
        """Return a copy with weight_sd from D."""
        return self if self.weight_sd is not None else replace(self, weight_sd=D**-0.5)


def build(inputs: Inputs, y: np.ndarray, h: Hypers, coords: Coords) -> pm.Model:
    """Return the PyMC model."""
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", inputs.X, dims=("obs", "feature"))
        label = pm.Data("label", y, dims="obs")
        beta = pm.Normal("beta", 0.0, pm.Data("weight_sd", h.weight_sd), dims="feature")
        pm.Deterministic("feature_weight", pt.abs(beta), dims="feature")
        eta = pm.Deterministic("eta", x @ beta, dims="obs")
        pm.Bernoulli("y", logit_p=eta, observed=label, dims="obs")
    return model


def decision(point: Point, inputs: Inputs, h: Hypers) -> np.ndarray:
    """Return eta (..., N)."""
    return point["beta"] @ inputs.X.T


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, h: Hypers) -> np.ndarray:
    """Return log p(y, beta | X)."""
    eta = decision(point, inputs, h)
    prior = stats.norm.logpdf(point["beta"], 0.0, h.weight_sd).sum(-1)
    return prior + logistic_logp(y, eta).sum(-1)


def log_jacobian(point: Point, h: Hypers) -> np.ndarray:
    """Return 0: beta is not transformed."""
    return np.zeros(np.shape(point["beta"])[:-1])


def to_free(point: Point, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return beta."""
    return {"beta": point["beta"]}


def simulate(rng: np.random.Generator, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return one ancestral draw."""
    beta = rng.normal(0.0, h.weight_sd, inputs.D)
    point = {"beta": beta, "feature_weight": np.abs(beta)}
    eta = decision(point, inputs, h)
    return point | {"eta": eta, "y": rng.binomial(1, special.expit(eta))}


CARD = ModelCard(
    name="toy",
    title="Toy",
    citation="Nobody (2000)",
    year=2000,
    link="logistic",
    priors="normal weights of the features",
    paper_method="",
    shared=("feature_weight", "eta"),
    needed=("beta",),
    variables={"feature": ("beta",)},
)
