"""The slice step of Neal (2003, doi 10.1214/aos/1056562461) in one number, compiled."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

MOST = 200  # long before this the interval is shorter than rounding error; so it ends at NaN too


def slice_step(log_density: Callable[..., float]) -> Callable[..., float]:
    """Return the compiled step of a density, to be called in a compiled function with a cache.

    A function that is made here has no cache of its own: its caller stores it.

    Parameters
    ----------
    log_density : compiled function
        Takes u and the parameters, and returns the log density up to a constant.

    Returns
    -------
    compiled function
        Takes a generator, a width and a tuple of the parameters. Returns u after one step from
        u = 0, which steps out by the width and shrinks.
    """

    @numba.njit(nogil=True)
    def step(rng: np.random.Generator, width: float, parameters: tuple[Any, ...]) -> float:
        level = log_density(0.0, *parameters) - rng.standard_exponential()
        low = -width * rng.random()
        high = low + width
        for _ in range(MOST):
            if not log_density(low, *parameters) > level:
                break
            low -= width
        for _ in range(MOST):
            if not log_density(high, *parameters) > level:
                break
            high += width
        for _ in range(MOST):
            u = low + (high - low) * rng.random()
            if log_density(u, *parameters) >= level:
                return u
            if u < 0.0:
                low = u
            else:
                high = u
        return 0.0

    return step
