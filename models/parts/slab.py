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

import numba
import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import Continuous
from pymc.distributions.transforms import log as log_transform
from pytensor.link.numba.dispatch.basic import numba_njit
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify
from pytensor.tensor.random.op import RandomVariable
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


# --- the same draws one at a time, compiled -------------------------------------------------------


@numba.njit(nogil=True)
def _one(rng: Any, shape: float, rate: float, slab: float) -> tuple[float, float]:
    """Return one draw of (precision, x): `draw`, for PyMC's compiled functions."""
    narrow = shape == 0.5 and rate > _WIDE * slab**2
    while True:
        if narrow:
            p = rng.exponential(1.0 / rate)
            if rng.random() < 1.0 / math.sqrt(1.0 + slab**2 * p):
                return p, rng.standard_normal() / math.sqrt(p + 1.0 / slab**2)
            continue
        p = rng.gamma(shape, 1.0 / rate)
        if p > 0.0:  # one that underflows to 0 is never accepted
            x = rng.standard_normal() / math.sqrt(p)
            if rng.random() < math.exp(-0.5 * (x / slab) ** 2):
                return p, x


class _Slab(RandomVariable):
    """A variable with the parameters shape, rate, slab and log_mass, of which draws need three."""

    signature = "(),(),(),()->()"
    dtype = "floatX"

    @staticmethod
    def of(precision: Any, x: Any) -> Any:
        """Return the variable, of both parts of a draw: x, unless another is asked for."""
        return x

    @classmethod
    def rng_fn(
        cls, rng: np.random.Generator, shape: Any, rate: Any, slab: Any, log_mass: Any, size: Any
    ) -> np.ndarray:
        """Draw by NumPy, where nothing is compiled."""
        return cls.of(*draw(rng, shape, rate, slab, () if size is None else size))


class _SignedRV(_Slab):
    name = "slab_student_t"
    _print_name = ("SlabStudentT", "SlabStudentT")


class _PositiveRV(_Slab):
    name = "slab_half_student_t"
    _print_name = ("SlabHalfStudentT", "SlabHalfStudentT")

    @staticmethod
    def of(precision: Any, x: Any) -> Any:
        return np.abs(x)


class _TiltedGammaRV(_Slab):
    name = "tilted_gamma"
    _print_name = ("TiltedGamma", "TiltedGamma")

    @staticmethod
    def of(precision: Any, x: Any) -> Any:
        return precision


@numba_core_rv_funcify.register(_SignedRV)
@numba_core_rv_funcify.register(_PositiveRV)
@numba_core_rv_funcify.register(_TiltedGammaRV)
def _compiled(op: _Slab, node: Any) -> tuple[Any, int]:
    """Return the scalar function of a draw, and the version of its code for the cache."""
    part = numba.njit(op.of)

    @numba_njit
    def random(rng, shape, rate, slab, log_mass):  # type: ignore[no-untyped-def]  # Numba's
        precision, x = _one(rng, shape, rate, slab)
        return part(precision, x)

    return random, 1


# --- the two factors, as distributions in PyMC ----------------------------------------------------


class _Signed(Continuous):
    """Student-t times the slab."""

    rv_op = _SignedRV()

    @classmethod
    def dist(cls, *law: Any, **kwargs: Any) -> Any:  # PyMC's `shape` is the variable's
        return super().dist(law, **kwargs)

    def support_point(rv: Any, size: Any, *law: Any) -> Any:
        return pt.zeros_like(rv)

    def logp(x: Any, shape: Any, rate: Any, slab: Any, log_mass: Any) -> Any:
        student = (
            pt.gammaln(shape + 0.5)
            - pt.gammaln(shape)
            - 0.5 * pt.log(2.0 * math.pi * rate)
            - (shape + 0.5) * pt.log1p(x**2 / (2.0 * rate))
        )
        return student - 0.5 * (x / slab) ** 2 - log_mass


class _Positive(_Signed):
    """Its absolute value, sampled as a logarithm."""

    rv_op = _PositiveRV()

    def support_point(rv: Any, size: Any, shape: Any, rate: Any, slab: Any, log_mass: Any) -> Any:
        # the scale, since log x is undefined at 0
        return pt.full_like(rv, pt.sqrt(rate / shape))

    def logp(x: Any, *law: Any) -> Any:
        return pt.switch(pt.ge(x, 0.0), _Signed.logp(x, *law) + _LOG_2, -np.inf)


class _Tilted(_Signed):
    """The precision."""

    rv_op = _TiltedGammaRV()

    def support_point(rv: Any, size: Any, shape: Any, rate: Any, slab: Any, log_mass: Any) -> Any:
        return pt.full_like(rv, shape / rate)  # the Gamma's mean

    def logp(p: Any, shape: Any, rate: Any, slab: Any, log_mass: Any) -> Any:
        gamma = shape * pt.log(rate) - pt.gammaln(shape) + (shape - 1.0) * pt.log(p) - rate * p
        kept = -0.5 * pt.log1p(1.0 / (slab**2 * p))
        return pt.switch(pt.gt(p, 0.0), gamma + kept - log_mass, -np.inf)


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
    if signed:
        return _Signed(name, shape, rate, slab, log_mass, **kwargs)
    kwargs.setdefault("default_transform", log_transform)
    return _Positive(name, shape, rate, slab, log_mass, **kwargs)


def TiltedGamma(name: str, shape: Any, rate: Any, slab: Any, log_mass: Any, **kwargs: Any) -> Any:
    """Precision of a weight with a slab, the weight integrated out; sampled on the log scale.

    Gamma(shape, rate) times (1 + 1 / (slab^2 precision))^-1/2, divided by the mass. Precisions so
    small that only the slab bounds the weight are rarer than under the Gamma.
    """
    kwargs.setdefault("default_transform", log_transform)
    return _Tilted(name, shape, rate, slab, log_mass, **kwargs)
