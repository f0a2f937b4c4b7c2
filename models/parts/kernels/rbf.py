"""The rbf kernel."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..distance import decayed, square_distance
from ..effects import EXPONENTIAL, rbf_effects, rbf_effects_of_one_theta
from ..kernel_product import RbfProduct
from .kernel import HALF_NORMAL, RBF, Kernel, Law

_CANCELLED = 0.8
"""What is left of an rbf feature's effect to first order, where terms of unequal sign cancel and
1 - exp(-u) bends below u: from simulation at the three sizes of `tests/models`."""


@dataclass(frozen=True)
class Rbf(Kernel):
    """K(x, z) = exp(-sum_k theta_k (x_k - z_k)^2)."""

    name: ClassVar[str] = "rbf"
    by_distance: ClassVar[bool] = True
    sparse_defaults: ClassVar[tuple[float, float, int]] = (3.0, 40.0, 2)

    @property
    def code(self) -> int:
        """`RBF`."""
        return RBF

    def gram(self, X: Any, Z: Any, theta: Any, xp: Any = np) -> Any:
        """Return exp of the negative weighted square distances."""
        return decayed(square_distance(X, Z, theta), xp)

    def of_inner(self, inner: np.ndarray, out: np.ndarray) -> None:
        """Write exp(-inner) of distances that are not negative."""
        np.exp(-inner, out=out)

    def signed_gram(self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray) -> np.ndarray | None:
        """Return K; None where a negative theta lets a distance fall below 0, and K rise above 1.

        A distance counts as negative beyond a relative 1e-10, which is rounding.
        """
        distance = square_distance(X, Z, theta)
        slack = 1e-10 * (1.0 + np.abs(X**2 @ theta).max())
        if (theta < 0.0).any() and distance.min() < -slack:
            return None
        return decayed(distance)

    def product(self, X: Any, Z: Any, theta: Any, a: Any) -> Any:
        """Return the symbolic K a, whose gradient uses K again."""
        return RbfProduct()(X, Z, theta, a, return_list=True)[0]

    def gram_and_slope(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return K and W = -K."""
        K = self.gram(X, Z, theta)
        return K, -K

    def gradient(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """Return -sum_j a_j K_ij (x_ik - z_jk)^2."""
        weighted = self.gram(X, Z, theta) * a  # (N, B)
        # (x - z)^2 = x^2 - 2 x z + z^2, summed over j: no (N, B, D) array
        return 2.0 * X * (weighted @ Z) - X**2 * weighted.sum(1, keepdims=True) - weighted @ Z**2

    def pulled_back(
        self, X: np.ndarray, Z: np.ndarray, W: np.ndarray | None, r: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """Return sum_ij r_i a_j W_ij (x_ik - z_jk)^2 (D,)."""
        G = r[:, None] * W * a  # (N, B)
        squares = np.einsum("i,ik,ik->k", G.sum(axis=1), X, X)
        squares += np.einsum("j,jk,jk->k", G.sum(axis=0), Z, Z)
        return squares - 2.0 * np.einsum("ik,ik->k", X, G @ Z)

    def feature_effects(
        self,
        X: np.ndarray,
        Z: np.ndarray,
        theta: np.ndarray,
        a: np.ndarray,
        threshold: float = 0.0,
    ) -> np.ndarray:
        """Return the effects; the draws of a fixed theta share one kernel matrix."""
        if (theta == theta[:1]).all():
            return rbf_effects_of_one_theta(X, Z, theta[0], a)
        return rbf_effects(X, Z, theta, a, threshold)

    def feature_cost(self, terms: float) -> float:
        """Return what an exponential a term costs."""
        return EXPONENTIAL * terms

    def scales(self, N: int, D: float) -> tuple[float, float]:
        """Return 3 N^-1/2 and 1 / (2 D)."""
        return 3.0 / np.sqrt(N), 1.0 / (2.0 * D)

    def factors(self, law: Law, N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
        """Return q = 0.8 k1 (3 + 6 n^2 + n^4)^1/2 and r = (k2 + 1 / N)^1/2."""
        k1 = law.mean(lambda x: (1.0 + 8.0 * x) ** -0.25) ** D
        k2 = law.mean(lambda x: (1.0 + 8.0 * x) ** -0.5) ** D
        q = _CANCELLED * k1 * np.sqrt(3.0 + 6.0 * HALF_NORMAL**2 + HALF_NORMAL**4)
        return q, np.array([math.sqrt(k2 + 1.0 / N)])

    def fixed_factor(self, theta: np.ndarray, N: int) -> float:
        """Return (prod_d (1 + 8 theta_d)^-1/2 + 1 / N)^1/2."""
        return math.sqrt(float(np.prod((1.0 + 8.0 * theta) ** -0.5)) + 1.0 / N)
