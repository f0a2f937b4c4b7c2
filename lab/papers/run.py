"""Compute the papers' tables, or the part of them that is missing.

    ARDVARK_DATA=... python -m lab.papers.run TABLE [--only ROWS] [--folds N] [--processes N]
    python -m lab.papers.run TABLE --list

TABLE is a table of a paper (`pfcvm-6`), a pattern (`'fsklr-*'`), or nothing: all of them. Rows are
declared in `tables.py`. Each fold is stored as it ends, so that the same command goes on where it
was stopped; then rows.csv, differences.csv, the figures and the tables of the pages are written.
Rows that take long (`costly.COSTLY`) run only where --only names them.
"""

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from joblib import Parallel, delayed

from ardvark.common.validate import InputError
from lab.origin import version
from lab.papers import compared, curves, pages, rows, store
from lab.papers.costly import costly
from lab.papers.fold import find, run_fold
from lab.papers.protocols import Group, Row
from lab.papers.results import everything
from lab.papers.tables import GROUPS
from lab.yardsticks.contract import require
from lab.yardsticks.registry import YARDSTICKS

HERE = Path(__file__).parents[1] / "paper_check"
Task = tuple[str, int]
"""A row, and one of its folds."""


def tables() -> list[str]:
    """Return the names of the papers' tables: "rfvm-3-4", "pfcvm-6", ..."""
    return list(dict.fromkeys(group.name.split("/")[0] for group in GROUPS))


def chosen(table: str, only: Sequence[str] = ()) -> list[tuple[Group, Row]]:
    """Return the rows of the tables that match a pattern, in the order of the patterns of rows.

    Parameters
    ----------
    table : str
        A table, or a pattern.
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
        if fnmatch(group.name.split("/")[0], table):
            placed = [(_place(f"{group.name}/{row.label}", only), row) for row in group.rows]
            found += [(place, group, row) for place, row in placed if place is not None]
    if not found:
        which = f"matches {', '.join(only)}" if only else "runs without --only"
        raise InputError(f"no row of {table} {which}; the tables are {', '.join(tables())}.")
    return [(group, row) for _, group, row in sorted(found, key=lambda x: x[0])]


def _place(name: str, patterns: Sequence[str]) -> int | None:
    """Return the place of the first pattern that a row matches."""
    if not patterns:
        return None if costly(name) else 0
    _, _, rest = name.partition("/")
    parts = name.split("/")
    fits = (fnmatch(name, p) or fnmatch(rest, p) or p in parts for p in patterns)
    return next((i for i, fit in enumerate(fits) if fit), None)


def missing(
    asked: Sequence[tuple[Group, Row]], folder: Path, most: int | None = None
) -> list[Task]:
    """Return the folds of rows that are not stored yet: the first `most` of each row, or all."""
    tasks = []
    for group, row in asked:
        name, done = f"{group.name}/{row.label}", store.whole(group, row, folder)
        count = min(group.folds, most or group.folds)
        tasks += [(name, fold) for fold in range(count) if fold not in done]
    return tasks


def present(group: Group) -> bool:
    """Say whether the data of a group are on this machine; print why not."""
    try:
        group.load()
    except InputError as error:
        print(f"left out: {group.name}: {error}", file=sys.stderr)
        return False
    return True


def compute(tasks: Sequence[Task], folder: Path, processes: int = 1) -> int:
    """Compute folds, store and print each as it ends; return how many have failed.

    Raises
    ------
    InputError
        Before the first fold, if a row needs a package of an extra that is not installed.
    """
    for method in {find(name)[1].method for name, _ in tasks} & set(YARDSTICKS):
        require(YARDSTICKS[method])
    commit, failed = version(), 0
    ends = Parallel(processes, return_as="generator_unordered")(
        delayed(run_fold)(*task) for task in tasks
    )
    for count, lines in enumerate(ends, start=1):
        store.put(lines, commit, folder)
        line = lines[0]
        failed += line["status"] == "failed"
        said = (f"{count}/{len(tasks)}", line["row"], line["fold"], line["status"], line["reason"])
        print(*said, f"{line['seconds']:.0f} s", flush=True)
    return failed


def listed(asked: Sequence[tuple[Group, Row]], folder: Path) -> None:
    """Print of each row how many folds are stored, and their seconds; * : costly."""
    for group, row in asked:
        name, held = f"{group.name}/{row.label}", store.lines_of(group, row, folder)
        seconds = sum(float(x["seconds"]) for x in held.values())
        mark = "*" if costly(name) else " "
        print(f"{mark} {name:<52} {len(held):>3}/{group.folds:<3} {seconds:>9.0f} s")


def write(out: Path) -> None:
    """Write what the folds say: rows.csv, differences.csv, figures, and the pages if it is here."""
    found = everything(out / "folds")
    rows.write(out, found)
    compared.write(out, found)
    curves.write(out)
    if out == HERE:
        pages.write(found)


def main(words: Sequence[str] | None = None) -> int:
    """Compute, and write what is stored; return whether a fold has failed."""
    parser = argparse.ArgumentParser(prog="lab.papers.run", description=(__doc__ or "")[:70])
    parser.add_argument("table", nargs="?", default="*")
    parser.add_argument("--only", default="", help="rows, comma-separated")
    parser.add_argument("--folds", type=int, help="only the first folds of each row")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="list the rows; run nothing")
    parser.add_argument("--out", type=Path, default=HERE)
    given = parser.parse_args(words)
    only = [word for word in given.only.split(",") if word]
    folder = given.out / "folds"
    if given.list:
        listed(chosen(given.table, only or ["*"]), folder)
        return 0
    asked = chosen(given.table, only)
    groups = [g for g in {group.name: group for group, _ in asked}.values() if present(g)]
    here = [(group, row) for group, row in asked if group in groups]
    failed = compute(missing(here, folder, given.folds), folder, given.processes)
    for group in groups:
        store.tidy(group, folder)
    write(given.out)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
