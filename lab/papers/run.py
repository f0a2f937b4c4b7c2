"""Which rows of the papers' tables are asked for, and computing the folds that are missing."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from ardvark.common.pieces import Processes
from ardvark.common.validate import InputError, unknown
from lab.origin import version
from lab.papers import store
from lab.papers.fold import Line, find
from lab.papers.protocols import Group, Row
from lab.papers.store import Task
from lab.papers.tables import GROUPS, costly
from lab.yardsticks.contract import require
from lab.yardsticks.registry import YARDSTICKS

FOLDS, FIGURES = Path("paper_check", "folds"), Path("paper_check", "figures")
"""Where folds are stored, and figures drawn, in the output folder."""


def tables() -> list[str]:
    """Return the names of the papers' tables: "rfvm-3-4", "pfcvm-6", ..."""
    return list(dict.fromkeys(group.name.split("/")[0] for group in GROUPS))


def matching(table: str) -> list[str]:
    """Return the tables of a name, or of a pattern such as "fsklr-*".

    Raises
    ------
    InputError
        There is none.
    """
    found = [name for name in tables() if fnmatch(name, table.strip().casefold())]
    if not found:
        known = ["matrix", *tables()]
        raise unknown("table", table, known, "`python -m lab reproduce` lists them.")
    return found


def chosen(names: Sequence[str], only: Sequence[str] = ()) -> list[tuple[Group, Row]]:
    """Return the rows of some tables, in the order of the patterns that they match first.

    Parameters
    ----------
    names : sequence of str
        Tables.
    only : sequence of str
        Patterns of rows (`pfcvm-6/colon/exact`, `colon/exact*`, `*/l1_logistic`) or parts of their
        names (`colon`). Without any, all rows but the costly ones.

    Raises
    ------
    InputError
        No row matches.
    """
    found = []
    for group in GROUPS:
        if group.name.split("/")[0] in names:
            placed = [(_place(f"{group.name}/{row.label}", only), row) for row in group.rows]
            found += [(place, group, row) for place, row in placed if place is not None]
    if not found and only:
        raise InputError(
            f"no row of {', '.join(names)} matches {', '.join(only)}. "
            f"`python -m lab reproduce {names[0]} --list` lists them."
        )
    if not found:
        raise InputError(f"all rows of {', '.join(names)} are costly. Name some: --only '*'.")
    return [(group, row) for _, group, row in sorted(found, key=lambda x: x[0])]


def _place(name: str, patterns: Sequence[str]) -> int | None:
    """Return the place of the first pattern that a row matches."""
    if not patterns:
        return None if costly(name) else 0
    _, _, rest = name.partition("/")
    parts = name.split("/")
    fits = (fnmatch(name, p) or fnmatch(rest, p) or p in parts for p in patterns)
    return next((i for i, fit in enumerate(fits) if fit), None)


def absent(rows: Sequence[tuple[Group, Row]]) -> dict[str, str]:
    """Return why a group cannot be run, by its name: its data are not on this machine."""
    found = {}
    for group in {group.name: group for group, _ in rows}.values():
        try:
            group.load()
        except InputError as error:
            found[group.name] = str(error).split(". ")[0]
    return found


def missing(rows: Sequence[tuple[Group, Row]], folder: Path, most: int | None = None) -> list[Task]:
    """Return the folds of rows that are not stored yet: the first `most` of each row, or all."""
    tasks = []
    for group, row in rows:
        name, done = f"{group.name}/{row.label}", store.whole(group, row, folder)
        count = min(group.folds, most or group.folds)
        tasks += [(name, fold) for fold in range(count) if fold not in done]
    return tasks


def run(
    tasks: Sequence[Task], folder: Path, processes: Processes = None
) -> Iterator[tuple[Task, Line]]:
    """Compute folds and store each as it ends; yield what is stored.

    Parameters
    ----------
    tasks : sequence
        Rows and folds (`missing`).
    folder : Path
        Where they are stored.
    processes : int, optional
        How many are computed at once, and where.

    Raises
    ------
    InputError
        Before the first fold, if a row needs a package of an extra that is not installed.
    """
    for method in {find(name)[1].method for name, _ in tasks} & set(YARDSTICKS):
        require(YARDSTICKS[method])
    work = store.Folds(version(), folder)
    return ((task, line) for task, (line, *_) in work.results(tasks, processes))
