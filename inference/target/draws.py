"""Draws of several chains, collected a few at a time."""

from collections.abc import Callable, Sequence

import numpy as np

from ardvark.common.progress import Update

from .backend import Arrays, Job


class Draws:
    """Posterior and statistics (chain, draw, ...) of a job, filled in pieces.

    Arrays are allocated when their first piece arrives. Each chain may be filled by its own thread.

    Parameters
    ----------
    job : Job
        What is kept, and of how many chains.
    size : int, optional
        Draws per chain that there is room for; None: those of the job.
    """

    def __init__(self, job: Job, size: int | None = None) -> None:
        self.job, self.size = job, job.draws if size is None else size
        self.posterior: dict[str, np.ndarray] = {}
        self.sample_stats: dict[str, np.ndarray] = {}

    def add(self, chain: int, first: int, point: Arrays, stats: Arrays) -> None:
        """Put draws `first`, `first` + 1, ... of a chain, {name: (S, ...)}, where they belong.

        Variables that the job does not keep are left out.
        """
        kept = {name: x for name, x in point.items() if self.job.keeps(name)}
        for arrays, piece in ((self.posterior, kept), (self.sample_stats, stats)):
            for name, x in piece.items():
                if name not in arrays:
                    whole = np.empty((self.job.chains, self.size, *x.shape[1:]), x.dtype)
                    arrays.setdefault(name, whole)  # another thread may have been first
                arrays[name][chain, first : first + len(x)] = x

    def thin(self, count: int, every: int) -> int:
        """Keep every `every`-th of the first `count` draws, the last of each; return how many."""
        for arrays in (self.posterior, self.sample_stats):
            for x in arrays.values():
                x[:, : count // every] = x[:, every - 1 : count : every].copy()
        return count // every

    def read(self, first: int, count: int) -> tuple[Arrays, Arrays]:
        """Return posterior and statistics of draws `first` to `count`, without copying."""
        posterior, stats = (
            {name: x[:, first:count] for name, x in arrays.items()}
            for arrays in (self.posterior, self.sample_stats)
        )
        return posterior, stats

    def take(self, first: int, count: int) -> tuple[Arrays, Arrays]:
        """Return draws `first` to `count` in arrays of their own, and hold none any more.

        They are moved to the front of the memory that they lie in, and the rest of it is freed, so
        that no second copy is ever held.
        """
        for arrays in (self.posterior, self.sample_stats):
            for name in [*arrays]:
                x = arrays.pop(name)
                rows = x.reshape(-1, *x.shape[2:])
                for chain in range(len(x)):  # to the front, so that none is overwritten
                    begin = chain * (count - first)
                    for at in range(first, count):
                        rows[begin + at - first] = x[chain, at]
                del rows
                shape = (len(x), count - first, *x.shape[2:])
                try:
                    x.resize(shape)
                except ValueError:  # somebody still looks at it
                    x = x.reshape(-1, *x.shape[2:])[: shape[0] * shape[1]].reshape(shape).copy()
                arrays[name] = x
        taken = self.posterior, self.sample_stats
        self.posterior, self.sample_stats = {}, {}
        return taken


def draw_in_chunks(
    job: Job,
    generators: Sequence[np.random.Generator],
    size: int,
    draw: Callable[[np.random.Generator, int], tuple[Arrays, Arrays]],
    update: Update,
) -> Draws:
    """Return independent draws, at most `size` of them at once so that memory stays small.

    `draw(rng, S)` returns S draws of the variables and their statistics, {name: (S, ...)}.
    """
    out = Draws(job)
    for chain, rng in enumerate(generators):
        for first in range(0, job.draws, size):
            S = min(size, job.draws - first)
            out.add(chain, first, *draw(rng, S))
            update(chain * job.draws + first + S)
    return out
