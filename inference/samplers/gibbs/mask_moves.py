"""Compiled moves of the binary masks of FS-SKLR: single bits, pairs of features, and swaps.

Kojima, Tanaka (2017); `models/fsklr.py` defines the model, `masks.py` the order of the moves.
Notation: A active samples (z_j = 1), S active features (zeta_k = 1), K (A, N) the kernel of the
active samples, which `mask_kernel.py` keeps.

Two likelihoods of a mask:

    given alpha   l = sum_i log P(y_i | eta_i),  eta = K'alpha, logistic or normal: O(N A) per bit
    collapsed     alpha integrated out, given the weights w_i (Polya-Gamma omega_i, or the noise
                  precision tau) and r_i (y_i - 1/2, or tau s_i):
                  ln m = b'L^-1 b / 2 - ln|L| / 2 + A ln(xi) / 2,
                  L = K diag(w) K' + xi I,  b = K r: O(N A^2) per feature, O(N A + A^2) per sample

Every bit is drawn from its full conditional under one of the two. Pairs (two features on, or both
off) and swaps (one bit off, another on) are Metropolis moves.
"""

from typing import NamedTuple

import numpy as np

from .mask_kernel import Active, Kernel, column, compiled, exponential, toggled
from .partners import Partners

BLOCK = 64  # samples whose products with the active ones are formed at once


class Working(NamedTuple):
    """The working normal likelihood of K'alpha: weights w, r (N,), and alpha's precision xi."""

    w: np.ndarray
    r: np.ndarray
    xi: float


class _Inverse(NamedTuple):
    """P = L^-1, m = P b (A rows and columns are used), and the row of each sample in them."""

    P: np.ndarray
    m: np.ndarray
    place: np.ndarray


# --- the two likelihoods --------------------------------------------------------------------------


@compiled
def log_likelihood(eta: np.ndarray, s: np.ndarray, tau: float) -> float:
    """Return sum_i log P(y_i | eta_i): logistic if tau = 0, otherwise s_i ~ N(eta_i, 1 / tau)."""
    N, total = len(eta), 0.0
    if tau > 0.0:
        for i in range(N):
            total -= 0.5 * tau * (s[i] - eta[i]) ** 2
        return total
    distance, tail = np.abs(eta), np.empty(N)
    exponential(distance, -1.0, tail)
    product = 1.0  # of factors 1 + e^-|eta|, each at most 2: one logarithm for 500 of them
    for i in range(N):
        total += min(s[i] * eta[i], 0.0)
        product *= 1.0 + tail[i]
        if i % 500 == 499:
            total -= np.log(product)
            product = 1.0
    return total - np.log(product)


@compiled
def _factor(K: np.ndarray, working: Working) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return C, C^-1 b and b, where C is the Cholesky factor of L."""
    A = len(K)
    L = np.dot(K * working.w, K.T)
    for a in range(A):
        L[a, a] += working.xi
    C, b = np.linalg.cholesky(L), np.dot(K, working.r)
    half = b.copy()
    for a in range(A):
        for d in range(a):
            half[a] -= C[a, d] * half[d]
        half[a] /= C[a, a]
    return C, half, b


@compiled
def log_evidence(K: np.ndarray, working: Working) -> float:
    """Return ln m of the active samples' kernel K (A, N), in O(N A^2 + A^3)."""
    A = len(K)
    if A == 0:
        return 0.0
    C, half, _ = _factor(K, working)
    total = 0.5 * A * np.log(working.xi)
    for a in range(A):
        total += 0.5 * half[a] ** 2 - np.log(C[a, a])
    return total


@compiled
def draw_coefficients(K: np.ndarray, working: Working, noise: np.ndarray) -> np.ndarray:
    """Return alpha (A,) ~ N(L^-1 b, L^-1) from standard normal noise (A,)."""
    if len(K) == 0:
        return noise.copy()
    C, half, _ = _factor(K, working)
    alpha = half + noise
    for a in range(len(K) - 1, -1, -1):  # back substitution with C'
        for d in range(a + 1, len(K)):
            alpha[a] -= C[d, a] * alpha[d]
        alpha[a] /= C[a, a]
    return alpha


# --- draws ----------------------------------------------------------------------------------------


@compiled
def _accept(log_ratio: float, rng: np.random.Generator) -> bool:
    """Return True with probability min(1, ratio), as in a Metropolis step."""
    return log_ratio >= 0.0 or rng.random() < np.exp(log_ratio)


@compiled
def _bit(log_odds: float, rng: np.random.Generator) -> int:
    """Draw a bit with these log-odds."""
    return 1 if rng.random() < 1.0 / (1.0 + np.exp(-log_odds)) else 0


@compiled
def _nth(mask: np.ndarray, value: int, n: int) -> int:
    """Return the position of the n-th bit (from 0) that has this value."""
    for k in range(len(mask)):
        if mask[k] == value:
            if n == 0:
                return k
            n -= 1
    return -1


# --- features -------------------------------------------------------------------------------------


@compiled
def _pair(
    zeta: np.ndarray, S: int, log_odds: np.ndarray, partners: Partners, rng: np.random.Generator
) -> tuple[int, int, float]:
    """Propose to switch two partners on, or off; return both, and the log ratio.

    A fair coin decides which. k is one of the S bits that are on, or one of the D - S others, and l
    one of its partners. On the way back S has changed by two, so the ratio of the proposal
    probabilities is (D - S) / (S + 2) for switching on, and S / (D - S + 2) for off. The ratio that
    is returned includes the prior. If l has not the same bit as k, the second is -1.
    """
    D, value = len(zeta), 1 if rng.random() < 0.5 else 0
    n = S if value else D - S
    if n < 2:
        return 0, -1, 0.0
    k = _nth(zeta, value, rng.integers(0, n))
    if partners.degree[k] == 0:
        return k, -1, 0.0
    other = partners.partner[k, rng.integers(0, partners.degree[k])]
    if zeta[other] != value:
        return k, -1, 0.0
    prior = -log_odds[S - 1] - log_odds[S - 2] if value else log_odds[S] + log_odds[S + 1]
    return k, other, prior + np.log(n / (D - n + 2))


@compiled
def _swap(
    zeta: np.ndarray, S: int, partners: Partners, rng: np.random.Generator
) -> tuple[int, int, float]:
    """Propose to switch bit k off and another on; return both, and the log ratio.

    Half of the swaps draw both bits uniformly, a symmetric proposal. The others draw an on-bit k
    uniformly and then one of its partners l. The proposal probability is 1 / (S degree_k) forwards
    and 1 / (S degree_l) backwards. If l is on too, the second is -1.
    """
    k = _nth(zeta, 1, rng.integers(0, S))
    if rng.random() < 0.5:
        return k, _nth(zeta, 0, rng.integers(0, len(zeta) - S)), 0.0
    if partners.degree[k] == 0:
        return k, -1, 0.0
    other = partners.partner[k, rng.integers(0, partners.degree[k])]
    if zeta[other] == 1:
        return k, -1, 0.0
    return k, other, np.log(partners.degree[k] / partners.degree[other])


@compiled
def move_features(
    collapsed: bool,
    order: np.ndarray,
    pairs: int,
    swaps: int,
    zeta: np.ndarray,
    log_odds: np.ndarray,
    partners: Partners,
    kernel: Kernel,
    active: Active,
    A: int,
    weight: np.ndarray,
    added: np.ndarray,
    eta: np.ndarray,
    s: np.ndarray,
    tau: float,
    working: Working,
    rng: np.random.Generator,
) -> int:
    """Draw the bits of zeta in the given order, then try pairs and swaps; count the changed bits.

    zeta, M and K are updated in place, and eta unless `collapsed`. `log_odds` (D,) holds the prior
    log-odds of a bit by the number of others that are on; `weight` (A,) is alpha of the active
    samples, which is not read if it is integrated out; `added` (N,) is what covariates add to eta,
    empty without any. The numbers of attempts, `pairs` and `swaps`, must not depend on the state:
    one swap for each bit that was on would bias the chain.
    """
    D, N = len(zeta), active.M.shape[1]
    M_new, K_new = np.empty((A, N)), np.empty((A, N))
    eta_new, S = eta, zeta.sum()
    current = log_evidence(active.K[:A], working) if collapsed else log_likelihood(eta, s, tau)
    changed, singles = 0, len(order)
    for move in range(singles + pairs + swaps):
        if move < singles:
            k, other, ratio = order[move], -1, 0.0
        elif move < singles + pairs:
            k, other, ratio = _pair(zeta, S, log_odds, partners, rng)
        elif S == 0 or S == D:
            break
        else:
            k, other, ratio = _swap(zeta, S, partners, rng)
        if move >= singles and other < 0:
            continue
        toggled(k, other, zeta, kernel, active, M_new, K_new)
        if collapsed:
            proposed = log_evidence(K_new, working)
        else:
            eta_new = np.dot(weight, K_new)
            for i in range(len(added)):
                eta_new[i] += added[i]
            proposed = log_likelihood(eta_new, s, tau)
        if other >= 0:
            take = _accept(proposed - current + ratio, rng)
        else:
            gain = proposed - current if zeta[k] == 0 else current - proposed
            take = _bit(gain + log_odds[S - zeta[k]], rng) != zeta[k]
        if take:
            active.M[:A] = M_new
            active.K[:A] = K_new
            current = proposed
            if not collapsed:
                eta[:] = eta_new
            for bit in (k, other):
                if bit >= 0:
                    S += 1 - 2 * zeta[bit]
                    zeta[bit] = 1 - zeta[bit]
                    changed += 1
    return changed


# --- samples --------------------------------------------------------------------------------------


@compiled
def move_samples(
    order: np.ndarray,
    swaps: int,
    zeta: np.ndarray,
    z: np.ndarray,
    log_odds: np.ndarray,
    kernel: Kernel,
    active: Active,
    A: int,
    working: Working,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Draw the bits of z in the given order with alpha integrated out, then try swaps.

    Returns (A, number of bits changed); z and the active samples are updated in place. P = L^-1
    and m = P b are updated by bordering, O(N A + A^2) per bit. For a sample that is off, with k its
    column of the kernel, c = K diag(w) k, h = P c,

        e = k'diag(w) k + xi - c'h,    g = k'r - c'm

    and switching it on changes ln m by (g^2 / e - ln e + ln xi) / 2. For one that is on they are
    e = 1 / P_jj and g = m_j / P_jj. The products c and k'diag(w) k of `BLOCK` samples are one
    product of matrices.
    """
    B, N = len(z), active.M.shape[1]
    inverse = _Inverse(np.zeros((B, B)), np.zeros(B), np.full(B, -1))
    P, m, place = inverse
    if A > 0:
        C, _, b = _factor(active.K[:A], working)
        root = np.linalg.inv(C)
        full = np.dot(root.T, root)
        P[:A, :A], m[:A] = full, np.dot(full, b)
    for a in range(A):
        place[active.sample[a]] = a
    h, position, changed = np.empty(B), np.empty(B, dtype=np.int64), 0
    for start in range(0, B, BLOCK):
        block, before = order[start : start + BLOCK], A
        M_off, K_off, products = _off(block, A, zeta, z, kernel, active, working.w, position)
        for j in block:
            if z[j]:
                a = place[j]
                e, g = 1.0 / P[a, a], m[a] / P[a, a]
            else:
                n = position[j] - before
                c, own = products[n][position[active.sample[:A]]], products[n, position[j]]
                e, g = _border(A, c, own, np.dot(working.r, K_off[n]), working.xi, inverse, h)
            if _bit(_gain(e, g, working.xi) + log_odds[A - z[j]], rng) != z[j]:
                changed += 1
                if z[j]:
                    A = _remove(place[j], A, z, active, inverse)
                else:
                    n = position[j] - before
                    A = _add(j, A, e, g, h, M_off[n], K_off[n], z, active, inverse)
    M_j, K_j = np.empty(N), np.empty(N)
    for _ in range(swaps):
        if A == 0 or A == B:
            break
        j, other = active.sample[rng.integers(0, A)], _nth(z, 0, rng.integers(0, B - A))
        a = place[j]
        loss = _gain(1.0 / P[a, a], m[a] / P[a, a], working.xi)
        M_old, K_old = active.M[a].copy(), active.K[a].copy()
        A = _remove(a, A, z, active, inverse)
        column(other, zeta, kernel, M_j, K_j)
        e, g = _border_of(A, K_j, active, working, inverse, h)
        if _accept(_gain(e, g, working.xi) - loss, rng):
            A = _add(other, A, e, g, h, M_j, K_j, z, active, inverse)
            changed += 2
        else:
            e, g = _border_of(A, K_old, active, working, inverse, h)
            A = _add(j, A, e, g, h, M_old, K_old, z, active, inverse)
    return A, changed


@compiled
def _gain(e: float, g: float, xi: float) -> float:
    """Return the change of ln m when the sample with these e and g is switched on."""
    return 0.5 * (g * g / e - np.log(e) + np.log(xi))


@compiled
def _off(
    block: np.ndarray,
    A: int,
    zeta: np.ndarray,
    z: np.ndarray,
    kernel: Kernel,
    active: Active,
    w: np.ndarray,
    position: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return M, K (n, N) of the n samples of a block that are off, and products (n, A + n) of them.

    Each is K_off diag(w) K', with the rows of the samples that can be on while the block is
    visited: the A that are, and then the n. `position` gets where they are.
    """
    N = active.M.shape[1]
    for a in range(A):
        position[active.sample[a]] = a
    n = len(block) - z[block].sum()
    M_off, K_off, products = np.empty((n, N)), np.empty((n, N)), np.empty((n, A + n))
    b = 0
    for j in block:
        if z[j] == 0:
            column(j, zeta, kernel, M_off[b], K_off[b])
            position[j] = A + b
            b += 1
    if n > 0:
        products[:, A:] = np.dot(K_off * w, K_off.T)
    if n > 0 and A > 0:
        products[:, :A] = np.dot(K_off * w, active.K[:A].T)
    return M_off, K_off, products


@compiled
def _border(
    A: int, c: np.ndarray, own: float, b: float, xi: float, inverse: _Inverse, h: np.ndarray
) -> tuple[float, float]:
    """Return e and g of a sample that is off, with own = k'diag(w) k, b = k'r; write h = P c."""
    P, m, _ = inverse
    e, g = xi + own, b
    for a in range(A):
        h[a] = np.dot(P[a, :A], c)
        e -= c[a] * h[a]
        g -= c[a] * m[a]
    return e, g


@compiled
def _border_of(
    A: int, K_j: np.ndarray, active: Active, working: Working, inverse: _Inverse, h: np.ndarray
) -> tuple[float, float]:
    """Return e and g of the sample with this column of the kernel; write h = P c."""
    wK = working.w * K_j
    c, own, b = np.dot(active.K[:A], wK), np.dot(wK, K_j), np.dot(working.r, K_j)
    return _border(A, c, own, b, working.xi, inverse, h)


@compiled
def _add(
    j: int,
    A: int,
    e: float,
    g: float,
    h: np.ndarray,
    M_j: np.ndarray,
    K_j: np.ndarray,
    z: np.ndarray,
    active: Active,
    inverse: _Inverse,
) -> int:
    """Switch sample j on: L^-1 is extended by the border (-h / e, 1 / e). Return the new A."""
    P, m, place = inverse
    for a in range(A):
        share = h[a] / e
        m[a] -= share * g
        for d in range(A):
            P[a, d] += share * h[d]
        P[a, A] = P[A, a] = -share
    P[A, A], m[A] = 1.0 / e, g / e
    active.M[A], active.K[A] = M_j, K_j
    active.sample[A], place[j], z[j] = j, A, 1
    return A + 1


@compiled
def _remove(a: int, A: int, z: np.ndarray, active: Active, inverse: _Inverse) -> int:
    """Switch the a-th active sample off; the last one takes its place. Return the new A."""
    P, m, place = inverse
    last = A - 1
    z[active.sample[a]], place[active.sample[a]] = 0, -1
    row, m_a = P[a, :A].copy(), m[a]
    pivot = row[a]
    for b in range(A):
        share = row[b] / pivot
        m[b] -= share * m_a
        for d in range(A):
            P[b, d] -= share * row[d]
    if a != last:
        active.sample[a] = active.sample[last]
        place[active.sample[a]] = a
        active.M[a], active.K[a] = active.M[last], active.K[last]
        m[a] = m[last]
        P[a, :A] = P[last, :A]
        P[:A, a] = P[:A, last]
        P[a, a] = P[last, last]
    return last
