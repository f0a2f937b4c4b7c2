"""The curvature H = -d2 g / dx dx' of a log density, which is never P x P if features are many.

**Dense.** For any model, a column of H is the difference of two exact gradients; it takes 2 P of
them.

**A linear kernel.** Features interact only through f = X (theta s), s = Z'a. So g(x) = G(x, f) with
f (N,) as a separate variable, and no term of G contains two features. Let x_d be
the p variables that make theta_d (its weight, its precision), t_d = d theta_d / d x_d (p,), and the
border every other variable. By the chain rule, with w = -d2 G / df2 and
k = s (X' dG/df) = dG/df . df/dtheta::

    H[x_d, x_e] = s_d s_e (sum_n w_n X_nd X_ne) t_d t_e'          + [d = e] A_d
    A_d         = -d2 (G + k'theta) / dx_d dx_d'                  f and k held         (p, p)

so H is an arrow: blocks on the diagonal plus a matrix of rank N, and a border whose columns are
differences of gradients. With A_d = L_d L_d' and, side by side over d,
J = w^1/2 X_d (L_d^-1 s_d t_d)'::

    H = diag(L, 1) [ I + J'J   C ] diag(L', 1),       S = E - C'(I + J'J)^-1 C = T T'
                   [    C'     E ]

From the singular values J = U sigma V', V' of N rows, any power of I + J'J is
I + V ((1 + sigma^2)^power - 1) V'. Time O(P (N + R)^2) and memory O(P R) for a border of R
variables, of the order of N.

A block A_d need not be positive definite although H is: a strong feature is determined by the data,
not by its prior. J'J has rank N, so there are at most N such blocks. Their features join the
border.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from scipy import linalg

from ardvark.common.progress import Update
from ardvark.models import Problem
from ardvark.models.parts.kernels.linear import LinearProduct

if TYPE_CHECKING:
    from ..target.density import Density

_WEAK = 1e-6  # of a feature's curvature: a block with less in some direction joins the border
_NOT_POSITIVE = "the curvature at the mode is not positive definite"
_NO_FEATURE = np.empty((0, 1), dtype=int)
_NO_PART = np.empty((0, 1)), np.empty((0, 1, 1)), np.empty(0)


def linear_kernel(problem: Problem | None) -> bool:
    """Whether the problem's features are variables that interact only in f = X (theta Z'a)."""
    if problem is None or problem.kernel is None or not problem.kernel.is_primal:
        return False
    return problem.free_feature_size > 0


class Features:
    """The contribution of a linear kernel's features to the curvature, compiled.

    Parameters
    ----------
    density : Density
        Of a problem for which `linear_kernel` holds.

    Attributes
    ----------
    X : array (N, D)
        Inputs.
    own : array (p, D) of int
        The positions in the vector of the variables that make theta_d.
    """

    def __init__(self, density: Density) -> None:
        owners = {v.owner for v in ancestors([density.graph]) if v.owner is not None}
        (node,) = (n for n in owners if isinstance(n.op, LinearProduct))
        inputs, f = node.inputs, node.outputs[0]
        X, Z, theta, a = inputs
        makers = {v.name: v for v in ancestors([theta]) if v.name in density.blocks}
        own = [v for name, v in makers.items() if v.ndim == 1]
        self.X: np.ndarray = X.get_value(borrow=True)
        at = [density.blocks[v.name] for v in own]
        self.own = np.array([range(b.start, b.stop) for b in at], dtype=int)

        held, pull = f.type("f"), theta.type("k")
        (apart,) = clone_replace([density.graph], {f: held})  # G(x, f)
        slope = pt.grad(apart, held)
        s = Z.T @ a
        t = [s * d for d in pt.grad(theta.sum(), own)]
        first = pt.grad(apart + (pull * theta).sum(), own)
        A = [-d for g in first for d in pt.grad(g.sum(), own, disconnected_inputs="ignore")]
        w = -pt.grad(slope.sum(), held)
        outputs = clone_replace([*t, *A, w], {pull: s * (X.T @ slope)})
        self._values = density.interpreted(clone_replace(outputs, {held: f}))

    def at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return s_d t_d (D, p), A (D, p, p) and w (N,) at x (P,)."""
        p, D = self.own.shape
        *parts, w = self._values(x)
        t, A = np.array(parts[:p]), np.array(parts[p:])
        return t.T, A.reshape(p, p, D).transpose(2, 0, 1), w


def columns(
    density: Density, x: np.ndarray, at: np.ndarray, update: Update | None = None
) -> np.ndarray:
    """Return columns `at` (R,) of H, shape (P, R), by central differences of the exact gradient."""
    H = np.empty((density.size, len(at)))
    for c, i in enumerate(at):
        step = np.cbrt(np.finfo(float).eps) * max(1.0, abs(x[i]))
        ahead, behind = x.copy(), x.copy()
        ahead[i] += step
        behind[i] -= step
        difference = density.logp_grad(ahead)[1] - density.logp_grad(behind)[1]
        H[:, c] = -difference / (ahead[i] - behind[i])
        if update is not None and c % 100 == 0:
            update(c)
    return H


class Curvature:
    """H at a point, factored: R with R R' = H^-1, its determinant, and solutions.

    Parameters
    ----------
    density : Density
    x : array (P,)
        The point.
    features : Features, optional
        The features of a linear kernel; None: dense.
    update : callable, optional
        Called with the number of columns that are done.

    Raises
    ------
    scipy.linalg.LinAlgError
        H is not positive definite, or not finite; the message says which.
    """

    def __init__(
        self,
        density: Density,
        x: np.ndarray,
        features: Features | None = None,
        update: Update | None = None,
    ) -> None:
        self.size = density.size
        own = _NO_FEATURE if features is None else features.own.T  # (D, p)
        border = np.setdiff1d(np.arange(self.size), own)
        H = columns(density, x, border, update)  # (P, R)
        t, A, w = _NO_PART if features is None else features.at(x)
        if not all(np.isfinite(part).all() for part in (H, t, A, w)):
            raise linalg.LinAlgError("the curvature at the mode is not finite")
        if (w < 0.0).any():
            raise linalg.LinAlgError("the likelihood is not log-concave in eta")
        X = np.empty((0, 0)) if features is None else features.X
        G = np.sqrt(w)[:, None] * X  # (N, D)
        least, most = (np.linalg.eigvalsh(A)[:, i] for i in (0, -1))
        if (least <= 0.0).sum() > len(w):
            raise linalg.LinAlgError(_NOT_POSITIVE)
        weak = least <= _WEAK * (most + (G**2).sum(0) * (t**2).sum(1))  # (D,)
        if weak.any():
            H, border = _extend(H, border, own, np.flatnonzero(weak), t, A, G)
        self._border, self._own = border, own[~weak]  # (R,), (m, p)
        self._root = np.linalg.cholesky(A[~weak])  # L (m, p, p)
        u = np.linalg.solve(self._root, t[~weak, :, None])[..., 0]  # (m, p)
        length = np.sqrt((u**2).sum(1))
        self._along = u / np.maximum(length, 1e-300)[:, None]  # of length 1, or 0 where s_d is
        _, self._sigma, self._V = np.linalg.svd(G[:, ~weak] * length, full_matrices=False)
        self._factor(H)

    def _factor(self, H: np.ndarray) -> None:
        """Eliminate the features from the border's columns of H (P, R)."""
        E = H[self._border]
        S = 0.5 * (E + E.T)
        m, p = self._own.shape
        C = np.linalg.solve(self._root, H[self._own])  # (m, p, R)
        inner = self._power(C, -1.0)
        S -= np.einsum("mpi,mpj->ij", C, inner, optimize=True)
        try:
            self._T = linalg.cholesky(S, lower=True)
        except linalg.LinAlgError:
            lowest = float(linalg.eigvalsh(S, subset_by_index=(0, 0))[0])
            message = f"{_NOT_POSITIVE} (smallest eigenvalue {lowest:.3g})"
            raise linalg.LinAlgError(message) from None
        # what a border's unit noise adds to the features: -L'^-1 (I + J'J)^-1 C T'^-1
        inner = np.linalg.solve(self._root.transpose(0, 2, 1), inner)
        flat = inner.reshape(m * p, len(S)).T
        self._lean = -linalg.solve_triangular(self._T, flat, lower=True).T  # (m p, R)
        self.log_det = 2.0 * (
            np.log(np.diagonal(self._root, axis1=1, axis2=2)).sum()
            + 0.5 * np.log1p(self._sigma**2).sum()
            + np.log(np.diag(self._T)).sum()
        )

    def _power(self, y: np.ndarray, power: float) -> np.ndarray:
        """Return (I + J'J)^power y for y (m, p, k)."""
        gain = np.expm1(power * np.log1p(self._sigma**2))  # (N,)
        seen = self._V @ np.einsum("mp,mpk->mk", self._along, y)  # (N, k)
        return y + self._along[:, :, None] * (self._V.T @ (gain[:, None] * seen))[:, None, :]

    def sample(self, e: np.ndarray) -> np.ndarray:
        """Return R e for every row of e (S, P): of covariance H^-1 where e is white noise."""
        x = np.empty_like(e)
        (m, p), k = self._own.shape, len(e)
        of_border = e[:, self._border]
        x[:, self._border] = linalg.solve_triangular(self._T, of_border.T, lower=True, trans="T").T
        y = self._power(e[:, self._own.ravel()].T.reshape(m, p, k), -0.5)
        y = np.linalg.solve(self._root.transpose(0, 2, 1), y).reshape(m * p, k)
        x[:, self._own.ravel()] = y.T + of_border @ self._lean.T
        return x

    def solve(self, g: np.ndarray) -> np.ndarray:
        """Return H^-1 g for g (P,), as R R'g."""
        e, own = np.empty_like(g), g[self._own]  # own (m, p)
        y = np.linalg.solve(self._root, own[..., None])
        e[self._own] = self._power(y, -0.5)[..., 0]
        e[self._border] = linalg.solve_triangular(self._T, g[self._border], lower=True)
        e[self._border] += own.ravel() @ self._lean
        return self.sample(e[None, :])[0]

    @property
    def sd(self) -> np.ndarray:
        """The roots of the diagonal of H^-1, (P,)."""
        out = np.empty(self.size)
        inverse, _ = linalg.lapack.dtrtri(self._T, lower=1)
        out[self._border] = (inverse**2).sum(0)
        rows = np.linalg.inv(self._root)  # (m, p, p): row i of L'^-1 is rows[:, :, i]
        reach = np.einsum("mqi,mq->mi", rows, self._along)
        data = -(self._sigma**2 / (1.0 + self._sigma**2)) @ self._V**2  # (m,)
        by_border = (self._lean**2).sum(1).reshape(self._own.shape)
        out[self._own] = (rows**2).sum(1) + reach**2 * data[:, None] + by_border
        return np.sqrt(out)


def _extend(
    H: np.ndarray,
    border: np.ndarray,
    own: np.ndarray,
    weak: np.ndarray,
    t: np.ndarray,
    A: np.ndarray,
    G: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return H's columns of the border (P, R) with those of the weak features, and the border."""
    at = own[weak]  # (k, p)
    more = np.zeros((len(H), *at.shape))
    more[border] = H[at].transpose(2, 0, 1)
    more[own] = np.einsum("dk,di,kj->dikj", G.T @ G[:, weak], t, t[weak])
    for c, d in enumerate(weak):
        more[own[d], c] += A[d]
    return np.hstack([H, more.reshape(len(H), at.size)]), np.append(border, at)
