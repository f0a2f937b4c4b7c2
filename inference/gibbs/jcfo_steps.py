"""The compiled steps of JCFO's Gibbs sampler; `jcfo` explains them and puts them together.

Every loop ends even if it meets NaN. The result is then NaN, and `fit` reports draws that are not
finite.
"""

import math

import numba
import numpy as np

from ardvark.models.parts.kernels import LINEAR, RBF
from ardvark.models.parts.truncated_normal import truncated

from .slice_step import slice_step

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_BLOCK = 4096  # features that a product handles at once, so that no (N, D) temporary is needed
_LARGE = 1e8  # trace of G G' above which it is not formed
_SHRINKAGES = 200  # long before this the interval of a slice is shorter than rounding error


# --- products -------------------------------------------------------------------------------------


def weighted_products(Xt: np.ndarray, theta: np.ndarray, Zt: np.ndarray) -> np.ndarray:
    """Return X diag(theta) Z' (N, B) for theta >= 0, a block of features at a time.

    If Z is X it is R'R with R = diag(theta)^1/2 X', of which BLAS computes only half.
    """
    out = np.zeros((Xt.shape[1], Zt.shape[1]))
    weight = np.sqrt(theta) if Xt is Zt else theta
    for at in range(0, len(theta), _BLOCK):
        block = slice(at, at + _BLOCK)
        R = Xt[block] * weight[block, None]
        out += R.T @ (R if Xt is Zt else Zt[block])
    return out


def weighted_squares(Xt: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return sum_k theta_k x_ik^2 (N,)."""
    return np.einsum("dn,dn,d->n", Xt, Xt, theta)


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


# --- draws ----------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def positive_draw(rng: np.random.Generator, linear: float, precision: float) -> float:
    """Draw x > 0 of density proportional to exp(linear x - precision x^2 / 2).

    This is a normal with mean linear / precision truncated to x > 0, or an exponential if precision
    is 0 (then linear < 0). The method is rejection, with a proposal that depends on t = mean / sd.
    For t <= -10 it is the exponential with rate -linear, whose acceptance rate tends to 1 and which
    cannot overflow. For t < 0 it is Robert's exponential (1995, doi 10.1007/BF00143942; accepts at
    least 76 %). For t >= 0 it is the normal. The conditions are written so that NaN gives NaN,
    which `fit` reports, and not an endless loop.
    """
    if linear < 0.0 and precision <= 0.01 * linear * linear:
        while True:
            x = rng.standard_exponential() / -linear
            if not rng.standard_exponential() < 0.5 * precision * x * x:
                return x
    sd = 1.0 / math.sqrt(precision)
    t = linear * sd
    if t >= 0.0:
        while True:
            x = t + rng.standard_normal()
            if not x <= 0.0:
                return sd * x
    root = math.sqrt(t * t + 4.0)
    rate, gap = 0.5 * (root - t), 2.0 / (root - t)  # gap = rate - abs(t)
    while True:
        x = rng.standard_exponential() / rate
        if not rng.standard_exponential() < 0.5 * (x - gap) ** 2:
            return sd * x


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


# --- feature weights ------------------------------------------------------------------------------


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
        for _ in range(_SHRINKAGES):
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


# --- sample weights -------------------------------------------------------------------------------


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
        for _ in range(_SHRINKAGES):
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
