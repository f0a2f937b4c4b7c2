"""Scans of the weights of PFCVM and RFVM, with moves inside the spike or without them.

Most weights of fat data are faint (`ard_steps.faint`) and in the spike, |x| <= cut. In a full scan
nearly all of them propose from t, stay in the spike, and change eta little. A scan of crossings
leaves these moves out. It costs little more than two inner products a weight. Let V be |x| > cut,
and p its probability under t.

- A faint weight in V makes the step of a full scan: it proposes from t.
- A faint weight in the spike proposes only with probability p, then from t restricted to V.
- Any other weight makes its usual step.

From x to x', one of them in V, a faint weight so proposes with density t(x'), whichever of the two
it is at, and accepts with probability min(1, G(x') / G(x)). The flow is
t(x) t(x') min(G(x), G(x')), which is symmetric, so f = t G is invariant. Whether a weight is faint
does not depend on x.
"""

from typing import NamedTuple

import numba
import numpy as np

from .ard_steps import (
    Group,
    Pairs,
    Prior,
    draw_student,
    faint,
    metropolis,
    pair_scan,
    products,
    step,
)


class Tail(NamedTuple):
    """The weights beyond `cut`, and the probability `chance` of one under t."""

    cut: float
    chance: float


EVERY = Tail(-1.0, 0.5)
"""Of a full scan: no weight is in the spike, so that each proposes."""


@numba.njit(cache=True, nogil=True)
def draw_tail(rng: np.random.Generator, prior: Prior, cut: float) -> float:
    """Draw from t restricted to abs(x) > cut > 0.

    By rejection from the Pareto density, proportional to x^-(2 shape + 1), whose ratio to t is
    proportional to (x^2 / (x^2 + 2 rate))^(shape + 1/2). For NaN the loop ends.
    """
    while True:
        x = cut * rng.random() ** (-0.5 / prior.shape)
        if not x < 1e150:  # then the ratio is 1
            break
        if not rng.random() > (x * x / (x * x + 2.0 * prior.rate)) ** (prior.shape + 0.5):
            break
    return x if prior.positive or rng.random() < 0.5 else -x


@numba.njit(cache=True, nogil=True)
def weight_scan(rng: np.random.Generator, group: Group, tail: Tail) -> int:
    """Move the weights as above, one after the other; return how many moved."""
    rows, slope, W, prior, score, x = group
    K, N = rows.shape
    slab, scale = 1.0 / (prior.slab * prior.slab), (prior.rate / prior.shape) ** 0.5
    mean = -1.0 / np.log1p(-tail.chance)  # of the exponential whose floor is geometric
    # so many faint weights in the spike pass before the next one proposes
    wait = 0 if tail.cut < 0.0 else int(min(mean * rng.standard_exponential(), 1e9))
    accepted = 0
    for k in range(K):
        s, old = slope[k], x[k]
        product, square = products(rows, k, score, W)
        square *= s * s
        linear, precision = s * product + square * old, square + slab
        if not faint(linear, precision, scale, prior.positive):
            new = step(rng, linear, precision, prior, old)
        elif abs(old) > tail.cut:
            new = metropolis(rng, linear, precision, old, draw_student(rng, prior))
        elif wait > 0:
            wait -= 1
            continue
        else:
            wait = int(min(mean * rng.standard_exponential(), 1e9))
            new = metropolis(rng, linear, precision, old, draw_tail(rng, prior, tail.cut))
        if new == old:
            continue
        accepted += 1
        change = s * (new - old)
        x[k] = new
        for n in range(N):
            score[n] -= change * W[n] * rows[k, n]
    return accepted


@numba.njit(cache=True, nogil=True)
def full_scans(
    rng: np.random.Generator, times: int, tries: int, group: Group, pairs: Pairs
) -> None:
    """Repeat a scan of every weight and a `pair_scan`."""
    for _ in range(times):
        weight_scan(rng, group, EVERY)
        pair_scan(rng, tries, group, pairs)


@numba.njit(cache=True, nogil=True)
def scans(
    rng: np.random.Generator,
    full: int,
    times: int,
    tries: int,
    group: Group,
    tail: Tail,
    pairs: Pairs,
) -> None:
    """Repeat a scan and a `pair_scan`; the first `full` scans move every weight."""
    full_scans(rng, min(full, times), tries, group, pairs)
    for _ in range(times - full):
        weight_scan(rng, group, tail)
        pair_scan(rng, tries, group, pairs)
