"""CSV files to which rows are added as they are computed."""

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def identity(settings: Any, *, sort_keys: bool = False) -> str:
    """Hash the settings that decide a row, so that changed ones are computed again."""
    text = json.dumps(settings, sort_keys=sort_keys)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def mend(path: Path) -> None:
    """Cut off a line that a kill left unfinished."""
    held = path.read_bytes()
    if not held.endswith(b"\n"):
        os.truncate(path, held.rfind(b"\n") + 1)


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file; none if there is no file."""
    if not path.exists():
        return []
    mend(path)
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to a file, in one write; a new file gets these columns, another one has its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text, new = io.StringIO(), not path.exists() or path.stat().st_size == 0
    if not new:
        with path.open(newline="") as file:
            columns = next(csv.reader(file))
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    if new:
        writer.writeheader()
    writer.writerows(rows)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, text.getvalue().encode())
    finally:
        os.close(handle)
