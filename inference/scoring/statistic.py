"""A statistic: one measure of how far a fit is from the reference, declared in one place.

The declaration holds how the statistic is computed, what a perfect method scores, how components
are combined into one number, and the noise floor. To add a statistic, write a file in
`statistics/`, a line in the registry there, and its words in `target/words.py`. Distances, report
and documentation then show it; a verdict rests on it once it has a row in `limits.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..target import words
from .draws import Kind

UNKNOWN = (float("nan"), float("nan"))
"""The floor of a statistic whose noise is not known."""


class Distance(NamedTuple):
    """How far one fit is from the reference, by one statistic: a row of `Comparison.distances`.

    Attributes
    ----------
    fit, quantity, statistic : str
        Which fit, what was compared, and how.
    value : float
        What was measured.
    deviation : float
        How far the value is from the score of a perfect method (`Statistic.apart`).
    floor, typical : float
        The 95 % quantile and the median of that deviation for a second run of the reference, at
        the method's effective number of draws; NaN if the reference cannot be split in two.
    component : str
        The component that has the value, in words; "" if it is not that of one component.
    """

    fit: str
    quantity: str
    statistic: str
    value: float
    deviation: float
    floor: float = float("nan")
    typical: float = float("nan")
    component: str = ""

    @property
    def inside(self) -> bool:
        """Whether the value is within Monte Carlo error: the deviation is not above the floor."""
        return bool(self.deviation <= self.floor)


def distances_in(table: pd.DataFrame) -> list[Distance]:
    """Return the rows of `Comparison.distances`, or of what it is joined to."""
    return [Distance(*row) for row in table[list(Distance._fields)].itertuples(index=False)]


# --- how far from perfect -------------------------------------------------------------------------


def gap(value: ArrayLike, perfect: ArrayLike) -> np.ndarray:
    """Return the distance of numbers from the score of a perfect method."""
    return np.abs(np.subtract(value, perfect))


def factor(value: ArrayLike, perfect: ArrayLike) -> np.ndarray:
    """Return the absolute value of the log ratio: half and twice are equally far."""
    with np.errstate(divide="ignore"):
        return np.abs(np.log(np.divide(value, perfect)))


def excess(value: ArrayLike, perfect: ArrayLike) -> np.ndarray:
    """Return how far numbers are above the perfect score; lower values count as perfect."""
    return np.maximum(np.subtract(value, perfect), 0.0)


# --- the declaration ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Statistic:
    """The declaration of a statistic.

    Attributes
    ----------
    name : str
        Its name in `Comparison.distances`.
    of : str
        The kind of quantity that it applies to (`draws.Kind`).
    compute : callable
        (draws of the fit, draws of the reference) -> components (K,), or one number. NaN for a
        component that is not informative.
    floor : callable
        How its noise floor is computed (`floors.py`): (statistic, fit, reference) -> floor and
        median of the deviation of a second run.
    over : {"worst", "median", "mean", ""}
        Which of the components, or which summary of them, is its value; "" if `compute` returns one
        number. The worst is farthest from `perfect`.
    perfect : float
        The score of a perfect method.
    expected : callable, optional
        (draws of the fit, draws of the reference) -> what each component (K,) scores on average
        if the fit is right, where finite draws make this differ from `perfect`.
    apart : callable
        (value, perfect) -> deviation, 0 at best: `gap`, `factor` or `excess`.
    halves : bool
        Whether the reference's own row shows it, for one half of the chains against the other.
    """

    name: str
    of: Kind
    compute: Callable[[Any, Any], np.ndarray]
    floor: Callable[["Statistic", Any, Any], tuple[float, float]]
    over: Literal["worst", "median", "mean", ""] = ""
    perfect: float = 0.0
    expected: Callable[[Any, Any], np.ndarray] | None = None
    apart: Callable[[ArrayLike, ArrayLike], np.ndarray] = gap
    halves: bool = True

    def reduce(self, components: np.ndarray) -> np.ndarray:
        """Return components (..., K) as one number (...); those that are NaN do not count."""
        if not self.over:
            return components
        if np.isnan(components).all():
            return np.full(components.shape[:-1], np.nan)
        if self.over == "median":
            return np.asarray(np.nanmedian(components, axis=-1))
        if self.over == "mean":
            return np.asarray(np.nanmean(components, axis=-1))
        at = self._worst(components, self.perfect)
        return np.take_along_axis(components, np.expand_dims(at, -1), -1)[..., 0]

    def _worst(self, components: np.ndarray, right: ArrayLike) -> np.ndarray:
        """Return the place (...) of the component that is farthest from what is right."""
        known = ~np.isnan(components)
        apart = np.where(known, self.apart(components, right), -np.inf)
        return np.asarray(apart.argmax(axis=-1))

    def value(self, fit: Any, reference: Any) -> float:
        """Return the statistic of a fit's draws as one number."""
        return float(self.reduce(self.compute(fit, reference)))

    def deviation(self, value: float) -> float:
        """Return how far a value is from the perfect one."""
        return float(self.apart(value, self.perfect))

    def distance(self, fit: Any, reference: Any, name: str = "", quantity: str = "") -> Distance:
        """Return the distance of the fit of that name from the reference, with its floor."""
        components = self.compute(fit, reference)
        right = np.full(components.shape, self.perfect)
        if self.expected is not None:
            right = np.where(np.isnan(components), np.nan, self.expected(fit, reference))
        component = ""
        if self.over == "worst" and not np.isnan(components).all():
            at = int(self._worst(components, right))
            component = reference.labels[at] if len(reference.labels) == len(components) else ""
            components, right = components[[at]], right[[at]]
        value = float(self.reduce(components))
        target = self.perfect if self.expected is None else float(self.reduce(right))
        deviation = float(self.apart(value, target))
        floor = UNKNOWN if np.isnan(deviation) else self.floor(self, fit, reference)
        return Distance(name, quantity, self.name, value, deviation, *floor, component)

    def floor_text(self, floor: float) -> str:
        """Return a floor in words; "" if it is 0 or not known."""
        if not floor > 0.0:
            return ""
        return f"factor {np.exp(floor):.2f}" if self.apart is factor else f"{floor:.2g}"

    def words(self, distance: Distance) -> str:
        """Return a distance in words, with its noise floor."""
        percent = "" if np.isnan(distance.value) else f"{distance.value:.0%}".replace("%", " %")
        text = words.STATISTICS[self.name].format(
            quantity=distance.quantity,
            component=distance.component or distance.quantity,
            value=distance.value,
            percent=percent,
        )
        noise = self.floor_text(distance.floor)
        return f"{text} (noise: {noise})" if noise else text
