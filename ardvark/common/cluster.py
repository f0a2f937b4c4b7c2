"""Pieces of work on a Dask cluster: one that runs already, or one that is started on this machine.

Each worker computes one piece at a time, so that a worker that dies takes one piece with it; the
scheduler gives that piece to another worker. Results return to the caller, which stores them, so
the workers need no shared folder. Pieces are submitted a few at a time, one for each worker: if all
were submitted at once, a piece that kills its worker would condemn others that wait there.
"""

import importlib.util
import logging
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .validate import InputError, whole
from .work import Executor, Processes, Work, without_interrupts

if TYPE_CHECKING:
    from distributed import Client

CONNECT = 10
"""Seconds after which a scheduler that does not answer is an error."""
THREADS = {
    f"distributed.nanny.pre-spawn-environ.{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")
}
"""Dask's settings of workers on this machine."""


@dataclass(frozen=True)
class Dask(Executor):
    """Where the pieces of a long job are computed: on the workers of a Dask cluster.

    `calibrate`, `choose` and `sensitivity` take it as `processes`. Give
    the address of a scheduler, or a number of workers to start on this machine. The workers must
    have the same version of ardvark, and need no shared folder. It needs the extra `cluster`:
    ``pip install "ardvark[cluster]"``.

    If a worker is killed, its piece is computed by another one. A piece whose workers die four
    times is reported as failed; the others are kept.

    Parameters
    ----------
    scheduler : str, optional
        The address of a running scheduler: "tcp://10.0.0.5:8786".
    workers : int, optional
        Number of workers to start on this machine, each with one thread. They end with the job. A
        script needs the usual ``if __name__ == "__main__":``.

    Raises
    ------
    InputError
        Neither is given, or both. Or Dask is not installed.

    Examples
    --------
    >>> import ardvark as av
    >>> av.Dask(workers=2)
    Dask(scheduler=None, workers=2)
    >>> def main(problem):
    ...     return av.sensitivity(problem, folder="refits", processes=av.Dask(workers=2))
    """

    scheduler: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if (self.scheduler is None) == (self.workers is None):
            raise InputError(
                "give either the address of a Dask scheduler or a number of workers to start on "
                f"this machine, got scheduler={self.scheduler!r} and workers={self.workers!r}."
            )
        if self.workers is not None:
            whole("workers", self.workers, 1)
        if importlib.util.find_spec("distributed") is None:
            raise InputError('Dask is not installed. Run: pip install "ardvark[cluster]"')

    def __call__(self, work: Work, keys: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield key and result of each piece as it ends.

        Raises
        ------
        InputError
            No scheduler answers, or its workers cannot import what the pieces need.
        ConnectionError
            The scheduler ended, or cannot be reached any more.
        """
        from distributed import Future, as_completed

        from .on_workers import compute

        waiting = list(reversed(keys))
        running: dict[Future, Any] = {}
        with _silence(), self._client() as client, _deployed(client, work) as name:
            ended = as_completed(loop=client.loop)

            def fill() -> None:
                while waiting and len(running) < max(len(client.nthreads()), 1):
                    key = waiting.pop()
                    piece = f"{name}-{len(waiting)}"
                    future = client.submit(compute, name, key, key=piece, pure=False)
                    running[future] = key
                    ended.add(future)

            fill()
            for future in ended:
                key = running.pop(future)
                result = _result(work, key, future)
                fill()
                yield key, result

    @contextmanager
    def _client(self) -> "Iterator[Client]":
        """Connect to the scheduler, or start a cluster on this machine that ends with the job."""
        import dask
        from distributed import Client, LocalCluster

        if self.scheduler is not None:
            try:
                client = Client(self.scheduler, timeout=CONNECT, set_as_default=False)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"no Dask scheduler answers at {self.scheduler!r}: {error}"
                ) from error
            with client:
                yield client
            return
        with dask.config.set(THREADS), without_interrupts():
            cluster = LocalCluster(
                n_workers=self.workers, threads_per_worker=1, memory_limit=0,
                dashboard_address=None, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            )  # fmt: skip
            client = Client(cluster, set_as_default=False)
        with cluster, client:
            yield client


@contextmanager
def _silence() -> Iterator[None]:
    """Keep Dask from reporting each step of its own."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _deployed(client: "Client", work: Work) -> Iterator[str]:
    """Give the work to each worker, also to those that start later; yield the name it has there."""
    import cloudpickle

    from .on_workers import Deployed

    name = f"ardvark-{uuid.uuid4().hex[:12]}"
    try:
        deployed = Deployed(name, cloudpickle.dumps(work), _on_one_machine(client))
        client.register_plugin(deployed, name=name)
    except Exception as error:  # Dask has no class of its own for what a worker could not unpack
        raise InputError(
            f"the Dask workers could not take the job: {error}. They need the same packages, in "
            "the same versions, as this process."
        ) from error
    try:
        yield name
    finally:
        if client.status == "running":
            client.unregister_worker_plugin(name)


def _on_one_machine(client: "Client") -> int:
    """Return the largest number of workers that one machine has now."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return max(Counter(worker["host"] for worker in workers).values(), default=1)


def _result(work: Work, key: Any, future: Any) -> Any:
    """Return the result of a piece that has ended; one whose workers died has failed."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker:
        return work.failure(key, "its workers died again and again: killed, or out of memory")
    except CancelledError as error:
        raise ConnectionError(
            "the connection to the Dask scheduler was lost. Finished pieces are stored: run the "
            "same again to continue."
        ) from error


def forecast(title: str, done: int, left: int, seconds: float, processes: Processes) -> str:
    """Return in words how long the fits that are left may take, one by one in so many seconds."""
    if isinstance(processes, int):
        seconds /= processes
    elif isinstance(processes, Dask) and processes.workers:
        seconds /= processes.workers
    took = f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} min"
    fits = "fit is" if done == 1 else "fits are"
    return f"{title}: {done} {fits} done. The other {left} may take about {took}."
