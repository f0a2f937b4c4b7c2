"""f = K a of each kernel: the plain formula's value and derivatives, in every backend."""

import functools

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from ardvark.inference.target.compiled import MODE
from ardvark.models.parts.kernels import make_kernel
from ardvark.models.parts.kernels.linear import LinearProduct
from tests.support import rng

CASES = pytest.mark.parametrize(
    ("kernel", "degree"), [("linear", 1), ("polynomial", 1), ("polynomial", 3), ("rbf", 1)]
)
SIZES = [(7, 5, 3), (4, 11, 65), (1, 1, 1)]
INPUTS = [pt.dmatrix("X"), pt.dmatrix("Z"), pt.dvector("theta"), pt.dvector("a")]


def data(N, B, D):
    random = rng(N + D)
    X, Z = random.normal(size=(N, D)), random.normal(size=(B, D))
    a = np.append(random.normal(size=B), np.full(4, np.nan))  # what lies beyond its end is seen
    return X, Z, random.gamma(1.0, size=D) / D, a[:B]


def plain(kernel, degree):
    X, Z, theta, a = INPUTS
    return make_kernel(kernel, degree).gram(X, Z, theta, pt) @ a


def scalar(f):
    """A function of f that weighs its components differently and is not linear."""
    return (pt.tanh(f) * (1.0 + pt.arange(f.shape[0]))).sum()


def derivatives(f, order):
    """Value, gradients by theta and a, and at order 2 the gradients of a function of those."""
    outputs = [f, *pt.grad(scalar(f), INPUTS[2:])]
    if order == 2:
        outputs += pt.grad(sum((g * pt.cos(g)).sum() for g in outputs[1:]), INPUTS[2:])
    return outputs


@functools.cache
def fused(kernel, degree=1, mode="NUMBA", order=1):
    """Return the compiled operation and its derivatives, which serve all tests."""
    outputs = derivatives(make_kernel(kernel, degree).product(*INPUTS), order)
    return pytensor.function(INPUTS, outputs, mode=MODE if mode == "NUMBA" else mode)


@functools.cache
def by_formula(kernel, degree):
    return pytensor.function(INPUTS, derivatives(plain(kernel, degree), 2), mode="FAST_COMPILE")


@pytest.mark.parametrize(
    ("kernel", "degree", "mode", "order"),
    [
        ("linear", 1, "NUMBA", 1), ("rbf", 1, "NUMBA", 1), ("linear", 1, "FAST_COMPILE", 2),
        ("polynomial", 1, "FAST_COMPILE", 2), ("polynomial", 3, "FAST_COMPILE", 2),
        ("rbf", 1, "FAST_COMPILE", 2),
    ],
)  # fmt: skip
def test_value_and_derivatives_are_those_of_the_formula(kernel, degree, mode, order):
    for sizes in SIZES:
        given = data(*sizes)
        outputs, known = fused(kernel, degree, mode, order)(*given), by_formula(kernel, degree)
        for found, expected in zip(outputs, known(*given), strict=order == 2):
            scale = np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * scale)


@CASES
def test_gradients_by_differences(kernel, degree):
    """Against nothing but the values; X and Z too, and one array in both places."""
    given = data(5, 4, 3)
    f = make_kernel(kernel, degree).product(*INPUTS)
    outputs = [scalar(f), *pt.grad(scalar(f), INPUTS)]
    function = pytensor.function(INPUTS, outputs, mode="FAST_COMPILE")
    for i, gradient in enumerate(function(*given)[1:]):
        for at in np.ndindex(gradient.shape):
            ahead, behind = ([np.array(v) for v in given] for _ in range(2))
            ahead[i][at] += 1e-6
            behind[i][at] -= 1e-6
            slope = (function(*ahead)[0] - function(*behind)[0]) / 2e-6
            np.testing.assert_allclose(gradient[at], slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("where", ["X", "theta", "a"])
def test_nan_is_seen(kernel, where):
    given = dict(zip(["X", "Z", "theta", "a"], data(6, 5, 3), strict=True))
    given[where].flat[0] = np.nan
    assert all(np.isnan(v).any() for v in fused(kernel)(*given.values()))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_shapes_are_known_without_computing(kernel):
    f = make_kernel(kernel).product(*INPUTS)
    function = pytensor.function(INPUTS, f.shape[0], on_unused_input="ignore", mode="FAST_RUN")
    ops = [type(n.op) for n in function.maker.fgraph.apply_nodes]
    assert LinearProduct not in ops
    assert function(*data(6, 5, 3)) == 6
