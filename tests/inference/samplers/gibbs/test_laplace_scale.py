"""The learned scale of JCFO and of sparse probit: its steps, whole sweeps, and the posterior.

Negative controls: a missing Jacobian, variances that do not follow the scale, variances that were
drawn before the scale moved.
"""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import ardvark as av
from ardvark.inference.samplers.gibbs import jcfo, laplace_scale, sparse_probit
from ardvark.models.jcfo import SCALE, SCALE_SLAB
from tests.inference.batches import batch_mean, largest_t, weighted
from tests.inference.checks.toy import sbc
from tests.inference.samplers.gibbs.runs import FULL, agrees_with_nuts, chains, joint_p, with_counts
from tests.inference.spiral import spiral
from tests.support import ALARM, rng, seed

CASES = {
    "sparse_probit": ("sparse_probit", {"gamma1": 0.7}),
    "sparse_probit-marginal": ("sparse_probit", {"gamma1": 2.0, "parametrization": "marginal"}),
    "polynomial": ("jcfo", {"gamma1": 0.5, "gamma2": 2.0, "parametrization": "latent"}),
    "linear": ("jcfo", {"kernel": "linear", "gamma1": 0.7, "gamma2": 1.4}),
    "square": ("jcfo", {"degree": 2, "gamma1": 0.5, "gamma2": 2.0}),
    "rbf": ("jcfo", {"kernel": "rbf", "gamma1": 0.1, "gamma2": 2.0}),
}
FILE = {"sparse_probit": sparse_probit, "jcfo": jcfo}
every_case = pytest.mark.parametrize("case", CASES)


def made(case, N=7, D=3, **given):
    model, settings = CASES[case]
    data = rng().standard_normal((N, D)), np.arange(N) % 2
    return av.problem(model, data, scale="learned", **settings | given)


def quick(case, kind=None):
    file = FILE[CASES[case][0]]
    return with_counts(kind or file.Sampler, elliptical_steps=1, latent_scans=1)


# --- one step: the density of u is the model's at the moved point, times the Jacobian -------------


def log_marginal(problem, point):
    """The log density with variances and z integrated out, at the labels of the point."""
    h = problem.hypers.marginal()
    return float(problem.spec.log_joint(point, problem.inputs, point["y"], h))


def moved(case, problem, point, step, u):
    """The point, as the formula of a step moves it, and ln of its Jacobian in (ln g, weights)."""
    out, grown = point | {SCALE: point[SCALE] * math.exp(u)}, math.exp(u)
    if step == "alone":
        return out, u
    name = "beta" if problem.spec.name == "sparse_probit" else "feature_weight"
    out[name], power = point[name] * grown, 1 + point[name].size
    if step == "against":
        a = point["sample_weight"]
        out["sample_weight"], power = a / grown, power - a.size
        if case == "polynomial":
            out["bias"] = point["bias"] + a.sum() - a.sum() / grown
    return out, power * u


@every_case
def test_the_density_of_each_step_is_the_models(case, monkeypatch):
    """At the sampler's own arguments, which are looked at in place of a draw."""
    problem = made(case, N=6, D=4)
    sampler, point = quick(case)(problem), problem.simulate(rng(3))
    sampler.set_labels(point["y"])
    state, found = sampler.state(point), []

    def alone(_, g, count, *terms):
        return stay(lambda u: laplace_scale.log_alone(u, g, -float(count), *terms))

    def with_weights(_, *given):
        return stay(lambda u: laplace_scale.log_with_weights(u, *given))

    def stay(log_density):
        found.append([log_density(u) - log_density(0.0) for u in (-0.8, 0.5)])
        return 1.0

    monkeypatch.setattr(laplace_scale, "alone", alone)
    monkeypatch.setattr(laplace_scale, "with_weights", with_weights)
    sampler.learn(state, rng(5))
    steps = ["alone", "with"]
    if case in ("polynomial", "linear"):
        steps.insert(1, "against")
    for step, values in zip(steps, found, strict=True):
        for u, value in zip((-0.8, 0.5), values, strict=True):
            there, jacobian = moved(case, problem, point, step, u)
            if step == "against":  # eta stays, as the step says
                np.testing.assert_allclose(problem.decision(there), point["eta"], rtol=1e-9)
            exact = log_marginal(problem, there) - log_marginal(problem, point) + jacobian
            assert value == pytest.approx(exact, abs=1e-8), step


def test_a_fixed_scale_makes_no_step():
    """One is divided by, and no random number is drawn."""
    for case in ("sparse_probit", "polynomial"):
        problem = made(case).with_hypers(scale="fixed")
        sampler = quick(case)(problem)
        state = sampler.start(rng(0), 0)
        sampler.sweep(state, rng(1))
        assert not sampler.learned
        assert state.scale == 1.0
        assert SCALE not in sampler.point(state)


# --- whole sweeps: the joint test -----------------------------------------------------------------


@pytest.mark.statistical
@every_case
def test_sweeps_leave_the_joint_law(case):
    assert joint_p(made(case), quick(case)) > ALARM


@pytest.mark.slow
@pytest.mark.statistical
@every_case
def test_sweeps_leave_the_joint_law_in_full(case):
    for size in ({"D": 6, "N": 4}, {"N": 7, "D": 2}):
        assert joint_p(made(case, **size), quick(case), **FULL) > ALARM


class NoCount(sparse_probit.Sampler):
    """The full conditional of g without the normalising constant of the weights."""

    def learn(self, state, random):
        down = self.gamma**0.5 / state.scale * float(np.abs(state.beta[self.features]).sum())
        state.scale *= laplace_scale.alone(random, state.scale, 0, down, 0.0, 0.0)


class FixedVariances(jcfo.Sampler):
    """The variances of theta at the scale 1."""

    def variances(self, state, random):
        g, state.scale = state.scale, 1.0
        super().variances(state, random)
        state.scale = g


BROKEN = {"count": (NoCount, "sparse_probit"), "variances": (FixedVariances, "polynomial")}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sweeps_are_caught(name):
    kind, case = BROKEN[name]
    assert joint_p(made(case), quick(case, kind), replicates=100, sweeps=15) < ALARM


class Stale(sparse_probit.Sampler):
    """Variances are drawn, and then the scale moves."""

    def learn(self, state, random):
        super().variances(state, random)
        super().learn(state, random)

    def variances(self, state, random):
        pass


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [sparse_probit.Sampler, Stale])
def test_variances_are_drawn_with_the_scale_that_is_returned(kind):
    """gamma tau / (2 g^2) is exponential, with labels that are drawn too."""
    problem, random = made("sparse_probit"), rng(6)
    sampler, found = quick("sparse_probit", kind)(problem), []
    for _ in range(400):
        point = problem.simulate(random)
        sampler.set_labels(point["y"])
        state = sampler.state(point)
        sampler.sweep(state, random)
        found.append(0.5 * sampler.gamma * state.tau[sampler.features] / state.scale**2)
    p = stats.kstest(np.concatenate(found), "expon").pvalue
    assert (p > ALARM) == (kind is sparse_probit.Sampler)


# --- why it is the default ------------------------------------------------------------------------


def of_genes(model, **given):
    """P(y = 1) of 100 new rows, of which 60 have y = 0: 2000 features, of which 20 are shifted."""
    y = np.tile([0, 0, 0, 1, 1], 32)
    X = rng(8).standard_normal((len(y), 2000))
    X[:, :20] += 1.5 * (2 * y[:, None] - 1)
    problem, quiet = av.problem(model, X[:60], y[:60], **given), {"progressbar": False}
    length = {"draws": 100, "tune": 150, "chains": 2, "selection": False, "keep": "shared"}
    fit = av.fit(problem, "gibbs", random_seed=seed(8), **length, **quiet)
    return av.predict(problem, fit, X[60:]).mean(("chain", "draw")).values, y[60:]


@pytest.mark.statistical
def test_by_default_jcfo_tells_classes_apart_among_thousands_of_features():
    """Some 98 of 100 rows are right, and at the fixed scale the largest P(y = 1) is 0.41."""
    p, y = of_genes("jcfo")
    assert ((p > 0.5) == y).mean() > 0.85
    p, y = of_genes("jcfo", scale="fixed")
    assert (p < 0.5).all()


@pytest.mark.statistical
def test_by_default_sparse_probit_is_surer_of_what_is_plain():
    """The log scores are near -0.48 and -0.54; both classify nearly all rows right."""
    default, fixed = (of_genes("sparse_probit", **x) for x in ({}, {"scale": "fixed"}))
    scores = [np.log(np.where(y == 1, p, 1.0 - p)).mean() for p, y in (default, fixed)]
    assert scores[0] > scores[1] + 0.02


# --- the posterior beside weighted draws of the prior, beside NUTS, and calibration ---------------


def bounded(point):
    """Bounded functions (..., component)."""
    parts = [point[name] for name in ("eta", "beta", "feature_weight") if name in point]
    parts += [np.asarray(point[name])[..., None] for name in ("bias", SCALE)]
    return np.arctan(np.concatenate(parts, axis=-1))


def prior_draws(problem, n):
    """Return n draws with the variances integrated out, g by inversion of its own density."""
    random, h, D = rng(1), problem.hypers, problem.X.shape[1]
    grid = np.exp(np.linspace(-14.0, 6.0, 40_001))
    density = np.exp(-0.5 * (grid / SCALE_SLAB) ** 2) / (1.0 + grid**2)
    cdf = integrate.cumulative_trapezoid(density, grid, initial=0.0)
    g = np.interp(random.random(n), cdf / cdf[-1], grid)
    point = {SCALE: g}
    if problem.spec.name == "sparse_probit":
        point["bias"] = random.laplace(size=n)
        point["beta"] = random.laplace(size=(n, D)) * g[:, None] * h.gamma1**-0.5
        point["feature_weight"] = np.abs(point["beta"])
    else:
        point["bias"] = random.laplace(0.0, h.gamma1**-0.5, n)
        point["sample_weight"] = random.laplace(0.0, h.gamma1**-0.5, (n, len(problem.Z)))
        point["feature_weight"] = random.exponential(size=(n, D)) * g[:, None] * h.gamma2**-0.5
    return point | {"eta": problem.decision(point)}


@pytest.mark.statistical
@pytest.mark.parametrize("case", ["sparse_probit", "polynomial", "rbf"])
def test_the_posterior_is_exact(case):
    """By the priors that the docstrings state, and the likelihood."""
    model, settings = CASES[case]
    problem = av.problem(model, spiral(6, 2), scale="learned", **settings)
    point = prior_draws(problem, 200_000 if case == "rbf" else 60_000)
    truth = weighted(problem, point, bounded(point))
    found = chains(quick(case)(problem), 1000)
    t, limit = largest_t(batch_mean(bounded(found)), truth)
    assert t < limit


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("case", ["sparse_probit-marginal", "polynomial"])
def test_gibbs_and_nuts_agree(case):
    """Not under rbf, where NUTS diverges along g and rho; weighted draws are the oracle there."""
    model, settings = CASES[case]
    problem = av.problem(model, spiral(12, 3), scale="learned", **settings)
    assert agrees_with_nuts(problem, quick(case)(problem), bounded, draws=4000)


@pytest.mark.slow
@pytest.mark.statistical
@every_case
def test_gibbs_is_calibrated(case):
    settings = {"replicates": 200, "tune": 300, "cores": 1, "random_seed": seed()}
    found = sbc(made(case, N=10), "gibbs", **settings)
    assert found.failed == 0
    assert found.p_value > ALARM, found.table.head()
