"""What is kept: a line a fold, in one CSV file a table and data set, and one for its paths."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ardvark.common.pieces import Pieces
from ardvark.common.store import identity as hashed
from lab import lines
from lab.papers.fold import DRAWS, INNER, Line, find, run_fold
from lab.papers.protocols import Group, Row
from lab.papers.tables import FILTER, SELECTED
from lab.yardsticks.registry import YARDSTICKS

COLUMNS = (
    "row", "fold", "step", "accuracy", "accuracy_draws", "f1", "log_score", "features", "samples",
    "n_train", "n_test", "seconds", "status", "reason", "chosen", "selected", "identity", "version",
)  # fmt: skip
DIGITS = {"accuracy": 5, "accuracy_draws": 5, "f1": 5, "log_score": 4, "seconds": 2}
Stored = dict[str, str]
Task = tuple[str, int]
"""A row, and one of its folds."""


def identity(group: Group, row: Row) -> str:
    """Hash everything that decides a fold's line, so that a changed setting is computed again."""
    settings = [
        row.model, row.method, row.hypers, row.options, row.grid, row.on_kernel, row.select,
        row.steps, group.protocol.name, group.by_sample, group.data, DRAWS, INNER,
        (SELECTED, FILTER) if row.select else (), *([row.share] if row.share else []),
        *([row.chosen_by] if row.chosen_by else []),
        *([YARDSTICKS[row.method].settings] if row.method in YARDSTICKS else []),
    ]  # fmt: skip
    return hashed(settings, 8, sort_keys=False)


def file_of(group: Group, folder: Path, path: bool = False) -> Path:
    """Return the file of a group's folds, or of its paths."""
    return folder / f"{group.name.replace('/', '_')}{'_paths' if path else ''}.csv"


@dataclass(frozen=True)
class Folds(Pieces[Task, list[Line]]):
    """Folds of rows; those that are stored already are left out by whoever asks (`whole`)."""

    version: str
    folder: Path

    def start(self) -> Callable[[Task], list[Line]]:
        """Return the function that fits one fold."""
        return lambda task: run_fold(*task)

    def failure(self, key: Task, reason: str) -> list[Line]:
        """Return the line of a fold that failed."""
        name, fold = key
        return [{"row": name, "fold": fold, "status": "failed", "reason": reason, "seconds": 0.0}]

    def put(self, key: Task, result: list[Line]) -> None:
        """Add the fold's lines to the group's files, those of its path first."""
        group, row = find(key[0])
        marks = {"identity": identity(group, row), "version": self.version}
        line, *path = ({**x, **marks} for x in result)
        if path:
            append(file_of(group, self.folder, path=True), path)
        append(file_of(group, self.folder), [line])


def tidy(group: Group, folder: Path) -> None:
    """Write a group's files anew: rows as they are declared now, in order, each fold once."""
    for path in (False, True):
        file = file_of(group, folder, path)
        kept: list[Stored] = []
        for row in group.rows:
            if path:
                for _, steps in sorted(paths_of(group, row, folder).items()):
                    kept += steps.values()
            else:
                kept += [line for _, line in sorted(lines_of(group, row, folder).items())]
        if kept != lines.read(file):
            lines.write(file, kept, COLUMNS)


def append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add lines to the file, in one write."""
    lines.append(path, map(_short, rows), COLUMNS)


def _short(line: Mapping[str, Any]) -> Mapping[str, Any]:
    rounded = {k: round(float(line[k]), d) for k, d in DIGITS.items() if line.get(k, "") != ""}
    return {**line, **rounded}


def lines_of(group: Group, row: Row, folder: Path) -> dict[int, Stored]:
    """Return a row's lines by fold, as it is declared now; the last one counts."""
    return {int(x["fold"]): x for x in _lines(group, row, False, folder)}


def paths_of(group: Group, row: Row, folder: Path) -> dict[int, dict[str, Stored]]:
    """Return a row's path of each fold, the lines by step in the order of the steps."""
    found: dict[int, dict[str, Stored]] = {}
    for x in _lines(group, row, True, folder):
        found.setdefault(int(x["fold"]), {})[x["step"]] = x
    steps = [str(step) for step in row.steps]
    return {k: {step: x[step] for step in steps if step in x} for k, x in found.items()}


def whole_paths(group: Group, row: Row, folder: Path) -> list[dict[str, Stored]]:
    """Return the paths of the folds that have all steps."""
    return [p for p in paths_of(group, row, folder).values() if len(p) == len(row.steps)]


def whole(group: Group, row: Row, folder: Path) -> set[int]:
    """Return the folds that need not be computed: fitted, and with the whole path."""
    paths = paths_of(group, row, folder)
    return {
        fold
        for fold, x in lines_of(group, row, folder).items()
        if x["status"] != "failed" and len(paths.get(fold, ())) == len(row.steps)
    }


def _lines(group: Group, row: Row, path: bool, folder: Path) -> list[Stored]:
    """Return a row's lines as it is declared now, of its folds or of its paths."""
    mark = {"row": f"{group.name}/{row.label}", "identity": identity(group, row)}
    return lines.get(file_of(group, folder, path), mark)
