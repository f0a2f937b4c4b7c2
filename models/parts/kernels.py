"""Feature-weighted kernels, and the prior scales that make each of them useful.

One definition serves NumPy and PyTensor: ``xp`` is the array namespace (``numpy`` or
``pytensor.tensor``), so the two forms cannot drift apart. Feature weights theta >= 0, shape (D,):

    linear        K(x, z) = sum_k theta_k x_k z_k
    polynomial    K(x, z) = (1 + sum_k theta_k x_k z_k) ** P
    rbf           K(x, z) = exp(-sum_k theta_k (x_k - z_k)^2)

Every form is matrix products of shapes (N, D) and (D, B): O(N B D) time, O(N D + N B) memory.
The linear kernel has no 1/D factor: scale belongs to the priors.
"""

from typing import Any, Literal, get_args

import numpy as np

from ardvark.common.validate import one_of

Kernel = Literal["linear", "polynomial", "rbf"]
KERNELS: tuple[str, ...] = get_args(Kernel)


def gram(
    X: Any, Z: Any, theta: Any, *, kernel: str = "linear", degree: int = 1, xp: Any = np
) -> Any:
    """Return the kernel matrix K_theta(x_i, z_j), shape (N, B).

    PFCVM (2), PFCVM (3), JCFO (8); at theta = delta zeta the rbf kernel is FS-SKLR (36).

    Parameters
    ----------
    X, Z : array (N, D), array (B, D)
        Inputs and basis centres, standardised.
    theta : array (D,)
        Feature weights, not negative.
    kernel : {"linear", "polynomial", "rbf"}
        Which of the three formulas above.
    degree : int
        P of the polynomial kernel, at least 1; the others ignore it.
    xp : module
        ``numpy``, or ``pytensor.tensor`` for a symbolic result.
    """
    one_of("kernel", kernel, KERNELS)
    weighted = X * theta  # (N, D)
    inner = weighted @ Z.T  # (N, B)
    if kernel == "linear":
        return inner
    if kernel == "polynomial":
        return (1.0 + inner) ** degree
    distance = square_distance(X, Z, theta, inner)
    return xp.exp(-xp.maximum(distance, 0.0))  # rounding can leave -1e-16 where x = z


def square_distance(X: Any, Z: Any, theta: Any, inner: Any = None) -> Any:
    """Return sum_k theta_k (x_ik - z_jk)^2, shape (N, B), exact to rounding on either side of 0.

    |x - z|^2 = |x|^2 + |z|^2 - 2 <x, z>, each weighted by theta: no (N, B, D) array. `inner` is
    <x, z> (N, B) where it is known already.
    """
    inner = (X * theta) @ Z.T if inner is None else inner
    square_x = (X * X) @ theta  # (N,)
    square_z = (Z * Z) @ theta  # (B,)
    return square_x[:, None] + square_z[None, :] - 2.0 * inner


def linear_decision(X: Any, Z: Any, theta: Any, weight: Any) -> Any:
    """Return K_theta(X, Z) weight for the linear kernel, shape (N,), without forming K.

    X diag(theta) (Z' weight) is two matrix-vector products, O((N + B) D) instead of O(N B D).
    """
    return X @ (theta * (Z.T @ weight))


def default_scales(kernel: str, N: int, D: int) -> tuple[float, float]:
    """Return the prior scales (sample weight, feature weight) that keep eta in a useful range.

    With unit scales the prior says nothing: at 72 x 7129 the prior median of abs(eta) is
    thousands under the linear kernel. The scales here keep it between 0.5 and 3 at every size
    from (30, 6) to (72, 7129); ``tests/models`` measures it.
    """
    one_of("kernel", kernel, KERNELS)
    if kernel == "linear":
        return 1.0, 1.0 / max(D, np.sqrt(N * D))
    if kernel == "polynomial":
        return 1.0 / np.sqrt(N), 1.0 / D
    return 3.0 / np.sqrt(N), 1.0 / (2.0 * D)
