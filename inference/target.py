"""The density a generic method works on: a `pm.Model` seen as a function of one flat vector.

The unconstrained vector stacks every free variable after PyMC's transforms (log for positive
variables, and so on). Its log density includes the log-Jacobian of those transforms. Approximations
place their q on this vector, so `lp` and `log_q` are densities of the same thing.
"""

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

_DENSITIES: WeakKeyDictionary[Any, "Density"] = WeakKeyDictionary()


class Density:
    """Compiled log density and gradient of a model, and the map back to its variables.

    Attributes
    ----------
    size : int
        P, the length of the unconstrained vector.
    names : list of str
        The free variables and deterministics that `constrain` can return.
    start : array (P,)
        PyMC's initial point.
    """

    def __init__(self, model: Any) -> None:
        from pymc.blocking import DictToArrayBijection

        started = time.perf_counter()
        self._model = model
        self._function = model.logp_dlogp_function(ravel_inputs=True)
        self._function.set_extra_values({})
        point = DictToArrayBijection.map(model.initial_point())
        self._layout = point.point_map_info
        self.start: np.ndarray = np.asarray(point.data, dtype=np.float64)
        self.size = len(self.start)
        self.names = [v.name for v in model.unobserved_RVs]
        self.logp_grad(self.start)  # the first call compiles
        self.seconds_compile = time.perf_counter() - started

    def logp_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log density at x (P,), Jacobian included, and its gradient (P,)."""
        value, gradient = self._function(x)
        return float(value), np.asarray(gradient)

    def logp(self, x: np.ndarray) -> np.ndarray:
        """Return the log density at each row of x (S, P)."""
        return np.array([self.logp_grad(row)[0] for row in x])

    @cached_property
    def blocks(self) -> dict[str, slice]:
        """Where each value variable (transformed name) lies in the vector."""
        blocks, at = {}, 0
        for name, _, size, _ in self._layout:
            blocks[name] = slice(at, at + size)
            at += size
        return blocks

    def label(self, i: int) -> str:
        """Return a readable name of component i, with its index in its variable."""
        for name, block in self.blocks.items():
            if block.start <= i < block.stop:
                return f"{name}[{i - block.start}]" if block.stop - block.start > 1 else name
        raise IndexError(i)

    def constrain(self, x: np.ndarray, keep: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Return the model's variables at each row of x (S, P), as {name: (S, ...)}."""
        names = self.names if keep is None else [n for n in self.names if n in keep]
        model = self._model
        # FAST_COMPILE: a handful of products, whose compilation would cost more than it saves
        function = model.compile_fn(
            model.replace_rvs_by_values([model[n] for n in names]),
            inputs=model.value_vars,
            mode="FAST_COMPILE",
            point_fn=False,
            on_unused_input="ignore",
        )
        shapes = {name: shape for name, shape, _, _ in self._layout}
        order = [v.name for v in model.value_vars]
        out: dict[str, np.ndarray] = {}
        for s, row in enumerate(x):
            values = function(*[row[self.blocks[n]].reshape(shapes[n]) for n in order])
            for name, value in zip(names, values, strict=True):
                if s == 0:
                    out[name] = np.empty((len(x), *np.shape(value)))
                out[name][s] = value
        return out


class Target:
    """What a method is asked to fit: a model, and the problem it came from if there is one."""

    def __init__(self, model: Any, problem: Any = None) -> None:
        self._model = model
        self.problem = problem

    @property
    def model(self) -> Any:
        """The `pm.Model` (a problem builds it when first asked)."""
        return self.problem.model if self._model is None else self._model

    @property
    def density(self) -> Density:
        """The compiled density, shared by every method that asks for the same model."""
        if self.model not in _DENSITIES:
            _DENSITIES[self.model] = Density(self.model)
        return _DENSITIES[self.model]

    def compile_density(self) -> float:
        """Compile the density unless that is done; return the seconds it took now."""
        started = time.perf_counter()
        _ = self.density
        return time.perf_counter() - started
