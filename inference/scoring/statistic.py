"""A statistic: one measure of how far a fit is from the reference, declared in one place.

The declaration holds how the statistic is computed, what a perfect method scores, how components
are combined into one number, the noise floor, the wording and limits of a verdict, and the columns
of the table. To add a statistic, write a file in `statistics/` and a line in the registry there.
Distances, table, report, documentation and verdicts then use it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from .draws import Kind

Word = Literal["good", "rough", "bad", "unknown"]
QUOTABLE = ("eta", "feature_weight", "sample_weight", "primal_weight")
"""Quantities whose means and intervals a reader may report. A limit applies to these unless it
names others."""
HIDES = 1.5
"""Noise above so many times the limit hides a deviation of twice the limit."""
SURE = 2.51
"""A verdict needs more certainty than a table of many numbers, in which one in twenty is beyond its
95 % quantile. From the median to the 99.9 % quantile it is so many times as far as to the 95 %
quantile, by Gumbel's law of maxima. Its tail is above that of a normal or of its absolute value."""
PARAMETERS = ("scalar", "precision")
"""What a model has besides weights: its bias, scales and precisions."""
Reduce = Callable[[np.ndarray], np.ndarray]
UNKNOWN = (float("nan"), float("nan"))
"""The floor of a statistic whose noise is not known."""


class Shown(NamedTuple):
    """How the distance of one quantity is shown in the table: heading, and number of digits."""

    heading: str
    digits: int


@dataclass(frozen=True)
class Limit:
    """The largest distance that is good for a purpose, and the largest that is rough.

    Attributes
    ----------
    good, rough : float
        Limits on the deviation from the score of a perfect method.
    why : str
        The reason for the limits, for a reader who reports the numbers.
    quantities : tuple of str
        The quantities whose distance is used; the worst of them counts.
    told : int
        If several limits of a purpose lead to the same word, the one with the smallest `told` is
        reported.
    needed : bool
        Whether "good" needs a noise floor that does not hide a deviation of twice `good`. False
        where another statistic sees the same defect with less noise.
    """

    good: float
    rough: float
    why: str
    quantities: tuple[str, ...] = QUOTABLE
    told: int = 0
    needed: bool = True

    def word(self, score: "Score") -> Word:
        """Return the word for a distance: what is within its noise counts as none."""
        deviation = score.counted
        if np.isnan(deviation) or (deviation <= self.good and self.hidden(score)):
            return "unknown"
        return "good" if deviation <= self.good else "rough" if deviation <= self.rough else "bad"

    def hidden(self, score: "Score") -> bool:
        """Whether the noise of a distance could hide a deviation of twice the limit."""
        return self.needed and not score.bound <= HIDES * self.good


@dataclass(frozen=True)
class Score:
    """One distance of one method.

    Attributes
    ----------
    statistic : Statistic
        What was measured.
    value : float
    deviation : float
        How far the value is from the score of a perfect method (`Statistic.distance`).
    floor, typical : float
        The 95 % quantile and the median of that deviation for a second run of the reference, at
        the method's effective number of draws; NaN if the reference cannot be split in two.
    where : str
        The component that has the value, in words; "" if it is not that of one component.
    """

    statistic: "Statistic"
    value: float
    deviation: float
    floor: float = float("nan")
    typical: float = float("nan")
    where: str = ""

    @property
    def inside(self) -> bool:
        """Whether the value is within Monte Carlo error: not above the floor."""
        return bool(self.deviation <= self.floor)

    @property
    def beyond(self) -> float:
        """The deviation; 0 if it is not above the floor, NaN if it is not known."""
        return 0.0 if self.inside else self.deviation

    @property
    def bound(self) -> float:
        """What a second run of the reference exceeds once in a thousand times (`SURE`)."""
        return self.typical + SURE * (self.floor - self.typical)

    @property
    def counted(self) -> float:
        """The deviation as a verdict counts it: 0 if it is not above `bound`."""
        return 0.0 if self.deviation <= self.bound else self.deviation

    @property
    def noise(self) -> str:
        """The floor in words; "" if it is 0 or not known."""
        return self.statistic.floor_text(self.floor) if self.floor > 0.0 else ""

    def words(self, quantity: str) -> str:
        """Return the distance of a quantity in words, with its noise floor."""
        percent = "" if np.isnan(self.value) else f"{self.value:.0%}".replace("%", " %")
        text = self.statistic.phrase.format(
            quantity=self.where or quantity, value=self.value, percent=percent
        )
        return f"{text} (noise: {self.noise})" if self.noise else text


# --- combining components into one number ---------------------------------------------------------


def worst(components: np.ndarray) -> np.ndarray:
    """Return the largest of components (..., K), because each one counts; NaN is ignored."""
    known = ~np.isnan(components)
    if not known.any():
        return np.full(components.shape[:-1], np.nan)
    return np.asarray(np.where(known, components, -np.inf).max(axis=-1))


def farthest(distance: Callable[[float, float], float], perfect: float) -> Reduce:
    """Return the reduction to the component (..., K) that is farthest from the perfect score."""

    def of(components: np.ndarray) -> np.ndarray:
        apart = np.vectorize(distance, otypes=[float])(components, perfect)
        known = ~np.isnan(apart)
        if not known.any():
            return np.full(components.shape[:-1], np.nan)
        at = np.where(known, apart, -np.inf).argmax(axis=-1)
        return np.take_along_axis(components, np.expand_dims(at, -1), -1)[..., 0]

    return of


def middle(components: np.ndarray) -> np.ndarray:
    """Return the median of those components (..., K) that are not NaN."""
    if np.isnan(components).all():
        return np.full(components.shape[:-1], np.nan)
    return np.asarray(np.nanmedian(components, -1))


def average(components: np.ndarray) -> np.ndarray:
    """Return the mean of those components (..., K) that are not NaN."""
    if np.isnan(components).all():
        return np.full(components.shape[:-1], np.nan)
    return np.asarray(np.nanmean(components, -1))


def whole(value: np.ndarray) -> np.ndarray:
    """Return a statistic that is already one number."""
    return value


# --- how far from perfect -------------------------------------------------------------------------


def gap(value: float, perfect: float) -> float:
    """Return the distance of a number from the score of a perfect method."""
    return float(np.abs(value - perfect))


def factor(value: float, perfect: float) -> float:
    """Return the absolute value of the log ratio: half and twice are equally far."""
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(value / perfect)))


def excess(value: float, perfect: float) -> float:
    """Return how far a number is above the perfect score; lower values count as perfect."""
    return float(np.maximum(value - perfect, 0.0))


def two_digits(floor: float) -> str:
    """Return a floor as it is printed."""
    return f"{floor:.2g}"


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
    noise : callable
        How its noise floor is computed (`floors.py`): (statistic, fit, reference) -> floor and
        median of the deviation of a second run.
    phrase : str
        Its wording, with the fields {quantity}, {value} (a number, with a format) and {percent}.
    reduce : callable
        Components (..., K) -> (...): `worst`, `farthest`, `middle`, `average`, or `whole`.
    perfect : float
        The score of a perfect method.
    expected : callable, optional
        Reference -> the score of a second run of it, if finite draws make this differ from
        `perfect`.
    distance : callable
        (value, perfect) -> deviation, 0 at best: `gap`, `factor` or `excess`.
    floor_text : callable
        How a floor is printed.
    limits : dict of Limit
        By purpose (`verdicts/purposes.py`): the limits that a verdict uses. If empty, the statistic
        is shown but decides nothing.
    columns : dict of Shown
        By quantity: its columns in the table.
    meaning : str
        What its columns mean, for a reader of the table. Statistics with the same meaning are
        printed together.
    halves : bool
        Whether the reference's own row shows it, for one half of the chains against the other.
    one : bool
        Whether `reduce` picks one component, which is then named.
    """

    name: str
    of: Kind
    compute: Callable[[Any, Any], np.ndarray]
    noise: Callable[["Statistic", Any, Any], tuple[float, float]]
    phrase: str
    reduce: Reduce = whole
    perfect: float = 0.0
    expected: Callable[[Any], float] | None = None
    distance: Callable[[float, float], float] = gap
    floor_text: Callable[[float], str] = two_digits
    limits: Mapping[str, Limit] = field(default_factory=dict)
    columns: Mapping[str, Shown] = field(default_factory=dict)
    meaning: str = ""
    halves: bool = True
    one: bool = False

    def value(self, found: Any, exact: Any) -> float:
        """Return the statistic of a fit's draws as one number."""
        return float(self.reduce(self.compute(found, exact)))

    def deviation(self, value: float) -> float:
        """Return how far a value is from the perfect one."""
        return self.distance(value, self.perfect)

    def score(self, found: Any, exact: Any) -> Score:
        """Return the distance of a fit from the reference, with its floor."""
        components = self.compute(found, exact)
        value = float(self.reduce(components))
        target = self.perfect if self.expected is None else self.expected(exact)
        deviation = self.distance(value, target)
        floor = UNKNOWN if np.isnan(deviation) else self.noise(self, found, exact)
        return Score(self, value, deviation, *floor, self._where(components, value, exact))

    def _where(self, components: np.ndarray, value: float, exact: Any) -> str:
        """Return the name of the component that has the value, if one reduction picks one."""
        labels = getattr(exact, "labels", ())
        if not self.one or np.isnan(value) or len(labels) != components.size:
            return ""
        return str(labels[int(np.flatnonzero(components == value)[0])])

    def column(self, quantity: str) -> str:
        """Return the name of the column of that quantity."""
        return f"{self.name}_{quantity}"
