"""How far probabilities are from the reference's, counted by hand."""

import numpy as np
import pytest

from ardvark.inference.scoring.draws import Draws, ReferenceDraws
from ardvark.inference.scoring.statistics import STATISTICS


def test_probabilities_that_are_off_to_both_sides_do_not_cancel():
    """Rows off by 0.3, -0.3 and 0: 0.2 on average, and one row changes its class."""
    exact = np.full((4, 50, 3), 0.5)
    found = exact + np.array([0.3, -0.3, 0.0])
    about = [s for s in STATISTICS.values() if s.of == "probability"]
    value = {s.name: s.value(Draws(found), ReferenceDraws(exact)) for s in about}
    assert value == pytest.approx({"difference": 0.2, "agreement": 2 / 3, "row": 0.3})
    off = {s.name: s.deviation(value[s.name]) for s in about}  # from a method without error
    assert off == pytest.approx({"difference": 0.2, "agreement": 1 / 3, "row": 0.3})
