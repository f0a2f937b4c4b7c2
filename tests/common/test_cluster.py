"""Work on a Dask cluster: the results of one process, whichever worker dies."""

import importlib.util
import json
import logging

import dask
import numpy as np
import pandas as pd
import psutil
import pytest

import ardvark as av
from ardvark.common import cluster, on_workers
from ardvark.common.validate import InputError

DIED = "its workers died again and again: killed, or out of memory"


def values(folder):
    """What is stored, by piece: a value or a reason."""
    found = (json.loads(path.read_text()) for path in folder.glob("*.json"))
    return {row["piece"]: row.get("reason", row["value"]) for row in found}


@pytest.fixture
def running():
    """A scheduler with one worker, both in this process, which costs nothing."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", host="127.0.0.1",
        dashboard_address=None, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        silence_logs=logging.CRITICAL,
    ) as started:  # fmt: skip
        yield started


@pytest.fixture
def near(running):
    return av.Dask(running.scheduler_address)


def test_two_workers_of_which_one_is_killed_give_the_results_of_one_process(sums, tmp_path):
    """Piece 67 kills its worker once, in the middle; 66 kills every worker that takes it."""
    keys, here = [20, 21, 67, 22, 13, 66, 23], tmp_path / "here"
    here.mkdir()
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):  # two deaths, not four
        found = sums().run(keys, av.Dask(workers=2))
    assert list(found) == keys
    (here / "killed").touch()
    expected = sums(here).run([key for key in keys if key != 66])
    assert (tmp_path / "out" / "killed").exists()
    assert values(tmp_path / "out") == values(here) | {66: DIED}
    assert expected[13]["reason"] == "ZeroDivisionError: piece 13"
    done = [row for row in found.values() if "value" in row]
    assert all(row["threads"] == 1 and row["silent"] for row in done)
    assert len({row["worker"] for row in done}) > 1
    # each of two workers has half of what one computation may take, of at most all memory
    assert max(row["memory"] for row in done) <= 0.25 * psutil.virtual_memory().total


def test_a_scheduler_that_runs_is_used_and_left_as_it_was(sums, near, tmp_path):
    level = logging.getLogger("distributed").level
    found = sums().run(range(6), near)
    assert {row["worker"] for row in found.values()} == {found[0]["worker"]}  # started once
    assert [row["done"] for row in found.values()] == list(range(1, 7))  # one at a time
    assert sums().run(range(6), near)[3] == {k: found[3][k] for k in ("piece", "value")}
    assert not on_workers.jobs
    assert logging.getLogger("distributed").level == level


def test_an_error_of_the_work_itself_ends_it(sums, near, tmp_path):
    with pytest.raises(LookupError, match="no compiler"):
        sums(seconds=99).run([0, 1], near)
    with pytest.raises(OSError, match="disk is full"):
        sums().run([0, 77, *range(20, 500)], near)
    assert len(list((tmp_path / "out").iterdir())) < 50


def test_refits_have_the_same_results_on_a_cluster(near, tmp_path):
    X = np.random.default_rng(0).normal(size=(6, 2))
    problem = av.problem("sparse_probit", X, X[:, 0] > 0, scale="fixed")
    tables = [
        av.sensitivity(
            problem,
            "paper",
            priors={"flat": {"gamma1": 0.1}},
            folder=tmp_path / name,
            processes=where,
            draws=20,
            progressbar=False,
        ).table
        for name, where in (("here", 1), ("there", near))
    ]
    assert tables[0].equals(tables[1])
    assert (tables[0]["status"] == "finished").all()


@pytest.mark.slow
def test_each_long_job_has_the_same_results_on_two_workers(tmp_path):
    X = np.random.default_rng(0).normal(size=(24, 3))
    problem = av.problem("rfvm", X, X[:, 1] > 0)
    few = {"draws": 50, "chains": 2, "progressbar": False}

    def jobs(where, folder):
        kept = {"folder": folder, "processes": where, **few}
        return (
            av.sensitivity(problem, "exact", **kept).table,
            pd.DataFrame(av.calibrate(problem, "exact", replicates=4, **kept).ranks),
        )  # fmt: skip

    here, there = jobs(1, tmp_path / "here"), jobs(av.Dask(workers=2), tmp_path / "there")
    for first, second in zip(here, there, strict=True):
        pd.testing.assert_frame_equal(first, second)


# --- what cannot be -------------------------------------------------------------------------------


def test_what_is_asked_for_is_one_cluster():
    shown = "Dask(scheduler='tcp://10.0.0.5:8786', workers=None)"
    assert repr(av.Dask("tcp://10.0.0.5:8786")) == shown
    for wrong in ({}, {"scheduler": "tcp://10.0.0.5:8786", "workers": 2}):
        with pytest.raises(InputError, match="either the address of a Dask scheduler or a number"):
            av.Dask(**wrong)
    with pytest.raises(InputError, match="workers must be an integer of at least 1, got 0"):
        av.Dask(workers=0)


def test_dask_that_is_not_installed_is_one_error(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "distributed" else found(name)
    )
    with pytest.raises(InputError, match=r'pip install "ardvark\[cluster\]"'):
        av.Dask(workers=2)


def test_a_scheduler_that_does_not_answer_is_one_error(sums, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT", 0.2)
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        with pytest.raises(InputError, match="no Dask scheduler answers at"):
            sums().run([0, 1], av.Dask(address))


def test_a_scheduler_that_ends_is_one_error(sums, running, near, tmp_path):
    results = sums().results(range(20, 60), near)
    next(results)
    running.close()
    with pytest.raises(ConnectionError, match="connection to the Dask scheduler was lost"):
        list(results)
    assert 0 < len(values(tmp_path / "out")) < 40
