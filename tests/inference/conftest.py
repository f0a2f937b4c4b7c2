"""Small problems whose fits several tests look at; every fixture makes its own."""

import numpy as np
import pytest

import ardvark as av
from ardvark.data import Dataset
from tests.support import rng


def make_data(N=24, D=5, seed=0):
    """Two classes of equal size, told apart by the first two features, with noise."""
    random = rng(seed)
    X = random.normal(size=(N, D))
    score = X[:, 0] - X[:, 1] + 0.7 * random.normal(size=N)
    y = (score > np.median(score)).astype(int)
    return Dataset.from_arrays(X, np.array(["healthy", "ill"])[y], name="small")


@pytest.fixture(scope="session")
def small_data():
    """The function that makes a data set, for tests that need another size or seed."""
    return make_data


@pytest.fixture
def dataset():
    return make_data()


@pytest.fixture
def problem(dataset):
    return av.problem("rfvm", dataset)
