"""Problems and fits of JCFO and sparse probit regression, and a convex optimum to compare."""

import numpy as np
import pytest
from scipy import optimize, stats

import ardvark as av
from ardvark.inference.papers.jcfo import em as jcfo_em
from ardvark.inference.papers.jcfo import em_steps as jcfo_em_steps
from ardvark.inference.papers.jcfo.em import Options
from ardvark.inference.papers.jcfo.em_steps import State, iterate
from ardvark.inference.target.backend import Job
from ardvark.inference.target.target import Target
from tests.support import rng, seed

KERNELS = [("linear", 1), ("polynomial", 1), ("polynomial", 2), ("polynomial", 3), ("rbf", 1)]

every_kernel = pytest.mark.parametrize(("kernel", "degree"), KERNELS)

RATES = {
    ("linear", 1): (1.0, 3.0),
    ("polynomial", 1): (2.0, 4.0),
    ("polynomial", 2): (2.0, 6.0),
    ("polynomial", 3): (4.0, 12.0),
    ("rbf", 1): (0.5, 1.0),
}


def gammas(kernel, degree):
    rates = RATES[kernel, degree]
    return {"gamma1": rates[0] ** 2, "gamma2": rates[1] ** 2}


def arrays(N, D, number=0, noise=0.5, generator=rng):
    """Standardised X and y; `generator=np.random.default_rng` fixes the very data."""
    random = generator(number)
    X = random.standard_normal((N, D))
    y = (X[:, 0] - X[:, 1 % D] + noise * random.standard_normal(N) > 0).astype(float)
    y[:2] = 0.0, 1.0
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def fixed(model, *data, **given):
    """The problem with the paper's prior, whose scale is not learned."""
    return av.problem(model, *data, scale="fixed", **given)


def made(N, D, number=0, model="jcfo", generator=rng, **given):
    X, y = arrays(N, D, number, generator=generator)
    return fixed(model, (X, y.astype(int)), **given)


def run_fit(problem, **options):
    settings = {"random_seed": seed(5), "progressbar": False} | options
    return av.fit(problem, "jcfo_em", **settings)


def direct(problem, **options):
    """The backend's own result: no `pm.Model` is built, which costs more than a small fit."""
    return jcfo_em.fit(
        Target(problem),
        Options(**options),
        Job(draws=1, chains=1, seed=seed(5)),
    )


def point_of(tree):
    return {str(k): v.values[0, 0] for k, v in tree["posterior"].data_vars.items()}


def climb(basis, y, rates, number=0, options=None, generator=rng, **given):
    options = options or Options(**given)
    random = generator(number)
    return iterate(
        State(basis, y, *jcfo_em_steps.seed(basis, y, rates, number, random), rates), options
    )


def penalised_optimum(H, y, rate, start=None):
    """The mode of L1-penalised probit regression by split variables beta = p - q: convex."""
    M = H.shape[1]
    s = 2 * y - 1

    def minus(pq):
        eta = H @ (pq[:M] - pq[M:])
        g = -H.T @ (s * np.exp(stats.norm.logpdf(eta) - stats.norm.logcdf(s * eta)))
        return -stats.norm.logcdf(s * eta).sum() + rate * pq.sum(), np.r_[g + rate, -g + rate]

    found = optimize.minimize(
        minus,
        np.full(2 * M, 0.01),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * M),
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    return found.x[:M] - found.x[M:], -found.fun
