"""Runs of the papers' tables that are killed end with the files of a run in one go."""

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROWS = "l1_logistic,rbf_svm,l1_logistic-matched,rbf_svm-matched"
PATIENCE = 900
FILES = ("fsklr-2_digits38_noisy.csv", "fsklr-2_digits38_noisy_paths.csv")
pytestmark = pytest.mark.slow


def begin(out, *words):
    """Start the command, as a user does."""
    root = Path(__file__).parents[3]
    command = ["reproduce", "fsklr-2", "--only", ROWS, "--out", str(out), *words]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.Popen([sys.executable, "-m", "lab", *command], env=environment)


def stored(out):
    """The finished folds."""
    path = out / "paper_check" / "folds" / FILES[0]
    return path.read_text().count("\n") - 1 if path.exists() else 0


def files(out):
    """What the files hold, but for seconds."""
    found = {}
    for name in FILES:
        with (out / "paper_check" / "folds" / name).open(newline="") as file:
            lines = list(csv.DictReader(file))
        found[name] = [{k: v for k, v in x.items() if k != "seconds"} for x in lines]
    return found


def wait_for(folds, out, running):
    """Wait until so many folds are stored."""
    deadline = time.monotonic() + PATIENCE
    while stored(out) < folds and running.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a run in one process that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole")
    assert begin(out).wait() == 0
    return files(out)


@pytest.mark.timeout(3 * PATIENCE)
@pytest.mark.parametrize("words", [("--processes", "2"), ("--workers", "2")], ids=" ".join)
def test_a_run_killed_three_times_has_the_same_files(tmp_path, whole, words):
    for _ in range(3):
        wanted = stored(tmp_path) + 2
        running = begin(tmp_path, *words)
        wait_for(wanted, tmp_path, running)
        time.sleep(random.uniform(0.0, 1.0))
        children = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(signal.SIGKILL)
        running.wait()
        _, alive = psutil.wait_procs(children, timeout=PATIENCE)
        assert not alive  # processes end with the one that started them
    assert 3 < stored(tmp_path) < 20
    running = begin(tmp_path, *words)
    assert running.wait() == 0
    assert files(tmp_path) == whole


@pytest.mark.timeout(3 * PATIENCE)
def test_a_worker_that_is_killed_changes_nothing(tmp_path, whole):
    running = begin(tmp_path, "--workers", "2")
    wait_for(3, tmp_path, running)
    children = psutil.Process(running.pid).children()
    workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
    assert len(workers) >= 2
    workers[0].kill()
    assert running.wait() == 0
    assert files(tmp_path) == whole
