"""Where JCFO's climb ends: optimality conditions, other optimisers, the origin, weights at 0."""

import numpy as np
import pytest
from scipy import optimize, stats

from ardvark.inference.papers.jcfo import em_steps as jcfo_em_steps
from ardvark.inference.papers.jcfo.em_steps import Basis, State
from ardvark.models.parts.kernels import make_kernel
from ardvark.models.parts.probit import probit_logp
from tests.inference.papers.jcfo.problems import (
    RATES,
    arrays,
    climb,
    every_kernel,
    fixed,
    gammas,
    made,
    penalised_optimum,
    point_of,
    run_fit,
)
from tests.support import rng

# --- optimality -----------------------------------------------------------------------------------


def slopes_by_differences(problem, tree):
    """d log-likelihood / d (bias, sample_weight, feature_weight), without the module's formulas."""
    point = {k: point_of(tree)[k] for k in ("bias", "sample_weight", "feature_weight")}
    out = {}
    for name, at in point.items():
        slope = np.empty(np.size(at))
        for j in range(np.size(at)):
            ends = []
            for sign in (1, -1):
                moved = np.atleast_1d(at).astype(float).copy()
                moved[j] += sign * 1e-6
                ends.append(problem.log_likelihood(point | {name: moved.reshape(np.shape(at))}))
            slope[j] = (ends[0].sum() - ends[1].sum()) / 2e-6
        out[name] = slope
    return out


@every_kernel
def test_optimality_conditions_at_the_end(kernel, degree):
    """Without violations only because of `revive`; the paper's algorithm may leave some.

    An iteration gains about p r^2 / 2 from a weight of penalty p >= 0.01 (less is pruned at the
    end) and residual r; it ends at a gain of 1e-9, where r is at most 5e-4.
    """
    problem = made(24, 5, number=1, kernel=kernel, degree=degree, **gammas(kernel, degree))
    tree = run_fit(problem, revive=True, starts=1, tolerance=1e-9)
    # the origin is a maximum too, where a climb from the paper's seed may end
    assert tree.attrs["status"] == "finished" or "ended at the origin" in tree.attrs["reason"]
    assert tree.attrs["kkt_violations"] == 0
    assert tree.attrs["kkt_nonzero"] < 2e-3
    point, slopes = point_of(tree), slopes_by_differences(problem, tree)
    names = {"bias": "kkt_bias", "sample_weight": "kkt_sample", "feature_weight": "kkt_feature"}
    for (name, residual), rate in zip(
        names.items(), np.array(RATES[kernel, degree])[[0, 0, 1]], strict=True
    ):
        weight, g = np.atleast_1d(point[name]), slopes[name]
        np.testing.assert_allclose(g[weight != 0], rate * np.sign(weight[weight != 0]), rtol=3e-3)
        size = g if name == "feature_weight" else np.abs(g)
        assert (size[weight == 0] < rate * (1 + 2e-3)).all()
        assert tree["fit"][residual].values.max() < 2e-3
    assert tree.attrs["features"] == (point["feature_weight"] > 0).sum()
    assert tree.attrs["samples"] == (point["sample_weight"] != 0).sum()


@pytest.mark.parametrize(("N", "D", "rate"), [(40, 6, 2.0), (20, 60, 1.5)])
def test_sparse_probit_is_the_convex_optimum(N, D, rate):
    problem = made(N, D, model="sparse_probit", gamma1=rate**2, parametrization="marginal")
    tree = run_fit(problem, tolerance=1e-10)
    assert tree.attrs["status"] == "finished"
    H = np.c_[np.ones(N), problem.X]
    beta, best = penalised_optimum(H, problem.y, rate)
    point = point_of(tree)
    constant = (D + 1) * np.log(rate / 2)
    assert tree.attrs["log_posterior"] - constant == pytest.approx(best, abs=1e-5)
    np.testing.assert_allclose(np.r_[point["bias"], point["beta"]], beta, atol=3e-3)
    found = np.flatnonzero(point["beta"])
    assert set(np.flatnonzero(np.abs(beta[1:]) > 1e-2)) <= set(found)
    assert set(found) <= set(np.flatnonzero(beta[1:]))
    assert tree.attrs["kkt_violations"] == 0
    # the marginal form has no Jacobian
    assert tree["sample_stats"]["lp"].item() == pytest.approx(tree.attrs["log_posterior"])


@every_kernel
def test_theta_fixed_is_the_convex_optimum_in_beta(kernel, degree):
    X, y = arrays(25, 4)
    H, _ = Basis(X, X, make_kernel(kernel, degree)).evaluate(np.full(4, 0.05))
    run = climb(Basis(H[:, 1:]), y, (0.8, 1.0), tolerance=1e-10, max_iterations=20_000)
    _, best = penalised_optimum(H, y, 0.8)
    found = run.objective[-1] - 26 * np.log(0.4)
    # a weight on its way to 0 gains the square of its penalty in an iteration: at a gain of 1e-10
    # at most 1e-5 is left of each of 26
    assert best - 3e-4 < found < best + 1e-7


@every_kernel
def test_another_optimiser_finds_nothing_higher_nearby(kernel, degree):
    """L-BFGS-B on the marginal log posterior itself, beta split in two, from the end of the EM."""
    X, y = arrays(24, 5, number=1)
    basis, rates = Basis(X, X, make_kernel(kernel, degree)), RATES[kernel, degree]
    run = climb(basis, y, rates, 1, revive=True, tolerance=1e-9)
    M = 25

    def minus(x):
        beta, theta = x[:M] - x[M : 2 * M], x[2 * M :]
        H, W = basis.evaluate(theta)
        r = jcfo_em_steps.score(y, H @ beta)
        value = probit_logp(y, H @ beta).sum() - rates[0] * x[: 2 * M].sum()
        slope = H.T @ r
        tail = basis.slope(W, r, beta[1:]) - rates[1]
        return -value + rates[1] * theta.sum(), -np.r_[slope - rates[0], -slope - rates[0], tail]

    beta, theta = run.state.beta, run.state.theta
    start = np.r_[np.maximum(beta, 0), np.maximum(-beta, 0), theta]
    found = optimize.minimize(
        minus, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start),
        options={"maxiter": 2000, "ftol": 1e-15},
    )  # fmt: skip
    assert -found.fun < -minus(start)[0] + 1e-4


# --- the origin, starts, and weights at 0 ---------------------------------------------------------


def origin(basis, y, rates, N, D):
    beta = np.zeros(N + 1)
    beta[0] = penalised_optimum(np.ones((len(y), 1)), y, rates[0])[0][0]
    return State(basis, y, beta, np.zeros(D), rates)


@every_kernel
def test_the_origin_is_a_local_maximum_whatever_the_data(kernel, degree):
    X, y = arrays(20, 4, noise=0.0)
    y[np.argsort(X[:, 0] - X[:, 1])] = np.repeat([0.0, 1.0], 10)  # balanced: beta_0 is 0 there
    basis, rates = (
        Basis(X, X, make_kernel(kernel, degree)),
        (0.3, 0.3),
    )  # a weak prior: the data pull hard
    top = origin(basis, y, rates, 20, 4).objective
    random = rng(0)
    for size in (1e-3, 1e-4):
        for _ in range(200):
            beta, theta = size * random.standard_normal(21), size * random.exponential(size=4)
            assert State(basis, y, beta, theta, rates).objective < top
    # and not the highest
    assert climb(basis, y, rates, max_iterations=50).objective[-1] > top


def test_more_starts_escape_the_origin():
    """The paper's seed, theta = 1, is far out in scale on fat data, and falls from there to 0.

    On fixed data and starts, of which one escapes; on others all do, or none.
    """
    given = {"gamma1": 1.0, "gamma2": 1600.0, "generator": np.random.default_rng}
    problem = made(30, 400, kernel="linear", **given)
    alone = run_fit(problem, starts=1)
    assert alone.attrs["status"] == "not_converged"
    assert "ended at the origin" in alone.attrs["reason"]
    assert alone.attrs["features"] == 0
    assert not alone["fit"]["selected_feature"].any()
    several = run_fit(problem, random_seed=5)
    assert several.attrs["status"] == "finished", several.attrs["reason"]
    assert several.attrs["features"] > 0
    finals = several["fit"]["objective_start"].values
    assert len(finals) == 6
    assert finals[0] == pytest.approx(alone.attrs["log_posterior"])
    assert several.attrs["log_posterior"] == pytest.approx(finals.max())
    assert finals.max() > finals[0] + 1  # by 2.35; rounding is 1e-10


def test_weights_at_zero_that_would_rise_are_reported_and_revived():
    """On fixed data, where the paper's algorithm leaves some; not on all does it."""
    X, y = arrays(60, 20, generator=np.random.default_rng)
    given = {"kernel": "linear", "gamma1": 1.0, "gamma2": 9.0}
    problem = fixed("jcfo", (X, y.astype(int)), **given)
    paper = run_fit(problem, starts=1)
    assert paper.attrs["kkt_violations"] > 0
    assert paper.attrs["kkt_zero"] > 0.1
    assert "revive=True" in paper.attrs["reason"]
    zero = paper["fit"]["feature_weight"].values == 0.0
    assert paper["fit"]["kkt_feature"].values[zero].max() == paper.attrs["kkt_zero"]
    better = run_fit(problem, starts=1, revive=True)
    assert better.attrs["kkt_violations"] == 0
    assert better.attrs["log_posterior"] > paper.attrs["log_posterior"] + 0.1
    assert np.diff(better["fit"]["objective"].values).min() > -1e-9


# --- printed rates --------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["jcfo", "sparse_probit"])
def test_printed_rates_at_gamma_are_ours_at_its_square(model):
    given = {"gamma1": 2.0} | ({"gamma2": 5.0} if model == "jcfo" else {})
    squared = {k: v**2 for k, v in given.items()}
    printed = run_fit(made(25, 6, model=model, **given), printed_rates=True, starts=1)
    ours = run_fit(made(25, 6, model=model, **squared), starts=1)
    for name, values in ours["posterior"].data_vars.items():
        np.testing.assert_array_equal(values, printed["posterior"][name])
    np.testing.assert_array_equal(ours["fit"]["objective"], printed["fit"]["objective"])
    assert ours.attrs["kkt_nonzero"] < 1e-2
    # negative control: it is no maximum of the posterior that (12) states, whose rate is the root.
    # The slope at a weight is gamma, off by gamma^1/2 - 1 in units of the rate.
    moved = [given["gamma1"]]
    if model == "jcfo" and printed.attrs["features"]:
        moved.append(given["gamma2"])
    off = max(moved) ** 0.5 - 1.0
    assert printed.attrs["kkt_nonzero"] == pytest.approx(off, abs=0.03)
    if model == "sparse_probit":  # convex: one maximum
        right = run_fit(made(25, 6, model=model, **given), starts=1)
        assert right.attrs["kkt_nonzero"] < 1e-2
        assert right.attrs["log_posterior"] > printed.attrs["log_posterior"]


# --- gamma1 and the intercept ---------------------------------------------------------------------


@pytest.mark.parametrize("printed", [False, True])
def test_without_slopes_gamma1_decides_on_the_intercept(printed):
    """beta_0 = 0 while gamma1 is above (2/pi) (N_1 - N_0)^2: 206 for colon's 22 and 40.

    Below, Phi(beta_0) misses the base rate: the slope of the log-likelihood is the prior's rate.
    """
    y = np.r_[np.zeros(40), np.ones(22)]
    slope = jcfo_em_steps.score(y, np.zeros(62)).sum()
    assert slope**2 == pytest.approx(2.0 / np.pi * 18.0**2, rel=1e-12)
    assert slope**2 == pytest.approx(206.3, abs=0.05)
    X = np.random.default_rng(0).permuted(np.tile([[-1e-9], [1e-9]], (31, 1)), axis=0)
    power = 1.0 if printed else 0.5
    for rate in (0.5 * abs(slope), 2.0 * abs(slope)):
        gamma1 = rate ** (1.0 / power)
        problem = fixed("sparse_probit", (X, y.astype(int)), standardize=False, gamma1=gamma1)
        tree = run_fit(problem, printed_rates=printed)
        bias = tree["posterior"]["bias"].item()
        if rate > abs(slope):
            assert bias == 0.0
        else:
            assert bias < 0.0
            left = jcfo_em_steps.score(y, np.full(62, bias)).sum()
            assert left == pytest.approx(-rate, rel=1e-3)
            assert stats.norm.cdf(bias) > 22 / 62  # nearer to 1/2 than the base rate
