"""A panel as a scikit-learn pipeline: its columns, and a logistic regression that is fitted."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from ardvark.common.validate import InputError
from ardvark.data import Dataset, Table
from ardvark.data.columns import listed, tidied
from ardvark.data.encoding import Encoder


class Cleaned(TransformerMixin, BaseEstimator):
    """A step that makes the columns of a panel from rows as they stood in a person's table.

    Rows that have these columns already are taken as they are.

    Parameters
    ----------
    names : sequence of str
        The columns of the panel: age, sex=m.
    columns : sequence of str
        The columns of the table that they are made of: age, sex.
    encode, impute, na
        As for `ardvark.table`.
    marks : dict, optional
        How numbers are written there (`data.columns.written`).
    """

    def __init__(
        self,
        names: Sequence[str],
        columns: Sequence[str],
        encode: Any = "onehot",
        impute: Any = None,
        na: Sequence[str] = (),
        marks: Mapping[str, Any] | None = None,
    ) -> None:
        self.names, self.columns, self.marks = names, columns, marks
        self.encode, self.impute, self.na = encode, impute, na

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Learn levels and fill values anew from rows."""
        if set(self.columns) <= set(X):
            rows = tidied(X[list(self.columns)], self.na, self.marks)
            self.encoder_ = Encoder(self.encode, self.impute).fit(rows)
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of the panel.

        Raises
        ------
        InputError
            A column is missing, or a value is, and nothing says how to fill it.
        """
        lacking = [name for name in self.columns if name not in X]
        if lacking and not set(self.names) <= set(X):
            raise InputError(
                f"the rows lack {listed(lacking)}. The panel needs the columns "
                f"{listed(self.columns, 12)}, as they stood in the table."
            )
        if lacking:
            return X[list(self.names)]
        rows = tidied(X[list(self.columns)], self.na, self.marks)
        return self.encoder_.some(rows).reindex(columns=list(self.names), fill_value=0.0)


def pipeline(
    names: Sequence[str], coefficients: np.ndarray, data: Dataset, ridge: float
) -> Pipeline:
    """Return a pipeline that picks columns by name and applies a logistic regression to them.

    Parameters
    ----------
    names : sequence of str
        The columns (k,).
    coefficients : array (1 + k,)
        Intercept first, in the units of the columns.
    data : Dataset
        What was fitted. Rows are cleaned as those of a table were.
    ridge : float
        The ridge of a refit.
    """
    columns = ColumnTransformer(
        [("panel", "passthrough", list(names))], verbose_feature_names_out=False
    )
    columns.fit(pd.DataFrame(np.zeros((1, len(names))), columns=list(names)))
    model = LogisticRegression(C=1.0 / ridge)
    model.classes_ = np.array(data.class_names)
    model.coef_, model.intercept_ = coefficients[None, 1:], coefficients[:1]
    model.n_features_in_, model.n_iter_ = len(names), np.zeros(1, dtype=int)
    steps: list[tuple[str, Any]] = [("columns", columns), ("logistic", model)]
    if isinstance(data, Table):
        used = data.encoder.sources(names)
        whence = [name for name in data.encoder.feature_names_in_ if name in used]
        how = data.cleaning
        cleaned = Cleaned(
            list(names), whence, how.encode or "onehot", how.impute, how.na, data.marks
        )
        cleaned.encoder_ = data.encoder
        steps.insert(0, ("cleaned", cleaned))
    return Pipeline(steps)
