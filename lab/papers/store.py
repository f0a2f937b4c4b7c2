"""What is kept: a line a fold, in one CSV file a table and data set, and one for its paths."""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from lab.papers.fold import DRAWS, INNER, Line, find
from lab.papers.protocols import Group, Row
from lab.papers.tables import FILTER, SELECTED
from lab.yardsticks.registry import YARDSTICKS

COLUMNS = (
    "row", "fold", "step", "accuracy", "accuracy_draws", "f1", "log_score", "features", "samples",
    "n_train", "n_test", "seconds", "status", "reason", "chosen", "selected", "identity", "version",
)  # fmt: skip
DIGITS = {"accuracy": 5, "accuracy_draws": 5, "f1": 5, "log_score": 4, "seconds": 2}
Stored = dict[str, str]


def identity(group: Group, row: Row) -> str:
    """Hash everything that decides a fold's line, so that a changed setting is computed again."""
    settings = [
        row.model, row.method, row.hypers, row.options, row.grid, row.on_kernel, row.select,
        row.steps, group.protocol.name, group.by_sample, group.data, DRAWS, INNER,
        (SELECTED, FILTER) if row.select else (), *([row.share] if row.share else []),
        *([row.chosen_by] if row.chosen_by else []),
        *([YARDSTICKS[row.method].settings] if row.method in YARDSTICKS else []),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(settings, default=str).encode()).hexdigest()[:8]


def file_of(group: Group, folder: Path, path: bool = False) -> Path:
    """Return the file of a group's folds, or of its paths."""
    return folder / f"{group.name.replace('/', '_')}{'_paths' if path else ''}.csv"


# --- files ----------------------------------------------------------------------------------------


def read(file: Path) -> list[Stored]:
    """Return the lines of a file, none if there is no file; one that a kill tore is cut off."""
    if not file.exists():
        return []
    held = file.read_bytes()
    if not held.endswith(b"\n"):
        file.write_bytes(held[: held.rfind(b"\n") + 1])
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def append(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add lines to a file, in one write."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    if not file.exists():
        writer.writeheader()
    writer.writerows(map(_short, rows))
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as opened:
        opened.write(text.getvalue())


def _short(line: Mapping[str, Any]) -> Mapping[str, Any]:
    rounded = {k: round(float(line[k]), d) for k, d in DIGITS.items() if line.get(k, "") != ""}
    return {**line, **rounded}


def put(result: list[Line], version: str, folder: Path) -> None:
    """Add what a fold gave to the group's files, the lines of its path first."""
    group, row = find(result[0]["row"])
    marks = {"identity": identity(group, row), "version": version}
    line, *path = ({**x, **marks} for x in result)
    if path:
        append(file_of(group, folder, path=True), path)
    append(file_of(group, folder), [line])


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
        if kept != read(file):
            part = file.with_suffix(".new")
            part.unlink(missing_ok=True)
            append(part, kept)
            part.replace(file)


# --- rows -----------------------------------------------------------------------------------------


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
    file = file_of(group, folder, path)
    if not file.exists():
        return []
    stat = file.stat()
    held = _by_row(file, (stat.st_mtime_ns, stat.st_size))
    return held.get((f"{group.name}/{row.label}", identity(group, row)), [])


@lru_cache(maxsize=64)
def _by_row(file: Path, stamp: tuple[int, int]) -> dict[tuple[str, str], list[Stored]]:
    """Return the lines of a file by row and identity; read again where its stamp has changed."""
    found: dict[tuple[str, str], list[Stored]] = {}
    for line in read(file):
        found.setdefault((line["row"], line["identity"]), []).append(line)
    return found
