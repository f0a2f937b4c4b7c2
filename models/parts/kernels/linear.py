"""The linear kernel."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph

from ..effects import primal_effects
from .kernel import HALF_NORMAL, LINEAR, Kernel, Law


class LinearProduct(OpFromGraph):
    """f = X (theta Z'a) as a node of its own, which `approximations/curvature.py` looks for.

    PyTensor puts the formula in its place when it compiles.
    """

    def __init__(self) -> None:
        X, Z, theta, a = pt.dmatrix(), pt.dmatrix(), pt.dvector(), pt.dvector()
        super().__init__([X, Z, theta, a], [X @ (theta * (Z.T @ a))], inline=True)


@dataclass(frozen=True)
class Linear(Kernel):
    """K(x, z) = sum_k theta_k x_k z_k."""

    name: ClassVar[str] = "linear"
    is_linear: ClassVar[bool] = True
    sparse_defaults: ClassVar[tuple[float, float, tuple[float, ...]]] = (10.0, 20.0, (np.inf,))

    @property
    def code(self) -> int:
        """`LINEAR`."""
        return LINEAR

    def gram(self, X: Any, Z: Any, theta: Any, xp: Any = np) -> Any:
        """Return X diag(theta) Z'."""
        return (X * theta) @ Z.T

    def of_inner(self, inner: np.ndarray, out: np.ndarray) -> None:
        """Copy the inner products."""
        out[:] = inner

    def product(self, X: Any, Z: Any, theta: Any, a: Any) -> Any:
        """Return the symbolic K a from two matrix-vector products, without K."""
        return LinearProduct()(X, Z, theta, a)

    def decision(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray, bias: Any = None
    ) -> np.ndarray:
        """Return eta without K, all draws at once: O((N + B) D) instead of O(N B D) a draw."""
        out = (theta * (a @ Z)) @ X.T  # (..., D) @ (D, N)
        return out if bias is None else np.asarray(bias)[..., None] + out

    def gram_and_slope(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return K; W is 1."""
        return self.gram(X, Z, theta), None

    def gradient(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """Return x_ik (Z'a)_k, without K."""
        return X * (a @ Z)

    def feature_effects(
        self,
        X: np.ndarray,
        Z: np.ndarray,
        theta: np.ndarray,
        a: np.ndarray,
        threshold: float = 0.0,
    ) -> np.ndarray:
        """Return the effects of the primal weights (S, D), O((N + B) D) a draw."""
        return primal_effects(X, theta * (a @ Z))

    def scales(self, N: int, D: float) -> tuple[float, float]:
        """Return 1 and 1 / max(D, (N D)^1/2)."""
        return 1.0, 1.0 / max(D, np.sqrt(N * D))

    def mask_scale(self, samples: float, features: float) -> float:
        """Return 2 / max(S, (A S)^1/2) for A samples and S features."""
        return 2.0 / max(features, float(np.sqrt(samples * features)))

    def factors(self, law: Law, N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
        """Return q = |n| and r = (T^2 n^2 + S^2 / N)^1/2."""
        T, S = law.norm(D), D * law.mean(lambda x: x)
        return HALF_NORMAL, np.sqrt((T * HALF_NORMAL) ** 2 + S**2 / N)

    def fixed_factors(self, theta: np.ndarray, N: int) -> tuple[float, float]:
        """Return (T^2 + S^2 / N)^1/2 twice: the mean of a column is 0."""
        T, S = float(np.linalg.norm(theta)), float(theta.sum())
        size = math.sqrt(T**2 + S**2 / N)
        return size, size
