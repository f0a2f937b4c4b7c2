"""The compiled moves of the feature weights of PFCVM's other kernels; `ard_kernel` explains them.

`inner` (B, N) is what a kernel is a function of: the weighted square distances S of rows and
centres (rbf), or their weighted inner products (polynomial). A change of feature weights adds to
it, so a proposal costs one pass over it, with one exponential or power an entry,

    out_i = sum_j a_j K_ij,    K = exp(-S) or (1 + S)^P.

The loops run over the rows i of one centre j, so that the compiler processes several at once. If
the rows are the centres, K is symmetric: rows i >= j are enough, and K_ij also adds a_i K_ij to
out_j. That is half the work.
The likelihood is that of the labels itself: no Polya-Gamma variable is held fixed.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from ardvark.models.parts.kernels import RBF
from ardvark.models.parts.vector_math import exp, log1p

from .ard_steps import (
    Pairs,
    Prior,
    draw_partner,
    draw_student,
    log_group,
    log_student,
    partner_chance,
)

_HUGE = 1e150  # above it, squares overflow
_TRIES = 200  # of a rejection that accepts at least half of its draws


class Columns(NamedTuple):
    """What does not change during a fit.

    Attributes
    ----------
    code, degree : int
        Of the kernel.
    Xt, Zt : array (D, N), array (D, B)
        Rows and centres, a feature at a time.
    label_sign : array (N,)
        Labels, -1 or 1.
    symmetric : bool
        Whether the rows are the centres.
    """

    code: int
    degree: int
    Xt: np.ndarray
    Zt: np.ndarray
    label_sign: np.ndarray
    symmetric: bool


class Present(NamedTuple):
    """What the moves of theta update in place.

    Attributes
    ----------
    theta : array (D,)
    inner : array (B, N)
        If the rows are the centres, the moves keep and read only the entries [j, i] with i >= j.
    Ka : array (N,)
        K a, with what the covariates add to it.
    """

    theta: np.ndarray
    inner: np.ndarray
    Ka: np.ndarray


class Held(NamedTuple):
    """What the moves of theta leave: sample weights a (B,), with their signs, and the bias.

    `added` (N,) is what the covariates add to eta; empty without any.
    """

    a: np.ndarray
    bias: float
    added: np.ndarray = np.empty(0)


class Given(NamedTuple):
    """What a move of theta takes: all of the above, and the prior of a weight."""

    columns: Columns
    present: Present
    held: Held
    prior: Prior


# --- decision values ------------------------------------------------------------------------------


@numba.njit(nogil=True, forceinline=True)
def rows_of(columns: Columns, j: int) -> range:
    """Return the rows whose entries with centre j are kept.

    They are unsigned: an index that could be negative would need a check in each entry.
    """
    return range(np.uint64(j if columns.symmetric else 0), np.uint64(len(columns.label_sign)))


@numba.njit(nogil=True, forceinline=True)
def move(
    columns: Columns, S: np.ndarray, growth: float, which: np.ndarray, change: np.ndarray, j: int
) -> None:
    """Update S (N,), row j of inner, for that move of theta."""
    if growth != 1.0:
        for i in rows_of(columns, j):
            S[i] *= growth
    for m in range(len(which)):
        x, z, c = columns.Xt[which[m]], columns.Zt[which[m], j], change[m]
        if columns.code == RBF:
            for i in rows_of(columns, j):
                S[i] += c * (x[i] - z) ** 2
        else:
            for i in rows_of(columns, j):
                S[i] += c * z * x[i]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def decide(
    columns: Columns,
    inner: np.ndarray,
    growth: float,
    which: np.ndarray,
    change: np.ndarray,
    a: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill out with K a after theta -> growth theta, and then theta[which] += change."""
    K = np.empty(len(out))  # of one centre
    out[:] = 0.0
    for j in range(len(inner)):
        for i in rows_of(columns, j):
            K[i] = inner[j, i]
        move(columns, K, growth, which, change, j)
        if columns.code == RBF:
            for i in rows_of(columns, j):
                K[i] = exp(-K[i])
        else:
            for i in rows_of(columns, j):
                base, power = 1.0 + K[i], 1.0
                for _ in range(columns.degree):
                    power *= base
                K[i] = power
        for i in rows_of(columns, j):
            out[i] += a[j] * K[i]
        if columns.symmetric:
            total = 0.0
            for i in rows_of(columns, j + 1):
                total += a[i] * K[i]
            out[j] += total


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def shift(
    columns: Columns, inner: np.ndarray, growth: float, which: np.ndarray, change: np.ndarray
) -> None:
    """Update inner for that move of theta."""
    for j in range(len(inner)):
        move(columns, inner[j], growth, which, change, j)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def log_likelihood(label_sign: np.ndarray, Ka: np.ndarray, bias: float) -> float:
    """Return sum_i ln sigmoid(s_i eta_i)."""
    total = 0.0
    for i in range(len(label_sign)):
        t = label_sign[i] * (Ka[i] + bias)
        total += min(t, 0.0) - log1p(exp(-abs(t)))
    return total


# --- one proposal ---------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def accept(
    rng: np.random.Generator,
    given: Given,
    growth: float,
    which: np.ndarray,
    change: np.ndarray,
    log_odds: float,
) -> bool:
    """Accept or reject a move of theta; log_odds is all of ln(acceptance) but the likelihood.

    The caller updates theta.
    """
    columns, present, held, _ = given
    new = np.empty(len(columns.label_sign))
    decide(columns, present.inner, growth, which, change, held.a, new)
    for i in range(len(held.added)):
        new[i] += held.added[i]
    gain = log_likelihood(columns.label_sign, new, held.bias)
    gain -= log_likelihood(columns.label_sign, present.Ka, held.bias)
    if not rng.standard_exponential() > -(gain + log_odds):
        return False
    shift(columns, present.inner, growth, which, change)
    present.Ka[:] = new
    return True


@numba.njit(cache=True, nogil=True)
def log_slab(x: float, prior: Prior) -> float:
    """Return the log of the slab's factor."""
    return -0.5 * (x / prior.slab) ** 2


@numba.njit(cache=True, nogil=True)
def log_prior(x: float, prior: Prior) -> float:
    """Return the log prior, with the slab, without its constant."""
    return log_student(x, prior) + log_slab(x, prior)


@numba.njit(cache=True, nogil=True)
def draw_spike(rng: np.random.Generator, prior: Prior, visible: float) -> float:
    """Draw from t, the prior without its slab, given x <= visible, whose probability is >= 1/2."""
    x = draw_student(rng, prior)
    for _ in range(_TRIES):
        if x <= visible:
            break
        x = draw_student(rng, prior)
    return x


@numba.njit(cache=True, nogil=True)
def draw_tail(rng: np.random.Generator, prior: Prior, visible: float) -> float:
    """Draw x > visible from the power law that t tends to, x^-(2 shape + 1)."""
    return visible * math.exp(0.5 * rng.standard_exponential() / prior.shape)


@numba.njit(cache=True, nogil=True)
def log_tail(x: float, prior: Prior, visible: float) -> float:
    """Return the log density of `draw_tail`."""
    power = 2.0 * prior.shape
    return math.log(power) + power * math.log(visible) - (power + 1.0) * math.log(x)


# --- moves ----------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def spike_block(rng: np.random.Generator, share: float, given: Given, visible: float) -> bool:
    """Draw the weights that are not visible, each with probability `share`, from t up to visible.

    A weight stays below visible, so the reverse move draws the same set of weights. What is left of
    the acceptance is the likelihood and the slab.
    """
    present, prior = given.present, given.prior
    D = len(present.theta)
    which, change, drawn = np.empty(D, dtype=np.int64), np.empty(D), np.empty(D)
    count, log_odds = 0, 0.0
    for d in range(D):
        x = present.theta[d]
        if x <= visible and (share == 1.0 or rng.random() < share):
            new = draw_spike(rng, prior, visible)
            which[count], change[count], drawn[count] = d, new - x, new
            log_odds += log_slab(new, prior) - log_slab(x, prior)
            count += 1
    which, change = which[:count], change[:count]
    if count == 0 or not accept(rng, given, 1.0, which, change, log_odds):
        return False
    for m in range(count):
        present.theta[which[m]] = drawn[m]
    return True


@numba.njit(cache=True, nogil=True)
def crossings(
    rng: np.random.Generator, tries: int, given: Given, visible: float, share: float
) -> int:
    """Move weights, chosen at random, from one side of `visible` to the other; return how many.

    A visible weight is drawn from q(x) = `log_tail`, another one from t(x) / (1 - share), where
    share = P(x > visible) under t. With t(x) slab(x) in the target, of an x that becomes visible
    the acceptance is the likelihood ratio times t slab / q at the new x times 1 / ((1 - share)
    slab) at the old x; of one that returns it is the inverse.
    """
    present, prior, accepted = given.present, given.prior, 0
    which, change = np.empty(1, dtype=np.int64), np.empty(1)
    for _ in range(tries):
        d = rng.integers(0, len(present.theta))
        x = present.theta[d]
        up = x <= visible
        new = draw_tail(rng, prior, visible) if up else draw_spike(rng, prior, visible)
        if not new < _HUGE:
            continue
        spike, tail = (x, new) if up else (new, x)
        log_odds = log_prior(tail, prior) - log_tail(tail, prior, visible)
        log_odds -= log_slab(spike, prior) + math.log1p(-share)
        log_odds = log_odds if up else -log_odds
        which[0], change[0] = d, new - x
        if accept(rng, given, 1.0, which, change, log_odds):
            present.theta[d] = new
            accepted += 1
    return accepted


@numba.njit(cache=True, nogil=True)
def walks(rng: np.random.Generator, rounds: int, width: float, given: Given, visible: float) -> int:
    """Move each visible weight by a random walk of its logarithm; return how many moved.

    Steps have the standard deviation `width`, or three tenths of it. The density of ln x is
    x p(x). A weight that would leave the visible side stays: who walks does not depend on whether
    the walks before were accepted.
    """
    present, prior, accepted = given.present, given.prior, 0
    which, change = np.empty(1, dtype=np.int64), np.empty(1)
    for _ in range(rounds):
        for d in range(len(present.theta)):
            x = present.theta[d]
            if x <= visible:
                continue
            step = width * rng.standard_normal() * (1.0 if rng.random() < 0.5 else 0.3)
            new = x * math.exp(step)
            if not visible < new < _HUGE:
                continue
            which[0], change[0] = d, new - x
            log_odds = log_prior(new, prior) - log_prior(x, prior) + step
            if accept(rng, given, 1.0, which, change, log_odds):
                present.theta[d] = new
                accepted += 1
    return accepted


@numba.njit(cache=True, nogil=True)
def nth_visible(theta: np.ndarray, visible: float, n: int) -> int:
    """Return the place of the n-th visible weight; -1 if there are no more than n."""
    for d in range(len(theta)):
        if theta[d] > visible:
            if n == 0:
                return d
            n -= 1
    return -1


@numba.njit(cache=True, nogil=True)
def exchanges(
    rng: np.random.Generator, tries: int, width: float, given: Given, pairs: Pairs
) -> int:
    """Exchange the weights of two features, one of them visible; return how many pairs moved.

        (x_i, x_j) -> (x_j, e^u x_i),    u ~ Normal(0, width).

    e^u x_i must be visible. The reverse move chooses j first and has -u. As many weights are
    visible before as after, so what is left of the choice is p(i | j) / p(j | i). The Jacobian is
    e^u.
    """
    present, prior = given.present, given.prior
    D, accepted = len(present.theta), 0
    which, change = np.empty(2, dtype=np.int64), np.empty(2)
    for _ in range(tries):
        count = np.sum(present.theta > pairs.visible)
        if count == 0 or D == 1:
            break
        i = nth_visible(present.theta, pairs.visible, rng.integers(0, count))
        j = draw_partner(rng, i, D, pairs)
        x, y = present.theta[i], present.theta[j]
        u = width * rng.standard_normal()
        new = x * math.exp(u)
        if not pairs.visible < new < _HUGE:
            continue
        which[0], which[1] = i, j
        change[0], change[1] = y - x, new - y
        log_odds = log_prior(new, prior) - log_prior(x, prior) + u
        log_odds += math.log(partner_chance(i, j, D, pairs) / partner_chance(j, i, D, pairs))
        if accept(rng, given, 1.0, which, change, log_odds):
            present.theta[i], present.theta[j] = y, new
            accepted += 1
    return accepted


@numba.njit(cache=True, nogil=True)
def scalings(rng: np.random.Generator, tries: int, width: float, given: Given) -> int:
    """Move theta -> e^u theta, u ~ Normal(0, width), whose Jacobian is e^(D u); return how many."""
    present, prior = given.present, given.prior
    D, accepted = len(present.theta), 0
    none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
    for _ in range(tries):
        u = width * rng.standard_normal()
        growth = math.exp(u)
        log_odds = log_group(present.theta, prior, growth) - log_group(present.theta, prior, 1.0)
        log_odds += D * u
        if accept(rng, given, growth, none, nothing, log_odds):
            present.theta[:] *= growth
            accepted += 1
    return accepted
