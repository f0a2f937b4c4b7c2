"""Steps of a learned scale g of weights x (K,), for the Gibbs samplers of PFCVM and its relatives.

With phi = x / (g s), s = sqrt(2 rate), and the precisions integrated out, the prior of g and x is

    p(g, x)  proportional to  1 / (1 + g^2)  prod_k exp(-x_k^2 / (2 slab^2))
                              / (g (1 + phi_k^2) erfcx(g s / (slab sqrt 2))).

Every step moves g -> e^u g by a slice step in u (Neal 2003), from u = 0, together with some of the
weights, which form a ridge with it. S is the set of weights that are multiplied by e^u too; the
others are held. In (ln g, x) the density of u is the prior at the moved point times e^(|S| u), the
Jacobian. They differ in S and in what pays for eta:

(a) S is empty. The full conditional of g. It moves ln g by K^-1/2, since K weights know its scale.
(b) S is the spike: most weights are near 0, follow g, and say little about eta. Each weight is held
    with probability phi^2 / (kappa^2 + phi^2), a draw given the state before the step, and the
    density of u has a factor of this probability for each weight that is held: S is a variable, and
    (S, x, g) is moved given S. (Without that factor the reverse step would draw another S, and the
    step would be wrong.) The likelihood of the change of eta is that of the sampler.
(c) S is all, and the weights of the other kind are divided by e^u, so that eta stays.

(a) alone is slow with thousands of weights. RFVM on colon (62 x 2000, four chains of 1500 sweeps):
1000 sweeps are worth 45 independent draws of ln g, 6 without step b, and 13 without step c.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np

from .ard_steps import Prior, log_group, log_normal_integral
from .slice_step import slice_step

HELD = 5.0  # weights that step b expects to hold under the prior
_ROOT_2 = math.sqrt(2.0)
_LOG_HALF_ROOT_2PI = 0.5 * math.log(0.5 * math.pi)


class Ridge(NamedTuple):
    """What the prior density of a move depends on.

    Attributes
    ----------
    g : float
        The scale before the move.
    size : int
        K.
    square : float
        The sum of x^2 over S.
    held : array
        phi^2 of the weights that are held.
    cut : float
        kappa^2; 0: S does not depend on the weights.
    """

    g: float
    size: int
    square: float
    held: np.ndarray
    cut: float


class Line(NamedTuple):
    """The log likelihood slope (e^u - 1) - curvature (e^u - 1)^2 / 2 of a move."""

    slope: float
    curvature: float


FLAT = Line(0.0, 0.0)
NONE = np.empty(0)


@numba.njit(cache=True, nogil=True)
def log_constant(g: float, prior: Prior) -> float:
    """Return ln erfcx(g s / (slab sqrt 2)), for the prior at g = 1."""
    t = -_ROOT_2 * g * math.sqrt(prior.rate) / prior.slab
    return log_normal_integral(t, 1.0, True) - _LOG_HALF_ROOT_2PI


@numba.njit(cache=True, nogil=True)
def log_ridge(u: float, ridge: Ridge, prior: Prior) -> float:
    """Return the log prior density of u, for the prior at g = 1."""
    growth = math.exp(u)
    g = ridge.g * growth
    total = u - math.log1p(g * g) - ridge.size * log_constant(g, prior)
    total -= 0.5 * ridge.square * (growth / prior.slab) ** 2
    total -= len(ridge.held) * u
    product, shrink = 1.0, growth**-2.0
    for phi2 in ridge.held:
        f = phi2 * shrink
        product *= 1.0 + f
        if ridge.cut > 0.0:
            product *= 1.0 + ridge.cut / f
        if not product < 1e150:  # one logarithm for many weights
            total -= math.log(product)
            product = 1.0
    return total - math.log(product)


@numba.njit(cache=True, nogil=True)
def log_move(
    u: float, ridge: Ridge, prior: Prior, line: Line, others: np.ndarray, theirs: Prior
) -> float:
    """Return the log density of u; `others` are divided by e^u, and have the prior `theirs`."""
    step = math.expm1(u)
    total = log_ridge(u, ridge, prior) + (line.slope - 0.5 * line.curvature * step) * step
    if len(others) > 0:
        total += log_group(others, theirs, math.exp(-u)) - len(others) * u
    return total


_move_step = slice_step(log_move)


@numba.njit(cache=True, nogil=True)
def draw_move(
    rng: np.random.Generator,
    width: float,
    ridge: Ridge,
    prior: Prior,
    line: Line,
    others: np.ndarray,
    theirs: Prior,
) -> float:
    """Return u after one slice step from u = 0."""
    return _move_step(rng, width, (ridge, prior, line, others, theirs))


@numba.njit(cache=True, nogil=True)
def split(
    rng: np.random.Generator, x: np.ndarray, g: float, prior: Prior, cut: float, moves: np.ndarray
) -> Ridge:
    """Draw S of step b into `moves` (K,), and return what its density depends on."""
    held, count, square = np.empty(len(x)), 0, 0.0
    for k in range(len(x)):
        phi2 = x[k] * x[k] / (2.0 * prior.rate * g * g)
        moves[k] = rng.random() * (cut + phi2) >= phi2
        if moves[k]:
            square += x[k] * x[k]
        else:
            held[count] = phi2
            count += 1
    return Ridge(g, len(x), square, held[:count], cut)


class LearnedScale:
    """The steps for one group of K weights, whose prior at g = 1 is `prior`."""

    def __init__(self, prior: Prior, K: int) -> None:
        self.prior = prior
        # P(held) = E phi^2 / (kappa^2 + phi^2) = 1 / (1 + kappa) under the half-Cauchy
        self.cut = max(K / HELD - 1.0, 1.0) ** 2
        self.width = 3.0 * (0.5 * K + 1.0) ** -0.5

    def at(self, g: float) -> Prior:
        """Return the prior of the weights given g."""
        rate, peak = g * g * self.prior.rate, self.prior.peak - math.log(g)
        return self.prior._replace(rate=rate, peak=peak)

    def alone(self, rng: np.random.Generator, x: np.ndarray, g: float) -> float:
        """Step a: return g."""
        phi2 = x**2 / (2.0 * self.prior.rate * g * g)
        ridge = Ridge(g, len(x), 0.0, phi2, 0.0)
        return g * math.exp(draw_move(rng, self.width, ridge, self.prior, FLAT, NONE, self.prior))

    def split(self, rng: np.random.Generator, x: np.ndarray, g: float) -> tuple[np.ndarray, Ridge]:
        """Return S (K,) of step b, and what its density depends on."""
        moves = np.empty(len(x), dtype=bool)
        return moves, split(rng, x, g, self.prior, self.cut, moves)

    def spike(
        self,
        rng: np.random.Generator,
        x: np.ndarray,
        g: float,
        effect: Callable[[np.ndarray], np.ndarray],
        W: np.ndarray,
        score: np.ndarray,
    ) -> float:
        """Step b under the normal likelihood of `ard_steps`: return g, and update x and score.

        `effect` returns the part (N,) of eta of weights (K,), in which it is linear.
        """
        moves, ridge = self.split(rng, x, g)
        change = effect(np.where(moves, x, 0.0))
        line = Line(float(score @ change), float(change @ (W * change)))
        u = draw_move(rng, 1.0, ridge, self.prior, line, NONE, self.prior)
        x[moves] *= math.exp(u)
        score -= math.expm1(u) * W * change
        return g * math.exp(u)

    def together(
        self,
        rng: np.random.Generator,
        x: np.ndarray,
        g: float,
        others: np.ndarray,
        theirs: Prior,
    ) -> float:
        """Step c: return g, and update x and the others in place."""
        ridge = Ridge(g, len(x), float(x @ x), NONE, 0.0)
        width = 3.0 * (0.5 * len(others) + 1.0) ** -0.5
        u = draw_move(rng, width, ridge, self.prior, FLAT, others, theirs)
        x *= math.exp(u)
        others *= math.exp(-u)
        return g * math.exp(u)
