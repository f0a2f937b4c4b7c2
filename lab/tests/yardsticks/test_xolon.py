"""XOLON's objective and minimum against finite differences, scikit-learn and plain loops."""

import numpy as np
import pytest
from scipy import special
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from lab.yardsticks import xolon
from lab.yardsticks.xolon import Objective, Xolon, descend, solve
from tests.support import rng


def arrays(N, D, number=0, noise=0.5):
    random = rng(number)
    X = random.standard_normal((N, D))
    y = (X[:, 0] - X[:, 1 % D] + noise * random.standard_normal(N) > 0).astype(float)
    y[:2] = 0.0, 1.0
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def by_loops(objective, p):
    """F from its formula, one number after the other."""
    X, y, c = objective.X, objective.y, objective.c
    N, D = X.shape
    total = c * sum(p[:-1])
    for n in range(N):
        eta = p[-1]
        for d in range(D):
            for j in range(N):
                eta += X[n, d] * p[2 * N + d] * X[j, d] * (p[j] - p[N + j])
        total += np.log1p(np.exp(-eta if y[n] else eta))
    return total


def test_value_and_gradient():
    X, y = arrays(6, 4)
    objective = Objective(X, y, 0.7)
    random = rng(1)
    p = objective.join(random.standard_normal(6), random.exponential(size=4), 0.3)
    p[:12] += 0.2  # a+ and a- both above 0, as inside a line search
    value, gradient = objective(p)
    assert value == pytest.approx(by_loops(objective, p), rel=1e-13)
    h = 1e-6
    for k in range(len(p)):
        step = h * (np.arange(len(p)) == k)
        slope = (by_loops(objective, p + step) - by_loops(objective, p - step)) / (2 * h)
        assert gradient[k] == pytest.approx(slope, rel=1e-7, abs=1e-7)


def test_the_origin_is_a_local_minimum_and_several_starts_see_a_lower_one():
    X, y = arrays(20, 5, noise=0.0)
    objective = Objective(X, y, 0.05)
    origin, random = objective.origin(), rng(2)
    for _ in range(50):
        step = 1e-5 * random.standard_normal(len(origin))
        step[:-1] = np.abs(step[:-1])
        assert objective(origin + step)[0] > objective(origin)[0]
    stuck = descend(objective, origin)
    assert not stuck[:-1].any()
    assert objective(solve(objective, 6, rng(0)))[0] < objective(stuck)[0]


@pytest.mark.parametrize("c", [0.3, 2.0])
def test_with_v_held_it_is_scikit_learns_l1_logistic_regression(c):
    X, y = arrays(40, 6, number=3)
    v = rng(4).exponential(size=6)
    objective = Objective(X, y, c)
    p = objective.join(np.zeros(40), v, 0.0)
    held = np.ones(len(p), dtype=bool)
    held[:8] = held[40:48] = held[-1] = False  # a of the first eight rows, and b, are free
    end = descend(objective, p, held)
    a, kept, _ = objective.split(end)
    np.testing.assert_array_equal(kept, v)

    def by_sklearn(c):
        model = LogisticRegression(l1_ratio=1.0, C=1 / c, solver="saga", tol=1e-9, max_iter=100_000)
        model.fit(X @ (v[:, None] * X[:8].T), y)  # saga does not penalise the intercept
        weights = np.append(model.coef_[0], np.zeros(32))
        return objective(objective.join(weights, v, model.intercept_[0]))[0]

    assert 0 < np.count_nonzero(a) < 8
    assert objective(end)[0] == pytest.approx(by_sklearn(c), abs=1e-7)
    assert by_sklearn(2 * c) > objective(end)[0] + 1e-6  # negative control: another penalty


@pytest.mark.parametrize(("N", "D"), [(30, 6), (20, 300)])
def test_the_joint_fit_meets_the_conditions_of_a_minimum(N, D):
    X, y = arrays(N, D, noise=1.0)
    objective = Objective(X, y, 1.2)

    def excess(p):
        """How far weights are from their conditions (Karush, Kuhn, Tucker), from the formula."""
        a, v, b = objective.split(p)
        s = 2 * y - 1
        eta = X @ (v * (X.T @ a)) + b
        r = s * special.expit(-s * eta)
        of_a, of_v = X @ (v * (X.T @ r)), (X.T @ a) * (X.T @ r)
        at_a = np.where(a == 0, np.maximum(np.abs(of_a) - 1.2, 0), of_a - 1.2 * np.sign(a))
        at_v = np.where(v == 0, np.maximum(of_v - 1.2, 0), of_v - 1.2)
        return max(np.abs(at_a).max(), np.abs(at_v).max(), abs(r.sum()))

    end = solve(objective, 4, rng(0))
    assert end[:-1].any()
    assert excess(end) < 1e-3
    assert excess(1.05 * end) > 1e-2  # negative control: a point that has moved
    a, v, _ = objective.split(end)
    assert np.abs(a).sum() == pytest.approx(v.sum(), rel=1e-3)  # equal penalties


def test_cross_validation_scores_each_fold_by_its_own_training_rows():
    random = rng(9)
    X = 3.0 + 2.0 * random.standard_normal((31, 4))
    y = (X[:, 0] - 3.0 + random.standard_normal(31) > 0).astype(float)
    tried = np.array([40.0, 1.0])
    scores = xolon.cross_validate(X, y, tried, rng(3))
    fold = xolon.folds_of(y, rng(3))
    for k in range(3):
        assert set(y[fold == k]) == {0.0, 1.0}
    # 40 is past the origin: the training part's class sizes alone
    sizes = np.array([y[fold != k].mean() for k in fold])
    assert scores[0] == pytest.approx(np.log(np.where(y == 1, sizes, 1 - sizes)).mean(), rel=1e-6)
    assert scores[0] < scores[1] < 0.0


def test_a_fit_that_ends_at_the_origin_says_so(monkeypatch):
    monkeypatch.setattr(xolon, "GRID", np.array([30.0]))
    X, y = arrays(20, 5)
    with pytest.warns(ConvergenceWarning, match="no start of 12 ended below the origin"):
        fitted = Xolon().fit(X, y)
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], y.mean())
