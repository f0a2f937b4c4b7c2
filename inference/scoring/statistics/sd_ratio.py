"""The posterior sd divided by the reference's; a method with a ratio below 1 is overconfident.

It is read twice: the median over components, and the component that is farthest from 1. The noise
of the latter is that of the sds themselves, in the same random halves for all components (a joint
block bootstrap). The first order would be wrong by much for the heavy tails of a weight that is
active in few draws.
"""

import dataclasses

import numpy as np

from ..draws import Draws, ReferenceDraws
from ..floors import OfAverage, floor, scale
from ..statistic import UNKNOWN, Statistic, factor
from .error import silent


def sd_ratio(fit: Draws, reference: Draws) -> np.ndarray:
    """Return sd / sd of the reference (K,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = fit.sd / reference.sd
    return np.where(silent(fit, reference), np.nan, value)


def squares(reference: ReferenceDraws) -> np.ndarray:
    """Return the terms whose average is, to first order, a log sd: d log sd = d var / (2 var)."""
    z = reference.standardised()
    return 0.5 * z * z


_SQUARES = OfAverage(squares)


def halves(reference: ReferenceDraws) -> np.ndarray:
    """Return the largest |log ratio| (REPEATS,) of the sds of two halves, at their own size."""
    z = reference.standardised()
    first, second = (reference.block_means(v) for v in (z, z * z))  # (B, k)
    positive = np.maximum(reference.halves, 0.0)
    logs = []
    for weights in (positive, positive - reference.halves):
        mean, square = weights @ first, weights @ second
        logs.append(0.5 * np.log(np.maximum(square - mean * mean, np.finfo(float).tiny)))
    more = np.abs(reference.contrast).max(axis=1) / np.abs(reference.halves).max(axis=1)
    return np.abs(logs[0] - logs[1]).max(axis=1) * more


def noise_of_worst(_: Statistic, fit: Draws, reference: ReferenceDraws) -> tuple[float, float]:
    """Return floor and median of the largest |log ratio| of a second run's sds."""
    blocks, own = _SQUARES.known(reference)
    if blocks is None:
        return UNKNOWN
    return floor(
        scale(fit, reference, own) * reference.once("sds of halves", lambda: halves(reference))
    )


SD_RATIO = Statistic(
    name="sd_ratio",
    of="continuous",
    compute=sd_ratio,
    over="median",
    perfect=1.0,
    apart=factor,
    floor=_SQUARES,
)

SD_RATIO_WORST = dataclasses.replace(
    SD_RATIO,
    name="sd_ratio_worst",
    over="worst",
    floor=noise_of_worst,
)
"""The same of the component that is farthest from 1."""
