"""Re-estimation of PFCVM's precisions: formulas, fixed points, special cases, pruning, drift."""

import numpy as np
import pytest
from scipy import special

import ardvark as av
from ardvark.inference.papers.pfcvm import lp as pfcvm_lp
from ardvark.models.parts.kernels import make_kernel
from tests.inference.papers.pfcvm.dense import LP, details_of, fit, make, start

# --- special cases --------------------------------------------------------------------------------


def test_rvm_finds_tippings_fixed_point():
    """Against a plain loop with dense matrices, from the same start.

    The data are fixed: on others some precisions are still on their slow way to infinity.
    """
    given = {"noise": 1.0, "kernel": "rbf", "feature_scale": 0.5}
    problem = make("rvm", N=40, D=2, generator=np.random.default_rng, **given)
    run = pfcvm_lp.iterate(
        start(problem, update_bias=False), LP(stopping="change", tolerance=1e-10)
    )
    assert not run.reason
    e = run.engine
    Phi = np.c_[np.ones(40), make_kernel("rbf").gram(problem.X, problem.Z, np.full(2, 0.5))]
    kept, alpha, u = np.arange(41), np.ones(41), np.zeros(41)
    for _ in range(2000):
        P = Phi[:, kept]
        for _ in range(30):
            p = special.expit(P @ u)
            H = P.T @ ((p * (1 - p))[:, None] * P) + np.diag(alpha)
            u = u + np.linalg.solve(H, P.T @ (problem.y - p) - alpha * u)
        gamma = 1 - alpha * np.diag(np.linalg.inv(H))
        alpha[1:] = (np.maximum(gamma, 1e-16) / u**2)[1:]
        keep = alpha < 1e9
        kept, alpha, u = kept[keep], alpha[keep], u[keep]
    assert set(kept[1:] - 1) == set(e.sample.index[e.sample.p < 1e6][1:])
    big = e.sample.p < 1e6
    np.testing.assert_allclose(e.sample.u[big], u, rtol=1e-3)
    np.testing.assert_allclose(e.sample.p[big], alpha, rtol=1e-3)


# --- pruning and scale ----------------------------------------------------------------------------


def settle(problem, threshold, iterations):
    """Run with features pruned above a threshold, samples never; return eta and the engine."""
    e = start(problem, feature_threshold=threshold)
    e.thresholds = np.inf, e.thresholds[1]
    options = LP(stopping="change", tolerance=1e-15, max_iterations=iterations)
    e = pfcvm_lp.iterate(e, options).engine
    return e.design(e.feature.u) @ e.sample.u, e


@pytest.mark.parametrize(("kernel", "number"), [("rbf", 3), ("linear", 1)])
def test_pruning_agrees_with_none_as_the_threshold_rises(kernel, number):
    """On fixed data where the scale settles; where it drifts (below) no threshold is high enough.

    A weight of precision p has a mode of at most lam / p where the data say nothing, and moves eta
    by that times its column of the Jacobian.
    """
    problem = make(N=40, D=6, number=number, kernel=kernel, generator=np.random.default_rng)
    full, e = settle(problem, np.inf, 150)
    assert len(e.feature.u) == 6
    assert (e.feature.p < 1e3).any()
    gaps, felt = [], 5.0 * np.abs(e.jacobian(e.feature.u)).max()
    for threshold in (100.0, 1000.0):
        eta, e = settle(problem, threshold, 150)
        assert 1 <= len(e.feature.u) < 6
        gaps.append(np.abs(eta - full).max())
        assert gaps[-1] < felt / threshold
    assert gaps[0] > 2 * gaps[1] > 0.0


def test_a_drift_that_loses_the_informative_feature_is_said():
    """The paper's text (stop when little changes) against its algorithm 1 (stop at the top).

    On fixed data: it happens on most, but not on all.
    """
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 500))
    problem = av.problem("pfcvm", (X, (X[:, 7] > 0).astype(int)))
    top, end = (fit(problem, stopping=s) for s in ("rise", "change"))
    assert top.attrs["status"] == "finished"
    assert details_of(top)["feature_mode"].argmax() == 7
    assert end.attrs["status"] == "not_converged"
    assert "the objective fell by" in end.attrs["reason"]
    assert not details_of(end)["selected_feature"][7]
    assert end.attrs["objective"] < top.attrs["objective"] - 10
