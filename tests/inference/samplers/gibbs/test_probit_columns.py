"""The steps of a probit model in columns, beside dense algebra with the matrix of all rows."""

import numpy as np

from ardvark.inference.samplers.gibbs import probit_columns as columns
from ardvark.inference.samplers.gibbs import probit_steps as steps
from tests.support import rng


def table(N=9):
    """H (N, 4) with a row of ones, standard deviations, signs and latent values on their sides."""
    random = rng()
    H = random.standard_normal((N, 4))
    H[:, 0] = 1.0
    sd, sign = np.array([1.0, 0.3, 2.0, 1e-3]), random.choice([-1.0, 1.0], N)
    return H, sd, sign, sign * np.abs(random.standard_normal(N))


def roots(H, sd):
    """R of the module, from its definition."""
    S = np.diag(sd)
    C = np.linalg.cholesky(np.eye(len(sd)) + S @ H.T @ H @ S)
    return np.ascontiguousarray(H @ S @ np.linalg.inv(C).T)


def test_the_precision_of_the_latent_values():
    H, sd, _, _ = table()
    R = roots(H, sd)
    np.testing.assert_allclose(np.eye(9) - R @ R.T, steps.precision_matrix(H * sd), atol=1e-12)


def test_a_scan_is_that_over_rows():
    """With equal random numbers the latent values are those of the scan with P (N, N)."""
    H, sd, sign, z = table()
    R, other = roots(H, sd), z.copy()
    u = R.T @ z
    columns.latent_scan(rng(1), R, sign, 3, z, u)
    steps.latent_scan(rng(1), steps.precision_matrix(H * sd), sign, 3, other)
    np.testing.assert_allclose(z, other, rtol=1e-9)
    np.testing.assert_allclose(u, R.T @ z, rtol=1e-9)


def test_a_row_that_determines_its_weight():
    """Its leverage rounds to 1; the draw is on its side, and finite."""
    H, sd, sign, z = table()
    H[:, 1] = 0.0
    H[3, 1] = 1e9
    sd[1] = 1e9
    beta = np.empty(4)
    columns.draw_weights(rng(2), H, H.T @ H, sd, sign, 5, z, beta)
    assert np.isfinite(z).all()
    assert (z * sign > 0.0).all()
    assert np.isfinite(beta).all()
