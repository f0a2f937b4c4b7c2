"""A slab: a normal factor that cuts off the tail of a weight with a Gamma precision.

    p(precision, x) = Gamma(precision | shape, rate) Normal(x | 0, precision^-1/2)
                      exp(-x^2 / (2 slab^2)) / mass

and twice that on x >= 0 for a positive weight. At shape 1/2 the weight without the slab is
half-Cauchy: a spike at zero, and a tail so long that the likelihood may not bound a weight at all.
The slab is much wider than the spike. It keeps the spike and cuts off the tail, so every moment
exists, even on separable data. Compare Piironen & Vehtari (2017), "Sparsity information and
regularization in the horseshoe", Electronic Journal of Statistics 11(2), doi 10.1214/17-EJS1337SI.

A single constant normalises the joint density, so the conditionals keep their families: the
precision given x is Gamma(shape + 1/2, rate + x^2 / 2), and x given the precision is normal with a
precision that is larger by 1/slab^2. Two factorisations are used::

    marginal        x ~ Student-t(2 shape, sqrt(rate / shape)) times the slab    (SlabStudentT)
    hierarchical    precision ~ Gamma times (1 + 1 / (slab^2 precision))^-1/2    (TiltedGamma)
                    x ~ Normal(0, (precision + slab^-2)^-1/2)

Both have the same mass = E[exp(-x^2 / (2 slab^2))] under the prior without the slab. This is also
the probability that `draw` accepts a draw from that prior.
"""

import math
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import log as log_transform
from scipy import special

_LOG_2 = math.log(2.0)
_WIDE = 60.0  # rate / slab^2; filled rates are at most 50 times the square of their slab


def log_mass(shape: float, rate: float, slab: float) -> float:
    """Return log E[exp(-x^2 / (2 slab^2))] under the prior without the slab; 0 without a slab.

    Given the precision the expectation is (1 + 1 / (slab^2 precision))^-1/2. The integral over
    g = rate precision ~ Gamma(shape, 1) uses the trapezoid rule in log g. It is exact to rounding,
    because the integrand is analytic and falls off exponentially on both sides. At shape 1/2 the
    result is erfcx(sqrt(rate) / slab).
    """
    if np.isinf(slab):
        return 0.0
    step = 0.2 / max(1.0, math.sqrt(shape))
    low = math.log(shape) - 40.0 / shape - 12.0 / math.sqrt(shape)
    v = np.arange(low, math.log(shape + 40.0 * math.sqrt(shape) + 40.0), step)  # log g
    log_density = shape * v - np.exp(v) - special.gammaln(shape)
    log_kept = -0.5 * np.logaddexp(0.0, math.log(rate) - 2.0 * math.log(slab) - v)
    return float(special.logsumexp(log_density + log_kept) + math.log(step))


def draw(
    rng: np.random.Generator, shape: Any, rate: Any, slab: Any, size: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of (precision, x), x of either sign, by rejection.

    A draw from the prior without the slab is accepted with probability exp(-x^2 / (2 slab^2)),
    which is close to 1 if the slab is much wider than the spike. Where it is much narrower: see
    `_draw_wide`.
    """
    if shape == 0.5 and rate > _WIDE * slab**2:
        return _draw_wide(rng, rate, slab, size)
    precision, x = np.empty(size), np.empty(size)
    all_precisions, all_x = precision.reshape(-1), x.reshape(-1)
    todo = np.arange(precision.size)
    scale = 1.0 / rate
    with np.errstate(divide="ignore"):  # a precision that underflows to 0 is never accepted
        while todo.size:
            g = rng.gamma(shape, scale, todo.size)
            w = rng.normal(size=todo.size) * g**-0.5
            kept = rng.random(todo.size) < np.exp(-0.5 * (w / slab) ** 2)
            at = todo[kept]
            all_precisions[at], all_x[at] = g[kept], w[kept]
            todo = todo[~kept]
    return precision, x


def _draw_wide(
    rng: np.random.Generator, rate: Any, slab: Any, size: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same draws at shape 1/2 and a rate far above slab^2.

    The density of a precision p is then proportional to exp(-rate p) (1 + slab^2 p)^-1/2. A draw
    from the exponential is accepted with probability (1 + slab^2 p)^-1/2, which is close to 1.
    """
    p = np.empty(size)
    all_p = p.reshape(-1)
    todo = np.arange(p.size)
    while todo.size:
        new = rng.exponential(1.0 / rate, todo.size)
        kept = rng.random(todo.size) < (1.0 + slab**2 * new) ** -0.5
        all_p[todo[kept]] = new[kept]
        todo = todo[~kept]
    return p, rng.normal(size=size) * (p + slab**-2.0) ** -0.5


# --- the two factors, as distributions in PyMC ----------------------------------------------------


def SlabStudentT(
    name: str, shape: Any, rate: Any, slab: Any, log_mass: Any, *, signed: bool, **kwargs: Any
) -> Any:
    """Weight of either sign, or positive, with the precision integrated out.

    Parameters
    ----------
    shape, rate, slab : float or tensor
        Parameters of the prior.
    log_mass : float or tensor
        That of the function of the same name.
    signed : bool
        Whether x has either sign; if not, x >= 0 has twice the density and is sampled as log x.
    """

    def logp(x: Any, shape: Any, rate: Any, slab: Any, log_mass: Any) -> Any:
        student = (
            pt.gammaln(shape + 0.5)
            - pt.gammaln(shape)
            - 0.5 * pt.log(2.0 * math.pi * rate)
            - (shape + 0.5) * pt.log1p(x**2 / (2.0 * rate))
        )
        inside = student - 0.5 * (x / slab) ** 2 - log_mass
        return inside if signed else pt.switch(pt.ge(x, 0.0), inside + _LOG_2, -np.inf)

    def random(
        shape: Any, rate: Any, slab: Any, log_mass: Any, rng: Any = None, size: Any = None
    ) -> np.ndarray:
        x = draw(rng, shape, rate, slab, () if size is None else size)[1]
        return x if signed else np.abs(x)

    def support_point(rv: Any, size: Any, shape: Any, rate: Any, slab: Any, log_mass: Any) -> Any:
        # the scale, since log x is undefined at 0, PyMC's default for a custom distribution
        return pt.zeros_like(rv) if signed else pt.full_like(rv, pt.sqrt(rate / shape))

    if not signed:
        kwargs.setdefault("default_transform", log_transform)
    how = {"logp": logp, "random": random, "support_point": support_point}
    return pm.CustomDist(
        name, shape, rate, slab, log_mass, class_name="SlabStudentT", **how, **kwargs
    )


def TiltedGamma(name: str, shape: Any, rate: Any, slab: Any, log_mass: Any, **kwargs: Any) -> Any:
    """Precision of a weight with a slab, the weight integrated out; sampled on the log scale.

    Gamma(shape, rate) times (1 + 1 / (slab^2 precision))^-1/2, divided by the mass. Precisions so
    small that only the slab bounds the weight are rarer than under the Gamma.
    """

    def logp(p: Any, shape: Any, rate: Any, slab: Any, log_mass: Any) -> Any:
        gamma = shape * pt.log(rate) - pt.gammaln(shape) + (shape - 1.0) * pt.log(p) - rate * p
        kept = -0.5 * pt.log1p(1.0 / (slab**2 * p))
        return pt.switch(pt.gt(p, 0.0), gamma + kept - log_mass, -np.inf)

    def random(
        shape: Any, rate: Any, slab: Any, log_mass: Any, rng: Any = None, size: Any = None
    ) -> np.ndarray:
        return draw(rng, shape, rate, slab, size)[0]

    def support_point(rv: Any, size: Any, shape: Any, rate: Any, slab: Any, log_mass: Any) -> Any:
        return pt.full_like(rv, shape / rate)  # the Gamma's mean

    kwargs.setdefault("default_transform", log_transform)
    how = {"logp": logp, "random": random, "support_point": support_point}
    return pm.CustomDist(
        name, shape, rate, slab, log_mass, class_name="TiltedGamma", **how, **kwargs
    )
