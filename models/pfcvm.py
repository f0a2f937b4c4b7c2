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

By default c = 1/2 and each weight has a slab: its density is multiplied by exp(-x^2 / (2 slab^2))
and renormalised. The result is a half-Cauchy whose tail the slab cuts off (`models/parts/slab.py`).
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
  A selection gives the prior's P(active) feature by feature (`av.select`).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pymc as pm
from scipy import special, stats

from ardvark.common.declared import hyper
from ardvark.common.validate import InputError

from .parts import ard
from .parts.distributions import LogisticBernoulli, logistic_logp
from .parts.kernels import KERNELS, Kernel, KernelName, make_kernel
from .sparse import (
    BIAS_SD,
    Active,
    Group,
    Sizes,
    SparseHypers,
    SparsePriors,
    active,
    logit_slab,
    own_slab,
    rate,
    shape,
    solve,
)
from .spec import Coords, Inputs, ModelCard, Point, check_simulable

_IMPROPER = (
    "A flat hyperprior on the precisions (shape 0 or rate 0) makes the posterior improper: "
    "infinite mass at weight zero, or in the tails on separable data (compare Dixit & Roy 2021, "
    "doi 10.1016/j.spl.2021.109039). A type-II estimate hides this, a posterior does not exist. "
    "Leave it out for a proper default."
)


# --- hyperparameters ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class KernelHypers[P: KernelPriors](SparseHypers[P]):
    """What PFCVM, PCVM and RVM share: the kernel, the sample weights' hyperprior, the bias."""

    kernel: KernelName = hyper(
        "linear", "kernel of a row and a basis centre", paper="rbf; linear on gene expression"
    )
    degree: int = hyper(
        2,
        "power P of the polynomial kernel (1 + x'z)^P",
        at_least=1,
        paper="P",
        why="of the polynomial kernel; the others ignore it",
        outside="It is the power P of the polynomial kernel (1 + x'z)^P.",
    )
    parametrization: ard.Form = hyper(
        "marginal", "precisions integrated out (marginal) or explicit", paper="hierarchical"
    )
    active_samples: float | Literal["all"] | None = active("sample")
    slab: float | None = logit_slab()
    sample_shape: float | None = shape(
        "sample",
        paper="0",
        why="filled: 1/2; dense: 1.5 (a moment of order r needs shape > r / 2)",
        outside=_IMPROPER,
    )
    sample_rate: float | None = rate(
        "sample",
        paper="0",
        why="filled from active_samples; dense: shape * the kernel's scale^2",
        outside=_IMPROPER,
    )
    sample_slab: float | None = own_slab(
        "sample", why="filled from slab, on the weight's own scale"
    )
    bias_sd: float = hyper(1.0, BIAS_SD, above=0.0, paper="re-estimated")

    def sizes(self, N: int, B: int, D: int) -> Sizes:
        """Return the kernel and the sizes of the data."""
        return Sizes(make_kernel(self.kernel, self.degree), N, B, D)

    def sample_group(self, scale: float) -> Group:
        """Return what was specified for the sample weights, with the scale of their dense prior."""
        return Group(
            self.active_samples, self.sample_shape, self.sample_rate, self.sample_slab, 1.5, scale
        )


@dataclass(frozen=True, kw_only=True)
class KernelPriors(SparsePriors):
    """The complete hyperparameters that PFCVM, PCVM and RVM share."""

    FORM: ClassVar[tuple[str, ...]] = ("parametrization",)

    kernel: KernelName
    degree: int
    parametrization: ard.Form
    active_samples: Active
    slab: float
    sample_shape: float
    sample_rate: float
    sample_slab: float
    bias_sd: float

    @property
    def sample_prior(self) -> ard.WeightPrior:
        """Prior of w and alpha."""
        return ard.WeightPrior(self.sample_shape, self.sample_rate, self.sample_slab)

    def kernel_of(self) -> Kernel:
        """Return the kernel."""
        return make_kernel(self.kernel, self.degree)

    def weight_priors(self) -> dict[str, ard.WeightPrior]:
        """Return the prior of the sample weights."""
        return {"sample_weight": self.sample_prior}

    def posterior_fields(self) -> dict[str, Any]:
        """The degree defines the posterior only where the kernel has one."""
        fields = super().posterior_fields()
        if not self.kernel_of().has_degree:
            del fields["degree"]
        return fields


@dataclass(frozen=True, kw_only=True)
class Hypers(KernelHypers["Priors"]):
    """Hyperparameters of PFCVM, as specified. None: computed from N, B, D and the kernel."""

    active_features: float | Literal["all"] | None = active("feature")
    feature_shape: float | None = shape(
        "feature",
        paper="0",
        why="filled: 1/2; dense: 1.5, or degree + 0.5 (polynomial)",
        outside=_IMPROPER,
    )
    feature_rate: float | None = rate(
        "feature",
        paper="0",
        why="filled from active_features; dense: shape * the kernel's scale^2",
        outside=_IMPROPER,
    )
    feature_slab: float | None = own_slab("feature", why="filled: 1, or 1 / degree (polynomial)")

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.feature_shape
        endless = self.slab is None and self.feature_slab in (None, np.inf)
        steep = given is not None and given <= make_kernel(self.kernel, self.degree).least_shape
        if steep and endless:
            raise InputError(
                f"feature_shape must exceed the degree of the polynomial kernel, got "
                f"feature_shape = {given:g} with degree = {self.degree}: eta grows like "
                "theta^degree and would have no finite variance. Leave feature_shape out, raise "
                "it, give a slab, or lower the degree."
            )

    def solve(self, N: int, B: int, D: int) -> "Priors":
        """Return the priors, with shapes, rates and slabs from the sizes of the data."""
        sizes = self.sizes(N, B, D)
        sample_scale, feature_scale = sizes.kernel.scales(N, D)
        slab, sample, feature = solve(
            sizes,
            self.slab,
            self.sample_group(sample_scale),
            Group(
                self.active_features,
                self.feature_shape,
                self.feature_rate,
                self.feature_slab,
                sizes.kernel.dense_shape,
                feature_scale,
            ),
        )
        return Priors(
            kernel=self.kernel,
            degree=self.degree,
            parametrization=self.parametrization,
            active_samples=sample.active,
            slab=slab,
            sample_shape=sample.prior.shape,
            sample_rate=sample.prior.rate,
            sample_slab=sample.prior.slab,
            bias_sd=self.bias_sd,
            active_features=feature.active,
            feature_shape=feature.prior.shape,
            feature_rate=feature.prior.rate,
            feature_slab=feature.prior.slab,
        )


@dataclass(frozen=True, kw_only=True)
class Priors(KernelPriors):
    """Every hyperparameter of PFCVM, complete."""

    active_features: Active
    feature_shape: float
    feature_rate: float
    feature_slab: float

    @property
    def feature_prior(self) -> ard.WeightPrior:
        """Prior of theta and beta."""
        return ard.WeightPrior(self.feature_shape, self.feature_rate, self.feature_slab)

    def weight_priors(self) -> dict[str, ard.WeightPrior]:
        """Return the priors of both kinds of weights."""
        return super().weight_priors() | {"feature_weight": self.feature_prior}


# --- pieces of the PyMC model, shared with PCVM and RVM -------------------------------------------


def observe(Ka: Any, y: np.ndarray, priors: KernelPriors) -> None:
    """Declare the bias, eta = b + K a (N,), and the labels."""
    label = pm.Data("label", y, dims="obs")
    b = pm.Normal("bias", 0.0, priors.bias_sd)
    eta = pm.Deterministic("eta", b + Ka, dims="obs")
    LogisticBernoulli("y", eta, observed=label, dims="obs")


def build(inputs: Inputs, y: np.ndarray, priors: Priors, coords: Coords) -> pm.Model:
    """Return the PyMC model, dims "obs" (N), "basis" (B), "feature" (D).

    Data, basis labels and filled rates are `pm.Data`, so another fold of the same shape rebinds
    the compiled code. A gradient costs matrix products, O(N B D), or O((N + B) D) with the
    linear kernel, whose matrix is never formed.
    """
    h = priors
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", inputs.X, dims=("obs", "feature"))
        z = pm.Data("Z", inputs.Z, dims=("basis", "feature"))
        s = pm.Data("basis_labels", inputs.basis_labels, dims="basis")
        form = h.parametrization
        w = ard.weight("w", "sample", "alpha", "basis", h.sample_prior, form)
        a = pm.Deterministic("sample_weight", s * w, dims="basis")
        theta = ard.weight("feature_weight", "feature", "beta", "feature", h.feature_prior, form)
        observe(h.kernel_of().product(x, z, theta, a), y, h)
    return model


# --- the same densities from the paper, in NumPy --------------------------------------------------


def decision(point: Point, inputs: Inputs, priors: Priors) -> np.ndarray:
    """Return eta (..., N) = b + K_theta(X, Z) (s w), PFCVM (4); `sample_weight` holds s w."""
    theta, a = np.asarray(point["feature_weight"]), np.asarray(point["sample_weight"])
    return priors.kernel_of().decision(inputs.X, inputs.Z, theta, a, point["bias"])


def log_predictive(y: Any, eta: np.ndarray, point: Point, priors: KernelPriors) -> np.ndarray:
    """Return log P(y | eta), shape of eta: a logistic link without noise."""
    return logistic_logp(y, eta)


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, priors: Priors) -> np.ndarray:
    """Return log p(y, variables | X, s): the density of the paper's variables, without Jacobian.

    The variables are w, theta and b, and in the hierarchical form alpha and beta.
    """
    h, w, theta = priors, point["w"], point["feature_weight"]
    alpha, beta = (
        ard.precisions(point, "alpha", h.parametrization),
        ard.precisions(point, "beta", h.parametrization),
    )
    eta = decision({**point, "sample_weight": inputs.basis_labels * w}, inputs, h)
    return (
        ard.logp(w, alpha, h.sample_prior)
        + ard.logp(theta, beta, h.feature_prior)
        + stats.norm.logpdf(point["bias"], 0.0, h.bias_sd)
        + logistic_logp(y, eta).sum(-1)
    )


def log_jacobian(point: Point, priors: Priors) -> np.ndarray:
    """Return log |d paper's variables / d unconstrained vector of the PyMC model|."""
    alpha, beta = (
        ard.precisions(point, "alpha", priors.parametrization),
        ard.precisions(point, "beta", priors.parametrization),
    )
    return ard.log_jacobian(point["w"], alpha, priors.sample_prior) + ard.log_jacobian(
        point["feature_weight"], beta, priors.feature_prior
    )


def to_free(point: Point, inputs: Inputs, priors: Priors) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model at a point of the paper's variables."""
    h = priors
    return {
        "bias": point["bias"],
        **ard.free(point, "w", "sample", "alpha", h.sample_prior, h.parametrization),
        **ard.free(point, "feature_weight", "feature", "beta", h.feature_prior, h.parametrization),
    }


def simulate(rng: np.random.Generator, inputs: Inputs, priors: Priors) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable, `eta`, and `y` (N,). Basis labels stay fixed."""
    h = priors
    check_simulable(h)
    alpha, w = ard.draw(rng, h.sample_prior, inputs.B)
    beta, theta = ard.draw(rng, h.feature_prior, inputs.D)
    point: dict[str, np.ndarray] = {
        "alpha": alpha,
        "w": w,
        "sample_weight": inputs.basis_labels * w,
        "beta": beta,
        "feature_weight": theta,
        "bias": np.asarray(rng.normal(0.0, h.bias_sd)),
    }
    eta = decision(point, inputs, h)
    return point | {"eta": eta, "y": rng.binomial(1, special.expit(eta))}


CARD = ModelCard(
    name="pfcvm",
    title="Probabilistic Feature selection and Classification Vector Machine",
    citation="Jiang et al. (2019), ACM TKDD 13(2), doi 10.1145/3309541",
    year=2019,
    link="logistic",
    priors="ARD: half-normal sample and feature weights, Gamma precisions; labels sign the basis",
    kernels=KERNELS,
    paper_method="pfcvm_lp",
    dims={
        "alpha": ("basis",),
        "sample_weight_raw": ("basis",),
        "w": ("basis",),
        "beta": ("feature",),
        "feature_weight_raw": ("feature",),
    },
    labels_in_basis=True,
)
