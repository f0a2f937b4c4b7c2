"""Where a chain of nutpie hands over its draws, so that only those that are kept are ever held.

nutpie calls a C function for each draw of a chain, those of the adaptation included, to compute the
model's variables, and stores what the function returns until the sampler ends. A `Tap` is that
function, of one chain. It computes the variables of the draws that are kept, puts them into
`Draws`, and returns nothing that nutpie would store.

It also holds the chain up, without the interpreter's lock: a draw beyond `goal` waits inside the
call until the goal is raised. So a chain never runs ahead of what was asked for, and at that moment
nutpie has recorded the statistics of all draws up to the goal.
"""

import ctypes
import math
import threading
from collections.abc import Sequence

import numpy as np

from ...target.density import Density
from ...target.draws import Draws

BATCH, NUMBERS = 64, 100_000
"""Draws that are put into `Draws` at once, and numbers of them: at most so many."""
_SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int,  # error number
    ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
)  # fmt: skip


class Tap:
    """What nutpie calls for each draw of one chain.

    Parameters
    ----------
    density : Density
        Of the model.
    names : sequence of str
        The variables that are kept.
    draws : Draws
        Where they are put.
    chain : int
        Which chain it is.
    tune : int
        How many draws come first, of which none is kept.

    Attributes
    ----------
    address : int
        Of the function, for nutpie.
    calls : int
        How many draws have been taken.
    held : bool
        Whether the chain is at its goal, and waits.
    last : array (P,)
        The unconstrained vector of the draw at the goal.
    error : Exception or None
        What went wrong in a call. The chain then waits, and its draws are not complete.
    """

    def __init__(
        self, density: Density, names: Sequence[str], draws: Draws, chain: int, tune: int
    ) -> None:
        self._shapes = density.shapes(names)
        self._expand = density.expansion(names)
        self._data = density.data.addresses
        length = sum(math.prod(shape) for shape in self._shapes.values())
        self._batch = np.empty((max(1, min(BATCH, NUMBERS // length)), length))
        # Python computes these slowly, and they are used for each draw
        self._address, self._data_address = self._batch.ctypes.data, self._data.ctypes.data
        self._filled = self._taken = 0  # rows of the batch, and draws put into `draws` before
        self._draws, self._chain, self._tune = draws, chain, tune
        self.calls, self.goal, self.every = 0, 0, 1
        self.held = False
        self.error: Exception | None = None
        self.last = np.empty(density.size)
        self._stopped = False
        self._gate = threading.Semaphore(0)
        self._function = _SIGNATURE(self._call)  # lives as long as nutpie may call it
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def open(self, goal: int, every: int) -> None:
        """Let the chain go on to so many draws in all, keeping every `every`-th after tuning."""
        self.goal, self.every = goal, every
        if self.held:
            self.held = False
            self._gate.release()

    def stop(self) -> None:
        """Never hold the chain up again and keep nothing more, so that nutpie can end it."""
        self._stopped = True
        self._gate.release()

    def _call(self, size: int, length: int, x: int, out: int, data: int) -> int:
        """Take the draw at the address `x`, or wait first; nutpie ignores what is in `out`."""
        try:
            if self.calls == self.goal and not self._stopped:
                self._wait()
            if not self._stopped:
                self.calls += 1
                self._take(x)
        except Exception as error:  # it could not leave a C function
            self.error = error
            self._wait()
        return 0

    def _wait(self) -> None:
        self.held = True
        self._gate.acquire()

    def _take(self, x: int) -> None:
        after = self.calls - self._tune
        if after > 0 and after % self.every == 0:
            if self._filled == 0:
                self._taken = after // self.every - 1
            size, length = self.last.size, self._batch.shape[1]
            row = self._address + self._filled * self._batch.strides[0]
            if self._expand(size, length, x, row, self._data_address):
                raise FloatingPointError("the model's variables could not be computed")
            self._filled += 1
            if self._filled == len(self._batch):
                self._put()
        if self.calls == self.goal:
            ctypes.memmove(self.last.ctypes.data, x, self.last.nbytes)
            self._put()

    def _put(self) -> None:
        """Put the draws of the batch where they belong."""
        at, point, rows = 0, {}, self._batch[: self._filled]
        for name, shape in self._shapes.items():
            end = at + math.prod(shape)
            point[name] = rows[:, at:end].reshape(-1, *shape)
            at = end
        if self._filled:
            self._draws.add(self._chain, self._taken, point, {})
        self._filled = 0
