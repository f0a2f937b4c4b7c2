"""PCVM, the Probabilistic Classification Vector Machine: PFCVM with its feature weights fixed.

Chen, Tino, Yao (2009), "Probabilistic Classification Vector Machines", IEEE Transactions on Neural
Networks 20(6), in the form in which the PFCVM paper builds on it (doi 10.1145/3309541, eqs. 1, 5).

The generative model
--------------------
X (N, D) inputs, Z (B, D) basis centres, y (N,) in {0, 1}, basis labels s_j in {-1, +1}, fixed::

    alpha_j ~ Gamma(c, d)                               precision of a sample weight        (B,)
    w_j     ~ N+(0, 1 / alpha_j)                        size of a sample weight             (B,)
    a_j     = s_j w_j                                   sample weight, `sample_weight`      (B,)
    theta_k = feature_scale                             a constant, `feature_weight`        (D,)
    b       ~ Normal(0, bias_sd)                        bias, `bias`
    eta_i   = b + sum_j a_j K_theta(x_i, z_j)           decision value, `eta`               (N,)
    y_i     ~ Bernoulli(sigmoid(eta_i))                 label                               (N,)

N+(0, v) is a truncated normal of variance v, Gamma is (shape, rate); feature_scale is one number
or one for each feature. The parametrisations are PFCVM's: alpha explicit, or w half-Student-t.

Departures from the paper
-------------------------
- The link is logistic, so that the model is PFCVM at a given theta; the paper's is a probit.
- Hyperpriors are proper, with computed rates and a slab, and bias_sd is fixed, for the reasons
  given in PFCVM.
- theta is given, not tuned; by default it is the feature scale of its kernel.

Known difficulties
------------------
- The labels enter twice, as in PFCVM, so the pointwise likelihood gives no leave-one-out estimate.
- Irrelevant features enter the kernel at full weight. PFCVM was proposed to avoid this.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pymc as pm
from scipy import special, stats

from ardvark.common.declared import hyper
from ardvark.common.validate import InputError

from . import sparse
from .parts import ard, covariates
from .parts.distributions import LogisticBernoulli
from .parts.distributions import log_predictive as log_predictive
from .spec import Coords, Inputs, ModelCard, Point

W = ard.Weights("w", "alpha", "sample")


@dataclass(frozen=True, kw_only=True)
class Hypers(sparse.KernelHypers):
    """Hyperparameters of PCVM and RVM. Those left at None follow from N, D and the kernel."""

    feature_scale: float | tuple[float, ...] = hyper(
        None,
        "the fixed feature weights theta: one number for all features, or one for each",
        at_least=0.0,
        paper="cross-validated",
        why="the fixed theta; filled: the kernel's feature scale",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feature_scale is not None and not np.any(self.feature_scale):
            raise InputError(
                "feature_scale must be above 0 for at least one feature, got 0 for all: the kernel "
                "would be the same number for every row."
            )

    def fill(self, N: int, B: int, D: int) -> Self:
        """Return a copy with theta and the prior of the sample weights, from the sizes."""
        theta = self.feature_scale
        if theta is None:
            theta = self.kernel_of().scales(N, D)[1]
        if isinstance(theta, tuple) and len(theta) != D:
            raise InputError(
                f"feature_scale has {len(theta)} values and the data {D} features; "
                "give one number, or one for each feature."
            )
        complete = replace(self, feature_scale=theta)
        return complete.fill_samples(N, B, fixed_theta(complete, D))


# --- theta and its kernel matrix are constants, shared with RVM -----------------------------------


def fixed_theta(h: Hypers, D: int) -> np.ndarray:
    """Return theta (D,)."""
    return np.array(np.broadcast_to(np.asarray(h.feature_scale, dtype=float), D))


def fixed_kernel(inputs: Inputs, h: Hypers) -> np.ndarray:
    """Return K_theta(X, Z), shape (N, B)."""
    return h.kernel_of().gram(inputs.X, inputs.Z, fixed_theta(h, inputs.D))


def fixed_data(inputs: Inputs, h: Hypers) -> Any:
    """Declare the constants theta, as `feature_weight`, and K; return K.

    K is computed once: a gradient then costs O(N B), whatever D.
    """
    theta = pm.Data("feature_scale", fixed_theta(h, inputs.D), dims="feature")
    pm.Deterministic("feature_weight", theta, dims="feature")
    return pm.Data("K", fixed_kernel(inputs, h), dims=("obs", "basis"))


def build(inputs: Inputs, y: np.ndarray, h: Hypers, coords: Coords) -> pm.Model:
    """Return the PyMC model, dims "obs" (N), "basis" (B), "feature" (D)."""
    with pm.Model(coords=coords) as model:
        K = fixed_data(inputs, h)
        s = pm.Data("basis_labels", inputs.basis_labels, dims="basis")
        a = pm.Deterministic("sample_weight", s * W.declare(h), dims="basis")
        label = pm.Data("label", y, dims="obs")
        b = pm.Normal("bias", 0.0, h.bias_sd)
        eta = covariates.declare(inputs, h, b + K @ a)
        eta = pm.Deterministic("eta", eta, dims="obs")
        LogisticBernoulli("y", eta, observed=label, dims="obs")
    return model


def decision(point: Point, inputs: Inputs, h: Hypers) -> np.ndarray:
    """Return eta (..., N) = b + K (s w), one kernel matrix for all draws."""
    K = fixed_kernel(inputs, h)
    eta = np.asarray(point["bias"])[..., None] + point["sample_weight"] @ K.T
    return covariates.added(eta, point, inputs)


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, h: Hypers) -> np.ndarray:
    """Return log p(y, variables | X, s) of w, b and, in the hierarchical form, alpha."""
    eta = decision({**point, "sample_weight": inputs.basis_labels * point["w"]}, inputs, h)
    return (
        W.logp(point, h)
        + stats.norm.logpdf(point["bias"], 0.0, h.bias_sd)
        + covariates.logp(point, inputs, h)
        + log_predictive(y, eta, point, h).sum(-1)
    )


def log_jacobian(point: Point, h: Hypers) -> np.ndarray:
    """Return log |d paper's variables / d unconstrained vector of the PyMC model|."""
    return W.log_jacobian(point, h)


def to_free(point: Point, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model at a point of the paper's variables."""
    return {"bias": point["bias"], **W.free(point, h), **covariates.free(point, inputs)}


def simulate(rng: np.random.Generator, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable, `eta`, and `y` (N,). Basis labels stay fixed."""
    point = W.draw(rng, h, inputs.B)
    point["sample_weight"] = inputs.basis_labels * point["w"]
    point["feature_weight"] = fixed_theta(h, inputs.D)
    point["bias"] = np.asarray(rng.normal(0.0, h.bias_sd))
    point |= covariates.draw(rng, inputs, h)
    eta = decision(point, inputs, h)
    return point | {"eta": eta, "y": rng.binomial(1, special.expit(eta))}


CARD = ModelCard(
    name="pcvm",
    title="Probabilistic Classification Vector Machine",
    citation="Chen, Tino & Yao (2009), IEEE Transactions on Neural Networks 20(6)",
    year=2009,
    link="logistic",
    priors="ARD: half-normal sample weights, Gamma precisions; labels sign the basis; theta fixed",
    paper_method="pfcvm_em",
    variables={"basis": ("alpha", "sample_weight_raw", "w")},
    fixed=("feature_weight",),
    labels_in_basis=True,
)
