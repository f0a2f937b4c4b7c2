"""Logistic regression with the regularised horseshoe prior, to compare the other models with.

Piironen, Vehtari (2017), "Sparsity information and regularization in the horseshoe and other
shrinkage priors", Electronic Journal of Statistics 11(2), 5018-5051, doi 10.1214/17-EJS1337SI,
sections 2.3 and 3, appendix C.

The generative model
--------------------
X (N, D) inputs, y (N,) in {0, 1}, p0 = active_features, s = slab_scale, nu = slab_df::

    c2       ~ InvGamma(nu / 2, nu s^2 / 2)        (sec. 2.3)  variance of the slab, `c2`
    a_tau    ~ InvGamma(1/2, 1/2)                  variance behind tau, `tau_variance`
    tau      ~ N+(0, tau_0^2 a_tau)                global scale, `tau`
    a_k      ~ InvGamma(1/2, 1/2)                  variance behind lambda, `lambda_variance`  (D,)
    lambda_k ~ N+(0, a_k)                          local scale, `lambda`                      (D,)
    beta_k   ~ Normal(0, tau lambda~_k)            (sec. 2.3)  primal weight                  (D,)
    v_k      = abs(beta_k)                         relevance of a feature, `feature_weight`   (D,)
    b        ~ Normal(0, bias_sd)                  bias, `bias`
    eta_i    = b + sum_k beta_k x_ik               decision value, `eta`                      (N,)
    y_i      ~ Bernoulli(sigmoid(eta_i))           label                                      (N,)

with lambda~_k^2 = c2 lambda_k^2 / (c2 + tau^2 lambda_k^2). InvGamma is (shape, scale), the second
argument of Normal is a standard deviation and that of N+ a variance. With the variances integrated
out, tau ~ C+(0, tau_0) and lambda_k ~ C+(0, 1) are half-Cauchy: the horseshoe. A small weight has
the horseshoe's spike at 0; a large one has the slab, a Student-t with nu degrees of freedom and
scale s. There is no basis of samples, so there is **no `sample_weight`**.

The scale of tau follows from p0, the guess of how many weights matter (section 3): tau_0 is
p0 / (D - p0) * sigma / sqrt(N). At tau = tau_0, with uncorrelated standardised features and no
slab, the effective number of weights m = sum_k 1 / (1 + sigma^2 / (N tau^2 lambda_k^2)) has the
prior mean p0. Labels have no noise sigma: the paper puts the pseudo variance 1 / (mu (1 - mu)) of
the logistic likelihood in its place. Here mu is 1/2, so sigma = 2.

The posterior can be written in two ways (`parametrization`), both with beta_k = beta_raw_k tau
lambda~_k (non-centred)::

    marginal       a_tau, a_k integrated out: half-Cauchy scales  (appendix C.1)
    hierarchical   a_tau, a_k explicit; tau and lambda non-centred too  (appendix C.2)

Departures from the paper
-------------------------
- mu = 1/2, where the paper also offers the sample mean of y: a prior must not depend on labels.
- The scale of the bias is 1, as in the other models of the zoo; the paper leaves it to the user.
- The default p0 is that of the other models with a linear kernel: 10, but at most D / 3.

Known difficulties
------------------
- `active_features` is not the same prior as in the other models. There it is the expected number of
  features with a visible effect. Here it is the effective number m at tau = tau_0, and tau is
  learned: its half-Cauchy prior makes the number of visible features vary by orders of magnitude.
  Compare a posterior with this model's own prior, which every fit has beside it. Means and 5 % and
  95 % quantiles of the number of visible features:

      data           p0   prior             posterior
      sonar           1   2.0 (0 to 9)      33 (18 to 46)
      sonar          10   12 (0 to 38)      33 (20 to 46)
      colon           1   5.7 (0 to 17)     25 (3 to 83)
      colon          10   43 (0 to 152)     43 (8 to 131)
      colon         100   253 (10 to 975)   102 (18 to 276)

- With many more features than samples, whether a feature is active may mix slowly, because
  correlated features take its place. On colon with p0 = 10, after 8192 draws per chain, `eta`,
  tau and the number of visible features have R-hat below 1.01, and no transition diverged. But a
  gene whose effect is above 0.1 in 1/3 of the draws has R-hat 1.02 and a bulk ESS of 234. The
  hierarchical form is no better (287), nor are smaller steps (0.98 in place of 0.9: the same ESS
  per gradient). With p0 = 1 that ESS is 107 after 6144 draws (R-hat of `eta` 1.02), with p0 = 100
  it is 806. These are figures of NUTS. `gibbs` exchanges such genes, and `exact` takes it where D
  > 3 N: on colon, all that may be quoted has converged after 2048 sweeps per chain, a minute of
  the processor.
- On sonar both forms converge in half a minute to a minute. `hierarchical` has D + 1 more variables
  and takes twice as many draws.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import special, stats

from ardvark.common.declared import hyper
from ardvark.common.validate import InputError

from .parts import covariates
from .parts.ard import Form
from .parts.distributions import LogisticBernoulli, logistic_logp
from .parts.distributions import log_predictive as log_predictive
from .spec import BaseHypers, Coords, Inputs, ModelCard, Point

PSEUDO_SD = 2.0
"""sigma of the logistic likelihood at mu = 1/2: 1 / sqrt(mu (1 - mu))."""
DEFAULT_ACTIVE = 10.0


@dataclass(frozen=True, kw_only=True)
class Hypers(BaseHypers):
    """Hyperparameters of the horseshoe; those left at None follow from N and D."""

    FORM: ClassVar[tuple[str, ...]] = ("parametrization",)

    parametrization: Form = hyper(
        "marginal",
        "half-Cauchy scales (marginal), or with the variances behind them explicit",
        paper="both",
    )
    active_features: float = hyper(
        None,
        "p0, the guess of how many weights are not shrunk, from which global_scale is computed",
        above=0.0,
        paper="a guess",
        why="filled: 10, at most D / 3",
        outside="It is an effective number of weights.",
    )
    global_scale: float = hyper(
        None,
        "scale tau_0 of the half-Cauchy prior of the global scale tau",
        above=0.0,
        paper="p0 / (D - p0) * sigma / sqrt(N)",
        why="filled from active_features, with sigma = 2",
        outside="It is a scale.",
    )
    slab_scale: float = hyper(
        2.0,
        "scale s, in logits, of the Student-t slab of a large weight",
        above=0.0,
        at_most=1000.0,
        paper="2",
        outside="It is in logits; above 5 the slab hardly acts, and separable data need it.",
    )
    slab_df: float = hyper(
        4.0, "degrees of freedom nu of the slab", above=0.0, paper="4", outside="4 is usual."
    )
    bias_sd: float = hyper(
        1.0, "prior standard deviation of the bias", above=0.0, paper="left to the user"
    )
    covariate_sd: float = covariates.sd_hyper()

    def fill(self, N: int, B: int, D: int) -> Self:
        """Return a copy with tau_0 from p0, or p0 from tau_0."""
        unit = PSEUDO_SD / np.sqrt(N)
        active, scale = self.active_features, self.global_scale
        if active is not None and scale is not None:
            raise InputError(
                "give active_features or global_scale, not both: the scale is computed from the "
                "number."
            )
        if scale is not None:
            return replace(self, active_features=D * scale / (scale + unit))
        active = min(DEFAULT_ACTIVE, D / 3) if active is None else active
        if not active < D:
            raise InputError(
                f"active_features must be between 0 and the number of features, got "
                f"{active:g} of {D}. It is the guess of how many weights are not shrunk."
            )
        return replace(self, active_features=active, global_scale=active / (D - active) * unit)

    def posterior_fields(self) -> dict[str, Any]:
        """Return the scales, which define the posterior, not the number they were computed from."""
        fields = super().posterior_fields()
        return {k: v for k, v in fields.items() if k != "active_features"}

    @property
    def slab(self) -> tuple[Any, Any]:
        """Shape and scale of the inverse gamma prior of c2."""
        return self.slab_df / 2.0, self.slab_df * self.slab_scale**2 / 2.0


# --- the PyMC model -------------------------------------------------------------------------------


def build(inputs: Inputs, y: np.ndarray, h: Hypers, coords: Coords) -> pm.Model:
    """Return the PyMC model, dims "obs" (N), "feature" (D). There is no basis."""
    explicit = h.parametrization == "hierarchical"
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", inputs.X, dims=("obs", "feature"))
        label = pm.Data("label", y, dims="obs")
        tau_0 = pm.Data("global_scale", h.global_scale)
        s, nu = pm.Data("slab_scale", h.slab_scale), pm.Data("slab_df", h.slab_df)

        bias = pm.Normal("bias", 0.0, h.bias_sd)
        c2 = pm.InverseGamma("c2", nu / 2.0, nu * s**2 / 2.0)
        tau = half_cauchy("tau", tau_0, "tau_variance" if explicit else None)
        local = half_cauchy("lambda", 1.0, "lambda_variance" if explicit else None, dims="feature")
        beta_raw = pm.Normal("beta_raw", 0.0, 1.0, dims="feature")
        scale = tau * local
        beta = pm.Deterministic(
            "beta", beta_raw * scale / pt.sqrt(1.0 + scale**2 / c2), dims="feature"
        )
        pm.Deterministic("feature_weight", pt.abs(beta), dims="feature")
        eta = covariates.declare(inputs, h, bias + x @ beta)
        eta = pm.Deterministic("eta", eta, dims="obs")
        LogisticBernoulli("y", eta, observed=label, dims="obs")
    return model


def half_cauchy(name: str, scale: Any, variance: str | None, dims: str | None = None) -> Any:
    """Return a PyMC variable with the prior C+(0, scale).

    With a name for its `variance`, which is InvGamma(1/2, 1/2), that is a variable too, and the
    value non-centred.
    """
    if variance is None:
        return pm.HalfCauchy(name, scale, dims=dims)
    v = pm.InverseGamma(variance, 0.5, 0.5, dims=dims)
    raw = pm.HalfNormal(f"{name}_raw", 1.0, dims=dims)
    return pm.Deterministic(name, scale * raw * v**0.5, dims=dims)


# --- the same density from the paper, in NumPy ------------------------------------------------


def weight_sd(point: Point) -> np.ndarray:
    """Return tau lambda~ (..., D), the standard deviation of each weight: Horseshoe sec. 2.3."""
    c2 = np.asarray(point["c2"])[..., None]
    variance = (np.asarray(point["tau"])[..., None] * point["lambda"]) ** 2
    return np.sqrt(c2 * variance / (c2 + variance))


def half_cauchy_logp(x: Any, scale: Any, variance: Any) -> np.ndarray:
    """Return log C+(x | 0, scale), or given the variance behind it log p(x, variance)."""
    if variance is None:
        return stats.halfcauchy.logpdf(x, scale=scale)
    v = np.where(variance > 0.0, variance, 1.0)
    prior = np.where(variance > 0.0, stats.invgamma.logpdf(v, 0.5, scale=0.5), -np.inf)
    return prior + stats.halfnorm.logpdf(x, scale=scale * np.sqrt(v))


def decision(point: Point, inputs: Inputs, h: Hypers) -> np.ndarray:
    """Return eta (..., N) = b + X beta."""
    eta = np.asarray(point["bias"])[..., None] + point["beta"] @ inputs.X.T
    return covariates.added(eta, point, inputs)


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, h: Hypers) -> np.ndarray:
    """Return log p(y, variables | X), without Jacobian; the variances where the form keeps them."""
    variance = {} if h.parametrization == "marginal" else point
    shape, scale = h.slab
    sd = weight_sd(point)
    # at the edge of the support the scales' own density is 0, and decides
    sd = np.where(sd > 0.0, sd, 1.0)
    return (
        stats.norm.logpdf(point["bias"], 0.0, h.bias_sd)
        + covariates.logp(point, inputs, h)
        + stats.invgamma.logpdf(point["c2"], shape, scale=scale)
        + half_cauchy_logp(point["tau"], h.global_scale, variance.get("tau_variance"))
        + half_cauchy_logp(point["lambda"], 1.0, variance.get("lambda_variance")).sum(-1)
        + stats.norm.logpdf(point["beta"], 0.0, sd).sum(-1)
        + logistic_logp(y, decision(point, inputs, h)).sum(-1)
    )


def log_jacobian(point: Point, h: Hypers) -> np.ndarray:
    """Return log |d paper's variables / d unconstrained vector of the PyMC model|.

    The unconstrained vector holds b, log c2, beta_raw and, marginal: log tau and log lambda;
    hierarchical: the logarithms of tau_raw, lambda_raw and the variances.
    """
    total = (
        np.log(point["c2"])
        + np.log(point["tau"])
        + np.log(point["lambda"]).sum(-1)
        + np.log(weight_sd(point)).sum(-1)
    )
    if h.parametrization == "marginal":
        return total
    return total + np.log(point["tau_variance"]) + np.log(point["lambda_variance"]).sum(-1)


def to_free(point: Point, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model at a point of the paper's variables."""
    free = {k: point[k] for k in ("bias", "c2")} | covariates.free(point, inputs)
    free["beta_raw"] = point["beta"] / weight_sd(point)
    if h.parametrization == "marginal":
        return free | {k: point[k] for k in ("tau", "lambda")}
    tau_0 = h.global_scale
    return free | {
        "tau_variance": point["tau_variance"],
        "tau_raw": point["tau"] * point["tau_variance"] ** -0.5 / tau_0,
        "lambda_variance": point["lambda_variance"],
        "lambda_raw": point["lambda"] * point["lambda_variance"] ** -0.5,
    }


def simulate(rng: np.random.Generator, inputs: Inputs, h: Hypers) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable of the model, `feature_weight`, `eta`, `y` (N,)."""
    shape, scale = h.slab
    a_tau = 0.5 / rng.gamma(0.5)
    a = 0.5 / rng.gamma(0.5, size=inputs.D)
    point: dict[str, np.ndarray] = {
        "bias": np.asarray(rng.normal(0.0, h.bias_sd)),
        "c2": np.asarray(scale / rng.gamma(shape)),
        "tau_variance": np.asarray(a_tau),
        "tau": np.asarray(np.abs(rng.normal(0.0, h.global_scale * np.sqrt(a_tau)))),
        "lambda_variance": a,
        "lambda": np.abs(rng.normal(0.0, np.sqrt(a))),
    }
    point["beta"] = rng.normal(0.0, weight_sd(point))
    point |= covariates.draw(rng, inputs, h)
    eta = decision(point, inputs, h)
    y = rng.binomial(1, special.expit(eta))
    return point | {"feature_weight": np.abs(point["beta"]), "eta": eta, "y": y}


CARD = ModelCard(
    name="horseshoe",
    title="Regularised horseshoe logistic regression",
    citation="Piironen & Vehtari (2017), Electronic Journal of Statistics 11(2)",
    year=2017,
    link="logistic",
    priors="regularised horseshoe weights of the features, global scale learned",
    paper_method="",
    shared=("feature_weight", "eta"),
    needed=("beta",),
    variables={"feature": ("beta", "beta_raw", "lambda", "lambda_raw", "lambda_variance")},
)
