"""A step of the horseshoe in which everything that has the size of eta grows alike, without omega.

    (b, f, beta, tau, c2^1/2)  ->  e^u (b, f, beta, tau, c2^1/2),    eta -> e^u eta,

with b the bias and f the weights of covariates, F numbers together. It is a generalised Gibbs step
(Liu, Sabatti 2000, doi 10.1093/biomet/87.2.353): u has the density of the moved point times the
Jacobian e^((F + D + 3) u), of b, f, beta, tau and c2. Since the variance of a weight,
v^-1 = (tau lambda)^-2 + c2^-1, grows by e^2u, the prior of beta takes e^(-D u), and

    ln p(u) = ln p(y | e^u eta) - e^2u square / 2                      bias and covariates
              - ln(1 + (e^u tau / tau_0)^2)                            tau ~ C+(0, tau_0)
              - 2 (shape + 1) u - e^-2u scale / c2                     c2 ~ InvGamma(shape, scale)
              + (F + 3) u,

with `square` the sum of the squares of (b, f), each over its prior standard deviation.

Why it is needed: where labels can be told apart, the size of eta is what the data know least, and
omega ~ PG(1, eta) holds it. Given omega the information on eta is tanh(eta / 2) / (2 eta), and
without it sigmoid(eta) sigmoid(-eta), which is less by a factor of 7 at |eta| = 4. A step costs
O(N) for each density.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from .slice_step import slice_step


class Growth(NamedTuple):
    """What the density of u needs besides the labels and eta: see above; `size` is F."""

    tau: float
    c2: float
    square: float
    size: int
    tau_0: float
    shape: float
    scale: float


@numba.njit(cache=True, nogil=True)
def log_likelihood(sign: np.ndarray, eta: np.ndarray, grown: float) -> float:
    """Return sum_n ln sigmoid(s_n eta_n grown)."""
    total, product = 0.0, 1.0
    for n in range(len(eta)):
        t = sign[n] * eta[n] * grown
        total += min(t, 0.0)
        product *= 1.0 + math.exp(-abs(t))
        if product > 1e150:  # one logarithm for many observations
            total -= math.log(product)
            product = 1.0
    return total - math.log(product)


@numba.njit(cache=True, nogil=True)
def log_growth(u: float, sign: np.ndarray, eta: np.ndarray, g: Growth) -> float:
    """Return ln p(u), up to a constant."""
    grown = math.exp(u)
    relative = grown * g.tau / g.tau_0
    total = log_likelihood(sign, eta, grown) - 0.5 * grown * grown * g.square
    total -= math.log(1.0 + relative * relative) + g.scale / (g.c2 * grown * grown)
    return total + (g.size + 1.0 - 2.0 * g.shape) * u


_step = slice_step(log_growth)


@numba.njit(cache=True, nogil=True)
def draw_growth(
    rng: np.random.Generator, width: float, sign: np.ndarray, eta: np.ndarray, g: Growth
) -> float:
    """Return e^u after one slice step from u = 0."""
    return math.exp(_step(rng, width, (sign, eta, g)))
