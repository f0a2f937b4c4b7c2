"""What every kernel can do: the matrix, its derivatives, effects, and what a prior needs of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
import pytensor.tensor as pt
from scipy import special

from ..effects import live

LINEAR, POLYNOMIAL, RBF = range(3)
"""How K depends on theta, for compiled loops. A polynomial of degree 1 is `LINEAR`."""
HALF_NORMAL = special.ndtri(0.5 + 0.5 * (np.arange(100) + 0.5) / 100)
"""Equally likely points of |n|, n ~ N(0, 1)."""


class Law(Protocol):
    """What a prior says about the size of one feature weight and of many."""

    def mean(self, f: Callable[[np.ndarray], np.ndarray]) -> float:
        """Return E f(theta_k)."""

    def norm(self, count: int) -> float:
        """Return the expected Euclidean norm of `count` weights."""


class Kernel(ABC):
    """A kernel K_theta(x, z) without its theta. X (N, D) are rows and Z (B, D) basis centres."""

    name: ClassVar[str]
    degree: int = 0
    """P of the polynomial kernel; 0: there is no 1 in the kernel."""
    has_degree: ClassVar[bool] = False
    """Whether `degree` is a setting of the kernel."""
    is_linear: ClassVar[bool] = False
    """Whether K = X diag(theta) Z', so that (theta / r, r a) gives the same K a."""
    by_distance: ClassVar[bool] = False
    """Whether K depends on theta through weighted distances, not through inner products."""
    sparse_defaults: ClassVar[tuple[float, float, tuple[float, ...]]]
    """Active features, at most D/3; active samples, at most B/5 (in tiny data at least two, or
    half), and at most so many for each active feature: the first of these under which both priors
    are sparse. A sample is visible through the features that are, so few features carry few
    samples. From simulation of the prior: beside more samples their weights are no longer sparse
    (many rows), and beside fewer no scale makes the features visible (rbf, fat data)."""

    @classmethod
    def of(cls, degree: int) -> "Kernel":
        """Return the kernel of a degree, which those without one ignore."""
        return cls()

    @property
    @abstractmethod
    def code(self) -> int:
        """Which kernel it is, for compiled loops."""

    @property
    def is_primal(self) -> bool:
        """Whether K a is affine in x: feature k has a weight of its own, theta_k (Z'a)_k."""
        return self.code == LINEAR

    # --- the kernel matrix and its sums -----------------------------------------------------------

    @abstractmethod
    def gram(self, X: Any, Z: Any, theta: Any, xp: Any = np) -> Any:
        """Return the kernel matrix K_theta(x_i, z_j), shape (N, B).

        PFCVM (2), PFCVM (3), JCFO (8); at theta = delta zeta the rbf kernel is FS-SKLR (36).

        Parameters
        ----------
        X, Z : array (N, D), array (B, D)
            Inputs and basis centres, standardised.
        theta : array (D,)
            Feature weights, not negative.
        xp : module
            ``numpy``, or ``pytensor.tensor`` for a symbolic result.
        """

    @abstractmethod
    def of_inner(self, inner: np.ndarray, out: np.ndarray) -> None:
        """Fill `out` (N, B) with K, a function of weighted inner products, or of distances."""

    def signed_gram(self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray) -> np.ndarray | None:
        """Return `gram` for theta of any sign; None where it is no kernel for a negative theta."""
        return self.gram(X, Z, theta)

    def product(self, X: Any, Z: Any, theta: Any, a: Any) -> Any:
        """Return the symbolic K_theta(X, Z) a, shape (N,), for theta (D,) and a (B,)."""
        return self.gram(X, Z, theta, pt) @ a

    def decision(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray, bias: Any = None
    ) -> np.ndarray:
        """Return eta (..., N) = b + K_theta(X, Z) a for theta (..., D), a (..., B) and b (...).

        One draw at a time, unless the kernel is primal: a stack of kernel matrices is never held.
        """
        draws = np.broadcast_shapes(theta.shape[:-1], a.shape[:-1])
        thetas = np.broadcast_to(theta, (*draws, X.shape[1]))
        weights = np.broadcast_to(a, (*draws, len(Z)))
        out = np.empty((*draws, len(X)))
        for i in np.ndindex(draws):
            out[i] = self.gram(X, Z, thetas[i]) @ weights[i]
        return out if bias is None else np.asarray(bias)[..., None] + out

    # --- derivatives by theta ---------------------------------------------------------------------

    @abstractmethod
    def gram_and_slope(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return K (N, B) and W (N, B): dK_ij / dtheta_k = W_ij x_ik z_jk, W None where it is 1.

        A kernel of distances has (x_ik - z_jk)^2 in the place of x_ik z_jk.
        """

    def gradient(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """Return D_ik = d eta_i / d theta_k (N, D), PFCVM sec. 3.1, at theta (D,) and a (B,).

            linear        x_ik sum_j a_j z_jk
            polynomial    P x_ik sum_j a_j (1 + S_ij)^(P-1) z_jk,   S = X diag(theta) Z'
            rbf           -sum_j a_j K_ij (x_ik - z_jk)^2

        The polynomial's power is taken of 1 + S, not of K: K^((P-1)/P), as PFCVM's paper prints it,
        loses the sign of 1 + S for even P and is undefined below zero for odd P. Products of (N, B)
        and (B, D) matrices.
        """
        W = self.gram_and_slope(X, Z, theta)[1]
        return X * ((a if W is None else W * a) @ Z)

    def pulled_back(
        self, X: np.ndarray, Z: np.ndarray, W: np.ndarray | None, r: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """Return sum_ij r_i a_j dK_ij / dtheta_k (D,), never with an (N, B, D) array.

        W is that of `gram_and_slope`, r (N,), a (B,).
        """
        if W is None:
            return (r @ X) * (a @ Z)
        return np.einsum("ik,ik->k", X, (r[:, None] * W * a) @ Z)

    # --- what eta loses without a feature or a sample ---------------------------------------------

    @abstractmethod
    def feature_effects(
        self,
        X: np.ndarray,
        Z: np.ndarray,
        theta: np.ndarray,
        a: np.ndarray,
        threshold: float = 0.0,
    ) -> np.ndarray:
        """Return the effect of each feature in each of S draws, shape (S, D); see `effects.py`.

        Parameters
        ----------
        X, Z : array (N, D), array (B, D)
            Rows and basis centres, standardised.
        theta, a : array (S, D), array (S, B)
            The kernel's feature weights and the sample weights of each draw.
        threshold : float
            Effects of the rbf kernel may be off by a thousandth of it, never to its other side.
        """

    def feature_cost(self, terms: float) -> float:
        """Return the cost of one draw's feature effects in multiply-adds; `terms` is N B D."""
        return 0.0

    def sample_effects(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """Return the effect |a_j| sd_i(K_ij) of each sample in each of S draws, shape (S, B).

        One kernel matrix a draw, of the features and samples whose weights are not 0; one for all
        draws where they share theta. Arguments as for `feature_effects`.
        """
        if (theta == theta[:1]).all():
            return np.abs(a) * self.gram(X, Z, theta[0]).std(axis=0)
        out = np.zeros(a.shape)
        for s in range(len(a)):
            x, z, t, on = live(X, Z, theta[s], a[s])
            out[s, on] = np.abs(a[s, on]) * self.gram(x, z, t).std(axis=0)
        return out

    # --- the direction of an effect ---------------------------------------------------------------

    def partial_effects(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """Return the average partial effect of each feature in each of S draws, shape (S, D).

        It is the mean over the rows x_i of d eta_i / d x_ik, and has a sign. With W of
        `gram_and_slope` it is

            inner products    theta_k / N sum_ij a_j W_ij z_jk; the primal weight where W is 1
            distances         2 theta_k / N sum_ij a_j W_ij (x_ik - z_jk)

        One kernel matrix a draw, of the features and samples whose weights are not 0; one for all
        draws where they share theta. Arguments as for `feature_effects`.
        """
        if self.is_primal:
            return theta * (a @ Z)
        if (theta == theta[:1]).all():
            return self._mean_slopes(X, Z, theta[0], a)
        out = np.zeros(theta.shape)
        for s in range(len(theta)):
            x, z, t, on = live(X, Z, theta[s], a[s])
            out[s, theta[s] != 0.0] = self._mean_slopes(x, z, t, a[s : s + 1, on])[0]
        return out

    def _mean_slopes(
        self, X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """Return the average partial effects (S, D) of draws a (S, B) that share theta (D,)."""
        W = self.gram_and_slope(X, Z, theta)[1]
        assert W is not None  # the kernel is not primal
        sums = (a * W.sum(axis=0)) @ Z  # (S, D): sum_ij a_j W_ij z_jk
        if self.by_distance:
            return 2.0 * theta * ((a @ W.T) @ X - sums) / len(X)
        return theta * sums / len(X)

    # --- what a prior needs to know of it ---------------------------------------------------------

    @property
    def feature_unit(self) -> float:
        """The feature weight at which a feature adds one logit, to first order, at x = z = 1."""
        return 1.0

    @property
    def least_shape(self) -> float:
        """The Gamma shape of theta's precision above which eta has a variance without a slab.

        It is 0 where the model's own moments, and no power of theta, set the limit.
        """
        return 0.0

    @property
    def dense_shape(self) -> float:
        """The Gamma shape of theta's precision in the dense prior."""
        return 1.5

    @abstractmethod
    def scales(self, N: int, D: float) -> tuple[float, float]:
        """Return the prior scales (sample weight, feature weight) that keep eta in a useful range.

        With unit scales the prior says nothing: at 72 x 7129 the prior median of abs(eta) is
        thousands under the linear kernel. The scales here keep it between 0.5 and 3 at every size
        from (30, 6) to (72, 7129); ``tests/models`` measures it.
        """

    def mask_scale(self, samples: float, features: float) -> float:
        """Return the theta of every feature that a mask leaves on, for so many expected to be."""
        return self.scales(1, features)[1]

    @abstractmethod
    def factors(self, law: Law, N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
        """Return q and r of `sparsity.py`, each on equally likely points, for theta of a law."""

    @abstractmethod
    def fixed_factors(self, theta: np.ndarray, N: int) -> tuple[float, float]:
        """Return sd (r) and root mean square of a column of K, feature weights theta (D,).

        A sample is visible by the first. The second is what its weight adds to eta, the mean over
        rows included: it is the unit of its slab.
        """
