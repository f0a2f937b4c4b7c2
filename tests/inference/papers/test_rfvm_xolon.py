"""XOLON against finite differences, scikit-learn, plain loops and a grid.

Negative controls: a moved point fails the KKT check, a penalty of the other block the one-block
check, and starts in the origin stay there.
"""

import dataclasses
import tracemalloc

import numpy as np
import pymc as pm
import pytest
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression

import ardvark as av
from ardvark.inference import fitting
from ardvark.inference.backend import FitFailed, Job
from ardvark.inference.datatree import read, save
from ardvark.inference.papers import rfvm_xolon as xolon
from ardvark.inference.papers.rfvm_xolon import Objective, Options, folds_of, iterate, solve
from ardvark.inference.progress import Reporter
from ardvark.inference.target import Target
from ardvark.validate import InputError
from tests.support import rng, seed


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(fitting.BACKENDS, "xolon", xolon)


def arrays(N, D, number=0, noise=0.5):
    random = rng(number)
    X = random.standard_normal((N, D))
    y = (X[:, 0] - X[:, 1 % D] + noise * random.standard_normal(N) > 0).astype(float)
    y[:2] = 0.0, 1.0
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def made(X, y, **given):
    return av.problem("rfvm", (X, np.asarray(y).astype(int)), **given)


def direct(problem, **options):
    """The backend's own result: no `pm.Model` is built."""
    return xolon.fit(
        Target(problem), Options(**options),
        Job(draws=1, chains=1, seed=seed(5)),
    )  # fmt: skip


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
        assert gradient[k] == pytest.approx(slope, abs=1e-8)


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
    # with a far lower minimum elsewhere, which a start in the origin does not see
    stuck = iterate(objective, origin, Options())
    assert not stuck.p[:-1].any()
    best, _ = solve(objective, Options(starts=2), rng(0))
    assert best.objective[-1] < 0.5 * stuck.objective[-1]


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
    np.testing.assert_allclose(a, want, atol=1e-5)
    assert b == pytest.approx(intercept, abs=1e-5)
    other, _ = l1_logistic(H, y, 2 * c)  # negative control: another penalty
    assert np.abs(a - other).max() > 1e-2


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
    """With w = v z a the penalty's least is 2 c |w / z|^1/2: one number to search over."""
    X, y = arrays(25, 1, number=8, noise=1.0)
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
    assert result.status == "ok"
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
    assert "cross-validation found" in direct(problem, grid=(30.0,), starts=1).reason


def test_too_few_iterations():
    result = direct(made(*arrays(20, 5)), c1=0.1, c2=0.1, max_iterations=3, starts=1)
    assert result.status == "not_converged"
    assert "still falls after 3 iterations" in result.reason


# --- the choice of c ------------------------------------------------------------------------------


def test_the_problems_own_penalties_are_its_prior_scales():
    problem = made(*arrays(20, 5))
    c1, c2 = xolon.prior_rates(problem)
    assert c1 == pytest.approx(1.0)
    assert c2 == pytest.approx(max(5.0, 100.0**0.5))
    result = direct(problem, select="problem", starts=1)
    assert (result.attrs["c1"], result.attrs["c2"]) == (c1, c2)
    assert "cv_score" not in result.details
    # with both given there is nothing to select
    assert "cv_score" not in direct(problem, c1=1.0, c2=2.0, starts=1).details


def test_cross_validation_scores():
    random = rng(9)
    X = 3.0 + 2.0 * random.standard_normal((31, 4))
    y = (X[:, 0] - 3.0 + random.standard_normal(31) > 0).astype(int)
    problem = made(X, y)
    options = Options(grid=(0.1, 1.0, 40.0), starts=2)
    silent = Reporter(enabled=False)
    tried, scores = xolon.cross_validate(problem, options, rng(3), silent)
    assert tried.tolist() == [40.0, 1.0, 0.1]
    # by a loop: folds as drawn, features standardised on each training part
    again = rng(3)
    fold, starts = folds_of(y, 3, again), again.integers(2**63)
    want = np.zeros((3, 31))
    for k in range(3):
        train = fold != k
        mean, sd = X[train].mean(axis=0), X[train].std(axis=0)
        A, T = (X[train] - mean) / sd, (X[~train] - mean) / sd
        for i, c in enumerate(tried):
            objective = Objective(A, y[train].astype(float), A, c)
            best, _ = solve(objective, options, np.random.default_rng(starts))
            a, v, b = objective.split(best.p)
            p = special.expit(b + (T * v) @ A.T @ a)
            want[i, ~train] = np.log(np.where(y[~train] == 1, p, 1 - p))
    np.testing.assert_allclose(scores, want.mean(axis=1), rtol=1e-5)
    # 40 is past the origin: the score of the class sizes alone
    assert scores[0] == pytest.approx(y.mean() * np.log(y.mean()) + (1 - y.mean()) * np.log(
        1 - y.mean()), abs=0.02)  # fmt: skip
    chosen = direct(problem, grid=(0.1, 1.0, 40.0), starts=2)
    best = chosen.details["cv_c"][chosen.details["cv_score"].argmax()]
    assert chosen.attrs["c1"] * chosen.attrs["c2"] == pytest.approx(best**2)
    ratio = np.divide(*xolon.prior_rates(problem))
    assert chosen.attrs["c1"] / chosen.attrs["c2"] == pytest.approx(ratio)
    for given in ({"c1": 0.3}, {"c2": 0.3}):
        half = direct(problem, grid=(0.1, 1.0, 40.0), starts=2, **given)
        assert half.attrs[next(iter(given))] == 0.3
        assert half.attrs["c1"] * half.attrs["c2"] == pytest.approx(best**2)


def test_folds_hold_both_classes():
    y = np.array([0] * 11 + [1] * 5)
    fold = folds_of(y, 3, rng(0))
    for k in range(3):
        assert 3 <= (y[fold == k] == 0).sum() <= 4
        assert 1 <= (y[fold == k] == 1).sum() <= 2
    assert folds_of(np.array([0, 0, 0, 1, 1]), 3, rng(0)).max() == 1
    with pytest.raises(FitFailed, match="needs 2 samples of each class; give c1 and c2"):
        folds_of(np.array([0, 0, 0, 1]), 3, rng(0))


# --- degenerate input -----------------------------------------------------------------------------


def check(result):
    assert result.status in ("ok", "not_converged"), result.reason
    for name, values in result.posterior.items():
        assert np.isfinite(values).all(), name
    trace = result.details["objective"]
    assert np.diff(trace).max(initial=0.0) <= 1e-12 * np.abs(trace).max()
    return result


@pytest.mark.parametrize("c", [1e-4, 0.5])
def test_separable_data(c):
    X, y = arrays(20, 40, noise=0.0)
    result = check(direct(made(X, y), c1=c, c2=c, starts=3))
    assert result.status == "ok"
    assert ((result.posterior["eta"][0, 0] > 0) == (y == 1)).all()


def test_constant_columns_get_no_weight():
    X, y = arrays(20, 5)
    X[:, 2:4] = 7.0
    result = check(direct(made(X, y), c1=0.5, c2=0.5, starts=3))
    assert result.status == "ok"
    assert (result.details["feature_weight"][2:4] == 0.0).all()
    # nothing but constants: the origin
    nothing = check(direct(made(np.ones((20, 3)), y), c1=0.5, c2=0.5, starts=2))
    assert "origin" in nothing.reason


def test_a_duplicate_column_changes_nothing_but_where_the_weight_lies():
    X, y = arrays(20, 3)
    once = check(direct(made(X, y), c1=0.5, c2=0.5, starts=6))
    twice = check(direct(made(np.repeat(X, 2, axis=1), y), c1=0.5, c2=0.5, starts=6))
    # Z'a holds every duplicate once: the same eta, the same penalty, their weights added
    assert twice.attrs["objective"] == pytest.approx(once.attrs["objective"], abs=1e-6)
    both = twice.details["feature_weight"].reshape(3, 2).sum(axis=1)
    np.testing.assert_allclose(both, once.details["feature_weight"], atol=1e-4)


def test_two_samples():
    X, y = np.array([[0.0, 1.0, 2.0], [1.0, -1.0, 2.5]]), np.array([0, 1])
    result = check(direct(made(X, y), c1=0.05, c2=0.05, starts=3))
    assert result.status == "ok"
    assert np.diff(result.posterior["eta"][0, 0])[0] > 0
    failed = av.fit(made(X, y), "xolon", random_seed=seed(1), progressbar=False)
    assert failed.attrs["status"] == "failed"
    assert "needs 2 samples of each class" in failed.attrs["reason"]


def test_numbers_far_from_one():
    X, y = arrays(12, 3)
    for scale in (1e-6, 1e6):
        check(direct(made(scale * X, y, standardize=False), c1=0.1, c2=0.1, starts=2))


def test_one_informative_feature_among_20000():
    random = rng(0)
    X = random.standard_normal((40, 20_000))
    y = (X[:, 1234] > 0).astype(float)
    X[:, 1234] = 2 * y - 1 + 0.1 * random.standard_normal(40)
    problem = made(X, y)
    result = check(direct(problem, c1=3.0, c2=3.0, starts=2))
    assert result.status == "ok"
    assert result.details["feature_weight"].argmax() == 1234
    assert result.attrs["features"] < 20


def test_memory_is_far_below_a_square_of_the_features():
    X, y = arrays(40, 3000)
    objective = Objective(X, y, X, 3.0)
    start = objective.start(1, rng(0))
    tracemalloc.start()
    iterate(objective, start, Options(max_iterations=30))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * X.nbytes  # a (D, D) array is 75 copies; L-BFGS-B keeps 2 x 20 gradients


# --- the fit as a DataTree ------------------------------------------------------------------------


@pytest.mark.parametrize("latent_noise", ["explicit", "integrated", "none"])
def test_the_decision_is_without_noise_in_every_form(latent_noise, tmp_path):
    X, y = arrays(24, 5, number=1)
    problem = made(X, y, latent_noise=latent_noise)
    tree = av.fit(problem, "xolon", random_seed=seed(2), progressbar=False, starts=2)
    assert tree.attrs["status"] == "ok"
    posterior = tree["posterior"]
    assert dict(posterior.sizes) == {"chain": 1, "draw": 1, "feature": 5, "basis": 24, "obs": 24}
    assert ("tau" in posterior) == (latent_noise != "none")
    assert "u" not in posterior
    eta = posterior["eta"].values[0, 0]
    want = -np.logaddexp(0, -(2 * y - 1) * eta)
    np.testing.assert_allclose(
        tree["log_likelihood"]["y"].values[0, 0], want, rtol=1e-10, atol=1e-12
    )
    new = X[:6] + 0.3
    p = special.expit(
        posterior["bias"].values[0, 0]
        + (problem.standardized(new) * posterior["feature_weight"].values[0, 0])
        @ problem.Z.T @ posterior["sample_weight"].values[0, 0]
    )  # fmt: skip
    for rule in ("draws", "paper"):
        np.testing.assert_allclose(av.predict(problem, tree, new, rule)[0, 0], p, rtol=1e-10)
    fit = tree["fit"]
    assert fit["selected_feature"].values.tolist() == (fit["feature_weight"].values > 0).tolist()
    assert fit["selected_sample"].values.tolist() == (fit["sample_weight"].values != 0).tolist()
    assert fit["kkt_feature"].dims == ("feature",)
    assert np.isnan(tree["sample_stats"]["lp"]).all()
    save(tree, tmp_path / "fit.nc")
    assert tree.identical(read(tmp_path / "fit.nc"))


def test_seeds_and_kept_variables():
    problem = made(*arrays(24, 5))
    settings = {"random_seed": seed(2), "progressbar": False, "starts": 3}
    one, same = (av.fit(problem, "xolon", **settings) for _ in range(2))
    assert one["posterior"].identical(same["posterior"])
    shared = av.fit(problem, "xolon", keep="shared", **settings)["posterior"]
    names = {"feature_weight", "sample_weight", "eta", "bias", "tau"}
    assert set(shared.data_vars) == names


def test_what_it_supports():
    X, y = arrays(20, 3)
    assert xolon.supports(Target(made(X, y))) is None
    assert "bare pm.Model" in xolon.supports(Target(pm.Model()))
    jcfo = av.problem("jcfo", (X, y.astype(int)))
    assert "the model is 'jcfo'" in xolon.supports(Target(jcfo))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"c1": 0.0}, "c1 must be a finite number above 0"),
        ({"c2": np.inf}, "c2 must be a finite number above 0"),
        ({"select": "accuracy"}, "select must be one of 'cv', 'problem'"),
        ({"grid": (1.0, -1.0)}, "each value of grid must be"),
        ({"folds": 1}, "folds must be an integer of at least 2"),
        ({"starts": 0}, "starts must be"),
    ],
)
def test_options_out_of_range(given, message):
    with pytest.raises(InputError, match=message):
        Options(**given)
    assert dataclasses.is_dataclass(Options())
