"""The stored figures of a row: by fold, as a mean, beside the printed ones and beside L1's."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from lab.papers import store
from lab.papers.agreement import agreement, jackknife
from lab.papers.protocols import LEAVE_ONE_OUT, Group, Row
from lab.papers.statistics import Folds, f1_other, mean_error, paired
from lab.papers.tables import GROUPS

REFERENCE = "l1_logistic"  # every row is set beside it, fold by fold
Pair = tuple[float, float]  # a mean and its error


@dataclass(frozen=True)
class Result:
    """What is stored of a row: its folds, failed ones left out, or one step of its path."""

    group: Group
    row: Row
    lines: dict[int, store.Stored]  # by fold
    failed: int
    folder: Path

    @property
    def name(self) -> str:
        """Return the row's full name."""
        return f"{self.group.name}/{self.row.label}"

    @property
    def finished(self) -> int:
        """Return the number of folds whose fit converged."""
        return sum(x["status"] == "finished" for x in self.lines.values())

    @property
    def whole(self) -> bool:
        """Say whether all folds of the protocol are there."""
        return len(self.lines) == self.group.folds

    @property
    def collapsed(self) -> int:
        """Return the number of folds that lost all weights, if they are most; 0 if they are not."""
        count = sum("the fit collapsed" in x.get("reason", "") for x in self.lines.values())
        return count if 2 * count > len(self.lines) else 0

    def at(self, step: str) -> "Result":
        """Return the folds as they were at a step of the path."""
        paths = store.paths_of(self.group, self.row, self.folder)
        return replace(self, lines={k: x[step] for k, x in paths.items() if step in x})

    def by_fold(self, column: str) -> Folds:
        """Return a column's values, where there are any; "f1_other" is of y = 0."""
        if column == "f1_other":
            return {
                fold: f1_other(float(x["f1"]), float(x["accuracy"]), int(x["n_test"]))
                for fold, x in self.lines.items()
                if x["f1"] != ""
            }
        if column not in store.COLUMNS:
            return {}
        return {fold: float(x[column]) for fold, x in self.lines.items() if x[column] != ""}

    def mean(self, column: str) -> Pair | None:
        """Return the mean: accuracy and F1 in percent, what is kept as the group says."""
        found = self.by_fold(column)
        if not found:
            return None
        if column in ("features", "samples"):
            return mean_error(value * self._unit(column, fold) for fold, value in found.items())
        right = column.startswith("accuracy") and self.group.protocol is LEAVE_ONE_OUT
        mean, error = mean_error(found.values(), right)
        unit = 1.0 if column in ("log_score", "seconds") else 100.0
        return unit * mean, unit * error

    def _unit(self, column: str, fold: int) -> float:
        if not self.group.percent:
            return 1.0
        size = self.group.sizes[1] if column == "features" else float(self.lines[fold]["n_train"])
        return 100.0 / size

    def beside(self, other: "Result", column: str) -> Pair | None:
        """Return the mean difference to another row on the folds of both."""
        mean, error, count = paired(self.by_fold(column), other.by_fold(column))
        unit = 1.0 if column == "log_score" else 100.0
        return (unit * mean, unit * error) if count else None

    @cached_property
    def selections(self) -> np.ndarray:
        """Return what was selected (folds, D)."""
        kept = [x["selected"] for x in self.lines.values() if x["selected"] or x["features"] == "0"]
        S = np.zeros((len(kept), self.group.sizes[1]), dtype=bool)
        for i, text in enumerate(kept):
            S[i, [int(k) for k in text.split()]] = True
        return S

    def stability(self) -> dict[str, Pair]:
        """Return how much selections agree; empty where they are not kept."""
        if len(self.selections) < 2:
            return {}
        found = agreement(self.selections)
        return {name: (value, jackknife(self.selections, name)) for name, value in found.items()}


def results(group: Group, folder: Path) -> Iterator[Result]:
    """Return a group's rows that have stored folds."""
    for row in group.rows:
        lines = store.lines_of(group, row, folder)
        done = {fold: x for fold, x in lines.items() if x["status"] != "failed"}
        if done:
            yield Result(group, row, dict(sorted(done.items())), len(lines) - len(done), folder)


def everything(folder: Path) -> dict[str, Result]:
    """Return all rows that have stored folds, by name."""
    return {found.name: found for group in GROUPS for found in results(group, folder)}
