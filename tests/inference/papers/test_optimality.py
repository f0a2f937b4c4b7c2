"""Residuals of a maximum under exponential and Laplace priors, by the subgradients themselves."""

import numpy as np
import pytest

from ardvark.inference.papers.optimality import kkt


@pytest.mark.parametrize("signed", [True, False])
def test_a_residual_is_the_distance_to_the_nearest_subgradient(signed):
    """At 0 the penalty's slopes are all of [-rate, rate], or everything up to the rate."""
    rate = 0.7
    gradient = np.array([1.9, -1.9, 0.2, 0.7, -0.3, 1.1, -2.0])
    weight = np.array([0.0, 0.0, 0.0, 3.0, 0.5, 1e-9, -4.0 if signed else 4.0])
    slopes = np.linspace(-rate if signed else -9.0, rate, 100_001)
    want = [
        np.abs(g - (slopes if w == 0.0 else rate * np.sign(w))).min() / rate
        for g, w in zip(gradient, weight, strict=True)
    ]
    np.testing.assert_allclose(kkt(gradient, weight, rate, signed=signed), want, atol=1e-3)
