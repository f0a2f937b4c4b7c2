"""The steps of the Gibbs sampler of PFCVM and RFVM, compiled; `ard` says what each is.

Every step works on weights x (K,) that eta is linear in,

    eta = rest + sum_k x_k slope_k rows_k,

with the log likelihood score'd - d'diag(W)d / 2 of a change d (N,) of eta: `score` is its slope at
the present eta and follows in place. Every loop ends for NaN too.
"""

import math

import numba
import numpy as np

from .jcfo_steps import positive_draw

_LOG_2 = math.log(2.0)
_LOG_2PI = math.log(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_SHRINKAGES = 200  # the interval of a slice is below rounding long before


# --- the prior of one weight ----------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def log_student(x: float, shape: float, rate: float, log_peak: float) -> float:
    """Return the log density of a weight with its precision integrated out, without a slab."""
    return log_peak - (shape + 0.5) * math.log1p(0.5 * x * x / rate)


@numba.njit(cache=True, nogil=True)
def log_peak(shape: float, rate: float, positive: bool) -> float:
    """Return that log density at 0."""
    peak = math.lgamma(shape + 0.5) - math.lgamma(shape) - 0.5 * (_LOG_2PI + math.log(rate))
    return peak + _LOG_2 if positive else peak


# --- the proposal for one weight ------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def log_normal_integral(linear: float, precision: float, positive: bool) -> float:
    """Return ln of the integral of exp(linear x - precision x^2 / 2), over x >= 0 or the line."""
    whole = 0.5 * (_LOG_2PI - math.log(precision))
    t = linear / math.sqrt(precision)
    if not positive:
        return whole + 0.5 * t * t
    if t > -5.0:
        return whole + 0.5 * t * t + math.log(0.5 * math.erfc(-t * _ROOT_HALF))
    x = -t  # Laplace's continued fraction of Mills' ratio, exact to rounding from 5 on
    fraction = 0.0
    for k in range(40, 0, -1):
        fraction = k / (x + fraction)
    return -0.5 * math.log(precision) - math.log(x + fraction)


@numba.njit(cache=True, nogil=True)
def prior_share(
    linear: float,
    precision: float,
    log_normal: float,
    peak: float,
    shape: float,
    rate: float,
    positive: bool,
) -> float:
    """Return the probability with which the prior proposes; any value in (0, 1) is exact.

    It is near the posterior probability that x is in the prior's bulk and not where the likelihood
    has its peak m: 1 / (1 + p(m) Z / kept), Z the integral of the normal and kept the share of the
    bulk that the likelihood keeps.
    """
    mean = linear / precision
    if positive:
        mean = max(mean, 0.0)
    kept = -0.5 * math.log1p(precision * rate / shape)
    excess = log_student(mean, shape, rate, peak) + log_normal - kept
    share = 1.0 / (1.0 + math.exp(min(max(excess, -30.0), 30.0)))
    return min(max(share, 0.05), 0.95)


@numba.njit(cache=True, nogil=True)
def log_envelope(
    x: float,
    linear: float,
    precision: float,
    log_normal: float,
    peak: float,
    shape: float,
    rate: float,
    share: float,
) -> float:
    """Return ln of q(x) / f(x), the proposal's density over that of the target.

    f = t(x) G(x), t the prior without its slab, G(x) = exp(linear x - precision x^2 / 2); and
    q = share t + (1 - share) G / Z. So q / f = share / G + (1 - share) / (Z t).
    """
    by_prior = math.log(share) - (linear - 0.5 * precision * x) * x
    by_normal = math.log(1.0 - share) - log_normal - log_student(x, shape, rate, peak)
    high = max(by_prior, by_normal)
    return high + math.log1p(math.exp(min(by_prior, by_normal) - high))


@numba.njit(cache=True, nogil=True)
def propose(
    rng: np.random.Generator,
    linear: float,
    precision: float,
    shape: float,
    rate: float,
    share: float,
    positive: bool,
) -> float:
    """Draw from q."""
    if rng.random() < share:
        x = rng.standard_normal() * math.sqrt(rate / rng.standard_gamma(shape))
        return abs(x) if positive else x
    if positive:
        return positive_draw(rng, linear, precision)
    return linear / precision + rng.standard_normal() / math.sqrt(precision)


# --- scans ----------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def weight_scan(
    rng: np.random.Generator,
    rows: np.ndarray,
    slope: np.ndarray,
    W: np.ndarray,
    shape: float,
    rate: float,
    slab: float,
    positive: bool,
    score: np.ndarray,
    x: np.ndarray,
) -> None:
    """Independence step of every weight, one after the other; rows (K, N), slope (K,)."""
    K, N = rows.shape
    peak = log_peak(shape, rate, positive)
    for k in range(K):
        product, square = 0.0, 0.0
        for i in range(N):
            product += rows[k, i] * score[i]
            square += rows[k, i] * rows[k, i] * W[i]
        s = slope[k]
        square *= s * s
        linear = s * product + square * x[k]
        precision = square + 1.0 / (slab * slab)
        if not precision > 1e-290:  # nothing but the prior
            new = propose(rng, 0.0, 1.0, shape, rate, 1.0, positive)
        else:
            Z = log_normal_integral(linear, precision, positive)
            share = prior_share(linear, precision, Z, peak, shape, rate, positive)
            new = propose(rng, linear, precision, shape, rate, share, positive)
            if not abs(new) < 1e150:
                continue
            gain = log_envelope(x[k], linear, precision, Z, peak, shape, rate, share)
            gain -= log_envelope(new, linear, precision, Z, peak, shape, rate, share)
            if not rng.standard_exponential() > -gain:
                continue
        change = s * (new - x[k])
        x[k] = new
        for i in range(N):
            score[i] -= change * W[i] * rows[k, i]


@numba.njit(cache=True, nogil=True)
def swap_scan(
    rng: np.random.Generator,
    tries: int,
    rows: np.ndarray,
    slope: np.ndarray,
    W: np.ndarray,
    visible: float,
    partner: np.ndarray,
    degree: np.ndarray,
    score: np.ndarray,
    x: np.ndarray,
) -> int:
    """Exchange pairs of weights; return how many exchanges were accepted.

    i is uniform among the weights beyond `visible`, j one of its partners or, with probability
    1/2, any other. The number beyond is the same before and after, so the proposal's ratio is 1
    where both are beyond, and else q(i | j) / q(j | i).
    """
    K, N = rows.shape
    place = np.full(K, -1)
    beyond = np.empty(K, dtype=np.int64)
    count = 0
    for k in range(K):
        if abs(x[k]) > visible:
            place[k] = count
            beyond[count] = k
            count += 1
    if count == 0 or K < 2:
        return 0
    accepted = 0
    for _ in range(tries):
        i = beyond[rng.integers(0, count)]
        if degree[i] > 0 and rng.random() < 0.5:
            j = partner[i, rng.integers(0, degree[i])]
        else:
            j = rng.integers(0, K - 1)
            j += j >= i
        step = x[i] - x[j]
        gain = 0.0
        for n in range(N):
            d = step * (slope[j] * rows[j, n] - slope[i] * rows[i, n])
            gain += (score[n] - 0.5 * W[n] * d) * d
        if place[j] < 0:
            gain += math.log(chance(i, j, partner, degree, K) / chance(j, i, partner, degree, K))
        if not rng.standard_exponential() > -gain:
            continue
        accepted += 1
        for n in range(N):
            score[n] -= W[n] * step * (slope[j] * rows[j, n] - slope[i] * rows[i, n])
        x[i], x[j] = x[j], x[i]
        if place[j] < 0:
            place[j], place[i] = place[i], -1
            beyond[place[j]] = j
    return accepted


@numba.njit(cache=True, nogil=True)
def chance(j: int, i: int, partner: np.ndarray, degree: np.ndarray, K: int) -> float:
    """Return q(j | i), the probability that i is exchanged with j."""
    if degree[i] == 0:
        return 1.0 / (K - 1)
    for p in range(degree[i]):
        if partner[i, p] == j:
            return 0.5 / (K - 1) + 0.5 / degree[i]
    return 0.5 / (K - 1)


# --- the scale of the features against that of the samples ----------------------------------------


@numba.njit(cache=True, nogil=True)
def log_group(x: np.ndarray, shape: float, rate: float, slab: float, scale: float) -> float:
    """Return the log prior of scale * x, without constants."""
    total, product, square = 0.0, 1.0, 0.0
    for k in range(len(x)):
        y = scale * x[k]
        square += y * y
        product *= 1.0 + 0.5 * y * y / rate
        if product > 1e200:  # one logarithm for many weights
            total += math.log(product)
            product = 1.0
    total += math.log(product)
    return -(shape + 0.5) * total - 0.5 * square / (slab * slab)


@numba.njit(cache=True, nogil=True)
def log_scale_density(
    u: float,
    theta: np.ndarray,
    feature: tuple[float, float, float],
    x: np.ndarray,
    sample: tuple[float, float, float],
) -> float:
    """Log density of u in (theta, x) -> (e^u theta, e^-u x), for the measure du: eta stays."""
    up = log_group(theta, feature[0], feature[1], feature[2], math.exp(u))
    down = log_group(x, sample[0], sample[1], sample[2], math.exp(-u))
    return up + down + (len(theta) - len(x)) * u


@numba.njit(cache=True, nogil=True)
def scale_move(
    rng: np.random.Generator,
    width: float,
    theta: np.ndarray,
    feature: tuple[float, float, float],
    x: np.ndarray,
    sample: tuple[float, float, float],
) -> float:
    """Return u after one slice step from u = 0, stepping out and shrinking (Neal 2003)."""
    level = log_scale_density(0.0, theta, feature, x, sample) - rng.standard_exponential()
    low = -width * rng.random()
    high = low + width
    for _ in range(_SHRINKAGES):
        if not log_scale_density(low, theta, feature, x, sample) > level:
            break
        low -= width
    for _ in range(_SHRINKAGES):
        if not log_scale_density(high, theta, feature, x, sample) > level:
            break
        high += width
    for _ in range(_SHRINKAGES):
        u = low + (high - low) * rng.random()
        if log_scale_density(u, theta, feature, x, sample) >= level:
            return u
        if u < 0.0:
            low = u
        else:
            high = u
    return 0.0
