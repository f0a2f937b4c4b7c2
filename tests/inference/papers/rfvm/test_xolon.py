"""XOLON's objective and minimum against finite differences, scikit-learn, plain loops and a grid.

Negative controls: a moved point fails the KKT check, a penalty of the other block the one-block
check, and starts in the origin stay there.
"""

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn.linear_model import LogisticRegression

from ardvark.inference.papers.rfvm.xolon import Objective, Options, iterate, solve
from tests.inference.papers.rfvm.xolon_problems import arrays, direct, made
from tests.support import ALARM, rng


def random_point(objective, random):
    a = random.standard_normal(len(objective.Z))
    v = random.exponential(size=objective.X.shape[1])
    return objective.join(a, v, 0.3)


def by_loops(objective, p):
    """F from its formula, one number after the other."""
    X, y, Z, c = objective.X, objective.y, objective.Z, objective.c
    (N, D), B = X.shape, len(Z)
    total = c * sum(p[:-1])
    for n in range(N):
        eta = p[-1]
        for d in range(D):
            for j in range(B):
                eta += X[n, d] * p[2 * B + d] * Z[j, d] * (p[j] - p[B + j])
        total += np.log1p(np.exp(-eta if y[n] else eta))
    return total


# --- the objective --------------------------------------------------------------------------------


def test_value_and_gradient():
    X, y = arrays(7, 4)
    objective = Objective(X, y, X[[1, 4, 5]], 0.7)
    p = random_point(objective, rng(1))
    p[: len(objective.Z)] += 0.2  # a+ and a- both above 0, as inside a line search
    p[len(objective.Z) : 2 * len(objective.Z)] += 0.2
    value, gradient = objective(p)
    assert value == pytest.approx(by_loops(objective, p), rel=1e-13)
    h = 1e-6
    for k in range(len(p)):
        step = h * (np.arange(len(p)) == k)
        slope = (by_loops(objective, p + step) - by_loops(objective, p - step)) / (2 * h)
        assert gradient[k] == pytest.approx(slope, rel=1e-7, abs=1e-7)


def test_saturated_decisions_have_finite_slopes():
    X, y = arrays(6, 3)
    objective = Objective(1e6 * X, y, X, 1.0)
    value, gradient = objective(random_point(objective, rng(0)))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_the_origin_is_a_local_minimum_whatever_the_data():
    X, y = arrays(20, 5, noise=0.0)
    objective = Objective(X, y, X, 0.05)
    origin = objective.origin()
    random = rng(2)
    size = len(origin)
    for _ in range(50):
        step = 1e-5 * random.standard_normal(size)
        step[:-1] = np.abs(step[:-1])
        assert objective(origin + step)[0] > objective(origin)[0]
    # with a lower minimum elsewhere, which a start in the origin does not see
    stuck = iterate(objective, origin, Options())
    assert not stuck.p[:-1].any()
    best, _ = solve(objective, Options(starts=6), rng(0))
    assert best.objective[-1] < stuck.objective[-1]


# --- each block alone is an L1-penalised logistic regression --------------------------------------


def held_features(objective, v):
    """The minimum over a and b, v held."""
    p = objective.join(np.zeros(len(objective.Z)), v, 0.0)
    held = np.zeros(len(p), dtype=bool)
    held[2 * len(objective.Z) : -1] = True
    return objective.split(iterate(objective, p, Options(), held=held).p)


def l1_logistic(H, y, c):
    """scikit-learn's answer; saga does not penalise the intercept, liblinear does."""
    model = LogisticRegression(l1_ratio=1.0, C=1 / c, solver="saga", tol=1e-9, max_iter=100_000)
    model.fit(H, y)
    return model.coef_[0], model.intercept_[0]


@pytest.mark.parametrize("c", [0.3, 2.0])
def test_with_v_held_it_is_scikit_learns_l1_logistic_regression(c):
    X, y = arrays(40, 6, number=3)
    Z = X[:8]
    v = rng(4).exponential(size=6)
    objective = Objective(X, y, Z, c)
    a, kept, b = held_features(objective, v)
    np.testing.assert_array_equal(kept, v)
    H = X @ (v[:, None] * Z.T)
    want, intercept = l1_logistic(H, y, c)
    assert 0 < np.count_nonzero(a) < 8

    def F(a, b):
        return objective(objective.join(a, v, b))[0]

    # convex: equal minima, and a gap of 1e-11 in F is 1e-5 in a weight
    assert F(a, b) == pytest.approx(F(want, intercept), abs=1e-8)
    np.testing.assert_allclose(a, want, atol=1e-3)
    assert b == pytest.approx(intercept, abs=1e-3)
    # negative control, another penalty: 0.05 to 1 higher in F over 12 seeds
    assert F(*l1_logistic(H, y, 2 * c)) > F(a, b) + 1e-6


def test_with_a_held_it_is_a_nonnegative_lasso():
    """Against proximal gradient steps in plain NumPy."""
    X, y = arrays(30, 12, number=5)
    objective = Objective(X, y, X[:5], 1.5)
    a = rng(6).standard_normal(5)
    p = objective.join(a, np.zeros(12), 0.0)
    held = np.arange(len(p)) < 10
    _, v, b = objective.split(iterate(objective, p, Options(), held=held).p)

    G, s = np.column_stack([X * (a @ X[:5]), np.ones(30)]), 2 * y - 1
    w, penalty = np.zeros(13), np.append(np.full(12, 1.5), 0.0)
    step = 4.0 / np.linalg.norm(G, 2) ** 2
    for _ in range(20_000):
        w = w - step * (G.T @ (-s * special.expit(-s * (G @ w))) + penalty)
        w[:12] = np.maximum(w[:12], 0.0)
    assert 0 < np.count_nonzero(v) < 12
    np.testing.assert_allclose(v, w[:12], atol=1e-6)
    assert b == pytest.approx(w[12], abs=1e-6)


def test_both_blocks_of_the_joint_fit_are_at_their_minimum():
    X, y = arrays(40, 6, number=7, noise=1.0)
    objective = Objective(X, y, X, 1.0)
    run, _ = solve(objective, Options(starts=4), rng(0))
    v = objective.split(run.p)[1]
    assert v.any()
    want, intercept = l1_logistic(X @ (v[:, None] * X.T), y, 1.0)
    at = objective(objective.join(want, v, intercept))[0]
    assert run.objective[-1] == pytest.approx(at, abs=1e-7)


# --- the joint minimum ----------------------------------------------------------------------------


def test_one_feature_and_one_centre_against_a_grid():
    """With w = v z a the penalty's least is 2 c |w / z|^1/2: one number to search over.

    On fixed data; on others the lowest minimum can lie so near the origin that every start ends
    there instead.
    """
    X, y = arrays(25, 1, number=8, noise=1.0, generator=np.random.default_rng)
    s = 2 * y - 1
    for c in (0.2, 0.7, 3.0):
        problem = made(X, y, basis=np.array([[1.7]]), standardize=False)
        result = direct(problem, c1=c, c2=c, starts=6)

        def profile(w, c=c):
            found = optimize.minimize_scalar(
                lambda b: np.logaddexp(0, -s * (X[:, 0] * w + b)).sum(), bracket=(-1, 1)
            )
            return found.fun + 2 * c * np.sqrt(abs(w) / 1.7)

        grid = np.linspace(-4, 4, 801)
        values = np.array([profile(w) for w in grid])
        best = optimize.minimize_scalar(
            profile, bounds=grid[values.argmin()] + np.array([-0.01, 0.01]), method="bounded"
        )
        want = min(best.fun, profile(0.0))
        assert result.attrs["objective"] == pytest.approx(want, abs=1e-6)
        w = result.details["feature_weight"][0] * 1.7 * result.details["sample_weight"][0]
        assert w == pytest.approx(best.x if best.fun < profile(0.0) else 0.0, abs=1e-4)


@pytest.mark.parametrize(("N", "D"), [(30, 6), (20, 300)])
def test_kkt_and_descent(N, D):
    X, y = arrays(N, D, noise=1.0)
    problem = made(X, y)
    result = direct(problem, c1=0.8, c2=1.7, starts=4)
    assert result.status == "finished"
    assert np.diff(result.details["objective"]).max() <= 1e-12 * result.details["objective"][0]
    assert result.details["objective"][-1] == result.details["objective_start"].min()
    assert result.attrs["kkt_residual"] < 1e-4
    # the conditions in the problem's own units, from the formula
    a, v = result.details["sample_weight"], result.details["feature_weight"]
    eta, s = problem.decision(result.details), 2 * problem.y - 1
    r = s * special.expit(-s * eta)
    of_a, of_v = problem.X @ (v * (r @ problem.X)), (a @ problem.X) * (r @ problem.X)
    assert abs(r.sum()) < 1e-4
    np.testing.assert_allclose(of_a[a != 0], 0.8 * np.sign(a[a != 0]), rtol=1e-4)
    np.testing.assert_allclose(of_v[v > 0], 1.7, rtol=1e-4)
    assert (np.abs(of_a[a == 0]) <= 0.8 * 1.0001).all()
    assert (of_v[v == 0] <= 1.7 * 1.0001).all()
    # F in those units
    F = np.logaddexp(0, -s * eta).sum() + 0.8 * np.abs(a).sum() + 1.7 * v.sum()
    assert result.attrs["objective"] == pytest.approx(F, rel=1e-12)
    # negative control: the residuals see a point that has moved
    objective = Objective(problem.X, y, problem.Z, 1.0)
    p = iterate(objective, objective.start(0, rng(0)), Options()).p
    assert max(x.max() for x in objective.residuals(p)[:2]) < 1e-4
    assert max(x.max() for x in objective.residuals(1.05 * p)[:2]) > 1e-2


def test_only_the_product_of_the_penalties_matters_to_eta():
    problem = made(*arrays(30, 6))
    one, other = direct(problem, c1=1.0, c2=1.0), direct(problem, c1=0.1, c2=10.0)
    np.testing.assert_allclose(one.posterior["eta"], other.posterior["eta"], atol=1e-10)
    for name, factor in (("sample_weight", 10.0), ("feature_weight", 0.1)):
        want = factor * one.posterior[name]
        np.testing.assert_allclose(other.posterior[name], want, rtol=1e-10)
    for result, c1, c2 in ((one, 1.0, 1.0), (other, 0.1, 10.0)):
        a, v = result.details["sample_weight"], result.details["feature_weight"]
        assert c1 * np.abs(a).sum() == pytest.approx(c2 * v.sum(), rel=1e-4)  # equal penalties
    weaker = direct(problem, c1=0.5, c2=1.0)  # negative control: another product
    assert np.abs(weaker.posterior["eta"] - one.posterior["eta"]).max() > 0.1


@pytest.mark.statistical
@pytest.mark.parametrize("number", [0, 1, 2])
def test_where_a_start_begins(number):
    """v is g^2, a squared exponential draw times g^2, or one alone, up to a factor.

    A Kolmogorov-Smirnov test whose scale is the sample's mean is conservative.
    """
    random = rng(8)
    X, y = random.normal(size=(30, 3000)), np.arange(30) % 2.0
    objective = Objective(X, y, X, 2.0)
    a, v, b = objective.split(objective.start(number, rng(9)))
    g = (y - y.mean()) @ X
    draw = np.sqrt(v) / (np.abs(g) if number < 2 else 1.0)
    if number == 0:
        np.testing.assert_allclose(draw, draw[0], rtol=1e-10)
    else:
        assert stats.kstest(draw / draw.mean(), stats.expon.cdf).pvalue > ALARM
    assert np.abs(a).sum() == pytest.approx(v.sum())  # of equal penalties
    assert np.std(X @ (v * (a @ X))) == pytest.approx(6.0)  # a wide spread
    assert b == pytest.approx(np.log(y.mean() / (1.0 - y.mean())), abs=1e-12)


def test_no_start_ends_lower_than_the_one_returned():
    X, y = arrays(24, 200)
    best, ends = solve(Objective(X, y, X, 2.0), Options(starts=6), rng(0))
    assert best.objective[-1] == ends.min()
    assert np.ptp(ends) > 1e-3  # the problem has several minima


def test_a_fit_that_ends_at_the_origin_says_so():
    problem = made(*arrays(20, 5))
    result = direct(problem, c1=30.0, c2=30.0, starts=3)
    assert result.status == "not_converged"
    assert "no start of 3 ended below the origin" in result.reason
    assert result.attrs["objective"] == pytest.approx(result.attrs["objective_origin"], rel=1e-12)
    assert not result.details["feature_weight"].any()
    p = problem.y.mean()
    np.testing.assert_allclose(special.expit(result.posterior["eta"]), p)
    assert 'select="cv"' in result.reason
    assert "cross-validation chose" in direct(problem, grid=(30.0,), starts=1).reason


def test_too_few_iterations():
    result = direct(made(*arrays(20, 5)), c1=0.1, c2=0.1, max_iterations=3, starts=1)
    assert result.status == "not_converged"
    assert "still falls after 3 iterations" in str(result.reason)
