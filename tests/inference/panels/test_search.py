"""The search against one by brute force with SciPy's optimiser, and against all submodels."""

import itertools

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression

from ardvark.inference.panels import search as searching
from ardvark.inference.panels.clusters import Clusters, clustered
from ardvark.inference.panels.projection import RIDGE
from ardvark.inference.panels.search import divergences, forward, l1_order, search
from tests.support import rng

D = 8


def problem(number, N=40, correlated=0.5):
    """Return clusters of draws of a logistic regression on correlated features, and these."""
    g = rng(number)
    X = g.normal(size=(N, D)) + correlated * g.normal(size=(N, 1))
    X = (X - X.mean(0)) / X.std(0)
    beta = g.normal(size=D) + 0.3 * g.normal(size=(60, D))
    return clustered(special.expit(beta @ X.T), 4), X


def by_scipy(clusters, X, columns, always=None):
    """Return the mean divergence of the clusters from a submodel, each minimised by BFGS."""
    A = np.column_stack([np.ones(len(X)), *([] if always is None else [always]), X[:, columns]])

    def objective(b, p):
        eta = A @ b
        value = (np.logaddexp(0.0, eta) - p * eta).sum() + RIDGE / 2 * b @ b
        return value, A.T @ (special.expit(eta) - p) + RIDGE * b

    total = 0.0
    for p, weight in zip(clusters.p, clusters.weight, strict=True):
        b = optimize.minimize(objective, np.zeros(A.shape[1]), p, jac=True, tol=1e-9).x
        q = special.expit(A @ b)
        total += weight * (special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)).mean()
    return total


@pytest.mark.parametrize("with_always", [False, True])
@pytest.mark.parametrize("number", range(3))
def test_the_search_is_a_forward_search_by_brute_force(number, with_always):
    clusters, X = problem(number)
    always = rng(number + 50).normal(size=(len(X), 2)) if with_always else None
    path = []
    for _ in range(4):
        found = {j: by_scipy(clusters, X, [*path, j], always) for j in set(range(D)) - {*path}}
        path.append(min(found, key=found.__getitem__))
    assert search(clusters, X, 4, always) == path


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_divergences_of_all_submodels_by_enumeration(k):
    """No submodel of the path is nearer than the best of its size; with one feature, it is that."""
    clusters, X = problem(7)
    sets = list(itertools.combinations(range(D), k))
    found = divergences(clusters, X, sets)
    np.testing.assert_allclose(found, [by_scipy(clusters, X, list(s)) for s in sets], atol=1e-8)
    path = search(clusters, X, 3)
    own = divergences(clusters, X, [path[:k]])[0]
    assert own >= found.min() - 1e-12
    if k < 2:
        assert own == pytest.approx(found.min(), abs=1e-12)


def test_the_path_is_the_best_submodel_of_each_size_where_columns_are_orthogonal():
    """Effects that halve, on orthogonal columns: no other set of up to three is nearer."""
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=5)))  # (32, 5)
    both = [signs[:, i] * signs[:, j] for i, j in itertools.combinations(range(5), 2)]
    X = np.column_stack([signs, *both])[:, :D]
    beta = np.array([0.1, -1.0, 0.0, 0.5, 0.02, 0.25, 0.0, -0.05])
    clusters = clustered(special.expit((beta + 0.01 * rng(8).normal(size=(30, D))) @ X.T), 4)
    path = search(clusters, X, 3)
    assert path == [1, 3, 5]
    for k in (1, 2, 3):
        sets = list(itertools.combinations(range(D), k))
        best = sets[int(divergences(clusters, X, sets).argmin())]
        assert set(best) == set(path[:k])


def test_the_path_of_lambdas_is_that_of_scikit_learn():
    """The order of entry, by SAGA on rows that are split by their probability."""
    clusters, X = problem(9, N=60)
    p = clusters.weight @ clusters.p
    rows, labels = np.concatenate([X, X]), np.repeat([1, 0], len(X))
    weights = np.concatenate([p, 1.0 - p])
    order = []
    first = np.abs(X.T @ (p.mean() - p)).max()  # sum over rows
    for share in np.geomspace(1.0, 0.01, 60):
        model = LogisticRegression(
            l1_ratio=1.0, solver="saga", C=1.0 / (share * first), tol=1e-6, max_iter=20_000
        ).fit(rows, labels, weights)
        size = np.abs(model.coef_[0])
        order += [j for j in np.argsort(-size) if size[j] > 1e-6 and j not in order]
    found = l1_order(p, X)
    assert sorted(found) == list(range(D))
    assert found[:4] == order[:4]


def test_what_the_path_screens_out_is_not_searched_and_what_is_always_in_costs_nothing(monkeypatch):
    """300 features, of which five matter: they are in the screen of 20 and come first."""
    g = rng(10)
    X = g.normal(size=(150, 300))
    beta = np.zeros(300)
    beta[[3, 50, 120, 200, 299]] = [1.5, -1.2, 1.0, -0.9, 0.8]
    clusters = clustered(special.expit((beta + 0.01 * g.normal(size=(40, 300))) @ X.T), 5)
    mean = clusters.weight @ clusters.p
    order = l1_order(mean, X)
    monkeypatch.setattr(searching, "SCREEN", 20)
    path = search(clusters, X, 8)
    assert set(path[:5]) == {3, 50, 120, 200, 299}
    assert set(path) <= set(order[:20])
    assert path == forward(clusters, X, 8, order[:20])
    # with the strongest one always in, the others are as they were, and its copy adds nothing
    fixed = l1_order(mean, X, X[:, [3]])
    assert set(fixed[:4]) == {50, 120, 200, 299}
    assert set(search(clusters, X, 4, X[:, [3]])) == {50, 120, 200, 299}


def test_a_path_is_no_longer_than_there_are_features():
    clusters = Clusters(np.array([[0.2, 0.9, 0.4]]), np.ones(1))
    X = rng(11).normal(size=(3, 2))
    assert sorted(search(clusters, X, 9)) == [0, 1]
    assert search(clusters, X, 0) == []


def test_a_search_shows_how_many_features_it_has():
    p = rng(0).uniform(size=(6, 30))
    states = []
    found = search(
        clustered(p), rng(1).normal(size=(30, 120)), 2, None, lambda *s: states.append(s)
    )
    assert len(found) == 2
    assert states == [
        (0, "candidates among 120 features"),
        (0, "0 of 2 features"),
        (1, "1 of 2 features"),
    ]
