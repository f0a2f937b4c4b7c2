"""What `known_truth.py` found: its rows, tables, sentences and figure. It measures nothing."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
BINS = 10
KEY = ("N", "D", "correlation", "active", "data_set", "method")


def key(row: Row) -> tuple[Any, ...]:
    """Return what tells a row from others."""
    return tuple(row[name] for name in KEY)


def read(path: Path) -> list[Row]:
    """Return the rows of a file, numbers as numbers; without a last line that a kill cut off."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        whole = [line for line in file if line.endswith("\n")]
    rows = [r for r in csv.DictReader(whole) if None not in r.values()]
    return [{k: v if k == "commit" else _typed(v) for k, v in row.items()} for row in rows]


def _typed(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None


def write(rows: Iterable[Row], path: Path) -> None:
    """Write rows to a file, in the order given."""
    listed = list(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(listed[0]))
        writer.writeheader()
        writer.writerows(listed)


def draw(rows: Sequence[Row], path: Path) -> None:
    pass


def measured(rows: Sequence[Row], planned: int) -> Any:
    from benchmarks import records
    from benchmarks.script import Measured

    return Measured([], [records.table("", rows)])
