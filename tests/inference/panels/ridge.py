"""A method that takes milliseconds and fits labels closely, ridge regression, and its tables."""

import numpy as np
import pandas as pd
from scipy import special

import ardvark as av
from ardvark.inference import Settings
from ardvark.inference.target.backend import Result
from tests.support import rng, seed

SMALL = {"draws": 60, "chains": 2, "progressbar": False}


class Ridge:
    """Laplace's approximation of logistic regression with normal weights, for `horseshoe`.

    It is linear with a logistic link, so a projection onto all features is the posterior itself.
    With few rows it overfits, so that a search sees what only the training labels say.
    """

    NAME, KIND, Options = "ridge", "approximation", Settings
    SD = 1.0
    fitted: tuple = ()

    @staticmethod
    def supports(target):
        return None

    @classmethod
    def fit(cls, target, options, job):
        problem = target.problem
        cls.fitted = (*cls.fitted, problem.data.sample_names)
        always = [] if problem.C is None else [problem.C]
        A = np.column_stack([np.ones(len(problem.X)), problem.X, *always])
        # weights are combinations of the rows, so the mode is found in as many dimensions
        K = A @ A.T * cls.SD**2
        f = np.zeros(len(K))
        for _ in range(30):
            q = special.expit(f)
            W = q * (1.0 - q)
            f = K @ np.linalg.solve(np.eye(len(K)) + W[:, None] * K, W * f + problem.y - q)
        q = special.expit(f)
        W = q * (1.0 - q)
        mean = cls.SD**2 * A.T @ (problem.y - q)
        rng = np.random.default_rng(job.seed)
        S = job.draws * job.chains
        prior = cls.SD * rng.normal(size=(S, A.shape[1]))
        noise = rng.normal(size=(S, len(W))) / np.sqrt(W)
        gain = np.linalg.solve(K + np.diag(1.0 / W), A * cls.SD**2)
        b = mean + prior - (prior @ A.T + noise) @ gain
        beta = b[:, 1 : problem.D + 1]
        found = {"bias": b[:, 0], "beta": beta, "feature_weight": np.abs(beta), "eta": b @ A.T}
        if always:
            found["covariate_weight"] = b[:, problem.D + 1 :]
        return Result({k: v.reshape(job.chains, job.draws, *v.shape[1:]) for k, v in found.items()})


def table(number=0, N=90, D=6):
    """Return a frame in odd units whose first columns matter, and its labels."""
    g = rng(number)
    X = g.normal(size=(N, D))
    eta = 3.0 * X[:, 0] - 3.0 * X[:, 1]
    names = [f"x{k + 1}" for k in range(D)]
    frame = pd.DataFrame(X * 10.0 ** np.arange(D) + 3.0 * np.arange(D), columns=names)
    return frame, np.where(g.uniform(size=N) < special.expit(eta), "well", "ill")


def fitted(frame, y, **hypers):
    problem = av.problem("horseshoe", frame, y, **hypers)
    return problem, av.fit(problem, "ridge", random_seed=seed(), **SMALL)
