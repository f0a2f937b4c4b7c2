"""What the leading components are, and what they carry, by counting."""

import itertools

import numpy as np
import pytest

from ardvark.inference.scoring.statistics.ranking import LEADING, captured, leading, top
from tests.support import rng


def by_counting(score, exact):
    """Mean over all orders in which ties of the score, and of the reference, may be broken."""
    k = leading(len(score))
    sums = {}
    for name, value in (("own", score), ("best", exact)):
        chosen = [
            exact[list(order[:k])].sum()
            for order in itertools.permutations(range(len(value)))
            if (np.diff(value[list(order)]) <= 0).all()
        ]
        sums[name] = np.mean(chosen)
    return sums["own"] / sums["best"]


@pytest.mark.parametrize(
    ("score", "exact"),
    [
        ([5, 4, 3, 2, 1, 0], [9, 1, 8, 2, 0, 3]),
        ([1, 1, 1, 0, 0, 0], [9, 1, 8, 2, 0, 3]),
        ([0, 0, 0, 0, 0, 0], [9, 1, 8, 2, 0, 3]),
        ([0, 2, 0, 2, 2, 2], [4, 4, 4, 4, 1, 0]),
    ],
)
def test_what_is_captured_by_counting(score, exact):
    score, exact = np.array(score, dtype=float), np.array(exact, dtype=float)
    np.testing.assert_allclose(captured(score, exact), by_counting(score, exact))


def test_equal_sizes_change_places_at_no_cost():
    exact = np.array([3.0, 3.0, 3.0, 3.0, 1e-9, 0.0])
    other = exact[[3, 2, 1, 0, 5, 4]]
    np.testing.assert_allclose(captured(other, exact), 1.0)
    assert top(np.array([9.0, 0, 0, 8, 7, 0]), np.array([0, 9.0, 8, 7, 0, 0])) == pytest.approx(
        1 / 3
    )


def test_captured_is_between_zero_and_one_and_one_of_itself():
    exact, score = rng(0).gamma(1.0, size=(2, 40, 50))
    share = captured(score, exact)
    assert share.shape == (40,)
    assert (share > 0.0).all()
    assert (share <= 1.0).all()
    np.testing.assert_allclose(captured(exact, exact), 1.0)
    assert leading(50) == LEADING
    assert leading(1) == 1
