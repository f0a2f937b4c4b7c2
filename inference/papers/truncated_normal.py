"""Densities and draws of the truncated and the folded normal; moments and entropy of the folded.

Both are derived from e ~ Normal(m, s), and depend only on t = m / s if lengths are measured in
units of s:

    truncated   e given e >= 0      density N(x | t, 1) / Phi(t)
    folded      abs(e)              density N(x | t, 1) + N(-x | t, 1)

They agree as t -> infinity, and differ most for t < 0: a truncated normal shrinks to zero, a folded
one grows with abs(t). The moments and the entropy of the truncated one are in
`ardvark.models.parts.truncated_normal`. Every formula below is free of cancellation.

Folded. With e = 2 (phi(t) - abs(t) Phi(-abs(t))) >= 0,

    mean = abs(t) + e,    variance = 1 - 2 abs(t) e - e^2.

An e ~ Normal(t, 1) consists of its absolute value and its sign, whose probability given abs(e) is a
sigmoid of 2 t e. So the entropy is that of the normal minus the remaining entropy of the sign:

    entropy = ln(2 pi e)/2 - C(t),   C(t) = E_e[binary entropy of sigmoid(2 t e)],

a smooth function that falls from ln 2 at t = 0 to below 1e-17 at abs(t) = 9.
"""

import functools
import math

import numba
import numpy as np
from numpy.polynomial import Chebyshev
from scipy import special

from ardvark.models.parts.truncated_normal import truncated_moments

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_NO_SIGN_LEFT = 9.0  # C(t) < 1e-17 beyond
_TRIES = 1000  # at least half of the proposals are accepted: all fail with probability 2^-1000


# --- moments and entropy of the folded normal -----------------------------------------------------


@numba.njit(cache=True, nogil=True)
def folded(t: float) -> tuple[float, float]:
    """Return mean, RFVM C.27, and variance, RFVM C.28, of abs(Normal(t, 1)) (one number each)."""
    x = abs(t)
    phi = math.exp(-0.5 * x * x - _LOG_SQRT_2PI)
    e = 2.0 * phi - x * math.erfc(x / math.sqrt(2.0))
    return x + e, 1.0 - 2.0 * x * e - e * e


@numba.njit(cache=True, nogil=True)
def _folded_loop(t: np.ndarray, out: np.ndarray) -> None:
    for i in range(t.size):
        out[0, i], out[1, i] = folded(t[i])


def folded_moments(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, variance and entropy, each of the shape of t (K,)."""
    out = np.empty((2, len(t)))
    _folded_loop(t, out)
    inside = np.minimum(np.abs(t), _NO_SIGN_LEFT)
    entropy = _LOG_SQRT_2PI + 0.5 - _sign_entropy()(inside)
    return out[0], out[1], entropy


def sign_entropy(t: np.ndarray) -> np.ndarray:
    """Return C(t) by a trapezoid rule, exact to rounding for abs(t) <= 9.

    The integrand is analytic within pi / (2 t) of the real line, so the error falls like
    exp(-pi^2 / (t step)): below 1e-17 with step = 0.25 / 9.
    """
    step = 0.25 / _NO_SIGN_LEFT
    y = np.arange(-18.0, 18.0 + step, step)
    z = np.abs(2.0 * t[:, None] * y)  # (K, node)
    binary = np.log1p(np.exp(-z)) + z * special.expit(-z)
    weight = np.exp(-0.5 * (y - t[:, None]) ** 2 - _LOG_SQRT_2PI)
    return step * (weight * binary).sum(axis=1)


@functools.cache
def _sign_entropy() -> Chebyshev:
    """Return C(t) as a polynomial, because quadrature per feature and sweep would be too slow."""
    return Chebyshev.interpolate(sign_entropy, 60, domain=[0.0, _NO_SIGN_LEFT])


# --- densities and draws, lengths in their own units ----------------------------------------------


def truncated_logpdf(x: np.ndarray, m: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return the log density at x >= 0 of Normal(m, s) truncated to x >= 0."""
    t, z = m / s, x / s
    low = np.minimum(t, 0.0)
    # t < 0: phi(z - t) / Phi(t) = h exp(t z - z^2 / 2), with h = mean - t; nothing cancels
    hazard = np.log(truncated_moments(low)[0] - low)
    below = hazard + z * (low - 0.5 * z)
    above = -0.5 * (z - t) ** 2 - _LOG_SQRT_2PI - special.log_ndtr(np.maximum(t, 0.0))
    return np.where(t < 0.0, below, above) - np.log(s)


def folded_logpdf(x: np.ndarray, m: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return the log density at x >= 0 of abs(Normal(m, s))."""
    t, z = np.abs(m) / s, x / s
    return -0.5 * (z - t) ** 2 + np.log1p(np.exp(-2.0 * t * z)) - _LOG_SQRT_2PI - np.log(s)


@numba.njit(cache=True, nogil=True)
def truncated_draw(rng: np.random.Generator, t: float) -> float:
    """Return one draw of Normal(t, 1) truncated to x >= 0; NaN for t = NaN.

    Rejection from the normal for t >= 0 (accepts at least half), from an exponential for t < 0
    (Robert 1995, doi 10.1007/BF00143942: accepts at least 76 %); both exact in the far tail.

    Raises
    ------
    RuntimeError
        None of _TRIES proposals was accepted, which cannot happen if the code is right.
    """
    if t >= 0.0:
        for _ in range(_TRIES):
            x = t + rng.standard_normal()
            if x >= 0.0:
                return x
    else:
        root = math.sqrt(t * t + 4.0)
        rate, gap = 0.5 * (root - t), 2.0 / (root - t)  # gap = rate - abs(t), free of cancellation
        for _ in range(_TRIES):
            x = rng.standard_exponential() / rate
            if not rng.random() > math.exp(-0.5 * (x - gap) ** 2):
                return x
    raise RuntimeError("no draw of the truncated normal was accepted: its proposal is wrong")


@numba.njit(cache=True, nogil=True)
def truncated_draws(
    rng: np.random.Generator, m: np.ndarray, s: np.ndarray, out: np.ndarray
) -> None:
    """Fill out (S, K) with draws of Normal(m, s) truncated to x >= 0, m and s (K,).

    Raises
    ------
    RuntimeError
        As `truncated_draw`.
    """
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = s[k] * truncated_draw(rng, m[k] / s[k])
