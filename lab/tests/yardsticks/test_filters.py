"""The three filters, each from its definition."""

import itertools

import numpy as np
import pytest
from scipy import optimize
from sklearn.feature_selection import f_classif

from lab.yardsticks import filters
from tests.support import rng


def data(N=40, D=8, scale=1.0):
    generator = rng(7)
    y = np.arange(N) % 2
    X = generator.standard_normal((N, D)) * scale
    X[:, 2] += 1.5 * y
    X[:, 5] = X[:, 2] + 0.2 * generator.standard_normal(N)  # a near copy
    X[:, 6] += 0.8 * y
    return X, y


def test_mrmr_is_relevance_over_mean_redundancy():
    X, y = data()
    F = f_classif(X, y)[0]
    R = np.abs(np.corrcoef(X.T))
    order = [int(F.argmax())]
    while len(order) < 5:
        left = [j for j in range(8) if j not in order]
        order.append(max(left, key=lambda j: F[j] / R[j, order].mean()))
    assert filters.mrmr(X, y, 5).tolist() == order


def test_mrmr_can_be_asked_for_more_than_there_is():
    X, y = data()
    assert len(filters.mrmr(X, y, 80)) == 7


def scatters(X, y):
    total = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    within = sum(((X[y == k] - X[y == k].mean(axis=0)) ** 2).sum(axis=0) for k in (0, 1))
    return total - within, within


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_no_other_set_has_a_larger_ratio_of_traces(most):
    X, y = data(scale=np.geomspace(0.3, 3.0, 8))
    between, within = scatters(X, y)

    def ratio(chosen):
        chosen = list(chosen)
        return between[chosen].sum() / within[chosen].sum()

    best = max(itertools.combinations(range(8), most), key=ratio)
    assert set(filters.trace_ratio(X, y, most)) == set(best)


def test_trace_ratio_ranks_standardised_features_by_the_f_statistic():
    X, y = data()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    by_f = np.argsort(-f_classif(X, y)[0])[:5]
    assert filters.trace_ratio(X, y, 5).tolist() == by_f.tolist()


def test_a_constant_feature_is_not_ranked():
    X, y = data()
    X[:, 0] = 0.0
    assert 0 not in filters.trace_ratio(X, y, 8)


def objective(W, X, Y, gamma):
    return np.linalg.norm(X @ W - Y, axis=1).sum() + gamma * np.linalg.norm(W, axis=1).sum()


@pytest.mark.parametrize(("N", "D", "gamma"), [(30, 6, 1.0), (30, 6, 5.0), (10, 15, 2.0)])
def test_robust_selection_is_at_its_minimum(N, D, gamma):
    X, y = data(N, max(D, 7))
    X = X[:, :D]
    Y = np.eye(2)[y]

    def smooth(w):  # |.| with its corner rounded off at 1e-6
        W = w.reshape(D, 2)
        rows = np.sqrt(((X @ W - Y) ** 2).sum(axis=1) + 1e-12)
        return rows.sum() + gamma * np.sqrt((W**2).sum(axis=1) + 1e-12).sum()

    least = min(
        optimize.minimize(smooth, start, method="L-BFGS-B", options={"maxiter": 5000}).fun
        for start in (np.zeros(2 * D) + 1e-3, rng(8).standard_normal(2 * D) / D)
    )
    found = objective(filters.l21(X, Y, gamma, sweeps=1000), X, Y, gamma)
    # rounding adds at most 1e-6 a row; L-BFGS and the reweighting stop at about 1e-4 of the whole
    assert found <= least * (1.0 + 1e-3)


def test_robust_selection_leads_with_what_tells_the_classes_apart():
    X, y = data(60)
    X[:, 6] += 8.0 * y
    assert filters.robust((X - X.mean(axis=0)) / X.std(axis=0), y, 3)[0] == 6
