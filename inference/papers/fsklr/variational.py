"""The two steps of `fsklr_savb`: variational coefficients at fixed masks, and a sweep over bits.

Kojima, Tanaka (2017). Algorithm 2, eqs. (31)-(35), follows Bishop (2006), section 10.6. K (N, A)
holds the columns of the A samples in use (in print all N columns; `savb.py` says what that
changes), K_i is a row of it, and alpha ~ N(0, I / xi).

`logistic`: Jaakkola and Jordan's bound of the Bernoulli likelihood,

    lambda(rho) = tanh(rho / 2) / (4 rho), lambda(0) = 1/8                              (34)
    S^-1 = xi I + 2 sum_i lambda(rho_i) K_i K_i'                                        (33)
    m = S sum_i (y_i - 1/2) K_i                                                         (32)
    rho_i^2 = K_i'(S + m m')K_i                                                         (35)
    elbo = sum_i [ln sigmoid(rho_i) - rho_i/2 + lambda(rho_i) rho_i^2]
           + m'S^-1 m / 2 + ln|S| / 2 + A ln(xi) / 2.

An iteration needs m and S only in eta = K alpha, whose prior covariance is K K' / xi. For about as
many samples in use as observations it is cheaper there (`in_rows`), with the same numbers.

It is also mean field over Polya-Gamma variables omega_i: q(omega_i) = PG(1, rho_i), of mean
2 lambda(rho_i).

`gaussian`: mean field q(alpha) q(tau) of s_i ~ N(K_i'alpha, 1 / tau), tau ~ Gamma(shape, rate),

    S^-1 = xi I + <tau> K'K,  m = <tau> S K's
    q(tau) = Gamma(shape + N/2, rate + R/2),  R = |s - K m|^2 + tr(K S K').

Both are coordinate ascent: no iteration decreases the elbo, a lower bound of ln p(y | masks).

The compiled sweeps of algorithm 1 draw one bit after the other from its conditional probability
(28), (29) at fixed coefficients: `additive_sweep` if a bit adds a column to eta, `distance_sweep`
if a feature's bit changes the rbf kernel.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from scipy import linalg, special

from ...target.backend import FitFailed

_STIFF = 1e10  # ratio of data to prior precision above which xi would be lost in K'K
_ROWS = 0.6  # samples in use per observation above which an iteration is cheaper in eta
_LARGE = 1e6  # prior variance of eta above which that would lose more digits than S does
_LOG_2PI = float(np.log(2.0 * np.pi))


# --- algorithm 2 ----------------------------------------------------------------------------------


@dataclass
class Coefficients:
    """q(alpha) of the coefficients in use (A,): N(location, (R'R)^-1), R upper triangular.

    With `basis` Q (A, r), orthonormal columns that span the rows of K, it is q of Q'alpha. In all
    other directions q is the prior, with variance 1 / xi. `elbo` has one entry per iteration;
    `converged` tells whether its last step was below the tolerance. `rho` (N,) belongs to the
    logistic bound, `tau_shape` and `tau_rate` to q(tau).
    """

    location: np.ndarray
    R: np.ndarray
    xi: float
    elbo: list[float]
    converged: bool
    rho: np.ndarray | None = None
    tau_shape: float = np.nan
    tau_rate: float = np.nan
    basis: np.ndarray | None = None

    @property
    def mean(self) -> np.ndarray:
        """Mean m of q (A,)."""
        return self.location if self.basis is None else self.basis @ self.location

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Return one draw of q(alpha), FS-SKLR (31): R^-1 e has covariance (R'R)^-1."""
        along = self.location + _solve(self.R, rng.standard_normal(len(self.location)))
        if self.basis is None:
            return along
        prior = self.xi**-0.5 * rng.standard_normal(len(self.basis))
        return prior + self.basis @ (along - self.basis.T @ prior)

    def covariance(self) -> np.ndarray:
        """Return S (A, A)."""
        inverse = _solve(self.R, np.eye(len(self.location)))
        if self.basis is None:
            return inverse @ inverse.T
        root, A = self.basis @ inverse, len(self.basis)
        return root @ root.T + (np.eye(A) - self.basis @ self.basis.T) / self.xi


def jaakkola_jordan(rho: np.ndarray) -> np.ndarray:
    """Return lambda(rho) = tanh(rho / 2) / (4 rho), rho >= 0: FS-SKLR (34) without its minus."""
    rho = np.maximum(rho, 1e-200)  # the limit 1/8, because tanh is exact for small arguments
    return np.tanh(0.5 * rho) / (4.0 * rho)


def precision_root(K: np.ndarray, weight: np.ndarray, xi: float) -> np.ndarray:
    """Return R, upper triangular, R'R = xi I + K' diag(weight) K = S^-1: FS-SKLR (33)."""
    G = np.sqrt(weight)[:, None] * K
    A = G.shape[1]
    if np.einsum("ij,ij->j", G, G).max(initial=0.0) > _STIFF * xi:  # a QR does not square G
        stacked = np.concatenate([G, np.sqrt(xi) * np.eye(A)])
        return linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0][:A]
    P = G.T @ G
    P[np.diag_indices(A)] += xi
    return linalg.cholesky(P, overwrite_a=True, check_finite=False)


def check_kernel(K: np.ndarray) -> None:
    """Raise an error for a kernel matrix whose products would overflow."""
    largest = np.abs(K).max(initial=0.0)
    if not largest < 1e100:
        raise FitFailed(
            f"the kernel matrix has values up to {largest:.2g}; standardise X or use a smaller "
            "delta"
        )


def logistic(
    K: np.ndarray, y: np.ndarray, xi: float, rho: np.ndarray, iterations: int, tolerance: float
) -> Coefficients:
    """Return q(alpha) for the logistic likelihood, starting from rho (N,).

    FS-SKLR (32) and FS-SKLR (35) in turn.

    It stops when an iteration increases the elbo by less than `tolerance`.
    """
    linear, prior = K.T @ (y - 0.5), None
    if K.shape[1] > _ROWS * len(K):
        prior = K @ K.T / xi
        prior = prior if prior.diagonal().max() < _LARGE else None
    elbo: list[float] = []
    converged = False
    while not converged and len(elbo) < iterations:
        # E-step
        lam = jaakkola_jordan(rho)
        if prior is not None:
            eta, spread, evidence = in_rows(prior, 2.0 * lam, y - 0.5)
        else:
            R, m, evidence = _in_columns(K, 2.0 * lam, linear, xi)
            eta, spread = K @ m, _spread(R, K)
        bound = np.sum(special.log_expit(rho) - 0.5 * rho + lam * rho**2)
        elbo.append(float(bound + evidence))
        # M-step, for the next E-step; erratum: (35) has one rho, computed from all of K
        rho = np.sqrt(spread + eta**2)
        converged = len(elbo) > 1 and elbo[-1] - elbo[-2] < tolerance
    if prior is not None:
        R, m, _ = _in_columns(K, 2.0 * lam, linear, xi)
    return Coefficients(m, R, xi, elbo, converged, rho)


def _in_columns(
    K: np.ndarray, weight: np.ndarray, linear: np.ndarray, xi: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return R with R'R = S^-1, m, and (m'S^-1 m + ln|S| + A ln xi) / 2, from the coefficients."""
    R = precision_root(K, weight, xi)
    half = _solve(R, linear, "T")  # |half|^2 = m'S^-1 m
    return R, _solve(R, half), float(0.5 * half @ half + _half_log_ratio(R, xi))


def in_rows(
    prior: np.ndarray, weight: np.ndarray, linear: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return mean and variance of eta = K alpha (N,), and the evidence, without S.

    With C = K K' / xi (`prior`, (N, N)), W = diag(weight) and B = I + W^1/2 C W^1/2, eta has the
    covariance (C^-1 + W)^-1 = W^-1/2 (I - B^-1) W^-1/2 and the mean that times `linear`, y - 1/2.
    And m'S^-1 m = linear'K m, |xi S| = 1 / |B|. It takes 2/3 N^3 operations; by way of S they are
    7/3 N^3 for A = N.
    """
    root = np.sqrt(weight)
    B = root[:, None] * prior * root
    B[np.diag_indices(len(B))] += 1.0
    factor = linalg.cholesky(B, lower=True, overwrite_a=True, check_finite=False)
    inverse = linalg.lapack.dtrtri(factor, lower=1)[0]
    scaled = linear / root
    mean = (scaled - inverse.T @ (inverse @ scaled)) / root
    shrunk = np.maximum(1.0 - np.einsum("ij,ij->j", inverse, inverse), 0.0)  # 0 may round below
    return mean, shrunk / weight, float(0.5 * linear @ mean - np.log(factor.diagonal()).sum())


def gaussian(
    K: np.ndarray,
    s: np.ndarray,
    xi: float,
    noise: tuple[float, float],
    iterations: int,
    tolerance: float,
) -> Coefficients:
    """Return q(alpha) q(tau) for the squared-error likelihood; `noise` is tau's (shape, rate)."""
    N, (shape_0, rate_0) = len(s), noise
    shape, rate = shape_0 + 0.5 * N, rate_0 * (shape_0 + 0.5 * N) / shape_0  # <tau> of the prior
    linear = K.T @ s
    elbo: list[float] = []
    converged = False
    while not converged and len(elbo) < iterations:
        tau = shape / rate
        R = precision_root(K, np.full(N, tau), xi)
        m = tau * _solve(R, _solve(R, linear, "T"))
        spread = float(_spread(R, K).sum())  # tr(K S K')
        # (A - xi <alpha'alpha>) / 2, with xi tr(S) = A - <tau> tr(K S K')
        alpha = 0.5 * (tau * spread - xi * m @ m) + _half_log_ratio(R, xi)
        error = float(np.sum((s - K @ m) ** 2)) + spread
        rate = rate_0 + 0.5 * error
        tau, log_tau = shape / rate, special.digamma(shape) - np.log(rate)
        kl = (shape - shape_0) * special.digamma(shape) + special.gammaln(shape_0)
        kl += shape_0 * np.log(rate / rate_0) + shape * (rate_0 - rate) / rate
        kl -= special.gammaln(shape)
        elbo.append(float(0.5 * N * (log_tau - _LOG_2PI) - 0.5 * tau * error + alpha - kl))
        converged = len(elbo) > 1 and elbo[-1] - elbo[-2] < tolerance
    return Coefficients(m, R, xi, elbo, converged, None, shape, rate)


def _solve(R: np.ndarray, b: np.ndarray, trans: str = "N") -> np.ndarray:
    return linalg.solve_triangular(R, b, trans=trans, check_finite=False)


def _spread(R: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return K_i'S K_i (N,)."""
    half = _solve(R, K.T, "T")  # (A, N)
    return np.einsum("an,an->n", half, half)


def _half_log_ratio(R: np.ndarray, xi: float) -> float:
    """Return (ln|S| + A ln xi) / 2; the R of a QR may have negative entries on its diagonal."""
    return float(0.5 * len(R) * np.log(xi) - np.log(np.abs(np.diag(R))).sum())


# --- a sweep over bits, compiled ------------------------------------------------------------------


class Labels(NamedTuple):
    """Signs of the labels (N,), and the precision of the error; 0 for the logistic likelihood."""

    sign: np.ndarray
    tau: float


class Rule(NamedTuple):
    """Prior log-odds of a bit by the number of others on, and the threshold of every bit."""

    prior_odds: np.ndarray
    threshold: np.ndarray
    printed: bool


_compiled = numba.njit(cache=True, nogil=True)


@_compiled
def log_likelihood(eta: np.ndarray, labels: Labels) -> float:
    """Return ln p(y | eta): ln sigmoid(s_i eta_i), or ln N(s_i | eta_i, 1 / tau), summed."""
    total = 0.0
    for i in range(len(eta)):
        if labels.tau > 0.0:
            total += 0.5 * np.log(labels.tau / (2.0 * np.pi))
            total -= 0.5 * labels.tau * (labels.sign[i] - eta[i]) ** 2
        else:
            margin = labels.sign[i] * eta[i]
            total += min(margin, 0.0) - np.log1p(np.exp(-abs(margin)))
    return total


@_compiled
def _value(on: float, off: float, odds: float, printed: bool) -> float:
    """Return a bit's log-odds, FS-SKLR (28), FS-SKLR (29); if printed, ln p(1) unnormalised."""
    if printed:
        return on + min(odds, 0.0) - np.log1p(np.exp(-abs(odds)))
    return on - off + odds


@_compiled
def additive_sweep(
    mask: np.ndarray,
    columns: np.ndarray,
    weight: np.ndarray,
    eta: np.ndarray,
    labels: Labels,
    rule: Rule,
) -> np.ndarray:
    """Draw every bit in turn, with eta = sum_k mask_k weight_k columns_k; columns (n, N).

    mask and eta are updated in place. Returns the value that decided each bit (n,).
    """
    values, proposal = np.empty(len(mask)), np.empty_like(eta)
    total, here = mask.sum(), log_likelihood(eta, labels)
    for k in range(len(mask)):
        step = -weight[k] if mask[k] else weight[k]
        for i in range(len(eta)):
            proposal[i] = eta[i] + step * columns[k, i]
        there = log_likelihood(proposal, labels)
        on, off = (here, there) if mask[k] else (there, here)
        values[k] = _value(on, off, rule.prior_odds[total - mask[k]], rule.printed)
        if (values[k] > rule.threshold[k]) != mask[k]:
            total += -1 if mask[k] else 1
            mask[k] = not mask[k]
            here = there
            eta[:] = proposal
    return values


@_compiled
def distance_sweep(
    zeta: np.ndarray,
    Xt: np.ndarray,
    Zt: np.ndarray,
    square: np.ndarray,
    delta: float,
    weight: np.ndarray,
    eta: np.ndarray,
    labels: Labels,
    rule: Rule,
) -> np.ndarray:
    """Draw every zeta_k in turn, with eta = exp(-delta square) weight.

    square (N, B) holds |(x_i - z_j) * zeta|^2; zeta, square and eta are updated in place.
    """
    (N, B), values, proposal = square.shape, np.empty(len(zeta)), np.empty_like(eta)
    total, here = zeta.sum(), log_likelihood(eta, labels)
    for k in range(len(zeta)):
        sign = -1.0 if zeta[k] else 1.0
        for i in range(N):
            proposal[i] = 0.0
            for j in range(B):
                gap = Xt[k, i] - Zt[k, j]
                moved = max(square[i, j] + sign * gap * gap, 0.0)  # rounding can leave -1e-16
                proposal[i] += weight[j] * np.exp(-delta * moved)
        there = log_likelihood(proposal, labels)
        on, off = (here, there) if zeta[k] else (there, here)
        values[k] = _value(on, off, rule.prior_odds[total - zeta[k]], rule.printed)
        if (values[k] > rule.threshold[k]) != zeta[k]:
            total += -1 if zeta[k] else 1
            zeta[k] = not zeta[k]
            here = there
            eta[:] = proposal
            for i in range(N):
                for j in range(B):
                    gap = Xt[k, i] - Zt[k, j]
                    square[i, j] += sign * gap * gap
    return values
