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

Two ways to write the one posterior (`parametrization`), and three treatments of the latent noise
(`latent_noise`):

    hierarchical   psi, delta explicit; a, v (and u) non-centred: a_j = a_raw_j psi_j^-1/2, ...
    marginal       psi, delta integrated out: a Student-t and v half-Student-t with
                   nu = 2 a0 degrees of freedom and scale sqrt(b0 / a0)
    explicit       u is a variable, as in the paper
    integrated     u integrated out by quadrature; the same posterior of everything else
    none           y ~ Bernoulli(sigmoid(eta)), no tau: another posterior, for teaching and speed

Departures from the paper
-------------------------
- Priors are proper and scaled to the data: shape 1.5 and filled rates, where the released code
  uses shapes 1e-12 and rates 1e-14, whose every draw underflows.
- tau's prior has noise_shape > 1: the likelihood tends to positive constants as tau goes to 0 and
  to infinity, so an improper prior leaves the posterior improper at both ends, and E[1/tau | y] is
  finite only for noise_shape > 1.
- Sample and feature weights have their own shape and rate.

Known difficulties
------------------
- (v / r, r a) gives the same eta: only v * (Z'a) is identified; read R-hat on `eta` first.
- With N > D, N - rank(Z) directions of a are left to the prior.
- The centred form of u mixes badly (R-hat of `eta` 1.14 after 1000 + 1000 draws on digits38, where
  the non-centred form reaches 1.004): weakly informative labels leave u to its prior.
- For D >= N the marginal form mixes worse than the hierarchical one.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import special, stats

from ardvark.validate import positive

from .parts.ard import Form, GammaPrior, check_gamma
from .parts.distributions import (
    FoldedNormal,
    LogisticBernoulli,
    NoisyLogisticBernoulli,
    folded_normal_logp,
    logistic_logp,
    noisy_logistic_logp,
)
from .parts.kernels import default_scales, linear_decision
from .spec import BaseHypers, Coords, Inputs, ModelSpec, Point, check_simulable, hyper

_IMPROPER = (
    "The posterior is improper without a proper prior here: the likelihood tends to a positive "
    "constant along a ray."
)


@dataclass(frozen=True, kw_only=True)
class Hypers(BaseHypers):
    """Hyperparameters of RFVM. Rates left at None are filled from N and D (`filled`)."""

    FORM: ClassVar[tuple[str, ...]] = ("parametrization", "latent_noise")

    kernel: Literal["linear"] = hyper("linear", paper="linear")
    latent_noise: Literal["explicit", "integrated", "none"] = hyper("explicit", paper="explicit")
    parametrization: Form = hyper("hierarchical", paper="hierarchical")
    sample_shape: float = hyper(
        1.5, paper="1e-12", why="a moment of order r of a weight needs shape > r / 2"
    )
    sample_rate: float | None = hyper(
        None, paper="1e-14", why="filled: weight scale sqrt(rate / shape) = 1"
    )
    feature_shape: float = hyper(1.5, paper="1e-12", why="as sample_shape")
    feature_rate: float | None = hyper(
        None, paper="1e-14", why="filled: weight scale 1 / max(D, sqrt(N D))"
    )
    bias_sd: float = hyper(1.0, paper="1")
    noise_shape: float = hyper(3.0, paper="1e-14", why="E[1/tau | y] is finite only above 1")
    noise_rate: float = hyper(3.0, paper="1e-14", why="proper at both ends, E[tau] = 1")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_gamma("sample", self.sample_shape, self.sample_rate, _IMPROPER)
        check_gamma("feature", self.feature_shape, self.feature_rate, _IMPROPER)
        check_gamma("noise", self.noise_shape, self.noise_rate, _IMPROPER)
        positive("bias_sd", self.bias_sd)

    def filled(self, N: int, B: int, D: int) -> "Hypers":
        """Return a copy with the rates set, so that eta has a useful prior range."""
        sample_scale, feature_scale = default_scales(self.kernel, N, D)
        return replace(
            self,
            sample_rate=_or(self.sample_rate, self.sample_shape * sample_scale**2),
            feature_rate=_or(self.feature_rate, self.feature_shape * feature_scale**2),
        )

    @property
    def sample_prior(self) -> GammaPrior:
        """Hyperprior of psi."""
        return GammaPrior.filled(self.sample_shape, self.sample_rate)

    @property
    def feature_prior(self) -> GammaPrior:
        """Hyperprior of delta."""
        return GammaPrior.filled(self.feature_shape, self.feature_rate)

    def posterior_fields(self) -> dict[str, Any]:
        """Explicit and integrated noise are one posterior; none is another."""
        return super().posterior_fields() | {"noise": self.latent_noise != "none"}


# --- the PyMC model -------------------------------------------------------------------------------


def build(inputs: Inputs, y: np.ndarray, hypers: Hypers, coords: Coords) -> pm.Model:
    """Return the PyMC model, dims "obs" (N), "basis" (B), "feature" (D).

    Data and filled rates are `pm.Data`, so another fold of the same shape rebinds the compiled
    code.
    """
    h = hypers
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", inputs.X, dims=("obs", "feature"))
        z = pm.Data("Z", inputs.Z, dims=("basis", "feature"))
        label = pm.Data("label", y, dims="obs")
        sample_rate = pm.Data("sample_rate", h.sample_rate)
        feature_rate = pm.Data("feature_rate", h.feature_rate)

        if h.parametrization == "hierarchical":
            # a_j ~ Normal(0, psi_j^-1/2) and v_d ~ FoldedNormal(0, delta_d^-1/2), non-centred
            psi = pm.Gamma("psi", h.sample_shape, sample_rate, dims="basis")
            a_raw = pm.Normal("sample_weight_raw", 0.0, 1.0, dims="basis")
            a = pm.Deterministic("sample_weight", a_raw * psi**-0.5, dims="basis")
            delta = pm.Gamma("delta", h.feature_shape, feature_rate, dims="feature")
            v_raw = FoldedNormal("feature_weight_raw", 0.0, 1.0, dims="feature")
            v = pm.Deterministic("feature_weight", v_raw * delta**-0.5, dims="feature")
        else:
            a = pm.StudentT(
                "sample_weight",
                nu=2.0 * h.sample_shape,
                mu=0.0,
                sigma=pt.sqrt(sample_rate / h.sample_shape),
                dims="basis",
            )
            v = pm.HalfStudentT(
                "feature_weight",
                nu=2.0 * h.feature_shape,
                sigma=pt.sqrt(feature_rate / h.feature_shape),
                dims="feature",
            )

        b = pm.Normal("bias", 0.0, h.bias_sd)
        eta = pm.Deterministic("eta", b + linear_decision(x, z, v, a), dims="obs")

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


def decision(point: Point, inputs: Inputs, hypers: Hypers) -> np.ndarray:
    """Return eta (..., N) = b + X diag(v) Z'a."""
    w = point["feature_weight"] * (point["sample_weight"] @ inputs.Z)  # (..., D)
    return np.asarray(point["bias"])[..., None] + w @ inputs.X.T


def log_predictive(y: Any, eta: np.ndarray, point: Point, hypers: Hypers) -> np.ndarray:
    """Return log P(y | eta, tau) with the latent noise integrated out, shape of eta."""
    if hypers.latent_noise == "none":
        return logistic_logp(y, eta)
    return noisy_logistic_logp(y, eta, np.asarray(point["tau"])[..., None] ** -0.5)


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, hypers: Hypers) -> np.ndarray:
    """Return log p(y, variables | X): the density of the paper's variables, without Jacobian.

    The variables are those the form keeps: psi and delta only in the hierarchical form, u only
    with explicit noise, tau unless there is no noise.
    """
    h, sample, feature = hypers, hypers.sample_prior, hypers.feature_prior
    a, v = point["sample_weight"], point["feature_weight"]
    if h.parametrization == "hierarchical":
        psi, delta = point["psi"], point["delta"]
        weights = (
            stats.gamma.logpdf(psi, sample.shape, scale=1 / sample.rate).sum(-1)
            + stats.norm.logpdf(a, 0.0, psi**-0.5).sum(-1)
            + stats.gamma.logpdf(delta, feature.shape, scale=1 / feature.rate).sum(-1)
            + folded_normal_logp(v, 0.0, delta**-0.5).sum(-1)
        )
    else:
        half = np.where(v >= 0.0, np.log(2.0), -np.inf)  # the half-Student-t
        weights = stats.t.logpdf(a, 2 * sample.shape, scale=sample.scale).sum(-1) + (
            stats.t.logpdf(v, 2 * feature.shape, scale=feature.scale) + half
        ).sum(-1)
    total = weights + stats.norm.logpdf(point["bias"], 0.0, h.bias_sd)
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


def log_jacobian(point: Point, hypers: Hypers) -> np.ndarray:
    """Return log |d paper's variables / d unconstrained vector of the PyMC model|.

    The unconstrained vector holds log psi, a_raw, log delta, log v_raw (or a, log v), b, log tau
    and u_raw. From v = v_raw delta^-1/2, dv / d log v_raw = v, and so on.
    """
    total = np.log(point["feature_weight"]).sum(-1)
    if hypers.parametrization == "hierarchical":
        # d psi / d log psi = psi and da / d a_raw = psi^-1/2; d delta / d log delta = delta
        total = total + 0.5 * np.log(point["psi"]).sum(-1) + np.log(point["delta"]).sum(-1)
    if hypers.latent_noise == "none":
        return total
    log_tau = np.log(point["tau"])
    total = total + log_tau
    if hypers.latent_noise == "explicit":
        total = total - 0.5 * log_tau * point["u"].shape[-1]
    return total


def to_free(point: Point, inputs: Inputs, hypers: Hypers) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model at a point of the paper's variables."""
    h = hypers
    free = {"bias": point["bias"]}
    if h.parametrization == "hierarchical":
        free |= {
            "psi": point["psi"],
            "sample_weight_raw": point["sample_weight"] * point["psi"] ** 0.5,
            "delta": point["delta"],
            "feature_weight_raw": point["feature_weight"] * point["delta"] ** 0.5,
        }
    else:
        free |= {k: point[k] for k in ("sample_weight", "feature_weight")}
    if h.latent_noise != "none":
        free["tau"] = point["tau"]
    if h.latent_noise == "explicit":
        noise = point["u"] - decision(point, inputs, h)
        free["u_raw"] = noise * np.asarray(point["tau"])[..., None] ** 0.5
    return free


def simulate(rng: np.random.Generator, inputs: Inputs, hypers: Hypers) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable of the model, `eta`, and `y` (N,)."""
    h = hypers
    check_simulable(h)
    D, B = inputs.D, inputs.B
    psi = rng.gamma(h.sample_shape, 1 / h.sample_prior.rate, (B,))
    delta = rng.gamma(h.feature_shape, 1 / h.feature_prior.rate, (D,))
    point: dict[str, np.ndarray] = {
        "psi": psi,
        "sample_weight": rng.normal(0.0, psi**-0.5),
        "delta": delta,
        "feature_weight": np.abs(rng.normal(0.0, delta**-0.5)),
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


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


SPEC = ModelSpec.of(
    globals(),
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
