"""Small problems of the RFVM and their fits by XOLON, its deterministic counterpart."""

import numpy as np

import ardvark as av
from ardvark.inference.papers.rfvm import xolon
from ardvark.inference.papers.rfvm.xolon import Options
from ardvark.inference.target.backend import Job
from ardvark.inference.target.target import Target
from tests.support import rng, seed


def arrays(N, D, number=0, noise=0.5, generator=rng):
    """Standardised X and y; `generator=np.random.default_rng` fixes the very data."""
    random = generator(number)
    X = random.standard_normal((N, D))
    y = (X[:, 0] - X[:, 1 % D] + noise * random.standard_normal(N) > 0).astype(float)
    y[:2] = 0.0, 1.0
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def made(X, y, **given):
    return av.problem("rfvm", (X, np.asarray(y).astype(int)), **given)


def direct(problem, **options):
    """The backend's own result: no `pm.Model` is built."""
    return xolon.fit(
        Target(problem),
        Options(**options),
        Job(draws=1, chains=1, seed=seed(5)),
    )
