"""FS-SKLR, doubly sparse Bayesian kernel logistic regression: binary masks on features and samples.

Kojima, Tanaka (2017), "Doubly Sparse Bayesian Kernel Logistic Regression", APSIPA, sections II, III
and IV.A, eqs. (7)-(15), (19)-(22), (36).

The generative model
--------------------
X (N, D) inputs, Z (B, D) basis centres (the training inputs), y (N,) in {0, 1}::

    pi_k    ~ Beta(a_zeta / D, 1)      (13)  probability, `feature_mask_probability`        (D,)
    zeta_k  ~ Bernoulli(pi_k)          (12)  feature mask, `zeta` and `feature_weight`      (D,)
    q_j     ~ Beta(a_z / B, 1)         (15)  probability, `sample_mask_probability`         (B,)
    z_j     ~ Bernoulli(q_j)           (14)  sample mask                                    (B,)
    alpha_j ~ Normal(0, xi^-1/2)       (11)  coefficient                                    (B,)
    a_j     = z_j alpha_j                    sample weight, `sample_weight`                 (B,)
    eta_i   = sum_j a_j k(x_i * zeta, Z_j * zeta)  (7)  decision value, `eta`               (N,)
    y_i     ~ Bernoulli(sigmoid(eta_i))            (8)  label                               (N,)

    k(x, z) = exp(-delta |x - z|^2)    (36)  kernel = "rbf"
    k(x, z) = delta x'z                      kernel = "linear"

The second argument of Normal is a standard deviation, so xi is a precision. The zoo's feature-
weighted kernel has theta = delta * zeta. There is no intercept.

The prior of a mask of n bits with S of them on has three forms (`mask_prior`; n = D, a = a_zeta for
features, n = B, a = a_z for samples). Each is given with its sum over all 2^n masks, the odds of
one bit when S of the *others* are on, and the expected number of bits on:

    independent  one probability per bit, as above: p = (a / (a + n))^S (n / (a + n))^(n - S).
                 Sums to 1; odds a / n; E = n a / (a + n).
    shared       one probability Beta(a / n, 1) for all bits:
                 p = B(S + a/n, n - S + 1) / B(a/n, 1).
                 Sums to 1 (a mixture over the probability); odds (S + a/n) / (n - S); E as above.
    printed      p proportional to C(n, S) B(S + a, n - S + 1), i.e. to Gamma(S + a) / Gamma(S + 1):
                 eqs. (21), (22), the prior of a *count* used as the score of a mask. With the
                 paper's factor a it sums to 1 over counts S = 0..n, and so to more than 1 over
                 masks; here it is divided by its sum over masks. Odds (S + a) / (S + 1); E by
                 summation.

The posterior can be written in two ways (`mask_probability`). "integrated" has only the masks.
"explicit" keeps their probabilities too: a vector under the independent prior, one number under the
shared one. "printed" is not a mixture over a probability, so it exists only integrated.

Departures from the paper
-------------------------
- The target is the joint posterior of both masks and alpha. The paper searches for a mode in two
  stages: the feature mask first, with every z_j = 1, then the sample mask at that feature mask.
- `mask_prior = "independent"` is what (12)-(15) say. Eqs. (19), (20) replace it by a shared
  probability, and (21), (22) by the prior of a count. These misprints are kept as choices, because
  the paper's algorithm uses the last one.
- The shared probability is Beta(a/n, 1), as in (13), (15), not Beta(a, 1) as in (19).
- xi, a and delta have defaults that are computed from the sizes of the data. The paper tunes them
  to equal sparsity and does not report their values.
- The basis size B replaces N in the sample mask's prior, so that the basis can be a subset of the
  rows.
- The linear kernel is ours, for comparison with the zoo's other models.

Known difficulties
------------------
- Single-bit moves get stuck where features are correlated: one must leave before another can enter.
  The posterior of the masks has several modes; start chains apart and count flips.
- The shared prior puts nearly all of its mass on the empty mask: P(S = 0) is close to n^(-a/n),
  0.97 at n = 7129, a = 20. The printed one is nearly flat: E = 3574 there.
- delta sets the width of the kernel for a typical number of features. With many more features on,
  K is close to the identity; with few, all entries of K are close to 1.
- alpha_j of an unselected sample follows its prior: look at `sample_weight`, not at alpha.
- If a/n is below 0.05, the probabilities themselves underflow to 0 (14 % of them at 20/7129), so
  the explicit form raises an error.
- PyMC's own steps evaluate the whole density for every bit and recompute K for every gradient,
  O(N B D) each. They are a baseline, not the sampler to use. PyMC assigns `BinaryGibbsMetropolis`
  to Bernoulli masks only. Name that step for integrated masks with the shared or printed prior;
  otherwise they get Metropolis, which hardly moves.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import special, stats

from ardvark.common.declared import hyper
from ardvark.common.validate import InputError

from .parts import covariates
from .parts.distributions import LogisticBernoulli, logistic_logp
from .parts.distributions import log_predictive as log_predictive
from .parts.kernels import kernel_hyper
from .parts.masks import BinaryMask, MaskPrior, draw_mask, expected_selected, log_mask_prior
from .spec import BaseHypers, Coords, Inputs, ModelCard, Point

_SMALLEST_SHAPE = 0.05  # of an explicit Beta(a/n, 1): a draw underflows with chance e^(-708 a/n)


def _mask_hyper(what: str, n: str) -> Any:
    """Declare a of the mask of n samples or features."""
    return hyper(
        None,
        f"a of the prior Beta(a / {n}, 1) of a {what}'s bit; at a << {n} about a {what}s are on",
        above=0.0,
        paper="not stated",
        why=f"filled: min(20, {n} / 2)",
        outside="The mask's prior Beta(a/n, 1) is proper only above 0.",
    )


@dataclass(frozen=True, kw_only=True)
class SampleMaskHypers(BaseHypers):
    """Hyperparameters of a model with a sample mask (B bits). None: from the data's sizes."""

    FORM: ClassVar[tuple[str, ...]] = ("mask_probability",)
    FEATURE_MASK: ClassVar[bool] = False
    """Whether the features have a mask too."""

    kernel: Literal["rbf", "linear"] = kernel_hyper("rbf", paper="rbf")
    mask_prior: MaskPrior = hyper(
        "independent",
        "prior of a mask: one probability a bit, one for all bits, or the printed one",
        paper="independent in (12)-(15), printed in the algorithm",
        why="the others are degenerate or nearly flat for many bits",
    )
    mask_probability: Literal["integrated", "explicit"] = hyper(
        "integrated",
        "the probability of a bit integrated out, or a variable",
        paper="integrated",
        why="fewer variables, and small probabilities underflow",
    )
    xi: float = hyper(
        1.0,
        "prior precision of a coefficient alpha",
        above=0.0,
        paper="not stated",
        why="precision of a coefficient",
        outside="It is the prior precision of a coefficient.",
    )
    delta: float = hyper(
        None,
        "scale of the kernel: it multiplies the squared distance, or the product x'z",
        above=0.0,
        paper="tuned, value not stated",
        why="filled: rbf 1 / (2 S), linear 2 / max(S, sqrt(A S)), S features, A samples expected",
        outside="It multiplies the kernel's squared distance.",
    )
    a_z: float = _mask_hyper("sample", "B")
    covariate_sd: float = covariates.sd_hyper()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mask_prior == "printed" and self.mask_probability == "explicit":
            raise InputError(
                "mask_prior='printed' scores a mask by its number of bits and has no probability "
                "to keep, got mask_probability='explicit'. Use 'integrated', or another mask_prior."
            )

    def fill(self, N: int, B: int, D: int) -> Self:
        """Return a copy with a_z and delta from the sizes; all D features are on."""
        return self.fill_samples(B, selected=float(D))

    def fill_samples(self, B: int, selected: float) -> Self:
        """Return a copy with a_z, and with a delta that gives eta a useful prior range.

        `selected` features are expected to be on.
        """
        a_z = self.filled_a("sample", self.a_z, B)
        delta = self.delta
        if delta is None:
            samples = expected_selected(B, a_z, self.mask_prior)
            delta = self.kernel_of().mask_scale(samples, selected)
        return replace(self, a_z=a_z, delta=delta)

    def filled_a(self, what: str, a: float | None, n: int) -> float:
        """Return a of a mask of n bits; refuse an explicit probability whose draws underflow."""
        a = min(20.0, n / 2) if a is None else a
        if self.mask_probability == "explicit" and a / n < _SMALLEST_SHAPE:
            raise InputError(
                f"{what}_mask_probability ~ Beta({a:g}/{n}, 1) has a shape of {a / n:.2g}: its "
                f"draws underflow to 0 in float64, expected at least {_SMALLEST_SHAPE}. Use "
                "mask_probability='integrated', the same posterior of everything else."
            )
        return a

    def masks(self) -> list[tuple[str, str, float]]:
        """Return (variable, what it selects, its a) of every mask of the model."""
        return [("z", "sample", self.a_z)]


@dataclass(frozen=True, kw_only=True)
class Hypers(SampleMaskHypers):
    """Hyperparameters of FS-SKLR: those of the sample mask, and a_zeta."""

    FEATURE_MASK: ClassVar[bool] = True

    a_zeta: float = _mask_hyper("feature", "D")

    def fill(self, N: int, B: int, D: int) -> Self:
        """Return a copy with a_zeta, a_z and delta from the sizes of the data."""
        a_zeta = self.filled_a("feature", self.a_zeta, D)
        selected = expected_selected(D, a_zeta, self.mask_prior)
        return replace(self, a_zeta=a_zeta).fill_samples(B, selected)

    def masks(self) -> list[tuple[str, str, float]]:
        """Return (variable, what it selects, its a) of both masks."""
        return [*super().masks(), ("zeta", "feature", self.a_zeta)]


# --- the PyMC model -------------------------------------------------------------------------------


def build(inputs: Inputs, y: np.ndarray, h: SampleMaskHypers, coords: Coords) -> pm.Model:
    """Return the PyMC model, dims "obs" (N), "basis" (B), "feature" (D).

    Data, xi, delta, a_z and a_zeta are `pm.Data`, so another fold of the same shape rebinds the
    compiled code.
    """
    with pm.Model(coords=coords) as model:
        eta = decision_value(inputs, h)
        label = pm.Data("label", y, dims="obs")
        LogisticBernoulli("y", eta, observed=label, dims="obs")
    return model


def _mask(name: str, what: str, dim: str, n: int, a: Any, h: SampleMaskHypers) -> Any:
    """Declare a mask of n bits, and its probability in the explicit form."""
    if h.mask_probability == "integrated":
        if h.mask_prior == "independent":
            return pm.Bernoulli(name, a / (a + n), dims=dim)
        return BinaryMask(name, n, a, h.mask_prior, dims=dim)
    dims = dim if h.mask_prior == "independent" else None
    q = pm.Beta(f"{what}_mask_probability", a / n, 1.0, dims=dims)
    return pm.Bernoulli(name, q, dims=dim)


def decision_value(inputs: Inputs, h: SampleMaskHypers) -> Any:
    """Declare data, masks and coefficients in the current PyMC model; return its eta (N,)."""
    D, B = inputs.D, inputs.B
    x = pm.Data("X", inputs.X, dims=("obs", "feature"))
    centre = pm.Data("Z", inputs.Z, dims=("basis", "feature"))
    xi = pm.Data("xi", h.xi)
    delta = pm.Data("delta", h.delta)
    a_z = pm.Data("a_z", h.a_z)

    zeta = pt.ones(D)
    if isinstance(h, Hypers):
        zeta = _mask("zeta", "feature", "feature", D, pm.Data("a_zeta", h.a_zeta), h)
    v = pm.Deterministic("feature_weight", pt.cast(zeta, "float64"), dims="feature")

    z = _mask("z", "sample", "basis", B, a_z, h)
    alpha = pm.Normal("alpha", 0.0, xi**-0.5, dims="basis")
    weight = pm.Deterministic("sample_weight", z * alpha, dims="basis")

    theta = delta * v  # (D,)
    eta = h.kernel_of().product(x, centre, theta, weight)
    return pm.Deterministic("eta", covariates.declare(inputs, h, eta), dims="obs")


# --- the same density from the paper, in NumPy ----------------------------------------------------


def decision(point: Point, inputs: Inputs, h: SampleMaskHypers) -> np.ndarray:
    """Return eta (..., N) = K (z alpha), FS-SKLR (7), with what covariates add."""
    return covariates.added(kernel_part(point, inputs, h), point, inputs)


def kernel_part(point: Point, inputs: Inputs, h: SampleMaskHypers) -> np.ndarray:
    """Return K (z alpha) (..., N), one draw at a time: no (draws, N, B) array.

    Only selected features and samples enter: O(N A S) a draw for A samples and S features. A point
    that holds no masks is read through `feature_weight` and `sample_weight`.
    """
    X, Z, kernel = inputs.X, inputs.Z, h.kernel_of()
    if "alpha" in point and "z" in point:
        weight = _bits(point, "z") * point["alpha"]  # (..., B)
    else:
        weight = np.asarray(point["sample_weight"])
    if not h.FEATURE_MASK:  # one kernel matrix serves every draw
        return weight @ kernel.gram(X, Z, np.full(X.shape[1], h.delta)).T
    zeta = _bits(point, "zeta" if "zeta" in point else "feature_weight")  # (..., D)
    if kernel.is_primal:
        return kernel.decision(X, Z, h.delta * zeta, weight)
    lead = weight.shape[:-1]
    eta = np.empty((*lead, len(X)))
    for s in np.ndindex(lead):
        on, active = zeta[s] == 1, weight[s] != 0.0
        theta = np.full(np.count_nonzero(on), h.delta)
        eta[s] = kernel.gram(X[:, on], Z[active][:, on], theta) @ weight[s][active]
    return eta


def log_prior(point: Point, inputs: Inputs, h: SampleMaskHypers) -> np.ndarray:
    """Return log p(masks, probabilities where explicit, alpha): FS-SKLR (11) and the masks'."""
    total = stats.norm.logpdf(point["alpha"], 0.0, h.xi**-0.5).sum(-1)
    total = total + covariates.logp(point, inputs, h)
    for name, what, a in h.masks():
        mask = _bits(point, name)
        if h.mask_probability == "integrated":
            total = total + log_mask_prior(mask, a, h.mask_prior)
            continue
        q = np.asarray(point[f"{what}_mask_probability"])
        shared = h.mask_prior == "shared"
        density = stats.beta.logpdf(q, a / mask.shape[-1], 1.0)
        total = total + (density if shared else density.sum(-1))
        q = q[..., None] if shared else q
        total = total + (special.xlogy(mask, q) + special.xlog1py(1 - mask, -q)).sum(-1)
    return total


def log_joint(point: Point, inputs: Inputs, y: np.ndarray, h: SampleMaskHypers) -> np.ndarray:
    """Return log p(y, variables | X): the density of the paper's variables, without Jacobian.

    A probability for the masks, a density for alpha and, in the explicit form, for the
    probabilities. Raises InputError where a mask holds anything but 0 and 1.
    """
    eta = decision(point, inputs, h)
    return log_prior(point, inputs, h) + logistic_logp(y, eta).sum(-1)


def log_jacobian(point: Point, h: SampleMaskHypers) -> np.ndarray:
    """Return log |d paper's variables / d unconstrained vector of the PyMC model|.

    Masks and alpha are not transformed. An explicit probability q is sampled as its log-odds:
    dq / d log-odds = q (1 - q).
    """
    total = np.zeros(np.shape(point["alpha"])[:-1])
    if h.mask_probability == "explicit":
        for _, what, _ in h.masks():
            q = np.asarray(point[f"{what}_mask_probability"])
            terms = np.log(q) + np.log1p(-q)
            total = total + (terms if h.mask_prior == "shared" else terms.sum(-1))
    return total


def to_free(point: Point, inputs: Inputs, h: SampleMaskHypers) -> dict[str, np.ndarray]:
    """Return the free variables of the PyMC model: the paper's own, nothing is reparametrised."""
    names = ["alpha"]
    for name, what, _ in h.masks():
        explicit = h.mask_probability == "explicit"
        names += [name, f"{what}_mask_probability"] if explicit else [name]
    return {name: point[name] for name in names} | covariates.free(point, inputs)


def simulate_prior(
    rng: np.random.Generator, inputs: Inputs, h: SampleMaskHypers
) -> dict[str, np.ndarray]:
    """Return one ancestral draw of everything but the labels."""
    point: dict[str, np.ndarray] = {"feature_weight": np.ones(inputs.D)}
    for name, what, a in h.masks():
        n = inputs.B if what == "sample" else inputs.D
        point[name], q = draw_mask(rng, n, a, h.mask_prior)
        if h.mask_probability == "explicit" and q is not None:
            point[f"{what}_mask_probability"] = q
    if h.FEATURE_MASK:
        point["feature_weight"] = point["zeta"].astype(float)
    point["alpha"] = rng.normal(0.0, h.xi**-0.5, inputs.B)
    point["sample_weight"] = point["z"] * point["alpha"]
    point |= covariates.draw(rng, inputs, h)
    point["eta"] = decision(point, inputs, h)
    return point


def simulate(
    rng: np.random.Generator, inputs: Inputs, h: SampleMaskHypers
) -> dict[str, np.ndarray]:
    """Return one ancestral draw: every variable, the shared quantities, and `y` (N,)."""
    point = simulate_prior(rng, inputs, h)
    return point | {"y": rng.binomial(1, special.expit(point["eta"]))}


def kernel_theta(point: Point, h: SampleMaskHypers) -> np.ndarray:
    """Return the kernel's theta = delta * zeta (..., D)."""
    return h.delta * np.asarray(point["feature_weight"], dtype=float)


def _bits(point: Point, name: str) -> np.ndarray:
    """Return a mask of the point, refused unless it is binary."""
    mask = np.asarray(point[name])
    wrong = (mask != 0) & (mask != 1)
    if wrong.any():
        raise InputError(
            f"{name} is a mask of 0 and 1, got {mask[wrong].ravel()[0]!r} among its values. "
            "A posterior mean is not a state of the model; threshold it first."
        )
    return mask


CARD = ModelCard(
    name="fsklr",
    title="Doubly Sparse Bayesian Kernel Logistic Regression",
    citation="Kojima, Tanaka (2017), APSIPA",
    year=2017,
    link="logistic",
    priors="beta-process binary masks on features and samples, normal coefficients",
    paper_method="fsklr_savb",
    variables={
        "feature": ("zeta", "feature_mask_probability"),
        "basis": ("z", "sample_mask_probability", "alpha"),
    },
    masked=("feature_weight", "sample_weight"),
    theta=kernel_theta,
)
