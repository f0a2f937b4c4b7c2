"""SKLR, FS-SKLR without its feature mask: binary masks on samples only.

Kojima, Tanaka (2017), "Doubly Sparse Bayesian Kernel Logistic Regression", APSIPA, section V. The
paper calls the method SKLR-SaVB, and uses it to show what the selection of features adds.

The generative model
--------------------
X (N, D) inputs, Z (B, D) basis centres (the training inputs), y (N,) in {0, 1}::

    zeta_k  = 1                              no feature mask, `feature_weight`              (D,)
    q_j     ~ Beta(a_z / B, 1)         (15)  probability, `sample_mask_probability`         (B,)
    z_j     ~ Bernoulli(q_j)           (14)  sample mask                                    (B,)
    alpha_j ~ Normal(0, xi^-1/2)       (11)  coefficient                                    (B,)
    a_j     = z_j alpha_j                    sample weight, `sample_weight`                 (B,)
    eta_i   = sum_j a_j k(x_i, Z_j)    (7)   decision value, `eta`                          (N,)
    y_i     ~ Bernoulli(sigmoid(eta_i))  (8)  label                                         (N,)

    k(x, z) = exp(-delta |x - z|^2)    (36)

Mask priors and the two forms are FS-SKLR's (`fsklr.py`). At zeta = 1 and equal delta, the two
models have the same posterior of (z, alpha).

Departures from the paper
-------------------------
- Those of FS-SKLR. The default delta is 1 / (2 D), since all D features enter.
- There is no linear kernel. With all features on, eta is of order delta D at a selected row and
  delta sqrt(A D) at the others, for A selected samples. At D >> N no scale suits both.

Known difficulties
------------------
- Neighbouring centres can replace each other, so single bits of z mix slowly.
- PyMC's own steps recompute the constant K for every gradient; a sampler should keep it.
"""

from dataclasses import dataclass, replace
from typing import Literal

from . import fsklr
from .fsklr import build as build  # these are parts of this model's contract too
from .fsklr import decision as decision
from .fsklr import log_jacobian as log_jacobian
from .fsklr import log_joint as log_joint
from .fsklr import log_predictive as log_predictive
from .fsklr import simulate as simulate
from .fsklr import to_free as to_free
from .parts.kernels import kernel_hyper


@dataclass(frozen=True, kw_only=True)
class Hypers(fsklr.SampleMaskHypers):
    """Hyperparameters of SKLR: FS-SKLR's without a_zeta, and the rbf kernel only."""

    kernel: Literal["rbf"] = kernel_hyper("rbf", paper="rbf")


CARD = replace(
    fsklr.CARD,
    name="sklr",
    title="Sparse Bayesian Kernel Logistic Regression",
    citation="Kojima, Tanaka (2017), APSIPA, SKLR-SaVB",
    priors="beta-process binary mask on samples, normal coefficients",
    variables={"basis": fsklr.CARD.variables["basis"]},
    fixed=("feature_weight",),
    masked=("sample_weight",),
)
