"""Products of the data with feature weights, for samplers whose eta is X diag(theta) Z' a."""

import numpy as np

from ardvark.models import Problem

_BLOCK = 4096  # features that a product handles at once, so that no (N, D) temporary is needed


def by_features(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return X' (D, N) and Z' (D, B) as copies, since a scan reads one feature after the other.

    Both are one array if the centres are the rows.
    """
    Xt = np.array(problem.X.T, order="C")
    return Xt, Xt if problem.Z is problem.X else np.array(problem.Z.T, order="C")


def weighted_products(Xt: np.ndarray, theta: np.ndarray, Zt: np.ndarray) -> np.ndarray:
    """Return X diag(theta) Z' (N, B) for theta >= 0, a block of features at a time.

    If Z is X it is R'R with R = diag(theta)^1/2 X', of which BLAS computes only half.
    """
    out = np.zeros((Xt.shape[1], Zt.shape[1]))
    weight = np.sqrt(theta) if Xt is Zt else theta
    for at in range(0, len(theta), _BLOCK):
        block = slice(at, at + _BLOCK)
        R = Xt[block] * weight[block, None]
        out += R.T @ (R if Xt is Zt else Zt[block])
    return out


def distances(Xt: np.ndarray, theta: np.ndarray, Zt: np.ndarray) -> np.ndarray:
    """Return the weighted square distances sum_k theta_k (x_ik - z_jk)^2 (N, B)."""

    def squares(rows: np.ndarray) -> np.ndarray:
        return np.einsum("dn,dn,d->n", rows, rows, theta)

    of_x = squares(Xt)
    of_z = of_x if Zt is Xt else squares(Zt)
    return np.maximum(of_x[:, None] + of_z - 2.0 * weighted_products(Xt, theta, Zt), 0.0)
