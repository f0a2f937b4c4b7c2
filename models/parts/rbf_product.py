"""f = K_theta(X, Z) a of the rbf kernel as one compiled operation.

The formulas are those of `kernels/rbf.py`; this file computes them faster where PyTensor compiles
with Numba. With g = d L / d f, a gradient of length N, q_j = (K'g)_j and T = K diag(a) Z::

    f = K a        dL/da = q
    dL/dtheta_k = 2 sum_i g_i x_ik T_ik - sum_i g_i f_i x_ik^2 - sum_j a_j q_j z_jk^2

The last line expands (x - z)^2, so that K is the only array of size N x B, and the gradient reuses
it. The plain formula takes 1.5 times as long at 100 x 60 and at 357 x 64.

JAX, MLX and second derivatives use the plain formula (`fused.py`).
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply

from .distance import decayed, square_distance
from .fused import Fused, gradients, weighed
from .vector_math import exp

Arrays = tuple[np.ndarray, np.ndarray]

_FAST = {"contract", "nsz", "reassoc", "arcp"}  # not "nnan", "ninf": a NaN must stay a NaN
_jit = numba.njit(fastmath=_FAST, nogil=True)


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


def _formula(X: Any, Z: Any, theta: Any, a: Any, xp: Any = pt) -> tuple[Any, Any]:
    """Return f (N,) and K (N, B), for arrays or, by default, symbolically."""
    K = decayed(square_distance(X, Z, theta), xp)
    return K @ a, K


def _first(X: Any, Z: Any, theta: Any, a: Any, g: Any) -> list[Any]:
    """Return the gradients of sum_i g_i f_i by X, Z, theta and a, from the plain formula."""
    return gradients(lambda *at: (g * _formula(*at)[0]).sum(), X, Z, theta, a)


class RbfProduct(Fused):
    """f = K_theta(X, Z) a for X (N, D), Z (B, D), theta (D,), a (B,), and K for its gradient."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node; its second output, K, is what the gradient reuses."""
        X, Z, theta, a = (pt.as_tensor_variable(v, dtype="float64") for v in inputs)
        return Apply(self, [X, Z, theta, a], [pt.dvector(), pt.dmatrix()])

    @property
    def code(self) -> Callable[..., Any]:
        """The compiled loops."""
        return _rbf

    def plain(self, *inputs: Any) -> list[Any]:
        """Return the formula of the kernel, and K."""
        return [*_formula(*inputs)]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute it with NumPy, for PyTensor's Python mode."""
        X, Z, theta, a = inputs
        outputs[0][0], outputs[1][0] = _formula(X, Z, theta, a, np)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Return the gradients; K is internal to this file and needs none."""
        if not isinstance(cotangents[1].type, DisconnectedType):
            raise NotImplementedError("K of RbfProduct has no gradient: use `gram`.")
        X, Z, theta, a = inputs
        g = cotangents[0]
        d_theta, d_a = RbfProductGradient()(X, Z, theta, a, *outputs, g)
        # gradients by the data are rarely requested, so these are rarely compiled
        d_X, d_Z, *_ = _first(X, Z, theta, a, g)
        return [d_X, d_Z, d_theta, d_a]

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        """Return the shapes of the outputs."""
        (N, _), (B, _), *_ = shapes
        return [(N,), (N, B)]


class RbfProductGradient(Fused):
    """Gradients (D,), (B,) of a function of f, given its gradient g (N,) with respect to f.

    Its inputs are those of `RbfProduct`, its outputs, and g.
    """

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node."""
        return Apply(self, [pt.as_tensor_variable(v) for v in inputs], [pt.dvector(), pt.dvector()])

    @property
    def code(self) -> Callable[..., Any]:
        """The compiled loops."""
        return _rbf_gradient

    def plain(self, *inputs: Any) -> list[Any]:
        """Return the derivatives of the plain formula."""
        X, Z, theta, a, *_, g = inputs
        return _first(X, Z, theta, a, g)[2:]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute it with NumPy."""
        X, Z, _, a, f, K, g = inputs
        q, T = g @ K, K @ (a[:, None] * Z)
        squares = (g * f) @ (X * X) + (a * q) @ (Z * Z)
        outputs[0][0], outputs[1][0] = 2.0 * (g[:, None] * X * T).sum(axis=0) - squares, q

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        """Return the shapes of the outputs."""
        return [shapes[2], shapes[3]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Report that f and K have no gradient, as they are functions of the other inputs."""
        return [[i not in (4, 5)] * 2 for i in range(len(node.inputs))]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Return second derivatives, from the plain formula."""
        X, Z, theta, a, *_, g = inputs

        def total(*at: Any) -> Any:
            return weighed(_first(*at)[2:], cotangents)

        d_X, d_Z, d_theta, d_a, d_g = gradients(total, X, Z, theta, a, g)
        unconnected = DisconnectedType()
        return [d_X, d_Z, d_theta, d_a, unconnected(), unconnected(), d_g]
