"""Arrays are read by position: a fit whose names were put in another order is refused."""

import numpy as np
import pytest

import ardvark as av
from tests.support import rng, seed

NAMES = ["zeta", "beta", "alpha", "mid"]


@pytest.fixture(scope="module")
def fitted():
    X = rng(0).normal(size=(12, 4))
    data = av.Dataset.from_arrays(X, (X[:, 0] > 0).astype(int), feature_names=NAMES)
    problem = av.problem("pfcvm", data)
    fit = av.fit(problem, "paper", draws=20, random_seed=seed(1), progressbar=False)
    return problem, fit


def test_adopt_puts_them_in_order(fitted):
    problem, fit = fitted
    posterior = fit["posterior"].to_dataset().sortby("feature")
    adopted = av.adopt(problem, posterior, kind="approximation")
    p, own = (av.predict(problem, tree, problem.data).values for tree in (adopted, fit))
    np.testing.assert_array_equal(p, own)
