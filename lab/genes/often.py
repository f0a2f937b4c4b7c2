"""The genes that the folds of a row select most often, and which of them are printed.

`names.csv` has the names of those that no table prints.
"""

from collections import Counter
from pathlib import Path

from lab.lines import read

from .declared import TABLES, Folds, Table, asked_of
from .pieces import append, load
from .summary import Stored, weights

MOST = 10


def often(stored: Stored, table: Table, folds: Folds) -> list[tuple[int, int]]:
    """Return the columns selected most often, with their number of folds.

    They are `MOST`, and those selected as often as the last of them.
    """
    found: Counter[int] = Counter()
    for text in stored.of_folds(folds).get("weights", ()):
        found.update(list(weights(text))[: table.top or None])
    ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    least = ordered[min(MOST, len(ordered)) - 1][1] if ordered else 0
    return [pair for pair in ordered if pair[1] >= least]


def name(stored: Stored, data: str, number: int) -> str:
    """Return the name of a gene."""
    return asked_of(data).get(number) or stored.names.get((data, number), f"column {number}")


def write_names(folder: Path) -> None:
    """Add to `names.csv` the genes that are selected most often and that no table prints."""
    stored, path = Stored.of(folder), folder / "names.csv"
    known = {(x["data"], int(x["number"])) for x in read(path)}
    new: dict[tuple[str, int], str] = {}
    for table in TABLES:
        for folds in table.folds:
            for number, _ in often(stored, table, folds):
                key = table.data, number
                if key not in known and number not in asked_of(table.data):
                    new[key] = load(table.data, False).feature_names[number - 1]
    if new:
        append(path, [{"data": d, "number": n, "gene": g} for (d, n), g in sorted(new.items())])
