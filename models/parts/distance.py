"""The weighted distance between rows and centres, and the rbf kernel as a function of it."""

from typing import Any

import numpy as np


def square_distance(X: Any, Z: Any, theta: Any, inner: Any = None) -> Any:
    """Return sum_k theta_k (x_ik - z_jk)^2, shape (N, B), up to rounding, which may go below 0.

    |x - z|^2 = |x|^2 + |z|^2 - 2 <x, z>, each weighted by theta, needs no (N, B, D) array. `inner`
    is <x, z> (N, B) if it is known already.
    """
    inner = (X * theta) @ Z.T if inner is None else inner
    square_x = (X * X) @ theta  # (N,)
    square_z = (Z * Z) @ theta  # (B,)
    return square_x[:, None] + square_z[None, :] - 2.0 * inner


def decayed(distance: Any, xp: Any = np) -> Any:
    """Return exp(-distance), the rbf kernel, in the same shape; a negative distance counts as 0.

    Rounding can give -1e-16 where x = z. `xp` is ``numpy`` or ``pytensor.tensor``.
    """
    return xp.exp(-xp.maximum(distance, 0.0))
