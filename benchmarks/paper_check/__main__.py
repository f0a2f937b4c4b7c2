"""The command: `python -m benchmarks.paper_check run | page | list`; `--help` says more."""

import argparse
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path

from ardvark.validate import InputError

from . import __doc__ as ABOUT
from . import page, store
from .fold import run_fold
from .tables import GROUPS

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
Task = tuple[str, int, str, Path]  # row, fold, identity, file


def plan(patterns: list[str], most: int | None = None, folder: Path = store.FOLDS) -> list[Task]:
    """Return the folds that are asked for and not stored yet; say what cannot be run."""
    tasks: list[Task] = []
    for group in GROUPS:
        rows = [r for r in group.rows if matches(f"{group.name}/{r.label}", patterns)]
        try:
            if rows:
                group.load()
        except InputError as error:
            print(f"left out: {group.name}: {str(error).split('. ')[0]}")
            continue
        for row in rows:
            name, stored = f"{group.name}/{row.label}", store.lines_of(group, row, folder)
            done = {fold for (_, fold, _), x in stored.items() if x["status"] != "failed"}
            mark, file = store.identity(group, row), store.file_of(group, row, folder)
            count = min(group.folds(row), most or group.folds(row))
            tasks += [(name, fold, mark, file) for fold in range(count) if fold not in done]
    return tasks


def matches(name: str, patterns: list[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def run(tasks: list[Task], jobs: int) -> None:
    """Compute folds in processes, write each as it ends, and tell when a row is done."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    version, seconds, left = store.version(), {}, {}
    for name, *_ in tasks:
        left[name], seconds[name] = left.get(name, 0) + 1, 0.0
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(run_fold, task[0], task[1]): task for task in tasks}
        try:
            for future in as_completed(running):
                name, _, mark, file = running[future]
                lines = future.result()
                store.append(file, [x | {"identity": mark, "version": version} for x in lines])
                left[name] -= 1
                seconds[name] += sum(x["seconds"] for x in lines)
                if left[name] == 0:
                    print(f"{name}: {seconds[name]:.1f} s in its folds", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.paper_check",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("run", "page", "list"))
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of rows")
    parser.add_argument("--folds", type=int, help="run only this many folds of each row")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    settings = parser.parse_args()
    if settings.what == "list":
        names = (f"{g.name}/{r.label}" for g in GROUPS for r in g.rows)
        print("\n".join(name for name in names if matches(name, settings.only)))
    elif settings.what == "page":
        page.write()
    else:
        started, tasks = time.perf_counter(), plan(settings.only, settings.folds)
        print(f"{len(tasks)} folds to compute, {settings.jobs} processes", flush=True)
        run(tasks, settings.jobs)
        for group in GROUPS:
            store.tidy(group)
        print(f"all in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
