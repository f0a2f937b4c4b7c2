"""Predictions that hardly vary are said, of the posterior mean of P(y = 1)."""

import numpy as np
import xarray as xr

import ardvark as av
from ardvark.inference.comparison.verdicts.variation import nearly_constant


def test_predictions_are_averaged_as_probabilities(small_data):
    """Two draws say 0.9 and 0.1 of every row, whatever its label: the mean is 0.5 everywhere.

    Means of their logs would say 0.3 of the rows of one class and 0.7 of those of the other.
    """
    problem = av.problem("rfvm", small_data(N=12, D=3))
    p = np.array([0.9, 0.1])[:, None]
    observed = np.log(np.where(problem.y == 1, p, 1.0 - p))[None]
    likelihood = xr.Dataset({"y": (("chain", "draw", "obs"), observed)})
    said = nearly_constant(problem, xr.DataTree.from_dict({"/log_likelihood": likelihood}))
    assert said.startswith("at the training rows, P('ill') is 0.5 to 0.5. Its log odds vary by ")

    steps = np.linspace(0.3, 0.7, 12)
    varied = likelihood.assign(
        y=likelihood["y"] * 0.0 + np.log(np.where(problem.y == 1, steps, 1.0 - steps))
    )
    assert nearly_constant(problem, xr.DataTree.from_dict({"/log_likelihood": varied})) == ""
