"""A draw of a normal variable that is known to be positive: a weight, or a latent value."""

import math

import numba
import numpy as np


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
