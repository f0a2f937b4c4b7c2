"""The main job, timed as a user meets it: whole processes, cold and warm compile caches.

    python -m benchmarks.main_job            everything (ARDVARK_DATA for colon_discrete)
    python -m benchmarks.main_job --only import demo

Each line is printed beside its target. A cold run has empty caches for PyTensor and Numba.
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

ARDVARK = [sys.executable, "-m", "ardvark"]
DEMO = ["compare", "rfvm", "digits38", "--test-size", "0.3"]


@dataclass
class Run:
    """Wall seconds, peak resident memory in MB and exit code of one process."""

    seconds: float
    megabytes: float
    code: int


def run(command: list[str], cache: str | None = None) -> Run:
    """Run a command as a process of its own; `cache` is a folder for its compile caches."""
    environment = dict(os.environ)
    if cache is not None:
        environment["PYTENSOR_FLAGS"] = f"base_compiledir={cache}/pytensor"
        environment["NUMBA_CACHE_DIR"] = f"{cache}/numba"
    started = time.perf_counter()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=environment, **quiet)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    return Run(seconds, usage.ru_maxrss / 1024.0, os.waitstatus_to_exitcode(status))


def line(what: str, value: str, target: str) -> None:
    print(f"{what:<58} {value:>22}   target {target}", flush=True)


def imports() -> None:
    for what, command in (
        ("import ardvark", [sys.executable, "-c", "import ardvark"]),
        ("ardvark --help", [*ARDVARK, "--help"]),
    ):
        run(command)
        median = statistics.median(run(command).seconds for _ in range(7))
        line(f"{what}, median of 7", f"{median:.2f} s", "0.5 s")


def demo() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for what, target in (("cold", "45 s"), ("warm", "15 s")):
            out = Path(folder) / what
            found = run([*ARDVARK, *DEMO, "--out", str(out)], cache=f"{folder}/cache")
            assert found.code == 0
            line(f"make demo (RFVM on digits38, five methods), {what} caches",
                 f"{found.seconds:.0f} s", target)  # fmt: skip
            table = pd.read_csv(out / "scorecard.csv", index_col="method")
            spent = table[["seconds_compile", "seconds_run"]].sum()
            for name, seconds in spent.items():
                line(f"  {name} of all fits", f"{seconds:.0f} s", "-")
            line("  peak memory", f"{found.megabytes:.0f} MB", "-")
        print(table.drop(columns="reason").T.to_string())


def colon() -> None:
    if "ARDVARK_DATA" not in os.environ:
        print("colon_discrete: left out, ARDVARK_DATA is not set")
        return
    with tempfile.TemporaryDirectory() as folder:
        for what, target in (("cold", "90 s"), ("warm", "90 s")):
            out = Path(folder) / what
            command = [*ARDVARK, "compare", "rfvm", "colon_discrete", "--methods", "nuts"]
            found = run([*command, "--out", str(out)], cache=f"{folder}/cache")
            assert found.code == 0
            row = pd.read_csv(out / "scorecard.csv", index_col="method").loc["nuts"]
            spent = row["seconds_compile"] + row["seconds_run"]
            line(f"NUTS on colon_discrete 62 x 2000, {what} caches", f"{spent:.0f} s", target)
            line("  compilation", f"{row['seconds_compile']:.0f} s", "-")
            line("  whole command, diagnostics and report included",
                 f"{found.seconds:.0f} s", "-")  # fmt: skip
            line("  worst R-hat of eta", f"{row['rhat_eta']:.4f}", "1.01")
            line("  worst R-hat of everything", f"{row['rhat']:.4f}", "1.02")
            line("  smallest bulk ESS of everything", f"{row['ess_bulk']:.0f}", "-")
            line("  divergences", f"{row['divergences']:.0f}", "5")
            line("  peak memory", f"{found.megabytes:.0f} MB", "3000 MB")
            size = (out / "nuts.nc").stat().st_size / 1e6
            line("  stored fit", f"{size:.0f} MB", "250 MB")


def main() -> None:
    parts = {"import": imports, "demo": demo, "colon": colon}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(parts), default=list(parts))
    for name in parser.parse_args().only:
        parts[name]()


if __name__ == "__main__":
    main()
