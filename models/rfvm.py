"""RFVM, the Relevance Feature and Vector Machine.

Belenguer-Llorens, Sevilla-Salcedo, Parrado-Hernandez, Gomez-Verdejo (2024), "The Relevance
Feature and Vector Machine for health applications", arXiv 2402.07079, section 3.1, eqs. (1)-(12).
psi, a, b and tau are introduced in the text after (2); (5)-(12) list the distributions.

The generative model
--------------------
X (N, D) inputs, Z (B, D) basis centres (the training inputs), y (N,) in {0, 1}::

    psi_j   ~ Gamma(a0, b0)                            (2)  precision of a dual weight      (B,)
    a_j     ~ Normal(0, psi_j^-1/2)                    (2)  dual weight, `sample_weight`    (B,)
    delta_d ~ Gamma(a0, b0)                            (4)  precision of a feature weight   (D,)
    v_d     ~ FoldedNormal(0, delta_d^-1/2)            (4)  relevance, `feature_weight`     (D,)
    b       ~ Normal(0, bias_sd)                       (2)  bias, `bias`
    tau     ~ Gamma(noise_shape, noise_rate)           (2)  precision of the latent noise
    eta_n   = b + sum_d x_nd v_d sum_j z_jd a_j        (3)  decision value, `eta`           (N,)
    u_n     ~ Normal(eta_n, tau^-1/2)                  (3)  noisy decision value            (N,)
    y_n     ~ Bernoulli(sigmoid(u_n))                  (1)  label                           (N,)

The second argument of Normal and FoldedNormal is a standard deviation; Gamma is (shape, rate).
The kernel is linear in v, so the primal weights are w = v * (Z'a), shape (D,).

(a0, b0) stands for (sample_shape, sample_rate) in the line of psi, and for (feature_shape,
feature_rate) in that of delta. By default a0 = 1/2 and each weight x has a slab: the joint density
of x and its precision is multiplied by exp(-x^2 / (2 slab^2)), with one constant for both. So psi
and delta are no longer exactly Gamma, a is a Cauchy and v a half-Cauchy, and the slab cuts off
their tails (`models/parts/slab.py`). The rates are computed from `active_features` and
`active_samples`, the prior expected numbers of visible weights (`models/parts/sparsity.py`). "all"
instead of a number gives the dense prior: a0 = 1.5, no slab.

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
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pymc as pm
from scipy import special, stats

from ardvark.common.declared import hyper

from . import sparse
from .parts import ard, covariates
from .parts.distributions import (
    LogisticBernoulli,
    NoisyLogisticBernoulli,
    logistic_logp,
    noisy_logistic_logp,
)
from .parts.kernels import kernel_hyper
from .parts.noisy_logistic import label_logp
from .spec import Coords, Inputs, ModelCard, Point

A = ard.Weights("sample_weight", "psi", "sample", signed=True)
V = ard.Weights("feature_weight", "delta", "feature")

_IMPROPER = (
    "The posterior is improper without a proper prior here: the likelihood tends to a positive "
    "constant along a ray."
)
_shape, _rate = (partial(declare, outside=_IMPROPER) for declare in (sparse.shape, sparse.rate))


@dataclass(frozen=True, kw_only=True)
class Hypers(sparse.SparseHypers):
    """Hyperparameters of RFVM. Those left at None are filled from N, B and D."""

    FORM: ClassVar[tuple[str, ...]] = ("parametrization", "latent_noise")

    kernel: Literal["linear"] = kernel_hyper("linear", paper="linear")
    latent_noise: Literal["explicit", "integrated", "none"] = hyper(
        "explicit",
        "latent noise before the link: a variable, integrated out, or none",
        paper="explicit",
    )
    parametrization: ard.Form = sparse.form_hyper("hierarchical")
    active_features: sparse.Active = sparse.active("feature")
    active_samples: sparse.Active = sparse.active("sample")
    slab: float = sparse.logit_slab()
    sample_shape: float = _shape("sample", paper="1e-12", why=sparse.DENSE_SHAPE)
    sample_rate: float = _rate(
        "sample", paper="1e-14", why="filled from active_samples; dense: weight scale 1"
    )
    sample_slab: float = sparse.own_slab("sample", why="filled from slab")
    feature_shape: float = _shape("feature", paper="1e-12", why="filled: 1/2; dense: 1.5")
    feature_rate: float = _rate(
        "feature",
        paper="1e-14",
        why="filled from active_features; dense: scale 1 / max(D, sqrt(N D))",
    )
    feature_slab: float = sparse.own_slab("feature", why="filled: 1")
    bias_sd: float = sparse.bias_hyper(paper="1")
    covariate_sd: float = covariates.sd_hyper()
    noise_shape: float = _shape(
        "tau of the latent noise", 3.0, paper="1e-14", why="E[1/tau | y] is finite only above 1"
    )
    noise_rate: float = _rate(
        "tau of the latent noise", 3.0, paper="1e-14", why="proper at both ends, E[tau] = 1"
    )

    def posterior_fields(self) -> dict[str, Any]:
        """Explicit and integrated noise are one posterior; none is another."""
        return super().posterior_fields() | {"noise": self.latent_noise != "none"}


# --- the PyMC model -------------------------------------------------------------------------------


def build(inputs: Inputs, y: np.ndarray, h: Hypers, coords: Coords) -> pm.Model:
    """Return the PyMC model, dims "obs" (N), "basis" (B), "feature" (D).

    Data and filled rates are `pm.Data`, so another fold of the same shape rebinds the compiled
    code.
    """
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", inputs.X, dims=("obs", "feature"))
        z = pm.Data("Z", inputs.Z, dims=("basis", "feature"))
        label = pm.Data("label", y, dims="obs")
        a = A.declare(h)  # a_j ~ Normal(0, psi_j^-1/2), psi_j ~ Gamma, with their slab
        v = V.declare(h)  # v_d ~ FoldedNormal(0, delta_d^-1/2), delta_d ~ Gamma
        b = pm.Normal("bias", 0.0, h.bias_sd)
        eta = covariates.declare(inputs, h, b + h.kernel_of().product(x, z, v, a))
        eta = pm.Deterministic("eta", eta, dims="obs")

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


def decision(point: Point, inputs: Inputs, h: Hypers) -> np.ndarray:
    """Return eta (..., N) = b + X diag(v) Z'a: RFVM (3)."""
    w = point["feature_weight"] * (point["sample_weight"] @ inputs.Z)  # (..., D)
    eta = np.asarray(point["bias"])[..., None] + w @ inputs.X.T
    return covariates.added(eta, point, inputs)


def log_predictive(y: Any, eta: np.ndarray, point: Point, h: Hypers) -> np.ndarray:
    """Return log P(y | eta, tau) with the latent noise integrated out, shape of eta."""
    if h.latent_noise == "none":
        return logistic_logp(y, eta)
    return label_logp(y, eta, np.asarray(point["tau"])[..., None] ** -0.5)


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, h: Hypers) -> np.ndarray:
    """Return log p(y, variables | X): the density of the paper's variables, without Jacobian.

    The variables are those the form keeps: psi and delta only in the hierarchical form, u only
    with explicit noise, tau unless there is no noise.
    """
    total = A.logp(point, h) + V.logp(point, h) + stats.norm.logpdf(point["bias"], 0.0, h.bias_sd)
    total = total + covariates.logp(point, inputs, h)
    eta = decision(point, inputs, h)
    if h.latent_noise == "none":
        return total + logistic_logp(y, eta).sum(-1)
    tau = np.asarray(point["tau"])
    total = total + stats.gamma.logpdf(tau, h.noise_shape, scale=1 / h.noise_rate)
    if h.latent_noise == "integrated":
        return total + noisy_logistic_logp(y, eta, tau[..., None] ** -0.5).sum(-1)
    noise = stats.norm.logpdf(point["u"], eta, tau[..., None] ** -0.5).sum(-1)
    return total + noise + logistic_logp(y, point["u"]).sum(-1)


def log_jacobian(point: Point, h: Hypers) -> np.ndarray:
    """Return log |d paper's variables / d unconstrained vector of the PyMC model|.

    The unconstrained vector holds log psi, a_raw, log delta, log v_raw (or a, log v), b, log tau
    and u_raw.
    """
    total = A.log_jacobian(point, h) + V.log_jacobian(point, h)
    if h.latent_noise == "none":
        return total
    log_tau = np.log(point["tau"])
    if h.latent_noise == "integrated":
        return total + log_tau
    return total + log_tau - 0.5 * log_tau * point["u"].shape[-1]


def to_free(point: Point, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model at a point of the paper's variables."""
    free = {"bias": point["bias"], **A.free(point, h), **V.free(point, h)}
    free |= covariates.free(point, inputs)
    if h.latent_noise != "none":
        free["tau"] = point["tau"]
    if h.latent_noise == "explicit":
        noise = point["u"] - decision(point, inputs, h)
        free["u_raw"] = noise * np.asarray(point["tau"])[..., None] ** 0.5
    return free


def simulate(rng: np.random.Generator, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable of the model, `eta`, and `y` (N,)."""
    point = A.draw(rng, h, inputs.B) | V.draw(rng, h, inputs.D)
    point["bias"] = np.asarray(rng.normal(0.0, h.bias_sd))
    point |= covariates.draw(rng, inputs, h)
    u = point["eta"] = decision(point, inputs, h)
    if h.latent_noise != "none":
        tau = rng.gamma(h.noise_shape, 1 / h.noise_rate)
        u = rng.normal(u, tau**-0.5)
        point |= {"tau": np.asarray(tau), "u": u}
    return point | {"y": rng.binomial(1, special.expit(u))}


CARD = ModelCard(
    name="rfvm",
    title="Relevance Feature and Vector Machine",
    citation="Belenguer-Llorens et al. (2024), arXiv 2402.07079",
    year=2024,
    link="logistic, with latent Gaussian noise",
    priors="ARD: normal sample weights, folded-normal feature weights, Gamma precisions",
    paper_method="rfvm_vb",
    variables={
        "basis": ("psi", "sample_weight_raw"),
        "feature": ("delta", "feature_weight_raw"),
        "obs": ("u", "u_raw"),
    },
)
