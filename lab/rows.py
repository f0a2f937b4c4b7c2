"""Rows that a long run keeps as it computes them, so that a run that was stopped goes on."""

import io
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    """Return the rows of a CSV file; none if there is no file. An empty cell is None."""
    if not path.exists():
        return []
    text = path.read_text()
    table = text.partition("\n")[2] if text.startswith("# ") else text  # of `tables.write`
    found = pd.read_csv(io.StringIO(table), low_memory=False, dtype={"commit": str})
    held = found.astype(object).where(found.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in held]


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows to a file, completely or not at all; a row may have columns of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".new")
    pd.DataFrame(list(rows)).to_csv(part, index=False)
    part.replace(path)


def find(rows: Iterable[Row], key: Mapping[str, Any]) -> Row | None:
    """Return the first row whose cells are those of a key, None if there is none."""
    asked = {name: _text(value) for name, value in key.items()}
    return next((r for r in rows if all(_text(r.get(n)) == t for n, t in asked.items())), None)


def computed(path: Path, work: Iterable[tuple[Row, Callable[[], Row]]]) -> list[Row]:
    """Compute the rows that a file does not have, and keep each in it as it ends.

    Parameters
    ----------
    path : Path
        A CSV file; it is made where it does not exist.
    work : iterable of (dict, function)
        What tells a row from others, and what computes the rest of it.

    Returns
    -------
    list of dict
        The rows in the order of `work`.
    """
    held, asked = read(path), []
    for key, compute in work:
        row = find(held, key)
        if row is None:
            print(*key.values(), sep=", ", file=sys.stderr, flush=True)
            row = {name: plain(value) for name, value in (key | compute()).items()}
            held.append(row)
            write(path, held)
        asked.append(row)
    return asked


def plain(value: Any) -> Any:
    """Return what a CSV file holds: a Python number instead of NumPy's, None instead of NaN."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and math.isnan(value) else value


def _text(value: Any) -> str:
    return "" if value is None else str(value)  # a CSV file has the same for "" and None
