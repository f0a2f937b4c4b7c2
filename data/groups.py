"""Rows that belong together, such as visits of a patient, stay on one side of a split or fold.

scikit-learn's splitters for groups do it. Without groups, each row is a group of its own, and the
folds are those of `RepeatedStratifiedKFold`.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedGroupKFold, StratifiedKFold

from ardvark.common.validate import InputError

EVENTS = 3
"""Rows of each class below which a fold is told to have few."""
_FINE = 20
"""Folds of which some make the rows held out of a split."""


def folds_of(
    y: np.ndarray, groups: Sequence[str] | None, folds: int, repeats: int, state: int
) -> list[np.ndarray]:
    """Return which rows (N,) each fold holds out; those of the second repeat follow the first's.

    Both classes are spread evenly, as far as groups allow.

    Parameters
    ----------
    y : array (N,)
        Labels, 0 or 1.
    groups : sequence of str, optional
        Which rows belong together (N,).
    folds, repeats : int
        How many.
    state : int
        The seed of scikit-learn's splitter.

    Raises
    ------
    InputError
        There are fewer groups than folds, or a fold would hold all rows of a class.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.data.groups import folds_of
    >>> held = folds_of(np.array([0, 0, 1, 1]), ["ann", "ann", "bo", "bo"], 2, 1, 0)
    Traceback (most recent call last):
        ...
    ardvark.common.validate.InputError: without fold 1 only one class is left, because ...
    """
    if groups is None:
        plain = RepeatedStratifiedKFold(n_splits=folds, n_repeats=repeats, random_state=state)
        return _masks(plain, y, None)
    count = len(set(groups))
    if count < folds:
        raise InputError(f"there are {count} groups, too few for {folds} folds.")
    found = [held for k in range(repeats) for held in _by_group(y, groups, folds, state + k)]
    for k, held in enumerate(found):
        if not held.any() or len(np.unique(y[~held])) < 2:
            raise InputError(
                f"without fold {k + 1} only one class is left, because a group holds most rows of "
                "the other. Ask for more folds, or another seed."
            )
    return found


def held_out(y: np.ndarray, groups: Sequence[str], share: float, seed: int) -> np.ndarray:
    """Return which rows (N,) a split holds out: whole groups, with about a share of each class."""
    fine = min(_FINE, len(set(groups)))
    if fine < 2:
        raise InputError("all rows belong to one group, so none can be held out.")
    parts = _by_group(y, groups, fine, seed)
    size = min(max(round(share * fine), 1), fine - 1)
    held: np.ndarray = np.any(parts[:size], axis=0)
    if len(np.unique(y[~held])) < 2 or not held.any():
        raise InputError(
            "a split by groups leaves one class only in the training rows. Use another seed, or a "
            "smaller share."
        )
    return held


def _by_group(y: np.ndarray, groups: Sequence[str], count: int, seed: int) -> list[np.ndarray]:
    try:
        return _masks(StratifiedGroupKFold(count, shuffle=True, random_state=seed), y, groups)
    except ValueError as error:  # more folds than rows of either class
        raise InputError(f"these rows cannot be split by groups: {error}") from None


def _masks(splitter: Any, y: np.ndarray, groups: Sequence[str] | None) -> list[np.ndarray]:
    """Return which rows (N,) each fold of a splitter of scikit-learn holds out."""
    with warnings.catch_warnings():
        # a class may have fewer rows than there are folds: each training set still has some
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        rows = np.arange(len(y))
        return [np.isin(rows, held) for _, held in splitter.split(y, y, groups)]


def inner_folds(
    y: np.ndarray, groups: Sequence[str] | None, folds: int, seed: int
) -> StratifiedKFold | list[tuple[np.ndarray, np.ndarray]]:
    """Return what scikit-learn's estimators take as `cv`, with the rows of a group together."""
    if groups is None:
        return StratifiedKFold(folds, shuffle=True, random_state=seed)
    masks = folds_of(y, groups, min(folds, len(set(groups))), 1, seed)
    return [(np.flatnonzero(~held), np.flatnonzero(held)) for held in masks]
