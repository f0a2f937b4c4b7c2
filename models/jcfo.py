"""JCFO, joint classifier and feature optimization.

Krishnapuram, Carin, Hartemink (2004), "Joint Classifier and Feature Optimization for Comprehensive
Cancer Diagnosis Using Gene Expression Data", J. Comput. Biol. 11, sections 2 and 3, eqs. (3)-(17).

The generative model
--------------------
X (N, D) inputs, Z (B, D) basis centres (the training inputs), y (N,) in {0, 1}::

    tau_0   ~ Exponential(gamma1 / 2)              (11)  variance of the bias, `tau_bias`
    beta_0  ~ Normal(0, tau_0^1/2)                 (10)  bias, `bias`
    tau_j   ~ Exponential(gamma1 / 2)              (11)  variance of a sample weight       (B,)
    beta_j  ~ Normal(0, tau_j^1/2)                 (10)  sample weight, `sample_weight`    (B,)
    g       ~ C+(0, 1)                             learned scale, `feature_scale`
    rho_k   ~ Exponential(gamma2 / (2 g^2))        (14)  variance of a feature weight      (D,)
    theta_k ~ N+(0, rho_k)                         (13)  relevance, `feature_weight`       (D,)
    eta_i   = beta_0 + sum_j beta_j K_theta(x_i, z_j)  (7), (17)  decision value, `eta`    (N,)
    z_i     ~ Normal(eta_i, 1)                     (16)  latent decision value             (N,)
    y_i     = 1(z_i > 0)                           (16)  label                             (N,)

Exponential takes a rate, the second argument of Normal is a standard deviation and that of N+ a
variance. With z integrated out, P(y_i = 1) = Phi(eta_i) (3); with tau and rho integrated out,
beta_j ~ Laplace(scale gamma1^-1/2) (12) and theta_k ~ Exponential(rate gamma2^1/2 / g) (15).

g is half-Cauchy, its tail cut off at `SCALE_SLAB` as a slab cuts off that of a weight; with
`scale="fixed"` it is 1. It multiplies the scale of theta alone. Under a linear kernel only the
product of both scales matters to the slopes, so one factor is enough; of the two it is theta's,
because that of beta is the intercept's scale too, which N and the classes determine and not D.
Under `rbf` it is the width of the kernel that is learned. gamma2^-1/2, filled or given, is the
median of the scale of theta: for the prior (15) at exactly that gamma2, give `scale="fixed"`.

Kernels: `polynomial` is (1 + sum_k theta_k x_k z_k)^degree (8), and **what the paper calls its
linear kernel is the polynomial one of degree 1**, the default here; `linear` leaves out the 1,
`rbf` is exp(-sum_k theta_k (x_k - z_k)^2). With the 1, sum_j beta_j acts as a second intercept.

The posterior can be written in three ways (`parametrization`)::

    marginal       tau, rho and z integrated out
    hierarchical   tau, rho explicit; beta_j = beta_raw_j tau_j^1/2, theta_k = theta_raw_k rho_k^1/2
                   (non-centred); z integrated out
    latent         as hierarchical, with z explicit: z_i = s_i z_abs_i, s = 2y - 1, z_abs > 0

The latent form has the variables of the exact Gibbs sampler (z, beta, tau, theta, rho). z stays
centred, because given y it must lie on one side of 0, which eta + noise would not guarantee. Its
PyMC model factors p(y, z | eta) as P(y | eta) p(z | y, eta). So predictive draws of y come from
Phi(eta), and draws of z are conditional on the observed labels.

Departures from the paper
-------------------------
- gamma1 and gamma2 are computed from N and D. The paper chooses them on a hold-out set of 10 %
  within each fold. Here the whole posterior is reported, not one mode.
- The paper has no g. The filled scale is the kernel's, whatever the data. Log score of five cold
  folds: on colon -0.47 (g = 1: -0.60, L1 logistic regression -0.44), on golub -0.14 (-0.55, which
  is the share of the larger class; L1 -0.15), on lymphoma -0.24 (-0.41, L1 -0.19). Park and Casella
  (2008, doi 10.1198/016214508000000337) put a Gamma prior on gamma itself. Its density falls
  exponentially in g^-2: thousands of features of which few matter need a small g, which the
  half-Cauchy allows.
- Under g the posterior has no mode, and the paper's algorithm, which looks for one, no step: as
  theta = g t and g fall to 0, the density grows like g^-D. It needs `scale="fixed"`.
- The kernels `linear` and `rbf` are offered too, for comparison with the other models.
- The variance tau_0 of the bias is named tau_bias; its prior is that of every beta, as printed.

Known difficulties
------------------
- With the linear kernel (theta / r, r beta) gives the same eta, and with degree 1 it does so up to
  the intercept. Only theta_k (Z'beta)_k is identified: check R-hat of `eta` first. Likewise only
  the product of the two prior scales matters to eta, up to the intercept.
- The bias shares the prior of the sample weights. With many samples (polynomial, rbf) the default
  scale shrinks like N^-1/2, which conflicts with unbalanced classes.
- With a fixed scale the density of the paper's variables has a local maximum at beta_1..B = 0,
  theta = 0, whatever the data; a search for the mode can end there.
- With N > D and no 1 in the kernel, the data do not inform N - rank(Z) directions of beta, which
  follow the prior.
- The marginal Laplace and exponential priors have a corner at 0, for which NUTS needs trees two
  levels deeper. With the rbf kernel on sonar, `marginal` gives a quarter of the effective draws of
  `eta` per second that `hierarchical`, the default, gives. `latent` gives half, because z and eta
  move together; at degree 2, 1 % of its transitions diverge even at 12 x 3
  (`lab/algorithms/ALGORITHMS.md`). `gibbs` supports every form.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pymc as pm
from scipy import stats

from ardvark.common.declared import hyper

from .parts import ard, covariates
from .parts.kernels import KernelName, kernel_hyper
from .parts.probit import PositiveNormal, ProbitBernoulli, probit_logp
from .parts.slab import SlabStudentT
from .spec import BaseHypers, Coords, Inputs, ModelCard, Point

_IMPROPER = (
    "It is the squared rate of a Laplace or exponential prior: at 0 the prior is flat, and the "
    "posterior improper on separable data. Leave it out to fill it from N and D."
)
MEDIAN = "the median of the scale where that is learned"
Form = Literal["marginal", "hierarchical", "latent"]

Scale = Literal["fixed", "learned"]
"""Whether the filled scale of the feature weights is their scale, or the median of its prior."""

SCALE = "feature_scale"
SCALE_SLAB = 100.0
"""Where the tail of a learned scale is cut off: p(g) is proportional to exp(-(g / 100)^2 / 2) /
(1 + g^2). On separable data every large g is as likely as its prior says, and without the cut the
posterior mean of eta would be infinite. At 100 times the filled scale every label is certain."""
SCALE_PRIOR = ard.WeightPrior(np.float64(0.5), np.float64(0.5), np.float64(SCALE_SLAB))


def laplace_hyper(weight: str, why: str) -> Any:
    """Declare the gamma of weights with the variance Exponential(gamma / 2) each (11), (14)."""
    return hyper(
        None,
        f"squared rate of the prior of {weight}, whose scale is gamma^-1/2",
        above=0.0,
        paper="by hold-out",
        why=why,
        outside=_IMPROPER,
    )


def scale_hyper() -> Any:
    """Declare whether the scale of the feature weights is learned."""
    return hyper(
        "learned",
        "scale of the feature weights: the filled one, or that times a variable feature_scale ~ "
        "C+(0, 1), whose median is 1, its tail cut off at 100",
        paper="fixed",
        why="what suits few features is far too small for thousands",
    )


@dataclass(frozen=True, kw_only=True)
class Hypers(BaseHypers):
    """Hyperparameters of JCFO. gamma1 and gamma2 at None are filled from N and D."""

    FORM: ClassVar[tuple[str, ...]] = ("parametrization",)

    kernel: KernelName = kernel_hyper("polynomial", paper="polynomial")
    degree: int = hyper(
        1,
        "power P of the polynomial kernel (1 + x'z)^P",
        at_least=1,
        paper="1 and 2",
        why="of the polynomial kernel; others ignore it",
        outside="Degree 1 is what the paper calls its linear kernel.",
    )
    parametrization: Form = hyper(
        "hierarchical",
        "variances integrated out (marginal), explicit, or explicit with the latent z",
        paper="latent",
        why="mixes best under NUTS",
    )
    gamma1: float = laplace_hyper(
        "the bias and a sample weight", "filled: sample weight scale gamma1^-1/2 by kernel"
    )
    gamma2: float = laplace_hyper(
        "a feature weight", f"filled: feature weight scale gamma2^-1/2 by kernel; {MEDIAN}"
    )
    scale: Scale = scale_hyper()
    covariate_sd: float = covariates.sd_hyper(covariates.PROBIT_SD)

    def fill(self, N: int, B: int, D: int) -> Self:
        """Return a copy with gamma1 and gamma2 such that eta has a useful prior range."""
        sample_scale, feature_scale = self.kernel_of().scales(N, D)
        return replace(
            self,
            gamma1=float(sample_scale**-2 if self.gamma1 is None else self.gamma1),
            gamma2=float(feature_scale**-2 if self.gamma2 is None else self.gamma2),
        )

    @property
    def gammas(self) -> dict[str, float]:
        """The squared rates by name."""
        return {"gamma1": self.gamma1, "gamma2": self.gamma2}

    def posterior_fields(self) -> dict[str, Any]:
        """The degree is part of the posterior only where the kernel has one."""
        used = self.degree if self.kernel_of().has_degree else None
        return super().posterior_fields() | {"degree": used}


# --- the PyMC model -------------------------------------------------------------------------------


def build(inputs: Inputs, y: np.ndarray, h: Hypers, coords: Coords) -> pm.Model:
    """Return the PyMC model, dims "obs" (N), "basis" (B), "feature" (D).

    Data, gamma1 and gamma2 are `pm.Data`, so another fold of the same shape rebinds the compiled
    code.
    """
    marginal = h.parametrization == "marginal"
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", inputs.X, dims=("obs", "feature"))
        centres = pm.Data("Z", inputs.Z, dims=("basis", "feature"))
        label = pm.Data("label", y, dims="obs")
        gamma1, gamma2 = pm.Data("gamma1", h.gamma1), pm.Data("gamma2", h.gamma2)
        gamma2 = declare_scale(gamma2, h)

        bias = laplace("bias", gamma1, None if marginal else "tau_bias")
        beta = laplace("sample_weight", gamma1, None if marginal else "tau", dims="basis")
        if marginal:
            theta = pm.Exponential("feature_weight", gamma2**0.5, dims="feature")
        else:
            # theta_k ~ N+(0, rho_k), non-centred
            rho = pm.Exponential("rho", gamma2 / 2.0, dims="feature")
            theta_raw = pm.HalfNormal("feature_weight_raw", 1.0, dims="feature")
            theta = pm.Deterministic("feature_weight", theta_raw * rho**0.5, dims="feature")

        score = h.kernel_of().product(x, centres, theta, beta)
        eta = covariates.declare(inputs, h, bias + score)
        eta = pm.Deterministic("eta", eta, dims="obs")

        if h.parametrization == "latent":
            # P(y | eta) below times p(z | y, eta) here is N(z | eta, 1) on the side of y
            sign = 2.0 * label - 1.0
            z_abs = PositiveNormal("z_abs", sign * eta, dims="obs")
            pm.Deterministic("z", sign * z_abs, dims="obs")
        ProbitBernoulli("y", eta, observed=label, dims="obs")
    return model


def declare_scale(gamma: Any, h: BaseHypers) -> Any:
    """Return gamma of the weights whose scale g multiplies, with g a PyMC variable if learned."""
    if h.learned_scale is None:
        return gamma
    shape, rate, slab = SCALE_PRIOR
    return gamma / SlabStudentT(SCALE, shape, rate, slab, SCALE_PRIOR.log_mass, signed=False) ** 2


def laplace(name: str, gamma: Any, variance: str | None, dims: str | None = None) -> Any:
    """Return a PyMC variable with the prior Laplace(scale gamma^-1/2) (12).

    With a name for its `variance` that variance is a variable too, and the value non-centred
    (10), (11).
    """
    if variance is None:
        return pm.Laplace(name, 0.0, gamma**-0.5, dims=dims)
    tau = pm.Exponential(variance, gamma / 2.0, dims=dims)
    raw = pm.Normal(f"{name}_raw", 0.0, 1.0, dims=dims)
    return pm.Deterministic(name, raw * tau**0.5, dims=dims)


# --- the same density from the paper, in NumPy ------------------------------------------------


def scaled(gamma: Any, point: Point, h: BaseHypers) -> Any:
    """Return gamma (...,) of the weights whose scale g multiplies."""
    return gamma if h.learned_scale is None else gamma / np.square(point[SCALE])


def scale_logp(point: Point, h: BaseHypers) -> Any:
    """Return log p(g), 0 if the scale is fixed."""
    if h.learned_scale is None:
        return 0.0
    return ard.logp(np.asarray(point[SCALE])[..., None], None, SCALE_PRIOR)


def scale_jacobian(point: Point, h: BaseHypers) -> Any:
    """Return log |d g / d log g|, 0 if the scale is fixed."""
    return 0.0 if h.learned_scale is None else np.log(point[SCALE])


def scale_free(point: Point, h: BaseHypers) -> dict[str, np.ndarray]:
    """Return g by name, nothing if the scale is fixed."""
    return {} if h.learned_scale is None else {SCALE: point[SCALE]}


def simulate_scale(rng: np.random.Generator, h: BaseHypers) -> dict[str, np.ndarray]:
    """Return a draw of g by name, nothing if the scale is fixed."""
    return {} if h.learned_scale is None else {SCALE: ard.draw(rng, SCALE_PRIOR, 1)[1][0]}


def laplace_logp(beta: Any, gamma: Any, tau: np.ndarray | None) -> np.ndarray:
    """Return log p(beta), JCFO (12), or given tau log p(beta, tau), JCFO (10), JCFO (11)."""
    if tau is None:
        return stats.laplace.logpdf(beta, scale=gamma**-0.5)
    return _variance_logp(tau, gamma) + stats.norm.logpdf(beta, 0.0, _sd(tau))


def _exponential_logp(theta: Any, gamma: Any, rho: np.ndarray | None) -> np.ndarray:
    """Return log p(theta), JCFO (15), or log p(theta, rho), JCFO (13), JCFO (14); -inf below 0."""
    if rho is None:
        return stats.expon.logpdf(theta, scale=gamma**-0.5)
    return _variance_logp(rho, gamma) + stats.halfnorm.logpdf(theta, 0.0, _sd(rho))


def _variance_logp(tau: np.ndarray, gamma: Any) -> np.ndarray:
    return np.where(tau > 0.0, stats.expon.logpdf(tau, scale=2.0 / gamma), -np.inf)


def _sd(tau: np.ndarray) -> np.ndarray:
    """Return the root of a variance; 1 outside the support, where its own density is 0."""
    return np.sqrt(np.where(tau > 0.0, tau, 1.0))


def decision(point: Point, inputs: Inputs, h: Hypers) -> np.ndarray:
    """Return eta (..., N) = beta_0 + K_theta(X, Z) beta: JCFO (7).

    Kernels of degree 1 take two products with all draws at once; for the others the kernel matrix
    is formed for one draw at a time, O(N B) memory.
    """
    theta, beta = np.asarray(point["feature_weight"]), np.asarray(point["sample_weight"])
    eta = h.kernel_of().decision(inputs.X, inputs.Z, theta, beta, point["bias"])
    return covariates.added(eta, point, inputs)


def log_predictive(y: Any, eta: np.ndarray, point: Point, h: BaseHypers) -> np.ndarray:
    """Return log P(y | eta) = log Phi(s eta), shape of eta: the latent noise is integrated out."""
    return probit_logp(y, eta)


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, h: Hypers) -> np.ndarray:
    """Return log p(y, variables | X): the density of the paper's variables, without Jacobian.

    The variables are those the form keeps: tau, tau_bias and rho unless it is marginal, z only in
    the latent form, and g if the scale is learned. It is -inf where a theta is negative or a z on
    the wrong side of 0.
    """
    variance = {} if h.parametrization == "marginal" else point
    gamma2 = np.asarray(scaled(h.gamma2, point, h))[..., None]
    total = (
        laplace_logp(point["bias"], h.gamma1, variance.get("tau_bias"))
        + laplace_logp(point["sample_weight"], h.gamma1, variance.get("tau")).sum(-1)
        + _exponential_logp(point["feature_weight"], gamma2, variance.get("rho")).sum(-1)
        + scale_logp(point, h)
        + covariates.logp(point, inputs, h)
    )
    eta = decision(point, inputs, h)
    if h.parametrization != "latent":
        return total + probit_logp(y, eta).sum(-1)
    z = point["z"]
    agree = np.where((z > 0.0) == (np.asarray(y) == 1), 0.0, -np.inf)
    return total + (stats.norm.logpdf(z, eta, 1.0) + agree).sum(-1)


def log_jacobian(point: Point, h: Hypers) -> np.ndarray:
    """Return log |d paper's variables / d unconstrained vector of the PyMC model|.

    The unconstrained vector holds beta and log theta (marginal), or log tau, beta_raw, log rho and
    log theta_raw, and log z_abs (latent); and log g if the scale is learned.
    """
    total = np.log(point["feature_weight"]).sum(-1)  # d theta / d log theta_raw = theta
    total = total + scale_jacobian(point, h)
    if h.parametrization == "marginal":
        return total
    total = total + np.log(point["rho"]).sum(-1) + laplace_jacobian(point["tau"]).sum(-1)
    total = total + laplace_jacobian(point["tau_bias"])
    if h.parametrization == "latent":
        total = total + np.log(np.abs(point["z"])).sum(-1)  # d z / d log z_abs = z
    return total


def laplace_jacobian(tau: Any) -> np.ndarray:
    """Return log |d (beta, tau) / d (beta_raw, log tau)| = log tau^1/2 tau."""
    return 1.5 * np.log(tau)


def to_free(point: Point, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model at a point of the paper's variables."""
    free = covariates.free(point, inputs) | scale_free(point, h)
    if h.parametrization == "marginal":
        return free | {k: point[k] for k in ("bias", "sample_weight", "feature_weight")}
    free |= {k: point[k] for k in ("tau_bias", "tau", "rho")}
    free |= {
        "bias_raw": point["bias"] * point["tau_bias"] ** -0.5,
        "sample_weight_raw": point["sample_weight"] * point["tau"] ** -0.5,
        "feature_weight_raw": point["feature_weight"] * point["rho"] ** -0.5,
    }
    if h.parametrization == "latent":
        free["z_abs"] = np.abs(point["z"])
    return free


def simulate(rng: np.random.Generator, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable of the model, `eta`, and `y` (N,) = 1(z > 0)."""
    tau_bias, bias = simulate_laplace(rng, h.gamma1, ())
    tau, beta = simulate_laplace(rng, h.gamma1, (inputs.B,))
    scale = simulate_scale(rng, h)
    rho, theta = simulate_laplace(rng, scaled(h.gamma2, scale, h), (inputs.D,))
    point: dict[str, np.ndarray] = {
        "tau_bias": tau_bias,
        "bias": bias,
        "tau": tau,
        "sample_weight": beta,
        "rho": rho,
        "feature_weight": np.abs(theta),
        **scale,
    }
    point |= covariates.draw(rng, inputs, h)
    eta = decision(point, inputs, h)
    z = rng.normal(eta, 1.0)
    return point | {"eta": eta, "z": z, "y": (z > 0.0).astype(np.int64)}


def simulate_laplace(
    rng: np.random.Generator, gamma: Any, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of a variance (11) and of the weight that has it (10)."""
    tau = np.asarray(rng.exponential(2.0 / gamma, shape))
    return tau, np.asarray(rng.normal(0.0, np.sqrt(tau)))


CARD = ModelCard(
    name="jcfo",
    title="Joint Classifier and Feature Optimization",
    citation="Krishnapuram, Carin & Hartemink (2004), J. Comput. Biol. 11",
    year=2004,
    link="probit",
    priors="Laplace sample weights, exponential feature weights, scale of the features learned",
    paper_method="jcfo_em",
    variables={
        "basis": ("tau", "sample_weight_raw"),
        "feature": ("rho", "feature_weight_raw"),
        "obs": ("z", "z_abs"),
    },
)
