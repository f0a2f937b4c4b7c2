"""Automatic relevance determination: weights with Gamma precisions, in both parametrisations.

    precision_j ~ Gamma(shape, rate)
    x_j         ~ N+(0, 1 / precision_j)       or Normal(0, precision_j^-1/2) if it is signed

N+(0, v) is a normal of variance v truncated to the positive half line. With the precisions
integrated out ("marginal") x is a half-Student-t, or a Student-t, with nu = 2 shape degrees of
freedom and scale sqrt(rate / shape); with them explicit ("hierarchical") x is non-centred,
x_j = raw_j precision_j^-1/2. PFCVM (eqs. 5, 8), PCVM, RVM and RFVM use these priors.

A finite `slab` multiplies the density by exp(-x_j^2 / (2 slab^2)) and renormalises it (`slab.py`).
In the hierarchical form x_j is then raw_j (precision_j + slab^-2)^-1/2.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import special, stats

from . import slab as slabs
from .slab import SlabStudentT, TiltedGamma

Form = Literal["marginal", "hierarchical"]


class WeightPrior(NamedTuple):
    """Prior of one group of weights: Gamma(shape, rate) precisions, and a slab (inf: no slab)."""

    shape: float
    rate: float
    slab: float = np.inf

    @property
    def scale(self) -> float:
        """Scale of the weights: sqrt(rate / shape)."""
        # NumPy's float: PyTensor may turn a Python one into a float32 constant
        return np.float64(np.sqrt(self.rate / self.shape))

    @property
    def log_mass(self) -> float:
        """Log of the normalising constant of the slab; 0 without a slab."""
        return slabs.log_mass(self.shape, self.rate, self.slab)


def weight(
    name: str,
    group: str,
    precision: str,
    dims: str,
    prior: WeightPrior,
    form: Form,
    *,
    signed: bool = False,
) -> Any:
    """Declare x_j ~ N+(0, 1 / precision_j), precision_j ~ Gamma, in either form, with its slab.

    Parameters
    ----------
    name, precision : str
        Names of x and of its precisions.
    group : {"sample", "feature"}
        Which weights these are. It determines the names of the rate and the non-centred variable.
    dims : str
        The dim of x.
    signed : bool
        Whether x has either sign, Normal(0, precision^-1/2), as in the RVM.
    """
    shape, rate = prior.shape, pm.Data(f"{group}_rate", prior.rate)
    unit = pm.Normal if signed else pm.HalfNormal
    if np.isfinite(prior.slab):
        slab = pm.Data(f"{group}_slab", prior.slab)
        # it depends on the filled rate and slab, and is rebound with them
        mass = pm.Data(f"{group}_log_mass", prior.log_mass)
        if form == "marginal":
            return SlabStudentT(name, shape, rate, slab, mass, signed=signed, dims=dims)
        p = TiltedGamma(precision, shape, rate, slab, mass, dims=dims)
        raw = unit(f"{group}_weight_raw", sigma=1.0, dims=dims)
        return pm.Deterministic(name, raw * (p + slab**-2) ** -0.5, dims=dims)
    if form == "marginal":
        nu, sigma = 2.0 * shape, pt.sqrt(rate / shape)
        if signed:
            return pm.StudentT(name, nu=nu, mu=0.0, sigma=sigma, dims=dims)
        return pm.HalfStudentT(name, nu=nu, sigma=sigma, dims=dims)
    p = pm.Gamma(precision, shape, rate, dims=dims)
    raw = unit(f"{group}_weight_raw", sigma=1.0, dims=dims)
    return pm.Deterministic(name, raw * p**-0.5, dims=dims)


def precisions(point: Mapping[str, np.ndarray], name: str, form: Form) -> np.ndarray | None:
    """Return the precisions if the form keeps them, None if they are integrated out."""
    return None if form == "marginal" else point[name]


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
        a, twice = (
            prior.shape,
            2.0 * prior.rate,
        )  # nu scale^2 = 2 rate; `stats.t` is five times slower
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


def log_jacobian(
    x: np.ndarray, precision: np.ndarray | None, prior: WeightPrior, *, signed: bool = False
) -> np.ndarray:
    """Return log |d (precision, x) / d (log precision, log raw)|, x = raw total^-1/2.

    total = precision + slab^-2. d precision / d log precision = precision and dx / d log raw = x. A
    signed weight does not transform raw: dx / d raw = total^-1/2. The marginal form has
    d x / d log x = x, or no transform.
    """
    each = np.zeros(np.shape(x)) if signed else np.log(x)
    if precision is not None:
        each = each + np.log(precision)
        if signed:
            each = each - 0.5 * np.log(precision + prior.slab**-2.0)
    return each.sum(-1)


def free(
    point: Mapping[str, np.ndarray],
    name: str,
    group: str,
    precision: str,
    prior: WeightPrior,
    form: Form,
) -> dict[str, np.ndarray]:
    """Return the free variables that `weight` declares, at a point of the paper's variables."""
    if form == "marginal":
        return {name: point[name]}
    raw = point[name] * (point[precision] + prior.slab**-2.0) ** 0.5
    return {precision: point[precision], f"{group}_weight_raw": raw}
