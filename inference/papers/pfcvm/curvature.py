"""The algebra of one block of PFCVM's weights: its prior, its smoothing, its curvature.

A block is a vector u (K,) of weights. Each entry has a prior precision p, a slab precision
t = slab^-2 and a smoothing lam. The block's part of the objective Q (see `engine.py`) is

    sum_k [-(p + t) u^2 / 2 + ln sigmoid(lam u)],

where ln sigmoid(lam u) replaces ln 1(u >= 0), and lam = 0 for a weight of either sign. Together
with the likelihood, whose Gauss-Newton curvature is R'R, the curvature of Q is

    diag(V) + R'R,   V = p + t + lam^2 sigmoid(lam u) sigmoid(-lam u),   R = C^1/2 J,

J = d eta / du (N, K), C = diag(sigma (1 - sigma)). Its inverse Sigma is the covariance of q. No
array is D x D: if K > N only N x N matrices are factored.
"""

from dataclasses import dataclass, fields

import numpy as np
from scipy import linalg, special

_LARGEST = 1e15  # a larger precision means a weight of zero
_SMALLEST = 1e-12
_LN2 = float(np.log(2.0))


class Curvature:
    """diag(V) + R'R (K, K), represented by V (K,) and R (N, K); Sigma is its inverse.

    For K > N Woodbury's identity is used, with an N x N Cholesky factor and O(N^2 K) work:

        Sigma = V^-1 - V^-1 R' (I + R V^-1 R')^-1 R V^-1.

    C^1/2 is inside R and C^-1 never occurs, so saturated probabilities (C = 0) cause no problem.
    """

    def __init__(self, V: np.ndarray, R: np.ndarray) -> None:
        self.V, self.R = V, R
        self.wide = R.shape[1] > R.shape[0]
        inner = (R / V) @ R.T if self.wide else R.T @ R
        inner[np.diag_indices_from(inner)] += 1.0 if self.wide else V
        self.L = linalg.cholesky(inner, lower=True)

    def solve(self, g: np.ndarray) -> np.ndarray:
        """Return Sigma g, for g (K,) or (K, S)."""
        if not self.wide:
            return linalg.cho_solve((self.L, True), g)
        V = self.V if g.ndim == 1 else self.V[:, None]
        first = g / V
        return first - (self.R.T @ linalg.cho_solve((self.L, True), self.R @ first)) / V

    def log_det(self) -> float:
        """Return ln det Sigma."""
        half = np.log(np.diag(self.L)).sum()
        return float(-2.0 * half - (np.log(self.V).sum() if self.wide else 0.0))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return Sigma_kk and the data's share 1 - V_k Sigma_kk = q_k / V_k, each (K,).

        q_k = R_k' (I + R V^-1 R')^-1 R_k. The share is computed as a sum of squares or of products,
        not as the difference of two numbers close to 1.
        """
        if self.wide:
            T = linalg.solve_triangular(self.L, self.R, lower=True)
            share = np.einsum("nk,nk->k", T, T) / self.V
            return np.maximum(1.0 - share, np.finfo(float).eps) / self.V, share
        inverse = linalg.solve_triangular(self.L, np.eye(len(self.V)), lower=True)
        Sigma = inverse.T @ inverse
        share = np.einsum("nk,nk->k", self.R @ Sigma, self.R)
        return np.diag(Sigma).copy(), np.clip(share, 0.0, 1.0)

    def factor(self) -> np.ndarray:
        """Return F (K, K) with Sigma = F F', for the sample block."""
        return linalg.solve_triangular(self.inverse_factor(), np.eye(len(self.V)), lower=True).T

    def inverse_factor(self) -> np.ndarray:
        """Return L (K, K) with Sigma^-1 = L L', for the sample block."""
        return linalg.cholesky(np.diag(self.V) + self.R.T @ self.R, lower=True)

    def draws(self, rng: np.random.Generator, S: int) -> np.ndarray:
        """Return S draws (S, K) of Normal(0, Sigma): Sigma (V^1/2 e + R' f), e and f standard."""
        N, K = self.R.shape
        noise = self.V[:, None] ** 0.5 * rng.standard_normal((K, S))
        noise += self.R.T @ rng.standard_normal((N, S))
        return self.solve(noise).T


@dataclass
class Block:
    """One group of weights: modes u, precisions p, smoothing lam, all (K,), and their hyperprior.

    c, d are the hyperprior, on ln p as in Tipping (2001): ln p(ln p_k) = c ln p_k - d p_k + const.
    `slab_precision` is t = slab^-2, 0 without a slab; the last term of ln p(p_k, u_k) is
    -(p_k + t) u_k^2 / 2. `index` gives the positions of the original weights (-1: the bias).
    """

    u: np.ndarray
    p: np.ndarray
    lam: np.ndarray
    c: np.ndarray
    d: np.ndarray
    index: np.ndarray
    keep_precision: np.ndarray
    never_prune: np.ndarray
    slab_precision: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """The precision p + t (K,) of the weights given p."""
        return self.p + self.slab_precision

    def log_prior(self, u: np.ndarray) -> float:
        """Return sum_k [-(p + t) u^2 / 2 + ln 2 sigmoid(lam u)], 0 at u = 0."""
        smooth = _LN2 - np.logaddexp(0.0, -self.lam * u)
        return float(smooth.sum() - 0.5 * np.sum(self.total * u**2))

    def gradient(self, u: np.ndarray) -> np.ndarray:
        """Return -(p + t) u + k, k = lam (1 - sigmoid(lam u))."""
        return -self.total * u + self.lam * special.expit(-self.lam * u)

    def bend(self, u: np.ndarray) -> np.ndarray:
        """Return O = lam^2 sigmoid(lam u) (1 - sigmoid(lam u)), the smoothing's curvature."""
        return self.lam**2 * special.expit(self.lam * u) * special.expit(-self.lam * u)

    def evidence(self, curvature: Curvature) -> float:
        """Return this block's part of the stopping objective (see `pfcvm_lp`).

        The slab's constant mass is omitted. The logarithm is of p, as p(p, u) contains p^1/2.
        """
        hyper = np.sum(self.c * np.log(self.p) - self.d * self.p)
        return (
            self.log_prior(self.u)
            + 0.5 * float(np.log(self.p).sum())
            + 0.5 * curvature.log_det()
            + float(hyper)
        )

    def gamma(self, share: np.ndarray) -> np.ndarray:
        """Return gamma_k = 1 - p_k Sigma_kk = (O_k + t_k + p_k q_k / V_k) / V_k, share = q / V."""
        rest = self.bend(self.u) + self.slab_precision
        return (rest + self.p * share) / (self.p + rest)

    def set_precisions(self, new: np.ndarray) -> None:
        """Replace p, except where it is kept."""
        self.p = np.where(self.keep_precision, self.p, np.clip(new, _SMALLEST, _LARGEST))

    def take(self, keep: np.ndarray) -> None:
        """Keep only the entries marked (K,)."""
        for name in NAMES:
            setattr(self, name, getattr(self, name)[keep])


NAMES = tuple(f.name for f in fields(Block))


def prior_mode(p: float, lam: float) -> float:
    """Return the maximum of -p u^2/2 + ln sigmoid(lam u), where a weight starts."""
    low, high = 0.0, lam / p
    for _ in range(200):
        mid = 0.5 * (low + high)
        low, high = (mid, high) if lam * special.expit(-lam * mid) > p * mid else (low, mid)
    return 0.5 * (low + high)
