"""One job that consists of many pieces, computed here or in other processes with equal results.

Each piece has a key. A result that is stored under its key is not computed again, so a run that was
killed continues where it stopped. If a piece raises an error, the error is its result and the other
pieces continue; the next run tries that piece again. An interrupted run, and one of whose processes
one died, loses only the pieces in progress.

Where pieces are computed is joblib's business: in local processes, or wherever the user says by
`joblib.parallel_config`, as on a Dask cluster.
"""

import logging
import os
import threading
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from multiprocessing.process import current_process
from typing import Any, ClassVar

import joblib
import numpy as np
import psutil
from threadpoolctl import threadpool_limits

from . import memory
from .progress import Update
from .validate import logger, positive

Processes = int | None
"""How many pieces are computed at once, each in a process of its own. None: as many as
`joblib.parallel_config` says, one unless it was called."""


class Pieces[Key: Hashable, Result](ABC):
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
        """Return the result of a piece that raised an error."""

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
        processes: Processes = None,
        stage: AbstractContextManager[Update] | None = None,
    ) -> Iterator[tuple[Key, Result]]:
        """Yield key and result of each piece: first the stored ones, then the others as they end.

        Parameters
        ----------
        keys : sequence
            Which pieces.
        processes : int, optional
            How many pieces are computed at once. With one process, or one piece, everything runs in
            this process, in the order given. Pieces that have not begun when the caller stops
            asking, or meets an error, are dropped.
        stage : context manager, optional
            Shows how many pieces are done, stored ones included (`Reporter.stage`).

        Raises
        ------
        Exception
            Whatever `start` or `put` raises. An error in a piece is the result of that piece.
        joblib.externals.loky.process_executor.TerminatedWorkerError
            A process died: killed, or out of memory. The same call computes what is missing.
        """
        with stage or nullcontext(lambda *state: None) as update:
            update(0, f"0 of {len(keys)}")
            for done, (key, result) in enumerate(self._each(keys, processes), 1):
                words = filter(None, [f"{done} of {len(keys)}", self.note(key, result)])
                update(done, ": ".join(words))
                yield key, result

    def run(
        self,
        keys: Sequence[Key],
        processes: Processes = None,
        stage: AbstractContextManager[Update] | None = None,
    ) -> dict[Key, Result]:
        """Return the results by key, in the order given: `results`, all at once."""
        found = dict(self.results(keys, processes, stage))
        return {key: found[key] for key in keys}

    def _each(self, keys: Sequence[Key], processes: Processes) -> Iterator[tuple[Key, Result]]:
        """Yield key and result of each piece, and store those that are computed."""
        missing = []
        for key in keys:
            result = self.get(key)
            if result is None:
                missing.append(key)
            else:
                yield key, result
        if not missing:
            return
        alone = len(missing) == 1 or not elsewhere(processes)
        computed = _here(self, missing) if alone else _there(self, missing, processes)
        with closing(computed):
            for key, result in computed:
                self.put(key, result)
                yield key, result


def elsewhere(processes: Processes) -> bool:
    """Return whether pieces are computed in other processes, where each takes one core.

    Raises
    ------
    InputError
        The number of processes is not positive.
    """
    if processes is not None:
        positive("processes", processes)
    return joblib.effective_n_jobs(processes) > 1


def _attempt(job: Pieces, do: Callable[[Any], Any], key: Any) -> Any:
    """Return the result of a piece, or the one that says which error it raised."""
    try:
        return do(key)
    except Exception as error:
        logger.debug("traceback", exc_info=True)
        return job.failure(key, f"{type(error).__name__}: {error}")


# --- here -----------------------------------------------------------------------------------------


def _here(job: Pieces, keys: Sequence[Any]) -> Generator[tuple[Any, Any]]:
    with _silence() if job.quiet else nullcontext(), threadpool_limits(1, user_api="blas"):
        do = job.start()
        for key in keys:
            yield key, _attempt(job, do, key)


@contextmanager
def _silence() -> Iterator[None]:
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


# --- in other processes ---------------------------------------------------------------------------


def _there(job: Pieces, keys: Sequence[Any], processes: Processes) -> Generator[tuple[Any, Any]]:
    name = uuid.uuid4().hex
    part = memory.allowed() / min(joblib.effective_n_jobs(processes), len(keys))
    # one piece at a time, and arrays as they are: joblib would map large ones, read-only
    parallel = joblib.Parallel(
        processes, return_as="generator_unordered", batch_size=1, max_nbytes=None
    )
    results = parallel(joblib.delayed(_do)(name, os.getpid(), part, job, key) for key in keys)
    try:
        with _silence() if job.quiet else nullcontext():  # of threads, which are in this process
            for result in results:  # noqa: UP028  `yield from` would close them itself
                yield result
    finally:
        with warnings.catch_warnings():  # that what has begun is dropped
            warnings.simplefilter("ignore", UserWarning)
            results.close()
        if _started.pop(name, None) is not None:  # threads
            memory.limit(np.inf)


_started: dict[str, Callable[[Any], Any]] = {}
"""What `start` has returned in this process, by the name of the job that it works on."""


def _do(name: str, caller: int, part: float, job: Pieces, key: Any) -> tuple[Any, Any]:
    """Return key and result of a piece, in one of several processes."""
    do = _started.get(name)
    if do is None:
        _started.clear()  # an earlier job's compiled functions
        memory.limit(part)
        threadpool_limits(1, user_api="blas")
        if current_process().name.startswith("LokyProcess"):  # and no thread, or worker of Dask
            if os.getppid() != caller:  # which has died while this process started
                os._exit(1)
            threading.Thread(target=_end_with, args=[caller], daemon=True).start()
        if job.quiet:
            logger.setLevel(logging.CRITICAL)
        do = _started[name] = job.start()
    return key, _attempt(job, do, key)


def _end_with(parent: int) -> None:
    """End this process when the one that started it ends: one that is killed cannot end it."""
    psutil.Process(parent).wait()
    os._exit(1)
