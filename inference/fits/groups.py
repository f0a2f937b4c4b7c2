"""Groups of correlated features: the data may say that one of a group matters, but not which one.

Features that are nearly copies of each other can carry the same effect, so none of them needs a
large P(active) although one of them is active in nearly every draw. What the data identify is the
probability that at least one of the group is active. The group of a leading feature are the
features whose correlation with it over the training rows is at least `CORRELATED` in absolute
value. Leading features are taken in the order of P(active), and a feature belongs to one group at
most: that of the first leading feature it is correlated with.
"""

from collections.abc import Sequence

import numpy as np

CORRELATED = 0.6
"""Absolute correlation from which on a feature belongs to the group of a leading one. At 0.6 two
standardised features share a third of their variance."""
LEADERS = 20
"""Features that may lead a group, at most."""


def groups(X: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
    """Return the members of each group of at least two features, its leading one first.

    Parameters
    ----------
    X : array (N, D)
        Training rows. Constant features belong to no group.
    p : array (D,)
        P(active) of each feature; one that is never active leads no group.

    Returns
    -------
    list of array of int
        Members in the order of P(active); groups in the order of their leading features.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.inference.fits.groups import groups
    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> X = np.column_stack([x, -x[:, 0], np.ones(50)])
    >>> [members.tolist() for members in groups(X, np.array([0.4, 0.9, 0.1, 0.5, 0.0]))]
    [[3, 0]]
    """
    order = np.argsort(-p, kind="stable")  # equal ones keep the order of the data
    leading = order[:LEADERS][p[order[:LEADERS]] > 0.0]
    r = np.abs(_correlations(X, leading))  # (leading, D)
    left = np.ones(len(p), dtype=bool)
    found = []
    for k, near in zip(leading, r >= CORRELATED, strict=True):
        if not left[k]:
            continue
        members = order[(near & left)[order]]
        if len(members) > 1:
            left[members] = False
            found.append(members[np.argsort(members != k, kind="stable")])
    return found


def _correlations(X: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return the correlations (j, D) of some features with all; 0 for constant ones."""
    centred = X - X.mean(axis=0)
    size = np.sqrt(np.square(centred).sum(axis=0))
    size[X.max(axis=0) == X.min(axis=0)] = np.inf
    return (centred[:, some] / size[some]).T @ (centred / size)


def any_active(active: np.ndarray, members: Sequence[np.ndarray]) -> np.ndarray:
    """Return in which draws at least one member of each group is active.

    Parameters
    ----------
    active : array of bool (..., D)
    members : sequence of array of int

    Returns
    -------
    array of bool (..., groups)
    """
    if not members:
        return np.zeros((*active.shape[:-1], 0), dtype=bool)
    return np.stack([active[..., group].any(-1) for group in members], axis=-1)
