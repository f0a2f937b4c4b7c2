"""The rules of a verdict on distances: one table, a row for each purpose and statistic.

A row says how far from a perfect score is still good for a purpose, and how far is rough. `limits`
returns the rows as a frame; `judged` joins them to `Comparison.distances` and gives each distance
its word. A rule is changed, added or taken away by its row here, and nowhere else.

A distance within its noise counts as none. A verdict needs more certainty than a table of many
numbers, in which one in twenty is beyond its 95 % quantile. Here noise reaches up to what a second
run of the reference exceeds once in a thousand times. From the median to that quantile it is `SURE`
times as far as to the 95 % quantile, by Gumbel's law of maxima, whose tail is above that of a
normal or of its absolute value.

Noise above `HIDES` times the limit hides a deviation of twice the limit. Then the word is
"unknown", unless what is measured is above the noise. Half a limit is left for the deviation's own
noise, more than one of its sds: it counts in six of seven runs.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd

Word = Literal["good", "rough", "bad", "unknown"]
BEST_FIRST: tuple[Word, ...] = ("good", "unknown", "rough", "bad")
"""Every word, in order."""
HIDES = 1.5
SURE = 2.51
QUOTABLE = ("eta", "feature_weight", "sample_weight", "primal_weight")
"""Quantities whose means and intervals a reader may report."""
PARAMETERS = ("scalar", "precision", "variable")
"""What a model has besides weights: its bias, scales and precisions, and the vectors of a model of
one's own."""


@dataclass(frozen=True)
class Limit:
    """The largest distance that is good for a purpose, and the largest that is rough.

    Attributes
    ----------
    purpose : str
        One of `PURPOSES` (`comparison/verdicts/purposes.py`).
    statistic : str
        One of `STATISTICS`.
    quantities : tuple of str
        The quantities whose distance is used; the worst of them counts.
    good, rough : float
        Limits on the deviation from the score of a perfect method.
    why : str
        The reason for the limits, for a reader who reports the numbers.
    order : int
        If several limits of a purpose lead to the same word, the one with the smallest `order` is
        reported.
    needed : bool
        Whether "good" needs a noise floor that does not hide a deviation of twice `good`. False
        where another statistic sees the same defect with less noise.
    """

    purpose: str
    statistic: str
    quantities: tuple[str, ...]
    good: float
    rough: float
    why: str
    order: int = 0
    needed: bool = True


_NARROWER = (math.log(1.25), math.log(1.0 / 0.6))
LIMITS: list[Limit] = [
    Limit(
        "predictions", "difference", ("probability",), 0.02, 0.15,
        "A difference of 0.02 costs at most 0.001 of the log score where P is near one half. Above "
        "0.02 only the classes may be right. From 0.15 on, P says something else altogether: that "
        "is about the difference between a coin and a probability of two thirds.",
    ),
    Limit(
        "predictions", "agreement", ("probability",), 0.051, 0.10,  # 1 - 38 / 40 is above 0.05
        "A plain classifier would put about one row in ten into another class.",
        order=1,
        needed=False,  # rows near one half change class at no cost; `row` sees the others
    ),
    Limit(
        "predictions", "row", ("probability",), 0.1, 0.5,
        "P of 0.45 is then reported as 0.55 at most. From one half on, a sure row may be in the "
        "other class.",
        order=2,
    ),
    Limit(
        "means", "error", QUOTABLE, 0.25, 1.0,
        "A 90 % interval around a mean that is off by 0.25 sd covers 89 %; by 1 sd, 74 %.",
    ),
    Limit(
        "uncertainty", "sd_ratio_worst", QUOTABLE, *_NARROWER,
        "Intervals are read one by one, so the worst component counts. Good is an sd of 0.8 to "
        "1.25 times the right one, rough of 0.6 to 1.67 times. What lies in the 90 % interval "
        "shows such a defect with less noise where tails are heavy.",
        order=1,
        needed=False,
    ),
    Limit(
        "uncertainty", "coverage_90", QUOTABLE, 0.06, 0.22,
        "At 1.25 times the right sd, 96 % of the posterior lies in the central 90 % interval; at "
        "0.85 times, 84 %; at 0.6 times, 68 %. Of a component that is shifted by 1 sd, 74 % does. "
        "An interval that is too narrow is judged more strictly than one that is too wide, which "
        "can be off by 0.1 at most.",
        order=2,
    ),
    Limit(
        "uncertainty", "coverage_50", QUOTABLE, 0.09, 0.19,
        "At 0.8 times the right sd, 41 % of the posterior lies in the central 50 % interval; at "
        "0.6 times, 31 %; at 1.25 times, 60 %.",
        order=3,
    ),
    Limit(
        "uncertainty", "two_sample", QUOTABLE, 0.25, 0.5,
        "A classifier recognises three draws in four of two normals that are 1.35 sds apart. The "
        "accuracy grows with the number of components, so alone it never gives the word bad.",
        order=5,
    ),
    Limit(
        "parameters", "error", PARAMETERS, 0.25, 1.0,
        "The same for the bias, the scales and the precisions.",
    ),
    Limit(
        "parameters", "sd_ratio_worst", PARAMETERS, *_NARROWER,
        "The same for the bias, the scales and the precisions.",
        needed=False,
    ),
    Limit(
        "parameters", "coverage_90", PARAMETERS, 0.06, 0.22,
        "The same for the bias, the scales and the precisions.",
        order=2,
    ),
    Limit(
        "ranking", "captured", ("ranking",), 0.1, 0.4,
        "Of ten equally large features, one is missed; or four.",
    ),
    Limit(
        "ranking", "spearman", ("ranking",), 0.2, 0.5,
        "The rank correlation with the reference's order is then at least 0.8; or 0.5.",
        order=1,
        needed=False,
    ),
    Limit(
        "selection", "p_active", ("selection",), 0.1, 0.3,
        "A feature whose P(effect) is 0.4 is then reported at 0.5 at most; or at 0.7 at most.",
    ),
    Limit(
        "selection", "inclusion", ("feature_weight",), 0.1, 0.3,
        "The same for inclusion probabilities, in models with a feature mask.",
        order=1,
    ),
]  # fmt: skip
"""Every rule. The order is that of the purposes, and within them that in which they are told."""


def limits() -> pd.DataFrame:
    """Return the rules: a row for each purpose, statistic and quantity.

    Examples
    --------
    >>> from ardvark.inference.scoring.limits import limits
    >>> limits().query("purpose == 'predictions'")[["statistic", "quantity", "good", "rough"]]
        statistic     quantity   good  rough
    0  difference  probability  0.020   0.15
    1   agreement  probability  0.051   0.10
    2         row  probability  0.100   0.50
    """
    return _frame(tuple(LIMITS)).copy()


@cache
def _frame(rows: tuple[Limit, ...]) -> pd.DataFrame:
    fields = ("purpose", "statistic", "good", "rough", "order", "needed")
    listed = [
        {"quantity": quantity} | {name: getattr(row, name) for name in fields}
        for row in rows
        for quantity in row.quantities
    ]
    return pd.DataFrame(listed, columns=["quantity", *fields])


def smallest(statistic: str, quantity: str) -> float:
    """Return the smallest deviation that is too large for some purpose; NaN if none looks at it."""
    table = _frame(tuple(LIMITS))
    found = table[(table["statistic"] == statistic) & (table["quantity"] == quantity)]
    return float(found["good"].min()) if len(found) else float("nan")


def judged(distances: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each distance and purpose that looks at it, with a word.

    Parameters
    ----------
    distances : DataFrame
        `Comparison.distances`, or a part of it.

    Returns
    -------
    DataFrame
        The columns of both, and

        counted : the deviation, 0 if it may be noise.

        excess : `counted` in units of the limit for "rough".

        word : "good", "rough", "bad" or "unknown".

    Examples
    --------
    >>> from ardvark.inference.scoring.distances import frame
    >>> from ardvark.inference.scoring.limits import judged
    >>> from ardvark.inference.scoring.statistic import Distance
    >>> off = Distance("advi", "eta", "error", value=0.4, deviation=0.4, floor=0.1, typical=0.05)
    >>> judged(frame([off]))[["purpose", "deviation", "good", "rough", "word"]]
      purpose  deviation  good  rough   word
    0   means        0.4  0.25    1.0  rough
    """
    known = distances[distances["deviation"].notna()]
    table = known.merge(limits(), on=["statistic", "quantity"])
    bound = table["typical"] + SURE * (table["floor"] - table["typical"])
    table["counted"] = table["deviation"].where(~(table["deviation"] <= bound), 0.0)
    hidden = table["needed"] & ~(bound <= HIDES * table["good"])
    fine = table["counted"] <= table["good"]
    table["word"] = np.select(
        [fine & hidden, fine, table["counted"] <= table["rough"]],
        ["unknown", "good", "rough"],
        "bad",
    )
    table["excess"] = table["counted"] / table["rough"]
    return table
