"""Pieces: equal results here and elsewhere, one start a process, nothing finished is lost."""

import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from ardvark.common import memory
from ardvark.common.validate import logger

SUMS = Path(__file__).with_name("sums.py")


def files(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_two_processes_give_the_results_of_one(sums, tmp_path, monkeypatch):
    keys = list(range(8))
    folders = [tmp_path / name for name in ("here", "elsewhere")]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setattr(memory, "allowed", lambda: 3e6)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # else one BLAS thread is what there is
    with threadpool_limits(2, user_api="blas"):
        here = sums(folders[0]).run(keys)
    elsewhere = sums(folders[1]).run(keys, 2)
    assert list(here) == list(elsewhere) == keys  # in the order given, whichever ended first
    assert {r["worker"][0] for r in here.values()} == {os.getpid()}
    assert [r["value"] for r in elsewhere.values()] == [r["value"] for r in here.values()]
    assert os.getpid() not in {r["worker"][0] for r in elsewhere.values()}
    assert files(folders[0]) == files(folders[1])
    assert {r["memory"] for r in here.values()} == {3e6}
    assert {r["memory"] for r in elsewhere.values()} == {1.5e6}  # each has its part
    for found in (list(here.values()), list(elsewhere.values())):
        assert all(r["threads"] == 1 and r["silent"] for r in found)
        for worker in {r["worker"] for r in found}:  # started once in each process
            mine = sorted(r["done"] for r in found if r["worker"] == worker)
            assert mine == list(range(1, len(mine) + 1))
        assert len({r["worker"] for r in found}) == len({r["worker"][0] for r in found})
    assert logger.isEnabledFor(40)


def test_a_single_piece_starts_no_process(sums):
    ((_, row),) = sums().results([3], 4)
    assert row["worker"][0] == os.getpid()


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_stored_is_not_computed_again(sums, tmp_path, processes):
    done = sums().run([2, 5])
    whole = sums().run(range(7), processes)
    assert list(whole) == list(range(7))
    assert whole[2] == {k: done[2][k] for k in ("piece", "value")}  # as it was stored
    (tmp_path / "out" / "5.json").unlink()
    again = sums().run(range(7), processes)
    assert [k for k, row in again.items() if "done" in row] == [5]
    work = sums(seconds=99)  # nothing is left to compute: it does not even start
    assert list(work.run(range(7), processes)) == list(range(7))


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_the_result_of_its_own_piece(sums, processes):
    keys = [0, 13, *range(20, 25)]
    found = sums().run(keys, processes)
    assert found[13] == {"piece": 13, "reason": "ZeroDivisionError: piece 13"}
    assert [k for k, row in found.items() if "value" in row] == [0, *range(20, 25)]
    assert logger.isEnabledFor(40)
    again = sums().run(keys, processes)  # the next run tries it again, and nothing else
    assert {k for k, row in again.items() if "worker" in row or "reason" in row} == {13}


def test_a_process_that_dies_ends_the_job_and_what_is_finished_stays(sums, tmp_path):
    keys = [*range(20, 26), 67, *range(26, 40)]
    with pytest.raises(TerminatedWorkerError, match="terminated"):
        sums().run(keys, 2)
    kept = files(tmp_path / "out")
    assert 3 <= len(kept) < len(keys)  # 67 was not among the first
    found = sums().run(keys, 2)
    assert [k for k, row in found.items() if "value" in row] == keys
    assert files(tmp_path / "out").items() >= kept.items()


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_of_the_work_itself_ends_it(sums, tmp_path, processes):
    with pytest.raises(LookupError, match="no compiler"):
        sums(seconds=99).run([0, 1], processes)
    with pytest.raises(OSError, match="disk is full"):
        sums().run([0, 77, *range(20, 500)], processes)
    assert logger.isEnabledFor(40)
    assert len(list((tmp_path / "out").iterdir())) < 50


def test_whoever_stops_asking_gets_the_logger_back(sums):
    logger.setLevel(logging.NOTSET)  # the root logger decides, before and after
    running = sums().results(range(20, 500))
    assert next(running)[0] == 20
    assert not logger.isEnabledFor(40)
    running.close()
    assert logger.level == logging.NOTSET
    assert logger.isEnabledFor(40)


@pytest.mark.slow
def test_a_dask_cluster_is_one_line_of_the_users(sums, tmp_path):
    """A worker that is killed has its piece done by another one."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as workers,
        distributed.Client(workers),
        joblib.parallel_config(backend="dask"),
    ):
        found = sums().run([*range(20, 30), 67])
        with pytest.raises(LookupError, match="no compiler"):
            sums(seconds=99).run([0, 1])
    assert [row["piece"] for row in found.values()] == [*range(20, 30), 67]
    assert os.getpid() not in {row["worker"][0] for row in found.values()}
    here = tmp_path / "here"
    here.mkdir()
    (here / "killed").touch()  # 67 has done so already
    assert [r["value"] for r in sums(here).run(list(found)).values()] == [
        row["value"] for row in found.values()
    ]


@pytest.mark.parametrize(
    ("processes", "kills"),
    [("2", 1), *(pytest.param(p, 3, marks=pytest.mark.slow) for p in ("1", "2"))],
)
def test_a_run_that_is_killed_goes_on_and_gives_the_same_files(sums, tmp_path, processes, kills):
    out, whole = tmp_path / "out", tmp_path / "whole"
    whole.mkdir()
    command = [sys.executable, str(SUMS), str(out), processes]
    stored: dict[str, int] = {}
    for _ in range(kills):
        running = subprocess.Popen(command, start_new_session=True)
        deadline = time.monotonic() + 300
        while len(list(out.glob("*.json"))) < len(stored) + 3 and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(random.uniform(0.0, 0.1))
        running.send_signal(signal.SIGKILL)  # the caller alone: its processes end by themselves
        running.wait()
        while time.monotonic() < deadline:
            try:
                os.killpg(running.pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.05)
        else:
            pytest.fail("processes outlive their caller")
        there = {path.name: path.stat().st_mtime_ns for path in out.glob("*.json")}
        assert there.items() >= stored.items()  # nothing is computed again
        assert len(stored) + 3 <= len(there) < 40
        assert all(json.loads((out / name).read_text())["value"] for name in there)
        stored = there

    subprocess.run(command, check=True, timeout=300)
    assert {name: (out / name).stat().st_mtime_ns for name in stored} == stored
    sums(whole).run(range(20, 60))
    for path in out.glob("*.part"):
        path.unlink()
    assert files(out) == files(whole)


def test_progress_is_told_of_stored_pieces_too(sums):
    sums().run([1])
    told: list[tuple] = []

    class Stage:
        def __enter__(self):
            return lambda *state: told.append(state)

        def __exit__(self, *error):
            told.append(("end",))

    sums().run([0, 1, 2], stage=Stage())
    assert told == [*((k, f"{k} of 3") for k in range(4)), ("end",)]
