"""The scale with the weights integrated out: its steps keep the law of scale and latent values."""

import numpy as np
import pytest
from scipy import stats

from ardvark.inference.samplers.gibbs import collapsed_scale
from ardvark.models import ZOO
from ardvark.models.jcfo import simulate_scale
from tests.inference.samplers.gibbs.step_bench import posed, quick
from tests.support import ALARM, rng

N, D = 5, 8
X, B = (rng(4).standard_normal((N, k)) for k in (D, 2))
HYPERS = ZOO["sparse_probit"].Hypers(scale="learned")


def covariance(g):
    return np.eye(N) + B @ B.T + g**2 * X @ X.T


def test_the_precision_is_that_of_the_dense_formula():
    """Of the weights' variances after the step, those of bias and covariates among them."""
    sampler = quick(posed("sparse_probit", "fat", True, scale="learned"))
    random = rng(2)
    state = sampler.start(random, 0)
    for _ in range(3):
        sampler.sweep(state, random)
        before, H = state.scale, sampler.design(state)
        P = sampler.latent(state, random, H, np.sqrt(state.tau))
        assert state.scale != before
        dense = np.linalg.inv(np.eye(len(H)) + (H * state.tau) @ H.T)
        np.testing.assert_allclose(P, dense, rtol=1e-7, atol=1e-9)
        assert (np.sign(state.z) == sampler.label_sign).all()


def p_values(cycles, replicates=3000, **wrong):
    """KS of g, of the length of z and of a latent value after cycles, from draws of all of them.

    Labels are the signs of z. So (g, z) has after a step the law that it had before: g its prior,
    and z given g its normal law, of which two white numbers are looked at.
    """
    random, found = rng(7), collapsed_scale.spectrum(X, B)._replace(**wrong)
    prior, g, white = (np.empty((replicates, *s)) for s in ((), (), (N,)))
    for r in range(replicates):
        prior[r], start = (float(simulate_scale(random, HYPERS)["feature_scale"]) for _ in "ab")
        z = np.linalg.cholesky(covariance(start)) @ random.standard_normal(N)
        g[r] = collapsed_scale.move(random, cycles, start, found, np.sign(z), z)
        white[r] = np.linalg.solve(np.linalg.cholesky(covariance(g[r])), z)
    return (
        stats.ks_2samp(g, prior).pvalue,
        stats.kstest((white**2).sum(1), stats.chi2(N).cdf).pvalue,
        stats.kstest(white[:, 0], stats.norm.cdf).pvalue,
    )


@pytest.mark.statistical
@pytest.mark.parametrize("cycles", [1, 6])
def test_cycles_keep_the_law_of_scale_and_latent_values(cycles):
    assert min(p_values(cycles)) > ALARM


@pytest.mark.statistical
def test_another_basis_is_seen():
    """Of four times the variances: -log10 p is 40 and more, where 6 is enough."""
    values = 4.0 * collapsed_scale.spectrum(X, B).values
    assert min(p_values(6, values=values)) < ALARM
