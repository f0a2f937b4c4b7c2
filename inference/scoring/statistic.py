"""A statistic: one way to say how far a fit is from the reference, and everything about it.

Its value and what a perfect method scores, how components become one number, its noise floor, its
words in a verdict, the limits a verdict rests on, and its columns in the table are one declaration.
To add one, write a file in `statistics/` and a line in the registry there: distances, table, page,
documentation and verdicts follow.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from .draws import Kind

Word = Literal["good", "rough", "bad", "unknown"]
QUOTABLE = ("eta", "feature_weight", "sample_weight", "primal_weight")
"""Quantities whose means and intervals a reader quotes: a limit looks at these unless it names
others."""
UNKNOWN = (float("nan"), float("nan"))
"""The floor of a statistic whose noise is not known."""


class Shown(NamedTuple):
    """How the distance of one quantity is shown in the table: its heading, digits in print."""

    heading: str
    digits: int


@dataclass(frozen=True)
class Limit:
    """Up to where a distance is good for a purpose, and up to where it is rough.

    Attributes
    ----------
    good, rough : float
        Limits of the deviation from what a perfect method would score.
    why : str
        The reason, for a reader who quotes the numbers.
    quantities : tuple of str
        The quantities whose distance is taken; the worst of them counts.
    told : int
        Of several limits of a purpose that lead to the same word, the smallest is told.
    """

    good: float
    rough: float
    why: str
    quantities: tuple[str, ...] = QUOTABLE
    told: int = 0

    def word(self, deviation: float) -> Word:
        """Return the word for a deviation."""
        if np.isnan(deviation):
            return "unknown"
        return "good" if deviation <= self.good else "rough" if deviation <= self.rough else "bad"


@dataclass(frozen=True)
class Score:
    """One distance of one method.

    Attributes
    ----------
    statistic : Statistic
        What it is.
    value : float
    deviation : float
        How far it is from what a perfect method would score (`Statistic.distance`).
    floor, typical : float
        The 95 % quantile and the median of that deviation for a second run of the reference, at
        the method's effective number of draws; NaN where the reference has no two parts.
    """

    statistic: "Statistic"
    value: float
    deviation: float
    floor: float = float("nan")
    typical: float = float("nan")

    @property
    def inside(self) -> bool:
        """Whether the number cannot be told from that of a second run."""
        return bool(self.deviation <= self.floor)

    @property
    def beyond(self) -> float:
        """The deviation, 0 where it is inside the floor; NaN where it is not known."""
        return 0.0 if self.inside else self.deviation

    @property
    def noise(self) -> str:
        """The floor in words, "" where it is 0 or not known."""
        return self.statistic.floor_text(self.floor) if self.floor > 0.0 else ""

    def words(self, quantity: str) -> str:
        """Return the distance of that quantity in words, with its noise floor."""
        percent = "" if np.isnan(self.value) else f"{self.value:.0%}".replace("%", " %")
        text = self.statistic.phrase.format(quantity=quantity, value=self.value, percent=percent)
        return f"{text} (noise: {self.noise})" if self.noise else text


# --- one number of many components ----------------------------------------------------------------


def worst(components: np.ndarray) -> np.ndarray:
    """Return the largest of components (..., K): one is enough to be wrong. NaN says nothing."""
    known = ~np.isnan(components)
    if not known.any():
        return np.full(components.shape[:-1], np.nan)
    return np.asarray(np.where(known, components, -np.inf).max(axis=-1))


def middle(components: np.ndarray) -> np.ndarray:
    """Return the median of components (..., K), of those that are not NaN."""
    if np.isnan(components).all():
        return np.full(components.shape[:-1], np.nan)
    return np.asarray(np.nanmedian(components, -1))


def average(components: np.ndarray) -> np.ndarray:
    """Return the mean of components (..., K), of those that are not NaN."""
    if np.isnan(components).all():
        return np.full(components.shape[:-1], np.nan)
    return np.asarray(np.nanmean(components, -1))


def whole(value: np.ndarray) -> np.ndarray:
    """Return a statistic that is one number already."""
    return value


# --- how far from perfect -------------------------------------------------------------------------


def gap(value: float, perfect: float) -> float:
    """Return the distance of a number from what a perfect method would score."""
    return float(np.abs(value - perfect))


def factor(value: float, perfect: float) -> float:
    """Return the size of the logarithm of a ratio: half and twice are equally far."""
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(value / perfect)))


def excess(value: float, perfect: float) -> float:
    """Return how far a number is above the perfect one; below it nothing is wrong."""
    return float(np.maximum(value - perfect, 0.0))


def two_digits(floor: float) -> str:
    """Return a floor as it is printed."""
    return f"{floor:.2g}"


# --- the declaration ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Statistic:
    """One declaration of a statistic.

    Attributes
    ----------
    name : str
        In `Comparison.distances`.
    of : str
        The kind of quantity that has it (`draws.Kind`).
    compute : callable
        (draws of the fit, draws of the reference) -> components (K,), or one number. NaN for a
        component that says nothing.
    noise : callable
        The rule of its noise floor (`floors.py`): (statistic, fit, reference) -> floor and median
        of the deviation of a second run.
    phrase : str
        Its words, with the places {quantity}, {value} (a number, with a format) and {percent}.
    reduce : callable
        Components (..., K) -> (...): `worst`, `middle`, `average`, or `whole`.
    perfect : float
        What a perfect method scores.
    expected : callable, optional
        Reference -> what a second run of it scores, where finite draws make that differ from
        `perfect`.
    distance : callable
        (value, perfect) -> deviation, 0 at best: `gap`, `factor` or `excess`.
    floor_text : callable
        How a floor is printed.
    limits : dict of Limit
        By purpose (`verdicts/purposes.py`): what a verdict says of it. None: it is only shown.
    columns : dict of Shown
        By quantity: the columns that it has in the table.
    meaning : str
        What its columns say, for a reader of the table. Statistics with one meaning are printed
        together.
    halves : bool
        Whether the reference's own row compares one half of its chains with the other by it.
    """

    name: str
    of: Kind
    compute: Callable[[Any, Any], np.ndarray]
    noise: Callable[["Statistic", Any, Any], tuple[float, float]]
    phrase: str
    reduce: Callable[[np.ndarray], np.ndarray] = whole
    perfect: float = 0.0
    expected: Callable[[Any], float] | None = None
    distance: Callable[[float, float], float] = gap
    floor_text: Callable[[float], str] = two_digits
    limits: Mapping[str, Limit] = field(default_factory=dict)
    columns: Mapping[str, Shown] = field(default_factory=dict)
    meaning: str = ""
    halves: bool = True

    def value(self, found: Any, exact: Any) -> float:
        """Return the statistic of a fit's draws as one number."""
        return float(self.reduce(self.compute(found, exact)))

    def deviation(self, value: float) -> float:
        """Return how far a value is from the perfect one."""
        return self.distance(value, self.perfect)

    def score(self, found: Any, exact: Any) -> Score:
        """Return the distance of a fit from the reference, with its floor."""
        value = self.value(found, exact)
        target = self.perfect if self.expected is None else self.expected(exact)
        deviation = self.distance(value, target)
        floor = UNKNOWN if np.isnan(deviation) else self.noise(self, found, exact)
        return Score(self, value, deviation, *floor)

    def column(self, quantity: str) -> str:
        """Return the name of the column of that quantity."""
        return f"{self.name}_{quantity}"
