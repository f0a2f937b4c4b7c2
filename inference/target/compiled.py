"""Functions of a model's unconstrained vector, compiled once for every shape of its data.

PyMC and nutpie fix the length of each variable in the code that they compile, so another data set
needs another compilation of many seconds. Here the vector is cut at lengths that are themselves
data (the model's dims), and each array of data is passed as an address. The same code then serves
every data set, in this process and, through PyTensor's cache on disk, in the next.

The code is a C function. A sampler calls it at its address. Python calls it through `ctypes`, which
releases the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import pymc as pm
from numba import types
from pymc.pytensorf import compile as compile_graph
from pytensor.compile.mode import get_mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.traversal import graph_inputs
from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS, compile_numba_function_src

from ardvark.common.validate import InputError
from ardvark.models.parts import matrix_product, vector_math

# what the code below is written in; numba's cache needs the name of a module
_NAMES = {
    "__name__": __name__,
    "int64": types.int64,
    "carray": numba.carray,
    "isfinite": np.isfinite,
}
MODE = get_mode("NUMBA").including(matrix_product.REWRITE, vector_math.REWRITE)
_NUMBERS, _ADDRESSES = types.CPointer(types.float64), types.CPointer(types.voidptr)

# nutpie's two signatures; what it calls user data is here an array of addresses, `Data.addresses`
# (loops, because an assignment to a slice takes Numba two seconds more to compile)
_DENSITY = (
    types.int64(types.uint64, _NUMBERS, _NUMBERS, _NUMBERS, _ADDRESSES),
    """
def call(dim, x, gradient, value, data):
    try:
        n = int64(dim)
        lengths = carray(data[0], ({lengths},), int64)
        v, g = inner(carray(x, (n,)), {arrays})
        value[0] = v[()]
        for i in range(n):
            gradient[i] = g[i]
        if not isfinite(value[0]):
            return 4
        for i in range(n):
            if not isfinite(g[i]):
                return 3
    except Exception:
        return 1
    return 0
""",
)
_EXPAND = (
    types.int64(types.uint64, types.uint64, _NUMBERS, _NUMBERS, _ADDRESSES),
    """
def call(dim, size, x, out, data):
    try:
        lengths = carray(data[0], ({lengths},), int64)
        values = inner(carray(x, (int64(dim),)), {arrays})[0]
        for i in range(int64(size)):
            out[i] = values[i]
    except Exception:
        return -2
    return 0
""",
)


class Data:
    """The arrays a model's functions read, and their addresses.

    Attributes
    ----------
    addresses : array of uint64
        Of the lengths of all axes (int64), then of each array. Valid while this object lives.
    """

    def __init__(self, model: pm.Model) -> None:
        graph = [model.logp(), *model.replace_rvs_by_values(model.unobserved_RVs)]
        graph += model.dim_lengths.values()  # a dim without coords is as long as an array of data
        self.variables = [v for v in graph_inputs(graph) if isinstance(v, SharedVariable)]
        for v in self.variables:
            if not isinstance(v.get_value(borrow=True), np.ndarray | np.number):
                raise InputError(
                    f"{v.name or v} of the model is a {type(v).__name__}, not an array: "
                    "gradient methods read arrays of data."
                )
        self.refresh()

    def refresh(self) -> bool:
        """Look up the present values, which `pm.set_data` may have changed.

        Returns whether their shapes are those of before.
        """
        before = [a.shape for a in getattr(self, "_arrays", [])]
        self._arrays: list[np.ndarray] = []
        for v in self.variables:
            a = np.require(v.get_value(borrow=True), requirements=["C", "A"])
            # one copy of X where every row is a basis centre: half as much memory to read
            known = [b for b in self._arrays if b.ndim > 1 and np.array_equal(a, b)]
            self._arrays.append(known[0] if known and known[0].dtype == a.dtype else a)
        lengths = [n for a in self._arrays for n in a.shape]
        self._lengths = np.array([*lengths, 0], dtype=np.int64)
        where = [a.ctypes.data for a in (self._lengths, *self._arrays)]
        self.addresses = np.array(where, dtype=np.uint64)
        return before == [a.shape for a in self._arrays]

    @property
    def types(self) -> dict[str, Any]:
        """The arrays' types, by the names that `source` uses."""
        return {str(a.dtype): numba.from_dtype(a.dtype) for a in self._arrays}

    def source(self, wanted: Sequence[Any]) -> tuple[str, int]:
        """Return code that reads these arrays at their addresses, and the number of lengths."""
        code, at = {}, 0
        for i, (v, a) in enumerate(zip(self.variables, self._arrays, strict=True)):
            shape = "".join(f"lengths[{at + k}], " for k in range(a.ndim))
            code[v] = f"carray(data[{i + 1}], ({shape}), {a.dtype})"
            at += a.ndim
        return ", ".join(code[v] for v in wanted), at + 1


_LOADED: dict[str, Any] = {}  # what this process has compiled, or read from PyTensor's cache


class Function:
    """A C function of the unconstrained vector and a model's data.

    Parameters
    ----------
    model : pm.Model
    x : vector
        The symbolic unconstrained vector.
    outputs : list
        What to compute of it: two outputs, log density and gradient, or one vector.
    data : Data
        Of the model.

    Attributes
    ----------
    address : int
        Where the code is.
    """

    def __init__(self, model: pm.Model, x: Any, outputs: list[Any], data: Data) -> None:
        with model:
            graph = compile_graph((x,), outputs, mode=MODE)
        signature, template = _DENSITY if len(outputs) == 2 else _EXPAND
        arrays, lengths = data.source(graph.get_shared())
        source = template.format(arrays=arrays, lengths=lengths)
        inner = graph.vm.jit_fn
        graph_key = CACHED_SRC_FUNCTIONS.get(inner.py_func)
        key = None  # an operation of the graph cannot be stored on disk
        if graph_key is not None:
            key = hashlib.sha256(f"{graph_key} {source}".encode()).hexdigest()
        if key is None or key not in _LOADED:
            names = _NAMES | data.types | {"inner": inner}
            python = compile_numba_function_src(source, "call", names, cache_key=key)
            self._code = numba.cfunc(signature, cache=key is not None)(python)
        else:
            self._code = _LOADED[key]
        if key is not None:
            _LOADED[key] = self._code
        self.address: int = self._code.address
        sizes = [ctypes.c_uint64] * (1 if len(outputs) == 2 else 2)
        pointers = [ctypes.c_void_p] * (5 - len(sizes))
        self._call = ctypes.CFUNCTYPE(ctypes.c_int64, *sizes, *pointers)(self.address)

    def __call__(self, *arguments: int | np.ndarray) -> int:
        """Call the code with these sizes and arrays (C order); return nutpie's error number."""
        given = [a if isinstance(a, int) else a.ctypes.data for a in arguments]
        return int(self._call(*given))
