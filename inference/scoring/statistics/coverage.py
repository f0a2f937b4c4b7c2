"""The share of draws inside the reference's central intervals; a larger share is overconfident.

That of the 90 % interval is read twice: the mean over components, and the worst component. It is a
share, so its noise is bounded whatever the tails.
"""

import dataclasses
from functools import partial

import numpy as np

from ..draws import Draws, ReferenceDraws
from ..floors import OfAverage
from ..statistic import PARAMETERS, Limit, Shown, Statistic

_MEANING = (
    "For eta: the share of the method's draws inside the reference's central 50 % and 90 % "
    "intervals. A larger share means that the method is overconfident."
)


def interval(reference: ReferenceDraws, share: float) -> np.ndarray:
    """Return the ends (2, K) of the reference's central interval of that share."""
    tail = 0.5 * (1.0 - share)
    return reference.once(
        ("interval", share), lambda: np.quantile(reference.flat, (tail, 1.0 - tail), axis=0)
    )


def inside(draws: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return which draws (S, K) lie in the intervals with these ends (2, K)."""
    low, high = ends
    return (draws >= low) & (draws <= high)


def coverage(fit: Draws, reference: ReferenceDraws, share: float) -> np.ndarray:
    """Return the share (K,) of the draws in the reference's interval; NaN for a single draw."""
    if len(fit.flat) < 2:
        return np.full(fit.mean.shape, np.nan)
    within = inside(fit.flat, interval(reference, share)).mean(axis=0)
    return np.where(reference.sd == 0.0, np.nan, within)


def _inside(reference: ReferenceDraws, share: float) -> np.ndarray:
    """Return which of the reference's own draws lie in its intervals, (S, k)."""
    live = reference.moves
    return inside(reference.flat[:, live], interval(reference, share)[:, live]).astype(float)


def declared(name: str, share: float, heading: str, place: str, **given: Limit) -> Statistic:
    """Return the statistic for the central interval that contains a given share."""
    noise = OfAverage(partial(_inside, share=share))

    def expected(reference: ReferenceDraws) -> float:
        """Return the coverage that a second run would have.

        If draws repeat, the share of the reference's own draws in its intervals differs from 50 and
        90 %. New draws fall less often into an interval whose ends are quantiles of E draws, by a
        share of 2 / E: the interval from the first to the last draw covers E - 1 of E + 1 gaps.
        """
        own = reference.once((name, "own"), lambda: statistic.value(reference, reference))
        return own * max(0.0, 1.0 - 2.0 / noise.known(reference)[1])

    statistic = Statistic(
        name=name,
        of="continuous",
        compute=partial(coverage, share=share),
        over="mean",
        perfect=share,
        expected=expected,
        floor=noise,
        phrase="{component}: {percent} of the draws lie in " + place,
        limits=given,
        columns={"eta": Shown(heading, 2)},
        meaning=_MEANING,
    )
    return statistic


COVERAGE_50 = declared(
    "coverage_50",
    0.5,
    "in 50 %",
    "the 50 % interval of the reference",
    uncertainty=Limit(
        0.10,
        0.24,
        "At 0.8 times the right sd, 60 % of the draws lie in the central 50 % interval; at 0.6 "
        "times, 74 %.",
        order=3,
    ),
)
COVERAGE_90 = declared("coverage_90", 0.9, "in 90 %", "the 90 % interval of the reference")

COVERAGE_90_WORST = dataclasses.replace(
    COVERAGE_90,
    name="coverage_90_worst",
    over="worst",
    limits={
        "uncertainty": Limit(
            0.06,
            0.2,
            "At 0.8 times the right sd, 96 % of the draws lie in the central 90 % interval; at "
            "1.25 times, 81 %. A component that is shifted by 1 sd has 74 % there.",
            order=2,
        ),
        "parameters": Limit(
            0.06,
            0.2,
            "The same for the bias, the scales and the precisions.",
            quantities=PARAMETERS,
            order=2,
        ),
    },
    columns={},
)
"""The same of the worst component."""
