"""The main job, timed as a user meets it: whole processes, cold and warm compile caches.

    python -m lab main_job            everything
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
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lab.records import Goal, at_most, table
from lab.script import Measured, Part, Row

ARDVARK = [sys.executable, "-m", "ardvark"]
DEMO = ["compare", "rfvm", "digits38", "--test-size", "0.3"]
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


def demo(given: argparse.Namespace) -> Measured:
    """Measure `make demo` after installation."""
    command, rows, goals = SMALL if given.quick else DEMO, list[Row](), list[Goal]()
    with tempfile.TemporaryDirectory() as folder:
        for what in ("warm",) if given.quick else ("cold", "warm"):
            cache = None if given.quick else f"{folder}/cache"
            found, card = scorecard(command, Path(folder) / what, cache)
            spent = card[["seconds_compile", "seconds_run"]].sum()
            rows.append(
                {"caches": what, "whole command, s": found.seconds,
                 "compilation in the fits, s": spent["seconds_compile"],
                 "running the fits, s": spent["seconds_run"], "peak memory, MB": found.megabytes}
            )  # fmt: skip
            limit = DEMO_LIMITS[what]
            goals.append(at_most(f"`make demo`, {what} caches", found.seconds, limit, "s"))
    note = f"The command is `ardvark {' '.join(command)}`."
    return Measured(goals, [table("", rows, {k: ".0f" for k in rows[0] if "," in k})], [note])


MEASURES = ("ardvark", "data", "inference", "models")
PARTS = [
    Part("Import and help", imports, "import"),
    Part("The demo", demo, "demo"),
]
