"""What holds for every yardstick: proper P, equal results from equal seeds, training rows alone."""

from dataclasses import replace

import numba
import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from lab.yardsticks import contract
from lab.yardsticks.registry import YARDSTICKS
from tests.support import rng

SELECTS = ("stability", "knockoffs")  # with few features they may keep none
SLOW = ("mcp",)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """skglm's loops run uncompiled: compiling them takes longer than all of these tests."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)


def apart(N, number=0, D=6):
    """Return rows whose classes lie 12 sd apart along every feature, and their labels."""
    generator = rng(number)
    y = np.arange(N) % 3 == 0
    X = generator.standard_normal((N, D))
    X += 12.0 * y[:, None]
    return X, y.astype(np.int8)


def quick(name):
    """Return the yardstick with one or two candidates of each option."""
    declared, count = YARDSTICKS[name], 1 if name in SLOW else 2
    # least penalties take long, uncompiled
    grid = {
        k: x[2 : 2 + count] if k == "model__ratio" else x[-count:] for k, x in declared.grid.items()
    }
    return replace(declared, grid=grid)


@pytest.mark.statistical
@pytest.mark.parametrize("name", YARDSTICKS)
def test_classes_far_apart_are_told_apart(name):
    X, y = apart(30)
    held, true = apart(60, 1)
    found = contract.fit(quick(name), X, y, held)
    p = found.probability
    assert p.shape == (60,)
    assert ((p >= 0.0) & (p <= 1.0)).all()
    np.testing.assert_array_equal(found.label, p > 0.5)
    if name not in SELECTS:
        # the classes' nearest rows are 4 sd apart or more but once in 10^6; half of that is enough
        np.testing.assert_array_equal(found.label, true == 1)
        assert found.features is None or len(found.features)
    if found.features is not None:
        assert len(set(found.features)) == len(found.features) <= 6
    assert found.samples is None or 1 <= found.samples <= 30
    # only the training rows set the scale, and no held-out row bears on another
    scale, shift = np.geomspace(0.1, 10.0, 6), np.arange(6.0)
    again = contract.fit(quick(name), scale * X + shift, y, (scale * held + shift)[::-1])
    np.testing.assert_allclose(again.probability[::-1], p, atol=1e-3)
    assert again.chosen == found.chosen


def test_equal_seeds_give_equal_results():
    X, y = apart(30)
    for name in ("stability", "knockoffs"):
        first, second = (contract.fit(quick(name), X, y, X, random_seed=3) for _ in range(2))
        np.testing.assert_array_equal(first.probability, second.probability)


def test_the_candidate_with_the_highest_inner_score_wins_whatever_its_place():
    X, y = apart(40)
    weak, strong = 1e-6, 1.0
    for grid in ((weak, strong), (strong, weak)):
        yardstick = contract.Yardstick(
            name="x", grid={"model__C": grid},
            steps=lambda D, seed: [("model", LogisticRegression())],
        )  # fmt: skip
        assert contract.fit(yardstick, X, y, X).chosen == {"C": strong}


def test_ties_go_to_the_first_candidate():
    X, y = apart(40)
    for grid in ((3, 1), (1, 3)):
        yardstick = contract.Yardstick(
            name="x", grid={"model__random_state": grid},
            steps=lambda D, seed: [("model", DummyClassifier(strategy="prior"))],
        )  # fmt: skip
        assert contract.fit(yardstick, X, y, X).chosen == {"random_state": grid[0]}


def test_the_inner_score_is_the_mean_log_probability_of_the_labels():
    class Fixed:
        def predict_proba(self, X):
            return np.column_stack([1.0 - X[:, 0], X[:, 0]])

    X, y = np.array([[0.9], [0.2], [0.0]]), np.array([1, 0, 1])
    expected = (np.log(0.9) + np.log(0.8) + np.log(1e-6)) / 3
    assert contract.log_score(Fixed(), X, y) == pytest.approx(expected)


SEEN: list[int] = []


class Ranking(TransformerMixin, BaseEstimator):
    def fit(self, X, y):
        SEEN.append(len(y))
        return self

    def transform(self, X):
        return X


def test_features_are_ranked_anew_on_each_inner_training_part():
    X, y = apart(40)
    SEEN.clear()
    yardstick = contract.Yardstick(
        name="x", grid={"model__C": (0.1, 1.0)},
        steps=lambda D, seed: [("rank", Ranking()), ("model", LogisticRegression())],
    )  # fmt: skip
    contract.fit(yardstick, X, y, X)
    # an inner fold and candidate each, then once on all training rows
    assert SEEN == [32] * contract.INNER * 2 + [40]


def test_a_fit_that_did_not_converge_says_so():
    X, y = apart(40)

    def perceptron(sweeps):
        return contract.Yardstick(
            name="x",
            steps=lambda D, seed: [("model", MLPClassifier(max_iter=sweeps, random_state=seed))],
        )  # fmt: skip

    cut = contract.fit(perceptron(1), X, y, X)
    assert cut.status == "not_converged"
    assert "converged" in cut.reason
    assert contract.fit(perceptron(2000), X, y, X).status == "finished"
