"""What a model's file agrees to beside its mathematics: names that other code relies on."""

from typing import get_args

import numpy as np
import pytest

import ardvark as av
from ardvark.data import Dataset
from ardvark.models import SHARED, ZOO, ModelName
from ardvark.models.parts.kernels import KERNELS, KernelName
from tests.support import rng

every_model = pytest.mark.parametrize("name", ZOO)


def make(name, **choice):
    X = rng(0).normal(size=(5, 2))
    return av.problem(name, Dataset.from_arrays(X, [0, 1, 0, 1, 1]), **choice)


@every_model
def test_a_card_says_what_the_model_can_do(name):
    """What other code asks of a card holds for a draw and for the variables of the model."""
    spec, problem, draws = ZOO[name], make(name), rng(2)
    points = [problem.simulate(draws) for _ in range(40)]
    assert spec.has_basis == ("sample_weight" in points[0])
    assert set(spec.shared) == {*SHARED} & {*points[0]}
    theta = np.array([point["feature_weight"] for point in points])
    assert spec.learns_theta == bool(np.ptp(theta, axis=0).all())
    for weight in spec.shared[:-1]:  # exactly 0 somewhere, by a mask
        values = np.array([point[weight] for point in points])
        assert (values == 0.0).any() == (weight in spec.masked)


def test_names_that_editors_complete_are_the_registry():
    assert get_args(ModelName) == tuple(ZOO)
    assert get_args(KernelName) == KERNELS
    for spec in ZOO.values():
        if spec.kernels:
            assert set(spec.Hypers.choices()["kernel"]) == set(spec.kernels)


@every_model
def test_a_link_to_real_numbers_keeps_its_rule(name):
    """Link "identity": a variable tau, a real y, and a density of s = 2y - 1 at any real y."""
    problem = make(name)
    point = problem.simulate(rng(1))
    whole = np.isin(point["y"], (0, 1)).all()
    if problem.spec.link != "identity":
        assert whole
        return
    assert not whole
    assert "tau" in {v.name for v in problem.model.free_RVs}
    s = 2.0 * point["y"] - 1.0
    expected = -0.5 * point["tau"] * (s - point["eta"]) ** 2 + 0.5 * np.log(
        point["tau"] / (2.0 * np.pi)
    )
    found = problem.spec.log_predictive(point["y"], point["eta"], point, problem.hypers)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
