"""A fold of JCFO: its path is of its own link, and the gammas that it chose are kept."""

import json

import numpy as np
import pytest
import xarray as xr

from ardvark.data import Dataset
from lab.papers import fold as folds
from lab.papers import protocols
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


@pytest.mark.parametrize(
    ("model", "select", "gammas", "tuned"),
    [
        ("jcfo", "holdout", {"gamma1", "gamma2"}, {"gamma2_inside"}),
        ("jcfo", "holdout_open", {"gamma1", "gamma2"}, {"gamma1_inside", "gamma2_inside"}),
        ("sparse_probit", "holdout", {"gamma1"}, {"gamma1_inside"}),
    ],
)
def test_gammas_chosen_by_hold_out_are_kept(model, select, gammas, tuned):
    X = rng(5).standard_normal((40, 4))
    row = protocols.Row(
        label="x", model=model, method="jcfo_em", reading="ours",
        options={"starts": 1, "select": select},
    )  # fmt: skip
    data = Dataset.from_arrays(X, X[:, 0] + X[:, 1] > 0)
    found = json.loads(folds.zoo(row, data.take(range(30)), data.take(range(30, 40)))[0]["chosen"])
    assert set(found) == gammas | tuned
    assert min(found[name] for name in gammas) > 0.0


@pytest.mark.parametrize(("model", "kept"), [("jcfo", 2), ("sparse_probit", 5)])
def test_an_exact_row_takes_what_the_algorithm_chooses_in_the_fold(model, kept, monkeypatch):
    """The gammas and features of the algorithm's own row; features by their place in the table."""
    X = rng(6).standard_normal((50, 5))
    data = Dataset.from_arrays(X, X[:, 3] + 0.3 * X[:, 1] > 0)
    training, test = data.take(range(40)), data.take(range(40, 50))
    by = {"select": "holdout"} | ({"prefilter": 2, "starts": 1} if model == "jcfo" else {})
    algorithm = protocols.Row(label="x", model=model, method="jcfo_em", reading="ours", options=by)
    chosen = folds.zoo(algorithm, training, test)[0]["chosen"]
    asked, fit = [], folds.run.fit

    def remembered(problem, method, **options):
        asked.append((problem, method))
        return fit(problem, "jcfo_em", **({} if method == "exact" else options))  # it is faster

    monkeypatch.setattr(folds.run, "fit", remembered)
    row = protocols.Row(label="y", model=model, method="exact", reading="exact", chosen_by=by)
    _, features = folds.choice_of_jcfo(row, training)
    found = json.loads(folds.zoo(row, training, test)[0]["chosen"])
    problem, method = asked[-1]
    assert method == "exact"
    assert 0.0 < found.pop("prior") <= kept  # so many genes are active by the prior
    assert found == problem.hypers.gammas == {k: json.loads(chosen)[k] for k in found}
    np.testing.assert_array_equal(problem.data.X, training.X[:, features])
    assert len(features) == kept


def test_active_features_are_named_by_their_place_in_the_table():
    found = xr.Dataset(
        {
            "p_active_feature": ("feature", [0.9, 0.2, 0.6]),
            "active_features": (("chain", "draw"), [[2, 1]]),
        }
    )
    tree = xr.DataTree.from_dict({"selection": found})
    assert folds.active(tree, np.array([4, 7, 30])) == {"features": 1.5, "selected": "4 30"}
