"""The weights of a probit model where rows outnumber columns: nothing is larger than N x K.

The steps are those of `probit_steps.py`, numbered as in `jcfo`, in the K columns of H (N, K)
instead of the N rows. With S = diag(sd), the prior standard deviations of beta, and C the factor

    C C' = I + S H'H S,    R = H S C'^-1  (N, K),    u = R'z,

    P = (I + H S^2 H')^-1 = I - R R',    E[beta | z] = S C'^-1 u,    beta = S C'^-1 (u + e),

with e ~ Normal(0, I). So z_i | z_-i, of precision P_ii = 1 - |R_i|^2, costs O(K) (Holmes, Held
2006, doi 10.1214/06-BA105, sec. 2.1). H'H may be computed once; R costs O(N K^2).
"""

import math

import numba
import numpy as np
from scipy import linalg

from .positive_draw import positive_draw

_LEAST = 1e-15  # of P_ii, which rounding may bring to 0 where one row determines a weight


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def row_products(R: np.ndarray, i: int, u: np.ndarray) -> tuple[float, float]:
    """Return R_i'u and R_i'R_i."""
    product, square = 0.0, 0.0
    for k in range(R.shape[1]):
        product += R[i, k] * u[k]
        square += R[i, k] * R[i, k]
    return product, square


@numba.njit(cache=True, nogil=True)
def latent_scan(
    rng: np.random.Generator,
    R: np.ndarray,
    sign: np.ndarray,
    scans: int,
    z: np.ndarray,
    u: np.ndarray,
) -> None:
    """Draw z_i | z_-i on the sides of the labels, `scans` times; u = R'z follows."""
    N, K = R.shape
    for _ in range(scans):
        for i in range(N):
            fitted, leverage = row_products(R, i, u)
            linear = fitted - leverage * z[i]
            new = sign[i] * positive_draw(rng, sign[i] * linear, max(1.0 - leverage, _LEAST))
            change = new - z[i]
            z[i] = new
            for k in range(K):
                u[k] += change * R[i, k]


def draw_weights(
    rng: np.random.Generator,
    H: np.ndarray,
    gram: np.ndarray,
    sd: np.ndarray,
    sign: np.ndarray,
    scans: int,
    z: np.ndarray,
    beta: np.ndarray,
) -> None:
    """Step 4: z with beta integrated out, `scans` times; the scale of z; then beta given z.

    Parameters
    ----------
    rng : Generator
    H : array (N, K)
    gram : array (K, K)
        H'H.
    sd : array (K,)
        Prior standard deviations of beta.
    sign : array (N,)
        -1 or 1: the side of 0 of each z.
    scans : int
    z : array (N,)
        Moved in place.
    beta : array (K,)
        Filled with a draw.
    """
    K = len(sd)
    C = linalg.cholesky(np.eye(K) + sd[:, None] * gram * sd, lower=True, check_finite=False)
    R = linalg.solve_triangular(C, (H * sd).T, lower=True, check_finite=False).T  # (N, K)
    R = np.ascontiguousarray(R)
    u = R.T @ z
    latent_scan(rng, R, sign, scans, z, u)
    # z'P z as the sum of two squares, which do not cancel: errors, and weights over their sd
    white = linalg.solve_triangular(C, R.T @ z, lower=True, trans="T", check_finite=False)
    error = z - H @ (sd * white)
    g = math.sqrt(rng.chisquare(len(z)) / (error @ error + white @ white))
    z *= g
    noise = rng.standard_normal(K)
    noise = linalg.solve_triangular(C, noise, lower=True, trans="T", check_finite=False)
    beta[:] = sd * (g * white + noise)
