"""The horseshoe's own numbers: the scale from a guess of how many weights matter, and the slab."""

import numpy as np
import pytest
from scipy import integrate, stats

import ardvark as av
from ardvark.models.horseshoe import Hypers, weight_sd
from tests.support import rng


def test_the_global_scale_is_the_papers():
    """p0 / (D - p0) * sigma / sqrt(N), with the sigma of a logistic likelihood at y = 1/2."""
    found = Hypers(active_features=5.0).fill(100, 100, 1000)
    assert found.global_scale == pytest.approx(5.0 / 995.0 * 2.0 / 10.0)
    assert Hypers().fill(62, 62, 2000).active_features == 10.0
    assert Hypers().fill(30, 30, 6).active_features == 2.0  # D / 3


def test_a_global_scale_gives_the_number_that_it_came_from():
    for number in (0.1, 2.0, 39.0):
        scale = Hypers(active_features=number).fill(50, 50, 40).global_scale
        found = Hypers(global_scale=scale).fill(50, 50, 40)
        assert found.global_scale == scale
        assert found.active_features == pytest.approx(number)


def test_the_number_is_the_expected_effective_number_of_weights():
    """At tau = tau_0, over lambda: sum_k E[1 / (1 + sigma^2 / (N tau^2 lambda^2))] = p0."""
    N, D, number = 80, 300, 7.0
    tau = Hypers(active_features=number).fill(N, N, D).global_scale

    def kept(log_lambda):
        local = np.exp(log_lambda)
        return stats.halfcauchy.pdf(local) * local / (1.0 + 4.0 / (N * (tau * local) ** 2))

    each, _ = integrate.quad(kept, -30.0, 40.0, limit=500)
    assert D * each == pytest.approx(number, rel=1e-6)


def test_the_weights_are_between_the_horseshoe_and_the_slab():
    local = np.array([1e-6, 0.5, 1e6])
    point = {"tau": np.asarray(0.3), "lambda": local}
    np.testing.assert_allclose(weight_sd(point | {"c2": np.asarray(1e30)}), 0.3 * local)
    with_slab = weight_sd(point | {"c2": np.asarray(4.0)})
    np.testing.assert_allclose(with_slab[[0, 2]], [0.3e-6, 2.0], rtol=1e-6)
    assert with_slab[1] == pytest.approx((1.0 / 4.0 + 1.0 / 0.15**2) ** -0.5)


def test_only_the_scale_defines_the_posterior():
    """The number it came from does not: a fold keeps the scale, whatever its size."""
    data = (rng(0).normal(size=(8, 3)), np.arange(8) % 2)
    asked = av.problem("horseshoe", data, active_features=1.0)
    same = av.problem("horseshoe", data, global_scale=asked.hypers.global_scale)
    assert same.fingerprint == asked.fingerprint
    assert asked.take(range(6)).hypers == asked.hypers
