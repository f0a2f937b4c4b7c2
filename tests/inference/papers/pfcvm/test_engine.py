"""PFCVM's engine: curvature without D x D matrices, evidence by quadrature, the bound of rbf."""

import numpy as np
import pytest
from scipy import special, stats

import ardvark as av
from ardvark.inference.papers.pfcvm import lp as pfcvm_lp
from ardvark.inference.papers.pfcvm.curvature import Block, Curvature
from tests.inference.papers.ascent import differences
from tests.inference.papers.pfcvm.dense import (
    LP,
    Paper,
    anywhere,
    make,
    slabs,
    start,
    values,
)
from tests.inference.papers.whitened import check_standard_normal
from tests.support import rng

# --- Sigma ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("N", "K"), [(6, 40), (6, 6), (12, 5)])
@pytest.mark.parametrize("saturated", [False, True])
def test_woodbury_equals_dense(N, K, saturated):
    random = rng(N + K)
    V, R = 10.0 ** random.uniform(-3, 4, K), random.standard_normal((N, K))
    if saturated:
        R[: N - 2] = 0.0  # C = 0
    c = Curvature(V, R)
    Sigma = np.linalg.inv(np.diag(V) + R.T @ R)
    g = random.standard_normal((K, 3))
    np.testing.assert_allclose(c.solve(g), Sigma @ g, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(c.solve(g[:, 0]), Sigma @ g[:, 0], rtol=1e-9, atol=1e-9)
    assert c.log_det() == pytest.approx(np.linalg.slogdet(Sigma)[1], rel=1e-11)
    variance, share = c.moments()
    np.testing.assert_allclose(variance, np.diag(Sigma), rtol=1e-9)
    np.testing.assert_allclose(share, 1.0 - V * np.diag(Sigma), atol=1e-12)
    np.testing.assert_allclose(c.factor() @ c.factor().T, Sigma, rtol=1e-8, atol=1e-10)
    L = c.inverse_factor()
    np.testing.assert_allclose(L @ L.T, np.diag(V) + R.T @ R, rtol=1e-12, atol=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize(("N", "K"), [(6, 40), (12, 5)])
def test_draws_of_a_curvature_have_its_covariance(N, K):
    random = rng(N + K)
    c = Curvature(10.0 ** random.uniform(-3, 4, K), random.standard_normal((N, K)))
    root = np.linalg.cholesky(np.diag(c.V) + c.R.T @ c.R)  # of the inverse covariance
    check_standard_normal(c.draws(random, 40_000) @ root)


def test_gamma_without_cancellation():
    """At p so large that 1 - p Sigma_kk is rounding noise: (O + r^2) / (p + O + r^2)."""
    one, p, r = np.ones(1), 1e17, 3.0
    for N in (1, 2):  # the K x K and the N x N form
        block = Block(
            0 * one, p * one, 5 * one, 0 * one, 0 * one, np.zeros(1, int), one > 2, one > 2, 0 * one
        )  # fmt: skip
        R = np.zeros((1, 2)) if N == 1 else np.zeros((2, 1))
        R[0, 0] = r
        V = np.full(R.shape[1], p + 6.25)
        got = block.gamma(Curvature(V, R).moments()[1][:1])
        assert got[0] == pytest.approx((6.25 + r**2) / (p + 6.25 + r**2), rel=1e-9)


# --- the model's own prior ------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
def test_the_returned_state_is_a_maximum_of_Q(model):
    """`kkt` is its largest slope, per posterior sd; theta stays where it is fixed."""
    problem = make(model, N=18, **slabs(model))
    options = LP(hyperprior="model", max_iterations=40)
    run = pfcvm_lp.iterate(start(problem, hyperprior="model"), options)
    # a climb ends at a Newton decrement of 1e-12, 1e-6 of an sd in its worst direction
    assert run.kkt < 1e-4
    paper, at = Paper(problem, own=True), values(run.engine)
    for name in ("w", "theta") if model == "pfcvm" else ("w",):
        assert np.abs(differences(paper.Q, at, name)).max() < 1e-3
    if model != "pfcvm":
        np.testing.assert_array_equal(at["theta"], problem.hypers.feature_scale)
    run.engine.sample.u = run.engine.sample.u + run.of_w.moments()[0] ** 0.5
    assert pfcvm_lp.kkt(run) > 0.1


@pytest.mark.parametrize("N", [300, 1200])
def test_objective_is_the_log_evidence_where_laplace_is_good(N):
    """One real weight and the bias, many data: against a grid, to the order of 1/N.

    N times the error is near -1.4 (-1.32 to -1.42 over 8 seeds): the next term of the expansion.
    """
    random = rng(2)
    x = random.standard_normal(N)
    y = (random.random(N) < special.expit(0.8 * x + 0.2)).astype(int)
    problem = av.problem("rvm", (x[:, None], y), basis=np.array([[1.0]]), feature_scale=1.0)
    e = start(problem)
    e.climb(5, 1e-12)
    sd = e.curvatures()[0].moments()[0] ** 0.5
    # trapezoids of a quarter sd are exact to rounding where the integrand is nearly Gaussian
    t = np.linspace(-9, 9, 73)
    b, w = (u + t * s for u, s in zip(e.sample.u, sd, strict=True))
    K = e.kernel(e.feature.u)[:, 0]
    eta = b[:, None, None] + w[:, None] * K
    joint = special.log_expit((2 * y - 1) * eta).sum(axis=-1)
    joint += stats.norm.logpdf(b, 0, e.sample.p[0] ** -0.5)[:, None]
    joint += stats.norm.logpdf(w, 0, e.sample.p[1] ** -0.5)
    log_evidence = special.logsumexp(joint) + np.log(sd.prod() * (t[1] - t[0]) ** 2)
    assert abs(e.evidence(*e.curvatures()) - log_evidence) < 2.0 / N


def test_objective_is_continuous_under_pruning():
    """A weight of precision p and its removal differ by c / p + O(p^-2).

    c is a sum of squared slopes, of the order of lam^2 = 25, so between the two p it moves by about
    c^2 / 10^4 (0.03 was seen). A term of the objective lost with the weight would move it by 10^5.
    """
    e = anywhere(make(N=12, D=6), low=0.05)
    scaled = []
    for p in (1e4, 1e5):
        with_it, without = e.copy(), e.copy()
        for state in (with_it, without):
            state.feature.p = np.where(np.arange(6) == 2, p, state.feature.p)
            state.sample.p = np.where(np.arange(13) == 5, p, state.sample.p)
        without.thresholds = (p / 10, p / 10)
        without.prune(1)
        assert len(without.feature.u) == 5
        assert len(without.sample.u) == 12
        for state in (with_it, without):
            state.climb(300, 1e-14)  # modes to 1e-7 of an sd; rounding leaves 1e-15
        values = [state.evidence(*state.curvatures()) for state in (with_it, without)]
        scaled.append(p * (values[0] - values[1]))
    assert scaled[0] == pytest.approx(scaled[1], abs=1.0)


# --- the bound of an rbf kernel -------------------------------------------------------------------


def test_an_rbf_kernel_grows_at_no_theta_it_accepts():
    e = start(make(N=40, D=6, number=2, kernel="rbf"))
    assert e.kernel(np.full(6, -0.1)) is None
    harmless = e.kernel(np.r_[0.5 * np.ones(5), -1e-9])
    assert harmless.max() <= 1.0


def repelled():
    """One class far apart in feature 1, the other between: theta_1 < 0 would draw it together."""
    random = rng(2)
    y = np.repeat([0, 1], 20)
    apart = np.where(y == 1, np.tile([-2.0, 2.0], 20), 0.0) + 0.1 * random.standard_normal(40)
    return np.c_[random.standard_normal(40), apart], y


@pytest.mark.parametrize("update", ["mackay", "em"])
def test_an_rbf_kernel_never_grows_where_the_data_want_it_to(update):
    run = pfcvm_lp.iterate(
        start(av.problem("pfcvm", repelled(), kernel="rbf"), feature_threshold=np.inf),
        LP(update=update, max_iterations=30),
    )
    e = run.engine
    assert e.bounded
    assert e.rejected > 0
    assert (e.feature.u >= 0.0).all()
    assert e.kernel(e.feature.u).max() <= 1.0
    assert run.kkt < 1e-4  # of a posterior sd, as at the other maxima of Q above
