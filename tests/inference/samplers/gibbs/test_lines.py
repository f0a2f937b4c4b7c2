"""The moves of a sampler along a line have the density of the model on it, exactly.

The harness of steps sees a wrong density only where it shifts a quantity by half a standard
deviation. Here the slice step of a move is told where to go, and the sampler moves. What the
density says of both points is what the model says of them, with the Jacobian of the move.
"""

import sys
from types import FunctionType

import numpy as np
import pytest
from scipy import special, stats

from ardvark.inference.samplers.gibbs import (
    ard_linear,
    horseshoe,
    horseshoe_growth,
    jcfo,
    laplace_scale,
    probit,
)
from ardvark.inference.samplers.gibbs.method import make_sampler
from tests.inference.samplers.gibbs.step_bench import make, posed
from tests.support import rng

HORSESHOE = {"global_scale": 0.4, "slab_scale": 1.5, "slab_df": 5.0, "bias_sd": 0.8}
LEARNED = {"gamma1": 0.7, "gamma2": 1.4, "scale": "learned"}
PROBIT = {"gamma1": 0.7, "scale": "learned"}
DENSE = {"active_features": "all", "active_samples": "all"}
SPARSE = {"active_features": 1.0, "active_samples": 1.5}


def polynomial(degree):
    return LEARNED | {"kernel": "polynomial", "degree": degree}


MODELS = {
    "horseshoe": ("horseshoe", "tall", False, HORSESHOE),
    "horseshoe-covariates": ("horseshoe", "fat", True, HORSESHOE),
    "probit": ("sparse_probit", "tall", True, PROBIT),
    "jcfo-linear": ("jcfo", "fat", True, LEARNED | {"kernel": "linear"}),
    "jcfo-1": ("jcfo", "tall", False, polynomial(1)),
    "jcfo-2": ("jcfo", "fat", True, polynomial(2)),
    "jcfo-rbf": ("jcfo", "tall", True, LEARNED | {"kernel": "rbf"}),
    "pfcvm": ("pfcvm", "tall", True, DENSE),
    "rfvm": ("rfvm", "fat", False, {"latent_noise": "none"} | SPARSE),
}
GROWTH = (horseshoe, "draw_growth", "_step", horseshoe_growth.log_growth)
BALANCE = (ard_linear, "scale_move", "_scale_step", None)
ALONE = (laplace_scale, "alone", "_alone", laplace_scale.log_alone)
WITH = (laplace_scale, "with_weights", "_with_weights", laplace_scale.log_with_weights)
APART = (jcfo, "log_scale", "_scale_step", None)
SCALE = (probit, "log_scale", "_scale_step", None)
# by case and step: what makes the draw, and the numbers that the move stretches, less those that it
# shrinks, of N rows, D features, B centres and K covariates
MOVES = {
    ("horseshoe", "growth"): (GROWTH, lambda N, D, B, K: 1 + D + 1 + 2),
    ("horseshoe-covariates", "growth"): (GROWTH, lambda N, D, B, K: 1 + K + D + 1 + 2),
    ("probit", "scale"): (SCALE, lambda N, D, B, K: N + 1 + D + K),
    ("probit", "learn_alone"): (ALONE, lambda N, D, B, K: 1),
    ("probit", "learn_with_weights"): (WITH, lambda N, D, B, K: 1 + D),
    ("jcfo-linear", "apart"): (APART, lambda N, D, B, K: D - B),
    ("jcfo-linear", "scale"): (SCALE, lambda N, D, B, K: N + 1 + B + K),
    ("jcfo-linear", "learn_alone"): (ALONE, lambda N, D, B, K: 1),
    ("jcfo-linear", "learn_apart"): (ALONE, lambda N, D, B, K: 1 + D - B),
    ("jcfo-linear", "learn_with_weights"): (WITH, lambda N, D, B, K: 1 + D),
    ("jcfo-1", "apart"): (APART, lambda N, D, B, K: D - B),
    ("jcfo-1", "learn_apart"): (ALONE, lambda N, D, B, K: 1 + D - B),
    ("jcfo-1", "learn_with_weights"): (WITH, lambda N, D, B, K: 1 + D),
    ("jcfo-2", "learn_with_weights"): (WITH, lambda N, D, B, K: 1 + D),
    ("jcfo-rbf", "scale"): (SCALE, lambda N, D, B, K: N + 1 + B + K),
    ("jcfo-rbf", "learn_with_weights"): (WITH, lambda N, D, B, K: 1 + D),
    ("pfcvm", "balance"): (BALANCE, lambda N, D, B, K: D - B),
    ("rfvm", "balance"): (BALANCE, lambda N, D, B, K: D - B),
}


def told(monkeypatch, move, where):
    """Have a draw go to where[0], in its own Python; return the densities that it asks for."""
    user, name, step, density = move
    draw, found = getattr(user, name), []
    home = sys.modules[draw.__module__]
    density = density or home.log_scale_density

    def slice_step(_, width, parameters):
        found.append(lambda u: density(u, *parameters))
        return where[0]

    assert hasattr(home, step)
    monkeypatch.setattr(
        user, name, FunctionType(draw.py_func.__code__, vars(home) | {step: slice_step})
    )
    return found


def log_density(problem, sampler, state, step):
    """That of the model at a state, variances and precisions integrated out, at its labels."""
    point = sampler.point(state)
    np.testing.assert_allclose(point["eta"], problem.decision(point), rtol=1e-9, atol=1e-12)
    y = sampler.label_sign > 0.0
    total = float(problem.spec.log_joint(point, problem.inputs, y, problem.hypers))
    if step == "scale":  # given the latent values, which say the labels
        total -= stats.norm.logcdf(sampler.label_sign * state.eta).sum()
        total += stats.norm.logpdf(state.z, state.eta).sum()
    return total


@pytest.mark.parametrize(("case", "step"), MOVES, ids=map("-".join, MOVES))
def test_a_move_has_the_density_of_the_model(case, step, monkeypatch):
    model, size, covariates, given = MODELS[case]
    problem = posed(model, size, covariates, parametrization="marginal", **given)
    sampler, point = make_sampler(problem), problem.simulate(rng(3))
    sampler.set_labels(point["y"])
    (move, power), where, at = MOVES[case, step], [0.0], {}
    found = told(monkeypatch, move, where)
    for u in (0.0, -0.8, 0.5):
        state, where[0] = sampler.state(point), u
        make(sampler, ["complete", step], state, rng(4))
        at[u] = log_density(problem, sampler, state, step)
    sizes = *problem.X.shape, len(problem.basis), len(sampler.covariates.sd)
    for u in (-0.8, 0.5):
        want = at[u] - at[0.0] + u * power(*sizes)
        assert found[0](u) - found[0](0.0) == pytest.approx(want, rel=1e-9, abs=1e-9)


def test_large_decision_values_neither_overflow_nor_vanish():
    """Of so many rows that the product of their terms is taken in parts."""
    sign, eta = rng(1).choice([-1.0, 1.0], 5000), rng(2).normal(size=5000)
    for size in (0.0, 1.0, 1e4):
        want = special.log_expit(1.3 * size * sign * eta).sum()
        found = horseshoe_growth.log_likelihood(sign, size * eta, 1.3)
        assert found == pytest.approx(want, rel=1e-9)
