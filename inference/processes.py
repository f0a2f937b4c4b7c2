"""Many pieces of work, here or in processes of their own, with equal results either way.

Work is a function made once in each process (what it compiles serves every piece there) and called
with one piece after the other. BLAS has one thread, and the logger is silent: hundreds of short
fits would warn, and whoever asked for them reports once.
"""

import logging
import multiprocessing
import os
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

from ardvark.validate import InputError, logger, positive


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
        also if that is killed; pieces that have not begun are given up when it is interrupted.

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
        mp_context=multiprocessing.get_context("spawn"),  # threads of compiled code rule out fork
        initializer=_begin,
        initargs=(start,),
    )
    try:
        for future in as_completed([pool.submit(_do, piece) for piece in pieces]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


_work: Callable[[int], Any] | None = None
"""Set once in each process that `_elsewhere` starts."""


def _begin(start: Callable[[], Callable[[int], Any]]) -> None:
    global _work
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threadpool_limits(1, user_api="blas")
    logger.setLevel(logging.CRITICAL)
    _work = start()


def _do(piece: int) -> Any:
    assert _work is not None
    return _work(piece)


def _end_with_parent() -> None:
    """A killed caller cannot end its processes; they would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
