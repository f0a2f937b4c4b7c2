"""The normal likelihood of logistic regression given omega, in samples or in columns.

With omega_n ~ PG(1, eta_n) the likelihood of eta = beta'H is exp(r'eta - eta'diag(W)eta / 2), with
W = omega and r = y - 1/2 (Polson, Scott, Windle 2013, doi 10.1080/01621459.2013.829001). H (K, N)
has one row for the bias, each covariate and each feature.

As a function of beta it depends on the data through two things only: H diag(omega) H' = L L', and
H r. So a likelihood with K pseudo-samples is the same, up to a constant:

    rows L (K, K),   W = 1,   r = L^-1 H r,   eta = L'beta.

Whatever reads rows, W, r and eta works in either. A step of one weight then costs O(K) instead of
O(N), and forming L O(N K^2), once for each omega. Where N is much larger than K, this is the
cheaper one by orders of magnitude. Nothing here is N x N.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

MOST_COLUMNS = 128
"""Columns up to which one factor costs no more than the steps in samples that it replaces."""


@dataclass
class Working:
    """The normal likelihood exp(r'eta - eta'diag(W)eta / 2) of eta = beta'rows.

    n is the number of samples or of pseudo-samples.

    Attributes
    ----------
    always : array (F, n)
        The rows of the bias and of the covariates.
    rows : array (D, n)
        Those of the features.
    W, r, eta : array (n,)
        eta is at the present weights.
    """

    always: np.ndarray
    rows: np.ndarray
    W: np.ndarray
    r: np.ndarray
    eta: np.ndarray

    @property
    def score(self) -> np.ndarray:
        """The slope r - W eta of the log likelihood (n,), a new array."""
        return self.r - self.W * self.eta

    def moved(self, score: np.ndarray) -> None:
        """Set eta to where the score is as given."""
        self.eta = (self.r - score) / self.W


def in_columns(
    H: np.ndarray, F: int, omega: np.ndarray, r: np.ndarray, beta: np.ndarray
) -> Working:
    """Return the likelihood with one pseudo-sample for each row of H.

    Parameters
    ----------
    H : array (K, N)
        Rows of the bias, the covariates and the features, F of the first two together.
    F : int
    omega, r : array (N,)
    beta : array (K,)
        The present weights.
    """
    L, reduced = factor(H, omega, r)
    return Working(L[:F], L[F:], np.ones(L.shape[1]), reduced, beta @ L)


def factor(H: np.ndarray, omega: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return L with L L' = H diag(omega) H', and x with L x = H r.

    Where the rows of H are dependent, as those of two equal features, the product may be singular
    to rounding. Then L' is the triangular factor of diag(omega)^1/2 H', which always exists.
    """
    try:
        L = linalg.cholesky((H * omega) @ H.T, lower=True, check_finite=False)
    except linalg.LinAlgError:
        root = np.sqrt(omega)
        Q, R = linalg.qr((H * root).T, mode="economic", check_finite=False)
        return np.ascontiguousarray(R.T), Q.T @ (r / root)
    x = linalg.solve_triangular(L, H @ r, lower=True, check_finite=False)
    return np.ascontiguousarray(L), x
