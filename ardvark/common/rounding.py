"""When two numbers are one number that was computed in two ways."""

from typing import Any

import numpy as np

ROUNDING = 16 * np.finfo(float).eps
"""The largest relative difference of such numbers. An operation in float64 is off by at most half
of its eps, so after sixteen operations two results are at most 16 eps apart."""


def differ(a: Any, b: Any) -> np.ndarray:
    """Return where two arrays differ by more than rounding.

    What is left of a difference, such as 0.1 + 0.2 - 0.3, cannot be told from a small number.

    Examples
    --------
    >>> from ardvark.common.rounding import differ
    >>> differ([0.1 + 0.2, 1e9, 1e-9, 0.0], [0.3, 1e9 + 1e-3, 1.1e-9, 0.0])
    array([False,  True,  True, False])
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    with np.errstate(over="ignore"):
        return np.abs(a - b) > ROUNDING * np.maximum(np.abs(a), np.abs(b))
