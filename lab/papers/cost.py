"""What a row has cost, and an estimate of what its other folds will cost.

The estimate is the mean time of the row's own stored folds. Without any, it is that of a like row,
which has the same model and method: on the same data if there is one, else on data of the nearest
size, in proportion to N x D. For `exact` there are also the times in `samplers/exact/measured.csv`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import log
from pathlib import Path
from statistics import fmean

from ardvark.inference.samplers.exact import measured
from lab import lines
from lab.papers import store
from lab.papers.protocols import Group, Row
from lab.papers.tables import GROUPS

Seconds = Mapping[str, list[float]]
"""The seconds of the stored folds of each row, by its full name."""


@dataclass(frozen=True)
class Cost:
    """The cost of one row.

    Attributes
    ----------
    stored, folds : int
        Folds that are stored, and folds of the protocol, or fewer if fewer are asked for.
    spent : float
        Seconds of the stored folds.
    fold : float, optional
        Seconds of another fold, an estimate; None if there is no like row.
    like : str
        The row that the estimate is from.
    """

    stored: int
    folds: int
    spent: float
    fold: float | None
    like: str

    @property
    def to_come(self) -> float | None:
        """Return the seconds of the folds that are missing, an estimate."""
        left = max(self.folds - self.stored, 0)
        return 0.0 if left == 0 else None if self.fold is None else left * self.fold


def stored_seconds(folder: Path) -> dict[str, list[float]]:
    """Return the seconds of all stored folds, by row."""
    found: dict[str, list[float]] = {}
    for group in GROUPS:
        held = lines.read(store.file_of(group, folder))
        mine = {f"{group.name}/{row.label}": store.identity(group, row) for row in group.rows}
        for line in held:
            if line["identity"] == mine.get(line["row"]) and line["status"] != "failed":
                found.setdefault(line["row"], []).append(float(line["seconds"]))
    return found


def cost(group: Group, row: Row, seconds: Seconds, most: int | None = None) -> Cost:
    """Return the cost of a row of which `most` folds are asked for, all by default."""
    name = f"{group.name}/{row.label}"
    mine, folds = seconds.get(name, []), min(group.folds, most or group.folds)
    if mine:
        return Cost(len(mine), folds, sum(mine), fmean(mine), name)
    nearest = min(_like(group, row, seconds), default=None)
    if nearest is None:
        return Cost(0, folds, 0.0, *_of_exact(group, row))
    *_, other, ratio = nearest
    return Cost(0, folds, 0.0, fmean(seconds[other]) * ratio, other)


def _like(
    group: Group, row: Row, seconds: Seconds
) -> Iterable[tuple[bool, float, bool, str, float]]:
    """Yield the like rows that are stored; the least is the nearest."""
    for other in GROUPS:
        ratio = _size(group.name) / _size(other.name)
        for found in other.rows:
            name = f"{other.name}/{found.label}"
            if (found.model, found.method) == (row.model, row.method) and name in seconds:
                differ = found.hypers != row.hypers
                yield other.data != group.data, abs(log(ratio)), differ, name, ratio


def _of_exact(group: Group, row: Row) -> tuple[float | None, str]:
    """Return the time of `exact` as it was measured for this model, and where."""
    N, D, _ = group.sizes
    kernel = row.hypers.get("kernel")
    mine = [
        found
        for found in measured.table()
        if found.model == row.model and kernel in (None, found.kernel)
    ]
    if row.method != "exact" or not mine:
        return None, ""
    near = min(mine, key=lambda found: found.far(N, D))
    ratio = N * D / (near.N * near.D)
    return near.seconds * ratio, f"{near.model} on {near.data}, {near.N} x {near.D}"


@lru_cache
def _size(name: str) -> int:
    group = next(group for group in GROUPS if group.name == name)
    return group.sizes[0] * group.sizes[1]


class Plan:
    """How much of a run is done, in seconds of computing by the estimates.

    Attributes
    ----------
    folds : Counter
        The folds that are left, by row.
    done, left : float
        Estimated seconds of the folds that have ended, and of the others.
    """

    def __init__(self, folds: Counter[str], each: Mapping[str, float | None]) -> None:
        known = [x for x in each.values() if x is not None]
        usual = fmean(known) if known else 1.0  # then folds are counted
        self._each = {name: usual if x is None else x for name, x in each.items()}
        self.folds = folds
        self.done = 0.0
        self.left = sum(count * self._each[name] for name, count in folds.items())

    def ended(self, name: str) -> None:
        """Count a fold of a row."""
        self.folds[name] -= 1
        self.done += self._each[name]
        self.left -= self._each[name]

    def time_left(self, elapsed: float) -> float:
        """Return the seconds until the end, at the pace of the run so far."""
        return self.left * elapsed / self.done if self.done else self.left
