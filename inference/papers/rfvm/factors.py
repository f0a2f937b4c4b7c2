"""The factors of the RFVM's mean-field q: one update each, their bound, draws and densities.

`vb.py` explains what is approximated, where this departs from the paper and what it costs.
Notation: <.> is an expectation under q; M = X diag(<v>) Z' (N, B), A = <a a'>, P_dd = z_d' A z_d,
G_dd = sum_n x_nd^2. All arrays are of the features and samples that were not pruned. Equation
numbers are the paper's (arXiv 2402.07079).

A slab, which is not in the paper, multiplies the joint density by exp(-a_j^2 / (2 slab^2)), divided
by a mass that is one constant per weight (`models/parts/slab.py`). It adds slab^-2 to the precision
of q(a_j), or q(v_d), and does not change q(psi_j) or q(delta_d). It adds
-<a_j^2> / (2 slab^2) - ln mass to the bound. Without a slab these terms are 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numba
import numpy as np
from scipy import linalg, special

from ardvark.common.declared import Settings, option
from ardvark.models.parts.ard import WeightPrior
from ardvark.models.parts.truncated_normal import truncated, truncated_moments

from ..truncated_normal import (
    folded,
    folded_logpdf,
    folded_moments,
    truncated_draws,
    truncated_logpdf,
)

_LOG_2PI = float(np.log(2.0 * np.pi))
_WIDEST = 10.0  # limit on starting weights, because q(a) with almost no precision is singular
_BLOCK = 4096  # features that a product handles at once, so that no (N, D) temporary is needed


@dataclass(frozen=True, kw_only=True)
class EngineOptions(Settings):
    """Options of the factors and their updates."""

    v_factor: Literal["folded", "truncated"] = option("folded", "distribution family of q(v_d)")
    v_update: Literal["sequential", "simultaneous"] = option(
        "sequential", "update the v_d one after the other, or all at once"
    )
    order: Literal["u_xi_tau", "tau_xi_u"] = option(
        "u_xi_tau", "order of the updates after q(b); tau_xi_u is the released code's"
    )
    start: Literal["prior", "released"] = option(
        "prior", "the initial q: the prior, or that of the released code (see `Factors`)"
    )


@dataclass(frozen=True, eq=False)
class Columns:
    """X and Z with features as rows, as the sequential update reads them; all starts share them.

    Xt (D, N), Zt (D, B), the same array where Z is X, and G_d = sum_n x_nd^2 (D,).
    """

    Xt: np.ndarray
    Zt: np.ndarray
    G: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, Z: np.ndarray) -> Columns:
        """Return the columns of X (N, D) and Z (B, D)."""
        Xt = np.ascontiguousarray(X.T)
        Zt = Xt if Z is X else np.ascontiguousarray(Z.T)
        return cls(Xt, Zt, np.einsum("dn,dn->d", Xt, Xt))


class Factors:
    """q, as arrays. A variable's name denotes its expectation under q, <.> in the paper.

    Parameters
    ----------
    X, y, Z : array (N, D), (N,), (B, D)
        Standardised inputs, labels 0 and 1, basis centres.
    h : Hypers
        Hyperparameters of the model.
    rng : Generator
        For the random start. "prior": v_d half-normal at the prior's scale, everything else at the
        prior's mean. With a slab, v_d and the precisions start at the slab's scale instead, because
        the scale of a sparse prior is inside its spike at zero, from which few weights return.
        "released": <v_d>, <a_j> and <b> standard normal, of either sign,
        <u> = X diag(<v>) Z'<a> + <b>, variances 1.
    options : EngineOptions
        Which factors, and how they are updated.
    columns : Columns, optional
        The columns of X and Z, if they exist already.

    Attributes
    ----------
    a, Sigma, A : array (B,), (B, B), (B, B)
        Mean and covariance of q(a), and A = <a a'>.
    m, precision, v, var_v : array (D,)
        Location m_d and precision lambda_d of q(v_d), its mean and variance.
    M, P : array (N, B), (D,)
        M = X diag(v) Z' and the diagonal P_d = z_d' A z_d.
    features, samples : array of int
        The features and samples that were not pruned; D and B count only these.
    """

    M: np.ndarray
    MM: np.ndarray
    shares: tuple[float, float] = (0.01, 0.001)
    """A feature, or a sample, is selected if <v_d>, |<a_j>|, is at least this share of the largest:
    the released example's thresholds."""

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        Z: np.ndarray,
        h: Any,
        rng: np.random.Generator,
        options: EngineOptions,
        columns: Columns | None = None,
    ) -> None:
        (N, D), B = X.shape, len(Z)
        self.y, self.h, self.options = y, h, options
        shared = Columns.of(X, Z) if columns is None else columns
        self.Xt, self.Zt, self.G = shared.Xt, shared.Zt, shared.G
        self.features, self.samples = np.arange(D), np.arange(B)

        self.delta_shape = h.feature_shape + 0.5
        self.psi_shape = h.sample_shape + 0.5
        self.tau_shape = h.noise_shape + 0.5 * N
        sample, feature = h.sample_prior, h.feature_prior
        self.delta_rate = np.full(D, _first_rate(self.delta_shape, feature))
        self.psi_rate = np.full(B, _first_rate(self.psi_shape, sample))
        self.tau_rate = self.tau_shape * h.noise_rate / h.noise_shape
        self.b, self.var_b = 0.0, h.bias_sd**2
        self.a, self.xi = np.zeros(B), np.ones(N)
        self.slab_a, self.slab_v = sample.slab**-2.0, feature.slab**-2.0  # 0 without a slab
        self.mass_a, self.mass_v = sample.log_mass, feature.log_mass

        self.m = rng.standard_normal((D,))
        if options.start == "released":
            self.a = rng.standard_normal((B,))
            self.v, self.var_v, self.precision = self.m.copy(), np.ones(D), np.ones(D)
            self.b = float(rng.standard_normal())
            self._set_M()
            self.u, self.var_u, self.var_b = self.M @ self.a + self.b, np.ones(N), 1.0
            self.update_xi()
            return
        self.precision = self.delta + self.slab_v
        self.m = np.abs(self.m) * self.precision**-0.5
        self.M = np.zeros((N, B))
        self.update_u()
        self._set_v()

    delta = property(lambda self: self.delta_shape / self.delta_rate)
    psi = property(lambda self: self.psi_shape / self.psi_rate)
    tau = property(lambda self: self.tau_shape / self.tau_rate)
    scale = property(lambda self: self.precision**-0.5, doc="lambda_d^-1/2, not the sd of v_d.")

    def update_a(self) -> None:
        """Update q(a), RFVM C.15, RFVM C.16 and RFVM C.17.

        Sigma^-1 = <tau> [M'M + Z diag(Var(v) G) Z'] + diag<psi> + slab^-2 I.
        """
        Q = self.tau * (self.MM + _product(self.Zt, self.G * self.var_v, self.Zt))
        Q[np.diag_indices_from(Q)] += self.psi + self.slab_a
        self.L = linalg.cholesky(Q, lower=True)  # Sigma = (L L')^-1
        self.factor = linalg.solve_triangular(self.L, np.eye(len(Q)), lower=True).T
        self.Sigma = self.factor @ self.factor.T
        # <a> = <tau> Sigma M'(<u> - <b>)
        self.a = self.tau * (self.Sigma @ (self.M.T @ (self.u - self.b)))
        self.A = self.Sigma + np.outer(self.a, self.a)
        self.W = self.Zt @ self.A  # (D, B), rows w_d = A z_d
        self.P = np.einsum("dj,dj->d", self.W, self.Zt)

    def update_v(self) -> None:
        """Update q(v), RFVM C.25 and RFVM C.26.

        lambda_d = <tau> G_dd P_dd + <delta_d> + slab^-2, and with r = <u> - <b>

        m_d = <tau> [(X'r)_d (Z'<a>)_d - sum_{e != d} G_de P_de <v_e>] / lambda_d.
        """
        linear = (self.Xt @ (self.u - self.b)) * (self.Zt @ self.a)  # (D,)
        own = self.G * self.P
        self.precision = self.tau * own + self.delta + self.slab_v
        if self.options.v_update == "sequential":
            is_folded = self.options.v_factor == "folded"
            _sequential(
                self.Xt, self.Zt, self.W, self.M, self.v, self.m,
                self.tau * linear, self.tau, own, self.precision, is_folded,
            )  # fmt: skip
        else:
            cross = np.einsum("dj,dj->d", self.Xt @ self.M, self.W) - own * self.v
            self.m = self.tau * (linear - cross) / self.precision
        self._set_v()

    def _set_v(self) -> None:
        """Compute moments and entropy of every q(v_d), and what depends on them."""
        moments = folded_moments if self.options.v_factor == "folded" else truncated_moments
        mean, variance, entropy = moments(self.m / self.scale)
        self.v, self.var_v = self.scale * mean, variance / self.precision
        self.entropy_v = entropy + np.log(self.scale)
        self._set_M()

    def _set_M(self) -> None:
        self.M = _product(self.Xt, self.v, self.Zt)
        self.MM = self.M.T @ self.M

    def update_delta(self) -> None:
        """RFVM C.33, RFVM C.34: rate b0 + <v_d^2> / 2."""
        self.delta_rate = self.h.feature_rate + 0.5 * (self.v**2 + self.var_v)

    def update_psi(self) -> None:
        """RFVM C.37, RFVM C.38: rate b0 + <a_j^2> / 2."""
        self.psi_rate = self.h.sample_rate + 0.5 * np.diag(self.A)

    def update_b(self) -> None:
        """RFVM C.49, RFVM C.50: precision N <tau> + bias_sd^-2."""
        self.var_b = 1.0 / (len(self.y) * self.tau + self.h.bias_sd**-2)
        self.b = self.var_b * self.tau * float(np.sum(self.u - self.M @ self.a))

    def update_u(self) -> None:
        """RFVM C.56, RFVM C.57: precision <tau> + 2 lambda(xi_n)."""
        self.var_u = 1.0 / (self.tau + 2.0 * _lambda(self.xi))
        self.u = self.var_u * (self.y - 0.5 + self.tau * (self.M @ self.a + self.b))

    def update_xi(self) -> None:
        """RFVM C.60: xi_n^2 = <u_n^2>."""
        self.xi = np.sqrt(self.u**2 + self.var_u)

    def update_tau(self) -> None:
        """RFVM C.43, RFVM C.44: rate noise_rate + R / 2."""
        self.tau_rate = self.h.noise_rate + 0.5 * self.R()

    def R(self) -> float:
        """Return R = E|u - b - X diag(v) Z'a|^2.

        R = |<u> - <b> - M<a>|^2 + sum_n Var(u_n) + N Var(b) + tr(M Sigma M')
            + sum_d G_dd Var(v_d) P_dd.
        """
        residual = self.u - self.b - self.M @ self.a
        spread = self.var_u.sum() + len(self.y) * self.var_b + np.sum(self.MM * self.Sigma)
        return float(residual @ residual + spread + np.sum(self.G * self.var_v * self.P))

    def sweep(self) -> None:
        """Update every factor once."""
        self.update_a()
        self.update_v()
        self.update_delta()
        self.update_psi()
        self.update_b()
        last = (self.update_u, self.update_xi, self.update_tau)
        for update in last if self.options.order == "u_xi_tau" else reversed(last):
            update()

    def elbo(self) -> float:
        """Return the lower bound RFVM (20) of ln p(y): E_q[ln joint], RFVM B.4, plus entropies."""
        h, N, B = self.h, len(self.y), len(self.a)
        u2, v2, a2 = self.u**2 + self.var_u, self.v**2 + self.var_v, np.diag(self.A)
        log_tau = special.digamma(self.tau_shape) - np.log(self.tau_rate)
        log_psi = special.digamma(self.psi_shape) - np.log(self.psi_rate)
        log_delta = special.digamma(self.delta_shape) - np.log(self.delta_rate)
        # ln sigmoid(xi) + (y - 1/2) <u> - xi/2 - lambda(xi) (<u^2> - xi^2)
        label = -np.logaddexp(0.0, -self.xi) + (self.y - 0.5) * self.u - 0.5 * self.xi
        label -= _lambda(self.xi) * (u2 - self.xi**2)
        joint = (
            label.sum()
            + 0.5 * N * (log_tau - _LOG_2PI) - 0.5 * self.tau * self.R()
            + 0.5 * np.sum(log_psi - _LOG_2PI - self.psi * a2)
            + 0.5 * np.sum(log_delta + np.log(2.0 / np.pi) - self.delta * v2)
            - 0.5 * (_LOG_2PI + 2 * np.log(h.bias_sd) + (self.b**2 + self.var_b) / h.bias_sd**2)
            - 0.5 * self.slab_a * np.sum(a2) - B * self.mass_a
            - 0.5 * self.slab_v * np.sum(v2) - len(self.v) * self.mass_v
        )  # fmt: skip
        kl = (
            np.sum(_kl_gamma(self.psi_shape, self.psi_rate, h.sample_shape, h.sample_rate))
            + np.sum(_kl_gamma(self.delta_shape, self.delta_rate, h.feature_shape, h.feature_rate))
            + _kl_gamma(self.tau_shape, self.tau_rate, h.noise_shape, h.noise_rate)
        )
        entropy = (
            0.5 * B * (_LOG_2PI + 1.0) - np.log(np.diag(self.L)).sum()
            + self.entropy_v.sum()
            + 0.5 * (_LOG_2PI + 1.0 + np.log(self.var_b))
            + 0.5 * np.sum(_LOG_2PI + 1.0 + np.log(self.var_u))
        )  # fmt: skip
        return float(joint - kl + entropy)

    def probabilities(self) -> np.ndarray:
        """Return sigmoid(<eta_n>), for the stopping rule."""
        return special.expit(self.M @ self.a + self.b)

    def selected(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which of the kept features and samples are above the thresholds."""
        size = np.abs(self.a)
        feature = self.v >= self.shares[0] * self.v.max()
        return feature, size >= self.shares[1] * size.max()

    def prune(self) -> bool:
        """Remove what is not selected; return whether anything was."""
        f, s = self.selected()
        if f.all() and s.all():
            return False
        self.features, self.samples = self.features[f], self.samples[s]
        self.Xt, self.Zt = self.Xt[f], np.ascontiguousarray(self.Zt[np.ix_(f, s)])
        for name in ("G", "m", "precision", "delta_rate"):
            setattr(self, name, getattr(self, name)[f])
        self.psi_rate, self.a = self.psi_rate[s], self.a[s]
        self._set_v()
        return True

    def release(self) -> None:
        """Free W (D, B), which is as large as X and needed only during a sweep."""
        self.W = np.empty((0, len(self.a)))

    # --- draws ---

    def draws(self, rng: np.random.Generator, S: int) -> dict[str, np.ndarray]:
        """Return S independent draws of the kept variables, {name: (S, ...)}."""
        D, B, N = len(self.m), len(self.a), len(self.y)
        v = np.empty((S, D))
        if self.options.v_factor == "truncated":
            truncated_draws(rng, self.m, self.scale, v)
        else:
            v[:] = np.abs(self.m + self.scale * rng.standard_normal((S, D)))
        return {
            "feature_weight": v,
            "sample_weight": self.a + rng.standard_normal((S, B)) @ self.factor.T,
            "delta": rng.gamma(self.delta_shape, 1.0 / self.delta_rate, (S, D)),
            "psi": rng.gamma(self.psi_shape, 1.0 / self.psi_rate, (S, B)),
            "tau": rng.gamma(self.tau_shape, 1.0 / self.tau_rate, S),
            "bias": rng.normal(self.b, self.var_b**0.5, S),
            "u": rng.normal(self.u, self.var_u**0.5, (S, N)),
        }

    def log_q(self, point: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return ln q (S,) of the variables in `point`, a density of the paper's variables."""
        logpdf = folded_logpdf if self.options.v_factor == "folded" else truncated_logpdf
        noise = (point["sample_weight"] - self.a) @ self.L
        total = logpdf(point["feature_weight"], self.m, self.scale).sum(axis=1)
        total += np.log(np.diag(self.L)).sum() - 0.5 * (noise**2 + _LOG_2PI).sum(axis=1)
        total += _log_normal(point["bias"], self.b, self.var_b)
        total += _log_gamma(point["tau"], self.tau_shape, self.tau_rate)
        if "psi" in point:
            total += _log_gamma(point["psi"], self.psi_shape, self.psi_rate).sum(axis=1)
            total += _log_gamma(point["delta"], self.delta_shape, self.delta_rate).sum(axis=1)
        if "u" in point:
            total += _log_normal(point["u"], self.u, self.var_u).sum(axis=1)
        return total


def _first_rate(shape: float, prior: WeightPrior) -> float:
    """Return the rate of the initial q of a precision, whose mean is the prior's, or slab^-2."""
    if np.isfinite(prior.slab):
        return shape * min(prior.slab, _WIDEST) ** 2
    return shape * prior.rate / prior.shape


def _lambda(xi: np.ndarray) -> np.ndarray:
    return np.tanh(0.5 * xi) / (4.0 * xi)  # xi^2 = <u^2> > 0


def _kl_gamma(c: float, r: Any, a: float, b: float) -> Any:
    """KL(Gamma(c, r) || Gamma(a, b)), shape and rate."""
    shape = (c - a) * special.digamma(c) - special.gammaln(c) + special.gammaln(a)
    return shape + a * np.log(r / b) + c * (b - r) / r


def _log_normal(x: np.ndarray, mean: Any, variance: Any) -> np.ndarray:
    return -0.5 * ((x - mean) ** 2 / variance + np.log(variance) + _LOG_2PI)


def _log_gamma(x: np.ndarray, shape: float, rate: Any) -> np.ndarray:
    return shape * np.log(rate) - special.gammaln(shape) + (shape - 1.0) * np.log(x) - rate * x


def _product(Xt: np.ndarray, weight: np.ndarray, Zt: np.ndarray) -> np.ndarray:
    """Return X diag(weight) Z' (N, B), a block of features at a time."""
    out = np.zeros((Xt.shape[1], Zt.shape[1]))
    for at in range(0, len(weight), _BLOCK):
        block = slice(at, at + _BLOCK)
        out += (Xt[block] * weight[block, None]).T @ Zt[block]
    return out


# reassociation allows the inner sum to be vectorised; NaN and infinity keep their meaning
@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _sequential(
    Xt: np.ndarray,
    Zt: np.ndarray,
    W: np.ndarray,
    M: np.ndarray,
    v: np.ndarray,
    m: np.ndarray,
    linear: np.ndarray,
    tau: float,
    own: np.ndarray,
    precision: np.ndarray,
    is_folded: bool,
) -> None:
    """Update every m_d = (linear_d - tau (x_d' M w_d - own_d <v_d>)) / lambda_d and <v_d> in turn.

    M is updated in place. Its change due to one feature is added while the next feature reads M, so
    M is read once per feature. The last change is missing, because the caller recomputes M.
    """
    D, N = Xt.shape
    B = Zt.shape[1]
    change, before = 0.0, 0
    for d in range(D):
        cross = 0.0
        for n in range(N):
            c = change * Xt[before, n]
            total = 0.0
            for j in range(B):
                M[n, j] += c * Zt[before, j]  # M += dv x z'
                total += M[n, j] * W[d, j]
            cross += Xt[d, n] * total
        m[d] = (linear[d] - tau * (cross - own[d] * v[d])) / precision[d]
        s = precision[d] ** -0.5
        mean = s * folded(m[d] / s)[0] if is_folded else s * truncated(m[d] / s)[0]
        change, before = mean - v[d], d
        v[d] = mean
