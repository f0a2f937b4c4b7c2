"""What `pfcvm_lp` and `pfcvm_em` share: modes, curvature and pruning of PFCVM, PCVM and RVM.

Weights come in two blocks, each a vector u with one prior precision p and one smoothing lam an
entry: the sample block (b, w_1, ..., w_B) and the feature block theta. The objective of both is

    Q = sum_i ln P(y_i | eta_i) + sum over both blocks of [-p u^2 / 2 + ln sigmoid(lam u)],

where ln sigmoid(lam u) stands for ln 1(u >= 0); the bias, and the RVM's real weights, have lam = 0.
Its Gauss-Newton curvature in one block, with J = d eta / du and C = diag(sigma (1 - sigma)), is

    diag(V) + R'R,   V = p + lam^2 sigmoid(lam u) sigmoid(-lam u),   R = C^1/2 J.

It is the exact one in w always and in theta for the linear kernel; for the others it leaves out

    E_kl = sum_i (y_i - sigma_i) d2 eta_i / d theta_k d theta_l,

as the paper does, and is positive definite everywhere. No array has a side of D twice.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg, special

from ardvark.models.kernels import gram
from ardvark.models.pcvm import fixed_theta
from ardvark.models.pfcvm import feature_gradient

_LARGEST = 1e15  # a precision beyond it is a zero weight
_SMALLEST = 1e-12
_LN2 = float(np.log(2.0))


class Curvature:
    """diag(V) + R'R (K, K), known by V (K,) and R (N, K); Sigma is its inverse.

    For K > N by Woodbury's identity, an N x N Cholesky factor and O(N^2 K) work:

        Sigma = V^-1 - V^-1 R' (I + R V^-1 R')^-1 R V^-1.

    It is written with C^1/2 inside R and never C^-1, so saturated probabilities (C = 0) do no harm.
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

        q_k = R_k' (I + R V^-1 R')^-1 R_k. The share is a sum of squares, or of products, and not
        the difference of two numbers near 1.
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
        """Return F (K, K) with Sigma = F F'. For the sample block: K x K."""
        if self.wide:
            Sigma = self.solve(np.eye(len(self.V)))
            return linalg.cholesky(0.5 * (Sigma + Sigma.T), lower=True)
        return linalg.solve_triangular(self.L, np.eye(len(self.V)), lower=True).T

    def draws(self, rng: np.random.Generator, S: int) -> np.ndarray:
        """Return S draws (S, K) of Normal(0, Sigma): Sigma (V^1/2 e + R' f), e and f standard."""
        N, K = self.R.shape
        noise = self.V[:, None] ** 0.5 * rng.standard_normal((K, S))
        noise += self.R.T @ rng.standard_normal((N, S))
        return self.solve(noise).T


@dataclass
class Block:
    """One group of weights: modes u, precisions p, smoothing lam, all (K,), and their hyperprior.

    `index` says which of the original weights these are. `fixed` entries keep their precision and
    are never pruned. c, d act on ln p, as in Tipping's papers: ln p(ln p_k) = c ln p_k - d p_k.
    """

    u: np.ndarray
    p: np.ndarray
    lam: np.ndarray
    c: np.ndarray
    d: np.ndarray
    index: np.ndarray
    keep_precision: np.ndarray
    never_prune: np.ndarray

    def log_prior(self, u: np.ndarray) -> float:
        """Return sum_k [-p u^2 / 2 + ln 2 sigmoid(lam u)]: 0 at u = 0, so that pruning is felt."""
        smooth = _LN2 - np.logaddexp(0.0, -self.lam * u)
        return float(smooth.sum() - 0.5 * np.sum(self.p * u**2))

    def gradient(self, u: np.ndarray) -> np.ndarray:
        """Return -p u + k, k = lam (1 - sigmoid(lam u))."""
        return -self.p * u + self.lam * special.expit(-self.lam * u)

    def O(self) -> np.ndarray:
        """Return O = lam^2 sigmoid (1 - sigmoid), the curvature of the smoothing at the mode."""
        return self._O(self.u)

    def _O(self, u: np.ndarray) -> np.ndarray:
        return self.lam**2 * special.expit(self.lam * u) * special.expit(-self.lam * u)

    def V(self, u: np.ndarray) -> np.ndarray:
        """Return p + O at u."""
        return self.p + self._O(u)

    def evidence(self, curvature: Curvature) -> float:
        """Return this block's part of the stopping objective (see `pfcvm_lp`)."""
        hyper = np.sum(self.c * np.log(self.p) - self.d * self.p)
        return (
            self.log_prior(self.u)
            + 0.5 * float(np.log(self.p).sum())
            + 0.5 * curvature.log_det()
            + float(hyper)
        )

    def gamma(self, share: np.ndarray) -> np.ndarray:
        """Return gamma_k = 1 - p_k Sigma_kk as (O_k + p_k q_k / V_k) / V_k, share = q / V."""
        O = self.O()
        return (O + self.p * share) / (self.p + O)

    def set_precisions(self, new: np.ndarray, damping: float = 0.0) -> None:
        """Replace p, by a geometric mean of old and new where damped."""
        bounded = np.clip(new, _SMALLEST, _LARGEST)
        damped = self.p**damping * bounded ** (1.0 - damping)
        self.p = np.where(self.keep_precision, self.p, damped)

    def take(self, keep: np.ndarray) -> None:
        """Keep only the entries marked (K,)."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name)[keep])


def prior_mode(p: float, lam: float) -> float:
    """Return the maximum of -p u^2/2 + ln sigmoid(lam u), where a weight starts."""
    low, high = 0.0, lam / p
    for _ in range(200):
        mid = 0.5 * (low + high)
        low, high = (mid, high) if lam * special.expit(-lam * mid) > p * mid else (low, mid)
    return 0.5 * (low + high)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Numbers an engine needs: for (sample, feature) blocks in this order, bias apart.

    lam, p, c, d, threshold : smoothing, first precisions, hyperprior, pruning thresholds.
    bias_p : first precision of the bias. update_bias : whether it is re-estimated.
    """

    lam: tuple[float, float]
    p: tuple[float, float]
    c: tuple[float, float]
    d: tuple[float, float]
    threshold: tuple[float, float]
    bias_p: float
    update_bias: bool


@dataclass
class Engine:
    """Modes of one problem, at given precisions, and what was pruned.

    X (N, D), y (N,) in {0, 1}, Z (B, D), s (B,) the basis labels (ones where the model has none).
    After pruning X and Z hold the kept features, Z and s the kept samples.
    """

    X: np.ndarray
    y: np.ndarray
    Z: np.ndarray
    s: np.ndarray
    hypers: Any
    settings: Settings
    free_theta: bool
    sample: Block = field(init=False)
    feature: Block = field(init=False)
    rejected: int = 0

    def __post_init__(self) -> None:
        B, D, at = len(self.Z), self.X.shape[1], self.settings
        self.sign = 2.0 * self.y - 1.0
        self.threshold_sample, self.threshold_feature = at.threshold
        first = np.zeros(B + 1)
        first[0] = 1.0
        self.sample = Block(
            u=np.where(first, 0.0, prior_mode(at.p[0], at.lam[0])),
            p=np.where(first, at.bias_p, at.p[0]),
            lam=np.where(first, 0.0, at.lam[0]),
            c=np.where(first, 0.0, at.c[0]),
            d=np.where(first, 0.0, at.d[0]),
            index=np.arange(-1, B),
            keep_precision=(first == 1.0) & (not at.update_bias),
            never_prune=first == 1.0,
        )
        theta = np.full(D, prior_mode(at.p[1], at.lam[1]))
        self.feature = Block(
            u=theta if self.free_theta else fixed_theta(self.hypers, D),
            p=np.full(D, at.p[1]),
            lam=np.full(D, at.lam[1]),
            c=np.full(D, at.c[1]),
            d=np.full(D, at.d[1]),
            index=np.arange(D),
            keep_precision=np.full(D, not self.free_theta),
            never_prune=np.full(D, not self.free_theta),
        )

    # --- eta and its derivatives ---

    def kernel(self, theta: np.ndarray) -> np.ndarray | None:
        """Return K (N, B); None where a negative theta lets an rbf kernel grow above 1."""
        h = self.hypers
        if h.kernel != "rbf":
            return gram(self.X, self.Z, theta, kernel=h.kernel, degree=h.degree)
        square_x, square_z = self.X**2 @ theta, self.Z**2 @ theta
        distance = square_x[:, None] + square_z - 2.0 * (self.X * theta) @ self.Z.T
        if (theta < 0.0).any() and distance.min() < -1e-10 * (1.0 + np.abs(square_x).max()):
            return None
        return np.exp(-np.maximum(distance, 0.0))

    def design(self, theta: np.ndarray) -> np.ndarray:
        """Return Phi (N, 1 + B): a column of ones, then s_j K(x_i, z_j)."""
        K = self.kernel(theta)
        assert K is not None
        return np.column_stack([np.ones(len(self.y)), K * self.s])

    def eta(self, theta: np.ndarray) -> np.ndarray | None:
        """Return eta (N,) at the current sample weights, None where `kernel` is."""
        b, a = self.sample.u[0], self.s * self.sample.u[1:]
        if self.hypers.kernel == "linear":
            return b + self.X @ (theta * (a @ self.Z))
        K = self.kernel(theta)
        return None if K is None else b + K @ a

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        """Return D_ik = d eta_i / d theta_k (N, D)."""
        return feature_gradient(theta, self.s * self.sample.u[1:], self.X, self.Z, self.hypers)

    def log_likelihood(self, eta: np.ndarray) -> float:
        """Return sum_i ln P(y_i | eta_i)."""
        return float(-np.logaddexp(0.0, -self.sign * eta).sum())

    # --- modes ---

    def Q(self) -> float:
        """Return Q at the current weights (each ln sigmoid with its ln 2)."""
        eta = self.design(self.feature.u) @ self.sample.u
        value = self.log_likelihood(eta) + self.sample.log_prior(self.sample.u)
        return value + (self.feature.log_prior(self.feature.u) if self.free_theta else 0.0)

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Return dQ / d(b, w) and dQ / d theta (zeros where theta is fixed)."""
        Phi = self.design(self.feature.u)
        residual = self.residual(Phi @ self.sample.u)
        of_w = Phi.T @ residual + self.sample.gradient(self.sample.u)
        if not self.free_theta:
            return of_w, np.zeros_like(self.feature.u)
        of_theta = self.jacobian(self.feature.u).T @ residual
        return of_w, of_theta + self.feature.gradient(self.feature.u)

    def residual(self, eta: np.ndarray) -> np.ndarray:
        """Return y - sigmoid(eta), by the tail that is small."""
        return self.sign * special.expit(-self.sign * eta)

    def curvatures(self) -> tuple[Curvature, Curvature | None]:
        """Return the curvature of the sample block, and of the feature block if it is free."""
        Phi = self.design(self.feature.u)
        root = _root_C(Phi @ self.sample.u)
        of_w = Curvature(self.sample.V(self.sample.u), root * Phi)
        if not self.free_theta:
            return of_w, None
        R = self.jacobian(self.feature.u)
        R *= root
        return of_w, Curvature(self.feature.V(self.feature.u), R)

    def climb(self, rounds: int, tolerance: float) -> float:
        """Raise Q: Newton in w, then in theta, in turn; return the last Newton decrement, summed.

        The printed means (10) and (12) are fixed-point equations; Newton's method with a line
        search solves them. A decrement g' Sigma g is twice the gain in Q that is still expected.
        """
        left = np.inf
        for _ in range(rounds):
            Phi = self.design(self.feature.u)
            left = self._newton(self.sample, lambda u, Phi=Phi: Phi @ u, lambda u, Phi=Phi: Phi,
                                20, tolerance)  # fmt: skip
            if not self.free_theta:
                break
            left += self._newton(self.feature, self.eta, self.jacobian, 5, tolerance)
            if left < tolerance:
                break
        return left

    def _newton(
        self,
        block: Block,
        eta_of: Callable[[np.ndarray], np.ndarray | None],
        jacobian_of: Callable[[np.ndarray], np.ndarray],
        steps: int,
        tolerance: float,
    ) -> float:
        """Take up to `steps` damped Newton steps in one block; return the decrement at the start.

        A step that an rbf kernel refuses at any length is tried once more without the entries that
        it would bring below 0.
        """
        first = None
        for _ in range(steps):
            u = block.u
            eta = eta_of(u)
            assert eta is not None
            R = jacobian_of(u)
            g = R.T @ self.residual(eta) + block.gradient(u)
            step = Curvature(block.V(u), _root_C(eta) * R).solve(g)
            decrement = float(g @ step)
            first = decrement if first is None else first
            if decrement < tolerance:
                break
            value = self.log_likelihood(eta) + block.log_prior(u)
            if self._line_search(block, eta_of, step, value, decrement):
                continue
            below = u + step < 0.0
            step = np.where(below, 0.0, step)
            if not below.any() or not self._line_search(block, eta_of, step, value, 0.0):
                break
        return 0.0 if first is None else first

    def _line_search(
        self,
        block: Block,
        eta_of: Callable[[np.ndarray], np.ndarray | None],
        step: np.ndarray,
        value: float,
        decrement: float,
    ) -> bool:
        """Halve the step until Q grows enough, move there, and say whether there was such a one."""
        t = 1.0
        while t > 1e-8:
            trial = block.u + t * step
            eta = eta_of(trial)
            self.rejected += eta is None
            if eta is not None:
                new = self.log_likelihood(eta) + block.log_prior(trial)
                if new >= value + 1e-4 * t * decrement and new > value:
                    block.u = trial
                    return True
            t *= 0.5
        return False

    # --- scale and pruning ---

    def rescale(self) -> None:
        """Set the largest theta to 1 by (theta / r, r w), which leaves a linear kernel's eta."""
        r = float(self.feature.u.max())
        if r > 0.0:
            self.feature.u, self.feature.p = self.feature.u / r, self.feature.p * r**2
            w = self.sample.index >= 0
            self.sample.u = np.where(w, self.sample.u * r, self.sample.u)
            self.sample.p = np.where(w, self.sample.p / r**2, self.sample.p)

    def prune(self) -> tuple[np.ndarray, np.ndarray]:
        """Remove weights whose precision is above its threshold; return whose, by first index."""
        sample, feature = self.sample, self.feature
        keep_s = (sample.p <= self.threshold_sample) | sample.never_prune
        keep_f = (feature.p <= self.threshold_feature) | feature.never_prune
        gone = sample.index[~keep_s], feature.index[~keep_f]
        self._take(keep_s, keep_f)
        return gone

    def drop_all(self) -> None:
        """Leave the bias alone."""
        self._take(self.sample.index < 0, np.zeros(len(self.feature.u), dtype=bool))

    def _take(self, keep_s: np.ndarray, keep_f: np.ndarray) -> None:
        if not keep_f.all():
            same = self.Z is self.X
            self.X = np.ascontiguousarray(self.X[:, keep_f])
            self.Z = self.X if same else np.ascontiguousarray(self.Z[:, keep_f])
            self.feature.take(keep_f)
        if not keep_s.all():
            self.Z, self.s = self.Z[keep_s[1:]], self.s[keep_s[1:]]
            self.sample.take(keep_s)

    @property
    def collapsed(self) -> bool:
        """Whether no sample, or no feature, is left."""
        return len(self.sample.u) == 1 or len(self.feature.u) == 0


def _root_C(eta: np.ndarray) -> np.ndarray:
    """Return (sigma (1 - sigma))^1/2 as a column (N, 1)."""
    return np.sqrt(special.expit(eta) * special.expit(-eta))[:, None]
