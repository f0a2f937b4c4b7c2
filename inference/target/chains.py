"""Markov chains under way: they are taken further, and their draws are read at any length.

A method whose chains can be continued has, beside the names of `Backend`,

    WARM_UP  the share of a run's iterations, from its start, that is not used; 0 where the
             adaptation of the sampler does not count as iterations
    chains   (target, options, job, length, start) -> Chains

`exact` takes such chains on until they have converged.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from ardvark.common.progress import Update

from .backend import Arrays, Backend, Earlier, Job
from .target import Target

FREE = "unconstrained"
"""What `Chains.last` calls unconstrained vectors from which chains go on."""


@dataclass(frozen=True)
class Length:
    """How long chains may become.

    Attributes
    ----------
    limit : int
        Iterations of each chain.
    room : int
        Draws of each chain that are held at once.
    """

    limit: int
    room: int


class Chains(AbstractContextManager["Chains"], Protocol):
    """The chains of one fit. As a context, they end with the block, whatever happens in it.

    Attributes
    ----------
    attrs : dict
        What the fit should say about them (numbers and strings).
    seconds_compile : float
        Of compiling them.
    """

    attrs: dict[str, Any]
    seconds_compile: float

    def advance(self, iterations: int, every: int, update: Update) -> None:
        """Take each chain to so many iterations from its start, of which every `every`-th is kept.

        `every` is that of the last call or a multiple of it. `update` is called with the number of
        iterations of all chains.
        """

    def read(self, first: int) -> tuple[Arrays, Arrays]:
        """Return posterior and statistics (chain, draw, ...) of what was kept after `first`.

        They may share memory with the chains, and change when these are taken on.
        """

    def take(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the same in arrays of their own. The chains hold no draw then, and cannot go on.

        So draws are not copied where nothing that `read` returned is still held.
        """

    def last(self) -> Arrays:
        """Return what each chain goes on from, {name: (chain, ...)}."""


class Resumed:
    """Chains that go on where earlier ones ended, with the draws of both (a `Chains`).

    Parameters
    ----------
    chains : Chains
        The new ones, started from `earlier.last`.
    earlier : Earlier
        The ones before.
    """

    def __init__(self, chains: Chains, earlier: Earlier) -> None:
        self.chains, self.earlier = chains, earlier
        self.attrs, self.seconds_compile = chains.attrs, chains.seconds_compile
        self.every = earlier.every

    def __enter__(self) -> Self:
        self.chains.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.chains.__exit__(*error)

    def advance(self, iterations: int, every: int, update: Update) -> None:
        """Take the new chains on, to so many iterations of both together."""
        self.every = every
        self.chains.advance(iterations - self.earlier.iterations, every, update)

    def read(self, first: int) -> tuple[Arrays, Arrays]:
        """Return posterior and statistics of both, of what was kept after `first`."""
        before = self.earlier
        found = self.chains.read(max(0, first - before.iterations))
        draws = next(iter(before.posterior.values())).shape[1]
        at = before.at  # their iterations
        if at is None:
            at = before.iterations - before.every * np.arange(draws)[::-1]
        # the last of every so many, counted from the end, so that distances stay the same
        step = self.every // before.every
        kept = np.flatnonzero(at > first)[::-1][::step][::-1]
        posterior, stats = (
            {name: np.concatenate([old[name][:, kept], x], axis=1) for name, x in new.items()}
            for old, new in zip((before.posterior, before.sample_stats), found, strict=True)
        )
        return posterior, stats

    def take(self, first: int) -> tuple[Arrays, Arrays]:
        """Return what `read` does, which is a copy already."""
        return self.read(first)

    def last(self) -> Arrays:
        """Return what each chain goes on from."""
        return self.chains.last()


class Continuing(Backend, Protocol):
    """A method whose chains can be continued."""

    WARM_UP: float
    chains: Callable[[Target, Any, Job, Length, Arrays | None], Chains]
