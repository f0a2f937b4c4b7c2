"""The compiled steps of the Gibbs sampler of PFCVM and RFVM, which `ard_linear` explains.

Every step updates weights x (K,) in which eta (N,) is linear, under a normal likelihood,

    eta = rest + sum_k x_k slope_k rows_k
    log likelihood of a change d of eta = score'd - d'diag(W)d / 2,

where `score` (N,), its slope at the current eta, is updated in place. With t(x) the prior without
its slab, the full conditional of one weight is proportional to

    f(x) = t(x) G(x),    G(x) = exp(linear x - precision x^2 / 2),

with the slab in G: precision = slope^2 rows' W rows + slab^-2. It has up to two modes: the spike at
zero, where t is high, and the peak of G. A proposal that covers both needs no path between them,

    q(x) = share t(x) + (1 - share) G(x) / Z,    Z the integral of G.

The step is exact for any share in (0, 1] that does not depend on x. It is uniformly ergodic if
q / f = share / G + (1 - share) / (Z t) is bounded from below.

Most weights of fat data are faint: G is flat over the spike and nowhere far above 1 (`faint`).
For them share = 1, and q / f = 1 / G needs no logarithm. Whether a weight is faint depends on
(linear, precision) only, hence not on x. (`ard_scans` leaves most of their moves out.)

Every loop ends even if it meets NaN.
"""

import math
from typing import NamedTuple

import numba
import numpy as np
from scipy import stats

from ardvark.models.parts.ard import WeightPrior

from .partners import correlated
from .positive_draw import positive_draw
from .slice_step import slice_step

LARGE = 5.0
"""Weights beyond the threshold of `Pairs`, expected under the prior."""
_LOG_2 = math.log(2.0)
_LOG_2PI = math.log(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_HUGE = 1e150  # above it, squares overflow
_MOST_ODDS = math.log(19.0)  # share is between 0.05 and 0.95
_FAINT = 1.5  # ln G of a faint weight is nowhere above it, so q / f = 1 / G is at least e^-1.5
_SUMS = {"reassoc", "contract"}  # sums in any order, so that they are vectorised


class Prior(NamedTuple):
    """Prior of a group of weights.

    Attributes
    ----------
    shape, rate : float
        Parameters of the Gamma prior of the precisions.
    slab : float
        Standard deviation of the slab; inf: no slab.
    positive : bool
        Whether x >= 0; if not, x has either sign.
    peak : float
        ln t(0).
    """

    shape: float
    rate: float
    slab: float
    positive: bool
    peak: float

    @classmethod
    def of(cls, prior: WeightPrior, *, positive: bool) -> "Prior":
        """Return the prior that a model's hyperparameters define."""
        shape, rate, slab = map(float, prior)
        peak = math.lgamma(shape + 0.5) - math.lgamma(shape) - 0.5 * (_LOG_2PI + math.log(rate))
        return cls(shape, rate, slab, positive, peak + _LOG_2 if positive else peak)


class Pairs(NamedTuple):
    """Which pairs move: one weight beyond `visible`, and a partner as in `partners.Partners`."""

    visible: float
    partner: np.ndarray
    degree: np.ndarray

    @classmethod
    def of(cls, columns: np.ndarray, prior: WeightPrior, most: int) -> "Pairs":
        """Return the pairs of the weights of columns (any, K), each with its `most` correlated."""
        visible, _ = beyond(LARGE, columns.shape[1], prior)
        return cls(visible, *correlated(columns, most))


def beyond(count: float, K: int, prior: WeightPrior) -> tuple[float, float]:
    """Return c such that the prior expects so many of K weights beyond it, and the chance of one.

    The prior is the one without its slab; at most half of the weights are beyond.
    """
    chance = min(0.5, count / K)
    return float(stats.t.isf(0.5 * chance, 2.0 * prior.shape, scale=prior.scale)), chance


class Group(NamedTuple):
    """The weights x (K,) that a scan moves, and what it reads; it updates x and the score.

    rows (K, N), slope (K,), W (N,), score (N,): of the likelihood, as above.
    """

    rows: np.ndarray
    slope: np.ndarray
    W: np.ndarray
    prior: Prior
    score: np.ndarray
    x: np.ndarray


class Proposal(NamedTuple):
    """The proposal q of one weight: linear and precision of G, ln Z, share, and its logarithms.

    log_share is ln share, log_odds ln (1 - share) / share.
    """

    linear: float
    precision: float
    log_normal: float
    share: float
    log_share: float
    log_odds: float


# --- one weight -----------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def log_student(x: float, prior: Prior) -> float:
    """Return ln t(x), the prior of a weight with its precision integrated out, without a slab."""
    return prior.peak - (prior.shape + 0.5) * math.log(1.0 + 0.5 * x * x / prior.rate)


@numba.njit(cache=True, nogil=True)
def draw_student(rng: np.random.Generator, prior: Prior) -> float:
    """Draw from t."""
    z = rng.standard_normal()
    if prior.shape == 0.5:  # Gamma(1/2) is half the square of a normal, which is drawn faster
        x = z * math.sqrt(2.0 * prior.rate) / max(abs(rng.standard_normal()), 1e-150)
    else:
        precision = max(rng.standard_gamma(prior.shape), 1e-300)  # underflows if shape is small
        x = z * math.sqrt(prior.rate / precision)
    return abs(x) if prior.positive else x


@numba.njit(cache=True, nogil=True)
def log_normal_integral(linear: float, precision: float, positive: bool) -> float:
    """Return ln Z, the integral over x >= 0 or over the whole line."""
    t = linear / math.sqrt(precision)
    if not positive:
        return 0.5 * (_LOG_2PI - math.log(precision) + t * t)
    if t > -5.0:
        share = 0.5 * math.erfc(-t * _ROOT_HALF)
        return 0.5 * (_LOG_2PI + t * t + math.log(share * share / precision))
    fraction = 0.0  # Laplace's continued fraction of Mills' ratio, exact to rounding from 5 on
    for k in range(40, 0, -1):
        fraction = k / (fraction - t)
    return -0.5 * math.log(precision) - math.log(fraction - t)


@numba.njit(cache=True, nogil=True)
def proposal(linear: float, precision: float, prior: Prior) -> Proposal:
    """Return q for G with this linear term and precision.

    share approximates the posterior probability that x is in the spike. There the integral of f is
    about the share of t that G keeps; at the peak of G it is about Z times t at the peak.
    """
    precision = max(precision, 1e-290)  # 0 for a constant feature without a slab
    log_normal = log_normal_integral(linear, precision, prior.positive)
    sd, scale = 1.0 / math.sqrt(precision), math.sqrt(prior.rate / prior.shape)
    down = max(-linear, 0.0) if prior.positive else 0.0
    peak = abs(linear) / precision if down == 0.0 else 0.0
    peak = max(peak, sd / (1.0 + sd * down))
    flat = 1.0 + scale * down
    kept = -0.5 * math.log((1.0 + scale * scale * precision) * flat * flat)
    excess = log_student(peak, prior) + log_normal - kept
    excess = min(max(excess, -_MOST_ODDS), _MOST_ODDS)
    share = 1.0 / (1.0 + math.exp(excess))
    return Proposal(linear, precision, log_normal, share, math.log(share), excess)


@numba.njit(cache=True, nogil=True)
def draw_proposal(rng: np.random.Generator, q: Proposal, prior: Prior) -> float:
    """Draw from q."""
    if rng.random() < q.share:
        return draw_student(rng, prior)
    if prior.positive:
        return positive_draw(rng, q.linear, q.precision)
    return q.linear / q.precision + rng.standard_normal() / math.sqrt(q.precision)


@numba.njit(cache=True, nogil=True)
def log_tilt(x: float, linear: float, precision: float) -> float:
    """Return ln G(x)."""
    return (linear - 0.5 * precision * x) * x


@numba.njit(cache=True, nogil=True)
def log_ratio(x: float, q: Proposal, prior: Prior) -> float:
    """Return ln q(x) / f(x)."""
    tilt = log_tilt(x, q.linear, q.precision)
    by_normal = q.log_odds - q.log_normal - log_student(x, prior) + tilt  # beside that by the prior
    return q.log_share - tilt + log_sum(0.0, by_normal)


@numba.njit(cache=True, nogil=True)
def log_sum(a: float, b: float) -> float:
    """Return ln (e^a + e^b)."""
    return max(a, b) + math.log(1.0 + math.exp(-abs(a - b)))


@numba.njit(cache=True, nogil=True)
def faint(linear: float, precision: float, scale: float, positive: bool) -> bool:
    """Return whether G changes little over the scale of t, and ln G is nowhere above _FAINT."""
    if not (abs(linear) * scale < 1.0 and precision * scale * scale < 1.0):
        return False
    return (positive and linear < 0.0) or linear * linear < 2.0 * _FAINT * precision


@numba.njit(cache=True, nogil=True)
def step(
    rng: np.random.Generator, linear: float, precision: float, prior: Prior, x: float
) -> float:
    """Return x after a Metropolis step that proposes from q."""
    q = proposal(linear, precision, prior)
    new = draw_proposal(rng, q, prior)
    if not abs(new) < _HUGE:
        return x
    loss = log_ratio(new, q, prior) - log_ratio(x, q, prior)
    return new if rng.standard_exponential() > loss else x


@numba.njit(cache=True, nogil=True)
def metropolis(
    rng: np.random.Generator, linear: float, precision: float, x: float, new: float
) -> float:
    """Return `new`, a proposal from t, with probability min(1, G(new) / G(x)), else x."""
    loss = log_tilt(x, linear, precision) - log_tilt(new, linear, precision)
    accepts = loss <= 0.0 or rng.standard_exponential() > loss
    return new if accepts and abs(new) < _HUGE else x


@numba.njit(cache=True, nogil=True, fastmath=_SUMS)
def products(rows: np.ndarray, k: int, score: np.ndarray, W: np.ndarray) -> tuple[float, float]:
    """Return rows_k'score and rows_k'diag(W)rows_k."""
    product, square = 0.0, 0.0
    for n in range(rows.shape[1]):
        product += rows[k, n] * score[n]
        square += rows[k, n] * W[n] * rows[k, n]
    return product, square


@numba.njit(cache=True, nogil=True, fastmath=_SUMS)
def cross_product(rows: np.ndarray, i: int, j: int, W: np.ndarray) -> float:
    """Return rows_i'diag(W)rows_j."""
    product = 0.0
    for n in range(rows.shape[1]):
        product += rows[i, n] * W[n] * rows[j, n]
    return product


# --- pairs ----------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def log_pair_ratio(
    x: float, y: float, L: tuple[float, float], P: tuple[float, float], cross: float, prior: Prior
) -> float:
    """Return ln q(x, y) / f(x, y) of a pair.

    f = t(x) t(y) exp(L_0 x + L_1 y - P_0 x^2 / 2 - P_1 y^2 / 2 - cross x y). With probability 1/2,
    q draws x from t and y from its own proposal given x; otherwise it exchanges their roles.
    """
    first = log_ratio(y, proposal(L[1] - cross * x, P[1], prior), prior) - log_tilt(x, L[0], P[0])
    other = log_ratio(x, proposal(L[0] - cross * y, P[0], prior), prior) - log_tilt(y, L[1], P[1])
    return log_sum(first, other) - _LOG_2


@numba.njit(cache=True, nogil=True)
def partner_chance(j: int, i: int, K: int, pairs: Pairs) -> float:
    """Return the probability that i, chosen first of K weights, is paired with j."""
    if pairs.degree[i] == 0:
        return 1.0 / (K - 1)
    chance = 0.5 / (K - 1)
    for p in range(pairs.degree[i]):
        if pairs.partner[i, p] == j:
            chance += 0.5 / pairs.degree[i]
    return chance


@numba.njit(cache=True, nogil=True)
def draw_partner(rng: np.random.Generator, i: int, K: int, pairs: Pairs) -> int:
    """Choose a partner of i, or any other of K weights, as `partner_chance` says."""
    if pairs.degree[i] > 0 and rng.random() < 0.5:
        return pairs.partner[i, rng.integers(0, pairs.degree[i])]
    j = rng.integers(0, K - 1)
    return int(j + (j >= i))


@numba.njit(cache=True, nogil=True)
def pair_scan(rng: np.random.Generator, tries: int, group: Group, pairs: Pairs) -> int:
    """Move both weights of a pair together, so that one may replace the other; return how many.

    A pair is chosen with probability ([i in A] p(j | i) + [j in A] p(i | j)) / |A|, where A is the
    set of weights beyond `visible`. A move may change A, so the acceptance probability contains the
    ratio of these probabilities.
    """
    rows, slope, W, prior, score, x = group
    K, N = rows.shape
    place = np.full(K, -1)  # position of a weight in A
    visible = np.empty(K, dtype=np.int64)  # A
    count = 0
    for k in range(K):
        if abs(x[k]) > pairs.visible:
            place[k], visible[count] = count, k
            count += 1
    accepted, slab = 0, 1.0 / (prior.slab * prior.slab)
    for _ in range(tries if K > 1 else 0):
        if count == 0:
            break
        i = visible[rng.integers(0, count)]
        j = draw_partner(rng, i, K, pairs)
        (b_i, ii), (b_j, jj) = products(rows, i, score, W), products(rows, j, score, W)
        b_i, ii, b_j, jj = slope[i] * b_i, slope[i] ** 2 * ii, slope[j] * b_j, slope[j] ** 2 * jj
        cross = slope[i] * slope[j] * cross_product(rows, i, j, W)
        L = (b_i + ii * x[i] + cross * x[j], b_j + jj * x[j] + cross * x[i])
        P = (ii + slab, jj + slab)
        if rng.random() < 0.5:
            new_i = draw_student(rng, prior)
            new_j = draw_proposal(rng, proposal(L[1] - cross * new_i, P[1], prior), prior)
        else:
            new_j = draw_student(rng, prior)
            new_i = draw_proposal(rng, proposal(L[0] - cross * new_j, P[0], prior), prior)
        if not (abs(new_i) < _HUGE and abs(new_j) < _HUGE):
            continue
        was_j = place[j] >= 0
        is_i, is_j = abs(new_i) > pairs.visible, abs(new_j) > pairs.visible
        if not (is_i or is_j):
            continue  # the reverse move could not choose this pair
        to_j, to_i = partner_chance(j, i, K, pairs), partner_chance(i, j, K, pairs)
        now = count - 1 - was_j + is_i + is_j
        loss = log_pair_ratio(new_i, new_j, L, P, cross, prior)
        loss -= log_pair_ratio(x[i], x[j], L, P, cross, prior)
        loss += math.log((to_j + was_j * to_i) / count)
        loss -= math.log((is_i * to_j + is_j * to_i) / now)
        if not rng.standard_exponential() > loss:
            continue
        accepted += 1
        d_i, d_j = slope[i] * (new_i - x[i]), slope[j] * (new_j - x[j])
        for n in range(N):
            score[n] -= W[n] * (d_i * rows[i, n] + d_j * rows[j, n])
        x[i], x[j] = new_i, new_j
        for k, enters in ((i, is_i), (j, is_j)):
            if enters and place[k] < 0:
                place[k], visible[count] = count, k
                count += 1
            elif not enters and place[k] >= 0:
                count -= 1
                visible[place[k]] = visible[count]
                place[visible[count]] = place[k]
                place[k] = -1
    return accepted


# --- the scale of the feature weights relative to that of the sample weights ----------------------


@numba.njit(cache=True, nogil=True)
def log_group(x: np.ndarray, prior: Prior, scale: float) -> float:
    """Return the log prior of scale * x (K,), without constants."""
    total, product, square = 0.0, 1.0, 0.0
    factor = 0.5 * scale * scale / prior.rate
    for k in range(len(x)):
        x2 = x[k] * x[k]
        square += x2
        product *= 1.0 + factor * x2
        if product > 1e150:  # one logarithm for many weights
            total += math.log(product)
            product = 1.0
    total += math.log(product)
    return -(prior.shape + 0.5) * total - 0.5 * square * (scale / prior.slab) ** 2


@numba.njit(cache=True, nogil=True)
def log_scale_density(
    v: float, theta: np.ndarray, feature: Prior, x: np.ndarray, sample: Prior
) -> float:
    """Return the log density of v in (theta, x) -> (e^v theta, e^-v x), which leaves eta unchanged.

    The Jacobian is e^((D - B) v).
    """
    groups = log_group(theta, feature, math.exp(v)) + log_group(x, sample, math.exp(-v))
    return groups + (len(theta) - len(x)) * v


_scale_step = slice_step(log_scale_density)


@numba.njit(cache=True, nogil=True)
def scale_move(
    rng: np.random.Generator,
    width: float,
    theta: np.ndarray,
    feature: Prior,
    x: np.ndarray,
    sample: Prior,
) -> float:
    """Return v after one slice step from v = 0."""
    return _scale_step(rng, width, (theta, feature, x, sample))


# --- latent noise ---------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def draw_noisy(
    rng: np.random.Generator, label_sign: np.ndarray, eta: np.ndarray, tau: float, u: np.ndarray
) -> None:
    """Draw every u_n from Normal(eta_n, tau^-1/2) times sigmoid(l_n u_n), by rejection.

    l is label_sign. With m = l eta and v = l u, sigmoid(v) is at most 1 and at most e^v. The second
    bound moves the mean of the normal to m + 1/tau; it is used if that is below 0.
    """
    sd = tau**-0.5
    for n in range(len(u)):
        m = label_sign[n] * eta[n]
        side = 1.0
        if m + 0.5 / tau < 0.0:
            m, side = m + 1.0 / tau, -1.0
        while True:
            v = m + sd * rng.standard_normal()
            # sigmoid(v), or sigmoid(v) / e^v = sigmoid(-v)
            if not rng.random() * (1.0 + math.exp(-side * v)) > 1.0:
                u[n] = label_sign[n] * v
                break
