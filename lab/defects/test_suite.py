"""How long `make test` takes for a stranger: a fresh clone, an empty home, no data sets, no caches.

    python -m lab test_suite              once
    python -m lab test_suite --times 3    three times in a row, each in a clone of its own

The last commit is cloned, so changes have to be committed first. The tests run as in the
Makefile, in the Python that runs this: installation is not in it. Nothing else should run; the
load before each run says whether something did. Processor seconds are those of all processes. The
quick form runs one small file of tests.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

from lab import records
from lab.origin import ROOT
from lab.records import at_most, table
from lab.script import Measured, Part, Row

CLOCK, PROCESSOR = 5.0, 10.0  # minutes, at most, on two idle cores
QUICK = "tests/common/test_writer.py"
KEPT = ("PATH", "LANG", "LD_LIBRARY_PATH")  # of the environment; the rest is a stranger's


def measure(given: argparse.Namespace) -> Measured:
    """Run the tests as often as asked for, and judge the slowest run."""
    changes = subprocess.run(["git", "-C", str(ROOT), "diff", "--quiet", "HEAD"]).returncode
    if changes and not given.quick:
        raise SystemExit("Commit your changes first: the last commit is what will be tested.")
    rows = [once(QUICK if given.quick else "") for _ in range(given.times)]
    bad = sum(int(row["failed"]) for row in rows)
    goals = [
        at_most("clock, minutes", max(row["clock, min"] for row in rows), CLOCK),
        at_most("processor, minutes", max(row["processor, min"] for row in rows), PROCESSOR),
        records.Goal("no test fails", f"{bad} failed in {len(rows)} runs", bad == 0),
    ]
    formats = {"load before": ".1f", "clock, min": ".2f", "processor, min": ".2f"}
    return Measured(goals, [table("", rows, formats)])


def once(files: str) -> Row:
    """Run the tests in a fresh clone: time, and how they ended.

    Raises
    ------
    RuntimeError
        The tests did not run to the end.
    """
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        clone, home, installed, outcomes = at / "clone", at / "home", at / "site", at / "tests.xml"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        home.mkdir()
        installed.mkdir()  # as if the clone were installed: what a test starts finds it
        (installed / "ardvark").symlink_to(clone / "ardvark")
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= {"HOME": str(home), "TMPDIR": folder, "PYTHONPATH": str(installed)}
        command = [sys.executable, "-m", "pytest", *makefile_options(), f"--junitxml={outcomes}"]
        command += ["-n", "1", files] if files else []
        load, used, began = os.getloadavg()[0], processor(), time.perf_counter()
        done = subprocess.run(command, cwd=clone, env=environment, stdout=sys.stderr)
        if done.returncode not in (0, 1):  # 1: tests failed
            raise RuntimeError(f"pytest ended with {done.returncode}")
        clock, used = time.perf_counter() - began, processor() - used
        times = {"load before": load, "clock, min": clock / 60.0, "processor, min": used / 60.0}
        return counted(outcomes) | times


def makefile_options() -> list[str]:
    """Return what `make test` gives to pytest."""
    lines = (ROOT / "Makefile").read_text().splitlines()
    (pytest,) = (line for line in lines if line.startswith("PYTEST := "))
    return pytest.partition(" -m pytest ")[2].split()


def processor() -> float:
    """Return the processor seconds of all processes that this one has started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def counted(outcomes: Path) -> Row:
    """Return how many tests passed, failed and were skipped, from pytest's file."""
    (suite,) = ElementTree.parse(outcomes).getroot()
    count = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    failed, skipped = count["failures"] + count["errors"], count["skipped"]
    return {"passed": count["tests"] - failed - skipped, "failed": failed, "skipped": skipped}


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=1, help="runs in a row")


MEASURES = ("ardvark", "data", "inference", "models", "tests", "conftest.py")
PARTS = [Part("The default run", measure)]
