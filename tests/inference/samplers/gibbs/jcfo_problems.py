"""Small problems of JCFO, and the laws that its sampler is tested against."""

import numpy as np
import pytest
from scipy import stats

import ardvark as av
from ardvark.inference.samplers.gibbs.jcfo import Sampler
from tests.support import rng

KERNELS = [("linear", 1), ("polynomial", 1), ("polynomial", 2), ("polynomial", 3), ("rbf", 1)]
VARIANTS = [(k, d, "slice") for k, d in KERNELS] + [
    (k, 1, "truncated") for k in ("linear", "polynomial")
]
every_kernel = pytest.mark.parametrize(("kernel", "degree"), KERNELS)
every_variant = pytest.mark.parametrize(("kernel", "degree", "update"), VARIANTS)
linear_kernels = pytest.mark.parametrize("kernel", ["linear", "polynomial"])
RATES = {"linear": (0.7, 1.4), "polynomial": (0.5, 2.0), "rbf": (0.1, 2.0)}  # gammas of real signal


def made(kernel="polynomial", degree=1, *, N=7, D=3, B=None, form="latent", **given):
    """A small problem whose likelihood says more than its prior, at a fixed scale."""
    X, y = rng().standard_normal((N, D)), np.arange(N) % 2
    gammas = dict(zip(("gamma1", "gamma2"), RATES[kernel], strict=True))
    settings = {"kernel": kernel, "degree": degree, "parametrization": form, "scale": "fixed"}
    return av.problem(
        "jcfo", (X, y), basis=None if B is None else np.arange(B), **settings | gammas | given
    )


def drawn(problem, number=1):
    """A sampler, and the state at a point that was drawn with its labels."""
    sampler, random = Sampler(problem), rng(number)
    point = problem.simulate(random)
    sampler.set_labels(point["y"])
    return sampler, sampler.state(point), point, random


def log_joint(problem, point, y):
    """The latent form's log density with labels y."""
    return problem.spec.log_joint(point, problem.inputs, y, problem.hypers)


def log_variance(tau, weight, gamma, *, rate=None):
    """ln p(tau | weight), 1 / tau inverse Gaussian of mean rate / |weight| and shape gamma."""
    mean = (np.sqrt(gamma) if rate is None else rate) / np.abs(weight)
    # SciPy's mu is mean / shape, its scale the shape
    return stats.invgauss.logpdf(1 / tau, mean / gamma, scale=gamma) - 2 * np.log(tau)
