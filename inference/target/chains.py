"""Markov chains under way: they are taken further, and their draws are read at any length.

A method whose chains the driver can take on until they have converged has, beside the names of
`Backend`,

    WARM_UP  the share of a run's iterations, from its start, that is not used; 0 where the
             adaptation of the sampler does not count as iterations
    chains   (target, options, job, length, start) -> Chains
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ardvark.common.progress import Update

from .backend import Arrays, Backend, Job
from .length import Length
from .target import Target

FREE = "unconstrained"
"""What `Chains.last` calls unconstrained vectors from which chains go on."""


class Chains(AbstractContextManager["Chains"], Protocol):
    """The chains of one fit. As a context, they end with the block, whatever happens in it.

    Attributes
    ----------
    attrs : dict
        What the fit should say about them (numbers and strings).
    seconds_compile : float
        Of compiling them, and of what else comes before their first iteration.
    tune : int
        Transitions of each chain before its first iteration.
    """

    attrs: dict[str, Any]
    seconds_compile: float
    tune: int

    def advance(self, iterations: int, every: int, update: Update) -> None:
        """Take each chain to so many iterations from its start, of which every `every`-th is kept.

        `every` is that of the last call or a multiple of it. `update` is called with the
        transitions of a chain so far, on average.
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


class Continuing(Backend, Protocol):
    """A method whose chains can be continued."""

    WARM_UP: float
    chains: Callable[[Target, Any, Job, Length, Arrays | None], Chains]
