"""What every test runs under: an order of the files, and settings that save time, not numbers.

The settings are in the environment before NumPy and PyTensor are imported, so the processes that
tests start have them too. `make wheel` runs a comparison without them, as a user does.
"""

import atexit
import gc
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

NOWHERE = "http://127.0.0.1:9"  # the port where nobody listens
# for tests marked `data` alone; under a name of its own, since the workers of pytest-xdist read
# this file again, in the environment that the first process has left
DATA = os.environ.setdefault("ARDVARK_DATA_OF_TESTS", os.environ.pop("ARDVARK_DATA", ""))
# a data set that a test does not say it needs is not downloaded either, in no process
os.environ |= {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "NO_PROXY": "localhost,127.0.0.1"}
# one worker a core: two BLAS threads each would only wait for one another
os.environ.setdefault("OMP_NUM_THREADS", "1")
# `traceback__limit`: PyTensor notes for each variable which lines made it, a third of the time that
# models and their functions take to make. `cxx`: what Numba does not compile runs in NumPy,
# where some inner graphs would have g++ compile each of their operations for a second.
FLAGS = [os.environ.get("PYTENSOR_FLAGS", ""), "traceback__limit=0", "cxx="]
os.environ["PYTENSOR_FLAGS"] = ",".join(filter(None, FLAGS))
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # as in many a container
    # the processes that tests start would compile all of PyMC, seven seconds each
    os.environ["PYTHONPYCACHEPREFIX"] = BYTECODE = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, BYTECODE, ignore_errors=True)
gc.set_threshold(50_000, 20, 100)  # graphs are many small objects, hardly any of them garbage

# the longest: first, so that no core waits for one at the end
LONG = (
    "test_package.py",
    "test_judge.py",
    "test_02_reading_a_scorecard.py",
    "test_04_your_data.py",
    "test_00_tour.py",
    "test_contract.py",
    "test_cli.py",
    "test_steps.py",
    "test_examples.py",
    "test_paper_check.py",
)


@pytest.fixture(autouse=True)
def _registered_data(request, monkeypatch):
    """Give ARDVARK_DATA to tests marked `data`; for others no registered set is to be had."""
    if request.node.get_closest_marker("data") is None:
        monkeypatch.setattr("ardvark.data.loading.cache_folder", lambda: Path("no-cache"))
    elif DATA:
        monkeypatch.setenv("ARDVARK_DATA", DATA)
    else:
        # asked for, as `make data-test` does, and not to be had: a skip would look like a success
        pytest.fail("ARDVARK_DATA is not set: this test needs the data sets of the registry")


def _kept_level():
    """Give the level of our logger back: commands and scripts that run in a test change it."""
    logger = logging.getLogger("ardvark")
    level = logger.level
    yield
    logger.setLevel(level)


_level_of_a_test = pytest.fixture(autouse=True)(_kept_level)
# a fixture of a whole file may run a command before that of its first test looks
_level_of_a_file = pytest.fixture(autouse=True, scope="module")(_kept_level)


@pytest.fixture(scope="module")
def few_penalties():
    """Search a third of the penalties: most of the time of a choice among plain candidates."""
    from ardvark.inference.scoring.penalised import PENALISED

    with pytest.MonkeyPatch.context() as patch:
        for word, grid in PENALISED.items():
            patch.setitem(PENALISED, word, {**grid, "Cs": grid["Cs"][::3]})
        yield


@pytest.fixture
def snapshot():
    """Compare a text with tests/snapshots/NAME.txt.

    `ARDVARK_SNAPSHOTS=write` writes what is said now; `git diff` then shows which words changed.
    """

    def same(name, text):
        path = Path(__file__).parent / "tests" / "snapshots" / f"{name}.txt"
        text = "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"
        if os.environ.get("ARDVARK_SNAPSHOTS") == "write":
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), "other words: ARDVARK_SNAPSHOTS=write"

    return same


@pytest.fixture
def command(monkeypatch, capsys):
    """Run `ardvark` in this process, which saves seconds of imports: its output and exit code."""
    from ardvark.cli.app import main

    def run(*words, cwd=None):
        monkeypatch.setattr(sys, "argv", ["ardvark", *map(str, words)])
        if cwd is not None:
            monkeypatch.chdir(cwd)
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return SimpleNamespace(
            returncode=ended.value.code or 0, stdout=printed.out, stderr=printed.err
        )

    return run


def pytest_collection_modifyitems(items):
    """Put the longest files first (xdist's own order, by number of tests, puts them last)."""
    place = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONG)))
