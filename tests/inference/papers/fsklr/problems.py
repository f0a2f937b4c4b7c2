"""Problems, searches and short fits of FS-SKLR and its two ablations."""

import pytest

import ardvark as av
from ardvark.inference.papers.fsklr import savb as fsklr_savb
from ardvark.inference.papers.fsklr.savb import Options, Search
from ardvark.inference.target.backend import Job
from ardvark.inference.target.target import Target
from tests.support import rng, seed

FORMS = [
    ("fsklr", "rbf"),
    ("fsklr", "linear"),
    ("sklr", "rbf"),
    ("fs_skr", "rbf"),
    ("fs_skr", "linear"),
]

QUICK = {"feature_sweeps": 8, "sample_sweeps": 8}

every_form = pytest.mark.parametrize(("model", "kernel"), FORMS)

every_prior = pytest.mark.parametrize("mask_prior", ["independent", "shared", "printed"])


def arrays(N=24, D=5, number=0, noise=0.5):
    random = rng(number)
    X = random.standard_normal((N, D))
    y = (X[:, 0] - X[:, 1 % D] + noise * random.standard_normal(N) > 0).astype(int)
    y[:2] = 0, 1
    return X, y


def made(model="fsklr", kernel="rbf", N=24, D=5, number=0, **given):
    return av.problem(model, arrays(N, D, number), kernel=kernel, **given)


def direct(problem, number=5, **options):
    """The backend's own result: no `pm.Model` is built, which costs more than a small fit."""
    return fsklr_savb.fit(
        Target(problem),
        Options(**QUICK | options),
        Job(draws=1, chains=1, seed=seed(number)),
    )


def searching(problem, number=0, **options):
    return Search(problem, Options(**options), rng(number))


def point_of(result):
    return {name: values[0, 0] for name, values in result.posterior.items()}
