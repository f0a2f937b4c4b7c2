"""What the leading components are, and what they carry, by counting."""

import itertools

import numpy as np
import pytest

from ardvark.inference.scoring.statistics.ranking import captured, leading


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
