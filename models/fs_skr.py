"""FS-SKR, FS-SKLR with a squared-error likelihood: least squares on the signs of the labels.

Kojima, Tanaka (2017), "Doubly Sparse Bayesian Kernel Logistic Regression", APSIPA, section V, where
the method is called FS-SKR-Sa. Its original source (Kojima, Wadai, Tanaka 2017, ITC-CSCC) was not
available to us; this is our reconstruction from the APSIPA paper.

The generative model
--------------------
X (N, D) inputs, Z (B, D) basis centres (the training inputs), y (N,) in {0, 1}, s = 2y - 1::

    pi_k    ~ Beta(a_zeta / D, 1)      (13)  probability, `feature_mask_probability`        (D,)
    zeta_k  ~ Bernoulli(pi_k)          (12)  feature mask, `zeta` and `feature_weight`      (D,)
    q_j     ~ Beta(a_z / B, 1)         (15)  probability, `sample_mask_probability`         (B,)
    z_j     ~ Bernoulli(q_j)           (14)  sample mask                                    (B,)
    alpha_j ~ Normal(0, xi^-1/2)       (11)  coefficient                                    (B,)
    a_j     = z_j alpha_j                    sample weight, `sample_weight`                 (B,)
    eta_i   = sum_j a_j k(x_i * zeta, Z_j * zeta)  (7)  decision value, `eta`               (N,)
    tau     ~ Gamma(noise_shape, noise_rate)            precision of the error
    s_i     ~ Normal(eta_i, tau^-1/2)                   sign of the label                   (N,)

All but the last two lines are FS-SKLR's (`fsklr.py`). Gamma is (shape, rate).

eta is a score, not a log-odds: its sign is the predicted class, and there is no P(y = 1).
`log_predictive` is the normal log density of s. `simulate` draws s from the model, so its
y = (1 + s) / 2 is a real number, not a label.

Departures from the paper
-------------------------
- Those of FS-SKLR, and the prior of tau, which the paper does not give.

Known difficulties
------------------
- Those of FS-SKLR's masks. alpha and tau are conditionally conjugate: given the masks and tau,
  alpha is normal and can be integrated out exactly.
- Residuals from the values -1 and +1 are not normal, so posterior widths say nothing about labels.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
from scipy import stats

from . import fsklr, sparse
from .fsklr import decision as decision  # a part of this model's contract too
from .spec import Coords, Inputs, Point

_shape, _rate = (
    partial(declare, paper="not stated", outside="It is the prior of a precision.")
    for declare in (sparse.shape, sparse.rate)
)


@dataclass(frozen=True, kw_only=True)
class Hypers(fsklr.Hypers):
    """Hyperparameters of FS-SKR: FS-SKLR's, and the prior of the noise."""

    noise_shape: float = _shape(
        "tau of the error", 3.0, why="proper at infinity: a full-rank kernel fits s exactly"
    )
    noise_rate: float = _rate("tau of the error", 3.0, why="E[tau] = 1: s has variance 1")


def build(inputs: Inputs, y: np.ndarray, h: Hypers, coords: Coords) -> pm.Model:
    """Return the PyMC model; the observed variable is s = 2y - 1, from the data `label` = y."""
    with pm.Model(coords=coords) as model:
        eta = fsklr.decision_value(inputs, h)
        label = pm.Data("label", np.asarray(y, dtype=np.float64), dims="obs")
        shape = pm.Data("noise_shape", h.noise_shape)  # a plain 3.0 would be float32
        rate = pm.Data("noise_rate", h.noise_rate)
        tau = pm.Gamma("tau", shape, rate)
        pm.Normal("s", eta, tau**-0.5, observed=2.0 * label - 1.0, dims="obs")
    return model


def log_predictive(y: Any, eta: np.ndarray, point: Point, h: Hypers) -> np.ndarray:
    """Return log N(s | eta, 1 / tau), s = 2y - 1, shape of eta."""
    sd = np.asarray(point["tau"])[..., None] ** -0.5
    return stats.norm.logpdf(2.0 * np.asarray(y) - 1.0, eta, sd)


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, h: Hypers) -> np.ndarray:
    """Return log p(s, variables | X): the density of the model's variables, without Jacobian."""
    eta = fsklr.decision(point, inputs, h)
    noise = stats.gamma.logpdf(point["tau"], h.noise_shape, scale=1 / h.noise_rate)
    return fsklr.log_prior(point, inputs, h) + noise + log_predictive(y, eta, point, h).sum(-1)


def log_jacobian(point: Point, h: Hypers) -> np.ndarray:
    """Return FS-SKLR's log Jacobian and that of tau, which is sampled as log tau."""
    return fsklr.log_jacobian(point, h) + np.log(point["tau"])


def to_free(point: Point, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model at a point."""
    return fsklr.to_free(point, inputs, h) | {"tau": point["tau"]}


def simulate(rng: np.random.Generator, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable, `eta`, and `y` = (1 + s) / 2, real (N,)."""
    point = fsklr.simulate_prior(rng, inputs, h)
    tau = rng.gamma(h.noise_shape, 1 / h.noise_rate)
    s = rng.normal(point["eta"], tau**-0.5)
    return point | {"tau": np.asarray(tau), "y": (1.0 + s) / 2.0}


CARD = replace(
    fsklr.CARD,
    name="fs_skr",
    title="Doubly Sparse Bayesian Kernel Regression on the signs of the labels",
    citation="Kojima, Tanaka (2017), APSIPA, FS-SKR-Sa",
    link="identity",
    priors="beta-process binary masks on features and samples, normal coefficients and errors",
)
