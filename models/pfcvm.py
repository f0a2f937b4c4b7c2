"""PFCVM, the Probabilistic Feature selection and Classification Vector Machine.

Jiang, Li, De Rijke, Yao, Chen (2019), "Probabilistic Feature Selection and Classification Vector
Machine", ACM Transactions on Knowledge Discovery from Data 13(2), doi 10.1145/3309541, section 2.

The generative model
--------------------
X (N, D) inputs, Z (B, D) basis centres (the training inputs), y (N,) in {0, 1}, and a fixed label
s_j in {-1, +1} for each basis centre::

    alpha_j ~ Gamma(c, d)                               precision of a sample weight        (B,)
    w_j     ~ N+(0, 1 / alpha_j)                   (5)  size of a sample weight             (B,)
    a_j     = s_j w_j                                   sample weight, `sample_weight`      (B,)
    beta_k  ~ Gamma(c, d)                               precision of a feature weight       (D,)
    theta_k ~ N+(0, 1 / beta_k)                    (8)  feature weight, `feature_weight`    (D,)
    b       ~ Normal(0, bias_sd)                   (6)  bias, `bias`
    eta_i   = b + sum_j a_j K_theta(x_i, z_j)      (4)  decision value, `eta`               (N,)
    y_i     ~ Bernoulli(sigmoid(eta_i))     (sec. 2.1)  label                               (N,)

N+(0, v) is a normal of variance v truncated to the positive half line; the second argument of
Normal is a standard deviation; Gamma is (shape, rate). The kernel is rbf (2), polynomial (3) or,
as in section 4.3, linear: `models/parts/kernels/` has the formulas.

By default c = 1/2 and each weight x has a slab: the joint density of x and its precision is
multiplied by exp(-x^2 / (2 slab^2)), with one constant for both. The weight is then a half-Cauchy
whose tail the slab cuts off (`models/parts/slab.py`).
The rates are computed from `active_features` and `active_samples`, the prior expected numbers of
visible weights (`models/parts/sparsity.py`). "all" instead of a number gives the dense prior:
c = 1.5, no slab.

The posterior can be written in two ways (`parametrization`):

    marginal       alpha, beta integrated out: w and theta half-Student-t with nu = 2 c degrees of
                   freedom and scale sqrt(d / c), times the slab
    hierarchical   alpha, beta explicit; w and theta non-centred:
                   w_j = raw_j (alpha_j + slab^-2)^-1/2, ...

**The labels enter twice.** Each training label is observed, and it also fixes the sign of its
own sample's weight. The posterior at s = 2 y - 1 therefore uses y twice and is not calibrated in
the usual sense. `simulate` holds s fixed while it draws y. Checks of a sampler (Geweke,
simulation-based calibration) are valid only if s is not a function of the simulated y. Pointwise
leave-one-out does not estimate predictive accuracy here, because sample i stays in the basis when
its likelihood term is left out. Refit without sample i in X, y and the basis instead.

Departures from the paper
-------------------------
- Hyperpriors are proper. The paper's flat ones (c = d = 0) give an improper posterior, with
  infinite mass at weight zero. The paper's type-II estimate does not run into this problem.
  c = 1/2 is a compromise: it keeps the spike at zero and most of the long tail.
- A slab cuts off the tail. On separable data the likelihood does not, and without a slab a weight
  has no posterior mean.
- Rates are computed from N, B, D, the kernel and the expected numbers of visible weights.
- Sample and feature weights have separate shapes and rates.
- bias_sd is fixed; the paper re-estimates the precision alpha_0 of the bias.

Known difficulties
------------------
- With the linear kernel (theta / r, r w) gives the same eta, so only theta * (Z' s w) is
  identified. Check R-hat of `eta` first.
- With N > D and a linear kernel, the data do not inform N - rank(Z) directions of s w, which
  follow the prior.
- A feature weight enters the polynomial kernel to the power P. Without a slab, `feature_shape`
  must exceed `degree` for eta to have a variance.
- With the rbf kernel and D >> N, many tiny theta_d together make the kernel between different rows
  vanish. So only a few features can be visible next to a limited number of samples; an error
  reports when too many are requested.
- The basis carries the labels, so the prior depends on them: features that tell the classes apart
  are more often active under it. On digits38 it expects 19 active features where 10 are asked for.
  A selection gives the prior's P(effect) feature by feature (`av.select`).
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm
from scipy import special, stats

from ardvark.common.validate import InputError

from . import sparse
from .parts import ard, covariates
from .parts.distributions import LogisticBernoulli, logistic_logp
from .parts.distributions import log_predictive as log_predictive
from .spec import Coords, Inputs, ModelCard, Point

W = ard.Weights("w", "alpha", "sample")
THETA = ard.Weights("feature_weight", "beta", "feature")


@dataclass(frozen=True, kw_only=True)
class Hypers(sparse.KernelHypers):
    """Hyperparameters of PFCVM: of kernel and samples as in PCVM, and of the features.

    Those left at None are filled from N, B, D and the kernel.
    """

    active_features: sparse.Active = sparse.active("feature")
    feature_shape: float = sparse.shape(
        "feature", why="filled: 1/2; dense: 1.5, or degree + 0.5 (polynomial)"
    )
    feature_rate: float = sparse.rate(
        "feature", why="filled from active_features; dense: shape * the kernel's scale^2"
    )
    feature_slab: float = sparse.own_slab("feature", why="filled: 1, or 1 / degree (polynomial)")

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.feature_shape
        endless = self.slab is None and self.feature_slab in (None, np.inf)
        if given is not None and given <= self.kernel_of().least_shape and endless:
            raise InputError(
                f"feature_shape must exceed the degree of the polynomial kernel, got "
                f"feature_shape = {given:g} with degree = {self.degree}: eta grows like "
                "theta^degree and would have no finite variance. Leave feature_shape out, raise "
                "it, give a slab, or lower the degree."
            )


# --- the PyMC model -------------------------------------------------------------------------------


def build(inputs: Inputs, y: np.ndarray, h: Hypers, coords: Coords) -> pm.Model:
    """Return the PyMC model, dims "obs" (N), "basis" (B), "feature" (D).

    Data, basis labels and filled rates are `pm.Data`, so another fold of the same shape rebinds
    the compiled code. A gradient costs matrix products, O(N B D), or O((N + B) D) with the
    linear kernel, whose matrix is never formed.
    """
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", inputs.X, dims=("obs", "feature"))
        z = pm.Data("Z", inputs.Z, dims=("basis", "feature"))
        s = pm.Data("basis_labels", inputs.basis_labels, dims="basis")
        w = W.declare(h)  # w_j ~ N+(0, 1 / alpha_j), alpha_j ~ Gamma, with their slab
        a = pm.Deterministic("sample_weight", s * w, dims="basis")
        theta = THETA.declare(h)  # theta_k ~ N+(0, 1 / beta_k), beta_k ~ Gamma
        label = pm.Data("label", y, dims="obs")
        b = pm.Normal("bias", 0.0, h.bias_sd)
        eta = covariates.declare(inputs, h, b + h.kernel_of().product(x, z, theta, a))
        eta = pm.Deterministic("eta", eta, dims="obs")
        LogisticBernoulli("y", eta, observed=label, dims="obs")
    return model


# --- the same densities from the paper, in NumPy --------------------------------------------------


def decision(point: Point, inputs: Inputs, h: Hypers) -> np.ndarray:
    """Return eta (..., N) = b + K_theta(X, Z) (s w), PFCVM (4); `sample_weight` holds s w."""
    theta, a = np.asarray(point["feature_weight"]), np.asarray(point["sample_weight"])
    eta = h.kernel_of().decision(inputs.X, inputs.Z, theta, a, point["bias"])
    return covariates.added(eta, point, inputs)


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, h: Hypers) -> np.ndarray:
    """Return log p(y, variables | X, s): the density of the paper's variables, without Jacobian.

    The variables are w, theta and b, and in the hierarchical form alpha and beta.
    """
    eta = decision({**point, "sample_weight": inputs.basis_labels * point["w"]}, inputs, h)
    return (
        W.logp(point, h)
        + THETA.logp(point, h)
        + stats.norm.logpdf(point["bias"], 0.0, h.bias_sd)
        + covariates.logp(point, inputs, h)
        + logistic_logp(y, eta).sum(-1)
    )


def log_jacobian(point: Point, h: Hypers) -> np.ndarray:
    """Return log |d paper's variables / d unconstrained vector of the PyMC model|."""
    return W.log_jacobian(point, h) + THETA.log_jacobian(point, h)


def to_free(point: Point, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model at a point of the paper's variables."""
    free = {"bias": point["bias"], **W.free(point, h), **THETA.free(point, h)}
    return free | covariates.free(point, inputs)


def simulate(rng: np.random.Generator, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable, `eta`, and `y` (N,). Basis labels stay fixed."""
    point = W.draw(rng, h, inputs.B)
    point["sample_weight"] = inputs.basis_labels * point["w"]
    point |= THETA.draw(rng, h, inputs.D)
    point["bias"] = np.asarray(rng.normal(0.0, h.bias_sd))
    point |= covariates.draw(rng, inputs, h)
    eta = decision(point, inputs, h)
    return point | {"eta": eta, "y": rng.binomial(1, special.expit(eta))}


CARD = ModelCard(
    name="pfcvm",
    title="Probabilistic Feature selection and Classification Vector Machine",
    citation="Jiang et al. (2019), ACM TKDD 13(2), doi 10.1145/3309541",
    year=2019,
    link="logistic",
    priors="ARD: half-normal sample and feature weights, Gamma precisions; labels sign the basis",
    paper_method="pfcvm_lp",
    variables={
        "basis": ("alpha", "sample_weight_raw", "w"),
        "feature": ("beta", "feature_weight_raw"),
    },
    labels_in_basis=True,
)
