"""A matrix product as one call of BLAS, which Numba compiles in a second.

PyTensor's own product for Numba handles every stride and compiles for ten seconds, again for each
layout of its inputs: three quarters of what a user waits for at a first fit. The arrays of a
density are contiguous or transposed, so `numpy.dot` serves. A compilation that includes the rewrite
`REWRITE` uses it for every product of float64 matrices, and calls it with a vector where a matrix
has one column or one row.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytensor.tensor as pt
from numba.extending import overload
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.tensor.math import Dot

from .fused import Fused

REWRITE = "ardvark_matrix_product"


def _readable(x: np.ndarray) -> np.ndarray:
    """Return an array that BLAS can read: a copy if it is neither contiguous nor transposed."""
    return x if x.flags.c_contiguous or x.flags.f_contiguous else np.ascontiguousarray(x)


@overload(_readable, strict=False)
def _readable_compiled(x: Any) -> Callable[..., Any]:
    if x.layout == "A":
        return lambda x: np.ascontiguousarray(x)
    return lambda x: x


@numba.njit(nogil=True)
def _dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.dot(_readable(x), _readable(y))


class MatrixProduct(Fused):
    """x y, for two matrices, or a matrix and a vector."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node."""
        x, y = inputs
        return Apply(self, [x, y], [pt.matmul(x, y).type()])

    @property
    def code(self) -> Callable[..., Any]:
        """The call of BLAS."""
        return _dot

    def plain(self, *inputs: Any) -> list[Any]:
        """Return PyTensor's own operation."""
        return [pt.matmul(*inputs)]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Compute it with NumPy."""
        outputs[0][0] = np.dot(*inputs)

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        """Return the shape of the output."""
        x, y = shapes
        return [(*x[:-1], *y[1:])]


@node_rewriter([Dot])
def _by_blas(fgraph: Any, node: Apply) -> list[Any] | None:
    """Replace a product of matrices; a matrix of one column or row is given as a vector."""
    x, y = node.inputs
    if x.dtype != "float64" or y.dtype != "float64":
        return None
    product = MatrixProduct()
    if y.type.shape[1] == 1:
        return [product(x, y[:, 0])[:, None]]
    if x.type.shape[0] == 1:
        return [product(x[0], y)[None]]
    return [product(x, y)]


# after products are put in order, before operations are fused into one loop (49)
optdb.register(REWRITE, dfs_rewriter(_by_blas), position=48.4)
