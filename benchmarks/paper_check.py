"""The papers' tables beside ours: accuracy, features and samples kept, under each paper's protocol.

    ARDVARK_DATA=... python -m benchmarks.paper_check         everything, two processes
    python -m benchmarks.paper_check --list                   the names of the rows
    python -m benchmarks.paper_check --only 'pfcvm-6/colon/*' '*/sparse_probit'
    python -m benchmarks.paper_check --folds 2                the first folds of each row: a trial
    python -m benchmarks.paper_check --full                   the papers' own counts, and long rows
    python -m benchmarks.paper_check --table                  only the table of what is stored

Each finished fold is a line of OUT/folds.csv; a killed run goes on with the same command, and a
changed setting is computed again (changed code is not noticed: choose another OUT).
`paper_protocols` has the tables and how they are read.

All that is fitted, standardised, filtered or tuned is so on the training rows of the fold; the
table reports every variant that was run, and nothing was chosen by it. "paper" is the accuracy by
the algorithm's own predictor, "draws" by the mean probability over draws of its approximation.
"+-" is a standard error over folds, for leave-one-out sqrt(p (1 - p) / N); folds share training
rows, so it is a rough one. "gap" is "paper" less what the paper prints, in points. "folds" are
those stored, of the paper's number: costly rows stop earlier without --full. "ok" counts converged
fits, "s" is the seconds of all folds in one process. Missing data sets and methods are named and
left out.
"""

import argparse
import csv
import hashlib
import io
import json
import multiprocessing
import os
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from ardvark.inference import BACKENDS
from ardvark.inference.backend import finished
from ardvark.inference.comparison.selected import agreement, jackknife
from ardvark.validate import InputError
from benchmarks.paper_folds import DRAWS, INNER, options_of, run_fold
from benchmarks.paper_protocols import GROUPS, LEAVE_ONE_OUT, Group, Row

COLUMNS = (
    "row", "fold", "identity", "status", "reason", "seconds", "n_train", "n_test", "D",
    "accuracy_paper", "accuracy_draws", "f1_paper", "f1_draws", "features", "samples", "chosen",
    "selected",
)  # fmt: skip
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


# --- what is stored -------------------------------------------------------------------------------


def identity(group: Group, row: Row, full: bool, fingerprint: str) -> str:
    """Hash everything that decides a fold's line, so that a changed setting is computed again."""
    settings = [
        row.model, row.method, row.hypers, options_of(row, full), row.grid, row.on_kernel,
        group.protocol.name, fingerprint, DRAWS, INNER,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:12]


def mend(path: Path) -> None:
    """Cut off a line that a kill left unfinished."""
    whole = path.read_bytes()
    if not whole.endswith(b"\n"):
        os.truncate(path, whole.rfind(b"\n") + 1)


def append(path: Path, line: Mapping[str, Any]) -> None:
    """Add a line to the file, in one write."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    if not path.exists() or path.stat().st_size == 0:
        writer.writeheader()
    writer.writerow(line)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, text.getvalue().encode())
    finally:
        os.close(handle)


def stored(path: Path) -> dict[tuple[str, int, str], dict[str, str]]:
    """Return the lines of a file by row, fold and identity; the last one counts."""
    if not path.exists():
        return {}
    mend(path)
    with path.open(newline="") as file:
        return {(x["row"], int(x["fold"]), x["identity"]): x for x in csv.DictReader(file)}


# --- the table ------------------------------------------------------------------------------------


def mean_error(values: Iterable[float], leave_one_out: bool) -> tuple[float, float]:
    """Return the mean over folds and its standard error; NaN for a single fold that is no count."""
    x = np.array(list(values))
    mean = float(x.mean())
    if leave_one_out:
        return mean, float((mean * (1.0 - mean) / len(x)) ** 0.5)
    return mean, float(x.std(ddof=1) / len(x) ** 0.5) if len(x) > 1 else float("nan")


def plus_minus(value: float, error: float, digits: int = 1) -> str:
    text = f"{value:.{digits}f}"
    return text if np.isnan(error) else f"{text} +- {error:.{digits}f}"


def summary(group: Group, row: Row, lines: list[dict[str, str]], folds: int) -> dict[str, str]:
    """Return a row of the table: text by column."""
    done = [x for x in lines if x["status"] != "failed"]
    ok = sum(finished(x["status"]) for x in done)
    out = {"method": row.label, "folds": f"{len(done)}/{folds}", "ok": str(ok)}
    out["s"] = f"{sum(float(x['seconds']) for x in lines):.1f}"
    loo = group.protocol is LEAVE_ONE_OUT
    for kind in ("accuracy", "f1"):
        paper = row.reported.get(kind)
        for rule in ("paper", "draws"):
            found = [float(x[f"{kind}_{rule}"]) for x in done if x[f"{kind}_{rule}"]]
            if not found or (kind == "f1" and not any("f1" in r.reported for r in group.rows)):
                continue
            mean, error = mean_error(found, loo)
            out[f"{kind}, {rule}"] = plus_minus(100 * mean, 100 * error)
            if rule == "paper" and paper is not None:
                out[f"printed {kind}"] = f"{paper:g}"
                out[f"{kind} gap"] = f"{100 * mean - paper:+.1f}"
    for kind, size in (("features", "D"), ("samples", "n_train")):
        found = [float(x[kind]) / (float(x[size]) / 100 if group.percent else 1)
                 for x in done if x[kind]]  # fmt: skip
        if found:
            out[kind] = plus_minus(*mean_error(found, False))
            if kind in row.reported:
                out[f"printed {kind}"] = f"{row.reported[kind]:g}"
    chosen = [x["selected"] for x in done if x["selected"] or x["features"] == "0"]
    if group.noise is not None and len(chosen) > 1:
        S = np.zeros((len(chosen), int(done[0]["D"])), dtype=bool)
        for i, text in enumerate(chosen):
            S[i, [int(k) for k in text.split()]] = True
        for name, value in agreement(S).items():
            out[name] = plus_minus(value, jackknife(S, name), 3)
            if name in row.reported:
                out[f"printed {name}"] = f"{row.reported[name]:.3f}"
        out["noise > 0.2"] = str(int((S[:, group.noise :].mean(axis=0) > 0.2).sum()))
        if "noise" in row.reported:
            out["printed noise"] = f"{row.reported['noise']:g}"
    return out


ORDER = (
    "method", "folds", "ok", "accuracy, paper", "accuracy, draws", "printed accuracy",
    "accuracy gap", "f1, paper", "f1, draws", "printed f1", "f1 gap", "features",
    "printed features", "samples", "printed samples", "jaccard", "printed jaccard", "pearson",
    "printed pearson", "noise > 0.2", "printed noise", "s",
)  # fmt: skip


def table(rows: list[dict[str, str]]) -> str:
    """Return rows as aligned text, without the columns that none of them has."""
    columns = [c for c in ORDER if any(c in r for r in rows)]
    width = {c: max(len(c), *(len(r.get(c, "")) for r in rows)) for c in columns}
    heads = [{c: c for c in columns}, *rows]
    lines = []
    for row in heads:
        cells = [f"{row.get(c, ''):>{width[c]}}" for c in columns[1:]]
        lines.append("  ".join([f"{row['method']:<{width['method']}}", *cells]))
    return "\n".join(lines)


def remarks(row: Row, lines: list[dict[str, str]]) -> str:
    """Return what to know of a row: its note, and the commonest reason of folds that are not ok."""
    reasons = [f"{x['status']}: {x['reason']}" for x in lines if not finished(x["status"])]
    common = max(set(reasons), key=reasons.count) if reasons else ""
    said = [row.note] if row.note else []
    said += [f"{len(reasons)} folds not ok, for example {common}"] if reasons else []
    return f"    {row.label}: {'; '.join(said)}" if said else ""


# --- the command ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planned:
    """A row to run: its folds, their identity, the paper's number of folds, the data in words."""

    group: Group
    row: Row
    folds: range
    mark: str
    of: int
    size: str

    @property
    def name(self) -> str:
        return f"{self.group.name}/{self.row.label}"

    @property
    def keys(self) -> list[tuple[str, int, str]]:
        return [(self.name, fold, self.mark) for fold in self.folds]


def plan(settings: argparse.Namespace) -> list[Planned]:
    """Return what can be run of what is asked for; say what cannot."""
    out = []
    for group in GROUPS:
        rows = [r for r in group.rows if matches(group, r, settings.only)]
        if not rows:
            continue
        try:
            data = group.load()
        except InputError as error:
            print(f"left out: {group.name}: {str(error).split('. ')[0]}")
            continue
        for row in rows:
            name = f"{group.name}/{row.label}"
            if row.model and row.method not in BACKENDS:
                print(f"left out: {name}: no method {row.method} in BACKENDS")
                continue
            full, usual = (group.protocol.folds(data.N, f) for f in (True, False))
            count = full if settings.full else usual if row.usual is None else row.usual
            if count == 0:
                print(f"left out: {name}: for its cost it needs --full")
                continue
            larger = 100.0 * max(data.counts) / data.N
            out.append(
                Planned(
                    group,
                    row,
                    range(min(count, settings.folds or count)),
                    identity(group, row, settings.full, data.fingerprint),
                    full,
                    f"{data.N} x {data.D}, larger class {larger:.1f} %",
                )
            )
    return out


def matches(group: Group, row: Row, patterns: list[str]) -> bool:
    return any(fnmatch(f"{group.name}/{row.label}", pattern) for pattern in patterns)


def run(tasks: list[tuple[str, int, str]], path: Path, jobs: int, full: bool) -> None:
    """Compute folds in processes, write each as it ends, and tell when a row is done."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    left: dict[str, int] = {}
    began: dict[str, float] = {}
    for name, *_ in tasks:
        left[name] = left.get(name, 0) + 1
    count = dict(left)
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        marks = {pool.submit(run_fold, n, f, full): mark for n, f, mark in tasks}
        try:
            for future in as_completed(marks):
                line = future.result()
                append(path, line | {"identity": marks[future]})
                name, now = line["row"], time.perf_counter()
                began[name] = min(began.get(name, now), now - line["seconds"])
                left[name] -= 1
                if left[name] == 0:
                    wall = now - began[name]
                    print(f"{name}: {count[name]} folds in {wall:.1f} s", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def report(planned: list[Planned], path: Path) -> str:
    """Return the table of the planned rows, group by group, from all folds that are stored."""
    lines, text = stored(path), []
    for group in GROUPS:
        rows, said, size = [], [], ""
        for p in (p for p in planned if p.group is group):
            found = [x for (name, _, mark), x in lines.items() if (name, mark) == (p.name, p.mark)]
            if found:
                rows.append(summary(group, p.row, found, p.of))
                said.append(remarks(p.row, found))
                size = p.size
        if rows:
            head = f"{group.paper} table {group.table}, {group.data} ({size}), "
            head += group.protocol.name
            head += "; features and samples in percent" if group.percent else ""
            text.append(head + (f"; {group.note}" if group.note else ""))
            text += [table(rows), *filter(None, said), ""]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of rows")
    parser.add_argument("--out", type=Path, default=Path("results/paper_check"))
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--folds", type=int, help="run only this many folds of each row")
    parser.add_argument("--full", action="store_true", help="the papers' counts, and long rows")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--table", action="store_true", help="run nothing")
    settings = parser.parse_args()
    if settings.list:
        names = [
            f"{g.name}/{r.label}" for g in GROUPS for r in g.rows if matches(g, r, settings.only)
        ]
        print("\n".join(names))
        return
    started, path = time.perf_counter(), settings.out / "folds.csv"
    settings.out.mkdir(parents=True, exist_ok=True)
    planned, lines = plan(settings), stored(path)
    wanted = [key for p in planned for key in p.keys]
    tasks = [t for t in wanted if lines.get(t, {"status": "failed"})["status"] == "failed"]
    if tasks and not settings.table:
        print(
            f"{len(tasks)} of {len(wanted)} folds to compute, {settings.jobs} processes", flush=True
        )
        run(tasks, path, settings.jobs, settings.full)
        print(f"all in {time.perf_counter() - started:.0f} s\n")
    text = report(planned, path)
    if text:
        (settings.out / "table.txt").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
