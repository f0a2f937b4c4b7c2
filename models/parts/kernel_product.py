"""f = K_theta(X, Z) a as one compiled operation, whose gradient reads X as few times as possible.

The formulas are those of `kernels/`; this file computes them faster where PyTensor compiles with
Numba. With g = d L / d f, a gradient of length N::

    linear   s = Z'a,  h = X'g       f = X (theta s)    dL/dtheta = s h    dL/da = Z (theta h)
    rbf      q_j = (K'g)_j, T = K diag(a) Z
             f = K a                 dL/da = q
             dL/dtheta_k = 2 sum_i g_i x_ik T_ik - sum_i g_i f_i x_ik^2 - sum_j a_j q_j z_jk^2

Separate products would each need a pass over X or Z. Here features are processed in blocks that fit
into the cache: one pass gives f and s, and another gives both gradients. If Z is X, this halves the
memory traffic. The last line of the rbf formulas expands (x - z)^2, so that K is the only array of
size N x B.

JAX, MLX and second derivatives use the plain formula (`fused.py`).
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numba
import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply

from .distance import decayed, square_distance
from .fused import Fused, gradients, weighed
from .vector_math import exp

Arrays = tuple[np.ndarray, np.ndarray]

_BLOCK = 128  # features processed together: a block of 60 to 300 rows fits into a cache
_FAST = {"contract", "nsz", "reassoc", "arcp"}  # not "nnan", "ninf": a NaN must stay a NaN
_jit = numba.njit(fastmath=_FAST, nogil=True)


# --- the linear kernel ----------------------------------------------------------------------------


@_jit
def _add_rows(M: np.ndarray, w: np.ndarray, lo: int, hi: int, out: np.ndarray) -> None:
    """Set out_k = sum_j w_j M_jk for lo <= k < hi, four rows at a time to read `out` less often."""
    out[: hi - lo] = 0.0
    j, B = 0, len(w)
    while j + 4 <= B:
        a, b, c, d = M[j, lo:hi], M[j + 1, lo:hi], M[j + 2, lo:hi], M[j + 3, lo:hi]
        for k in range(hi - lo):
            out[k] += w[j] * a[k] + w[j + 1] * b[k] + w[j + 2] * c[k] + w[j + 3] * d[k]
        j += 4
    for i in range(j, B):
        row = M[i, lo:hi]
        for k in range(hi - lo):
            out[k] += w[i] * row[k]


@_jit
def _add_dots(M: np.ndarray, v: np.ndarray, lo: int, hi: int, out: np.ndarray) -> None:
    """Add sum_k M_ik v_k over lo <= k < hi to each out_i; four rows at a time."""
    i, N = 0, len(out)
    while i + 4 <= N:
        a, b, c, d = M[i, lo:hi], M[i + 1, lo:hi], M[i + 2, lo:hi], M[i + 3, lo:hi]
        ta = tb = tc = td = 0.0
        for k in range(hi - lo):
            ta += a[k] * v[k]
            tb += b[k] * v[k]
            tc += c[k] * v[k]
            td += d[k] * v[k]
        out[i] += ta
        out[i + 1] += tb
        out[i + 2] += tc
        out[i + 3] += td
        i += 4
    for j in range(i, N):
        row, t = M[j, lo:hi], 0.0
        for k in range(hi - lo):
            t += row[k] * v[k]
        out[j] += t


@_jit
def _linear(X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray) -> Arrays:
    """Return f (N,) and s (D,)."""
    N, D = X.shape
    f, s, weighed = np.zeros(N), np.empty(D), np.empty(_BLOCK)
    for lo in range(0, D, _BLOCK):
        hi = min(lo + _BLOCK, D)
        _add_rows(Z, a, lo, hi, s[lo:hi])
        for k in range(hi - lo):
            weighed[k] = s[lo + k] * theta[lo + k]
        _add_dots(X, weighed, lo, hi, f)
    return f, s


@_jit
def _linear_gradient(
    X: np.ndarray,
    Z: np.ndarray,
    theta: np.ndarray,
    a: np.ndarray,
    f: np.ndarray,
    s: np.ndarray,
    g: np.ndarray,
) -> Arrays:
    """Return dL/dtheta (D,) and dL/da (B,); f is unused, but every gradient receives it."""
    D = X.shape[1]
    d_theta, d_a, h = np.empty(D), np.zeros(len(a)), np.empty(_BLOCK)
    for lo in range(0, D, _BLOCK):
        hi = min(lo + _BLOCK, D)
        _add_rows(X, g, lo, hi, h)
        for k in range(hi - lo):
            d_theta[lo + k] = s[lo + k] * h[k]
            h[k] *= theta[lo + k]
        _add_dots(Z, h, lo, hi, d_a)
    return d_theta, d_a


# --- the rbf kernel -------------------------------------------------------------------------------


@_jit
def _square_norms(X: np.ndarray, theta: np.ndarray) -> np.ndarray:
    out = np.zeros(len(X))
    for i in range(len(X)):
        for k in range(X.shape[1]):
            out[i] += theta[k] * X[i, k] * X[i, k]
    return out


@_jit
def _rbf(X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray) -> Arrays:
    """Return f (N,) and K (N, B)."""
    K = np.dot(X * (-2.0 * theta), Z.T)
    xx, zz = _square_norms(X, theta), _square_norms(Z, theta)
    f = np.zeros(len(X))
    for i in range(len(X)):
        row = K[i]
        for j in range(len(Z)):
            row[j] = exp(-max(row[j] + xx[i] + zz[j], 0.0))
        for j in range(len(Z)):
            f[i] += row[j] * a[j]
    return f, K


@_jit
def _rbf_gradient(
    X: np.ndarray,
    Z: np.ndarray,
    theta: np.ndarray,
    a: np.ndarray,
    f: np.ndarray,
    K: np.ndarray,
    g: np.ndarray,
) -> Arrays:
    """Return dL/dtheta (D,) and dL/da (B,)."""
    q, d_theta, weighted = np.dot(g, K), np.zeros(len(theta)), np.empty(Z.shape)
    for j in range(len(Z)):
        for k in range(Z.shape[1]):
            weighted[j, k] = a[j] * Z[j, k]
            d_theta[k] -= q[j] * weighted[j, k] * Z[j, k]
    T = np.dot(K, weighted)
    for i in range(len(X)):
        for k in range(X.shape[1]):
            d_theta[k] += g[i] * X[i, k] * (2.0 * T[i, k] - f[i] * X[i, k])
    return d_theta, q


# --- the operations -------------------------------------------------------------------------------


class KernelProduct(Fused):
    """f = K_theta(X, Z) a for X (N, D), Z (B, D), theta (D,), a (B,), and a term for its gradient.

    A subclass is one kernel: its formulas, and its compiled loops.
    """

    __props__ = ()
    loops: ClassVar[tuple[Callable[..., Any], Callable[..., Any]]]
    """Compiled: (X, Z, theta, a) -> f, reused; (X, Z, theta, a, f, reused, g) -> gradients."""
    reused: ClassVar[Callable[..., Any]]
    """The type of what the gradient reuses."""

    @abstractmethod
    def formula(self, X: Any, Z: Any, theta: Any, a: Any, xp: Any = pt) -> tuple[Any, Any]:
        """Return f and what the gradient reuses, for arrays or, by default, symbolically."""

    @abstractmethod
    def derivatives(
        self, X: Any, Z: Any, theta: Any, a: Any, f: Any, reused: Any, g: Any
    ) -> tuple[Any, Any]:
        """Return dL/dtheta (D,) and dL/da (B,) for arrays."""

    def first(self, X: Any, Z: Any, theta: Any, a: Any, g: Any) -> list[Any]:
        """Return the gradients of sum_i g_i f_i by X, Z, theta and a, from the plain formula."""
        return gradients(lambda *at: (g * self.formula(*at)[0]).sum(), X, Z, theta, a)

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node; its second output is what the gradient reuses."""
        X, Z, theta, a = (pt.as_tensor_variable(v, dtype="float64") for v in inputs)
        return Apply(self, [X, Z, theta, a], [pt.dvector(), type(self).reused()])

    @property
    def code(self) -> Callable[..., Any]:
        """The compiled loops."""
        return self.loops[0]

    def plain(self, *inputs: Any) -> list[Any]:
        """Return the formula of the kernel, and what the gradient reuses."""
        return [*self.formula(*inputs)]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute it with NumPy, for PyTensor's Python mode."""
        X, Z, theta, a = inputs
        outputs[0][0], outputs[1][0] = self.formula(X, Z, theta, a, np)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Return the gradients; s and K are internal to this file and need none."""
        if not isinstance(cotangents[1].type, DisconnectedType):
            raise NotImplementedError("K of KernelProduct has no gradient: use `gram`.")
        X, Z, theta, a = inputs
        g = cotangents[0]
        d_theta, d_a = KernelProductGradient(self)(X, Z, theta, a, *outputs, g)
        # gradients by the data are rarely requested, so these are rarely compiled
        d_X, d_Z, *_ = self.first(X, Z, theta, a, g)
        return [d_X, d_Z, d_theta, d_a]


class LinearProduct(KernelProduct):
    """The product of the linear kernel; it reuses s = Z'a (D,)."""

    loops = (_linear, _linear_gradient)
    reused = pt.dvector

    def formula(self, X: Any, Z: Any, theta: Any, a: Any, xp: Any = pt) -> tuple[Any, Any]:
        """Return X (theta s), which needs two products and no K, and s."""
        s = Z.T @ a
        return X @ (theta * s), s

    def derivatives(
        self, X: Any, Z: Any, theta: Any, a: Any, f: Any, reused: Any, g: Any
    ) -> tuple[Any, Any]:
        """Return s h and Z (theta h), h = X'g."""
        h = X.T @ g
        return reused * h, Z @ (theta * h)

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        """Return the shapes of the outputs."""
        (N, D), *_ = shapes
        return [(N,), (D,)]


class RbfProduct(KernelProduct):
    """The product of the rbf kernel; it reuses K (N, B)."""

    loops = (_rbf, _rbf_gradient)
    reused = pt.dmatrix

    def formula(self, X: Any, Z: Any, theta: Any, a: Any, xp: Any = pt) -> tuple[Any, Any]:
        """Return K a and K."""
        K = decayed(square_distance(X, Z, theta), xp)
        return K @ a, K

    def derivatives(
        self, X: Any, Z: Any, theta: Any, a: Any, f: Any, reused: Any, g: Any
    ) -> tuple[Any, Any]:
        """Return the expanded sum over (x - z)^2, and q = K'g."""
        q, T = g @ reused, reused @ (a[:, None] * Z)
        squares = (g * f) @ (X * X) + (a * q) @ (Z * Z)
        return 2.0 * (g[:, None] * X * T).sum(axis=0) - squares, q

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        """Return the shapes of the outputs."""
        (N, _), (B, _), *_ = shapes
        return [(N,), (N, B)]


class KernelProductGradient(Fused):
    """Gradients (D,), (B,) of a function of f, given its gradient g (N,) with respect to f.

    Its inputs are those of `KernelProduct`, its outputs, and g.

    Parameters
    ----------
    of : KernelProduct
    """

    __props__ = ("of",)

    def __init__(self, of: KernelProduct) -> None:
        self.of = of

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node."""
        return Apply(self, [pt.as_tensor_variable(v) for v in inputs], [pt.dvector(), pt.dvector()])

    @property
    def code(self) -> Callable[..., Any]:
        """The compiled loops."""
        return self.of.loops[1]

    def plain(self, *inputs: Any) -> list[Any]:
        """Return the derivatives of the plain formula."""
        X, Z, theta, a, *_, g = inputs
        return self.of.first(X, Z, theta, a, g)[2:]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute it with NumPy."""
        outputs[0][0], outputs[1][0] = self.of.derivatives(*inputs)

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        """Return the shapes of the outputs."""
        return [shapes[2], shapes[3]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Report that f, s and K have no gradient, as they are functions of the other inputs."""
        made = range(4, len(node.inputs) - 1)
        return [[i not in made] * 2 for i in range(len(node.inputs))]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Return second derivatives, from the plain formula."""
        X, Z, theta, a, *made, g = inputs

        def total(*at: Any) -> Any:
            return weighed(self.of.first(*at)[2:], cotangents)

        d_X, d_Z, d_theta, d_a, d_g = gradients(total, X, Z, theta, a, g)
        return [d_X, d_Z, d_theta, d_a, *(DisconnectedType()() for _ in made), d_g]
