"""The compiled steps that JCFO and sparse probit share; `probit` puts them together.

They are those of a probit model whose weights have Laplace priors, each written as a normal with a
variance of its own. Steps are numbered as in `jcfo`, which derives them. Every loop ends even if it
meets NaN. The result is then NaN, and `fit` reports draws that are not finite.
"""

import math

import numba
import numpy as np

from ardvark.models.parts.truncated_normal import truncated

from .positive_draw import positive_draw
from .slice_step import MOST, slice_step

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_LARGE = 1e8  # trace of G G' above which it is not formed


# --- latent values --------------------------------------------------------------------------------


def precision_matrix(G: np.ndarray) -> np.ndarray:
    """Return P = (I + G G')^-1 (N, N).

    Its rounding error is that of G G', relative to 1. If that is large, P is computed from the
    triangular factor R of [G'; I], R'R = I + G G', which avoids squaring.
    """
    gram = G @ G.T
    N = len(gram)
    if np.trace(gram) < _LARGE:
        gram.flat[:: N + 1] += 1.0
        return np.linalg.inv(gram)
    R = np.linalg.qr(np.vstack([G.T, np.eye(N)]), mode="r")
    inverse = np.linalg.inv(R)
    return inverse @ inverse.T


@numba.njit(cache=True, nogil=True)
def draw_latent(rng: np.random.Generator, sign: np.ndarray, eta: np.ndarray, z: np.ndarray) -> None:
    """Draw every z_i ~ Normal(eta_i, 1) on the side of 0 that its label determines: JCFO (16)."""
    for i in range(len(z)):
        z[i] = sign[i] * positive_draw(rng, sign[i] * eta[i], 1.0)


@numba.njit(cache=True, nogil=True)
def latent_scan(
    rng: np.random.Generator, P: np.ndarray, sign: np.ndarray, scans: int, z: np.ndarray
) -> None:
    """Step 4: z_i | z_-i, z ~ Normal(0, P^-1) on the sides of the labels, `scans` times."""
    N = len(z)
    Pz = P @ z
    for _ in range(scans):
        for i in range(N):
            linear = P[i, i] * z[i] - Pz[i]
            new = sign[i] * positive_draw(rng, sign[i] * linear, P[i, i])
            change = new - z[i]
            z[i] = new
            for j in range(N):
                Pz[j] += change * P[i, j]


@numba.njit(cache=True, nogil=True)
def latent_scale(rng: np.random.Generator, P: np.ndarray, z: np.ndarray) -> None:
    """Step 4: z -> g z, density g^N exp(-g^2 z'P z / 2) for the measure dg / g."""
    z *= math.sqrt(rng.chisquare(len(z)) / (z @ (P @ z)))


@numba.njit(cache=True, nogil=True)
def log_likelihood(sign: np.ndarray, eta: np.ndarray) -> float:
    """Return sum_i ln Phi(s_i eta_i)."""
    total, product = 0.0, 1.0
    for i in range(len(eta)):
        t = sign[i] * eta[i]
        if t < -5.0:
            # ln phi(t) - ln hazard(t), hazard = mean - t of the truncated normal
            total -= 0.5 * t * t + _LOG_ROOT_2PI + math.log(truncated(t)[0] - t)
        elif t < 8.3:  # above it, Phi(t) rounds to 1
            product *= 0.5 * math.erfc(-t * _ROOT_HALF)
            if product < 1e-290:  # one logarithm for many observations
                total += math.log(product)
                product = 1.0
    return total + math.log(product)


# --- weights and their variances ------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def draw_variances(
    rng: np.random.Generator, weight: np.ndarray, gamma: float, out: np.ndarray
) -> None:
    """Fill out with draws of the variance tau_j of each weight: 1 / tau_j is inverse Gaussian.

    Its mean is gamma^1/2 / abs(w), infinite at w = 0, so tau is drawn directly. With m = abs(w) /
    gamma^1/2 and Y ~ chi-squared(1), the smaller root of Michael, Schucany and Haas (1976, doi
    10.2307/2683801) is 1 / t, t = m + Y / (2 gamma) + (Y^2 / (4 gamma^2) + m Y / gamma)^1/2. It is
    taken with probability t / (t + m); the other root is t / m^2. No terms cancel, and at w = 0 the
    result is tau = Y / gamma.
    """
    root = math.sqrt(gamma)
    for j in range(len(weight)):
        m = abs(weight[j]) / root
        half = 0.5 * rng.standard_normal() ** 2 / gamma
        t = m + half + math.sqrt(half * (half + 2.0 * m))
        if rng.random() * (t + m) > t:
            t = m * (m / t)
        out[j] = max(t, 1e-300)  # m^2 may underflow; the density is that of positive variances


def draw_block(
    rng: np.random.Generator,
    P: np.ndarray,
    H: np.ndarray,
    tau: np.ndarray,
    z: np.ndarray,
    beta: np.ndarray,
) -> None:
    """Step 4: fill beta (K,) with a draw given z and tau, P = (I + H T H')^-1.

    u ~ Normal(0, T), d ~ Normal(0, I): beta = u + T H'P (z - H u - d).
    """
    u = np.sqrt(tau) * rng.standard_normal(len(tau))
    v = H @ u + rng.standard_normal(len(H))
    beta[:] = u + tau * (H.T @ (P @ (z - v)))


@numba.njit(cache=True, nogil=True)
def elliptical(
    rng: np.random.Generator,
    steps: int,
    sign: np.ndarray,
    H: np.ndarray,
    sd: np.ndarray,
    beta: np.ndarray,
    eta: np.ndarray,
) -> None:
    """Step 5: beta = cos(a) beta + sin(a) nu, nu from the prior Normal(0, sd), eta in place."""
    nu, proposed = np.empty(len(beta)), np.empty(len(eta))
    present = log_likelihood(sign, eta)
    for _ in range(steps):
        for j in range(len(nu)):
            nu[j] = sd[j] * rng.standard_normal()
        Hnu = H @ nu
        level = present - rng.standard_exponential()
        angle = 2.0 * math.pi * rng.random()
        low, high = angle - 2.0 * math.pi, angle
        for _ in range(MOST):
            c, s = math.cos(angle), math.sin(angle)
            for i in range(len(eta)):
                proposed[i] = c * eta[i] + s * Hnu[i]
            value = log_likelihood(sign, proposed)
            if value >= level:
                present = value
                eta[:] = proposed
                for j in range(len(nu)):
                    beta[j] = c * beta[j] + s * nu[j]
                break
            if angle < 0.0:
                low = angle
            else:
                high = angle
            angle = low + (high - low) * rng.random()


# --- scales ---------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def log_scale_density(
    u: float, power: float, up2: float, up: float, down: float, offset: float, tilt: float
) -> float:
    """Return power u - up2 e^2u - up e^u - down e^-u - abs(offset - tilt e^-u), a log density."""
    shrunk = math.exp(-u)
    grown = math.exp(u)
    return (
        power * u - up2 * grown * grown - up * grown - down * shrunk - abs(offset - tilt * shrunk)
    )


_scale_step = slice_step(log_scale_density)


@numba.njit(cache=True, nogil=True)
def log_scale(
    rng: np.random.Generator,
    width: float,
    power: float,
    up2: float,
    up: float,
    down: float,
    offset: float,
    tilt: float,
) -> float:
    """Return u after one slice step from u = 0.

    The density is log-concave whenever down >= abs(tilt), so stepping out finds the
    whole slice, within the 200 widths that it may take: far more than it needs.
    """
    return _scale_step(rng, width, (power, up2, up, down, offset, tilt))
