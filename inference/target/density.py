"""A model's log density as a function of one flat vector.

The unconstrained vector stacks every free variable after PyMC's transforms (log for positive
variables, and so on). Its log density includes the log-Jacobian of those transforms. NUTS moves on
it and approximations place their q on it, so `lp` and `log_q` are densities of the same thing.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.initial_point import make_initial_point_fn
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph

from ardvark.common.validate import InputError

from .compiled import Data, Function


def _joined(point: dict[str, np.ndarray]) -> np.ndarray:
    """Return a point as one vector."""
    return np.concatenate([np.ravel(v) for v in point.values()], dtype=float)


def _terms(model: pm.Model) -> list[Any]:
    """Return what the log density is made of, and what is computed beside it."""
    pairs = [*model.rvs_to_values.items(), *model.rvs_to_transforms.items()]
    return [*(x for pair in pairs for x in pair), *model.potentials, *model.deterministics]


class Density:
    """Compiled log density and gradient of a model, and the map back to its variables.

    Attributes
    ----------
    size : int
        P, the length of the unconstrained vector.
    start : array (P,)
        PyMC's initial point, under the data of the last `refresh`.
    names : list of str
        The free variables and deterministics that `constrain` can return.
    data : Data
        The arrays of the model.
    function : Function
        The code of `logp_grad`.
    graph : scalar expression
        The log density, Jacobian included, in the model's value variables.
    """

    def __init__(self, model: pm.Model) -> None:
        started = time.perf_counter()
        self._owner = weakref.ref(model)  # which knows this density: a circle is never freed
        self._terms = _terms(model)
        self._initial_point = make_initial_point_fn(model=model)
        point = self._initial_point(None)
        self.start = _joined(point)
        self.size = len(self.start)
        self._point_shapes = {name: np.shape(value) for name, value in point.items()}
        self.names = [v.name for v in model.unobserved_RVs]
        self.data = Data(model)
        self._x = pt.dvector("x")
        self._pieces = self._cut()

        self.graph: Any = rewrite_graph(model.logp(), include=["canonicalize", "stabilize"])
        gradient = pt.concatenate([g.ravel() for g in self._gradients()])
        both = clone_replace([self.graph, gradient], self._pieces)
        self.function = Function(model, self._x, both, self.data)
        self._expansions: dict[tuple[str, ...], Function] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self.seconds_compile = time.perf_counter() - started

    def _gradients(self) -> list[Any]:
        """Return the gradient in each value variable; refuse one that the density does not have."""
        given: Any = {"disconnected_inputs": "ignore", "return_disconnected": "none"}
        found = pt.grad(self.graph, [*self._pieces], **given)
        absent = [v.name for v, g in zip(self._pieces, found, strict=True) if g is None]
        if absent:
            raise InputError(
                f"the density does not depend on {', '.join(absent)}: the prior is flat, and "
                "nothing that is observed depends on it, so there is no posterior."
            )
        return found

    def refresh(self) -> bool:
        """Look up the data and the initial point, which `pm.set_data` may have changed.

        Returns whether the data have the shapes of before, and the model the same terms; if not,
        this density is of no use.
        """
        same = _terms(self._model) == self._terms and self.data.refresh()
        if same:  # a chain starts where it would start under a model of its own
            self.start = _joined(self._initial_point(None))
        return same

    @property
    def _model(self) -> pm.Model:
        model = self._owner()
        assert model is not None, "whoever holds a density holds its model"
        return model

    def _cut(self) -> dict[Any, Any]:
        """Return each value variable as a piece of the symbolic vector.

        A piece is as long as the variable's dims, which are data. Where it has none, or a transform
        changed its length, the length becomes a part of the code.
        """
        model, pieces = self._model, {}
        at: Any = pt.constant(0, dtype="int64")
        for rv in model.free_RVs:
            value = model.rvs_to_values[rv]
            shape, dims = self._point_shapes[value.name], model.named_vars_to_dims.get(rv.name)
            lengths = [model.dim_lengths[d] for d in dims or () if d is not None]
            if tuple(int(n.eval()) for n in lengths) != shape:
                lengths = [pt.constant(n, dtype="int64") for n in shape]
            size = math.prod(lengths[1:], start=lengths[0]) if lengths else 1
            piece = self._x[at : at + size] if lengths else self._x[at]
            pieces[value] = piece if len(lengths) < 2 else piece.reshape(lengths)
            at = at + size
        return pieces

    def logp_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log density at x (P,), Jacobian included, and its gradient (P,)."""
        x = np.ascontiguousarray(x, dtype=float)
        if x.shape != (self.size,):
            raise ValueError(f"x has shape {x.shape}, the model needs ({self.size},)")
        value, gradient = np.full(1, np.nan), np.full(self.size, np.nan)
        self.function(self.size, x, gradient, value, self.data.addresses)
        return float(value[0]), gradient

    def logp(self, x: np.ndarray) -> np.ndarray:
        """Return the log density at each row of x (S, P)."""
        return np.array([self.logp_grad(row)[0] for row in x])

    @property
    def blocks(self) -> dict[str, slice]:
        """Where each value variable (transformed name) lies in the vector."""
        blocks, at = {}, 0
        for name, shape in self._point_shapes.items():
            blocks[name] = slice(at, at + math.prod(shape))
            at += math.prod(shape)
        return blocks

    @property
    def bounded(self) -> np.ndarray:
        """Which components (P,) are of variables with a boundary, which lies infinitely far off."""
        of = {value.name: rv.name for rv, value in self._model.rvs_to_values.items()}
        found = np.zeros(self.size, dtype=bool)
        for name, block in self.blocks.items():
            found[block] = name != of[name]  # a transformed variable is called otherwise
        return found

    def label(self, i: int) -> str:
        """Return a readable name of component i, by the coordinates of its variable.

        The log of a positive one is "log tau[3]"; of other transforms the name of the value
        variable says which it is.
        """
        model = self._model
        of = {value.name: rv for rv, value in model.rvs_to_values.items()}
        for name, block in self.blocks.items():
            if not block.start <= i < block.stop:
                continue
            rv, shape = of[name], self._point_shapes[name]
            word = f"log {rv.name}" if name == f"{rv.name}_log__" else name
            place = np.unravel_index(i - block.start, shape)
            dims = model.named_vars_to_dims.get(rv.name) or (None,) * len(place)
            labels = [model.coords.get(d) for d in dims]
            found = [
                k if known is None or len(known) != n else known[k]
                for k, known, n in zip(place, labels, shape, strict=False)
            ]
            return f"{word}[{','.join(map(str, found))}]" if found else word
        raise IndexError(i)

    def shapes(self, names: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of these variables; only the first call may compile something."""
        for name in names:
            if name not in self._shapes:
                self._shapes[name] = self._shape(name)
        return {name: self._shapes[name] for name in names}

    def _shape(self, name: str) -> tuple[int, ...]:
        model = self._model
        dims = model.named_vars_to_dims.get(name)
        if dims is not None and None not in dims:
            return tuple(int(model.dim_lengths[d].eval()) for d in dims)
        if None not in model[name].type.shape:
            return tuple(model[name].type.shape)
        value = model.replace_rvs_by_values([model[name]])[0]
        inputs, point = model.value_vars, model.initial_point()  # most are not in its graph
        given: Any = {"on_unused_input": "ignore", "mode": "FAST_COMPILE"}
        shape = pytensor.function(inputs, value.shape, **given)
        return tuple(map(int, shape(*[point[v.name] for v in inputs])))

    def expansion(self, names: Collection[str]) -> Function:
        """Return the function from the vector to these variables, one after the other.

        (P, length, x, out, data) -> error number.
        """
        key = tuple(names)
        if key not in self._expansions:
            model = self._model
            values = model.replace_rvs_by_values([model[n] for n in key])
            flat = pt.concatenate([v.ravel().astype("float64") for v in values])
            (flat,) = clone_replace([flat], self._pieces)
            self._expansions[key] = Function(model, self._x, [flat], self.data)
        return self._expansions[key]

    def interpreted(self, outputs: Sequence[Any]) -> Callable[[np.ndarray], list[np.ndarray]]:
        """Return the function from the vector to these expressions in the value variables.

        NumPy computes it node by node: for what is wanted a few times, where Numba would first
        compile for many seconds.
        """
        outputs = clone_replace(list(outputs), self._pieces)
        return pytensor.function([self._x], outputs, mode="FAST_COMPILE")

    def constrain(
        self, x: np.ndarray, keep: Collection[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Return the model's variables at each row of x (S, P), as {name: (S, ...)}."""
        names = self.names if keep is None else [n for n in self.names if n in keep]
        shapes, expand = self.shapes(names), self.expansion(names)
        x = np.ascontiguousarray(x, dtype=float)
        flat = np.empty(sum(math.prod(s) for s in shapes.values()))
        out = {name: np.empty((len(x), *shape)) for name, shape in shapes.items()}
        for s, row in enumerate(x):
            if expand(self.size, flat.size, row, flat, self.data.addresses):
                raise FloatingPointError("the model's variables could not be computed")
            at = 0
            for values in out.values():
                values[s] = flat[at : at + values[s].size].reshape(values.shape[1:])
                at += values[s].size
        return out
