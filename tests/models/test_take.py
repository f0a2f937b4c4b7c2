"""`Problem.take`: a fold is standardised by one rule, and its basis loses the rows that left."""

import numpy as np
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.data import Dataset
from ardvark.models import Problem

N, D = 12, 4


@pytest.fixture
def dataset():
    rng = np.random.default_rng(0)
    return Dataset.from_arrays(rng.normal(3.0, 2.0, (N, D)), np.arange(N) % 2, name="folds")


def lone(dataset, value, row=5):
    """The data with one more feature: `value` in every row but one."""
    column = np.full(N, value)
    column[row] += 4.0
    return Dataset.from_arrays(np.column_stack([dataset.X, column]), dataset.y, name="lone")


@pytest.mark.parametrize("rows", [[0, 3, 4, 7, 9], np.arange(N) > 2, [9, 4, 0, 7]], ids=str)
@pytest.mark.parametrize("name", ["pfcvm", "rfvm", "sparse_probit"])
def test_it_is_the_problem_of_those_rows_alone(dataset, name, rows):
    """Bit by bit, and the hyperparameters stay: those of the rows alone would be others."""
    problem = av.problem(name, dataset)
    fold, alone = problem.take(rows), av.problem(name, dataset.take(rows))
    for array in ("X", "Z", "y", "center", "scale", "basis"):
        np.testing.assert_array_equal(getattr(fold, array), getattr(alone, array))
    if name == "pfcvm":
        np.testing.assert_array_equal(fold.basis_labels, alone.basis_labels)
    assert fold.coords == alone.coords
    assert fold.model.coords["obs"] == fold.coords["obs"]
    assert fold.basis is fold.data.X
    assert fold.hypers == problem.hypers
    np.testing.assert_allclose(fold.X.mean(0), 0.0, atol=1e-14)
    np.testing.assert_allclose(fold.X.std(0), 1.0)


def test_an_unstandardised_problem_stays_so(dataset):
    fold = av.problem("rfvm", dataset, standardize=False).take(np.arange(N) != 3)
    np.testing.assert_array_equal(fold.X, np.delete(dataset.X, 3, axis=0))


def test_basis_rows_leave_and_centres_stay(dataset):
    rows = av.problem("pfcvm", dataset, basis=[9, 5, 2])
    fold = rows.take(np.arange(N) != 5)
    np.testing.assert_array_equal(fold.basis, dataset.X[[9, 2]])
    assert fold.basis_names == ("9", "2")
    np.testing.assert_array_equal(fold.basis_labels, 2 * dataset.y[[9, 2]] - 1)
    assert dataset.y[9] != dataset.y[2]
    assert rows.take(np.arange(N) != 6).basis_names == ("9", "5", "2")
    with pytest.raises(InputError, match=r"basis would be empty without .* left out: 9, 5, 2\."):
        rows.take([0, 1, 3])

    # centres of one's own stay, whatever the samples are called
    names = [f"centre_{j}" for j in range(N)]
    named = Dataset.from_arrays(dataset.X, dataset.y, sample_names=names)
    own = av.problem("rfvm", named, basis=dataset.X[:4] + 1.0)
    assert own.take(np.arange(N) > 3).basis_names == tuple(names[:4])
    np.testing.assert_array_equal(own.take(np.arange(N) > 3).basis, dataset.X[:4] + 1.0)


def test_rows_that_no_problem_can_have(dataset):
    problem = av.problem("rfvm", dataset)
    for rows in ([0, 2, 4], [], [0, 0, 1], [0, N]):
        with pytest.raises(InputError):
            problem.take(rows)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 / 3.0])
def test_a_feature_that_is_constant_without_the_held_out_row(dataset, value):
    """It is 0 in the fold, whatever the rounding of its mean, and outside: it adds nothing."""
    data = lone(dataset, value)
    fold = av.problem("rfvm", data).take(np.arange(N) != 5)
    assert fold.scale[-1] == np.inf
    assert not fold.X[:, -1].any()
    assert fold.standardized(data.X[5:6])[0, -1] == 0.0


def test_a_feature_that_hardly_varies_is_not_constant(dataset):
    """No spread is too small beside other features or rows, only beside the values themselves."""
    column = 1e-14 * np.arange(N, dtype=float)
    column[5] = 1.0
    data = Dataset.from_arrays(np.column_stack([dataset.X, column]), dataset.y)
    fold = av.problem("rfvm", data).take(np.arange(N) != 5)
    np.testing.assert_allclose(fold.X.std(0), 1.0)


def test_a_hold_out_is_a_problem_made_for_its_rows(dataset, monkeypatch):
    """The hold-out of a paper's algorithm takes its fold from `Problem.take`."""
    data = lone(dataset, 0.1)
    taken = []
    right = Problem.take

    def recorded(problem, rows):
        fold = right(problem, rows)
        taken.append((np.asarray(rows), fold))
        return fold

    monkeypatch.setattr(Problem, "take", recorded)
    quiet = {"random_seed": 1, "progressbar": False}
    jcfo = av.fit(
        av.problem("jcfo", data, scale="fixed"), "jcfo_em", select="holdout", starts=1, **quiet
    )
    ((rows, fold),) = taken
    np.testing.assert_array_equal(fold.X, av.problem("rfvm", data.take(rows)).X)
    assert np.isfinite(jcfo["fit"]["holdout_score"]).all()


def test_constant_features_are_named_once(dataset, caplog):
    data = Dataset.from_arrays(np.column_stack([dataset.X, np.ones(N)]), dataset.y, name="dull")
    with caplog.at_level("INFO", logger="ardvark"):
        problem = av.problem("rfvm", data)
        problem.take(np.arange(N) != 5)
        av.problem("rfvm", data, standardize=False)
    told = "dull: 1 constant feature(s), which contribute nothing: x5"
    assert [r.getMessage() for r in caplog.records] == [told, told]
