"""The check that draws, whitened by the covariance they should have, are standard normal."""

import numpy as np
from scipy import stats

from tests.support import ALARM, z_limit


def check_standard_normal(white):
    """Fail unless the columns of `white` (S, K) are independent standard normals.

    Every column by a Kolmogorov-Smirnov test, every pair of columns by the mean of its products,
    whose standard error is S^-1/2; each half alarms by chance with half the probability `ALARM`.
    """
    S, K = white.shape
    p_values = [stats.kstest(column, "norm").pvalue for column in white.T]
    assert min(p_values) > 0.5 * ALARM / K
    if K > 1:
        correlations = (white.T @ white)[np.triu_indices(K, 1)] / S
        assert np.abs(correlations).max() < z_limit(len(correlations), 0.5 * ALARM) / S**0.5
