"""CSV files of rows: each row is added as it is computed, and found again by some of its cells."""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ardvark.common.store import parsed

Stored = dict[str, str]


def mend(path: Path) -> None:
    """Cut off a line that a kill left unfinished."""
    held = path.read_bytes()
    if not held.endswith(b"\n"):
        os.truncate(path, held.rfind(b"\n") + 1)


def read(path: Path) -> list[Stored]:
    """Return the rows of a file; none if there is no file."""
    if not path.exists():
        return []
    mend(path)
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def get(path: Path, mark: Mapping[str, Any]) -> list[Stored]:
    """Return the rows that have these cells, in the order in which they were added."""
    found = parsed(_by_cells, path, tuple(mark))
    return found.get(tuple(map(_text, mark.values())), [])


def append(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Add rows to a file, in one write; a new file gets these columns, or those of the rows.

    A row with another column than those of its file makes the file be written anew.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    added = list(rows)
    named = list(dict.fromkeys(name for row in added for name in row))
    new = not path.exists() or path.stat().st_size == 0
    if not new:
        with path.open(newline="") as file:
            columns = next(csv.reader(file))
        if not set(named) <= set(columns):
            write(path, [*read(path), *added], list(dict.fromkeys([*columns, *named])))
            return
    text = io.StringIO()
    writer = csv.DictWriter(text, columns or named, restval="", lineterminator="\n")
    if new:
        writer.writeheader()
    writer.writerows(added)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, text.getvalue().encode())
    finally:
        os.close(handle)


def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Write a file anew, completely or not at all."""
    part = path.with_suffix(".new")
    part.unlink(missing_ok=True)
    append(part, rows, columns)
    part.replace(path)


def _by_cells(path: Path, names: tuple[str, ...]) -> dict[tuple[str, ...], list[Stored]]:
    """Return the rows of a file by the texts of some cells."""
    found: dict[tuple[str, ...], list[Stored]] = {}
    for row in read(path):
        found.setdefault(tuple(_text(row.get(name)) for name in names), []).append(row)
    return found


def _text(value: Any) -> str:
    return "" if value is None else str(value)  # a CSV file has the same for "" and None


def typed(text: str) -> Any:
    """Return what a cell of the file was: nothing, a whole number, a number, a truth or a text."""
    if text in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
