"""The compiled scans of JCFO's feature weights: step 1 of `jcfo`, which derives it.

Every loop ends even if it meets NaN. The result is then NaN, and `fit` reports draws that are not
finite.
"""

import math

import numba
import numpy as np

from ardvark.models.parts.kernels import LINEAR, RBF

from .positive_draw import positive_draw
from .probit_steps import log_likelihood
from .slice_step import MOST


@numba.njit(cache=True, nogil=True)
def linear_scan(
    rng: np.random.Generator,
    Xt: np.ndarray,
    slope: np.ndarray,
    square: np.ndarray,
    rate: float,
    residual: np.ndarray,
    theta: np.ndarray,
) -> None:
    """Step 1 for eta linear in theta, g_k = slope_k x_k; updates residual = z - eta in place."""
    D, N = Xt.shape
    for k in range(D):
        product = 0.0
        for i in range(N):
            product += Xt[k, i] * residual[i]
        precision = slope[k] * slope[k] * square[k]
        linear = slope[k] * product + precision * theta[k] - rate
        new = positive_draw(rng, linear, precision)
        change = slope[k] * (new - theta[k])
        theta[k] = new
        for i in range(N):
            residual[i] -= change * Xt[k, i]


@numba.njit(cache=True, nogil=True)
def shifted_decision(
    kind: int,
    degree: int,
    x: np.ndarray,
    z: np.ndarray,
    change: float,
    slope: float,
    beta: np.ndarray,
    inner: np.ndarray,
    eta: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill out with eta after one theta_k has changed; x (N,) and z (B,) hold that feature."""
    for i in range(len(x)):
        if kind == LINEAR:
            out[i] = eta[i] + change * slope * x[i]
            continue
        total = beta[0]
        if kind == RBF:
            for j in range(len(z)):
                total += beta[j + 1] * math.exp(-(inner[i, j] + change * (x[i] - z[j]) ** 2))
        else:
            for j in range(len(z)):
                total += beta[j + 1] * (1.0 + inner[i, j] + change * x[i] * z[j]) ** degree
        out[i] = total


@numba.njit(cache=True, nogil=True)
def slice_scan(
    rng: np.random.Generator,
    kind: int,
    degree: int,
    Xt: np.ndarray,
    Zt: np.ndarray,
    sign: np.ndarray,
    rate: float,
    slope: np.ndarray,
    beta: np.ndarray,
    added: np.ndarray,
    inner: np.ndarray,
    eta: np.ndarray,
    theta: np.ndarray,
) -> None:
    """Step 1 with z integrated out; updates eta and inner in place.

    `added` (N,) is what covariates add to eta; empty without any.
    """
    (D, N), B = Xt.shape, Zt.shape[1]
    proposed = np.empty(N)
    present = log_likelihood(sign, eta)
    for k in range(D):
        x, z = Xt[k], Zt[k]
        level = present - rng.standard_exponential()
        v, low, high = math.exp(-rate * theta[k]), 0.0, 1.0
        for _ in range(MOST):
            at = high - (high - low) * rng.random()  # in (low, high]: never 0
            new = -math.log(at) / rate
            change = new - theta[k]
            shifted_decision(kind, degree, x, z, change, slope[k], beta, inner, eta, proposed)
            if kind != LINEAR:  # a linear one is moved, not computed anew
                for i in range(len(added)):
                    proposed[i] += added[i]
            value = log_likelihood(sign, proposed)
            if value >= level:
                theta[k], present = new, value
                eta[:] = proposed
                if kind != LINEAR:
                    for i in range(N):
                        for j in range(B):
                            unit = (x[i] - z[j]) ** 2 if kind == RBF else x[i] * z[j]
                            inner[i, j] += change * unit
                break
            if at < v:
                low = at
            else:
                high = at
