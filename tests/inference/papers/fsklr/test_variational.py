"""FS-SKLR's algorithm 2 against naive loops, Polya-Gamma mean field, quadrature, Monte Carlo.

Negative control: a variational update with a wrong rho must fail the checks that the right one
passes.
"""

import math

import numpy as np
import pytest
from scipy import special, stats

from ardvark.inference.papers.fsklr import variational as fsklr_variational
from ardvark.inference.papers.fsklr.variational import (
    gaussian,
    in_rows,
    jaakkola_jordan,
    logistic,
    precision_root,
)
from tests.inference.papers.whitened import check_standard_normal
from tests.support import rng


def kernel_matrix(N=14, A=6, number=0):
    random = rng(number)
    return (
        random.standard_normal((N, A)),
        random.integers(2, size=N).astype(float),
        random.random(N),
    )


# --- algorithm 2, logistic ------------------------------------------------------------------------


def test_lambda_is_half_the_mean_of_a_polya_gamma():
    """PG(1, c) is a sum of gammas: mean sum_k 1 / (2 pi^2 ((k - 1/2)^2 + c^2 / 4 pi^2))."""
    k = np.arange(1, 2_000_001)
    for c in (0.0, 1e-6, 5e-4, 2e-3, 0.7, 9.0):
        series = np.sum(1 / ((k - 0.5) ** 2 + c**2 / (4 * math.pi**2))) / (2 * math.pi**2)
        tail = 1 / (2 * math.pi**2 * k[-1])
        got = 2 * jaakkola_jordan(np.array([c]))[0]
        assert got == pytest.approx(series + tail, rel=1e-10)
    np.testing.assert_allclose(jaakkola_jordan(np.array([1e200])), 0.25e-200)


@pytest.mark.parametrize("xi", [1e-3, 1.0, 50.0])
def test_logistic_elbo_never_falls_and_is_a_bound(xi):
    for number in range(2):
        K, y, rho = kernel_matrix(12, 1 + number, number)
        for start in (40 * rho, 1e-9 * rho):
            q = logistic(K, y, xi, start, 2000, 1e-12)
            assert q.converged
            assert np.diff(q.elbo).min() > -1e-10
            s = 2 * y - 1

            width = np.sqrt(np.diag(q.covariance()))
            axes = [
                np.linspace(m - 12 * w, m + 12 * w, 401) for m, w in zip(q.mean, width, strict=True)
            ]
            a = np.stack(np.meshgrid(*axes), -1).reshape(-1, len(axes))
            joint = special.log_expit(s * (a @ K.T)).sum(1)
            joint += stats.norm.logpdf(a, 0, xi**-0.5).sum(1)
            cell = np.log([axis[1] - axis[0] for axis in axes]).sum()
            evidence = special.logsumexp(joint) + cell
            assert q.elbo[-1] < evidence + 1e-6


def test_moments_in_eta_are_those_of_the_coefficients():
    """Also of an observation that no coefficient reaches, and where the data say much."""
    K, y, rho = kernel_matrix(14, 20)
    K[3] = 0.0
    for scale in (1e-3, 1.0, 1e3):
        C, weight = scale**2 * K @ K.T / 0.7, 0.01 + 0.2 * rho
        mean, variance, evidence = in_rows(C, weight, y - 0.5)
        S = np.linalg.inv(0.7 * np.eye(20) + scale**2 * K.T @ (weight[:, None] * K))
        want = scale**2 * K @ S @ K.T
        np.testing.assert_allclose(mean, want @ (y - 0.5), rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(variance, np.diag(want), rtol=1e-7, atol=1e-12)
        half = 0.5 * (y - 0.5) @ want @ (y - 0.5)
        assert evidence == pytest.approx(half + 0.5 * np.linalg.slogdet(0.7 * S)[1], rel=1e-7)


def test_a_kernel_of_large_values_is_not_computed_in_eta(monkeypatch):
    K, y, rho = kernel_matrix(A=14)
    monkeypatch.setattr(fsklr_variational, "in_rows", None)
    assert len(logistic(1e4 * K, y, 1.0, rho, 3, 1e-300).elbo) == 3
    with pytest.raises(TypeError, match="not callable"):  # others are
        logistic(K, y, 1.0, rho, 3, 1e-300)


def test_the_whole_kernel_matrix_fits_coefficients_of_samples_that_are_off():
    """(30)-(35) have K without z. By (27) its columns are z_j k: an off alpha_j is N(0, 1/xi)."""
    K, y, rho = kernel_matrix(A=14)
    z, xi = np.arange(14) % 3 > 0, 0.7
    whole, masked, on = (logistic(k, y, xi, rho, 500, 1e-10) for k in (K, K * z, K[:, z]))
    np.testing.assert_allclose(masked.mean[~z], 0.0, atol=1e-9)
    np.testing.assert_allclose(np.diag(masked.covariance())[~z], 1.0 / xi, rtol=1e-9)
    np.testing.assert_allclose(masked.mean[z], on.mean, atol=1e-5)  # what the search computes
    assert np.abs(whole.mean[~z]).min() > 1e-3
    assert (np.diag(whole.covariance())[~z] < 0.95 / xi).all()


@pytest.mark.parametrize("fit", ["logistic", "gaussian"])
def test_no_sample_in_use(fit):
    K, y, rho = kernel_matrix(9, 0)
    if fit == "logistic":
        q = logistic(K, y, 1.0, rho, 50, 1e-10)
        assert q.elbo[-1] == pytest.approx(9 * np.log(0.5))
    else:
        q = gaussian(K, 2 * y - 1, 1.0, (3.0, 2.0), 50, 1e-10)
        s = stats.multivariate_t(np.zeros(9), (2.0 / 3.0) * np.eye(9), df=6.0)
        assert q.elbo[-1] == pytest.approx(s.logpdf(2 * y - 1))  # q(tau) is exact there
    assert q.draw(rng(0)).shape == (0,)
    assert q.covariance().shape == (0, 0)


def test_a_stiff_precision_is_still_exact(monkeypatch):
    K, _, rho = kernel_matrix()
    want = 0.3 * np.eye(6) + K.T @ (rho[:, None] * K)
    for limit in (1e10, 0.0):
        monkeypatch.setattr(fsklr_variational, "_STIFF", limit)
        R = precision_root(K, rho, 0.3)
        np.testing.assert_allclose(R.T @ R, want, rtol=1e-12)
        np.testing.assert_array_equal(R, np.triu(R))
    # one column 1e12 times the prior: the square of it would lose xi
    monkeypatch.undo()
    column = 1e12 * np.ones((5, 1))
    R = precision_root(np.c_[column, column], np.ones(5), 1.0)
    along = np.array([1.0, -1.0]) / 2**0.5  # there the data say nothing: precision xi
    assert np.linalg.norm(R @ along) == pytest.approx(1.0, rel=2e-3)


def test_a_kernel_of_low_rank_gives_the_same_q():
    """With an orthonormal basis of the rows of K: bound, moments and rho."""
    K, y, rho = kernel_matrix(14, 3)
    K = K @ rng(1).standard_normal((3, 12))  # rank 3; all of K is computed in eta
    basis = np.linalg.svd(K)[2][:3].T
    # 4 iterations: at the end the two may stop at different ones, for the bound then only rounds
    for model in ("logistic", "gaussian"):
        first, last = (y, rho) if model == "logistic" else (2 * y - 1, (3.0, 2.0))
        run = logistic if model == "logistic" else gaussian
        whole, small = (run(M, first, 0.7, last, 4, 1e-300) for M in (K, K @ basis))
        small.basis = basis
        np.testing.assert_allclose(small.elbo, whole.elbo, rtol=1e-10)
        np.testing.assert_allclose(small.mean, whole.mean, atol=1e-9)
        np.testing.assert_allclose(small.covariance(), whole.covariance(), atol=1e-9)
        assert small.tau_rate == pytest.approx(whole.tau_rate, nan_ok=True)


@pytest.mark.statistical
@pytest.mark.parametrize("rank", [6, 2])
def test_draws_of_q(rank):
    K, y, rho = kernel_matrix()
    basis = None
    if rank < 6:
        basis = np.linalg.qr(K[:rank].T)[0]
        K = K @ basis
    q = logistic(K, y, 0.7, rho, 100, 1e-10)
    q.basis = basis
    random = rng(0)
    draws = np.array([q.draw(random) for _ in range(20_000)])
    root = np.linalg.cholesky(np.linalg.inv(q.covariance()))
    check_standard_normal((draws - q.mean) @ root)
