"""What runs on a worker of a Dask cluster; `cluster.py` imports it when a cluster is asked for."""

import logging
import pickle
import threading
from collections.abc import Callable
from typing import Any

from distributed import WorkerPlugin
from threadpoolctl import threadpool_limits

from . import memory
from .validate import logger
from .work import Work, attempt

jobs: dict[str, Work] = {}
"""The jobs of this worker, by the names that their callers gave them."""
_started: dict[str, Callable[[Any], Any]] = {}
_one_at_a_time = threading.Lock()
"""PyTensor does not compile in two threads at once, and a worker may have several."""


class Deployed(WorkerPlugin):
    """A job that each worker is given once, when it starts or when the job does."""

    def __init__(self, name: str, job: bytes, neighbours: int) -> None:
        self.name = name
        self.job = job
        self.neighbours = neighbours

    def setup(self, worker: Any) -> None:
        """Unpack the job, and share the memory with the other workers of this machine."""
        memory.limit(memory.SHARE * memory.free() / self.neighbours)
        jobs[self.name] = pickle.loads(self.job)

    def teardown(self, worker: Any) -> None:
        """Forget the job, what was compiled for it, and its part of the memory."""
        memory.limit(float("inf"))
        _started.pop(self.name, None)
        jobs.pop(self.name, None)


def compute(name: str, key: Any) -> Any:
    """Return the result of one piece; what the job compiles is made for the first one."""
    with _one_at_a_time, threadpool_limits(1, user_api="blas"):
        work = jobs[name]
        if work.quiet:
            logger.setLevel(logging.CRITICAL)
        if name not in _started:
            _started[name] = work.start()
        return attempt(work, _started[name], key)
