"""RFVM, the Relevance Feature and Vector Machine.

Belenguer-Llorens, Sevilla-Salcedo, Parrado-Hernandez, Gomez-Verdejo (2024), "The Relevance
Feature and Vector Machine for health applications", arXiv 2402.07135, section 3.1, eqs. (1)-(12).

The generative model
--------------------
X (N, D) inputs, Z (B, D) basis centres (the training inputs), y (N,) in {0, 1}::

    psi_j   ~ Gamma(a0, b0)                                 precision of a dual weight      (B,)
    a_j     ~ Normal(0, psi_j^-1/2)                         dual weight, `sample_weight`    (B,)
    delta_d ~ Gamma(a0, b0)                                 precision of a feature weight   (D,)
    v_d     ~ FoldedNormal(0, delta_d^-1/2)                 relevance, `feature_weight`     (D,)
    b       ~ Normal(0, bias_sd)                            bias, `bias`
    tau     ~ Gamma(noise_shape, noise_rate)                precision of the latent noise
    eta_n   = b + sum_d x_nd v_d sum_j z_jd a_j             decision value, `eta`           (N,)
    u_n     ~ Normal(eta_n, tau^-1/2)                       noisy decision value            (N,)
    y_n     ~ Bernoulli(sigmoid(u_n))                       label                           (N,)

The second argument of Normal and FoldedNormal is a standard deviation; Gamma is (shape, rate).
The kernel is linear in v, so the primal weights are w = v * (Z'a), shape (D,).

By default a0 = 1/2 and each weight has a slab: its density is multiplied by exp(-x^2 / (2 slab^2))
and renormalised. The result is a Cauchy for a, and a half-Cauchy for v, whose tail the slab cuts
off (`models/parts/slab.py`). The rates are computed from `active_features` and `active_samples`,
the prior expected numbers of visible weights (`models/parts/sparsity.py`). "all" instead of a
number gives the dense prior: a0 = 1.5, no slab.

The posterior can be written in two ways (`parametrization`), and the latent noise can be treated in
three (`latent_noise`):

    hierarchical   psi, delta explicit; a, v (and u) non-centred:
                   a_j = a_raw_j (psi_j + slab^-2)^-1/2, ...
    marginal       psi, delta integrated out: a Student-t and v half-Student-t with
                   nu = 2 a0 degrees of freedom and scale sqrt(b0 / a0), times the slab
    explicit       u is a variable, as in the paper
    integrated     u integrated out by quadrature; the same posterior of everything else
    none           y ~ Bernoulli(sigmoid(eta)), no tau: another posterior, for teaching and speed

Departures from the paper
-------------------------
- Priors are proper and scaled to the data: shape 1/2, computed rates and a slab. The released code
  uses shapes 1e-12 and rates 1e-14, with which every prior draw underflows. Shape 1/2 keeps the
  spike at zero and most of the long tail. The slab cuts off the tail, which separable data do not.
- tau's prior has noise_shape > 1. The likelihood tends to positive constants as tau goes to 0 and
  to infinity, so an improper prior leaves the posterior improper at both ends. E[1/tau | y] is
  finite only for noise_shape > 1.
- Sample and feature weights have separate shapes and rates.

Known difficulties
------------------
- (v / r, r a) gives the same eta, so only v * (Z'a) is identified. Check R-hat of `eta` first.
- With N > D, the data do not inform N - rank(Z) directions of a, which follow the prior.
- The centred form of u mixes badly, because the labels say little about u, which stays close to its
  prior. On digits38, R-hat of `eta` is 1.14 after 1000 + 1000 draws (non-centred: 1.004).
- For D >= N the marginal form mixes worse than the hierarchical one.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pymc as pm
from scipy import special, stats

from ardvark.common.declared import hyper

from .parts import ard
from .parts.distributions import (
    LogisticBernoulli,
    NoisyLogisticBernoulli,
    logistic_logp,
    noisy_logistic_logp,
)
from .parts.kernels import Kernel, make_kernel
from .parts.noisy_logistic import label_logp
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
    "The posterior is improper without a proper prior here: the likelihood tends to a positive "
    "constant along a ray."
)


@dataclass(frozen=True, kw_only=True)
class Hypers(SparseHypers["Priors"]):
    """Hyperparameters of RFVM, as specified. Those at None are computed from N, B and D."""

    kernel: Literal["linear"] = hyper(
        "linear", "kernel of a row and a basis centre", paper="linear"
    )
    latent_noise: Literal["explicit", "integrated", "none"] = hyper(
        "explicit",
        "latent noise before the link: a variable, integrated out, or none",
        paper="explicit",
    )
    parametrization: ard.Form = hyper(
        "hierarchical", "precisions integrated out (marginal) or explicit", paper="hierarchical"
    )
    active_features: float | Literal["all"] | None = active("feature")
    active_samples: float | Literal["all"] | None = active("sample")
    slab: float | None = logit_slab()
    sample_shape: float | None = shape(
        "sample",
        paper="1e-12",
        why="filled: 1/2; dense: 1.5 (a moment of order r needs shape > r / 2)",
        outside=_IMPROPER,
    )
    sample_rate: float | None = rate(
        "sample",
        paper="1e-14",
        why="filled from active_samples; dense: weight scale 1",
        outside=_IMPROPER,
    )
    sample_slab: float | None = own_slab("sample", why="filled from slab")
    feature_shape: float | None = shape(
        "feature", paper="1e-12", why="filled: 1/2; dense: 1.5", outside=_IMPROPER
    )
    feature_rate: float | None = rate(
        "feature",
        paper="1e-14",
        why="filled from active_features; dense: scale 1 / max(D, sqrt(N D))",
        outside=_IMPROPER,
    )
    feature_slab: float | None = own_slab("feature", why="filled: 1")
    bias_sd: float = hyper(1.0, BIAS_SD, above=0.0, paper="1")
    noise_shape: float = hyper(
        3.0,
        "shape of the Gamma prior of the precision tau of the latent noise",
        above=0.0,
        paper="1e-14",
        why="E[1/tau | y] is finite only above 1",
        outside=_IMPROPER,
    )
    noise_rate: float = hyper(
        3.0,
        "rate of the Gamma prior of the precision tau of the latent noise",
        above=0.0,
        paper="1e-14",
        why="proper at both ends, E[tau] = 1",
        outside=_IMPROPER,
    )

    def solve(self, N: int, B: int, D: int) -> "Priors":
        """Return the priors, with shapes, rates and slabs from the sizes of the data."""
        kernel = make_kernel(self.kernel)
        sample_scale, feature_scale = kernel.scales(N, D)
        slab, sample, feature = solve(
            Sizes(kernel, N, B, D),
            self.slab,
            Group(
                self.active_samples,
                self.sample_shape,
                self.sample_rate,
                self.sample_slab,
                1.5,
                sample_scale,
            ),
            Group(
                self.active_features,
                self.feature_shape,
                self.feature_rate,
                self.feature_slab,
                1.5,
                feature_scale,
            ),
        )
        return Priors(
            kernel=self.kernel,
            latent_noise=self.latent_noise,
            parametrization=self.parametrization,
            active_features=feature.active,
            active_samples=sample.active,
            slab=slab,
            sample_shape=sample.prior.shape,
            sample_rate=sample.prior.rate,
            sample_slab=sample.prior.slab,
            feature_shape=feature.prior.shape,
            feature_rate=feature.prior.rate,
            feature_slab=feature.prior.slab,
            bias_sd=self.bias_sd,
            noise_shape=self.noise_shape,
            noise_rate=self.noise_rate,
        )


@dataclass(frozen=True, kw_only=True)
class Priors(SparsePriors):
    """Every hyperparameter of RFVM, complete."""

    FORM: ClassVar[tuple[str, ...]] = ("parametrization", "latent_noise")

    kernel: Literal["linear"]
    latent_noise: Literal["explicit", "integrated", "none"]
    parametrization: ard.Form
    active_features: Active
    active_samples: Active
    slab: float
    sample_shape: float
    sample_rate: float
    sample_slab: float
    feature_shape: float
    feature_rate: float
    feature_slab: float
    bias_sd: float
    noise_shape: float
    noise_rate: float

    @property
    def sample_prior(self) -> ard.WeightPrior:
        """Prior of a and psi."""
        return ard.WeightPrior(self.sample_shape, self.sample_rate, self.sample_slab)

    @property
    def feature_prior(self) -> ard.WeightPrior:
        """Prior of v and delta."""
        return ard.WeightPrior(self.feature_shape, self.feature_rate, self.feature_slab)

    def kernel_of(self) -> Kernel:
        """Return the kernel."""
        return make_kernel(self.kernel)

    def weight_priors(self) -> dict[str, ard.WeightPrior]:
        """Return the priors of both kinds of weights."""
        return {"sample_weight": self.sample_prior, "feature_weight": self.feature_prior}

    def posterior_fields(self) -> dict[str, Any]:
        """Explicit and integrated noise are one posterior; none is another."""
        return super().posterior_fields() | {"noise": self.latent_noise != "none"}


# --- the PyMC model -------------------------------------------------------------------------------


def build(inputs: Inputs, y: np.ndarray, priors: Priors, coords: Coords) -> pm.Model:
    """Return the PyMC model, dims "obs" (N), "basis" (B), "feature" (D).

    Data and filled rates are `pm.Data`, so another fold of the same shape rebinds the compiled
    code.
    """
    h, form = priors, priors.parametrization
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", inputs.X, dims=("obs", "feature"))
        z = pm.Data("Z", inputs.Z, dims=("basis", "feature"))
        label = pm.Data("label", y, dims="obs")
        a = ard.weight("sample_weight", "sample", "psi", "basis", h.sample_prior, form, signed=True)
        v = ard.weight("feature_weight", "feature", "delta", "feature", h.feature_prior, form)
        b = pm.Normal("bias", 0.0, h.bias_sd)
        eta = pm.Deterministic("eta", b + h.kernel_of().product(x, z, v, a), dims="obs")

        if h.latent_noise == "none":
            LogisticBernoulli("y", eta, observed=label, dims="obs")
            return model
        tau = pm.Gamma("tau", h.noise_shape, h.noise_rate)
        if h.latent_noise == "integrated":
            NoisyLogisticBernoulli("y", eta, tau**-0.5, observed=label, dims="obs")
        else:
            u_raw = pm.Normal("u_raw", 0.0, 1.0, dims="obs")
            u = pm.Deterministic("u", eta + u_raw * tau**-0.5, dims="obs")
            LogisticBernoulli("y", u, observed=label, dims="obs")
    return model


# --- the same density from the paper, in NumPy ------------------------------------------------


def decision(point: Point, inputs: Inputs, priors: Priors) -> np.ndarray:
    """Return eta (..., N) = b + X diag(v) Z'a: RFVM (3)."""
    w = point["feature_weight"] * (point["sample_weight"] @ inputs.Z)  # (..., D)
    return np.asarray(point["bias"])[..., None] + w @ inputs.X.T


def log_predictive(y: Any, eta: np.ndarray, point: Point, priors: Priors) -> np.ndarray:
    """Return log P(y | eta, tau) with the latent noise integrated out, shape of eta."""
    if priors.latent_noise == "none":
        return logistic_logp(y, eta)
    return label_logp(y, eta, np.asarray(point["tau"])[..., None] ** -0.5)


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, priors: Priors) -> np.ndarray:
    """Return log p(y, variables | X): the density of the paper's variables, without Jacobian.

    The variables are those the form keeps: psi and delta only in the hierarchical form, u only
    with explicit noise, tau unless there is no noise.
    """
    h = priors
    psi, delta = (ard.precisions(point, name, h.parametrization) for name in ("psi", "delta"))
    total = (
        ard.logp(point["sample_weight"], psi, h.sample_prior, signed=True)
        + ard.logp(point["feature_weight"], delta, h.feature_prior)
        + stats.norm.logpdf(point["bias"], 0.0, h.bias_sd)
    )
    eta = decision(point, inputs, h)
    if h.latent_noise == "none":
        return total + logistic_logp(y, eta).sum(-1)
    tau = np.asarray(point["tau"])
    total = total + stats.gamma.logpdf(tau, h.noise_shape, scale=1 / h.noise_rate)
    if h.latent_noise == "integrated":
        return total + noisy_logistic_logp(y, eta, tau[..., None] ** -0.5).sum(-1)
    u = point["u"]
    return (
        total
        + stats.norm.logpdf(u, eta, tau[..., None] ** -0.5).sum(-1)
        + logistic_logp(y, u).sum(-1)
    )


def log_jacobian(point: Point, priors: Priors) -> np.ndarray:
    """Return log |d paper's variables / d unconstrained vector of the PyMC model|.

    The unconstrained vector holds log psi, a_raw, log delta, log v_raw (or a, log v), b, log tau
    and u_raw.
    """
    h = priors
    psi, delta = (ard.precisions(point, name, h.parametrization) for name in ("psi", "delta"))
    total = ard.log_jacobian(
        point["sample_weight"], psi, h.sample_prior, signed=True
    ) + ard.log_jacobian(point["feature_weight"], delta, h.feature_prior)
    if priors.latent_noise == "none":
        return total
    log_tau = np.log(point["tau"])
    total = total + log_tau
    if priors.latent_noise == "explicit":
        total = total - 0.5 * log_tau * point["u"].shape[-1]
    return total


def to_free(point: Point, inputs: Inputs, priors: Priors) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model at a point of the paper's variables."""
    h, form = priors, priors.parametrization
    free = {
        "bias": point["bias"],
        **ard.free(point, "sample_weight", "sample", "psi", h.sample_prior, form),
        **ard.free(point, "feature_weight", "feature", "delta", h.feature_prior, form),
    }
    if h.latent_noise != "none":
        free["tau"] = point["tau"]
    if h.latent_noise == "explicit":
        noise = point["u"] - decision(point, inputs, h)
        free["u_raw"] = noise * np.asarray(point["tau"])[..., None] ** 0.5
    return free


def simulate(rng: np.random.Generator, inputs: Inputs, priors: Priors) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable of the model, `eta`, and `y` (N,)."""
    h = priors
    check_simulable(h)
    psi, a = ard.draw(rng, h.sample_prior, inputs.B, signed=True)
    delta, v = ard.draw(rng, h.feature_prior, inputs.D)
    point: dict[str, np.ndarray] = {
        "psi": psi,
        "sample_weight": a,
        "delta": delta,
        "feature_weight": v,
        "bias": np.asarray(rng.normal(0.0, h.bias_sd)),
    }
    eta = decision(point, inputs, h)
    u = eta
    if h.latent_noise != "none":
        tau = rng.gamma(h.noise_shape, 1 / h.noise_rate)
        u = rng.normal(eta, tau**-0.5)
        point |= {"tau": np.asarray(tau), "u": u}
    point |= {"eta": eta, "y": rng.binomial(1, special.expit(u))}
    return point


CARD = ModelCard(
    name="rfvm",
    title="Relevance Feature and Vector Machine",
    citation="Belenguer-Llorens et al. (2024), arXiv 2402.07135",
    year=2024,
    link="logistic, with latent Gaussian noise",
    priors="ARD: normal sample weights, folded-normal feature weights, Gamma precisions",
    kernels=("linear",),
    paper_method="rfvm_vb",
    dims={
        "psi": ("basis",),
        "sample_weight_raw": ("basis",),
        "delta": ("feature",),
        "feature_weight_raw": ("feature",),
        "u": ("obs",),
        "u_raw": ("obs",),
    },
)
