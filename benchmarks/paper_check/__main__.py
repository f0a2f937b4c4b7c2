"""The command: `python -m benchmarks.paper_check run | page | list`; `--help` says more."""

import argparse
import os
import time
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

from ardvark.common import interrupt

if __name__ == "__main__":  # before the imports, which take time and read the numbers of threads
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    interrupt.ends_at_once()
    interrupt.last_words("Stopped. Finished folds are stored; the same command goes on.")

from ardvark.common.validate import InputError
from ardvark.inference.reproduction.papers import page, store
from ardvark.inference.reproduction.papers.store import Task
from ardvark.inference.reproduction.papers.tables import GROUPS, costly

from . import __doc__ as ABOUT

FOLDS = Path(__file__).parent / "folds"


def plan(patterns: list[str], most: int | None = None, folder: Path = FOLDS) -> list[Task]:
    """Return the folds that are asked for and not stored yet; say what cannot be run.

    They come in the order of the patterns that their rows match first.
    """
    tasks: list[tuple[int, Task]] = []
    for group in GROUPS:
        asked = [(first(f"{group.name}/{row.label}", patterns), row) for row in group.rows]
        rows = [(place, row) for place, row in asked if place is not None]
        try:
            if rows:
                group.load()
        except InputError as error:
            print(f"left out: {group.name}: {str(error).split('. ')[0]}")
            continue
        for place, row in rows:
            name, done = f"{group.name}/{row.label}", store.whole(group, row, folder)
            count = min(group.folds, most or group.folds)
            tasks += [(place, (name, fold)) for fold in range(count) if fold not in done]
    return [task for _, task in sorted(tasks, key=lambda x: x[0])]


def first(name: str, patterns: list[str]) -> int | None:
    """Return the place of the first pattern that fits a row; none given: all but costly fit."""
    if not patterns:
        return None if costly(name) else 0
    return next((i for i, pattern in enumerate(patterns) if fnmatch(name, pattern)), None)


def run(tasks: list[Task], jobs: int, folder: Path = FOLDS) -> None:
    """Compute folds, in processes if more than one job, and tell when a row is done."""
    left = Counter(name for name, _ in tasks)
    seconds = dict.fromkeys(left, 0.0)
    for (name, _), (line, *_) in store.Folds(store.version(), folder).results(tasks, jobs):
        left[name] -= 1
        seconds[name] += line["seconds"]
        if left[name] == 0:
            print(f"{name}: {seconds[name]:.1f} s in its folds", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.paper_check",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("run", "page", "list"))
    parser.add_argument("--only", nargs="+", default=[], help="patterns of rows, in order")
    parser.add_argument("--folds", type=int, help="run only this many folds of each row")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    settings = parser.parse_args()
    if settings.what == "list":
        names = (f"{g.name}/{r.label}" for g in GROUPS for r in g.rows)
        print("\n".join(name for name in names if first(name, settings.only) is not None))
    elif settings.what == "page":
        page.write(FOLDS.parents[1] / "PAPER_CHECK.md", FOLDS)
    else:
        started, tasks = time.perf_counter(), plan(settings.only, settings.folds)
        print(f"{len(tasks)} folds to compute, {settings.jobs} processes", flush=True)
        run(tasks, settings.jobs)
        for group in GROUPS:
            store.tidy(group, FOLDS)
        print(f"all in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
