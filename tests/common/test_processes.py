"""Pieces of work: equal results here and elsewhere, made once a process, given up when stopped."""

import importlib
import os
import types

import pytest
from threadpoolctl import threadpool_limits

from ardvark.common.processes import check_processes, run_pieces
from ardvark.common.validate import InputError, logger
from ardvark.inference.generic import laplace

WORK = '''
"""A module that another process can import, which a test file is not."""
import os
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from ardvark.common.validate import logger


class Work:
    def __init__(self):
        self.made, self.done = time.monotonic_ns(), 0

    def __call__(self, piece):
        if piece == 13:
            raise ZeroDivisionError("piece 13")
        time.sleep(0.05)
        self.done += 1
        Path(__file__).with_name(f"done-{piece}").touch()
        blas = [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]
        return {
            "piece": piece,
            "value": float(np.random.default_rng(piece).normal(size=(9, 9)).sum()),
            "worker": (os.getpid(), self.made),
            "done": self.done,
            "threads": max(blas, default=1),
            "silent": not logger.isEnabledFor(40),
        }
'''


@pytest.fixture
def work(tmp_path, monkeypatch):
    (tmp_path / "pieces_of_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("pieces_of_work").Work


def test_two_processes_give_the_results_of_one(work, monkeypatch):
    pieces = list(range(8))
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # else one BLAS thread is what there is
    with threadpool_limits(2, user_api="blas"):
        here = list(run_pieces(work, pieces, 1))
    assert [r["piece"] for r in here] == pieces
    assert {r["worker"][0] for r in here} == {os.getpid()}
    elsewhere = sorted(run_pieces(work, pieces, 2), key=lambda r: r["piece"])
    assert [r["value"] for r in elsewhere] == [r["value"] for r in here]
    assert os.getpid() not in {r["worker"][0] for r in elsewhere}
    for found in (here, elsewhere):
        assert all(r["threads"] == 1 and r["silent"] for r in found)
        for worker in {r["worker"] for r in found}:  # made once in each process
            mine = sorted(r["done"] for r in found if r["worker"] == worker)
            assert mine == list(range(1, len(mine) + 1))
        assert len({r["worker"] for r in found}) == len({r["worker"][0] for r in found})
    assert logger.isEnabledFor(40)


def test_a_single_piece_starts_no_process(work):
    (row,) = run_pieces(work, [3], 4)
    assert row["worker"][0] == os.getpid()


def test_no_piece_makes_nothing():
    def start():
        raise AssertionError("made for nothing")

    assert list(run_pieces(start, [], 1)) == list(run_pieces(start, [], 2)) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_what_has_not_begun_is_given_up_after_an_error(work, tmp_path, processes):
    with pytest.raises(ZeroDivisionError, match="piece 13"):
        list(run_pieces(work, [0, 13, *range(20, 500)], processes))
    assert logger.isEnabledFor(40)
    assert len(list(tmp_path.glob("done-*"))) < 50


def test_whoever_stops_asking_gets_the_logger_back(work):
    running = run_pieces(work, range(20, 500), 1)
    assert next(running)["piece"] == 20
    assert not logger.isEnabledFor(40)
    running.close()
    assert logger.isEnabledFor(40)


def test_a_method_of_this_process_alone_stays_in_it():
    own = types.SimpleNamespace(__name__="ardvark.mine")
    check_processes(2, "laplace", laplace)
    check_processes(1, "mine", own)
    with pytest.raises(InputError, match=r"'mine' was registered in this process.*processes=1"):
        check_processes(2, "mine", own)
    with pytest.raises(InputError, match="processes must be a finite number above 0, got 0"):
        check_processes(0, "laplace", laplace)
