"""The compiled steps of the horseshoe's Gibbs sampler; `horseshoe` explains what each is for.

Every step works under a normal likelihood of eta (N,), in which eta = rest + sum_k beta_k rows_k,

    log likelihood of a change d of eta = score'd - d'diag(W)d / 2,

where `score` (N,), its slope at the current eta, is updated in place. A weight has the prior
Normal(0, v^1/2), 1 / v = 1 / (tau lambda)^2 + 1 / c2. With its linear term L and its precision P
in the likelihood, given all others, it can be integrated out:

    m(v) = int Normal(beta | 0, v^1/2) exp(L beta - P beta^2 / 2) d beta
         = (1 + v P)^-1/2 exp(L^2 v / (1 + v P) / 2),
    beta | v ~ Normal(L v / (1 + v P), (v / (1 + v P))^1/2).

Every loop ends even if it meets NaN.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from .ard_steps import Pairs, cross_product, draw_partner, products
from .slice_step import slice_step

_MOST_ODDS = 30.0  # ln of the odds of the slab in a proposal
_LEAST = 1e-100  # of a draw of a scale, so that no variance underflows


class Scales(NamedTuple):
    """The global scale tau, and the variance c2 of the slab."""

    tau: float
    c2: float


# --- one weight with its local scale --------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def variance(local: float, scales: Scales) -> float:
    """Return v of a weight."""
    t = (scales.tau * local) ** 2
    return t / (1.0 + t / scales.c2)


@numba.njit(cache=True, nogil=True)
def log_integral(v: float, linear: float, precision: float) -> float:
    """Return ln m(v)."""
    grown = 1.0 + v * precision
    return 0.5 * (linear * linear * v / grown - math.log(grown))


@numba.njit(cache=True, nogil=True)
def draw_half_cauchy(rng: np.random.Generator, scale: float) -> float:
    """Draw from C+(0, scale)."""
    return max(scale * math.tan(0.5 * math.pi * rng.random()), _LEAST)


@numba.njit(cache=True, nogil=True)
def draw_local(
    rng: np.random.Generator, linear: float, precision: float, scales: Scales, local: float
) -> float:
    """Return lambda after a Metropolis step for C+(lambda | 0, 1) m(v), the weight integrated out.

    It proposes from share C+(0, 1) + (1 - share) C+(0, peak): the spike and the slab. Where m is at
    most 1 everywhere, share = 1, and m alone decides. `peak` and `share` do not depend on lambda.
    """
    share, peak = proposal(linear, precision, scales)
    new = draw_half_cauchy(rng, 1.0 if share == 1.0 or rng.random() < share else peak)
    if not new < 1e150:
        return local
    gain = log_integral(variance(new, scales), linear, precision)
    gain -= log_integral(variance(local, scales), linear, precision)
    if share < 1.0:
        gain += log_excess(local, share, peak) - log_excess(new, share, peak)
    return new if rng.standard_exponential() > -gain else local


@numba.njit(cache=True, nogil=True)
def proposal(linear: float, precision: float, scales: Scales) -> tuple[float, float]:
    """Return share, about the probability of the spike, and the scale of the slab's lambda."""
    square = linear * linear
    if square <= precision:
        return 1.0, 1.0
    # the mean of the weight at v = c2, which tau lambda has to exceed for ln m to be near its limit
    peak = abs(linear) / (precision + 1.0 / scales.c2) / scales.tau
    odds = math.log(math.atan(1.0 / peak) * 2.0 / math.pi)
    odds += log_integral(variance(peak, scales), linear, precision)
    odds += 0.5 * math.log(1.0 + scales.tau * scales.tau * precision)
    odds = min(max(odds, -_MOST_ODDS), _MOST_ODDS)
    return 1.0 / (1.0 + math.exp(odds)), peak


@numba.njit(cache=True, nogil=True)
def log_excess(local: float, share: float, peak: float) -> float:
    """Return ln q / C+(0, 1) at lambda, where q is the proposal."""
    square = local * local
    return math.log(share + (1.0 - share) * peak * (1.0 + square) / (peak * peak + square))


@numba.njit(cache=True, nogil=True)
def draw_weight(rng: np.random.Generator, linear: float, precision: float, v: float) -> float:
    """Draw a weight given its variance v."""
    kept = v / (1.0 + v * precision)
    return kept * linear + math.sqrt(kept) * rng.standard_normal()


@numba.njit(cache=True, nogil=True)
def weight_scan(
    rng: np.random.Generator,
    rows: np.ndarray,
    W: np.ndarray,
    scales: Scales,
    score: np.ndarray,
    beta: np.ndarray,
    local: np.ndarray,
) -> None:
    """Move every lambda with its weight integrated out, then draw the weight; rows (D, N)."""
    D, N = rows.shape
    for d in range(D):
        product, precision = products(rows, d, score, W)
        linear = product + precision * beta[d]
        local[d] = draw_local(rng, linear, precision, scales, local[d])
        new = draw_weight(rng, linear, precision, variance(local[d], scales))
        change = new - beta[d]
        beta[d] = new
        for n in range(N):
            score[n] -= change * W[n] * rows[d, n]


# --- two weights that exchange their local scales -------------------------------------------------


@numba.njit(cache=True, nogil=True)
def log_pair_integral(
    v: float, w: float, L: tuple[float, float], P: tuple[float, float], cross: float
) -> float:
    """Return ln m of two weights of variances v and w, with the term exp(-cross beta_i beta_j)."""
    det = determinant(v, w, P, cross)
    square = P[1] * L[0] * L[0] - 2.0 * cross * L[0] * L[1] + P[0] * L[1] * L[1]
    return 0.5 * ((v * L[0] * L[0] + w * L[1] * L[1] + v * w * square) / det - math.log(det))


@numba.njit(cache=True, nogil=True)
def determinant(v: float, w: float, P: tuple[float, float], cross: float) -> float:
    """Return that of I + diag(v, w) P, without cancellation for two equal features."""
    return 1.0 + v * P[0] + w * P[1] + v * w * max(P[0] * P[1] - cross * cross, 0.0)


@numba.njit(cache=True, nogil=True)
def draw_pair(
    rng: np.random.Generator,
    v: float,
    w: float,
    L: tuple[float, float],
    P: tuple[float, float],
    cross: float,
) -> tuple[float, float]:
    """Draw two weights given their variances v and w."""
    det = determinant(v, w, P, cross)
    mean = v * (L[0] + w * (P[1] * L[0] - cross * L[1])) / det
    x = mean + math.sqrt(v * (1.0 + w * P[1]) / det) * rng.standard_normal()
    return x, draw_weight(rng, L[1] - cross * x, P[1], w)


@numba.njit(cache=True, nogil=True)
def exchange_scan(
    rng: np.random.Generator,
    tries: int,
    rows: np.ndarray,
    W: np.ndarray,
    scales: Scales,
    pairs: Pairs,
    score: np.ndarray,
    beta: np.ndarray,
    local: np.ndarray,
) -> int:
    """Exchange the local scales of two weights, both integrated out; return how often.

    The first, i, is chosen with a probability proportional to g(lambda_i), the second is a partner
    of it or any other, p(j | i). An exchange permutes the lambdas and so leaves the sum of all g.
    With g the standard deviation of the weight's prior where lambda is above `pairs.visible`, and 0
    elsewhere, the pair is chosen with a probability proportional to g_i p(j | i) + g_j p(i | j).
    """
    D, N = rows.shape
    count, total = 0, 0.0
    for d in range(D):
        count += local[d] > pairs.visible
    beyond, g = np.empty(count, dtype=np.int64), np.empty(count)  # A, the weights with g > 0
    count = 0
    for d in range(D):
        if local[d] > pairs.visible:
            beyond[count] = d
            g[count] = math.sqrt(variance(local[d], scales))
            total += g[count]
            count += 1
    product, precision = np.empty(count), np.full(count, -1.0)  # of A; negative: to be computed
    accepted = 0
    for _ in range(tries if D > 1 and count > 0 else 0):
        at, left = 0, rng.random() * total
        while at < count - 1 and left > g[at]:
            left -= g[at]
            at += 1
        i = beyond[at]
        j = draw_partner(rng, i, D, pairs)
        if precision[at] < 0.0:
            product[at], precision[at] = products(rows, i, score, W)
        b_i, p_i = product[at], precision[at]
        b_j, p_j = products(rows, j, score, W)
        cross = cross_product(rows, i, j, W)
        P = (p_i, p_j)
        L = (b_i + p_i * beta[i] + cross * beta[j], b_j + p_j * beta[j] + cross * beta[i])
        v, w = variance(local[i], scales), variance(local[j], scales)
        gain = log_pair_integral(w, v, L, P, cross) - log_pair_integral(v, w, L, P, cross)
        both = local[j] > pairs.visible
        g_i, g_j = g[at], math.sqrt(w) if both else 0.0
        to_j, to_i = partner_chances(i, j, D, pairs)
        gain += math.log((g_j * to_j + g_i * to_i) / (g_i * to_j + g_j * to_i))
        if not rng.standard_exponential() > -gain:
            continue
        accepted += 1
        local[i], local[j] = local[j], local[i]
        if both:
            for other in range(count):
                if beyond[other] == j:
                    g[at], g[other] = g_j, g_i
        else:
            beyond[at] = j
        new_i, new_j = draw_pair(rng, w, v, L, P, cross)
        d_i, d_j = new_i - beta[i], new_j - beta[j]
        for n in range(N):
            score[n] -= W[n] * (d_i * rows[i, n] + d_j * rows[j, n])
        beta[i], beta[j] = new_i, new_j
        precision[:] = -1.0  # the score has changed
    return accepted


@numba.njit(cache=True, nogil=True)
def partner_chances(i: int, j: int, D: int, pairs: Pairs) -> tuple[float, float]:
    """Return the probabilities of j for i, and of i for j; one row of partners says both."""
    to_j = to_i = 0.5 / (D - 1)
    for p in range(pairs.degree[i]):  # i is one of few, so its row is in the cache
        if pairs.partner[i, p] == j:
            return to_j + 0.5 / pairs.degree[i], to_i + 0.5 / pairs.degree[j]
    return to_j * (1 + (pairs.degree[i] == 0)), to_i * (1 + (pairs.degree[j] == 0))


# --- the scales of all weights --------------------------------------------------------------------


class Block(NamedTuple):
    """What the density of (tau, c2) needs, with the bias and the weights of a set A integrated out.

    The bias, the weights of covariates and those of A are K in all, in this order; F are not of A.
    e (N,) is the part of eta that the other weights have.

    Attributes
    ----------
    gram : array (K, K)
        H diag(W) H', where the rows of H (K, N) are those of 1, of the covariates and of A.
    linear, pull : array (K,)
        H r and H diag(W) e, where r - W eta is the score.
    fixed : array (F,)
        Prior standard deviations of the bias and of the weights of covariates.
    local : array (K - F,)
        lambda in A.
    t : array (D - K + F,)
        (tau lambda)^2 of the others.
    square, along, against : float
        Sum of beta^2 of the others; r'e; e'diag(W)e.
    tau_0, shape, scale : float
        Parameters of the priors of tau and of c2.
    """

    gram: np.ndarray
    linear: np.ndarray
    pull: np.ndarray
    fixed: np.ndarray
    local: np.ndarray
    t: np.ndarray
    square: float
    along: float
    against: float
    tau_0: float
    shape: float
    scale: float


@numba.njit(cache=True, nogil=True)
def factor(block: Block, s: float, scales: Scales) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sd (K,) of the prior, the factor C of I + diag(sd) gram diag(sd), and C^-1 diag(sd) h.

    C is lower triangular; h = linear - s pull is the linear term, with the others scaled by s.
    """
    K, F = len(block.linear), len(block.fixed)
    sd, x = np.empty(K), np.empty(K)
    C = np.empty((K, K))
    sd[:F] = block.fixed
    for k in range(F, K):
        sd[k] = math.sqrt(variance(block.local[k - F], scales))
    for k in range(K):
        x[k] = sd[k] * (block.linear[k] - s * block.pull[k])
        for j in range(k + 1):
            total = sd[k] * block.gram[k, j] * sd[j]
            for i in range(j):
                total -= C[k, i] * C[j, i]
            if j < k:
                C[k, j] = total / C[j, j]
                x[k] -= C[k, j] * x[j]
        C[k, k] = math.sqrt(1.0 + total)
        x[k] /= C[k, k]
    return sd, C, x


@numba.njit(cache=True, nogil=True)
def log_scales(block: Block, s: float, scales: Scales) -> float:
    """Return the log density of (ln s, ln c2), without constants.

    s takes tau, which is s = 1, to s tau and scales the weights outside A with it. The Jacobian of
    ln s is s^(M + 1) in all, for tau and the M weights outside A. Their prior is proportional to

        s^-M prod (1 + s^2 t / c2)^1/2 exp(-s^2 square / (2 c2)).
    """
    total, product = 0.0, 1.0
    ratio = s * s / scales.c2
    for d in range(len(block.t)):
        product *= 1.0 + ratio * block.t[d]
        if product > 1e150:  # one logarithm for many weights
            total += math.log(product)
            product = 1.0
    total = 0.5 * (total + math.log(product) - ratio * block.square)
    total += s * block.along - 0.5 * s * s * block.against
    _, C, x = factor(block, s, Scales(s * scales.tau, scales.c2))
    for k in range(len(x)):
        total += 0.5 * x[k] * x[k] - math.log(C[k, k])
    relative = s * scales.tau / block.tau_0
    total += math.log(s) - math.log(1.0 + relative * relative)
    return total - block.shape * math.log(scales.c2) - block.scale / scales.c2


@numba.njit(cache=True, nogil=True)
def log_along(u: float, axis: int, block: Block, scales: Scales) -> float:
    """Return `log_scales` at ln s = u (axis 0), or where ln c2 has grown by u (axis 1)."""
    if axis == 0:
        return log_scales(block, math.exp(u), scales)
    return log_scales(block, 1.0, Scales(scales.tau, scales.c2 * math.exp(u)))


_along_step = slice_step(log_along)


@numba.njit(cache=True, nogil=True)
def draw_along(rng: np.random.Generator, axis: int, block: Block, scales: Scales) -> float:
    """Return u after one slice step from u = 0."""
    return _along_step(rng, 1.0, (axis, block, scales))


@numba.njit(cache=True, nogil=True)
def draw_block(rng: np.random.Generator, block: Block, scales: Scales) -> np.ndarray:
    """Draw the bias, the weights of covariates and those of A (K,) given the others."""
    sd, C, x = factor(block, 1.0, scales)
    K = len(x)
    for k in range(K):
        x[k] += rng.standard_normal()
    for k in range(K - 1, -1, -1):  # C' y = x
        for j in range(k + 1, K):
            x[k] -= C[j, k] * x[j]
        x[k] /= C[k, k]
    return sd * x


def scaled(block: Block, s: float) -> Block:
    """Return the block once tau and the weights outside A have been scaled by s."""
    return block._replace(
        pull=s * block.pull,
        t=s * s * block.t,
        square=s * s * block.square,
        along=s * block.along,
        against=s * s * block.against,
    )
