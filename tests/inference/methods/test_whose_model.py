"""`problem.model` is the caller's: a fit of the problem never follows what was done to it.

A fit of `problem.model` itself does.
"""

import numpy as np
import pymc as pm
import pytest

import ardvark as av
from ardvark.inference.target.target import Target
from ardvark.models import ZOO
from tests.models.forms import make
from tests.support import rng, seed

ROWS, PRIOR = {"X", "K"}, {"gamma1", "xi", "global_scale", "sample_rate", "noise_rate"}


def change(model):
    """Change labels, rows, rates and coordinates of the model, as `pm.set_data` does."""
    held = {v.name: v.get_value() for v in model.data_vars}
    other = {"label": 1 - held["label"]}
    other |= {name: 3.0 + 2.0 * held[name] for name in ROWS & held.keys()}
    other |= {name: 50.0 * held[name] for name in PRIOR & held.keys()}
    with model:
        pm.set_data(other, coords={"obs": [f"other {k}" for k in range(len(held["label"]))]})


@pytest.mark.parametrize("name", ZOO)
def test_a_fit_of_the_problem_reads_a_build_of_its_own(name):
    problem, untouched = (make(name, ZOO[name].choices()[0], N=5, D=3) for _ in range(2))
    change(problem.model)
    read, fresh = Target(problem).model, untouched.model
    assert read.coords == fresh.coords
    for v in read.data_vars:
        np.testing.assert_array_equal(v.get_value(), fresh[v.name].get_value())
    assert Target(problem.model).model is problem.model is not read


def test_other_rows_and_labels_are_in_the_fit_of_the_model_alone():
    """257 rows whose labels fall where those of the problem rise, by `pm.set_data`."""
    X, new = rng(3).normal(size=(40, 3)), rng(5).normal(size=(257, 3))
    problem = av.problem("rvm", X, (X[:, 0] + 0.3 * rng(4).normal(size=40) > 0).astype(int))
    K = problem.kernel.gram(problem.standardized(new), problem.Z, problem.hypers.feature_scale)
    coords = {"obs": [f"new {k}" for k in range(257)]}
    with problem.model:
        pm.set_data({"K": K, "label": (new[:, 0] < 0.0).astype(int)}, coords=coords)
    for asked, rows, sign in ((problem, X, 1.0), (problem.model, new, -1.0)):
        fit = av.fit(asked, "laplace", random_seed=seed(1), progressbar=False)
        eta = fit["posterior"]["eta"].mean(("chain", "draw")).values
        assert eta.shape == (len(rows),)
        assert sign * np.corrcoef(eta, rows[:, 0])[0, 1] > 0.5


def test_a_model_that_got_a_new_term_is_compiled_anew():
    """A density that was compiled for the model as it was would leave the potential out."""
    with pm.Model() as model:
        x = pm.Normal("x")
    before = Target(model).density.logp_grad(np.array([1.0]))
    with model:
        pm.Potential("more", -3.0 * x**2)
    value, gradient = Target(model).density.logp_grad(np.array([1.0]))
    assert value == pytest.approx(before[0] - 3.0)
    assert gradient == pytest.approx(before[1] - 6.0)
