"""The polynomial kernel."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..effects import polynomial_effects, primal_effects
from .kernel import HALF_NORMAL, LINEAR, POLYNOMIAL, Kernel, Law
from .linear import Linear

_NODE, _WEIGHT = np.polynomial.hermite_e.hermegauss(40)
_WEIGHT = _WEIGHT / _WEIGHT.sum()  # of a standard normal


@dataclass(frozen=True)
class Polynomial(Kernel):
    """K(x, z) = (1 + sum_k theta_k x_k z_k) ** P; degree P = 1 is a linear kernel and a constant.

    Parameters
    ----------
    degree : int
        P, at least 1.
    """

    degree: int = 1
    name: ClassVar[str] = "polynomial"
    has_degree: ClassVar[bool] = True
    sparse_defaults: ClassVar[tuple[float, float, tuple[float, ...]]] = (5.0, 20.0, (4.0, 2.0, 1.0))

    @classmethod
    def of(cls, degree: int) -> "Polynomial":
        """Return the kernel of a degree."""
        return cls(degree)

    @property
    def code(self) -> int:
        """`POLYNOMIAL`; `LINEAR` where the degree is 1."""
        return LINEAR if self.degree == 1 else POLYNOMIAL

    def gram(self, X: Any, Z: Any, theta: Any, xp: Any = np) -> Any:
        """Return (1 + X diag(theta) Z')^P."""
        return (1.0 + (X * theta) @ Z.T) ** self.degree

    def of_inner(self, inner: np.ndarray, out: np.ndarray) -> None:
        """Write (1 + inner)^P."""
        np.power(1.0 + inner, self.degree, out=out)

    def product(self, X: Any, Z: Any, theta: Any, a: Any) -> Any:
        """Return the symbolic K a; at degree 1 without K."""
        if self.is_primal:
            return a.sum() + Linear().product(X, Z, theta, a)
        return super().product(X, Z, theta, a)

    def decision(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray, bias: Any = None
    ) -> np.ndarray:
        """Return eta; at degree 1 that of the linear kernel with the bias b + sum_j a_j."""
        if not self.is_primal:
            return super().decision(X, Z, theta, a, bias)
        ones = a.sum(-1)
        return Linear().decision(X, Z, theta, a, ones if bias is None else bias + ones)

    def gram_and_slope(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return K and W = P (1 + X diag(theta) Z')^(P-1)."""
        base, P = 1.0 + (X * theta) @ Z.T, self.degree
        return base**P, None if P == 1 else P * base ** (P - 1)

    def feature_effects(
        self,
        X: np.ndarray,
        Z: np.ndarray,
        theta: np.ndarray,
        a: np.ndarray,
        threshold: float = 0.0,
    ) -> np.ndarray:
        """Return the effects by the binomial theorem; at degree 1 those of primal weights."""
        if self.is_primal:
            return primal_effects(X, theta * (a @ Z))
        return polynomial_effects(X, Z, theta, a, self.degree)

    def feature_cost(self, terms: float) -> float:
        """Return 2 P multiply-adds a term: each power is read anew."""
        return 0.0 if self.is_primal else terms * 2 * self.degree

    @property
    def feature_unit(self) -> float:
        """1 / P, for the slope of the kernel there is P."""
        return 1.0 / self.degree

    @property
    def least_shape(self) -> float:
        """P, for eta grows like theta^P."""
        return float(self.degree)

    @property
    def dense_shape(self) -> float:
        """P + 1/2."""
        return self.degree + 0.5

    def scales(self, N: int, D: float) -> tuple[float, float]:
        """Return N^-1/2 and 1 / D."""
        return 1.0 / np.sqrt(N), 1.0 / D

    def factors(self, law: Law, N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the q and r of (1 + T n)^P."""
        T, S = law.norm(D), D * law.mean(lambda x: x)
        P = self.degree
        slope = (1.0 + T * _NODE) ** (2 * (P - 1)) @ _WEIGHT
        own = max(float((1.0 + S) ** (2 * (P - 1)) - slope), 0.0)  # a row with itself, beyond slope
        q = P * np.sqrt(slope * HALF_NORMAL**2 + 3.0 * own / N)
        return q, self._column(T * HALF_NORMAL, S, N)

    def fixed_factors(self, theta: np.ndarray, N: int) -> tuple[float, float]:
        """Return (Var(1 + T n)^P + ((1 + S)^P - E(1 + T n)^P)^2 / N)^1/2, and about 0."""
        T, S = float(np.linalg.norm(theta)), float(theta.sum())
        square = (1.0 + T * _NODE) ** (2 * self.degree) @ _WEIGHT
        size = math.sqrt(float(square) + (1.0 + S) ** (2 * self.degree) / N)
        return float(self._column(np.array([T]), S, N)[0]), size

    def _column(self, t: np.ndarray, own: float, N: int) -> np.ndarray:
        """Return the sd of (1 + t n)^P over rows, of which one is the centre: (1 + own)^P."""
        K = (1.0 + t[:, None] * _NODE) ** self.degree
        mean = K @ _WEIGHT
        variance = (K - mean[:, None]) ** 2 @ _WEIGHT
        return np.sqrt(variance + ((1.0 + own) ** self.degree - mean) ** 2 / N)
