"""New rows of a problem: in the columns of its training data, and as the data of its PyMC model."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ardvark.common.validate import InputError, matrix
from ardvark.data import Dataset

if TYPE_CHECKING:
    import pymc as pm

Rows = Dataset | pd.DataFrame | ArrayLike


def rows_of(
    data: Dataset, X_new: Rows, always: tuple[str, ...] = ()
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return X_new in the columns of the training data (M, D + K), and the names of its rows.

    Raises
    ------
    InputError
        A column is missing (`always` names the covariates), or their number differs.
    """
    features = tuple(data.feature_names)
    columns: tuple[str, ...]
    if isinstance(X_new, Dataset):
        X, names, columns = X_new.X, tuple(X_new.sample_names), tuple(X_new.feature_names)
    else:
        X = matrix(X_new, name="X_new")
        names, columns = tuple(map(str, range(len(X)))), features
        if isinstance(X_new, pd.DataFrame):
            names, columns = tuple(map(str, X_new.index)), tuple(map(str, X_new.columns))
    if columns != features and set(columns) >= set(features):
        X = X[:, [columns.index(f) for f in features]]
    elif columns != features:
        missing = [f for f in features if f not in columns]
        if set(missing) & set(always):
            absent = ", ".join(f for f in always if f in missing)
            raise InputError(
                f"X_new lacks what is always in the model: {absent}. A prediction needs the "
                "covariates of each new row, in columns of these names."
            )
        raise InputError(
            f"X_new lacks {len(missing)} feature(s) of the training data; the first is "
            f"{missing[0]!r}. It needs a column with the name of every training feature."
        )
    if X.shape[1] != len(features):
        raise InputError(
            f"X_new has {X.shape[1]} features and the training data have {len(features)}; "
            "the numbers must be equal."
        )
    return X, names


def data_of_rows(model: "pm.Model") -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a model that have a place for each row, by name."""
    dims = model.named_vars_to_dims
    return {v.name: v.get_value() for v in model.data_vars if "obs" in (dims.get(v.name) or ())}
