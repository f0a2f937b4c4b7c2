"""Steps of a learned scale g of K weights x, for the Gibbs samplers of JCFO and sparse probit.

Given g the weights have Laplace or exponential priors of scale g s, their variances integrated out:

    p(g, x)  proportional to  exp(-(g / slab)^2 / 2) / (1 + g^2)  g^-K exp(-sum_k abs(x_k) / (g s)).

Every step moves g -> e^u g by a slice step in u (Neal 2003), from u = 0, and some weights with it.
A step leaves the posterior of (ln g, weights) as it is if the density of u is that of the moved
point times the Jacobian of the move. g enters no density but that of x, so the steps are three:

1. g alone, its full conditional. It moves ln g by K^-1/2, since K weights know their scale.
2. (g, x) -> e^u (g, x). The prior of x / g is free of g, so u has the prior of ln g times the
   likelihood, which is that of N labels with everything else integrated out of them: interweaving
   (Yu, Meng 2011, doi 10.1198/jcgs.2011.203main) of 1, where g is what the weights say, and 2,
   where it is what the labels say.
3. JCFO with a linear kernel: (g, theta, beta_j) -> (e^u g, e^u theta, e^-u beta_j), eta as it is.

The variances of x are drawn after these steps, and z after step 2.
"""

import math
from collections.abc import Callable

import numpy as np

from ardvark.models.jcfo import SCALE_SLAB

from .jcfo_steps import log_likelihood, log_scale_density

_SHRINKAGES = 200  # long before this the interval is shorter than rounding error


def log_prior(g: float) -> float:
    """Return the log density of ln g, up to a constant."""
    return math.log(g) - math.log1p(g * g) - 0.5 * (g / SCALE_SLAB) ** 2


def slice_step(rng: np.random.Generator, log_density: Callable[[float], float], w: float) -> float:
    """Return u after one slice step of width w from u = 0, stepping out and shrinking."""
    level = log_density(0.0) - rng.standard_exponential()
    low = -w * rng.random()
    high = low + w
    for _ in range(_SHRINKAGES):
        if not log_density(low) > level:
            break
        low -= w
    for _ in range(_SHRINKAGES):
        if not log_density(high) > level:
            break
        high += w
    for _ in range(_SHRINKAGES):
        u = low + (high - low) * rng.random()
        if log_density(u) >= level:
            return u
        low, high = (u, high) if u < 0.0 else (low, u)
    return 0.0


def alone(rng: np.random.Generator, g: float, count: int, size: float) -> float:
    """Step 1: return g, for `count` weights whose sum of abs(x_k) / s is `size`."""

    def log_density(u: float) -> float:
        return log_prior(g * math.exp(u)) - count * u - size / g * math.exp(-u)

    return g * math.exp(slice_step(rng, log_density, 3.0 * (count + 1.0) ** -0.5))


def with_weights(
    rng: np.random.Generator, g: float, sign: np.ndarray, eta: Callable[[float], np.ndarray]
) -> float:
    """Step 2: return the factor e^u of g and x; `eta(e^u)` is eta (N,) with e^u x."""

    def log_density(u: float) -> float:
        growth = math.exp(u)
        return log_prior(g * growth) + float(log_likelihood(sign, eta(growth)))

    return math.exp(slice_step(rng, log_density, 1.0))


def against(
    rng: np.random.Generator, g: float, count: int, down: float, offset: float, tilt: float
) -> float:
    """Step 3: return the factor e^u, for `count` beta_j.

    `down`, `offset` and `tilt` are the terms of the prior of beta, as in `log_scale_density`.
    """

    def log_density(u: float) -> float:
        return log_prior(g * math.exp(u)) + float(
            log_scale_density(u, -float(count), 0.0, 0.0, down, offset, tilt)
        )

    return math.exp(slice_step(rng, log_density, 3.0 * (count + 1.0) ** -0.5))
