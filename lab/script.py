"""What the scripts share: their command line, their rows that a stopped run keeps, their clocks."""

import argparse
import importlib
import json
import logging
import math
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from lab import lines, origin, records
from lab.records import Goal, Record, Table

EXACT_CODE = (
    "inference/samplers/exact", "inference/samplers/gibbs",
    "inference/samplers/gradient/nuts.py", "inference/fits/chains.py",
    "inference/fits/mixing.py", "inference/fits/quotable.py",
)  # fmt: skip
"""What `exact` is made of, besides the models."""
WORK = Path("results")  # rows of runs that are not finished; ignored by git
CODE = "code.json"  # beside them: the code that computed the first one
DENSE: dict[str, Any] = {"active_features": "all", "active_samples": "all"}
RBF: dict[str, Any] = {"kernel": "rbf"}
Row = dict[str, Any]


@dataclass
class Measured:
    """What a part of a script found."""

    goals: list[Goal] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """A part of a script: the title of its record, and the function that measures it."""

    title: str
    measure: Callable[[argparse.Namespace], Measured]
    name: str = ""  # on the command line; a script with one part needs none


# --- the command line -----------------------------------------------------------------------------


def run(script: ModuleType, words: list[str]) -> None:
    """Measure the parts of a script that are asked for, and write a record for each.

    The script's `MEASURES` names the files of the product that it measures, or their folders. The
    record has the hash of each, by which `make check-records` sees that it is older than the code.

    Parameters
    ----------
    script : module
        Its `PARTS` are what it measures, and its function `add`, if there is one, adds its own
        options to a parser. Records are named by it, and by the part where there are several.
    words : list of str
        The command line.
    """
    name = script.__name__.rpartition(".")[2]
    parser = argparse.ArgumentParser(
        prog=f"python -m lab {name}",
        description=script.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = {part.name: part for part in script.PARTS}
    if len(known) > 1:
        parser.add_argument("parts", nargs="*", metavar=f"{{{','.join(known)}}}", help="(all)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it still run?")
    parser.add_argument("--out", type=Path, default=records.RESULTS, help="folder of the record")
    parser.add_argument("--work", type=Path, help="folder of unfinished rows (results/NAME)")
    if hasattr(script, "add"):
        script.add(parser)
    given = parser.parse_args(words)
    if given.quick and given.out.resolve() == records.RESULTS.resolve():
        parser.error("--quick measures nothing worth keeping: name another folder by --out")
    asked = getattr(given, "parts", []) or list(known)
    if unknown := set(asked) - set(known):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    given.work = given.work or (given.out / "work" if given.quick else WORK) / name
    logging.getLogger("ardvark").setLevel(logging.ERROR)
    rows = [path for path in given.work.glob("*") if path.is_file() and path.name != CODE]
    if not rows:  # else an earlier run has computed some, and has noted its code
        note_code(given.work, origin.code(script.MEASURES))
    for part in (known[x] for x in asked):
        record = _record(name, part, given, words)
        path = records.write(record, given.out)
        print(f"{records.render(record)}\n\n{path}", flush=True)


def _record(script: str, part: Part, given: argparse.Namespace, words: list[str]) -> Record:
    date, commit = records.today(), origin.version()  # of what runs, not of later changes
    found = part.measure(given)
    noted = given.work / CODE
    return Record(
        name="-".join(filter(None, (script, part.name))),
        title=part.title,
        date=date,
        command=command(script, part.name, words),
        commit=commit,
        machine=records.machine(),
        versions=records.versions(),
        goals=found.goals,
        measured=found.tables,
        notes=found.notes,
        quick=given.quick,
        code=json.loads(noted.read_text()) if noted.exists() else {},
    )


def note_code(work: Path, code: Mapping[str, str]) -> None:
    """Note the code that computes the first row in `work`; the record says what is noted.

    A script that starts from rows of an earlier record calls it with the code of that record.
    """
    work.mkdir(parents=True, exist_ok=True)
    (work / CODE).write_text(json.dumps(code))


def command(script: str, part: str, words: list[str]) -> str:
    """Return the command of one part, without the folders of this machine."""
    options = words[next((i for i, w in enumerate(words) if w.startswith("-")), len(words)) :]
    kept, skip = [], False
    for word in options:
        if not skip and word not in ("--out", "--work"):
            word = "..." if Path(word).is_absolute() else word
            kept.append(word if word.replace("-", "").isalnum() else f"'{word}'")
        skip = word in ("--out", "--work")
    data = "ARDVARK_DATA=..." if os.environ.get("ARDVARK_DATA") else ""
    return " ".join(filter(None, [data, f"python -m lab {script}", part, *kept]))


def has_data(given: argparse.Namespace) -> bool:
    """Whether the run uses the data sets of ARDVARK_DATA: they are there, and it is not quick."""
    return bool(os.environ.get("ARDVARK_DATA")) and not given.quick


# --- rows that a stopped run keeps ----------------------------------------------------------------


def resumed(path: Path, rows: Iterable[tuple[Mapping[str, Any], Callable[[], Row]]]) -> list[Row]:
    """Compute the rows that a file does not have, and append each to it as it ends.

    Parameters
    ----------
    path : Path
        A CSV file; it is made where it does not exist.
    rows : iterable of (key, function)
        What tells a row from others, and what computes the rest of it.

    Returns
    -------
    list of dict
        The rows in this order, numbers as numbers.
    """
    found = []
    for key, compute in rows:
        held = stored(path, [key])
        if not held:
            row = {k: records.plain(v) for k, v in ({**key} | compute()).items()}
            lines.append(path, [row])
            print(", ".join(f"{k} {_short(v)}" for k, v in row.items()), file=sys.stderr)
        found += held or [row]
    return found


def stored(path: Path, keys: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return those of the rows that `resumed` has kept already, in the order of their keys."""
    found = []
    for key in keys:
        asked = {name: records.plain(value) for name, value in key.items()}
        for row in lines.get(path, key)[:1]:
            found.append({k: lines.typed(v) for k, v in row.items()} | asked)
    return found


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# --- measuring ------------------------------------------------------------------------------------


def synthetic(N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X (N, D), standard normal, and y (N,) in {0, 1}, the sign of ten columns' sum."""
    X = np.random.default_rng(0).standard_normal((N, D))
    return X, (X[:, :10].sum(axis=1) > 0).astype(int)


BLOCK = 5  # planted features are correlated in blocks of so many


def plant(
    seed: int, N: int = 62, D: int = 2000, active: int = 5, effect: float = 3.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X (N, D), y, and which features are active."""
    rng = np.random.default_rng(seed)
    correlation = 0.8
    common = np.repeat(rng.normal(size=(N, D // BLOCK)), BLOCK, axis=1)
    X = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * rng.normal(size=(N, D))
    w = np.zeros(D)
    chosen = BLOCK * rng.choice(D // BLOCK, active, replace=False)
    w[chosen] = effect * rng.choice([-1.0, 1.0], active)
    y = (rng.random(N) < 1.0 / (1.0 + np.exp(-X @ w))).astype(int)
    return X, y, w != 0.0


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS at one thread inside the block."""
    from threadpoolctl import threadpool_limits

    importlib.import_module("scipy.linalg")  # its BLAS must be there before the limit
    with threadpool_limits(1, user_api="blas"):
        yield


def seconds(call: Callable[[], Any]) -> float:
    """Return the seconds that one call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def times(call: Callable[[], Any], count: int) -> list[float]:
    """Return the seconds of each of some calls."""
    return [seconds(call) for _ in range(count)]


def peak_mb(call: Callable[[], Any]) -> float:
    """Return the peak of what Python allocates during a call, in MB."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def growth(sizes: list[int], values: list[float]) -> float:
    """Return the exponent of the size by which the last value exceeds the one before."""
    return math.log(values[-1] / values[-2]) / math.log(sizes[-1] / sizes[-2])


def apart(function: Callable[..., Any], *arguments: Any, quick: bool = False) -> Any:
    """Return what a function of a script returns, called in a fresh process; here where quick.

    So the peak of resident memory is its own, and nothing is compiled beforehand. Arguments are
    written by `repr`; the result must fit into JSON.
    """
    if quick:
        return function(*arguments)
    given = ", ".join(map(repr, arguments))
    module = function.__module__
    code = (
        f"import json; from {module} import {function.__name__} as f; print(json.dumps(f({given})))"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{function.__name__}({given}) ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])
