"""One job that consists of many pieces, run in this process or elsewhere with equal results.

Each piece has a key. A result that is stored under its key is not computed again, so a run that was
killed continues where it stopped. If a piece raises an error, the error is its result and the other
pieces continue; the next run tries that piece again. A process works on one piece at a time, so
only that piece is lost if the process dies. An interrupted run loses only the pieces in progress.

Pieces are computed in this process, in local processes, or by an `Executor`: `cluster.Dask`. Local
processes share the memory that one computation may take when the job begins (`memory.py`).
"""

import logging
import multiprocessing
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, ClassVar

from threadpoolctl import threadpool_limits

from . import memory
from .progress import Update
from .validate import logger, positive


class Work[Key: Hashable, Result](ABC):
    """The pieces of one job, and where their results are stored: `get` and `put`.

    To run in several processes, a subclass must be picklable, as a dataclass of plain objects is,
    and so must its keys and results. Each process calls `start` once, and reuses what it compiled
    for all of its pieces.
    """

    quiet: ClassVar[bool] = True
    """Silence the logger while the pieces run: hundreds of short fits would each warn, and the
    caller reports once."""

    @abstractmethod
    def start(self) -> Callable[[Key], Result]:
        """Return the function that computes one piece. Called only if a piece is missing."""

    @abstractmethod
    def failure(self, key: Key, reason: str) -> Result:
        """Return the result of a piece that raised an error, or whose process died."""

    def get(self, key: Key) -> Result | None:
        """Return the stored result of a piece; None if it must be computed."""
        return None

    def put(self, key: Key, result: Result) -> None:  # noqa: B027  storing is optional
        """Store the result of a piece that succeeded or failed; called in this process.

        If a result is large, let the piece write it to a file and return the path.
        """

    def note(self, key: Key, result: Result) -> str:
        """Return what the progress bar says about a piece that has ended."""
        return ""

    def results(
        self,
        keys: Sequence[Key],
        processes: "Processes" = 1,
        stage: AbstractContextManager[Update] | None = None,
    ) -> Iterator[tuple[Key, Result]]:
        """Yield key and result of each piece: first the stored ones, then the others as they end.

        Parameters
        ----------
        keys : sequence
            Which pieces.
        processes : int or Executor
            How many pieces are computed at once, in local processes; or who computes them. With one
            process, or one piece, everything runs in this process, in the order given. New
            processes are spawned, so a script needs the usual ``if __name__ == "__main__":``. They
            end when their caller ends, even if it is killed. After an interrupt they end at once.
            After an error in the caller they finish their current piece. Pieces that have not begun
            are dropped.
        stage : context manager, optional
            Shows how many pieces are done, stored ones included (`Reporter.stage`).

        Raises
        ------
        Exception
            Whatever `start` or `put` raises. An error in a piece is the result of that piece.
        RuntimeError
            A process could not be started.
        """
        with stage or nullcontext(lambda *state: None) as update:
            for done, (key, result) in enumerate(self._each(keys, processes), 1):
                update(done, self.note(key, result))
                yield key, result

    def run(
        self,
        keys: Sequence[Key],
        processes: "Processes" = 1,
        stage: AbstractContextManager[Update] | None = None,
    ) -> dict[Key, Result]:
        """Return the results by key, in the order given: `results`, all at once."""
        found = dict(self.results(keys, processes, stage))
        return {key: found[key] for key in keys}

    def _each(self, keys: Sequence[Key], processes: "Processes") -> Iterator[tuple[Key, Result]]:
        """Yield key and result of each piece, and store those that are computed."""
        missing = []
        for key in keys:
            result = self.get(key)
            if result is None:
                missing.append(key)
            else:
                yield key, result
        for key, result in _computed(self, missing, processes) if missing else ():
            self.put(key, result)
            yield key, result


class Executor(ABC):
    """Computes pieces of work somewhere else than in local processes."""

    @abstractmethod
    def __call__(self, work: Work, keys: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield key and result of each piece as it ends, in any order.

        A piece that raises an error, or whose process dies again and again, has the result
        `Work.failure`; the others continue.
        """


Processes = int | Executor
"""How many pieces are computed at once, in local processes; or who computes them."""


def elsewhere(processes: Processes) -> bool:
    """Return whether pieces are computed in other processes, where each takes one core."""
    return isinstance(processes, Executor) or processes > 1


def check_processes(processes: Processes) -> None:
    """Refuse a number of processes that is not positive."""
    if not isinstance(processes, Executor):
        positive("processes", processes)


def attempt(work: Work, do: Callable[[Any], Any], key: Any) -> Any:
    """Return the result of a piece, or the one that says which error it raised."""
    try:
        return do(key)
    except Exception as error:
        logger.debug("traceback", exc_info=True)
        return work.failure(key, f"{type(error).__name__}: {error}")


def _computed(work: Work, keys: Sequence[Any], processes: Processes) -> Iterator[tuple[Any, Any]]:
    if isinstance(processes, Executor):
        return processes(work, keys)
    alone = int(processes) == 1 or len(keys) == 1
    return _here(work, keys) if alone else _pooled(work, keys, int(processes))


# --- here -----------------------------------------------------------------------------------------


def _here(work: Work, keys: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    with _silence() if work.quiet else nullcontext(), threadpool_limits(1, user_api="blas"):
        do = work.start()
        for key in keys:
            yield key, attempt(work, do, key)


@contextmanager
def _silence() -> Iterator[None]:
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


# --- in processes ---------------------------------------------------------------------------------


def _pooled(work: Work, keys: Sequence[Any], processes: int) -> Iterator[tuple[Any, Any]]:
    """Yield the results of pieces as they end, each process with one piece at a time.

    Each process is a pool of its own: a pool breaks as a whole when one of its processes dies.
    """
    waiting = list(reversed(keys))
    running: dict[Future, tuple[ProcessPoolExecutor, Any]] = {}  # without a key: still starting
    part = memory.allowed() / min(processes, len(keys))

    def begin() -> None:
        pool = ProcessPoolExecutor(1, mp_context=_SPAWN, initializer=_end_with_parent)
        running[pool.submit(_start, work, part)] = pool, None

    try:
        for _ in range(min(processes, len(keys))):
            begin()
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                pool, done = running.pop(future)
                try:
                    result = future.result()
                except BrokenProcessPool as error:
                    if done is None:
                        raise RuntimeError(
                            "a process that was to compute pieces of work could not be started. "
                            'A script needs `if __name__ == "__main__":` around its calls.'
                        ) from error
                    result = work.failure(done[0], "its process died: killed, or out of memory")
                    if waiting:
                        begin()
                else:
                    if waiting:
                        key = waiting.pop()
                        running[pool.submit(_do, key)] = pool, (key,)
                    else:
                        pool.shutdown(wait=False)
                if done is not None:
                    yield done[0], result
    except KeyboardInterrupt:
        for child in multiprocessing.active_children():
            if isinstance(child, _Deaf):
                child.terminate()
        raise
    finally:
        for pool, _ in running.values():
            pool.shutdown(cancel_futures=True)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Let processes and threads that are started here ignore Ctrl-C.

    A terminal sends it to all processes, and only the caller is to react.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a child inherits this
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Deaf(SpawnProcess):
    """A process that ignores Ctrl-C."""

    def start(self) -> None:
        with without_interrupts():
            super().start()


class _Spawn(SpawnContext):
    Process = _Deaf


_SPAWN = _Spawn()
"""Processes are spawned, not forked, because compiled code runs threads."""

_started: tuple[Work, Callable[[Any], Any]] | None = None
"""The job of a process that `_pooled` started; set once."""


def _start(work: Work, part: float) -> None:
    global _started
    memory.limit(part)
    threadpool_limits(1, user_api="blas")
    if work.quiet:
        logger.setLevel(logging.CRITICAL)
    _started = work, work.start()


def _do(key: Any) -> Any:
    assert _started is not None
    work, do = _started
    return attempt(work, do, key)


def _end_with_parent() -> None:
    """End this process when the one that started it ends.

    A caller that is killed cannot end its processes, which would otherwise wait forever.
    """
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
