"""New rows outside the training rows are told apart from new rows like them."""

import numpy as np
import pytest

from ardvark.data import Dataset
from ardvark.inference.methods import prediction
from ardvark.inference.methods.prediction import MANY


def far_rows(training, X):
    names = [f"x{k}" for k in range(X.shape[1])]
    y = np.arange(len(training)) % 2
    return prediction.far_rows(Dataset.from_arrays(training, y, feature_names=names), X)


@pytest.mark.parametrize("D", [3, MANY, 200])
def test_a_row_is_far_or_not(D):
    rng = np.random.default_rng(D)
    training = rng.uniform(-1.0, 1.0, (40, D))
    same = rng.uniform(-1.0, 1.0, (30, D))
    assert not far_rows(training, np.clip(same, training.min(0), training.max(0))).any()
    assert far_rows(training, 4.0 * np.sign(same)).all()
    beyond = same.copy()
    beyond[:, 0] = 4.0  # one column: of few that is far, of many it is a long tail
    assert (far_rows(training, beyond).mean() > 0.5) == (D < MANY)


def test_a_column_without_variation_is_not_counted():
    training = np.column_stack([np.linspace(0.0, 1.0, 9), np.ones(9)])
    assert not far_rows(training, np.array([[0.5, 7.0]])).any()
