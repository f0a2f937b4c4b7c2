"""The learned scale g of many weights with these integrated out, in the rows; for sparse probit.

Given the shape of the variances, t = tau / g^2, and with beta integrated out,

    z ~ Normal(0, A + g^2 G),    G = X diag(t) X' (N, N),    A = I + B diag(tau_B) B',

where B has the bias and the covariates, and each z_i is on the side of its label. One basis
diagonalises both, V'A V = I and V'G V = diag(values), so that e = V'z has the independent
variances 1 + g^2 values. A cycle has three steps, all with t as it is:

1. z | g, one z_i after the other, and then its length: as in `probit_steps.py`.
2. g with e / (1 + g^2 values)^1/2 as it is: z grows with g, as far as no z_i changes its side.
3. g with z as it is, of density prod_k Normal(e_k; 0, 1 + g^2 values_k).

In step 2 g is free of what z says, and in step 3 of where z is: they are interwoven (Yu, Meng 2011,
doi 10.1198/jcgs.2011.203main). Both are slice steps in u of g -> e^u g.

Why: what holds the chain is the scale of eta, and with it z and the direction of beta. A cycle
takes O(N^3) time, as much as N / D of what G takes, so there are many in a sweep. On colon
(62 x 2000) 2400 sweeps are worth 1120 to 1230 independent draws of ln g with 16 cycles, 442 with 4;
756 without step 2 and 701 without step 3. With steps a and b of `laplace_scale.py` and elliptical
moves instead they are worth 150 to 160, in two thirds of the time (2026-11-29).
"""

import math
from typing import NamedTuple

import numba
import numpy as np
from scipy import linalg

from .laplace_scale import log_prior
from .probit_steps import latent_scale, latent_scan
from .slice_step import slice_step

FEWEST, MOST = 4, 16
"""Cycles in a sweep; between them, as many as there are features for each row."""
_ROUNDING = 1e-9  # of a z_i, whose errors have the standard deviation 1


class Spectrum(NamedTuple):
    """The covariance of z in its basis: `values` (N,), V (N, N), and `back` = V'^-1."""

    values: np.ndarray
    V: np.ndarray
    back: np.ndarray


def spectrum(X: np.ndarray, B: np.ndarray) -> Spectrum:
    """Return the basis of A = I + B B' and G = X X', of columns times standard deviations."""
    A = B @ B.T
    A.flat[:: len(A) + 1] += 1.0
    values, V = linalg.eigh(X @ X.T, A, check_finite=False)
    return Spectrum(np.maximum(values, 0.0), np.ascontiguousarray(V), A @ V)


@numba.njit(cache=True, nogil=True)
def precision(found: Spectrum, g: float) -> np.ndarray:
    """Return (A + g^2 G)^-1 (N, N)."""
    return (found.V / (1.0 + g * g * found.values)) @ found.V.T


@numba.njit(cache=True, nogil=True)
def _growth(growth: float, g: float, values: np.ndarray) -> np.ndarray:
    """Return by what e grows with g: the ratio of its standard deviations."""
    return np.sqrt((1.0 + (growth * g) ** 2 * values) / (1.0 + g * g * values))


@numba.njit(cache=True, nogil=True)
def _log_with_latent(
    u: float, g: float, values: np.ndarray, back: np.ndarray, e: np.ndarray, sign: np.ndarray
) -> float:
    """Return the log density of step 2, -inf where a z_i is not on the side of its label."""
    growth = math.exp(u)
    z = back @ (e * _growth(growth, g, values))
    for i in range(len(z)):
        if sign[i] * z[i] < -_ROUNDING:
            return -math.inf
    return log_prior(growth * g)


@numba.njit(cache=True, nogil=True)
def _log_without_latent(u: float, g: float, values: np.ndarray, squares: np.ndarray) -> float:
    """Return the log density of step 3."""
    g = math.exp(u) * g
    total = log_prior(g)
    for k in range(len(values)):
        variance = 1.0 + g * g * values[k]
        total -= 0.5 * (math.log(variance) + squares[k] / variance)
    return total


_slice_with, _slice_without = slice_step(_log_with_latent), slice_step(_log_without_latent)


@numba.njit(cache=True, nogil=True)
def move(
    rng: np.random.Generator,
    cycles: int,
    g: float,
    found: Spectrum,
    sign: np.ndarray,
    z: np.ndarray,
) -> float:
    """Move z in place and return the new g, by so many cycles."""
    for _ in range(cycles):
        P = precision(found, g)
        latent_scan(rng, P, sign, 1, z)
        latent_scale(rng, P, z)
        e = found.V.T @ z
        growth = math.exp(_slice_with(rng, 0.5, (g, found.values, found.back, e, sign)))
        e *= _growth(growth, g, found.values)
        g *= growth
        z[:] = found.back @ e
        g *= math.exp(_slice_without(rng, 0.5, (g, found.values, e * e)))
    return g
