"""Columns of the data that are always in the model: which they are, and how they are scaled.

`parts/covariates.py` says what they are in a model.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ardvark.common.rounding import differ
from ardvark.common.validate import InputError, named
from ardvark.data import Dataset


class Covariates(NamedTuple):
    """The columns that are always in the model, with mean and standard deviation of each (K,)."""

    names: tuple[str, ...]
    center: np.ndarray
    scale: np.ndarray

    def among(self, rows: np.ndarray, data: Dataset) -> np.ndarray:
        """Return the covariates (M, K) of rows with the columns of `data`, in its units."""
        place = {name: k for k, name in enumerate(data.feature_names)}
        return rows[:, [place[name] for name in self.names]]

    def of(self, rows: np.ndarray, data: Dataset) -> np.ndarray:
        """Return the standardised covariates (M, K) of rows with the columns of `data`."""
        found = (self.among(rows, data) - self.center) / self.scale
        found.setflags(write=False)
        return found


def features_of(rows: np.ndarray, data: Dataset, covariates: Covariates) -> np.ndarray:
    """Return the features (M, D) of rows with the columns of `data`."""
    return rows[:, ~np.isin(data.feature_names, covariates.names)]


def standardization(
    data: Dataset, standardize: bool, covariates: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray, Covariates | None]:
    """Return mean and population standard deviation of features, and the same of covariates.

    They are 0 and 1 if nothing is to be standardised. A column without variation has an infinite
    standard deviation in either case, so that it is 0 in every row, and adds nothing to any eta.
    """
    center, scale = _standardization(data, standardize)
    if not covariates:
        return center, scale, None
    of = [data.feature_names.index(name) for name in covariates]
    rest = ~np.isin(data.feature_names, covariates)
    return center[rest], scale[rest], Covariates(tuple(covariates), center[of], scale[of])


def _standardization(data: Dataset, standardize: bool) -> tuple[np.ndarray, np.ndarray]:
    if not standardize:
        return np.zeros(data.D), np.where(data.constant, np.inf, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        center, spread = data.X.mean(axis=0), data.X.std(axis=0)
    bad = ~(np.isfinite(center) & np.isfinite(spread) & ((spread > 0.0) | data.constant))
    if bad.any():
        name = data.feature_names[int(bad.argmax())]
        raise InputError(
            f"feature {name!r} cannot be standardised, because its mean or standard deviation is "
            "out of the range of a float (1e-308 to 1e308, squared). Use other units."
        )
    return center, np.where(data.constant, np.inf, spread)


def hashed(
    found: np.ndarray, rows: np.ndarray, first: np.ndarray, center: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return standardised rows, center and scale as a fingerprint has them.

    Columns without variation were once centred only, by a scale of 1. Where these rows have the
    value of the first training row in them, the posterior is the same, and so is the fingerprint.
    """
    still = np.isinf(scale)
    if still.any():
        same = still & ~differ(rows, first) & (center != 0.0)  # it is 0 if nothing is standardised
        found = np.where(same, rows - center, found)
    return found, center, np.where(still, 1.0, scale)


# --- what a user names ----------------------------------------------------------------------------


def listed(always: Any) -> tuple[str, ...]:
    """Return the names that were given; one name is a list of one."""
    if isinstance(always, str):
        return (always,)
    try:
        names = tuple(always)
    except TypeError:
        names = (None,)
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"always must be a list of column names, got {always!r}.")
    return tuple(dict.fromkeys(names))


def encoded(
    frame: pd.DataFrame, y: Any, always: Sequence[str], groups: str | None = None
) -> Dataset | None:
    """Return the data set of a frame in which only columns that are always in have text.

    Their levels become columns of 0 and 1. None if there is no such text, or text elsewhere too.
    The column `groups`, which is no feature, says which rows belong together.

    Raises
    ------
    InputError
        There is no such column, or the table cannot be used for another reason, for example because
        values are missing.
    """
    known = [str(c) for c in frame.columns if not (isinstance(y, str) and str(c) == y)]
    always = [named("column", name, known) for name in always]
    target = y if isinstance(y, str) else "label"
    while not isinstance(y, str) and target in map(str, frame.columns):
        target += "_"
    whole = frame if isinstance(y, str) else frame.assign(**{target: np.asarray(y)})
    words = {str(c) for c in whole.select_dtypes(exclude=["number", "bool"]).columns}
    words -= {target, groups}
    if not words or not words <= set(always):
        return None
    from ardvark.data import table  # scikit-learn is imported where a table is read

    return table(whole, target, encode="onehot", groups=groups)


def compared(data: Dataset, always: Sequence[str]) -> Dataset:
    """Return a data set in which text columns that are always in have a reference level.

    It is the one that the table asked for, or the first. A column for each level beside an
    intercept would be one too many: none of their odds ratios could be quoted.
    """
    from ardvark.data import Table

    if not isinstance(data, Table) or data.cleaning.encode == "ordinal":
        return data
    text = data.encoder.levels_
    whole = {name: None for name in always if name in text and len(text[name]) > 2}
    return data.against(whole) if whole.keys() - data.cleaning.references else data


def columns_of(data: Dataset, always: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a data set that the names mean: of a text column, one for each level.

    Raises
    ------
    InputError
        There is no such column, or every column is named.
    """
    from ardvark.data import Table

    made: dict[str, list[str]] = {name: [name] for name in data.feature_names}
    if isinstance(data, Table):
        made |= data.encoder.columns()
    found = [c for name in always for c in made[named("column", name, list(made))]]
    if len(set(found)) == data.D:
        raise InputError(
            f"always names every column of {data.name!r}: {', '.join(found[:6])}. At least one "
            "must remain, from which the model selects."
        )
    return tuple(dict.fromkeys(found))
