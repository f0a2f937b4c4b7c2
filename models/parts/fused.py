"""Operations written out as compiled loops, where a graph of array operations would be slow.

A `Fused` operation has two forms: `code`, a function compiled by Numba, which NUTS runs, and
`plain`, the same formula made of PyTensor's own operations. JAX and MLX get the plain one by a
rewrite; second derivatives are those of it.
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
    """An operation with a compiled and a plain form; a subclass gives both."""

    @property
    @abstractmethod
    def code(self) -> Callable[..., Any]:
        """The function of the inputs' arrays, compiled by Numba."""

    @abstractmethod
    def plain(self, *inputs: Any) -> list[Any]:
        """Return the outputs as plain expressions of the inputs."""


def gradients(cost: Callable[..., Any], *inputs: Any) -> list[Any]:
    """Return the gradients of cost(*inputs) by each input, as if none depended on another."""
    apart = [v.type() for v in inputs]
    found = pt.grad(cost(*apart), apart, disconnected_inputs="ignore")
    return clone_replace(found, dict(zip(apart, inputs, strict=True)))


def weighed(outputs: Sequence[Any], cotangents: Sequence[Any]) -> Any:
    """Return the sum of the outputs, each weighed by its cotangent where it has one."""
    pairs = zip(outputs, cotangents, strict=True)
    return sum((o * c).sum() for o, c in pairs if not isinstance(c.type, DisconnectedType))


# --- how each backend gets them -------------------------------------------------------------------


@register_funcify_and_cache_key(Fused)
def _numba_form(op: Fused, **_: Any) -> tuple[Any, str]:
    """Return the compiled code and its key in the cache on disk: other code, another key."""
    return op.code, f"{type(op).__name__} {op._props()} {_version()}"


@functools.cache
def _version() -> str:
    """Return a hash of the files here: an operation's code may call that of another file."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@node_rewriter(None)
def _plain_formula(fgraph: Any, node: Apply) -> list[Any] | None:
    """Put the plain formula in the place of the operation."""
    return node.op.plain(*node.inputs) if isinstance(node.op, Fused) else None


optdb.register("ardvark_fused", dfs_rewriter(_plain_formula), "jax", "mlx", position=0.1)
