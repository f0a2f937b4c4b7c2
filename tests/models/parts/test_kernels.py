"""Feature-weighted kernels: the two forms agree, and both are the formula."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from ardvark.common.validate import InputError
from ardvark.models.parts.kernels import KERNELS, LINEAR, POLYNOMIAL, RBF, make_kernel
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
    np.testing.assert_allclose(make_kernel(kernel, degree).gram(X, Z, theta), expected)
    x, z, t = pt.dmatrix(), pt.dmatrix(), pt.dvector()
    symbolic = make_kernel(kernel, degree).gram(x, z, t, pt)
    compiled = pytensor.function([x, z, t], symbolic, mode="FAST_COMPILE")
    np.testing.assert_allclose(compiled(X, Z, theta), expected)


def test_rbf_of_a_point_with_itself_is_one():
    X, _, theta = data()
    K = make_kernel("rbf").gram(1e3 * X, 1e3 * X, theta)
    np.testing.assert_allclose(np.diag(K), 1.0, atol=1e-6)
    assert (K <= 1.0).all()


@CASES
def test_a_decision_is_the_bias_and_the_sum_over_centres(kernel, degree):
    """Any number of draws; theta, a or the bias may be shared by them."""
    X, Z, theta = data()
    function, random = make_kernel(kernel, degree), rng(1)
    a, b = random.normal(size=(3, 2, 5)), random.normal(size=(3, 2))
    thetas = theta * random.gamma(1.0, size=(3, 2, 4))
    found = function.decision(X, Z, thetas, a, b)
    assert found.shape == (3, 2, 7)
    for s in np.ndindex(3, 2):
        eta = b[s] + function.gram(X, Z, thetas[s]) @ a[s]
        np.testing.assert_allclose(found[s], eta, rtol=1e-12)
        np.testing.assert_allclose(function.decision(X, Z, theta, a)[s],
                                   function.gram(X, Z, theta) @ a[s], rtol=1e-12)  # fmt: skip
        np.testing.assert_allclose(function.decision(X, Z, thetas[s], a[s], 0.7)[...],
                                   eta - b[s] + 0.7, rtol=1e-12)  # fmt: skip


@CASES
def test_derivatives_by_theta_are_those_of_the_matrix(kernel, degree):
    """The Jacobian of eta, and what is pulled back through K, by differences of `gram`."""
    X, Z, theta = data()
    function, random = make_kernel(kernel, degree), rng(2)
    a, r, step = random.normal(size=5), random.normal(size=7), 1e-6
    K, W = function.gram_and_slope(X, Z, theta)
    np.testing.assert_allclose(K, function.gram(X, Z, theta), rtol=1e-14)
    dK = np.stack(
        [
            (function.gram(X, Z, theta + e) - function.gram(X, Z, theta - e)) / (2 * step)
            for e in step * np.eye(4)
        ],
        axis=-1,
    )  # (N, B, D)
    jacobian = np.einsum("ijk,j->ik", dK, a)
    np.testing.assert_allclose(function.gradient(X, Z, theta, a), jacobian, rtol=1e-5, atol=1e-8)
    pulled = function.pulled_back(X, Z, W, r, a)
    np.testing.assert_allclose(pulled, r @ jacobian, rtol=1e-5, atol=1e-8)


@CASES
def test_a_matrix_follows_from_inner_products_or_distances(kernel, degree):
    X, Z, theta = data()
    function = make_kernel(kernel, degree)
    pairs = X[:, None] - Z if function.by_distance else np.sqrt(X[:, None] * Z + 0j)
    inner, out = np.real((theta * pairs**2).sum(-1)), np.empty((7, 5))
    function.of_inner(inner, out)
    np.testing.assert_allclose(out, function.gram(X, Z, theta), rtol=1e-10)


def test_a_negative_weight_that_lets_an_rbf_kernel_grow_gives_no_matrix():
    X, Z, theta = data()
    signed = np.r_[-theta[0], theta[1:]]
    assert make_kernel("rbf").signed_gram(X, Z, -theta) is None
    for kernel, at in (("rbf", theta), ("linear", signed), ("polynomial", signed)):
        function = make_kernel(kernel, 3)
        K = function.signed_gram(X, Z, at)
        np.testing.assert_array_equal(K, function.gram(X, Z, at))


def test_what_a_kernel_says_of_itself():
    """(theta / 2, 2 a) gives the same K a; K a is affine in x; its code, its degree."""
    said = {}
    X, Z, theta = data()
    a, middle = rng(3).normal(size=5), 0.3 * X[:3] + 0.7 * X[3:6]
    for name, degree in [("linear", 1), ("polynomial", 1), ("polynomial", 3), ("rbf", 1)]:
        function = make_kernel(name, degree)
        eta = function.decision(X, Z, theta, a)
        same = np.allclose(function.decision(X, Z, theta / 2, 2 * a), eta)
        mixed = function.decision(middle, Z, theta, a)
        affine = np.allclose(mixed, 0.3 * eta[:3] + 0.7 * eta[3:6])
        assert (function.is_linear, function.is_primal) == (same, affine)
        said[name, degree] = function.code, function.degree, function.has_degree
    assert said == {
        ("linear", 1): (LINEAR, 0, False),
        ("polynomial", 1): (LINEAR, 1, True),
        ("polynomial", 3): (POLYNOMIAL, 3, True),
        ("rbf", 1): (RBF, 0, False),
    }


def test_equal_kernels_are_one_key():
    """What is filled for a kernel is kept by it."""
    assert make_kernel("linear") == make_kernel("linear", 3) != make_kernel("rbf")
    assert make_kernel("polynomial", 2) != make_kernel("polynomial", 3)
    assert len({make_kernel(name, 2) for name in KERNELS for _ in range(2)}) == 3


def test_unknown_kernel_is_named():
    with pytest.raises(InputError, match="kernel must be one of 'linear', 'polynomial', 'rbf'"):
        make_kernel("cubic")
