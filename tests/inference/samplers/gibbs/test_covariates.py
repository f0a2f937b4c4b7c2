"""The Gibbs samplers with two covariates: their block, whole sweeps, and the posterior by oracles.

Negative controls: decision values that forget the covariates, variances that are not theirs, and
coefficients that are drawn as if the covariates were not there.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.samplers.gibbs import (
    ard_kernel,
    ard_linear,
    masks,
    sparse_probit,
)
from ardvark.inference.samplers.gibbs import ard_kernel_steps as steps
from ardvark.inference.samplers.gibbs.covariates import Covariates
from ardvark.inference.samplers.gibbs.method import make_sampler
from tests.inference.batches import batch_mean, exactly, largest_t, weighted
from tests.inference.samplers.gibbs.ard_problems import bounded, prior_draws
from tests.inference.samplers.gibbs.mask_oracle import exact, run
from tests.inference.samplers.gibbs.runs import FULL, chains, joint_p
from tests.inference.samplers.gibbs.test_ard_kernel import quick as of_kernels
from tests.inference.samplers.gibbs.test_ard_linear import quick as of_weights
from tests.inference.samplers.gibbs.test_states import FORMS, KERNELS
from tests.support import ALARM, rng, seed

ALWAYS = ("x4", "x2")  # of the columns; the other ones are the features
WIDE = {"covariate_sd": 1.5}


def data(N=7, D=3, number=0):
    """D features and two covariates, of which each is correlated with a feature."""
    X = rng(number).standard_normal((N, D + 2))
    X[:, [3, 1]] += 0.7 * X[:, [0, 2]]
    return Dataset.from_arrays(X, np.arange(N) % 2)


def posed(model, N=7, D=3, B=3, **given):
    """A small problem whose likelihood says more than its prior."""
    basis = {"basis": np.arange(B)} if av.ZOO[model].has_basis and B else {}
    return av.problem(model, data(N, D), always=ALWAYS, **WIDE | basis | given)


# --- states and the block -------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMS | KERNELS)
def test_points_are_those_of_the_problem(name):
    """Sweeps of every sampler in every form: eta is that of the weights, covariates included."""
    file, settings = (FORMS | KERNELS)[name]
    problem, random = posed(name.split("-")[0], **settings), rng(1)
    sampler = make_sampler(problem)
    assert isinstance(sampler, file.Sampler)
    state, seen = sampler.start(random, 0), []
    for _ in range(4):
        sampler.sweep(state, random)
        point = sampler.point(state)
        np.testing.assert_allclose(point["eta"], problem.decision(point), rtol=1e-9, atol=1e-10)
        assert np.isfinite(problem.log_density(point))
        seen.append(point)
    assert set(point) == {v.name for v in problem.model.unobserved_RVs}
    assert (seen[0]["covariate_weight"] != seen[1]["covariate_weight"]).all()
    again = sampler.point(sampler.state(point))
    for variable in ("eta", "covariate_weight"):
        np.testing.assert_allclose(again[variable], point[variable], rtol=1e-9, atol=1e-10)


@pytest.mark.statistical
def test_the_block_is_drawn_from_its_full_conditional():
    """Of fs_skr, whose conditional of g is normal in `log_joint` itself; 4000 draws, whitened."""
    problem, random = posed("fs_skr"), rng(2)
    point, sampler = problem.simulate(random), masks.Sampler(problem)
    W = np.full(7, float(point["tau"]))
    g, block = point["covariate_weight"], sampler.covariates
    score = point["tau"] * (2.0 * problem.y - 1.0 - point["eta"])
    drawn = np.array([block.draw(random, W, score, g)[0] for _ in range(4000)])
    change = block.draw(random, W, score, g)
    np.testing.assert_allclose(change[1], problem.C @ (change[0] - g))

    def log_p(at):
        return problem.log_joint(point | {"covariate_weight": at})

    # a quadratic is known from its differences
    h, unit, H = 0.5, np.eye(2), np.empty((2, 2))
    slope = np.array([(log_p(g + h * e) - log_p(g - h * e)) / (2 * h) for e in unit])
    for i, j in itertools.product(range(2), repeat=2):
        a, b = h * unit[i], h * unit[j]
        corners = log_p(g + a + b) - log_p(g + a - b) - log_p(g - a + b) + log_p(g - a - b)
        H[i, j] = corners / (4 * h * h)
    mean = g - np.linalg.solve(H, slope)
    white = (drawn - mean) @ np.linalg.cholesky(-H)
    assert (stats.kstest(white, stats.norm.cdf).pvalue > ALARM / 2).all()
    assert abs(np.corrcoef(white.T)[0, 1]) < 5.0 / 4000**0.5
    shifted = stats.kstest(white + 0.2, stats.norm.cdf).pvalue
    assert (shifted < ALARM).all()  # the control


def test_bias_and_covariates_are_one_block():
    """Mean and covariance of (b, g) | the rest, from the normal equations, by a stub of noise."""

    class Noise:
        def __init__(self, z):
            self.z = np.asarray(z, dtype=float)

        def standard_normal(self, size):
            return self.z

    problem, random = posed("pfcvm", bias_sd=0.7), rng(3)
    block = Covariates(problem, 0.7)
    W, r, rest = random.gamma(2.0, 0.1, 7), random.normal(size=7), random.normal(size=7)
    beta = random.normal(size=3)
    A = np.column_stack([np.ones(7), problem.C])
    Q = A.T @ np.diag(W) @ A + np.diag([0.7**-2, 1.5**-2, 1.5**-2])
    mean = np.linalg.solve(Q, A.T @ (r - W * rest))
    score = r - W * (rest + A @ beta)
    np.testing.assert_allclose(block.draw(Noise(np.zeros(3)), W, score, beta)[0], mean)
    root = np.array([block.draw(Noise(e), W, score, beta)[0] - mean for e in np.eye(3)])
    np.testing.assert_allclose(root.T @ root, np.linalg.inv(Q))


@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
def test_proposals_of_feature_weights_see_the_covariates(kernel):
    """eta of a proposal is computed anew from K, and has what the covariates add to it.

    The joint test below hardly sees it where it is forgotten: such proposals are mostly rejected.
    """
    random, degree = rng(4), {"degree": 2} if kernel == "polynomial" else {}
    problem = posed("jcfo", kernel=kernel, gamma1=0.5, **degree)
    sampler = make_sampler(problem)
    state = sampler.start(random, 0)
    before = state.theta.copy()
    sampler.features(state, random)
    assert (state.theta != before).any()
    np.testing.assert_allclose(state.eta, problem.decision(sampler.point(state) | {
        "feature_weight": state.theta}))  # fmt: skip
    problem = posed("pfcvm", kernel=kernel, **degree)
    sampler = ard_kernel.Sampler(problem)
    state = sampler.start(random, 0)
    a, added = sampler.weights.basis_sign * state.x, problem.C @ state.covariate
    present = steps.Present(state.theta, sampler.inner(state.theta), state.eta - state.bias)
    before = state.theta.copy()
    held = steps.Held(a, state.bias, added)
    given = steps.Given(sampler.columns, present, held, sampler.prior)
    steps.scalings(random, 50, 0.3, given)
    assert (state.theta != before).any()
    K = sampler.gram(sampler.inner(state.theta))
    np.testing.assert_allclose(present.Ka, a @ K + added)


# --- whole sweeps: the joint test -----------------------------------------------------------------

DENSE = {"active_features": "all", "active_samples": "all"}
FEW = {"active_samples": 1.5}
JOINT = {
    "pfcvm": ("pfcvm", DENSE),
    "pfcvm-rbf": ("pfcvm", {"kernel": "rbf", "parametrization": "hierarchical"} | FEW),
    "pfcvm-polynomial": ("pfcvm", {"kernel": "polynomial", "degree": 2} | DENSE),
    "rfvm-explicit": ("rfvm", {"latent_noise": "explicit"} | FEW),
    "rfvm-none": ("rfvm", {"latent_noise": "none", "parametrization": "marginal"} | DENSE),
    "jcfo-linear": ("jcfo", {"kernel": "linear", "gamma1": 0.7, "gamma2": 1.4}),
    "jcfo-slice": ("jcfo", {"degree": 1, "gamma1": 0.5, "N": 7, "D": 3, "B": 2}),
    "jcfo-rbf": ("jcfo", {"kernel": "rbf", "gamma1": 0.1, "gamma2": 2.0}),
    "sparse_probit": ("sparse_probit", {"gamma1": 0.7}),
    "fsklr": ("fsklr", {"xi": 0.3, "mask_prior": "shared", "mask_probability": "explicit"}),
    "sklr": ("sklr", {"xi": 0.3}),
    "fs_skr": ("fs_skr", {"xi": 0.3, "kernel": "linear"}),
    "horseshoe": ("horseshoe", {"global_scale": 0.4, "slab_scale": 1.5, "slab_df": 5.0}),
}
JOINT["jcfo-linear"][1].update(N=4, D=6)  # the step given z


@pytest.mark.statistical
@pytest.mark.parametrize("name", JOINT)
def test_sweeps_leave_the_joint_law(name):
    """Every variable and the labels together: 150 replicates see about 0.6 sd of any."""
    model, given = JOINT[name]
    assert joint_p(posed(model, **given), make_sampler, replicates=150) > ALARM


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", JOINT)
def test_sweeps_leave_the_joint_law_in_full(name):
    model, given = JOINT[name]
    assert joint_p(posed(model, **given), make_sampler, **FULL) > ALARM


class Forgetful(ard_linear.Sampler):
    """eta without the covariates, whenever it is computed anew."""

    def __init__(self, problem):
        super().__init__(problem)
        self.covariates.added = lambda eta, g: eta


class NoPrior(ard_kernel.Sampler):
    """Covariates drawn without their prior."""

    def __init__(self, problem):
        super().__init__(problem)
        self.weights.covariates.prior[1:] *= 0.05


class EveryVariance(sparse_probit.Sampler):
    """The variances of covariates drawn as those of weights with a Laplace prior."""

    def __init__(self, problem):
        super().__init__(problem)
        self.variances = lambda state, random: sparse_probit.draw_variances(
            random, state.beta, self.gamma, state.tau
        )


class NoOffset(masks.Sampler):
    """Masks and coefficients drawn as if the covariates were not there."""

    def augment(self, state, random):
        super().augment(state, random)
        w, r, xi = state.working
        state.working = masks.Working(w, r + w * state.added, xi)


BROKEN = {
    Forgetful: ("rfvm-none", 50, {}),
    NoPrior: ("pfcvm-rbf", 80, {}),
    EveryVariance: ("sparse_probit", 50, {"gamma1": 10.0}),
    NoOffset: ("fs_skr", 50, {}),
}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_broken_sweeps_are_caught(kind):
    """In each of four seeds log10 p was below -28 (NoPrior: -17), where -5.5 is enough."""
    name, replicates, more = BROKEN[kind]
    model, given = JOINT[name]
    problem = posed(model, **given | {"covariate_sd": 3.0} | more)
    assert joint_p(problem, kind, replicates=replicates, sweeps=12) < ALARM


# --- the posterior beside oracles -----------------------------------------------------------------

ENUMERATED = [
    ("fsklr", {"mask_prior": "printed"}),
    ("sklr", {"mask_prior": "independent"}),
    ("fs_skr", {"mask_prior": "independent", "noise_shape": 6.0, "noise_rate": 1.5}),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("model", "hypers"), ENUMERATED)
def test_inclusion_probabilities_equal_enumeration(model, hypers):
    """All masks at D = 3 and two centres; covariates and coefficients are integrated out.

    The rows were chosen so that the covariates matter to fs_skr, so their seed stays. The control
    is the posterior of fs_skr without them: some masks' probabilities differ by 0.5.
    """
    X = np.random.default_rng(1).standard_normal((12, 5))
    X[:, [3, 1]] += 1.5 * X[:, [0, 2]]
    eta = X[:, 3] + X[:, 1]
    y = (eta > np.median(eta)).astype(int)
    given = {"basis": [0, 1], "xi": 0.1} | hypers
    problem = av.problem(model, Dataset.from_arrays(X, y), always=ALWAYS, **WIDE | given)
    free = slice(None) if problem.hypers.FEATURE_MASK else slice(3, None)
    states, p = exact(problem)
    found = batch_mean(run(masks.Sampler(problem), 6000, 5)[None, :, free], 60)
    t, limit = largest_t(found, exactly((p @ states)[free]))
    assert t < limit
    if model == "fs_skr":
        states, p = exact(av.problem(model, Dataset.from_arrays(X[:, [0, 2, 4]], y), **given))
        t, limit = largest_t(found, exactly(p @ states))
        assert t > 3.0 * limit


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("model", "given"),
    [
        ("pfcvm", DENSE),
        ("rfvm", {"latent_noise": "none"} | DENSE),
        ("pfcvm", {"kernel": "rbf"} | DENSE),
    ],
)
def test_the_posterior_is_exact(model, given):
    """Beside weighted draws of the prior; 1000 short sweeps of four chains."""
    quick = of_kernels if "kernel" in given else of_weights
    problem = posed(model, N=8, D=2, B=2, **given)
    points = prior_draws(problem, rng(1), 60_000)
    truth = weighted(problem, points, bounded(points, problem))
    found = chains(quick()(problem), 1000)
    t, limit = largest_t(batch_mean(bounded(found, problem)), truth)
    assert t < limit


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["pfcvm", "rfvm-explicit", "jcfo-slice", "sparse_probit"])
def test_gibbs_and_nuts_agree(name):
    model, given = JOINT[name]
    problem = posed(model, **given)
    how = {"draws": 1500, "random_seed": seed(5), "progressbar": False}
    fits = [av.fit(problem, method, **how)["posterior"] for method in ("nuts", "gibbs")]
    one, other = (
        batch_mean(np.arctan(np.concatenate([f["covariate_weight"], f["eta"]], axis=-1)))
        for f in fits
    )
    t, limit = largest_t(one, other)
    assert t < limit


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["rfvm-none", "fsklr"])
def test_simulation_based_calibration(name):
    """Of both families of samplers, chains started elsewhere: `covariate_weight` is ranked too."""
    model, given = JOINT[name]
    found = av.calibrate(
        posed(model, N=12, **given), "gibbs", replicates=200, draws=400, progressbar=False,
        random_seed=seed(6), processes=1,
    )  # fmt: skip
    assert found.p_value > ALARM
    assert any("covariate_weight" in str(q) for q in found.table.index)
