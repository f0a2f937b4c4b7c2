"""Products of matrices in a compiled density: NumPy's values for every shape and layout."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import get_mode
from pytensor.tensor.math import Dot

from ardvark.models.parts.matrix_product import REWRITE, MatrixProduct
from tests.support import rng

MODE = get_mode("NUMBA").including(REWRITE)
X, Y, v, w = pt.dmatrix("X"), pt.dmatrix("Y"), pt.dvector("v"), pt.dvector("w")
GIVEN = {
    X: rng(0).normal(size=(4, 3)),
    Y: rng(1).normal(size=(3, 5)),
    v: rng(2).normal(size=3),
    w: rng(3).normal(size=4),
}


PRODUCTS = {
    "matrices": (X @ Y, lambda X, Y, v, w: X @ Y),
    "a vector": (X @ v, lambda X, Y, v, w: X @ v),
    "a vector before": (w @ X, lambda X, Y, v, w: w @ X),
    "transposed": (X.T @ w, lambda X, Y, v, w: X.T @ w),
    "both transposed": (Y.T @ X.T, lambda X, Y, v, w: Y.T @ X.T),
    # neither contiguous nor transposed, and a vector that skips numbers
    "strided": (X[::2, ::2] @ Y[::2], lambda X, Y, v, w: X[::2, ::2] @ Y[::2]),
    "a strided vector": (X[:, ::2] @ v[::2], lambda X, Y, v, w: X[:, ::2] @ v[::2]),
    "slope": (
        pt.grad((w * (X @ v) ** 2).sum(), v),
        lambda X, Y, v, w: 2 * X.T @ (w * (X @ v)),
    ),
}


def test_products_are_those_of_numpy():
    """All in one function, which is compiled once."""
    function = pytensor.function([*GIVEN], [graph for graph, _ in PRODUCTS.values()], mode=MODE)
    ops = {type(n.op).__name__ for n in function.maker.fgraph.apply_nodes}
    assert MatrixProduct.__name__ in ops
    assert not {"Dot", "Dot22", "Gemm", "Gemv"} & ops
    found = function(*GIVEN.values())
    for (name, (_, value)), one in zip(PRODUCTS.items(), found, strict=True):
        np.testing.assert_allclose(one, value(*GIVEN.values()), rtol=1e-12, err_msg=name)


def test_a_matrix_of_one_row_stays_one():
    """PyTensor turns the product of a vector and a matrix around, but not that of a row."""
    row = pt.row("row")
    function = pytensor.function([row, X], row @ X, mode=MODE)
    given = GIVEN[w][None]
    np.testing.assert_allclose(function(given, GIVEN[X]), given @ GIVEN[X], rtol=1e-12)


def test_integers_are_left_to_pytensor():
    """BLAS has no product of integers."""
    M = pt.lmatrix("M")
    function = pytensor.function([M, v], M @ v, mode=MODE)  # compiled by its first call: not here
    ops = [n.op for n in function.maker.fgraph.apply_nodes]
    assert any(isinstance(op, Dot) for op in ops)
    assert not any(isinstance(op, MatrixProduct) for op in ops)
