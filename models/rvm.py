"""RVM, the Relevance Vector Machine for classification, on a kernel with fixed feature weights.

Tipping (2001), "Sparse Bayesian Learning and the Relevance Vector Machine", Journal of Machine
Learning Research 1, 211-244; the PFCVM paper (doi 10.1145/3309541, eq. 1) departs from it.

The generative model
--------------------
X (N, D) inputs, Z (B, D) basis centres (the training inputs), y (N,) in {0, 1}::

    alpha_j ~ Gamma(c, d)                               precision of a weight               (B,)
    w_j     ~ Normal(0, alpha_j^-1/2)                   weight, `sample_weight`             (B,)
    theta_k = feature_scale                             a constant, `feature_weight`        (D,)
    b       ~ Normal(0, bias_sd)                        bias, `bias`
    eta_i   = b + sum_j w_j K_theta(x_i, z_j)           decision value, `eta`               (N,)
    y_i     ~ Bernoulli(sigmoid(eta_i))                 label                               (N,)

The second argument of Normal is a standard deviation, Gamma is (shape, rate); feature_scale is
one number or one for each feature. Weights may have either sign: the basis has no labels, so y is
used once. By default c = 1/2 and each weight has a slab, as in PFCVM (`pfcvm.py`). There are two
parametrisations: alpha explicit and w non-centred, or w Student-t with nu = 2 c degrees of
freedom and scale sqrt(d / c), times the slab.

Departures from the paper
-------------------------
- Hyperpriors are proper, with rates computed from the data's sizes and a slab. The paper's are
  flat, and the posterior is then improper (Dixit & Roy 2021, doi 10.1016/j.spl.2021.109039).
- The bias has a prior of its own, with the fixed scale bias_sd.
- theta is given, by default the feature scale of its kernel.

Known difficulties
------------------
- With N > D and a linear kernel, the data do not inform N - rank(Z) directions of w, which follow
  the prior.
- Under the dense prior the marginal form mixes worse than the hierarchical one
  (lab/algorithms/ALGORITHMS.md).
- With the rbf kernel and the dense prior, chains need not converge in either form (digits38: R-hat
  of `eta` 1.8). Many small sets of large weights explain the labels, and each chain stays with its
  own set. The default prior, with its slab, does not have this problem: R-hat of `eta` is at most
  1.005 on digits38 and sonar, with three seeds each (lab/priors/PRIORS.md).
- Sparsity of the type-II estimate (most precisions infinite) is a property of that estimate. The
  posterior shrinks weights and sets none exactly to zero.
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm
from scipy import special, stats

from . import pcvm, sparse
from .parts import ard, covariates
from .parts.distributions import LogisticBernoulli, logistic_logp
from .parts.distributions import log_predictive as log_predictive
from .pcvm import decision as decision
from .pcvm import fixed_data, fixed_theta
from .spec import Coords, Inputs, ModelCard, Point

W = ard.Weights("sample_weight", "alpha", "sample", signed=True)


@dataclass(frozen=True, kw_only=True)
class Hypers(pcvm.Hypers):
    """PCVM's, in the form that mixes better with weights of either sign."""

    parametrization: ard.Form = sparse.form_hyper("hierarchical")


def build(inputs: Inputs, y: np.ndarray, h: Hypers, coords: Coords) -> pm.Model:
    """Return the PyMC model, dims "obs" (N), "basis" (B), "feature" (D)."""
    with pm.Model(coords=coords) as model:
        K = fixed_data(inputs, h)
        w = W.declare(h)
        label = pm.Data("label", y, dims="obs")
        b = pm.Normal("bias", 0.0, h.bias_sd)
        eta = covariates.declare(inputs, h, b + K @ w)
        eta = pm.Deterministic("eta", eta, dims="obs")
        LogisticBernoulli("y", eta, observed=label, dims="obs")
    return model


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, h: Hypers) -> np.ndarray:
    """Return log p(y, variables | X) of w, b and, in the hierarchical form, alpha."""
    eta = decision(point, inputs, h)
    return (
        W.logp(point, h)
        + stats.norm.logpdf(point["bias"], 0.0, h.bias_sd)
        + covariates.logp(point, inputs, h)
        + logistic_logp(y, eta).sum(-1)
    )


def log_jacobian(point: Point, h: Hypers) -> np.ndarray:
    """Return log |d paper's variables / d unconstrained vector of the PyMC model|."""
    return W.log_jacobian(point, h)


def to_free(point: Point, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model at a point of the paper's variables."""
    return {"bias": point["bias"], **W.free(point, h), **covariates.free(point, inputs)}


def simulate(rng: np.random.Generator, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable, `eta`, and `y` (N,)."""
    point = W.draw(rng, h, inputs.B)
    point["feature_weight"] = fixed_theta(h, inputs.D)
    point["bias"] = np.asarray(rng.normal(0.0, h.bias_sd))
    point |= covariates.draw(rng, inputs, h)
    eta = decision(point, inputs, h)
    return point | {"eta": eta, "y": rng.binomial(1, special.expit(eta))}


CARD = ModelCard(
    name="rvm",
    title="Relevance Vector Machine",
    citation="Tipping (2001), JMLR 1, 211-244",
    year=2001,
    link="logistic",
    priors="ARD: normal sample weights, Gamma precisions; theta fixed",
    paper_method="pfcvm_lp",
    variables={"basis": ("alpha", "sample_weight_raw")},
    fixed=("feature_weight",),
)
