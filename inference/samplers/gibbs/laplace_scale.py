"""Steps of a learned scale g of K weights x, for the Gibbs samplers of JCFO and sparse probit.

Given g the weights have Laplace or exponential priors of scale g s, their variances integrated out:

    p(g, x)  proportional to  exp(-(g / slab)^2 / 2) / (1 + g^2)  g^-K exp(-sum_k abs(x_k) / (g s)).

Every step moves g -> e^u g by a slice step in u (Neal 2003), from u = 0, and some weights with it.
A step leaves the posterior of (ln g, weights) as it is if the density of u is that of the moved
point times the Jacobian of the move. g enters no density but that of x, so the steps are three:

(a) g alone, its full conditional. It moves ln g by K^-1/2, since K weights know their scale.
(b) (g, x) -> e^u (g, x). The prior of x / g is free of g, so u has the prior of ln g times the
    likelihood, with everything else integrated out of it. (a), where g is what the weights say, is
    interwoven with (b), where it is what the labels say (Yu, Meng 2011, doi
    10.1198/jcgs.2011.203main).
(c) JCFO with a linear kernel: (g, theta, beta_j) -> (e^u g, e^u theta, e^-u beta_j), eta as it is.

The variances of x are drawn after these steps, and z after step b. On colon (62 x 2000), 1000
sweeps are worth 133 independent draws of ln g in JCFO (32 without step b, 118 without step c).
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from ardvark.models.jcfo import SCALE_SLAB
from ardvark.models.parts.kernels import LINEAR, RBF

from .probit_steps import log_likelihood, log_scale_density
from .slice_step import slice_step

NONE = np.empty((0, 0))


class Line(NamedTuple):
    """How eta (N,) depends on a growth of x: fixed + growth own, or fixed + K beta.

    K is a function of the `kind` of growth inner, inner (N, B).
    """

    fixed: np.ndarray
    own: np.ndarray
    kind: int
    degree: int
    inner: np.ndarray
    beta: np.ndarray


@numba.njit(cache=True, nogil=True)
def log_prior(g: float) -> float:
    """Return the log density of ln g, up to a constant."""
    return math.log(g) - math.log1p(g * g) - 0.5 * (g / SCALE_SLAB) ** 2


@numba.njit(cache=True, nogil=True)
def log_alone(u: float, g: float, power: float, down: float, offset: float, tilt: float) -> float:
    """Return the log density of steps a and c: the likelihood stays as it is."""
    return log_prior(g * math.exp(u)) + log_scale_density(u, power, 0.0, 0.0, down, offset, tilt)


@numba.njit(cache=True, nogil=True)
def grown(growth: float, line: Line) -> np.ndarray:
    """Return eta (N,) with x times `growth`."""
    fixed, own, kind, degree, inner, beta = line
    if kind == LINEAR:
        return fixed + growth * own
    eta = fixed.copy()
    for i in range(len(eta)):
        for j in range(len(beta)):
            at = growth * inner[i, j]
            eta[i] += beta[j] * (math.exp(-at) if kind == RBF else (1.0 + at) ** degree)
    return eta


@numba.njit(cache=True, nogil=True)
def log_with_weights(u: float, g: float, sign: np.ndarray, line: Line) -> float:
    """Return the log density of step b."""
    growth = math.exp(u)
    return log_prior(g * growth) + log_likelihood(sign, grown(growth, line))


_alone = slice_step(log_alone)
_with_weights = slice_step(log_with_weights)


@numba.njit(cache=True, nogil=True)
def alone(
    rng: np.random.Generator, g: float, count: int, down: float, offset: float, tilt: float
) -> float:
    """Steps 1 and 3: return e^u, for `count` weights whose density has the terms of `log_alone`.

    In step a `down` is sum_k abs(x_k) / (g s), and in step c it is that of the prior of beta.
    """
    power = -float(count)
    return math.exp(_alone(rng, 3.0 * (count + 1.0) ** -0.5, (g, power, down, offset, tilt)))


@numba.njit(cache=True, nogil=True)
def with_weights(rng: np.random.Generator, g: float, sign: np.ndarray, line: Line) -> float:
    """Step b: return e^u."""
    return math.exp(_with_weights(rng, 1.0, (g, sign, line)))
