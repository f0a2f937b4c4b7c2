"""Projections: the minimum of the divergence, by its gradient, by SciPy, and where it is known."""

import numpy as np
import pytest
from scipy import optimize, special

import ardvark as av
from ardvark.inference.panels.clusters import clustered
from ardvark.inference.panels.projection import RIDGE, design, divergence, project
from tests.support import rng


def objective(b, p, A):
    """Return the sum of the divergences and the ridge, by their definitions."""
    q = special.expit(A @ b)
    q1, p1 = special.expit(-(A @ b)), 1.0 - p
    return (special.rel_entr(p, q) + special.rel_entr(p1, q1)).sum() + RIDGE / 2 * b @ b


def ordinary(g, S, N):
    return special.expit(2.0 * g.normal(size=(S, N)))


def certain(g, S, N):
    """Probabilities that are 0, 1 or as near as float64 holds."""
    return g.choice([0.0, 1.0, 1e-300, 1e-12, 1.0 - 1e-12, 0.5], size=(S, N))


CASES = {
    "ordinary": (ordinary, 30, 3),
    "more columns than rows": (ordinary, 6, 9),
    "no feature": (ordinary, 12, 0),
    "certain": (certain, 25, 2),
    "certain, separable": (certain, 6, 8),
}


@pytest.mark.parametrize("case", CASES)
def test_the_gradient_is_zero_and_no_point_nearby_is_nearer(case):
    """A Newton step that overshoots, or a wrong Hessian at p near 0 or 1, ends elsewhere."""
    make, N, k = CASES[case]
    g = rng(len(case))
    X = g.normal(size=(N, k))
    p, A = make(g, 7, N), design(X, g.normal(size=(N, 1)))
    found = project(p, A)
    assert found.shape == (7, k + 2)
    for row, b in zip(p, found, strict=True):
        gradient = A.T @ (special.expit(A @ b) - row) + RIDGE * b
        assert np.abs(gradient).max() < 1e-7
        best = objective(b, row, A)
        for size in (1e-3, 1e-1, 10.0):
            for _ in range(20):
                assert objective(b + size * g.normal(size=len(b)), row, A) > best


def test_the_batch_does_not_matter():
    """A batch of submodels and draws gives what each gives alone."""
    g = rng(1)
    p, X = ordinary(g, 4, 20), g.normal(size=(5, 20, 2))
    together = project(p, design(X))
    for one, b in zip(X, together, strict=True):
        for row, own in zip(p, b, strict=True):
            np.testing.assert_allclose(project(row[None], design(one))[0], own, rtol=0, atol=1e-8)


def test_as_scipy_minimises():
    g = rng(2)
    p, A = ordinary(g, 3, 15), design(g.normal(size=(15, 2)))
    found = project(p, A)
    for row, b in zip(p, found, strict=True):
        other = optimize.minimize(objective, np.zeros(3), (row, A), tol=1e-10)
        np.testing.assert_allclose(b, other.x, rtol=0, atol=1e-4)
        mean = (objective(b, row, A) - RIDGE / 2 * b @ b) / 15
        assert divergence(row[None], A, b[None])[0] == pytest.approx(mean, abs=1e-12)


def test_a_logistic_regression_is_its_own_projection():
    """Draws of the horseshoe model: bias and weights, up to what the ridge can move them.

    At the minimum, A' (q - p) = -RIDGE b. The left side is A' diag(w) A (b - b_0) with w the mean
    of sigmoid' between the two values of eta, which is no smaller than at one of them.
    """
    g = rng(3)
    problem = av.problem("horseshoe", g.normal(size=(60, 3)), np.arange(60) % 2)
    drawn = [problem.simulate(g) for _ in range(20)]
    point = {k: np.array([d[k] for d in drawn]) for k in drawn[0] if k != "y"}
    eta = problem.decision(point)
    p = np.exp(problem.log_predictive(1, eta, point))
    own = np.column_stack([point["bias"], point["beta"]])
    A = design(problem.X)
    found = project(p, A)
    least = np.minimum(p * (1.0 - p), special.expit(found @ A.T) * special.expit(-found @ A.T))
    curvature = [np.linalg.eigvalsh(A.T @ (w[:, None] * A))[0] for w in least]
    limits = (RIDGE * np.linalg.norm(found, axis=1) + 1e-6) / np.maximum(curvature, 1e-12)
    assert (np.linalg.norm(found - own, axis=1) <= limits).all()
    assert (limits < 0.01).sum() >= 5  # or nothing was tested


def test_the_mean_of_a_cluster_has_the_projection_of_its_draws():
    """The mean divergence of the draws minus that of their mean is the same at every b."""
    g = rng(4)
    p, A = ordinary(g, 9, 12), design(g.normal(size=(12, 2)))
    b = g.normal(size=(5, 3))
    each = np.array([[divergence(row[None], A, one[None])[0] for row in p] for one in b]).mean(1)
    of_mean = np.array([divergence(p.mean(0)[None], A, one[None])[0] for one in b])
    np.testing.assert_allclose(np.ptp(each - of_mean), 0.0, atol=1e-12)
    assert (each > of_mean).all()


def test_what_is_not_finite_is_an_error():
    with pytest.raises(ArithmeticError, match="not finite"):
        project(np.array([[0.5, np.nan]]), np.ones((2, 1)))


# --- clusters -------------------------------------------------------------------------------------


@pytest.mark.parametrize("draws", [1, 5, 20, 21, 500])
def test_clusters_keep_the_weight_and_the_mean(draws):
    p = ordinary(rng(draws), draws, 8)
    found = clustered(p)
    assert len(found.p) == len(found.weight) <= min(20, draws)
    assert (found.weight > 0.0).all()
    assert found.weight.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(found.weight @ found.p, p.mean(0), rtol=0, atol=1e-12)
    assert (clustered(p).p == found.p).all()


def test_clusters_are_of_draws_that_agree():
    """Three groups far apart, one of them certain of every label, are three clusters."""
    g = rng(5)
    near = special.logit(ordinary(g, 2, 10)) * 3.0
    p = np.concatenate([special.expit(c + 0.01 * g.normal(size=(30, 10))) for c in near])
    p = np.concatenate([p, np.ones((15, 10))])
    found = clustered(p, 3)
    assert sorted(found.weight.round(3)) == [0.2, 0.4, 0.4]
    spread = np.abs(found.p[:, None] - p).max(-1).min(0)
    assert spread.max() < 0.02


def test_equal_draws_are_one_cluster():
    found = clustered(np.repeat(ordinary(rng(6), 2, 5), [30, 10], axis=0))
    assert sorted(found.weight) == [0.25, 0.75]
