"""JCFO's two steps against quadrature, finite differences and dense formulas.

Negative controls: the rates as printed in (24), (25) must fail the checks that the right ones pass.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from ardvark.inference.papers.jcfo import em_steps as jcfo_em_steps
from ardvark.inference.papers.jcfo.em_steps import Basis, profile
from ardvark.models.parts.kernels import make_kernel
from tests.inference.papers.jcfo.problems import RATES, arrays, climb
from tests.support import rng

# --- E-step ---------------------------------------------------------------------------------------


def test_latent_moments_of_saturated_probabilities():
    y, eta = np.array([1.0, 0.0, 1.0, 0.0]), np.array([-1e8, 1e8, 1e8, -1e8])
    v, score = jcfo_em_steps.latent_mean(y, eta), jcfo_em_steps.score(y, eta)
    np.testing.assert_allclose(v, [1e-8, -1e-8, 1e8, -1e8], rtol=1e-10)
    np.testing.assert_allclose(score, [1e8, -1e8, 0.0, 0.0], rtol=1e-10)


# --- M-step ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("N", "M"), [(7, 12), (12, 7), (9, 9)])
def test_primal_dual_and_singular_value_forms_are_one(N, M, monkeypatch):
    random = rng(N)
    H, v = random.standard_normal((N, M)), random.standard_normal(N)
    variance = random.exponential(size=M)
    omega = np.diag(1 / variance)
    want = np.linalg.solve(omega + H.T @ H, H.T @ v)  # (29)
    variance_0 = np.where(np.arange(M) == 2, 0.0, variance)
    primal_0 = profile(H, v, variance_0, "primal")
    for form in ("primal", "dual", "smaller", "singular"):
        if form == "singular":
            monkeypatch.setattr(jcfo_em_steps, "_STIFF", 0.0)
        beta, r = profile(H, v, variance, form)
        np.testing.assert_allclose(beta, want, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(r, v - H @ want, rtol=1e-12, atol=1e-12)
        beta, r = profile(H, v, variance_0, form)
        assert beta[2] == 0.0
        np.testing.assert_allclose(beta, primal_0[0], rtol=1e-12, atol=1e-12)


def test_a_stiff_ridge_regression_is_still_exact():
    random = rng(0)
    U, V = (np.linalg.qr(random.standard_normal((6, 6)))[0] for _ in range(2))
    d = 10.0 ** np.arange(-2, 10, 2)
    v = random.standard_normal(6)
    beta, r = profile(U @ np.diag(d) @ V.T, v, np.ones(6))
    # the matrix itself is rounded: 1e8 * 1e-16 in every direction
    np.testing.assert_allclose(U.T @ r, U.T @ v / (1 + d * d), rtol=1e-4, atol=1e-11)
    np.testing.assert_allclose(V.T @ beta, U.T @ v * d / (1 + d * d), rtol=1e-4)


def test_the_seed_has_its_transpose():
    random = rng(4)
    for shape in ((6, 9), (9, 6)):
        H, y = random.standard_normal(shape), random.integers(2, size=shape[0]).astype(float)
        for epsilon in (1e-6, 1.0):
            want = np.linalg.lstsq(
                np.r_[H, epsilon**0.5 * np.eye(shape[1])], np.r_[y, np.zeros(shape[1])]
            )[0]
            got = jcfo_em_steps.ridge_seed(H, y, epsilon)
            np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)
    basis = Basis(*2 * (arrays(8, 3)[0],))
    beta, theta = jcfo_em_steps.seed(basis, y[:8], (1.0, 1.0), 0, random)
    assert (theta == 1.0).all()
    np.testing.assert_array_equal(beta, jcfo_em_steps.ridge_seed(basis.evaluate(theta)[0], y[:8]))


# --- the climb ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "rbf"])
def test_units_of_X_change_nothing(kernel):
    """X in units c times smaller is theta / c^2 and a rate c^2 times larger: the same climb.

    An optimiser whose stopping rule has a scale stops at once where theta is small.
    """
    X, y = arrays(25, 30)
    rates = RATES[kernel, 1]
    ends = []
    for c in (1.0, 100.0, 0.01):
        scaled = (rates[0], rates[1] * c**2)
        run = climb(Basis(c * X, c * X, make_kernel(kernel)), y, scaled, 1, max_iterations=40)
        ends.append(run.objective[-1] - 30 * np.log(c**2))
    # in exact arithmetic they are one; what the optimiser rounds goes through 40 iterations
    np.testing.assert_allclose(ends, ends[0], atol=1e-3)


def test_pruning_only_saves_time():
    """On fixed data, where no pruned weight decides between two maxima; the gap shrinks."""
    X, y = arrays(25, 8, generator=np.random.default_rng)
    basis, rates = Basis(X, X), (1.0, 8.0)
    given = {"generator": np.random.default_rng}
    high, low, off = (
        climb(basis, y, rates, prune=p, **given).objective[-1] for p in (1e-2, 1e-4, 0.0)
    )
    assert abs(low - off) < abs(high - off)
    assert abs(high - off) < 1e-5  # 100 times the tolerance at which a climb ends


def test_a_climb_goes_on_while_weights_are_set_to_zero():
    """Two iterations change nothing and prune; the third ends it."""
    settled = iter([True, True, False])
    state = SimpleNamespace(objective=-3.0, beta=np.ones(4), theta=np.ones(2), features=[0, 1])
    state.step = lambda *inner: None
    state.prune = lambda limit: limit == jcfo_em_steps._SETTLED and next(settled)
    run = jcfo_em_steps.iterate(state, jcfo_em_steps.EngineOptions())
    assert len(run.objective) == 1 + 3
    assert not run.reason
