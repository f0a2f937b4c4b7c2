"""Automatic relevance determination: weights whose precisions are Gamma, in either form.

    precision_j ~ Gamma(shape, rate)
    x_j         ~ N+(0, 1 / precision_j)       or Normal(0, precision_j^-1/2) where it is signed

N+(0, v) is a normal of variance v truncated to the positive half line. With the precisions
integrated out ("marginal") x is a half-Student-t, or a Student-t, with nu = 2 shape degrees of
freedom and scale sqrt(rate / shape); with them explicit ("hierarchical") x is non-centred,
x_j = raw_j precision_j^-1/2. PFCVM (eqs. 5, 8), PCVM and RVM are made of these.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import stats

from ardvark.validate import InputError, positive

Form = Literal["marginal", "hierarchical"]


class GammaPrior(NamedTuple):
    """Gamma(shape, rate), the hyperprior of the precisions of one group of weights."""

    shape: float
    rate: float

    @property
    def scale(self) -> float:
        """Scale of the weights: sqrt(rate / shape)."""
        # NumPy's float: PyTensor may turn a Python one into a float32 constant
        return np.float64(np.sqrt(self.rate / self.shape))

    @classmethod
    def filled(cls, shape: float | None, rate: float | None) -> "GammaPrior":
        """Return the prior of filled hyperparameters."""
        if shape is None or rate is None:
            raise InputError("shape and rate are not filled yet: use hypers.filled(N, B, D).")
        return cls(shape, rate)


def check_gamma(name: str, shape: object, rate: object, why: str) -> None:
    """Refuse a Gamma prior that is not proper."""
    positive(f"{name}_shape", shape, why)
    if rate is not None:
        positive(f"{name}_rate", rate, why)


def filled_rate(rate: float | None, shape: float, scale: float) -> float:
    """Return the rate, or the one at which sqrt(rate / shape), a weight's scale, is `scale`."""
    return shape * scale**2 if rate is None else rate


def weight(
    name: str,
    group: str,
    precision: str,
    dims: str,
    prior: GammaPrior,
    form: Form,
    *,
    signed: bool = False,
) -> Any:
    """Declare x_j ~ N+(0, 1 / precision_j), precision_j ~ `prior`, in either form.

    Parameters
    ----------
    name, precision : str
        Names of x and of its precisions.
    group : {"sample", "feature"}
        Whose weights: names the rate and the non-centred variable.
    dims : str
        The dim of x.
    signed : bool
        x on the whole line, Normal(0, precision^-1/2): the RVM's.
    """
    shape, rate = prior.shape, pm.Data(f"{group}_rate", prior.rate)
    if form == "marginal":
        nu, sigma = 2.0 * shape, pt.sqrt(rate / shape)
        if signed:
            return pm.StudentT(name, nu=nu, mu=0.0, sigma=sigma, dims=dims)
        return pm.HalfStudentT(name, nu=nu, sigma=sigma, dims=dims)
    p = pm.Gamma(precision, shape, rate, dims=dims)
    unit = pm.Normal if signed else pm.HalfNormal
    raw = unit(f"{group}_weight_raw", sigma=1.0, dims=dims)
    return pm.Deterministic(name, raw * p**-0.5, dims=dims)


def precisions(point: Mapping[str, np.ndarray], name: str, form: Form) -> np.ndarray | None:
    """Return the precisions where the form keeps them, None where they are integrated out."""
    return None if form == "marginal" else point[name]


def logp(
    x: np.ndarray, precision: np.ndarray | None, prior: GammaPrior, *, signed: bool = False
) -> np.ndarray:
    """Return log p(x, precision), or log p(x) without precision, summed over the last axis.

    N+ has the density 2 Normal(x | 0, precision^-1/2) on x >= 0 (eqs. 5, 8). Its mixture over
    precision ~ Gamma(shape, rate) is twice a Student-t with nu = 2 shape degrees of freedom and
    scale sqrt(rate / shape), on x >= 0.
    """
    if precision is None:
        each = stats.t.logpdf(x, 2.0 * prior.shape, scale=prior.scale)
    else:
        each = stats.norm.logpdf(x, 0.0, precision**-0.5)
        each = each + stats.gamma.logpdf(precision, prior.shape, scale=1.0 / prior.rate)
    if not signed:
        each = each + np.where(x >= 0.0, math.log(2.0), -np.inf)
    return each.sum(-1)


def draw(
    rng: np.random.Generator, prior: GammaPrior, size: int, *, signed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return one draw of the precisions and of their weights, each (size,)."""
    precision = rng.gamma(prior.shape, 1.0 / prior.rate, size)
    x = rng.normal(0.0, precision**-0.5)
    return precision, x if signed else np.abs(x)


def log_jacobian(
    x: np.ndarray, precision: np.ndarray | None, *, signed: bool = False
) -> np.ndarray:
    """Return log |d (precision, x) / d (log precision, log raw)|, x = raw precision^-1/2.

    d precision / d log precision = precision and dx / d log raw = x. A signed weight keeps raw on
    the line: dx / d raw = precision^-1/2. The marginal form has d x / d log x = x, or no transform.
    """
    each = np.zeros(np.shape(x)) if signed else np.log(x)
    if precision is not None:
        each = each + (0.5 if signed else 1.0) * np.log(precision)
    return each.sum(-1)


def free(
    point: Mapping[str, np.ndarray], name: str, group: str, precision: str, form: Form
) -> dict[str, np.ndarray]:
    """Return the free variables `weight` declares, at a point of the paper's variables."""
    if form == "marginal":
        return {name: point[name]}
    raw = point[name] * point[precision] ** 0.5
    return {precision: point[precision], f"{group}_weight_raw": raw}
