"""What is kept: a line a fold, in one CSV file a table and data set, and one for its paths."""

import csv
import hashlib
import io
import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .fold import DRAWS, INNER
from .protocols import Group, Row

HERE = Path(__file__).parent
FOLDS = HERE / "folds"
COLUMNS = (
    "row", "fold", "step", "accuracy", "accuracy_draws", "f1", "log_score", "features", "samples",
    "n_train", "n_test", "seconds", "status", "reason", "chosen", "selected", "identity", "version",
)  # fmt: skip
DIGITS = {"accuracy": 5, "accuracy_draws": 5, "f1": 5, "log_score": 4, "seconds": 2}
Stored = dict[str, str]
Key = tuple[str, int, str]  # row, fold, step


def identity(group: Group, row: Row) -> str:
    """Hash everything that decides a fold's line, so that a changed setting is computed again."""
    settings = [
        row.model, row.method, row.hypers, row.options, row.grid, row.on_kernel, row.select,
        row.step, row.steps, group.protocol.name, group.by_sample, group.data, DRAWS, INNER,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:8]


def version() -> str:
    """Return the commit of the package that runs, with a mark where its files differ from it."""

    def git(*command: str) -> subprocess.CompletedProcess:
        root = ["git", "-C", str(HERE.parents[1])]
        return subprocess.run([*root, *command], capture_output=True, text=True, check=False)

    changed = git("diff", "--quiet", "HEAD", "--", "ardvark", "models", "inference", "data")
    return (git("rev-parse", "--short=8", "HEAD").stdout.strip() or "unknown") + (
        "+" if changed.returncode else ""
    )


def file_of(group: Group, row: Row, folder: Path = FOLDS) -> Path:
    """Return the file of a row."""
    return folder / f"{group.name.replace('/', '_')}{'_paths' if row.steps else ''}.csv"


def mend(path: Path) -> None:
    """Cut off a line that a kill left unfinished."""
    whole = path.read_bytes()
    if not whole.endswith(b"\n"):
        os.truncate(path, whole.rfind(b"\n") + 1)


def tidy(group: Group, folder: Path = FOLDS) -> None:
    """Write a group's files anew: rows as they are declared now, in order, each fold once."""
    lines: dict[Path, list[Stored]] = {}
    for row in group.rows:
        found = lines_of(group, row, folder)
        place = {str(step): i for i, step in enumerate(row.steps)}
        order = sorted(found, key=lambda key: (key[1], place.get(key[2], 0)))
        lines.setdefault(file_of(group, row, folder), []).extend(found[key] for key in order)
    for path, kept in lines.items():
        if kept != read(path):
            new = path.with_suffix(".new")
            append(new, kept)
            new.replace(path)


def append(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Add lines to the file, in one write."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    if not path.exists() or path.stat().st_size == 0:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer.writeheader()
    for line in lines:
        short = {k: round(float(line[k]), d) for k, d in DIGITS.items() if line.get(k, "") != ""}
        writer.writerow({**line, **short})
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, text.getvalue().encode())
    finally:
        os.close(handle)


def read(path: Path) -> list[Stored]:
    """Return the lines of a file."""
    if not path.exists():
        return []
    mend(path)
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def lines_of(group: Group, row: Row, folder: Path = FOLDS) -> dict[Key, Stored]:
    """Return a row's lines, by row, fold and step, as it is declared now; the last one counts."""
    name, mark = f"{group.name}/{row.label}", identity(group, row)
    return {
        (name, int(x["fold"]), x["step"]): x
        for x in read(file_of(group, row, folder))
        if x["row"] == name and x["identity"] == mark
    }
