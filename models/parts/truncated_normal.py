"""Mean, variance and entropy of Normal(t, 1) truncated to x >= 0, without cancellation.

Lengths are in units of the normal's own standard deviation: Normal(m, s) truncated to x >= 0 is s
times the one with t = m / s. The density is N(x | t, 1) / Phi(t). With the hazard
h = phi(t) / Phi(t),

    mean = t + h,    variance = 1 - h (h + t),    entropy = ln(2 pi e)/2 + ln Phi(t) - t h / 2.

For t = -x far below 0 these formulas subtract nearly equal numbers. Laplace's continued fraction
gives the differences directly: h = x + g1, g1 = 1/(x + g2), g2 = 2/(x + 3/(x + 4/(x + ...))). Then

    mean = g1,       variance = (g2 - g1) g1,     entropy = 1/2 - ln(x + g1) + x g1 / 2.

The second moment is variance + mean^2, a sum of positive terms.
"""

import math

import numba
import numpy as np

_TAIL = -3.0  # below it, 60 terms of the continued fraction are exact to rounding
_TERMS = 60
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@numba.njit(cache=True, nogil=True)
def truncated(t: float) -> tuple[float, float, float]:
    """Return mean, variance and entropy of Normal(t, 1) truncated to x >= 0 (one number each)."""
    if t < _TAIL:
        x = -t
        g2 = 0.0
        for k in range(_TERMS, 1, -1):
            g2 = k / (x + g2)
        g1 = 1.0 / (x + g2)
        return g1, (g2 - g1) * g1, 0.5 - math.log(x + g1) + 0.5 * x * g1
    Phi = 0.5 * math.erfc(-t / math.sqrt(2.0))
    h = math.exp(-0.5 * t * t - _LOG_SQRT_2PI) / Phi
    return t + h, 1.0 - h * (h + t), _LOG_SQRT_2PI + 0.5 + math.log(Phi) - 0.5 * t * h


@numba.njit(cache=True, nogil=True)
def _loop(t: np.ndarray, out: np.ndarray) -> None:
    for i in range(t.size):
        out[0, i], out[1, i], out[2, i] = truncated(t[i])


def truncated_moments(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, variance and entropy, each of the shape of t."""
    out = np.empty((3, np.size(t)))
    _loop(np.ravel(t).astype(np.float64, copy=False), out)
    mean, variance, entropy = out.reshape(3, *np.shape(t))
    return mean, variance, entropy
