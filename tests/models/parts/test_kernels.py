"""Feature-weighted kernels: the two forms agree, and both are the formula."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from ardvark.common.validate import InputError
from ardvark.models.parts.kernels import default_scales, gram, linear_decision
from tests.support import rng

CASES = pytest.mark.parametrize(
    ("kernel", "degree"), [("linear", 1), ("polynomial", 1), ("polynomial", 3), ("rbf", 1)]
)


def data(N=7, B=5, D=4):
    generator = rng(0)
    return (
        generator.normal(size=(N, D)),
        generator.normal(size=(B, D)),
        generator.gamma(1.0, size=D),
    )


def by_hand(x, z, theta, kernel, degree):
    inner = sum(t * a * b for t, a, b in zip(theta, x, z, strict=True))
    if kernel == "rbf":
        return np.exp(-sum(t * (a - b) ** 2 for t, a, b in zip(theta, x, z, strict=True)))
    return inner if kernel == "linear" else (1 + inner) ** degree


@CASES
def test_numpy_and_pytensor_forms_are_the_formula(kernel, degree):
    X, Z, theta = data()
    expected = np.array([[by_hand(x, z, theta, kernel, degree) for z in Z] for x in X])
    np.testing.assert_allclose(gram(X, Z, theta, kernel=kernel, degree=degree), expected)
    x, z, t = pt.dmatrix(), pt.dmatrix(), pt.dvector()
    symbolic = gram(x, z, t, kernel=kernel, degree=degree, xp=pt)
    compiled = pytensor.function([x, z, t], symbolic, mode="FAST_COMPILE")
    np.testing.assert_allclose(compiled(X, Z, theta), expected)


def test_rbf_of_a_point_with_itself_is_one():
    X, _, theta = data()
    K = gram(1e3 * X, 1e3 * X, theta, kernel="rbf")
    np.testing.assert_allclose(np.diag(K), 1.0, atol=1e-6)
    assert (K <= 1.0).all()


def test_linear_decision_is_the_product_without_the_kernel_matrix():
    X, Z, theta = data()
    a = np.arange(5.0)
    np.testing.assert_allclose(linear_decision(X, Z, theta, a), gram(X, Z, theta) @ a)


def test_unknown_kernel_is_named():
    X, Z, theta = data()
    with pytest.raises(InputError, match="kernel must be one of 'linear', 'polynomial', 'rbf'"):
        gram(X, Z, theta, kernel="cubic")
    with pytest.raises(InputError, match="kernel must be one of"):
        default_scales("cubic", 10, 10)
