"""What is missing on a paper's page: rows without all their folds, and about their cost."""

from collections.abc import Iterator, Mapping

from lab.papers.cost import cost
from lab.papers.results import Result
from lab.papers.sheets import Sheet
from lab.papers.wording import listed


def rows(sheet: Sheet, found: Mapping[str, Result]) -> Iterator[str]:
    """Yield a line for each data set that lacks folds of declared rows."""
    seconds = {name: list(r.by_fold("seconds").values()) for name, r in found.items()}
    for group in sheet.groups:
        costs = {row.label: cost(group, row, seconds) for row in group.rows}
        left = {label: c for label, c in costs.items() if c.stored < c.folds}
        if not left:
            continue
        told = f"- {group.data}, {len(left)} of {len(group.rows)} rows: {listed(left)}"
        partial = [label for label, c in left.items() if c.stored]
        if partial:
            told += f"; some folds are there of {listed(partial)}"
        known = [c.to_come for c in left.values() if c.to_come is not None]
        if known:
            told += f"; about {sum(known) / 3600.0:.2g} hours for {len(known)} of them"
        yield f"{told}."
