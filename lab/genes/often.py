"""The genes that the folds of a row select most often, and which of them are printed.

`names.csv` has the names of those that no table prints.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from lab.lines import read

from .declared import TABLES, Folds, Gene, Table, asked_of, genes
from .pieces import append, load
from .summary import Stored, weights

MOST = 10
_SAME = {"golub", "allaml"}  # the same columns


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


def same_data(table: Table) -> list[Table]:
    """Return the printed tables of the same genes, this one first."""
    others = [
        x
        for x in TABLES
        if x is not table and (x.data == table.data or {x.data, table.data} <= _SAME)
    ]
    return [table, *others]


def at(table: Table, number: int) -> Gene | None:
    """Return the gene that a table prints in a column of the data, None if it does not."""
    return next((g for g in genes()[table.name] if g.number == number), None)


def name(stored: Stored, data: str, number: int) -> str:
    """Return the name of a gene."""
    return asked_of(data).get(number) or stored.names.get((data, number), f"column {number}")


def label(table: Table) -> str:
    """Return a table's name in a sentence."""
    return table.title.partition(":")[0]


def rows(stored: Stored, table: Table, folds: Folds) -> list[dict[str, Any]]:
    """Return a row for each gene that is selected most often."""
    out = []
    for number, times in often(stored, table, folds):
        printed = {label(x): at(x, number) for x in same_data(table)}
        about = next((g.description for g in printed.values() if g), "")
        out.append(
            {
                "gene": name(stored, table.data, number),
                "column": number,
                "is": about,
                "folds": times,
            }
            | {where: g.printed if g else None for where, g in printed.items()}
        )
    return out


def text(stored: Stored, table: Table, folds: Folds) -> list[str]:
    """Return how the genes selected most often overlap with the printed ones."""
    most, tables = often(stored, table, folds), same_data(table)
    if len(most) < 2:
        return []
    inside = [sum(at(x, number) is not None for number, _ in most) for x in tables]
    shared = [f"{n} in {label(x)}" for n, x in zip(inside[1:], tables[1:], strict=True)]
    said = f"Of the {len(most)} genes that it selects most often, {inside[0]} are in this table"
    said += f" and {', '.join(shared)}." if shared else "."
    leading = []
    for number, times in most[:2]:
        where = " and ".join(label(x) for x in tables if at(x, number)) or "no table"
        leading.append(f"{name(stored, table.data, number)} ({times} folds, printed in {where})")
    said += f" The most frequent are {' and '.join(leading)}."
    counts = {g.gene: _times(stored, table, folds, g) for g in genes()[table.name]}
    (one, m), (two, n), *_ = counts.items()
    never = sum(x == 0 for x in counts.values())
    return [
        said,
        f"It selects the first two printed genes, {one} and {two}, in {m} and {n} folds; "
        f"{never} of the {len(counts)} rows in none.",
    ]


def _times(stored: Stored, table: Table, folds: Folds, gene: Gene) -> int:
    kept = (list(weights(x))[: table.top or None] for x in stored.of_folds(folds)["weights"])
    return sum(gene.number in each for each in kept)


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
