"""Ctrl-C and kill: the running fit is lost, no more; no file is half written; the study goes on.

A command runs in a process group of its own, which gets the signal as a terminal would send it.
"""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from ardvark.inference import Comparison, read
from tests.support import rng

METHODS = ["rfvm_vb", "laplace", "advi", "nuts"]
MADE = {"study.json", "scorecard.csv", "distances.csv", "report.html", "forest.png"}
PATIENCE = 10.0
"""Seconds in which a process must have gone (measured: below 1), were the machine very busy."""


class Command:
    """A running `ardvark`."""

    def __init__(self, folder, *words, module="ardvark", **environment):
        self.told, self.printed = (
            folder / f"{name}-{time.monotonic_ns()}.txt" for name in ("stderr", "stdout")
        )
        # a caught signal is a default one in the child, an ignored one (of a job in the background)
        # would be ignored there
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        with self.told.open("w") as told, self.printed.open("w") as printed:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, words)],
                stdout=printed,
                stderr=told,
                start_new_session=True,
                env=os.environ | environment,
            )
        signal.signal(signal.SIGINT, before)

    def text(self):
        return self.told.read_text()

    def computed(self):
        """Return the processor seconds used: moments must not depend on what else is running."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            return math.inf
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_for(self, happened, seconds=300.0):
        """Wait until something has happened, or the process has ended; say whether it runs."""
        end = time.monotonic() + seconds
        while not happened() and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        return self.process.poll() is None

    def stop(self, number):
        """Send the signal to the process group; check the end, and return the seconds it took."""
        sent = time.monotonic()
        os.killpg(self.process.pid, number)
        code = self.process.wait(PATIENCE)
        seconds = time.monotonic() - sent
        if number == signal.SIGKILL:
            assert code == -signal.SIGKILL
        elif code == -signal.SIGINT:  # all is done, and Python itself no longer listens
            assert "Report: " in self.printed.read_text()
        else:
            assert code == 130, self.text()
            assert "Traceback" not in self.text()
            assert re.findall(r"^Stopped\..*\n", self.text(), re.MULTILINE) == [
                self.text().splitlines(keepends=True)[-1]
            ]
        self.wait_for_group()
        return seconds

    def wait_for_group(self):
        """Wait until no process of the group is left."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.01)
        raise AssertionError("a process was left behind")


READERS = {
    ".nc": read,
    ".json": lambda path: json.loads(path.read_text()),
    ".csv": lambda path: pd.read_csv(path).columns[1],
    ".png": plt.imread,
    ".pdf": lambda path: path.read_bytes().rindex(b"%%EOF"),
    ".svg": lambda path: path.read_text().rindex("</svg>"),
    ".html": lambda path: path.read_text().rindex("</html>"),
}


def whole_files(out):
    """Read every file of a study; return their names, and the paths of those left half written."""
    found = [p for p in out.iterdir() if p.is_file()] if out.exists() else []
    halves = {p for p in found if p.name.startswith(".") and p.suffix == ".part"}
    for path in set(found) - halves:
        READERS[path.suffix](path)
    return {p.name for p in found if p not in halves}, halves


def saved(command):
    """Return the fits that the command has gone past."""
    ended = re.findall(r"^(\w+) \([\d.]+ s\)$", command.text(), re.MULTILINE)
    past = METHODS if "comparison:" in command.text() else ended[:-1]
    return {f"{name}.nc" for name in past}


def study(folder, methods=METHODS):
    """Return the words of a study of a small table."""
    table = folder / "own.csv"
    frame = pd.DataFrame(rng(0).normal(size=(20, 3)), columns=["a", "b", "c"])
    frame.assign(label=np.arange(20) % 2).to_csv(table, index=False)
    return [
        "compare", "rfvm", table, "--target", "label", "--methods", ",".join(methods),
        "--out", folder / "out", "--draws", 50, "--chains", 2, "--test-size", 0.25,
        "--option", "rfvm_vb.restarts=1",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The processor seconds of the study, undisturbed and with code compiled."""
    for _ in range(2):
        folder = tmp_path_factory.mktemp("whole")
        command = Command(folder, *study(folder))
        while command.process.poll() is None:
            seconds = command.computed()
            time.sleep(0.05)
        assert command.process.returncode == 0, command.text()
    return seconds


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="moments need /proc")
@pytest.mark.parametrize("number", range(10))
def test_a_study_stopped_at_any_moment_goes_on(tmp_path, whole, number):
    """Ten studies, each stopped twice: by Ctrl-C and by a kill, at 20 random moments.

    The first moment is in the n-th tenth of a study; the second one, of the run that goes on from
    there, in what is left to do at least.
    """
    words, out, kept, left = study(tmp_path), tmp_path / "out", {}, set()
    first, second = rng(number).uniform(size=2)
    first = 0.2 + (whole - 0.5) * (number + first) / 10
    second = 0.2 + (whole - 0.5 - 0.7 * first) * second
    signals = [signal.SIGINT, signal.SIGKILL][:: 1 if number % 2 else -1]
    for by, moment in zip(signals, (first, second), strict=True):
        command = Command(tmp_path, *words)
        assert command.wait_for(lambda c=command, m=moment: c.computed() >= m), "ended sooner"
        during = (command.text().splitlines() or ["the first imports"])[-1]
        seconds = command.stop(by)
        print(f"{by.name} at {moment:.1f} s of {whole:.1f}: {seconds:.2f} s; after {during:.60}")
        names, halves = whole_files(out)
        assert saved(command) <= names
        assert {name: (out / name).stat().st_mtime_ns for name in kept} == kept  # none fitted again
        assert halves == left if by == signal.SIGINT else halves >= left
        kept = {name: (out / name).stat().st_mtime_ns for name in names if name.endswith(".nc")}
        left = halves

    command = Command(tmp_path, *words)
    assert command.process.wait() == 0, command.text()
    names, halves = whole_files(out)
    assert names >= MADE | {f"{name}.nc" for name in METHODS}
    assert halves == left
    assert {name: (out / name).stat().st_mtime_ns for name in kept} == kept


def test_a_study_that_is_stopped_goes_on(tmp_path, command, monkeypatch):
    """The fast form: Ctrl-C as soon as the first of two fits is saved; this process goes on.

    It needs the first one alone, so that nothing is compiled twice, and one figure.
    """
    monkeypatch.setattr(Comparison, "pictures", lambda self: {"forest": self._picture("forest")})
    words, out = study(tmp_path, METHODS[:2]), tmp_path / "out"
    first = out / f"{METHODS[0]}.nc"
    stopped = Command(tmp_path, *words)
    assert stopped.wait_for(first.exists), stopped.text()
    stopped.stop(signal.SIGINT)
    assert f"Finished fits are in {out}" in stopped.text()
    names, halves = whole_files(out)
    assert first.name in names
    assert not halves
    assert "report.html" not in names
    before = first.stat().st_mtime_ns

    again = command(*study(tmp_path, METHODS[:1]))
    assert again.returncode == 0, again.stderr
    assert first.stat().st_mtime_ns == before
    assert whole_files(out)[0] >= MADE | {first.name}


def test_a_command_in_the_background_ignores_ctrl_c():
    """As a shell asks of it; Ctrl-C is meant for the one in front."""
    code = (
        "import os, signal; from ardvark.common import interrupt; interrupt.ends_at_once();"
        "os.kill(os.getpid(), signal.SIGINT); print('goes on')"
    )
    ignore = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    done = subprocess.run([*ignore, sys.executable, "-c", code], capture_output=True, check=False)
    assert done.stdout == b"goes on\n"


def test_ctrl_c_counts_before_the_command_is_imported(monkeypatch):
    from ardvark import __main__, cli
    from ardvark.cli import app

    came = []
    monkeypatch.setattr(cli, "app", app)  # it is imported anew, and put back
    monkeypatch.delitem(sys.modules, app.__name__)
    monkeypatch.setattr(
        "ardvark.common.interrupt.ends_at_once", lambda: came.append(app.__name__ in sys.modules)
    )
    monkeypatch.setattr(sys, "argv", ["ardvark", "--version"])
    with pytest.raises(SystemExit):
        __main__.main()
    assert came == [False]


@pytest.mark.parametrize("seconds", [0.3, 1.0])
def test_ctrl_c_while_modules_are_imported_is_one_line(tmp_path, seconds):
    command = Command(tmp_path, "compare", "rfvm", "digits38", "--out", tmp_path / "out")
    assert command.wait_for(lambda: command.computed() >= seconds)
    command.stop(signal.SIGINT)
    assert not (tmp_path / "out").exists()


WORK = """
import sys
import time
from pathlib import Path

from ardvark.common import interrupt
from ardvark.common.pieces import Pieces


class Naps(Pieces):
    def start(self):
        return self.nap

    def nap(self, piece):
        Path(__file__).with_name(f"piece-{piece}").touch()
        time.sleep(60)

    def failure(self, key, reason):
        raise AssertionError(reason)


if __name__ == "__main__":
    if sys.argv[1] == "command":
        interrupt.ends_at_once()
    print("begins", file=sys.stderr, flush=True)
    try:
        Naps().run(range(10), 2)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["command", "library"])
@pytest.mark.parametrize("at", ["imports", "pieces"])
def test_processes_end_with_the_one_that_started_them(tmp_path, kind, at):
    """Ctrl-C reaches all of them; the first one answers, and none works on."""
    (tmp_path / "own_work.py").write_text(WORK)
    here = os.pathsep.join(map(str, (tmp_path, Path(__file__).parents[1])))
    command = Command(tmp_path, kind, module="own_work", PYTHONPATH=here)
    assert command.wait_for(lambda: "begins" in command.text())
    if at == "imports":  # of the processes
        time.sleep(1.0)
    else:
        assert command.wait_for(lambda: len(list(tmp_path.glob("piece-*"))) == 2)
    assert command.stop(signal.SIGINT) < PATIENCE
