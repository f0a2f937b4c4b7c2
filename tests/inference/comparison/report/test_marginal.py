"""The marginal says in words what it draws."""

import numpy as np

from ardvark.inference.comparison.report.marginal import marginal
from tests.inference.comparison.report.test_figures import fit


def test_the_interval_is_the_central_ninety_percent_of_the_draws():
    """Draws 0, 1, ..., 200: the 5 % and 95 % quantiles are 10 and 190, the variance 201^2 / 12."""
    tree = fit(feature_weight=np.arange(201.0).reshape(1, 201, 1))
    picture = marginal({"one": tree}, None, "feature_weight", "f0")
    said = "one: mean 100.00, sd 58.02, 90 % interval 10.00 to 190.00"
    assert picture.alt == f"Posterior of feature_weight of f0. {said}."
    assert [spot.text for spot in picture.spots] == [said]
