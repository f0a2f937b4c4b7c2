"""The main job, timed as a user meets it: whole processes, cold and warm compile caches.

    python -m lab main_job            everything (ARDVARK_DATA for colon_discrete)
    python -m lab main_job import demo

A cold run has empty caches for PyTensor and Numba. The quick form runs smaller commands, in the
caches that there are.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from lab.records import Goal, at_most, table
from lab.script import Measured, Part, Row

ARDVARK = [sys.executable, "-m", "ardvark"]
DEMO = ["compare", "rfvm", "digits38", "--test-size", "0.3"]
COLON = ["compare", "rfvm", "colon_discrete", "--methods", "nuts"]
SMALL = ["compare", "sparse_probit", "waveform", "--methods", "nuts", "--draws", "20", "--option",
         "nuts.tune=20"]  # fmt: skip
LIMITS = {"import ardvark": 0.5, "ardvark --help": 0.5}
DEMO_LIMITS = {"cold": 45.0, "warm": 15.0}


@dataclass
class Process:
    """Wall seconds, peak resident memory in MB and exit code of one process."""

    seconds: float
    megabytes: float
    code: int


def process(command: list[str], cache: str | None = None) -> Process:
    """Run a command as a process of its own; `cache` is a folder for its compile caches."""
    environment = dict(os.environ)
    if cache is not None:
        environment["PYTENSOR_FLAGS"] = f"base_compiledir={cache}/pytensor"
        environment["NUMBA_CACHE_DIR"] = f"{cache}/numba"
    started = time.perf_counter()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = subprocess.Popen(command, env=environment, **quiet)
    _, status, usage = os.wait4(running.pid, 0)
    seconds = time.perf_counter() - started
    running.returncode = os.waitstatus_to_exitcode(status)  # Popen has not seen it end
    return Process(seconds, usage.ru_maxrss / 1024.0, running.returncode)


def scorecard(command: list[str], out: Path, cache: str | None) -> tuple[Process, pd.DataFrame]:
    """Run a comparison; return its cost and its table."""
    found = process([*ARDVARK, *command, "--out", str(out)], cache)
    if found.code:
        raise RuntimeError(f"ardvark {' '.join(command)} ended with {found.code}")
    return found, pd.read_csv(out / "scorecard.csv", index_col="method")


@cache
def small(folder: Path) -> tuple[Process, pd.DataFrame, Path]:
    """Return one small comparison, which serves both parts of the quick form, and its folder."""
    out = folder / "small"
    return *scorecard(SMALL, out, None), out


def imports(given: argparse.Namespace) -> Measured:
    """Measure the import and the help."""
    commands = {
        "import ardvark": [sys.executable, "-c", "import ardvark"],
        "ardvark --help": [*ARDVARK, "--help"],
    }
    out, rows, count = Measured(), list[Row](), 1 if given.quick else 7
    for what, command in commands.items():
        process(command)
        median = statistics.median(process(command).seconds for _ in range(count))
        rows.append({"what": f"{what}, median of {count}", "s": median})
        out.goals.append(at_most(f"`{what}`, median of {count}", median, LIMITS[what], "s"))
    out.tables.append(table("", rows, {"s": ".2f"}))
    return out


def compared(
    given: argparse.Namespace, command: list[str]
) -> Iterator[tuple[str, Process, pd.DataFrame, Path]]:
    """Yield "cold" and "warm", and a comparison in such caches with its folder."""
    if given.quick:
        yield "warm", *small(given.work)
        return
    with tempfile.TemporaryDirectory() as folder:
        for what in ("cold", "warm"):
            out = Path(folder) / what
            yield what, *scorecard(command, out, f"{folder}/cache"), out


def demo(given: argparse.Namespace) -> Measured:
    """Measure `make demo` after installation."""
    rows, goals = list[Row](), list[Goal]()
    for what, found, card, _ in compared(given, DEMO):
        spent = card[["seconds_compile", "seconds_run"]].sum()
        rows.append(
            {"caches": what, "whole command, s": found.seconds,
             "compilation in the fits, s": spent["seconds_compile"],
             "running the fits, s": spent["seconds_run"], "peak memory, MB": found.megabytes}
        )  # fmt: skip
        goals.append(at_most(f"`make demo`, {what} caches", found.seconds, DEMO_LIMITS[what], "s"))
    note = f"The command is `ardvark {' '.join(SMALL if given.quick else DEMO)}`."
    return Measured(goals, [table("", rows, {k: ".0f" for k in rows[0] if "," in k})], [note])


def colon(given: argparse.Namespace) -> Measured:
    """Measure NUTS on colon_discrete, 62 x 2000."""
    rows, goals = list[Row](), list[Goal]()
    for what, found, card, out in compared(given, COLON):
        row, at = card.loc["nuts"], f"{what} caches"
        size = (out / "nuts.nc").stat().st_size / 1e6
        spent = row["seconds_compile"] + row["seconds_run"]
        rows.append(
            {"caches": what, "NUTS, s": spent, "compilation, s": row["seconds_compile"],
             "whole command, s": found.seconds, "worst R-hat of eta": row["rhat_eta"],
             "worst R-hat of everything stored": row["rhat"],
             "smallest bulk ESS": row["ess_bulk"], "divergences": row["divergences"],
             "peak memory, MB": found.megabytes, "stored fit, MB": size}
        )  # fmt: skip
        goals += [
            at_most(f"62 x 2000, 4 x 1000 draws, {at}", spent, 90.0, "s"),
            at_most(f"worst R-hat of `eta`, {at}", row["rhat_eta"], 1.01),
            at_most(f"worst R-hat of everything stored, {at}", row["rhat"], 1.02),
            at_most(f"divergences, {at}", row["divergences"], 5),
            at_most(f"peak memory, {at}", found.megabytes, 3000.0, "MB"),
            at_most(f"stored fit, {at}", size, 250.0, "MB"),
        ]
    formats = {k: ".4f" if "R-hat" in k else ".0f" for k in rows[0] if k != "caches"}
    return Measured(goals, [table("", rows, formats)])


MEASURES = ("ardvark", "data", "inference", "models")
PARTS = [
    Part("Import and help", imports, "import"),
    Part("The demo", demo, "demo"),
    Part("NUTS on colon_discrete", colon, "colon"),
]
