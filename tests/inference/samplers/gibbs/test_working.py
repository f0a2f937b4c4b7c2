"""The normal likelihood in columns beside the one in samples."""

import numpy as np
import pytest

from ardvark.inference.samplers.gibbs.working import factor, in_columns
from tests.support import rng


def table(*, equal=False):
    """H (5, 12) with a row of ones and one of a covariate, omega, r, and two points of weights."""
    random = rng()
    H = random.standard_normal((5, 12))
    H[0] = 1.0
    if equal:
        H[4] = H[2]
    omega, r = random.gamma(2.0, 0.1, 12), random.integers(0, 2, 12) - 0.5
    return H, omega, r, random.standard_normal((2, 5))


def log_likelihood(W, r, eta):
    return r @ eta - 0.5 * eta @ (W * eta)


@pytest.mark.parametrize("equal", [False, True], ids=["distinct", "two equal features"])
def test_the_likelihood_is_the_same_up_to_a_constant(equal):
    H, omega, r, (here, there) = table(equal=equal)
    found = [in_columns(H, 2, omega, r, beta) for beta in (here, there)]
    change = np.diff([log_likelihood(x.W, x.r, x.eta) for x in found])
    want = np.diff([log_likelihood(omega, r, beta @ H) for beta in (here, there)])
    np.testing.assert_allclose(change, want, rtol=1e-9)
    assert found[0].always.shape == (2, 5)
    assert found[0].rows.shape == (3, 5)


@pytest.mark.parametrize("equal", [False, True], ids=["distinct", "two equal features"])
def test_slopes_are_those_in_samples(equal):
    H, omega, r, (beta, _) = table(equal=equal)
    working = in_columns(H, 2, omega, r, beta)
    rows = np.vstack([working.always, working.rows])
    np.testing.assert_allclose(rows @ rows.T, (H * omega) @ H.T, atol=1e-12)
    np.testing.assert_allclose(rows @ working.score, H @ (r - omega * (beta @ H)), atol=1e-9)


def test_dependent_rows_without_a_cholesky_factor():
    """A product that is singular by far: its triangular factor is taken from H itself."""
    H, omega, r, _ = table()
    H[3] = 1e6 * H[1]
    H[4] = H[3] - 1e6 * H[1]  # 0 throughout
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky((H * omega) @ H.T)
    L, x = factor(H, omega, r)
    np.testing.assert_allclose(L @ L.T, (H * omega) @ H.T, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(L @ x, H @ r, rtol=1e-9, atol=1e-6)


def test_eta_follows_the_score():
    H, omega, r, (here, there) = table()
    working = in_columns(H, 2, omega, r, here)
    working.moved(in_columns(H, 2, omega, r, there).score)
    np.testing.assert_allclose(working.eta, there @ np.vstack([working.always, working.rows]))
