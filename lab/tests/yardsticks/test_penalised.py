"""Penalised logistic regression, from the conditions that hold at a minimum."""

import numba
import numpy as np
import pytest
from scipy import special

from lab.yardsticks.penalised import LEAST, SHAPE, SparseLogistic
from tests.support import rng


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """skglm's loops run uncompiled: compiling them takes longer than all of these tests."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)


def planted(N=120, D=12):
    generator = rng(5)
    X = generator.standard_normal((N, D))
    eta = 3.0 * X[:, 0] - 2.0 * X[:, 1]
    return X, (eta + generator.logistic(size=N) > 0).astype(int)


def slope(fitted, X, y):
    """Return the gradient of the mean log likelihood by the weights, and by the intercept."""
    residual = y - special.expit(X @ fitted.coef_ + fitted.intercept_)
    return X.T @ residual / len(y), residual.mean()


def largest(X, y):
    return np.abs(X.T @ (y - y.mean())).max() / len(y)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.1])
def test_an_elastic_net_is_at_its_minimum(l1_ratio):
    X, y = planted()
    fitted = SparseLogistic(0.2, l1_ratio=l1_ratio).fit(X, y)
    alpha = 0.2 * largest(X, y) / l1_ratio
    w, (gradient, intercept) = fitted.coef_, slope(fitted, X, y)
    on = w != 0.0
    assert on[:2].all()
    assert on.sum() < 12 or l1_ratio < 1.0
    penalty = alpha * (l1_ratio * np.sign(w) + (1.0 - l1_ratio) * w)
    np.testing.assert_allclose(gradient[on], penalty[on], atol=5e-5)
    assert (np.abs(gradient[~on]) <= alpha * l1_ratio + 5e-5).all()
    assert abs(intercept) < 5e-5


def test_mcp_is_stationary_and_shrinks_large_weights_less():
    X, y = planted()
    fitted = SparseLogistic(0.3, shape=SHAPE).fit(X, y)
    alpha = 0.3 * largest(X, y)
    w, (gradient, intercept) = fitted.coef_, slope(fitted, X, y)
    on = w != 0.0
    assert on[:2].all()
    weight = np.maximum(1.0 - np.abs(w) / (SHAPE * alpha), LEAST)
    # the weights of the last iteration were of a solution at most 1e-3 away
    np.testing.assert_allclose(gradient[on], (alpha * weight * np.sign(w))[on], atol=1e-3)
    assert (np.abs(gradient[~on]) <= alpha + 5e-5).all()
    assert abs(intercept) < 5e-5
    convex = SparseLogistic(0.3).fit(X, y)
    assert (np.abs(w[:2]) > np.abs(convex.coef_[:2])).all()


def test_no_weight_is_left_at_the_largest_penalty():
    X, y = planted()
    fitted = SparseLogistic(1.0 + 1e-6).fit(X, y)
    assert not fitted.coef_.any()
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], y.mean(), atol=1e-4)
    assert np.count_nonzero(SparseLogistic(0.95).fit(X, y).coef_) == 1


def test_labels_may_be_any_two_values():
    X, y = planted()
    named = SparseLogistic(0.2).fit(X, np.where(y == 1, 7, -3))
    np.testing.assert_array_equal(named.predict(X) == 7, named.predict_proba(X)[:, 1] > 0.5)
