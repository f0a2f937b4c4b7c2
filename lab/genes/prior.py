"""P(active) of single genes and of groups under the prior, more precisely than by counting.

Under a linear kernel the effect of gene k is theta_k |(Z'a)_k|, with theta_k independent of the
sample weights a and of one law for all genes. So the share of draws of theta above
VISIBLE / |(Z'a)_k| is its P(active) given a, and the mean of that over draws of a is what is
asked for. Given a, the genes of a group are independent. `prior_activity` counts active genes
in draws of both, which is too coarse for a gene that is active once in a thousand draws.
"""

from collections.abc import Sequence

import numpy as np

from ardvark.models import Problem
from ardvark.models.parts.effects import VISIBLE

DRAWS, POOLED = 1000, 200  # of the sample weights, and those whose theta make the law of theta


def prior_of(problem: Problem, members: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return P(at least one is active) of each group (k,) under the prior, and its error.

    Parameters
    ----------
    problem : Problem
        Of a model with a linear kernel, or with weights of the features alone; of a fixed scale.
    members : sequence of array of int
        The features of each group, from 0.
    """
    rng, one = np.random.default_rng(0), problem.inputs.at(problem.X[:1])
    asked = np.unique(np.concatenate(members))
    spread = problem.X.std(axis=0)[asked]
    kernel = problem.kernel
    assert kernel is None or kernel.is_primal
    assert problem.hypers.learned_scale is None
    theta, others = [], []
    for draw in range(DRAWS):
        point = problem.spec.simulate(rng, one, problem.hypers)
        if draw < POOLED:
            theta.append(np.abs(np.asarray(problem.spec.theta(point, problem.hypers))))
        others.append(1.0 if kernel is None else point["sample_weight"] @ problem.Z[:, asked])
        if kernel is None and draw + 1 == POOLED:
            break
    law = np.sort(np.concatenate(theta))
    rest = np.abs(np.stack([np.broadcast_to(x, len(asked)) for x in others])) * spread
    with np.errstate(divide="ignore"):
        below = np.searchsorted(law, VISIBLE / rest, side="right") / len(law)  # (draws, asked)
    place = {k: i for i, k in enumerate(asked)}
    given = np.stack(
        [1.0 - below[:, [place[k] for k in each]].prod(axis=1) for each in members], axis=1
    )
    return given.mean(axis=0), given.std(axis=0) / np.sqrt(len(given))
