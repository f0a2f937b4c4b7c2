"""Numbers that may stand for a missing value: -9, 99, 999, and others of such digits."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from .cleaning import Cleaning
from .columns import in_order, listed, numbers
from .numerals import number

FEWEST = 5
"""Other values that a column needs before one of them is called far outside."""
_SHOWN = 12  # columns in a message
_CODES = np.array(
    sorted(
        sign * float(digit * size) / tenths
        for digit in "789"
        for size in range(1, 7)
        for tenths in (1, 10)
        for sign in (1, -1)
        if tenths == 1 or size > 1
    )
)


def codes(values: np.ndarray) -> dict[str, int]:
    """Return the values that may stand for a missing one, and how many of each.

    Such a number consists of nines, eights or sevens, and is farther outside the other values than
    these are wide; or it is -1 among counts. It may be a measurement, so that it stays as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.data.missing_codes import codes
    >>> codes(np.array([0.0, 1, 2, 1, 0, 2, -9]))
    {'-9': 1}
    """
    values = values[np.isfinite(values)]
    for among in (_CODES, _CODES[np.abs(_CODES) >= 10.0]):  # 7 may be a common value beside 99
        known = np.isin(values, among)
        others = values[~known]
        if known.any() and len(others) >= FEWEST:
            low, high = others.min(), others.max()
            width = (high - low) or max(abs(high), 1.0)
            far = values[known & ((values < low - width) | (values > high + width))]
            if len(far):
                return _counted(far)
    rest = values[values != -1.0]
    few = len(values) - len(rest) > 0 and len(rest) >= FEWEST
    if few and rest.min() >= 0.0 and rest.max() > 1.0 and (rest == np.round(rest)).all():
        return _counted(values[values == -1.0])
    return {}


def _counted(values: np.ndarray) -> dict[str, int]:
    sizes, counts = np.unique(values, return_counts=True)
    return {f"{size:g}": int(n) for size, n in zip(sizes, counts, strict=True)}


def told(names: Sequence[str], array: np.ndarray, fills: bool = False) -> str:
    """Return which columns of an array have such numbers, in words; "" if none has.

    `fills` says whether missing values are already dealt with.
    """
    some = np.flatnonzero(np.isin(array, (*_CODES, -1.0)).any(axis=0))  # few columns
    found = {str(names[k]): own for k in some.tolist() if (own := codes(array[:, k]))}
    if not found:
        return ""
    words = in_order({word for counts in found.values() for word in counts})
    flags, call = f"--na={','.join(words)}", f"na={words!r}"
    if not fills:
        flags, call = f"{flags} --impute median", f'{call}, impute="median"'
    shown = (
        f"{name} ({listed(f'{word} {n}' for word, n in counts.items())})"
        for name, counts in found.items()
    )
    return (
        f"{len(found)} column{'s' * (len(found) != 1)} with a number far outside the others that "
        f"may stand for a missing value: {listed(shown, _SHOWN)}. It is used as a number. To read "
        f"it as missing, in every column: {flags} (in Python av.table(..., {call}))."
    )


def in_table(features: pd.DataFrame, cleaning: Cleaning) -> str:
    """Return which columns have numbers that may stand for missing values, in words.

    They stay as they are, and no remedy is applied.
    """
    stored = features.select_dtypes("number")
    rest = features.columns.difference(stored.columns)  # numbers among words
    others = [numbers(features[name]).to_numpy()[:, None] for name in rest]
    array = np.hstack([stored.to_numpy(), *others])
    said = [float(w) for w in cleaning.measured if np.isfinite(number(w))]
    array = np.where(np.isin(array, said), np.nan, array) if said else array
    return told([*stored.columns, *rest], array, cleaning.fills)
