"""Clusters of posterior draws, which stand for the draws while submodels are searched.

The search projects every draw onto hundreds of submodels, so draws with similar predictions are
replaced by their mean prediction, weighted by their number (Piironen, Paasiniemi, Vehtari 2020).
Similar is near in the latent predictor, logit P(y = 1) of each row, by k-means.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special
from threadpoolctl import threadpool_limits

NUMBER = 20
"""Of clusters in a search, as in projpred."""
_SMALLEST = 1e-10  # below it, and above 1 minus it, a probability counts as that


@dataclass(frozen=True, eq=False)
class Clusters:
    """Mean predictions of groups of draws.

    Attributes
    ----------
    p : array (C, N)
        The mean of P(y = 1) over the draws of each cluster.
    weight : array (C,)
        The share of draws in each; their sum is 1.
    """

    p: np.ndarray
    weight: np.ndarray


def clustered(p: np.ndarray, number: int = NUMBER) -> Clusters:
    """Return at most `number` clusters of the predictions p (S, N) of draws."""
    groups = _groups(p, number)
    counts = np.bincount(groups)
    sums = np.zeros((len(counts), p.shape[1]))
    np.add.at(sums, groups, p)
    return Clusters(sums / counts[:, None], counts / len(p))


def _groups(p: np.ndarray, number: int) -> np.ndarray:
    """Return the cluster of each draw (S,); equal draws are in one cluster."""
    latent = special.logit(np.clip(p, _SMALLEST, 1.0 - _SMALLEST))
    distinct, which = np.unique(latent, axis=0, return_inverse=True)
    if len(distinct) <= number:
        return which.ravel()
    from sklearn.cluster import KMeans

    with threadpool_limits(1):  # equal clusters whatever the number of cores
        found = KMeans(number, n_init=1, random_state=0).fit_predict(latent)
    return np.unique(found, return_inverse=True)[1]  # an empty cluster has no number
