"""The scaler of plain classifiers, by the rule of a problem: what does not vary adds nothing."""

from typing import Any, Self

import numpy as np
from sklearn.preprocessing import StandardScaler

from ardvark.common.rounding import differ


class Scaler(StandardScaler):
    """Standardise; a column that does not vary in the rows of `fit` is 0 in all rows."""

    def fit(self, X: np.ndarray, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn means and standard deviations, of which those of such columns are infinite."""
        super().fit(X, y, sample_weight)
        self.scale_[~differ(X.min(axis=0), X.max(axis=0))] = np.inf
        return self
