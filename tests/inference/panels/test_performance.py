"""Measures of predictions for a paper, beside scikit-learn's and a simulated truth."""

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression

from ardvark.inference.panels.performance import MEASURES, performance
from tests.support import rng


def test_calibration_is_that_of_an_unpenalised_logistic_regression():
    draws = rng(0)
    eta = draws.normal(size=400)
    y = (draws.random(400) < special.expit(0.5 * eta + 0.3)).astype(int)
    found = performance(y, special.expit(eta))
    plain = LogisticRegression(C=np.inf, tol=1e-8).fit(eta[:, None], y)
    assert found["slope"] == pytest.approx(plain.coef_[0, 0], abs=1e-4)
    assert abs(found["slope"] - 0.5) < 4 * found["slope_se"]
    assert found["slope"] + 2 * found["slope_se"] < 1  # too sure
    # at the maximum, as many events are predicted as there are
    assert special.expit(eta + found["intercept"]).sum() == pytest.approx(y.sum(), abs=1e-2)


def test_errors_are_those_of_many_samples():
    """Each error beside the standard deviation of its measure over independent samples."""
    draws = rng(1)
    rounds = []
    for _ in range(300):
        eta = draws.normal(size=80)
        y = (draws.random(80) < special.expit(eta)).astype(int)
        rounds.append(performance(y, special.expit(eta)))
    for name in MEASURES:
        spread = np.std([found[name] for found in rounds])
        said = np.median([found[f"{name}_se"] for found in rounds])
        # the spread of 300 has a relative error of 4 %; the median of errors is a little smaller
        assert 0.75 < said / spread < 1.2, name


@pytest.mark.parametrize("y", [[1, 1, 1], [0, 0, 0]])
def test_rows_of_one_class_have_no_area_and_no_calibration(y):
    found = performance(np.array(y), np.array([0.2, 0.5, 0.7]))
    assert np.isnan([found["auc"], found["slope"], found["intercept"]]).all()
    assert np.isfinite([found["brier"], found["log_score"]]).all()


def test_separated_rows_have_no_slope():
    found = performance(np.array([0, 0, 1, 1]), np.array([0.1, 0.2, 0.8, 0.9]))
    assert found["auc"] == 1.0
    assert np.isnan(found["slope"])
