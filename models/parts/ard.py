"""Automatic relevance determination: weights with Gamma precisions, in both parametrisations.

    precision_j ~ Gamma(shape, rate)
    x_j         ~ N+(0, 1 / precision_j)       or Normal(0, precision_j^-1/2) if it is signed

N+(0, v) is a normal of variance v truncated to the positive half line. With the precisions
integrated out ("marginal") x is a half-Student-t, or a Student-t, with nu = 2 shape degrees of
freedom and scale sqrt(rate / shape); with them explicit ("hierarchical") x is non-centred,
x_j = raw_j precision_j^-1/2. PFCVM (eqs. 5, 8), PCVM, RVM and RFVM use these priors.

A finite `slab` multiplies the density by exp(-x_j^2 / (2 slab^2)) and renormalises it (`slab.py`).
In the hierarchical form x_j is then raw_j (precision_j + slab^-2)^-1/2.

A model names each of its groups of weights once (`Weights`). `Weights.declare` is the prior in
PyMC. `logp` and `draw` are the same prior in NumPy, written independently of it.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import special, stats

from . import slab as slabs
from .slab import SlabStudentT, TiltedGamma

Form = Literal["marginal", "hierarchical"]
Point = Mapping[str, np.ndarray]


class WeightPrior(NamedTuple):
    """Prior of one group of weights: Gamma(shape, rate) precisions, and a slab (inf: no slab).

    The rate is a number, or an array (..., 1) at draws of a learned scale.
    """

    shape: float
    rate: Any
    slab: float = np.inf

    @property
    def scale(self) -> float:
        """Scale of the weights: sqrt(rate / shape)."""
        # NumPy's float: PyTensor may turn a Python one into a float32 constant
        return np.float64(np.sqrt(self.rate / self.shape))

    @property
    def log_mass(self) -> Any:
        """Log of the normalising constant of the slab; 0 without a slab."""
        return slabs.log_mass(self.shape, self.rate, self.slab)


def logp(
    x: np.ndarray, precision: np.ndarray | None, prior: WeightPrior, *, signed: bool = False
) -> np.ndarray:
    """Return log p(x, precision), or log p(x) without precision, summed over the last axis.

    PFCVM (5), PFCVM (8): N+ has the density 2 Normal(x | 0, precision^-1/2) on x >= 0. Mixed over
    precision ~ Gamma(shape, rate) it is twice a Student-t with nu = 2 shape degrees of freedom and
    scale sqrt(rate / shape), on x >= 0. A slab multiplies either density by
    exp(-x^2 / (2 slab^2)), divided by the mean of that factor under the prior without the slab.
    """
    if precision is None:
        # nu scale^2 = 2 rate; `stats.t` is five times slower
        a, twice = prior.shape, 2.0 * prior.rate
        constant = special.gammaln(a + 0.5) - special.gammaln(a) - 0.5 * np.log(np.pi * twice)
        each = constant - (a + 0.5) * np.log1p(np.square(x) / twice)
    else:
        each = stats.norm.logpdf(x, 0.0, precision**-0.5)
        each = each + stats.gamma.logpdf(precision, prior.shape, scale=1.0 / prior.rate)
    if not signed:
        each = each + np.where(x >= 0.0, math.log(2.0), -np.inf)
    each = each - 0.5 * (x / prior.slab) ** 2 - prior.log_mass
    return each.sum(-1)


def draw(
    rng: np.random.Generator, prior: WeightPrior, size: int, *, signed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return one draw of the precisions and of their weights, each (size,)."""
    if np.isfinite(prior.slab):
        precision, x = slabs.draw(rng, prior.shape, prior.rate, prior.slab, size)
    else:
        precision = rng.gamma(prior.shape, 1.0 / prior.rate, size)
        x = rng.normal(0.0, precision**-0.5)
    return precision, x if signed else np.abs(x)


# --- the weights of a model -----------------------------------------------------------------------


class Priors(Protocol):
    """What `Weights` reads of a model's hyperparameters."""

    @property
    def parametrization(self) -> Form:
        """The form."""

    def weight_priors(self) -> dict[str, WeightPrior]:
        """Return the priors, "sample_weight" and "feature_weight"."""


class Weights(NamedTuple):
    """A group of weights x_j ~ N+(0, 1 / precision_j) of a model, precision_j ~ Gamma.

    Parameters
    ----------
    name, precision : str
        Names of x and of its precisions.
    group : {"sample", "feature"}
        Which weights these are. It determines their dim, their prior among the hyperparameters `h`,
        and the name of the non-centred variable.
    signed : bool
        Whether x has either sign, Normal(0, precision^-1/2), as in the RVM.
    """

    name: str
    precision: str
    group: Literal["sample", "feature"]
    signed: bool = False

    @property
    def raw(self) -> str:
        """Name of the non-centred variable."""
        return f"{self.group}_weight_raw"

    def prior(self, h: Priors) -> WeightPrior:
        """Return the prior of these weights."""
        return h.weight_priors()[f"{self.group}_weight"]

    def declare(self, h: Priors) -> Any:
        """Declare x in the current PyMC model, in either form, with its slab."""
        prior, form, group = self.prior(h), h.parametrization, self.group
        dims = "basis" if group == "sample" else "feature"
        shape, rate = prior.shape, pm.Data(f"{group}_rate", prior.rate)
        unit = pm.Normal if self.signed else pm.HalfNormal
        if np.isfinite(prior.slab):
            slab = pm.Data(f"{group}_slab", prior.slab)
            # it depends on the filled rate and slab, and is rebound with them
            log_mass = pm.Data(f"{group}_log_mass", prior.log_mass)
            law = shape, rate, slab, log_mass
            if form == "marginal":
                return SlabStudentT(self.name, *law, signed=self.signed, dims=dims)
            p = TiltedGamma(self.precision, *law, dims=dims)
            raw = unit(self.raw, sigma=1.0, dims=dims)
            return pm.Deterministic(self.name, raw * (p + slab**-2) ** -0.5, dims=dims)
        if form == "marginal":
            nu, sigma = 2.0 * shape, pt.sqrt(rate / shape)
            if self.signed:
                return pm.StudentT(self.name, nu=nu, mu=0.0, sigma=sigma, dims=dims)
            return pm.HalfStudentT(self.name, nu=nu, sigma=sigma, dims=dims)
        p = pm.Gamma(self.precision, shape, rate, dims=dims)
        raw = unit(self.raw, sigma=1.0, dims=dims)
        return pm.Deterministic(self.name, raw * p**-0.5, dims=dims)

    def _precision(self, point: Point, h: Priors) -> np.ndarray | None:
        """Return the precisions if the form keeps them, None if they are integrated out."""
        return None if h.parametrization == "marginal" else point[self.precision]

    def logp(self, point: Point, h: Priors) -> np.ndarray:
        """Return the log density of x, and of precisions that are kept."""
        precision = self._precision(point, h)
        return logp(point[self.name], precision, self.prior(h), signed=self.signed)

    def draw(self, rng: np.random.Generator, h: Priors, size: int) -> dict[str, np.ndarray]:
        """Return one draw of the precisions and of x, each (size,)."""
        precision, x = draw(rng, self.prior(h), size, signed=self.signed)
        return {self.precision: precision, self.name: x}

    def log_jacobian(self, point: Point, h: Priors) -> np.ndarray:
        """Return log |d (precision, x) / d (log precision, log raw)|, x = raw total^-1/2.

        total = precision + slab^-2. d precision / d log precision = precision and dx / d log raw =
        x. A signed weight does not transform raw: dx / d raw = total^-1/2. The marginal form has
        d x / d log x = x, or no transform.
        """
        x, precision = point[self.name], self._precision(point, h)
        each = np.zeros(np.shape(x)) if self.signed else np.log(x)
        if precision is not None:
            each = each + np.log(precision)
            if self.signed:
                each = each - 0.5 * np.log(precision + self.prior(h).slab ** -2.0)
        return each.sum(-1)

    def free(self, point: Point, h: Priors) -> dict[str, np.ndarray]:
        """Return the free variables that `declare` declares, at a point of the paper's."""
        precision = self._precision(point, h)
        if precision is None:
            return {self.name: point[self.name]}
        raw = point[self.name] * (precision + self.prior(h).slab ** -2.0) ** 0.5
        return {self.precision: precision, self.raw: raw}
