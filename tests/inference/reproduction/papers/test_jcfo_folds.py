"""A fold of JCFO: its path is of its own link, and the gammas that it chose are kept."""

import json

import numpy as np
import pytest

from ardvark.data import Dataset
from ardvark.inference.reproduction.papers import fold as folds
from ardvark.inference.reproduction.papers import protocols
from tests.support import rng


def test_a_path_ends_with_the_probability_of_its_row():
    """By the model's own link: JCFO's is a probit."""
    X = rng(5).standard_normal((60, 4))
    data = Dataset.from_arrays(X, X[:, 0] + X[:, 1] > 0)
    row = protocols.Row(
        label="x", model="jcfo", method="jcfo_em", reading="ours", steps=(1, 10**6),
        hypers={"gamma1": 1.0, "gamma2": 1.0}, options={"starts": 1},
    )  # fmt: skip
    line, *path = folds.zoo(row, data.take(range(40)), data.take(range(40, 60)))
    np.testing.assert_allclose(path[-1]["probability"], line["probability"], atol=1e-4)
    assert np.ptp(line["probability"]) > 0.5


@pytest.mark.parametrize("model", ["jcfo", "sparse_probit"])
def test_gammas_chosen_by_hold_out_are_kept(model):
    X = rng(5).standard_normal((40, 4))
    row = protocols.Row(
        label="x", model=model, method="jcfo_em", reading="ours",
        options={"starts": 1, "select": "holdout"},
    )  # fmt: skip
    data = Dataset.from_arrays(X, X[:, 0] + X[:, 1] > 0)
    found = json.loads(folds.zoo(row, data.take(range(30)), data.take(range(30, 40)))[0]["chosen"])
    assert set(found) == {"jcfo": {"gamma1", "gamma2"}, "sparse_probit": {"gamma1"}}[model]
    assert min(found.values()) > 0.0
