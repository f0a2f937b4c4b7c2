"""The density a generic method works on: a `pm.Model` seen as a function of one flat vector.

The unconstrained vector stacks every free variable after PyMC's transforms (log for positive
variables, and so on). Its log density includes the log-Jacobian of those transforms. Approximations
place their q on this vector, so `lp` and `log_q` are densities of the same thing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from ardvark.models import Problem
from ardvark.validate import InputError

if TYPE_CHECKING:
    import pymc as pm

_DENSITIES: WeakKeyDictionary[pm.Model, Density] = WeakKeyDictionary()


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

    def __init__(self, model: pm.Model) -> None:
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

    def constrain(
        self, x: np.ndarray, keep: Collection[str] | None = None
    ) -> dict[str, np.ndarray]:
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
    """What a method is asked to fit: a problem of the zoo, or a `pm.Model` of one's own.

    Parameters
    ----------
    source : Problem or pm.Model
        What to fit.

    Raises
    ------
    InputError
        It is neither.
    """

    def __init__(self, source: Problem | pm.Model) -> None:
        self.problem = source if isinstance(source, Problem) else None
        self._source = source
        if self.problem is None:
            import pymc as pm

            if not isinstance(source, pm.Model):
                raise InputError(
                    f"fit needs a Problem or a pm.Model, got {type(source).__name__}. "
                    "Make one with ardvark.problem(model, data)."
                )

    @property
    def zoo_problem(self) -> Problem:
        """The problem, for a method whose `supports` accepts nothing else."""
        if self.problem is None:
            raise InputError("this method needs a problem of the zoo, got a bare pm.Model.")
        return self.problem

    @property
    def model(self) -> pm.Model:
        """The `pm.Model`; a problem builds it, on all its data, when first asked."""
        return self._source if self.problem is None else self.problem.model

    @property
    def sizes(self) -> dict[str, int]:
        """How many numbers each variable holds; a problem needs no `model` for it.

        A variable of a bare model without dims counts as one number.
        """
        if self.problem is not None:
            return self.problem.sizes
        dims, coords = self.model.named_vars_to_dims, self.model.coords
        named = {k: v for k, v in dims.items() if v is not None and None not in v}
        return {
            v.name: math.prod(len(coords[d]) for d in named.get(v.name, ()))
            for v in self.model.unobserved_RVs
        }

    @property
    def free_size(self) -> int:
        """P, the length of the unconstrained vector; a problem needs no `model` for it."""
        if self.problem is not None:
            return self.problem.free_size
        return sum(np.size(v) for v in self.model.initial_point().values())

    @property
    def discrete(self) -> str:
        """What is discrete in it: the names of variables, the masks of a problem, or nothing."""
        if self.problem is None:
            return ", ".join(v.name for v in self.model.discrete_value_vars)
        masked = self.problem.spec.masked
        return f"the masks of {', '.join(masked)}" if masked else ""

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
