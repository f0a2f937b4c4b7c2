"""Chains that Python takes further one transition at a time, each in a thread of its own."""

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, Self

from ardvark.common.progress import Update

from .backend import Arrays, Job, Result
from .draws import Draws

BATCH = 100  # draws whose variables are computed at once


class ThreadedChains(ABC):
    """The chains of one fit (a `chains.Chains`); a subclass says what a transition is.

    Parameters
    ----------
    job : Job
    room : int
        Draws of each chain that are held at once.
    cores : int, optional
        Chains that run in parallel. None: all cores.

    Attributes
    ----------
    generators : list of Generator
        The random stream of each chain.
    """

    seconds_compile: float

    def __init__(self, job: Job, room: int, cores: int | None) -> None:
        self.job = job
        self.attrs: dict[str, Any] = {}
        self.draws = Draws(job, room)
        self.generators = job.generators()
        self.iterations, self.kept, self.every = 0, 0, 1
        self._workers = min(job.chains, cores or os.cpu_count() or 1)
        self._done = [0] * job.chains
        self._stop = threading.Event()

    @abstractmethod
    def transition(self, chain: int) -> None:
        """Take a chain one transition further."""

    @abstractmethod
    def state(self, chain: int) -> Any:
        """Return what `variables` needs of a chain's present state, as copies."""

    @abstractmethod
    def variables(self, states: list[Any]) -> tuple[Arrays, Arrays]:
        """Return the model's variables and the statistics of S states, {name: (S, ...)}."""

    @abstractmethod
    def last(self) -> Arrays:
        """Return what each chain goes on from, {name: (chain, ...)}."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def discard(self, transitions: int, update: Update) -> None:
        """Take each chain on by so many transitions, of which none is kept."""
        self._run(lambda chain: self._move(chain, transitions), update)

    def advance(self, iterations: int, every: int, update: Update) -> None:
        """Take each chain to so many transitions, of which every `every`-th is kept."""
        if every > self.every:
            self.kept, self.every = self.draws.thin(self.kept, every // self.every), every
        count = iterations // every - self.kept
        self._run(lambda chain: self._collect(chain, self.kept, count, every), update)
        self.iterations, self.kept = iterations, self.kept + count

    def read(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the posterior and the statistics of what was kept after transition `first`."""
        return self.draws.read(first // self.every, self.kept)

    def take(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the same in arrays of their own, and hold no draw any more."""
        return self.draws.take(first // self.every, self.kept)

    def result(self, started: float) -> Result:
        """Return all draws of a run that began at this `time.perf_counter`."""
        posterior, stats = self.read(0)
        return Result(
            posterior=dict(posterior),
            sample_stats=dict(stats),
            seconds_compile=self.seconds_compile,
            seconds_run=time.perf_counter() - started,
        )

    def _run(self, work: Callable[[int], None], update: Update) -> None:
        """Do a piece of work of every chain; an error or an interrupt ends them all."""
        with ThreadPoolExecutor(self._workers) as pool:
            running: Any = [pool.submit(work, chain) for chain in range(self.job.chains)]
            pending = running
            try:
                while pending:
                    finished, pending = wait(running, timeout=0.2, return_when=FIRST_EXCEPTION)
                    update(sum(self._done))
                    for chain in finished:
                        chain.result()  # a chain's error ends the fit now
            except BaseException:
                self._stop.set()
                raise

    def _move(self, chain: int, times: int) -> None:
        """Take a chain further; it is cut short once `_stop` is set."""
        for _ in range(times):
            if not self._stop.is_set():
                self.transition(chain)
                self._done[chain] += 1

    def _collect(self, chain: int, first: int, count: int, every: int) -> None:
        """Put the draws `first` to `first` + `count` of a chain where they belong."""
        for at in range(0, count, BATCH):
            states = []
            for _ in range(min(BATCH, count - at)):
                self._move(chain, every)
                states.append(self.state(chain))
            self.draws.add(chain, first + at, *self.variables(states))
