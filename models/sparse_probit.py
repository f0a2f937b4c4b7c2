"""Sparse probit regression on the features: JCFO without a kernel.

Figueiredo, Jain (2001), as used by Krishnapuram, Carin, Hartemink (2004), "Joint Classifier and
Feature Optimization for Comprehensive Cancer Diagnosis Using Gene Expression Data", J. Comput.
Biol. 11, sections 2 and 3, eqs. (3), (5), (10)-(12), (16). There it is the filter that keeps about
fifty genes before JCFO runs, inside each fold.

The generative model
--------------------
X (N, D) inputs, y (N,) in {0, 1}, basis functions h(x) = [1, x_1, ..., x_D] (5)::

    g      ~ C+(0, 1)                    learned scale, `feature_scale`
    tau_0  ~ Exponential(1 / 2)          (11)  variance of the bias, `tau_bias`
    beta_0 ~ Normal(0, tau_0^1/2)        (10)  bias, `bias`
    tau_k  ~ Exponential(gamma1 / 2g^2)  (11)  variance of a weight                         (D,)
    beta_k ~ Normal(0, tau_k^1/2)        (10)  primal weight                                (D,)
    v_k    = abs(beta_k)                       relevance of a feature, `feature_weight`     (D,)
    eta_i  = beta_0 + sum_k beta_k x_ik  (5)   decision value, `eta`                        (N,)
    y_i    ~ Bernoulli(Phi(eta_i))       (3)   label                                        (N,)

Exponential takes a rate, the second argument of Normal is a standard deviation. With tau
integrated out, beta_k ~ Laplace(scale g gamma1^-1/2) (12): the Bayesian lasso with a probit link.

g is half-Cauchy with its tail cut off as in JCFO (`jcfo.SCALE_SLAB`). It multiplies the scale of
the features' weights alone; gamma1^-1/2, filled or given, is the median of that scale. The bias has
a prior of its own, Laplace of scale 1: what the features need says nothing of how unbalanced the
classes are. With `scale="fixed"` g is 1, and the bias has the prior of every beta, Exponential(
gamma1 / 2) for tau_0, as printed: the prior at exactly that gamma1.

There is no theta and no basis of samples, so there is **no `sample_weight`**; basis centres are
accepted and not used.

The posterior can be written in two ways (`parametrization`)::

    marginal       tau integrated out
    hierarchical   tau explicit; beta_k = beta_raw_k tau_k^1/2 (non-centred)

It is JCFO at a fixed kernel matrix: the same density with X in place of K.

Departures from the paper
-------------------------
- gamma1 is D by default (scale D^-1/2). The paper chooses it on a hold-out set of 10 % within each
  fold.
- The paper has no g, and gives the bias the prior of every beta, whose scale at D = 7129 is 0.012:
  the features must then account for unbalanced classes. Log score of five cold folds: on colon
  -0.44 (`scale="fixed"`: -0.50, L1 logistic regression -0.44), on golub -0.37 (-0.44, L1 -0.15), on
  lymphoma -0.25 (-0.29, L1 -0.19).
- Under g the posterior has no mode, and the paper's algorithm, which looks for one, no step: as
  beta = g b and g fall to 0, the density grows like g^-D. It needs `scale="fixed"`.
- Only the Laplace prior is offered. Figueiredo and Jain also use a Jeffreys prior on tau, which the
  JCFO paper mentions in its comparison. It is improper, and this posterior would be too.
- The rows with a kernel in the paper's tables 1 and 4 (h = [1, K], theta fixed) are not this model.

Known difficulties
------------------
- On golub 92 % of the variance of eta at a held-out row is that of its part outside the span of the
  training rows, on which the data say nothing and which no scale removes; in JCFO, whose weights
  are theta_k (Z'beta)_k, it is 11 %.
- abs(beta) is never 0 in a draw: the sparsity of the paper is a property of the mode.
- Correlated features can exchange weight: check R-hat of `eta` first.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from ardvark.common.declared import hyper

from .jcfo import (
    MEDIAN,
    Scale,
    declare_scale,
    laplace,
    laplace_hyper,
    laplace_jacobian,
    laplace_logp,
    scale_free,
    scale_hyper,
    scale_jacobian,
    scale_logp,
    scaled,
    simulate_laplace,
    simulate_scale,
)
from .jcfo import log_predictive as log_predictive  # a part of this model's contract too
from .parts import covariates
from .parts.ard import Form
from .parts.probit import ProbitBernoulli, probit_logp
from .spec import BaseHypers, Coords, Inputs, ModelCard, Point


@dataclass(frozen=True, kw_only=True)
class Hypers(BaseHypers):
    """Hyperparameters of sparse probit regression; None follows from D."""

    FORM: ClassVar[tuple[str, ...]] = ("parametrization",)

    parametrization: Form = hyper(
        "hierarchical",
        "variances integrated out (marginal) or explicit",
        paper="hierarchical",
        why="mixes best under NUTS: the Laplace prior has a corner",
    )
    gamma1: float = laplace_hyper(
        "a feature weight, and of the bias if the scale is fixed",
        f"filled: weight scale gamma1^-1/2 = D^-1/2; {MEDIAN}",
    )
    scale: Scale = scale_hyper()
    covariate_sd: float = covariates.sd_hyper(covariates.PROBIT_SD)

    def fill(self, N: int, B: int, D: int) -> Self:
        """Return a copy with gamma1 such that eta has a useful prior range."""
        return replace(self, gamma1=float(D if self.gamma1 is None else self.gamma1))

    @property
    def gammas(self) -> dict[str, float]:
        """The squared rate by name."""
        return {"gamma1": self.gamma1}


def bias_gamma(gamma1: Any, h: BaseHypers) -> Any:
    """Return the squared rate of the prior of the bias: gamma1, or 1 beside a learned scale."""
    return gamma1 if h.learned_scale is None else np.float64(1.0)


# --- the PyMC model -------------------------------------------------------------------------------


def build(inputs: Inputs, y: np.ndarray, h: Hypers, coords: Coords) -> pm.Model:
    """Return the PyMC model, dims "obs" (N), "feature" (D). There is no basis."""
    marginal = h.parametrization == "marginal"
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", inputs.X, dims=("obs", "feature"))
        label = pm.Data("label", y, dims="obs")
        gamma1 = pm.Data("gamma1", h.gamma1)
        bias = laplace("bias", bias_gamma(gamma1, h), None if marginal else "tau_bias")
        beta = laplace(
            "beta", declare_scale(gamma1, h), None if marginal else "tau", dims="feature"
        )
        pm.Deterministic("feature_weight", pt.abs(beta), dims="feature")
        eta = covariates.declare(inputs, h, bias + x @ beta)
        eta = pm.Deterministic("eta", eta, dims="obs")
        ProbitBernoulli("y", eta, observed=label, dims="obs")
    return model


# --- the same density from the paper, in NumPy ------------------------------------------------


def decision(point: Point, inputs: Inputs, h: Hypers) -> np.ndarray:
    """Return eta (..., N) = beta_0 + X beta: JCFO (5)."""
    eta = np.asarray(point["bias"])[..., None] + point["beta"] @ inputs.X.T
    return covariates.added(eta, point, inputs)


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, h: Hypers) -> np.ndarray:
    """Return log p(y, variables | X), without Jacobian; tau, tau_bias where the form keeps them."""
    gamma1 = np.asarray(scaled(h.gamma1, point, h))[..., None]
    variance = {} if h.parametrization == "marginal" else point
    return (
        laplace_logp(point["bias"], bias_gamma(h.gamma1, h), variance.get("tau_bias"))
        + laplace_logp(point["beta"], gamma1, variance.get("tau")).sum(-1)
        + scale_logp(point, h)
        + covariates.logp(point, inputs, h)
        + probit_logp(y, decision(point, inputs, h)).sum(-1)
    )


def log_jacobian(point: Point, h: Hypers) -> np.ndarray:
    """Return log |d paper's variables / d unconstrained vector of the PyMC model|.

    The unconstrained vector holds beta (marginal: no transform), or log tau and beta_raw; and log g
    if the scale is learned.
    """
    total = np.zeros(np.shape(point["bias"])) + scale_jacobian(point, h)
    if h.parametrization == "marginal":
        return total
    return total + laplace_jacobian(point["tau"]).sum(-1) + laplace_jacobian(point["tau_bias"])


def to_free(point: Point, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model at a point of the paper's variables."""
    free = covariates.free(point, inputs) | scale_free(point, h)
    if h.parametrization == "marginal":
        return free | {k: point[k] for k in ("bias", "beta")}
    return free | {
        "tau_bias": point["tau_bias"],
        "bias_raw": point["bias"] * point["tau_bias"] ** -0.5,
        "tau": point["tau"],
        "beta_raw": point["beta"] * point["tau"] ** -0.5,
    }


def simulate(rng: np.random.Generator, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable of the model, `feature_weight`, `eta`, `y` (N,)."""
    scale = simulate_scale(rng, h)
    tau_bias, bias = simulate_laplace(rng, bias_gamma(h.gamma1, h), ())
    tau, beta = simulate_laplace(rng, scaled(h.gamma1, scale, h), (inputs.D,))
    point = {"tau_bias": tau_bias, "bias": bias, "tau": tau, "beta": beta, **scale}
    point |= covariates.draw(rng, inputs, h)
    eta = decision(point, inputs, h)
    y = (rng.normal(eta, 1.0) > 0.0).astype(np.int64)  # (16)
    return point | {"feature_weight": np.abs(beta), "eta": eta, "y": y}


CARD = ModelCard(
    name="sparse_probit",
    title="Sparse probit regression",
    citation="Figueiredo & Jain (2001); Krishnapuram, Carin & Hartemink (2004)",
    year=2001,
    link="probit",
    priors="Laplace weights of the features, scale learned",
    paper_method="jcfo_em",
    shared=("feature_weight", "eta"),
    needed=("beta",),
    variables={"feature": ("beta", "beta_raw", "tau")},
)
