"""Two distributions that PyMC lacks, or whose gradient fails in PyMC.

Each is called like PyMC's own: ``Name("y", parameter, ..., observed=..., dims=...)``. The NumPy
functions next to them are the same densities, written independently for ``log_joint``, prediction
and the tests.
"""

import math
from typing import Any

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .noisy_logistic import noisy_log_sigmoid

_WINDOW = 9.0  # half width of the trapezoid rule in `noisy_logistic_logp`


# --- logistic Bernoulli: P(y = 1) = sigmoid(eta) ---------------------------------------------


def logistic_logp(y: Any, eta: Any) -> np.ndarray:
    """Return log P(y | eta) = -softplus(-s eta), s = 2y - 1 (NumPy)."""
    return -np.logaddexp(0.0, (1.0 - 2.0 * np.asarray(y)) * eta)


def log_predictive(y: Any, eta: np.ndarray, point: Any, h: Any) -> np.ndarray:
    """Return log P(y | eta), shape of eta: `log_predictive` of a model without noise."""
    return logistic_logp(y, eta)


def LogisticBernoulli(name: str, eta: Any, **kwargs: Any) -> Any:
    """Bernoulli(sigmoid(eta)), with a finite gradient at any eta.

    ``pm.Bernoulli(logit_p=eta)`` has the right value, but at y = 0 its gradient is NaN for eta
    above 38 (PyMC 6.3). A single such sample makes every starting point fail. Here
    log p = -softplus((1 - 2y) eta), whose derivative is a sigmoid everywhere.
    """

    def logp(y: Any, eta: Any) -> Any:
        return -pt.softplus((1 - 2 * y) * eta)

    def dist(eta: Any, size: Any) -> Any:
        return pm.Bernoulli.dist(p=pt.sigmoid(eta), size=size)

    return pm.CustomDist(name, eta, logp=logp, dist=dist, class_name="LogisticBernoulli", **kwargs)


# --- the same, with Gaussian noise on eta integrated out ----------------------------------------


@numba.njit(cache=True, nogil=True)
def _noisy_logistic(m: np.ndarray, sd: np.ndarray, out: np.ndarray) -> None:
    """Fill out[i] = log of the integral of sigmoid(m + sd e) N(e | 0, 1) over e."""
    for i in range(m.size):
        # The trapezoid rule converges like exp(-2 pi^2 / (sd h)) (the poles of the sigmoid lie
        # pi / sd off the real line) and exp(-2 pi^2 / h^2) (the Gaussian): both below 1e-11.
        step = min(0.5, 0.7 / sd[i])
        n = math.ceil(_WINDOW / step)
        c = min(max(-m[i] / sd[i], 0.0), sd[i])
        top = -math.inf
        total = 0.0
        for k in range(-n, n + 1):
            e = c + k * step
            a = m[i] + sd[i] * e
            softplus = math.log1p(math.exp(-abs(a))) + max(-a, 0.0)
            term = -softplus - 0.5 * e * e
            if term > top:
                total = total * math.exp(top - term) + 1.0
                top = term
            else:
                total += math.exp(term - top)
        out[i] = top + math.log(total) + math.log(step) - 0.5 * math.log(2.0 * math.pi)


def noisy_logistic_logp(y: Any, eta: Any, sd: Any) -> np.ndarray:
    """Return log P(y | eta, sd) = log E[sigmoid(s (eta + sd e))], e ~ N(0, 1), s = 2y - 1.

    There is no closed form. With m = s eta the integrand peaks at some e in [0, sd], near
    c = min(max(-m / sd, 0), sd); a window of +-9 around c holds all of its mass. The arguments
    broadcast; sd > 0.
    """
    m, sd = np.broadcast_arrays((2.0 * np.asarray(y) - 1.0) * eta, sd)
    out = np.empty(m.size)
    _noisy_logistic(np.ravel(m).astype(float), np.ravel(sd).astype(float), out)
    return out.reshape(m.shape)


def NoisyLogisticBernoulli(name: str, eta: Any, sd: Any, **kwargs: Any) -> Any:
    """Bernoulli(E[sigmoid(eta + sd e)]), e ~ N(0, 1): latent Gaussian noise integrated out.

    The integral is one compiled operation (`noisy_logistic.py`), accurate to 1e-11 for sd up to
    100.
    """

    def logp(y: Any, eta: Any, sd: Any) -> Any:
        return noisy_log_sigmoid((2 * y - 1) * eta, sd)

    def dist(eta: Any, sd: Any, size: Any) -> Any:
        noisy = pm.Normal.dist(eta, sd, size=size)
        return pm.Bernoulli.dist(p=pt.sigmoid(noisy))

    return pm.CustomDist(
        name, eta, sd, logp=logp, dist=dist, class_name="NoisyLogisticBernoulli", **kwargs
    )
