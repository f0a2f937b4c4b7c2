"""A panel as a scikit-learn pipeline: its columns, and a logistic regression that is fitted."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline


def pipeline(
    names: Sequence[str], coefficients: np.ndarray, classes: Sequence[str], ridge: float
) -> Pipeline:
    """Return a pipeline that picks columns by name and applies a logistic regression to them.

    Parameters
    ----------
    names : sequence of str
        The columns (k,).
    coefficients : array (1 + k,)
        Intercept first, in the units of the columns.
    classes : sequence of str
        Names of the classes y = 0 and y = 1.
    ridge : float
        The ridge of a refit.
    """
    columns = ColumnTransformer(
        [("panel", "passthrough", list(names))], verbose_feature_names_out=False
    )
    columns.fit(pd.DataFrame(np.zeros((1, len(names))), columns=list(names)))
    model = LogisticRegression(C=1.0 / ridge)
    model.classes_ = np.array(classes)
    model.coef_, model.intercept_ = coefficients[None, 1:], coefficients[:1]
    model.n_features_in_, model.n_iter_ = len(names), np.zeros(1, dtype=int)
    return Pipeline([("columns", columns), ("logistic", model)])
