"""The scans of JCFO's feature weights: their full conditionals, and the decision values."""

import numpy as np
import pytest
from scipy import special, stats

import ardvark as av
from ardvark.inference.samplers.gibbs import jcfo_steps as steps
from ardvark.inference.samplers.gibbs.jcfo import Sampler
from tests.inference.samplers.gibbs.jcfo_problems import (
    RATES,
    drawn,
    every_kernel,
    linear_kernels,
    log_joint,
    log_variance,
    made,
)
from tests.inference.samplers.gibbs.runs import with_counts
from tests.support import ALARM, rng


def ks(draws, cdf):
    return stats.kstest(draws, cdf).pvalue


@pytest.mark.statistical
@linear_kernels
def test_feature_weights_given_latent_values(kernel):
    """theta_k with rho_k integrated out is a truncated normal, and `linear_scan` draws it."""
    problem = made(kernel, D=4)
    sampler, _, point, random = drawn(problem)
    for k in range(4):
        slope = problem.Z.T[k] @ point["sample_weight"]
        g = problem.X[:, k] * slope
        precision = g @ g
        rest = point["z"] - point["eta"] + g * point["feature_weight"][k]
        mean = (g @ rest - problem.hypers.gamma2**0.5) / precision
        sd = precision**-0.5
        law = stats.truncnorm(-mean / sd, np.inf, loc=mean, scale=sd)

        def density(theta, rho, k=k, law=law):
            at = {"feature_weight": point["feature_weight"].copy(), "rho": point["rho"].copy()}
            at["feature_weight"][k], at["rho"][k] = theta, rho
            claimed = law.logpdf(theta) + log_variance(rho, theta, problem.hypers.gamma2)
            return log_joint(problem, point | at, point["y"]) - claimed

        values = [density(*random.exponential(1.0, 2)) for _ in range(20)]
        np.testing.assert_allclose(values, values[0], rtol=1e-8)

        def one(k=k, slope=slope, rest=rest, g=g):
            theta = point["feature_weight"][k : k + 1].copy()
            residual = point["z"] - point["eta"]
            rows = sampler.Xt[k : k + 1]
            square, slopes = sampler.square[k : k + 1], np.array([slope])
            steps.linear_scan(random, rows, slopes, square, sampler.root2, residual, theta)
            np.testing.assert_allclose(residual, rest - g * theta, atol=1e-12)
            return theta[0]

        draws = np.array([one() for _ in range(2000)])
        assert ks(draws, law.cdf) > ALARM / 4
        # negative control: a law that is an exponential or a normal, and 1.5 times as wide, is
        # 0.1 and more away; 2000 draws see 0.06
        assert ks(1.5 * draws, law.cdf) < ALARM


# kernel, degree, update, how large the sample weights are, and draws from the prior
SCANS = [
    ("polynomial", 1, "slice", 0.7, 400_000),
    ("rbf", 1, "slice", 2.0, 40_000),
    ("polynomial", 1, "truncated", 0.4, 100_000),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("kernel", "degree", "update", "size", "tries"), SCANS)
def test_a_scan_of_the_feature_weights(kernel, degree, update, size, tries):
    """Five weights, one after the other, given the latent values, or the labels without them.

    On v = exp(-root2 theta) the prior is uniform, so prior draws that are kept with the likelihood
    as their probability are draws of the conditional. Scans from a third of them end at its draws
    again; the others are what they are compared with, in each weight and the likelihood. A
    likelihood that is not renewed after a move shows in the latter, in the first case.
    """
    N, D = 16, 5
    angle = 2.0 * np.pi * (np.arange(N) + 0.25) / N
    X = np.stack([np.cos((k + 1) * angle + k) for k in range(D)], axis=1)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    y[[3, 14]] = 1 - y[[3, 14]]
    gammas = dict(zip(("gamma1", "gamma2"), RATES[kernel], strict=True))
    settings = {"kernel": kernel, "degree": degree, "parametrization": "latent"}
    problem = av.problem("jcfo", (X, y), basis=[0, 4, 8, 12], scale="fixed", **settings, **gammas)
    kind, random = with_counts(Sampler, truncated=update == "truncated"), rng(4)
    sampler = kind(problem)
    fixed = {"bias": np.zeros(()), "sample_weight": size * np.array([1.0, -1.0, 1.5, -0.5])}
    z = sampler.label_sign

    def log_likelihood(v):
        point = {n: np.broadcast_to(x, (len(v), *x.shape)) for n, x in fixed.items()}
        eta = problem.decision(point | {"feature_weight": -np.log(v) / sampler.root2})
        if update == "truncated":
            return -0.5 * ((z - eta) ** 2).sum(-1)
        return special.log_ndtr(sampler.label_sign * eta).sum(-1)

    v = random.random((tries, D))
    log_l = log_likelihood(v)
    v = v[np.log(random.random(tries)) < log_l - log_l.max()]
    ends, others = v[: len(v) // 3], v[len(v) // 3 :]
    for end in ends:
        now = sampler.state(fixed | {"feature_weight": -np.log(end) / sampler.root2})
        for _ in range(3):
            now.z[:] = z
            sampler.features(now, random)
        end[:] = np.exp(-sampler.root2 * now.theta)
    at = fixed | {"feature_weight": now.theta}
    np.testing.assert_allclose(now.eta, problem.decision(at), atol=1e-9)  # followed in place
    pairs = [*zip(ends.T, others.T, strict=True), (log_likelihood(ends), log_likelihood(others))]
    assert len(ends) > 300
    for end, other in pairs:
        assert stats.ks_2samp(end, other).pvalue > ALARM / len(pairs)


@every_kernel
def test_decision_values_follow_a_feature(kernel, degree):
    """One theta_k, and a scan of all, against the decision values of the problem."""
    problem = made(kernel, degree, N=6, D=4, B=3)
    sampler, state, point, random = drawn(problem)
    for k, change in ((2, 0.7), (0, -0.4 * state.theta[0])):
        theta, found = point["feature_weight"].copy(), np.empty(6)
        theta[k] += change
        steps.shifted_decision(
            sampler.kernel_function.code, degree, sampler.Xt[k], sampler.Zt[k], change,
            problem.Z[:, k] @ point["sample_weight"], state.beta, state.inner, state.eta, found,
        )  # fmt: skip
        want = problem.decision(point | {"feature_weight": theta})
        np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-11)
    sampler = with_counts(Sampler, truncated=False)(problem)
    sampler.set_labels(point["y"])
    for _ in range(3):
        sampler.features(state, random)
    assert (state.theta != point["feature_weight"]).all()
    want = problem.decision(point | {"feature_weight": state.theta})
    np.testing.assert_allclose(state.eta, want, rtol=1e-8, atol=1e-10)
    followed = state.inner.copy()
    sampler.kernel(state)
    np.testing.assert_allclose(state.inner, followed, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(state.H @ state.beta, want, rtol=1e-8, atol=1e-10)
