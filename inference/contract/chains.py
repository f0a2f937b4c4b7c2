"""Markov chains under way: they are taken further, and their draws are read at any length.

A method whose chains can be continued has, beside the names of `Backend`,

    WARM_UP  the share of a run's iterations, from its start, that is not used; 0 where the
             adaptation of the sampler does not count as iterations
    chains   (target, options, job, length, start) -> Chains

`exact` takes such chains on until they have converged.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ardvark.common.progress import Update

from .backend import Backend, Job
from .target import Target

Arrays = Mapping[str, np.ndarray]


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
        """Return posterior and statistics (chain, draw, ...) of what was kept after `first`."""

    def last(self) -> Arrays:
        """Return what each chain goes on from, {name: (chain, ...)}."""


class Continuing(Backend, Protocol):
    """A method whose chains can be continued."""

    WARM_UP: float
    chains: Callable[[Target, Any, Job, Length, Arrays | None], Chains]
