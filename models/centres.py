"""Basis centres drawn from the rows, for tables with more rows than a kernel can have centres.

A kernel matrix is rows x centres. With all rows as centres it grows with the square of the rows,
and each look at a feature computes all of it. `basis="auto"` draws `AUTO` rows once, within each
class in proportion to its size, but at least `LEAST` of each or all that it has. The draw depends
on the labels alone, so equal tables have equal centres. It is never the default: the posterior is
the one given these centres, and a fit says so.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ardvark.common.validate import InputError

AUTO = 200
"""Centres of `basis="auto"`."""
LEAST = 20
"""Of each class, if it has as many rows."""
MOST = 4000
"""Rows that can all be centres of a kernel: a matrix of 128 MB."""


def drawn_rows(y: np.ndarray) -> np.ndarray:
    """Return the rows (M,) of labels y (N,) that `basis="auto"` takes, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.models.centres import drawn_rows
    >>> rows = drawn_rows(np.arange(5000) % 10 == 0)
    >>> len(rows), int((rows % 10 == 0).sum())
    (200, 20)
    """
    rng, N = np.random.default_rng(0), len(y)
    chosen = []
    for label in np.unique(y):
        mine = np.flatnonzero(y == label)
        share = max(round(AUTO * len(mine) / N), LEAST)
        chosen.append(rng.choice(mine, min(share, len(mine)), replace=False))
    return np.sort(np.concatenate(chosen))


def refuse_many(N: int, basis: object) -> None:
    """Raise an error if all rows would be centres, and are too many."""
    if basis is None and N > MOST:
        raise InputError(
            f"{N} rows are too many basis centres of a kernel, whose matrix has a row and a column "
            f'for each (at most {MOST}). basis="auto" draws {AUTO} of them within each class, and '
            "the posterior is then the one given these centres. Or give row indices or centres of "
            'your own, or take kernel="linear" or a model without a basis.'
        )


def given_centres(rows: int, centres: int) -> str:
    """Return what the posterior is given, in words; nothing if all rows are centres."""
    return "" if centres == rows else f"given {centres} centres"


def staying(basis: np.ndarray, names: Sequence[str], gone: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return which centres (B, D) stay where rows (D,) go, by name: all that are not one of them.

    A centre that is no training row may have the name of one, so its numbers are compared too.
    """
    went = [
        name in gone and bool((centre == gone[name]).all())
        for name, centre in zip(names, basis, strict=True)
    ]
    return np.flatnonzero(~np.array(went))
