"""Products of matrices in a compiled density: NumPy's values for every shape and layout."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
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


@pytest.mark.parametrize(
    ("graph", "value"),
    [
        (X @ Y, lambda X, Y, v, w: X @ Y),
        (X @ v, lambda X, Y, v, w: X @ v),
        (w @ X, lambda X, Y, v, w: w @ X),
        (X.T @ w, lambda X, Y, v, w: X.T @ w),
        (Y.T @ X.T, lambda X, Y, v, w: Y.T @ X.T),
        # neither contiguous nor transposed, and a vector that skips numbers
        (X[::2, ::2] @ Y[::2], lambda X, Y, v, w: X[::2, ::2] @ Y[::2]),
        (X[:, ::2] @ v[::2], lambda X, Y, v, w: X[:, ::2] @ v[::2]),
        (pt.grad((w * (X @ v) ** 2).sum(), v), lambda X, Y, v, w: 2 * X.T @ (w * (X @ v))),
    ],
)
def test_products_are_those_of_numpy(graph, value):
    function = pytensor.function([*GIVEN], graph, mode=MODE, on_unused_input="ignore")
    ops = [n.op for n in function.maker.fgraph.apply_nodes]
    assert any(isinstance(op, MatrixProduct) for op in ops)
    assert not any(isinstance(op, Dot) for op in ops)
    np.testing.assert_allclose(function(*GIVEN.values()), value(*GIVEN.values()), rtol=1e-12)


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
