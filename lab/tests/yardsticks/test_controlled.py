"""Stability selection and knockoffs: what they are made of."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.linear_model import LogisticRegression

from lab.yardsticks import knockoffs as ko
from lab.yardsticks import stability as st
from lab.yardsticks.controlled import AfterSelection
from tests.support import rng, z_limit

# --- the classifier after a selection -------------------------------------------------------------


class Given(BaseEstimator):
    def __init__(self, keep=()):
        self.keep = keep

    def fit(self, X, y):
        self.selected_ = np.array(self.keep, dtype=int)
        return self


def test_without_a_feature_p_is_the_share_of_the_class():
    X, y = rng(0).standard_normal((10, 3)), np.array([1] * 7 + [0] * 3)
    fitted = AfterSelection(Given()).fit(X, y)
    np.testing.assert_allclose(fitted.predict_proba(X[:4]), np.tile([0.3, 0.7], (4, 1)))
    assert fitted.predict(X[:4]).tolist() == [1] * 4


def test_the_classifier_sees_the_selected_features_alone():
    X = rng(1).standard_normal((30, 4))
    y = (X[:, 2] > 0).astype(int)
    fitted = AfterSelection(Given((2, 3))).fit(X, y)
    plain = LogisticRegression(max_iter=1000).fit(X[:, [2, 3]], y)
    np.testing.assert_array_equal(fitted.predict_proba(X), plain.predict_proba(X[:, [2, 3]]))


# --- stability selection --------------------------------------------------------------------------


def test_the_bound_is_that_of_the_paper():
    # C(0.75, 50) = 1 / (2 (2 x 0.75 - 1 - 1/100)), times the expected number squared over D
    assert st.expected_false(10, 2000, 50, 0.75) == pytest.approx(100 / 2000 / 0.98)
    assert st.expected_false(10, 2000, 50, 0.6) == pytest.approx(100 / 2000 / 0.38)


@pytest.mark.parametrize("D", [2, 9, 60, 2000])
def test_a_half_selects_as_many_as_the_bound_allows(D):
    size = st.base_size(D, 50, 0.75, 1.0, most=1000)
    assert st.expected_false(size, D, 50, 0.75) <= 1.0 < st.expected_false(size + 1, D, 50, 0.75)
    assert st.base_size(D, 50, 0.75, 1.0, most=3) == min(size, 3)


def test_the_first_to_enter_has_the_largest_correlation():
    generator = rng(2)
    X = generator.standard_normal((40, 30))
    X = (X - X.mean(axis=0)) / np.linalg.norm(X - X.mean(axis=0), axis=0)
    y = (generator.random(40) < 0.5).astype(int)
    first = np.abs(X.T @ (y - y.mean())).argmax()
    assert st.first_to_enter(X, y, 1).tolist() == [first]
    assert first in st.first_to_enter(X, y, 5)
    assert len(st.first_to_enter(X, y, 5)) <= 5
    assert len(st.first_to_enter(X, np.ones(40), 5)) == 0


def test_halves_are_complementary(monkeypatch):
    seen = []
    monkeypatch.setattr(
        st, "first_to_enter", lambda X, y, count: seen.append(X[:, 0]) or np.array([0])
    )
    X = np.arange(11.0)[:, None] + np.zeros((11, 2))
    fitted = st.StabilitySelection(pairs=4).fit(X, np.arange(11) % 2)
    assert len(seen) == 8
    for one, other in zip(seen[::2], seen[1::2], strict=True):
        assert len(one) == len(other) == 5
        assert not set(one) & set(other)
    assert fitted.frequency_.tolist() == [1.0, 0.0]
    assert fitted.selected_.tolist() == [0]


# --- knockoffs ------------------------------------------------------------------------------------


class Stub:
    """A generator whose noise is given."""

    def __init__(self, noise):
        self.noise = noise

    def standard_normal(self, shape):
        assert self.noise.shape == shape
        return self.noise


def standardised(N, D, generator, rho=0.6):
    Z = generator.standard_normal((N, D))
    for j in range(1, D):
        Z[:, j] = rho * Z[:, j - 1] + (1.0 - rho**2) ** 0.5 * Z[:, j]
    return (Z - Z.mean(axis=0)) / Z.std(axis=0)


@pytest.mark.parametrize(("N", "D"), [(40, 6), (5, 12)])
def test_a_knockoff_has_the_conditional_law_of_the_definition(N, D):
    Z = standardised(N, D, rng(3))
    rho = max(ledoit_wolf_shrinkage(Z, assume_centered=True), 1e-6)
    S = (1.0 - rho) * Z.T @ Z / N + rho * np.eye(D)
    s = min(2.0 * np.linalg.eigvalsh(S).min(), 1.0)
    np.testing.assert_allclose(np.diag(S), 1.0)
    mean = ko.knockoffs(Z, Stub(np.zeros((N, D))))
    np.testing.assert_allclose(mean, Z - s * Z @ np.linalg.inv(S), atol=1e-8)
    factor = np.zeros((D, D))  # of E = noise @ factor, row by row
    for j in range(D):
        noise = np.zeros((N, D))
        noise[0, j] = 1.0
        factor[j] = (ko.knockoffs(Z, Stub(noise)) - mean)[0]
    conditional = 2.0 * s * np.eye(D) - s**2 * np.linalg.inv(S)
    np.testing.assert_allclose(factor.T @ factor, conditional, atol=1e-7)


@pytest.mark.statistical
def test_swapping_a_feature_and_its_knockoff_leaves_the_covariance():
    N, D = 20_000, 4
    Z = standardised(N, D, rng(4))
    K = ko.knockoffs(Z, rng(5))
    both = np.cov(np.hstack([Z, K]).T)
    # the variance of an entry is at most 2 / N; 4 variances, 6 + 12 covariances; Z itself is given
    limit = z_limit(22) * (2.0 / N) ** 0.5
    assert np.abs(both[D:, D:] - both[:D, :D]).max() < limit
    across = both[:D, D:] - both[:D, :D]
    assert np.abs(across - np.diag(np.diag(across))).max() < limit
    assert (np.diag(across) < -limit).all()  # a knockoff is no copy


def test_the_statistic_changes_sign_with_a_swap():
    Z = standardised(80, 5, rng(6), rho=0.3)
    copies = ko.knockoffs(Z, rng(7))
    y = (Z[:, 0] + Z[:, 3] > 0).astype(int)
    W = ko.statistic(Z, copies, y, 0)
    other, swapped = Z.copy(), copies.copy()
    other[:, 3], swapped[:, 3] = copies[:, 3], Z[:, 3]
    expected = W * np.array([1, 1, 1, -1, 1])
    assert abs(W[3]) > 0.05
    np.testing.assert_allclose(ko.statistic(other, swapped, y, 0), expected, atol=1e-3)


def test_the_cut_is_the_least_that_keeps_the_estimated_rate():
    W = np.array([5.0, 4.0, 3.0, 2.5, 2.0, 1.5, -1.0, 0.5, 0.0, 0.0])
    # at 1.5: (1 + 0) / 6; at 1: (1 + 1) / 6; at 0.5: (1 + 1) / 7
    assert ko.cut(W, 0.2) == 1.5
    assert ko.cut(W, 0.3) == 0.5
    assert ko.cut(W, 0.1) == float("inf")
    assert ko.cut(np.zeros(4), 0.5) == float("inf")
