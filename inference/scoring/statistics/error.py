"""How far the posterior mean is from the reference's, in the reference's standard deviations.

For a binary mask it is the difference of the inclusion probabilities, not divided by an sd.

A component that is constant under the reference has no sd. It is left out if the fit agrees with
it, and its error is infinite otherwise.
"""

import numpy as np

from ..draws import Draws, ReferenceDraws
from ..floors import OfAverage
from ..statistic import Statistic

MEAN = OfAverage(ReferenceDraws.standardised)


def silent(fit: Draws, reference: Draws) -> np.ndarray:
    """Return which components (K,) are the same constant in both, and so are not informative."""
    return (reference.sd == 0.0) & (fit.mean == reference.mean) & ~(fit.sd > 0.0)


def error(fit: Draws, reference: Draws) -> np.ndarray:
    """Return |mean - mean of the reference| / sd of the reference, (K,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.abs(fit.mean - reference.mean) / reference.sd
    return np.where(silent(fit, reference), np.nan, value)


def inclusion(fit: Draws, reference: Draws) -> np.ndarray:
    """Return the absolute differences (K,) of the inclusion probabilities."""
    return np.abs(reference.mean - fit.mean)


ERROR = Statistic(
    name="error",
    of="continuous",
    compute=error,
    over="worst",
    floor=MEAN,
)

INCLUSION = Statistic(
    name="inclusion",
    of="mask",
    compute=inclusion,
    over="worst",
    floor=OfAverage(lambda reference: reference.flat),
)
