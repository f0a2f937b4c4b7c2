"""Geweke's test of a Markov kernel (2004, J. Am. Stat. Assoc. 99), beside `joint_test`.

One long chain alternates y | theta and one sweep of theta | y, and is compared with independent
draws of (theta, y). Every sweep gives a pair to compare, whereas `joint_test` needs L sweeps for
one. But the pairs depend on each other, and the p-values rest on an estimate of that dependence.
"""

import numpy as np
from scipy import stats

from ardvark.inference.checks.joint import simulated_quantities
from ardvark.inference.checks.ranks import holm, quantities, shared_names

BATCHES = 40
"""A batch must be much longer than the chain's memory, otherwise the errors are too small."""


def coins(problem, point, rng):
    """Draw y given eta (N,): right for a kernel whose state has no latent noise."""
    log_p = problem.spec.log_predictive(1, np.asarray(point["eta"]), point, problem.hypers)
    return rng.binomial(1, np.exp(log_p))


def successive_conditional(problem, kernel, *, iterations, references, random_seed, labels=coins):
    """Return the smallest p-value of all quantities, corrected for their number.

    Each quantity is mapped to its rank u among the independent draws, so that every moment exists.
    The means of u and of |2u - 1| are compared with 1/2; their errors come from batch means, and
    from the number of independent draws. Basis labels stay those of the problem.
    """
    rng = np.random.default_rng(random_seed)
    point = problem.simulate(rng)
    kernel.set_labels(point["y"])
    names = shared_names(problem, point, kernel.point(kernel.state(point)))
    y, chain = point["y"], []
    for _ in range(iterations):
        kernel.set_labels(y)
        state = kernel.state(point)
        kernel.sweep(state, rng)
        point = kernel.point(state)
        chain.append(list(quantities(problem, point, y, names).values()))  # before y follows theta
        y = labels(problem, point, rng)
    others = np.sort(simulated_quantities(problem, references, names, rng), axis=0)
    u = np.empty((iterations, others.shape[1]))
    for f, found in enumerate(np.array(chain).T):
        less, upto = (np.searchsorted(others[:, f], found, side) for side in ("left", "right"))
        u[:, f] = (less + rng.random(iterations) * (upto - less + 1)) / (references + 1)
    z = [np.abs(from_a_half(v, references)) for v in (u, np.abs(2.0 * u - 1.0))]
    p = 4.0 * stats.t.sf(np.max(z, axis=0), BATCHES - 1)  # two sides, two tests
    return holm(p).min()


def from_a_half(u, references):
    """Return how far the mean of u (T, F) is from 1/2, in standard errors.

    The ranks share their reference draws, which adds 1 / (12 M): the variance of a uniform over M.
    """
    size = len(u) // BATCHES
    means = u[: size * BATCHES].reshape(BATCHES, size, -1).mean(1)
    error = np.sqrt(means.var(0, ddof=1) / BATCHES + 1.0 / (12.0 * references))
    return (means.mean(0) - 0.5) / error
