"""Many pieces of work, here or in processes of their own, with equal results either way.

Work is a function made once in each process (what it compiles serves every piece there) and called
with one piece after the other. BLAS has one thread, and the logger is silent: hundreds of short
fits would warn, and whoever asked for them reports once.
"""

import logging
import multiprocessing
import os
import signal
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from threadpoolctl import threadpool_limits

from .validate import InputError, logger, positive


def check_processes(processes: int, name: str, backend: object) -> None:
    """Refuse a number of processes that a method cannot be run in.

    Raises
    ------
    InputError
        The number is not positive; or it is above 1, and the method is no module of this package,
        so that another process that imports ardvark does not have it.
    """
    positive("processes", processes)
    known = isinstance(backend, types.ModuleType) and backend.__name__.startswith("ardvark.")
    if processes > 1 and not known:
        raise InputError(
            f"method {name!r} was registered in this process and is not known in others. "
            "Use processes=1."
        )


def run_pieces[Result](
    start: Callable[[], Callable[[int], Result]], pieces: Sequence[int], processes: int
) -> Iterator[Result]:
    """Yield `start()(piece)` for each piece, as they end.

    Parameters
    ----------
    start : callable
        Called once in each process, and only if there is a piece. Above one process it must pickle,
        as a function of a module or a method of a plain object does, and so must the results.
    pieces : sequence of int
        What to do.
    processes : int
        Pieces that run at once. One process, or one piece, is done here. Processes are started
        afresh: a script needs the usual ``if __name__ == "__main__":``. They end with their caller,
        also if that is killed. When it is interrupted they end at once, and after an error once
        they have done their piece; pieces that have not begun are given up.

    Yields
    ------
    object
        The result of one piece; in the order given if they are done here.
    """
    if not pieces:
        return
    if processes > 1 and len(pieces) > 1:
        yield from _elsewhere(start, pieces, processes)
        return
    with _quiet(), threadpool_limits(1, user_api="blas"):
        work = start()
        for piece in pieces:
            yield work(piece)


@contextmanager
def _quiet() -> Iterator[None]:
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _elsewhere[Result](
    start: Callable[[], Callable[[int], Result]], pieces: Sequence[int], processes: int
) -> Iterator[Result]:
    pool = ProcessPoolExecutor(
        max_workers=min(processes, len(pieces)),
        mp_context=SPAWN,
        initializer=_begin,
        initargs=(start,),
    )
    try:
        for future in as_completed([pool.submit(_do, piece) for piece in pieces]):
            yield future.result()
    except KeyboardInterrupt:
        for child in multiprocessing.active_children():
            if isinstance(child, _Deaf):
                child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class _Deaf(SpawnProcess):
    """A process that Ctrl-C does not reach: a terminal sends it to all, and one is to answer."""

    def start(self) -> None:
        if not hasattr(signal, "pthread_sigmask"):  # on Windows
            super().start()
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which a child inherits
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Spawn(SpawnContext):
    Process = _Deaf


SPAWN = _Spawn()
"""How processes are started here: afresh, for threads of compiled code rule out fork."""


_work: Callable[[int], Any] | None = None
"""Set once in each process that `_elsewhere` starts."""


def _begin(start: Callable[[], Callable[[int], Any]]) -> None:
    global _work
    end_with_parent()
    threadpool_limits(1, user_api="blas")
    logger.setLevel(logging.CRITICAL)
    _work = start()


def _do(piece: int) -> Any:
    assert _work is not None
    return _work(piece)


def end_with_parent() -> None:
    """End this process with the one that started it.

    A killed caller cannot end its processes; they would wait for work for ever.
    """
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
