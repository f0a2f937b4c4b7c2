"""From "about five features matter" to the rate of a Gamma hyperprior.

A sparse prior is asked for by the number of weights that it makes visible: `active_features`,
`active_samples`. A weight is visible where its effect exceeds `VISIBLE` = 0.1: the standard
deviation over the training rows of the change of eta without it (`effects.py`). How large such a
weight is depends on the weights of the other kind: a feature acts through the samples' weights, a
sample through its column of K. With theta the feature weights, a the sample weights, and inputs
taken as independent standard normals::

    feature d   |theta_d| |a| q       q = |n|                               linear
                                      q = P (m n^2 + 3 ((1 + S)^(2(P-1)) - m) / N)^1/2,
                                          m = E(1 + T n)^(2(P-1))           polynomial
                                      q = 0.8 k1 (3 + 6 n^2 + n^4 - c (1 + n^2)^2)^1/2      rbf
    sample j    |a_j| r               r = (T^2 n^2 + S^2 / N)^1/2           linear
                                      r = (Var(K) + ((1 + S)^P - E(K))^2 / N)^1/2,
                                          K = (1 + T n n')^P given n        polynomial
                                      r = (k^2 + (1 - k0)^2 / N)^1/2        rbf

n and n' are standard normals, |a| and T = |theta| Euclidean norms at their prior mean,
S = sum_d theta_d likewise. Of an rbf kernel, given theta and for rows x, x' and a centre z,

    E K(x, z)             = prod_d (1 + 4 theta_d)^-1/2                       k0
    A = E K(x, z)^2       = prod_d (1 + 8 theta_d)^-1/2                       k1 of A^1/2
    B = E K(x, z) K(x', z) = prod_d ((1 + 2 theta_d) (1 + 6 theta_d))^-1/2    k of (A - B)^1/2

with the prior means k0, k1 and k, and c = E B / E A. B is the mean square of the mean of a column,
which the standard deviation leaves out: (x - z)^2 has the mean 1 + n^2 and the mean square
3 + 6 n^2 + n^4 for a centre z = n. In the linear kernel nothing is left out, for centred features.
The terms in 1/N are a row's kernel with itself. The prior expected numbers follow by one
quadrature, and the two rates by finding the roots. `tests/models` measures by simulation of the
whole model that the numbers asked for are met within 20 %.
"""

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy import optimize

from ardvark.common.validate import InputError

from .ard import WeightPrior
from .effects import VISIBLE
from .kernels import Kernel


class Law:
    """What a prior says about one weight and about many, by quadrature over log |x|.

    Parameters
    ----------
    prior : WeightPrior
        Its sign does not matter.
    """

    def __init__(self, prior: WeightPrior) -> None:
        shape, rate, slab = prior.shape, prior.rate, prior.slab
        top = min(9.0 * slab, prior.scale * max(9.0, 10.0 ** min(8.0 / shape, 40.0)))
        v = np.linspace(math.log(min(prior.scale, slab)) - 14.0, math.log(top), 600)
        self.x = np.exp(v)
        log_p = v - (shape + 0.5) * np.log1p(self.x**2 / (2.0 * rate)) - 0.5 * (self.x / slab) ** 2
        p = np.exp(log_p - log_p.max())
        self.p = p / p.sum()

    def tail(self, t: np.ndarray) -> np.ndarray:
        """Return P(|x| > t), shape of t."""
        return np.interp(np.log(t), np.log(self.x), self._above)

    @cached_property
    def _above(self) -> np.ndarray:
        return np.cumsum(self.p[::-1])[::-1] - 0.5 * self.p

    def mean(self, f: Callable[[np.ndarray], np.ndarray]) -> float:
        """Return E f(|x|)."""
        return float(f(self.x) @ self.p)

    def norm(self, count: int) -> float:
        """Return the expected Euclidean norm of `count` independent weights.

        E S^1/2 = (4 pi)^-1/2 int_0^oo (1 - E exp(-u S)) u^-3/2 du for any S >= 0, and here
        E exp(-u S) is the power `count` of one weight's.
        """
        v = np.linspace(-2.0 * math.log(self.x[-1]) - 28.0, -2.0 * math.log(self.x[0]), 160)
        # expm1, log1p: at small u both differences are far below 1
        less = np.expm1(-np.exp(v)[:, None] * self.x**2) @ self.p  # E exp(-u x^2) - 1
        gone = -np.expm1(count * np.log1p(np.maximum(less, -1.0 + 1e-300)))
        return float(np.trapezoid(gone * np.exp(-0.5 * v), v) / (2.0 * math.sqrt(math.pi)))


class Sizes(NamedTuple):
    """A kernel and the sizes of the data."""

    kernel: Kernel
    N: int
    B: int
    D: int


def kernel_factors(sizes: Sizes, feature: WeightPrior) -> tuple[np.ndarray, np.ndarray]:
    """Return q and r of the formulas above, each on equally likely points of |n|."""
    return sizes.kernel.factors(Law(feature), sizes.N, sizes.D)


def _half_cauchy(log_scale: float, slab: float) -> WeightPrior:
    return WeightPrior(0.5, 0.5 * math.exp(2.0 * log_scale), slab)


def sparse_samples(active: float, slab: float, B: int, r: np.ndarray) -> WeightPrior:
    """Return the half-Cauchy prior with a slab under which `active` of B samples are visible.

    Where that many cannot be, because the kernel is too small, the prior is nearly the slab alone.
    """

    def excess(log_scale: float) -> float:
        return B * float(Law(_half_cauchy(log_scale, slab)).tail(VISIBLE / r).mean()) - active

    widest = math.log(10.0 * slab)
    if excess(widest) <= 0.0:
        return _half_cauchy(widest, slab)
    return _half_cauchy(optimize.brentq(excess, widest - 40.0, widest, xtol=1e-6), slab)


@lru_cache(maxsize=256)
def sparse_features(
    active: float, slab: float, sizes: Sizes, sample: WeightPrior | tuple[float, float]
) -> tuple[WeightPrior, WeightPrior]:
    """Return the priors of feature and sample weights under which `active` features are visible.

    Parameters
    ----------
    active : float
        The expected number of visible features, in (0, D).
    slab : float
        Of the feature weights.
    sizes : Sizes
    sample : WeightPrior, or (active samples, slab)
        The sample weights' prior, or what `sparse_samples` needs to find it for each prior of the
        features.

    Raises
    ------
    InputError
        No scale makes that many features visible.
    """

    def samples(feature: WeightPrior) -> tuple[WeightPrior, np.ndarray]:
        q, r = kernel_factors(sizes, feature)
        if isinstance(sample, WeightPrior):
            return sample, q
        return sparse_samples(*sample, sizes.B, r), q

    def excess(log_scale: float) -> float:
        feature = _half_cauchy(log_scale, slab)
        of_samples, q = samples(feature)
        threshold = VISIBLE / np.maximum(Law(of_samples).norm(sizes.B) * q, 1e-300)
        return sizes.D * float(Law(feature).tail(threshold).mean()) - active

    # the number is not monotone: large weights of many features drown the kernel (rbf), or leave
    # so little for the sample weights that nothing is visible. The smallest scale is wanted beside
    # which the samples' prior is sparse, with a spike below its slab; else the smallest
    start, fallback = math.log(active / sizes.D) - 14.0, None
    before = excess(start)
    for low in np.arange(start, math.log(10.0 * slab), 0.5):
        earlier, before = before, excess(low + 0.5)
        if earlier < 0.0 < before:
            scale = optimize.brentq(excess, low, low + 0.5, xtol=1e-6)
            feature = _half_cauchy(scale, slab)
            of_samples = samples(feature)[0]
            if isinstance(sample, WeightPrior) or of_samples.scale < of_samples.slab:
                return feature, of_samples
            fallback = fallback or (feature, of_samples)
    if fallback:
        return fallback
    asked = "" if isinstance(sample, WeightPrior) else f" with active_samples = {sample[0]:g}"
    raise InputError(
        f"no {sizes.kernel.name} prior makes active_features = {active:g} of {sizes.D} features "
        f"visible{asked}: lower active_features, or raise active_samples or slab."
    )
