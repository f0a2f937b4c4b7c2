"""The arrow of a linear kernel's curvature is the dense matrix, and is never one."""

import tracemalloc

import numpy as np
import pytest
from scipy import linalg

import ardvark as av
from ardvark.inference.approximations import laplace
from ardvark.inference.approximations.curvature import Curvature, Features, columns, linear_kernel
from ardvark.inference.target.target import Target
from tests.support import rng

MODELS = pytest.mark.parametrize(
    "name", ["pfcvm", "rfvm", pytest.param("jcfo", marks=pytest.mark.slow)]
)


def target(name, N=20, D=14, **hypers):
    """One strong feature: its prior alone is not log-concave where the data put it."""
    X = rng(0).normal(size=(N, D))
    return Target(av.problem(name, (X, (3.0 * X[:, 0] + X[:, 1] > 0.0).astype(int)), **hypers))


def mode(density):
    return laplace.best_mode(density, laplace.Options(), rng(1), lambda *_: None)[0]


@MODELS
@pytest.mark.parametrize("N", [5, 20])  # fewer rows than features, and more
def test_the_arrow_is_the_dense_matrix(name, N):
    density = target(name, N).density
    x = mode(density)
    dense, arrow = Curvature(density, x), Curvature(density, x, Features(density))
    H = columns(density, x, np.arange(density.size))
    inverse = np.linalg.inv(0.5 * (H + H.T))
    sd = np.sqrt(np.diag(inverse))
    g = rng(2).normal(size=density.size)
    for found in (dense, arrow):
        R = found.sample(np.eye(density.size)).T
        np.testing.assert_allclose(
            R @ R.T / np.outer(sd, sd), inverse / np.outer(sd, sd), atol=1e-7
        )
        np.testing.assert_allclose(found.log_det, np.linalg.slogdet(H)[1], atol=1e-6)
        np.testing.assert_allclose(found.sd, sd, rtol=1e-7)
        np.testing.assert_allclose(found.solve(g) / sd, inverse @ g / sd, atol=1e-6)


def test_a_strong_feature_joins_the_border():
    density = target("pfcvm", 60, 50).density
    x, features = mode(density), Features(density)
    A = features.at(x)[1]
    assert (A[:, 0, 0] < 0.0).any()
    np.testing.assert_allclose(Curvature(density, x, features).sd, Curvature(density, x).sd)


@pytest.mark.parametrize("name", ["pfcvm", "rfvm"])
def test_it_is_positive_definite_where_the_dense_matrix_is(name):
    """Some of these points are, some are not."""
    density = target(name, 60).density
    features, at_mode, random = Features(density), mode(density), rng(3)
    seen = set()
    for size in (0.0, 0.3, 1.0, 3.0):
        x = at_mode + size * random.normal(size=density.size)
        H = columns(density, x, np.arange(density.size))
        positive = bool(np.linalg.eigvalsh(0.5 * (H + H.T))[0] > 0.0)
        seen.add(positive)
        if positive:
            Curvature(density, x, features)
        else:
            with pytest.raises(linalg.LinAlgError, match="not positive definite"):
                Curvature(density, x, features)
    assert seen == {True, False}


def test_which_problems_have_the_structure():
    assert linear_kernel(target("pfcvm").problem)
    assert linear_kernel(target("jcfo").problem)  # polynomial of degree 1
    assert not linear_kernel(target("pfcvm", kernel="rbf").problem)
    assert not linear_kernel(target("rvm").problem)  # theta is fixed
    assert not linear_kernel(target("sparse_probit").problem)  # no basis
    assert not linear_kernel(None)


def test_many_features_and_no_matrix_of_them():
    """6000 x 6000 numbers are 288 MB."""
    X = rng(4).normal(size=(12, 3000))
    problem = av.problem("rfvm", (X, np.arange(12) % 2))
    assert problem.free_size > laplace.LARGEST
    density = Target(problem).density
    features = Features(density)
    tracemalloc.start()
    curvature = Curvature(density, density.start, features)
    x = curvature.sample(rng(5).normal(size=(3, density.size)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert x.shape == (3, problem.free_size)
    assert peak < 60e6
    given = {"draws": 10, "chains": 2, "random_seed": 1, "progressbar": False}
    tree = av.fit(problem, "laplace", starts=1, **given)
    assert tree.attrs["status"] == "finished", tree.attrs["reason"]
