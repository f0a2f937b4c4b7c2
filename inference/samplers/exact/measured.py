"""How long the exact posterior took where it was measured, for who wants to know beforehand.

The table is `measured.csv`, which `python -m lab.speed.exact` writes. The row for a problem is the
one of its model, kernel and sampler whose numbers of samples and features are nearest, as ratios.
Every row is of a fixed scale, or of the horseshoe's: what a learned `scale` takes was not measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from ardvark.models import Problem

_FILE = Path(__file__).parent / "measured.csv"
FAR = math.log(4.0)
"""Sizes that differ by more than this factor say nothing of each other's time."""


@dataclass(frozen=True)
class Measured:
    """What `exact` took on one problem, the median over seeds, two cores.

    Attributes
    ----------
    model, kernel, data, sampler : str
        What was sampled, and by what.
    N, D : int
        Samples and features.
    seconds, gigabytes : float
        Of sampling, without compilation; the largest resident memory of the process.
    converged : bool
        Whether every run had converged when it ended.
    """

    model: str
    kernel: str
    data: str
    sampler: str
    N: int
    D: int
    seconds: float
    gigabytes: float
    converged: bool

    def far(self, N: int, D: int) -> float:
        """Return how far its sizes are from others: the larger |log ratio|."""
        return max(abs(math.log(self.N / N)), abs(math.log(self.D / D)))

    def text(self) -> str:
        """Return the row in words."""
        took = f"{self.seconds:.0f} s" if self.seconds < 120 else f"{self.seconds / 60:.0f} min"
        end = "converged after" if self.converged else "had not converged after"
        return f"{self.data} ({self.N} x {self.D}): {end} {took}, {self.gigabytes:.1f} GB"


@cache
def table() -> tuple[Measured, ...]:
    """Return every row."""
    rows = pd.read_csv(_FILE, na_filter=False, true_values=["yes"], false_values=["no"])
    return tuple(Measured(**{str(k): v for k, v in row.items()}) for row in rows.to_dict("records"))


def nearest(problem: Problem, sampler: str) -> Measured | None:
    """Return the row that is nearest to a problem; None if none is within a factor of four.

    There is none for a learned scale.
    """
    if problem.hypers.learned_scale is not None:
        return None
    kernel = "" if problem.kernel is None else problem.kernel.name
    N, D = problem.X.shape
    wanted = (problem.spec.name, kernel, sampler)
    near = [
        row
        for row in table()
        if (row.model, row.kernel, row.sampler) == wanted and row.far(N, D) <= FAR
    ]
    return min(near, key=lambda row: row.far(N, D), default=None)


ALIKE, NEAR, OTHER = 2.0, 3.0, 10.0
"""How far a time may be off either way, as a factor. It is foretold from a problem of the same
model, kernel and sampler with sizes within a factor of one and a half, or of four; or from any
other one by this sampler. Of the eight pairs of alike rows in the table six are within two, and all
within three."""
_ALIKE = math.log(1.5)
COMPILING = 20.0
"""Seconds that models and their functions take to make, at most, beside sampling."""


def span(problem: Problem, sampler: str) -> tuple[float, float, Measured] | None:
    """Return how long `exact` may take, from and to (seconds), and the row that says so.

    Time is taken to grow with the number of cells of X. A learned scale, another model or another
    kernel is foretold from what is there, with a wide range. None: this sampler was not measured.
    """
    N, D = problem.X.shape
    row = nearest(problem, sampler)
    if row is not None:
        factor = ALIKE if row.far(N, D) <= _ALIKE else NEAR
    else:
        mine = [row for row in table() if row.sampler == sampler]
        if not mine:
            return None
        same = [row for row in mine if row.model == problem.spec.name]
        row, factor = min(same or mine, key=lambda row: row.far(N, D)), OTHER
    seconds = row.seconds * N * D / (row.N * row.D)
    return seconds / factor, seconds * factor, row


def likely(problem: Problem, sampler: str) -> str:
    """Return how long `exact` may take, as a range in words; "" if that was not measured."""
    found = span(problem, sampler)
    if found is None:
        return ""
    low, high, row = found
    times = between(low, high + COMPILING)
    return f"may take {times} on two free cores, foretold from {row.model} on {row.text()}"


def likely_folds(problems: Sequence[tuple[Problem, str]], folds: float, share: float) -> str:
    """Return how long fits of several problems without each of some folds may take, in words.

    Parameters
    ----------
    problems : sequence of (Problem, str)
        Of all rows, and the sampler of each.
    folds : float
        How many fits of each follow one another.
    share : float
        The part of the draws of a whole fit that each of them needs.
    """
    found = [span(*own) for own in problems]
    spans = [own for own in found if own is not None]
    if not spans:
        return ""
    low = sum(own[0] for own in spans) * folds * share
    high = sum(own[1] for own in spans) * folds * share + COMPILING * len(spans)
    times = between(low, high)
    rest = len(found) - len(spans)
    more = f", and {rest} more that were not measured" * (rest > 0)
    return f"may take {times} on two free cores{more}"


def between(low: float, high: float) -> str:
    """Return a range of seconds in words.

    Examples
    --------
    >>> from ardvark.inference.samplers.exact.measured import between
    >>> between(40.0, 300.0)
    '40 s to 5 min'
    """
    return f"{_in_words(low)} to {_in_words(high)}"


def _in_words(seconds: float) -> str:
    if seconds < 120.0:
        return f"{max(seconds, 1.0):.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.0f} h"
