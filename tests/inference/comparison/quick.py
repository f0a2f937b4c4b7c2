"""A backend that costs nothing, for tests of what surrounds a fit: storing, resuming, failing."""

import dataclasses

import numpy as np

import ardvark as av
from ardvark.inference import BACKENDS
from ardvark.inference.fits import prior_activity
from ardvark.inference.methods import registry
from ardvark.inference.target.backend import FitFailed, Result


def few_prior_draws(monkeypatch):
    """Simulate few draws of the prior beside those of a fit."""
    monkeypatch.setattr(prior_activity, "_KNOWN", {})
    for name, size in (("DRAWS", 20), ("FEWEST", 10)):
        monkeypatch.setattr(prior_activity, name, size)


def registered(monkeypatch, *methods):
    """Register methods for one test, whose fits simulate few draws of the prior beside them."""
    few_prior_draws(monkeypatch)
    monkeypatch.setattr(registry, "BACKENDS", dict(BACKENDS))
    for method in methods:
        av.inference.register_backend(method)


class Prior:
    """Draws of the prior: quick, and right for every model."""

    NAME, KIND = "prior", "point"

    @dataclasses.dataclass(frozen=True)
    class Options:
        fail_without: str = ""
        """Fail where this sample is not in the data."""

    @staticmethod
    def supports(target):
        return None

    @staticmethod
    def fit(target, options, job):
        problem = target.problem
        if options.fail_without and options.fail_without not in problem.data.sample_names:
            raise FitFailed("it was told to")
        generator = np.random.default_rng(job.seed)
        points = [problem.simulate(generator) for _ in range(job.draws * job.chains)]
        names = (*problem.spec.shared, "bias", "tau", "beta", "covariate_weight")
        kept = [k for k in names if k in points[0] and k in target.sizes]
        arrays = {k: np.stack([p[k] for p in points]) for k in kept}
        return Result(
            {k: v.reshape(job.chains, job.draws, *v.shape[1:]) for k, v in arrays.items()}
        )
