"""Operations written as compiled loops, because a graph of array operations would be slow.

A `Fused` operation has two forms: `code`, a function compiled by Numba, which NUTS runs, and
`plain`, the same formula made of PyTensor's own operations. A rewrite gives JAX and MLX the plain
form. Second derivatives are taken from it too.
"""

import functools
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.link.numba.dispatch.basic import register_funcify_and_cache_key


class Fused(Op):
    """An operation with a compiled and a plain form; a subclass defines both."""

    @property
    @abstractmethod
    def code(self) -> Callable[..., Any]:
        """Return the function of the input arrays, compiled by Numba."""

    @abstractmethod
    def plain(self, *inputs: Any) -> list[Any]:
        """Return the outputs as plain expressions of the inputs."""


def gradients(cost: Callable[..., Any], *inputs: Any) -> list[Any]:
    """Return the gradients of cost(*inputs) by each input, as if none depended on another."""
    apart = [v.type() for v in inputs]
    found = pt.grad(cost(*apart), apart, disconnected_inputs="ignore")
    return clone_replace(found, dict(zip(apart, inputs, strict=True)))


def weighed(outputs: Sequence[Any], cotangents: Sequence[Any]) -> Any:
    """Return the sum of the outputs, each weighted by its cotangent if it has one."""
    pairs = zip(outputs, cotangents, strict=True)
    return sum((o * c).sum() for o, c in pairs if not isinstance(c.type, DisconnectedType))


# --- how each backend gets these operations -------------------------------------------------------


@register_funcify_and_cache_key(Fused)
def _numba_form(op: Fused, **_: Any) -> tuple[Any, str]:
    """Return the compiled code and its key in the cache on disk, which changes with the code."""
    return op.code, f"{type(op).__name__} {op._props()} {_version()}"


@functools.cache
def _version() -> str:
    """Return a hash of all files here, because the code of an operation may call other files."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@node_rewriter(None)
def _plain_formula(fgraph: Any, node: Apply) -> list[Any] | None:
    """Replace the operation by its plain formula."""
    return node.op.plain(*node.inputs) if isinstance(node.op, Fused) else None


optdb.register("ardvark_fused", dfs_rewriter(_plain_formula), "jax", "mlx", position=0.1)
