"""Data on which a method may end badly: each a pair X (N, D), y (N,) in {0, 1}."""

import numpy as np

from tests.support import rng


def labelled(N, D, number):
    """Normal features; the sign of the first less the second, with noise, and both classes."""
    random = rng(number)
    X = random.standard_normal((N, D))
    y = (X[:, 0] - X[:, 1] + 0.5 * random.standard_normal(N) > 0).astype(int)
    y[:2] = 0, 1
    return X, y


def separable():
    """A line separates the classes, and no finite weight is the likeliest."""
    x = np.linspace(-3, 3, 20)
    return np.c_[x, x**2], (x > 0).astype(int)


def duplicated():
    """Each of three columns four times."""
    X, y = labelled(16, 3, number=1)
    return np.repeat(X, 4, axis=1), y


def constant():
    """Two of four columns hold one value."""
    X, y = labelled(16, 4, number=2)
    X[:, 1:3] = 7.0
    return X, y


def two_rows():
    """One sample a class."""
    return np.array([[0.0, 1.0, 2.0], [1.0, -1.0, 2.5]]), np.array([0, 1])
