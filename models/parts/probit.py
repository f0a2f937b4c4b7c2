"""The probit link: P(y = 1) = Phi(eta), and the latent normal behind it.

Two distributions that are called like PyMC's, ``Name("y", parameter, observed=..., dims=...)``, and
the NumPy density for ``log_joint``, prediction and the tests.
"""

import math
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import log as log_transform
from scipy import special

_ROOT_HALF = math.sqrt(0.5)
_LOG_2 = math.log(2.0)
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


def log_normal_cdf(t: Any) -> Any:
    """Return log Phi(t) for a symbolic t, exact to rounding in both tails, gradient included.

    Phi(t) = erfcx(-t / sqrt 2) exp(-t^2 / 2) / 2 below 0 and 1 - erfc(t / sqrt 2) / 2 above.
    ``pm.logcdf(pm.Normal.dist(0, 1), t)`` is the same formula with a root of 2 rounded to float32
    (PyMC 6.3), so its relative error reaches 1e-6. Each branch sees only arguments of its own side.
    The branch that is not taken is therefore finite too and cannot put 0 * inf into the gradient.
    """
    below, above = pt.minimum(t, 0.0), pt.maximum(t, 0.0)
    left = pt.log(pt.erfcx(-below * _ROOT_HALF)) - _LOG_2 - 0.5 * below**2
    right = pt.log1p(-0.5 * pt.erfc(above * _ROOT_HALF))
    return pt.switch(pt.lt(t, 0.0), left, right)


def probit_logp(y: Any, eta: Any) -> np.ndarray:
    """Return log P(y | eta) = log Phi(s eta), s = 2y - 1 (NumPy): JCFO (3)."""
    return special.log_ndtr((2.0 * np.asarray(y) - 1.0) * eta)


def ProbitBernoulli(name: str, eta: Any, **kwargs: Any) -> Any:
    """Bernoulli(Phi(eta)), with a finite gradient at any eta.

    ``pm.math.invprobit`` underflows at eta = -40 and its gradient is NaN there.
    """

    def logp(y: Any, eta: Any) -> Any:
        return log_normal_cdf((2 * y - 1) * eta)

    def dist(eta: Any, size: Any) -> Any:
        return pm.Bernoulli.dist(p=0.5 * pt.erfc(-eta * _ROOT_HALF), size=size)

    return pm.CustomDist(name, eta, logp=logp, dist=dist, class_name="ProbitBernoulli", **kwargs)


def PositiveNormal(name: str, mean: Any, **kwargs: Any) -> Any:
    """Normal(mean, 1) conditioned on being positive; sampled as log x.

    With mean = s eta this is abs(z) given y, for z ~ Normal(eta, 1) and y = 1(z > 0). Its
    normalising constant is Phi(s eta), the probability of y. Multiplied by `ProbitBernoulli` it
    gives N(z | eta, 1) on the side of 0 that y determines.
    """

    def logp(x: Any, mean: Any) -> Any:
        inside = -0.5 * (x - mean) ** 2 - _LOG_ROOT_2PI - log_normal_cdf(mean)
        return pt.switch(pt.gt(x, 0.0), inside, -np.inf)

    def dist(mean: Any, size: Any) -> Any:
        return pm.TruncatedNormal.dist(mu=mean, sigma=1.0, lower=0.0, size=size)

    def support_point(rv: Any, size: Any, mean: Any) -> Any:
        return pt.ones_like(rv)  # PyMC's default for a custom distribution is 0: log x undefined

    kwargs.setdefault("default_transform", log_transform)
    return pm.CustomDist(
        name,
        mean,
        logp=logp,
        dist=dist,
        support_point=support_point,
        class_name="PositiveNormal",
        **kwargs,
    )
