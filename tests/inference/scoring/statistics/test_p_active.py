"""The Monte Carlo error of P(active) where the draws themselves cannot say it."""

import numpy as np

from ardvark.inference.scoring.statistics.p_active import probabilities
from tests.inference.comparison.verdicts.test_verdict import WEIGHT, posterior, tree_of


def test_a_feature_that_is_active_in_all_draws_or_none_is_known_to_one_draw():
    """Of 4000 draws; a single draw has no Monte Carlo error of its own."""
    found = probabilities(tree_of(*posterior(2)))
    same = (found.p == 0.0) | (found.p == 1.0)
    assert 0 < same.sum() < len(WEIGHT)
    np.testing.assert_array_equal(found.error[same], 1 / 4000)
    assert (found.error[~same] > 0.0).all()
    point = probabilities(tree_of(*posterior(2, shape=(1, 1))))
    assert (point.draws, point.error.max()) == (1, 0.0)
