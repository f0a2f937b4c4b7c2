"""Many pieces of one work, here or in processes of their own, with equal results either way.

A piece has a key; what is stored under it is not computed again, so a run that was killed goes on
where it was. An error is the result of its own piece, and the others go on; the next run tries it
again. A process has one piece at a time: the death of a process loses that piece alone, and a
stop loses what is running.
"""

import logging
import multiprocessing
import os
import signal
import threading
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, ClassVar

from threadpoolctl import threadpool_limits

from .progress import Update
from .validate import InputError, logger, positive


class Work[Key: Hashable, Result](ABC):
    """Pieces of one work, and where their results are stored.

    To compute in processes, a work must pickle, as a data class of plain objects does, and so must
    its keys and results. A process calls `start` once: what that compiles serves every piece there.
    """

    quiet: ClassVar[bool] = True
    """Silence the logger meanwhile: hundreds of short fits would warn, and whoever asked for them
    reports once."""

    @abstractmethod
    def start(self) -> Callable[[Key], Result]:
        """Return the function that computes one piece; called only if there is one to compute."""

    @abstractmethod
    def failure(self, key: Key, reason: str) -> Result:
        """Return what stands for a piece that raised an error, or whose process died."""

    def stored(self, keys: Sequence[Key]) -> Iterable[tuple[Key, Result]]:
        """Return key and result of the pieces that are there, and need not be computed again."""
        return ()

    def keep(self, key: Key, result: Result) -> None:  # noqa: B027  a work need store nothing
        """Store the result of a piece that has ended, by whatever end; called in this process.

        A large result is better written by the piece itself, which then returns where it is.
        """

    def note(self, key: Key, result: Result) -> str:
        """Return what the progress bar says of a piece that has ended."""
        return ""

    def results(self, keys: Sequence[Key], processes: int = 1) -> Iterator[tuple[Key, Result]]:
        """Yield key and result of each piece: first the stored ones, then the others as they end.

        Parameters
        ----------
        keys : sequence
            Which pieces.
        processes : int
            Pieces that are computed at once. One process, or one piece, is computed here, in the
            order given. Processes are started afresh: a script needs the usual
            ``if __name__ == "__main__":``. They end with their caller, also if that is killed. When
            it is interrupted they end at once, and after an error of the caller's once they have
            done their piece; pieces that have not begun are given up.

        Raises
        ------
        Exception
            What `start` or `keep` raises. An error of a piece is its result.
        RuntimeError
            A process could not be started.
        """
        there = set()
        for key, result in self.stored(keys):
            there.add(key)
            yield key, result
        missing = [key for key in keys if key not in there]
        if not missing:
            return
        alone = processes == 1 or len(missing) == 1
        for key, result in _here(self, missing) if alone else _pooled(self, missing, processes):
            self.keep(key, result)
            yield key, result

    def run(
        self,
        keys: Sequence[Key],
        processes: int = 1,
        stage: AbstractContextManager[Update] | None = None,
    ) -> dict[Key, Result]:
        """Return the results by key, in the order given; `stage` shows how many there are."""
        found: dict[Key, Result] = {}
        with stage or nullcontext(lambda *state: None) as update:
            for key, result in self.results(keys, processes):
                found[key] = result
                update(len(found), self.note(key, result))
        return {key: found[key] for key in keys}


def check_processes(processes: int, name: str, backend: object) -> None:
    """Refuse a number of processes that a method cannot use.

    Raises
    ------
    InputError
        The number is not positive. Or it is above 1 and the method is not part of this package, so
        that another process that imports ardvark does not have it.
    """
    positive("processes", processes)
    known = isinstance(backend, types.ModuleType) and backend.__name__.startswith("ardvark.")
    if processes > 1 and not known:
        raise InputError(
            f"method {name!r} was registered in this process only, and others do not know it. "
            "Use processes=1."
        )


def _attempt(work: Work, do: Callable[[Any], Any], key: Any) -> Any:
    try:
        return do(key)
    except Exception as error:
        logger.debug("traceback", exc_info=True)
        return work.failure(key, f"{type(error).__name__}: {error}")


# --- here -----------------------------------------------------------------------------------------


def _here(work: Work, keys: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    with _silence() if work.quiet else nullcontext(), threadpool_limits(1, user_api="blas"):
        do = work.start()
        for key in keys:
            yield key, _attempt(work, do, key)


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
    running: dict[Future, tuple[ProcessPoolExecutor, Any]] = {}  # no key: it starts

    def begin() -> None:
        pool = ProcessPoolExecutor(1, mp_context=_SPAWN, initializer=_end_with_parent)
        running[pool.submit(_start, work)] = pool, None

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


class _Deaf(SpawnProcess):
    """A process that ignores Ctrl-C: a terminal sends it to all, and only one should answer."""

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


_SPAWN = _Spawn()
"""How processes are started: afresh, for threads of compiled code rule out fork."""

_started: tuple[Work, Callable[[Any], Any]] | None = None
"""The work of a process that `_pooled` started, set once."""


def _start(work: Work) -> None:
    global _started
    threadpool_limits(1, user_api="blas")
    if work.quiet:
        logger.setLevel(logging.CRITICAL)
    _started = work, work.start()


def _do(key: Any) -> Any:
    assert _started is not None
    work, do = _started
    return _attempt(work, do, key)


def _end_with_parent() -> None:
    """End this process when the one that started it ends.

    A killed caller cannot end its processes, which would otherwise wait for work forever.
    """
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
