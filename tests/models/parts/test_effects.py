"""What taking a feature or a sample out does to eta, against taking it out."""

import numpy as np
import pytest

from ardvark.models.parts import effects
from ardvark.models.parts.kernels import make_kernel
from tests.support import rng

N, B, D, S = 11, 7, 5, 6
KERNELS = [("linear", 1), ("polynomial", 1), ("polynomial", 2), ("polynomial", 3), ("rbf", 1)]
every_kernel = pytest.mark.parametrize(("kernel", "degree"), KERNELS)


def draws(number=0, scale=0.3, rows=N, centres=B):
    """Rows, centres that are not rows, and S draws of weights, some of them 0.

    Features have means and scales of their own, so that no change of eta is centred by itself.
    """
    random = rng(number)
    X, Z = random.normal(size=(rows, D)), random.normal(size=(centres, D))
    X, Z = (V * [1.0, 0.7, 1.6, 0.4, 1.1] + [0.0, 0.8, -0.5, 0.3, 1.2] for V in (X, Z))
    theta = scale * np.abs(random.normal(size=(S, D)))
    a = random.normal(size=(S, centres))
    theta[1, 2] = theta[2, :] = 0.0
    a[1, 3] = a[3, :] = 0.0
    return X, Z, theta, a


def without(X, Z, theta, a, kernel, degree=1):
    """The definition: sd over rows of eta with a weight as it is less eta with it at 0."""
    gram = make_kernel(kernel, degree).gram
    features, samples = np.empty(theta.shape), np.empty(a.shape)
    for s in range(len(theta)):
        eta = gram(X, Z, theta[s]) @ a[s]
        for k in range(theta.shape[1]):
            t = np.where(np.arange(theta.shape[1]) == k, 0.0, theta[s])
            features[s, k] = np.std(eta - gram(X, Z, t) @ a[s])
        for j in range(a.shape[1]):
            w = np.where(np.arange(a.shape[1]) == j, 0.0, a[s])
            samples[s, j] = np.std(eta - gram(X, Z, theta[s]) @ w)
    return features, samples


@every_kernel
@pytest.mark.parametrize("shared_theta", [False, True])
def test_effects_are_what_taking_out_does(kernel, degree, shared_theta):
    X, Z, theta, a = draws()
    if shared_theta:
        theta = np.broadcast_to(theta[1], theta.shape)
    function = make_kernel(kernel, degree)
    features, samples = without(X, Z, theta, a, kernel, degree)
    assert features.max() > 0.1
    found = function.feature_effects(X, Z, theta, a)
    np.testing.assert_allclose(found, features, rtol=1e-8, atol=1e-13)
    found = function.sample_effects(X, Z, theta, a)
    np.testing.assert_allclose(found, samples, rtol=1e-8, atol=1e-13)


@every_kernel
def test_what_all_rows_share_is_no_effect(kernel, degree):
    """A constant column of K is part of the bias, whatever its size: it is 1 at theta = 0."""
    X, Z, theta, a = draws()
    theta = np.zeros(theta.shape)
    function = make_kernel(kernel, degree)
    assert (function.gram(X, Z, theta[0]) == (kernel != "linear")).all()
    assert function.sample_effects(X, Z, theta, a).max() == 0.0
    X[:, :2] = X[0, :2]  # rows that differ in features of weight 0 alone
    theta[:, :2] = 0.4 * np.arange(1, S + 1)[:, None]
    assert function.feature_effects(X, Z, theta, a).max() < 1e-13
    assert function.sample_effects(X, Z, theta, a).max() < 1e-13
    moved = function.decision(X, Z, theta, a) - function.decision(X, Z, 0.0 * theta, a)
    assert np.abs(moved).max() > 0.1


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 0.03, 1.0, 5.0, 40.0, 1e4])
def test_rbf_effects_at_every_scale_of_theta(scale):
    """u up to 1e5: more doublings, then the difference of the two exponentials."""
    X, Z, theta, a = draws(1, scale)
    Z[:4] = X[:4]  # a kernel of 1, whatever theta
    theta[0, 1:] *= 1e-3
    features, _ = without(X, Z, theta, a, "rbf")
    found = effects.rbf_effects(X, Z, theta, a, 0.0)
    rounding = 1e-12 + 1e-14 * scale  # of a distance that is 0, in the definition itself
    np.testing.assert_allclose(found, features, rtol=1e-8, atol=rounding)


def test_rbf_effects_of_draws_with_negative_weights():
    """Those of a Gaussian approximation: the kernel takes negative distances as 0."""
    X, Z, theta, a = draws(2)
    theta[::2, 0] *= -3.0
    features, _ = without(X, Z, theta, a, "rbf")
    found = effects.rbf_effects(X, Z, theta, a, 0.0)
    np.testing.assert_allclose(found, features, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("scale", np.logspace(-7, 0, 15))
def test_the_first_order_stands_in_only_within_its_bound(scale):
    """Off by at most a thousandth of the threshold, and on the right side of it."""
    X, Z, theta, a = draws(3, scale)
    exact = effects.rbf_effects(X, Z, theta, a, 0.0)
    for threshold in (0.1, 0.5 * np.median(exact), float(exact.max()) * 1.01):
        found = effects.rbf_effects(X, Z, theta, a, threshold)
        assert np.abs(found - exact).max() <= 1e-3 * threshold
        np.testing.assert_array_equal(found > threshold, exact > threshold)


def test_a_threshold_between_an_effect_and_its_first_order():
    """There the first order alone would say the opposite, and is not used."""
    X, Z, theta, a = draws(4, 1e-5)
    theta, a = theta[:1], a[:1]
    exact = effects.rbf_effects(X, Z, np.vstack([theta, theta]), np.vstack([a, a]), 0.0)[0]
    K = make_kernel("rbf").gram(X, Z, theta[0])
    u = theta[0] * (X[:, None, :] - Z) ** 2  # (N, B, D)
    first = np.einsum("ij,ijk->ik", K * a[0], u).std(axis=0)
    for k in range(D):
        threshold = 0.5 * (exact[k] + first[k])
        assert (first[k] > threshold) != (exact[k] > threshold)
        found = effects.rbf_effects(X, Z, theta, a, threshold)
        assert (found[0, k] > threshold) == (exact[k] > threshold)


def test_primal_weights_cost_no_kernel_matrix():
    costs = [make_kernel(k, d).feature_cost(1e6) for k, d in KERNELS]
    assert costs[:2] == [0.0, 0.0]
    assert 1e6 < costs[2] < costs[3] < costs[4]
