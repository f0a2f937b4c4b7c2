"""The steps that JCFO and sparse probit share: draws, full conditionals and scale moves.

Where a step is a draw, its law is known. Where it only leaves a law invariant it starts at a draw
of that law, so that where it ends is one too: exact Kolmogorov-Smirnov tests, whose false alarm is
ALARM over all those of a test. The sampler that takes the steps is JCFO's.
"""

import copy

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import special, stats

from ardvark.inference.samplers.gibbs import jcfo as gibbs_jcfo
from ardvark.inference.samplers.gibbs import probit
from ardvark.inference.samplers.gibbs import probit_steps as steps
from ardvark.inference.samplers.gibbs.positive_draw import positive_draw
from tests.inference.batches import batch_mean, exactly, largest_t
from tests.inference.samplers.gibbs.jcfo_problems import (
    drawn,
    every_kernel,
    linear_kernels,
    log_joint,
    log_variance,
    made,
)
from tests.support import ALARM, rng

ESS_FLOOR = 400


def ks(draws, cdf):
    return stats.kstest(draws, cdf).pvalue


# --- draws ----------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("precision", [0.04, 1.0, 1e6])
@pytest.mark.parametrize("t", [-1e4, -41.0, -10.01, -9.99, -3.0, -0.2, 0.0, 0.7, 40.0])
def test_truncated_normal_draws(t, precision):
    random = rng()
    sd = precision**-0.5
    x = np.array([positive_draw(random, t / sd, precision) for _ in range(4000)])
    assert (x > 0).all()
    assert ks(x / sd, stats.truncnorm(-t, np.inf, loc=t).cdf) > ALARM


@pytest.mark.statistical
def test_truncated_normal_limits():
    """No precision at all leaves the exponential; so does a mean too far away for its square."""
    random = rng()
    for precision in (0.0, 1e-300, 1.0):
        x = np.array([positive_draw(random, -1e200, precision) for _ in range(2000)])
        assert ks(x * 1e200, stats.expon.cdf) > ALARM / 3
    # a failure comes out, and does not loop for ever
    assert np.isnan(positive_draw(random, np.nan, 1.0))
    assert np.isnan(positive_draw(random, -1.0, np.nan))


@pytest.mark.statistical
@pytest.mark.parametrize("gamma", [0.3, 50.0])
@pytest.mark.parametrize("weight", [0.0, 1e-9, 0.05, 1.0, 30.0])
def test_variance_draws(weight, gamma):
    random = rng()
    tau = np.empty(4000)
    steps.draw_variances(random, np.full(len(tau), -weight), gamma, tau)
    if weight < 1e-6:  # the limit 1 / tau ~ gamma / chi-squared(1)
        assert ks(gamma * tau, stats.chi2(1).cdf) > ALARM
    else:
        law = stats.invgauss(1 / (np.sqrt(gamma) * weight), scale=gamma)
        assert ks(1 / tau, law.cdf) > ALARM


def test_log_likelihood():
    random = rng()
    for scale in (0.1, 3.0, 50.0, 1e4):
        eta, sign = scale * random.standard_normal(500), random.choice([-1.0, 1.0], 500)
        want = special.log_ndtr(sign * eta).sum()
        assert steps.log_likelihood(sign, eta) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e7])
def test_precision_matrix(size):
    """(I + c v v')^-1 = I - c v v' / (1 + c v'v); the plain inverse fails where c is large."""
    v = rng().standard_normal((6, 1))
    want = np.eye(6) - v @ v.T / (size**-2 + v.T @ v)
    error = np.abs(steps.precision_matrix(size * v) - want).max()
    plain = np.abs(np.linalg.inv(np.eye(6) + size**2 * v @ v.T) - want).max()
    assert error < 1e-8
    assert plain < 1e-8 or size > 1e6
    assert plain > 1e-4 or size < 1e6


# --- full conditionals ----------------------------------------------------------------------------


@every_kernel
def test_variances_given_weights(kernel, degree):
    problem = made(kernel, degree)
    h = problem.hypers
    random = rng(2)
    wrong = {"tau": [], "tau_bias": [], "rho": []}
    for _ in range(20):
        point, other = problem.simulate(random), problem.simulate(random)
        y = point["y"]
        for names, gamma in (
            (("tau", "sample_weight"), h.gamma1),
            (("tau_bias", "bias"), h.gamma1),
            (("rho", "feature_weight"), h.gamma2),
        ):
            name, weight = names[0], point[names[1]]
            moved = point | {name: other[name]}
            difference = log_joint(problem, moved, y) - log_joint(problem, point, y)

            def claimed(rate=None, x=point[name], x2=other[name], weight=weight, gamma=gamma):
                new = log_variance(x2, weight, gamma, rate=rate)
                return np.sum(new - log_variance(x, weight, gamma, rate=rate))

            assert difference == pytest.approx(claimed(), rel=1e-8, abs=1e-8)
            wrong[name].append(abs(difference - claimed(rate=gamma)))
    for name in wrong:  # negative control: gamma in the place of its root
        assert max(wrong[name]) > 0.1


@pytest.mark.statistical
def test_latent_values_and_weights():
    """z_i with beta integrated out, and beta given z, by the primal formula with (B + 1)^2."""
    problem = made("rbf", N=6, B=4)
    sampler, state, point, random = drawn(problem)
    y, H, tau = point["y"], state.H, state.tau
    np.testing.assert_allclose(H @ state.beta, point["eta"], rtol=1e-9, atol=1e-12)
    V = np.linalg.inv(H.T @ H + np.diag(1 / tau))
    P = np.eye(len(y)) - H @ V @ H.T
    np.testing.assert_allclose(steps.precision_matrix(H * np.sqrt(tau)), P, atol=1e-10)

    def density(z, beta):
        """The joint log density less that of beta given z: z's own."""
        at = {"z": z, "bias": beta[0], "sample_weight": beta[1:]}
        given = stats.multivariate_normal(V @ H.T @ z, V, allow_singular=True)
        return log_joint(problem, point | at, y) - given.logpdf(beta)

    z = point["z"]
    reference = density(z, state.beta)
    for i in (0, 3):
        mean, sd = z[i] - (P @ z)[i] / P[i, i], P[i, i] ** -0.5
        for _ in range(10):
            other = z.copy()
            other[i] = sampler.label_sign[i] * random.exponential(1.0)
            beta = random.normal(V @ H.T @ other, np.sqrt(np.diag(V)))
            claimed = stats.norm.logpdf(other[i], mean, sd) - stats.norm.logpdf(z[i], mean, sd)
            assert density(other, beta) - reference == pytest.approx(claimed, abs=1e-6)
        order = np.roll(np.arange(len(y)), -i)  # the scan's first is the one with a known law
        draws = np.empty(2000)
        for s in range(len(draws)):
            moved = z[order].copy()
            steps.latent_scan(
                random,
                np.ascontiguousarray(P[np.ix_(order, order)]),
                sampler.label_sign[order],
                1,
                moved,
            )
            draws[s] = sampler.label_sign[i] * moved[0]
        mean *= sampler.label_sign[i]
        assert ks(draws, stats.truncnorm(-mean / sd, np.inf, loc=mean, scale=sd).cdf) > ALARM / 2

    sampler.latent_scans = sampler.elliptical_steps = 0
    white = np.empty((2000, len(tau)))
    scale = np.empty(len(white))
    factor = np.linalg.cholesky(V)
    for s in range(len(white)):
        now = copy.deepcopy(state)
        sampler.weights(now, random)
        white[s] = np.linalg.solve(factor, now.beta - V @ H.T @ now.z)
        scale[s] = now.z @ P @ now.z
        np.testing.assert_allclose(now.z / z, now.z[0] / z[0])
    level = ALARM / (len(tau) + 2)
    assert ks(scale, stats.chi2(len(y)).cdf) > level
    assert min(ks(w, stats.norm.cdf) for w in white.T) > level
    assert ks(np.sum(white**2, axis=1), stats.chi2(len(tau)).cdf) > level


@pytest.mark.statistical
def test_elliptical_step():
    """Two weights, whose posterior given tau is known by quadrature; 20 batches of 400 steps."""
    problem = made("polynomial", N=8, B=1)
    sampler, state, _, random = drawn(problem, 3)
    sd = np.sqrt(state.tau)
    axis = np.linspace(-8.0, 8.0, 500)
    beta = np.stack(np.meshgrid(axis * sd[0], axis * sd[1], indexing="ij"), axis=-1)
    eta = beta @ state.H.T
    log_p = special.log_ndtr(sampler.label_sign * eta).sum(-1) - 0.5 * ((beta / sd) ** 2).sum(-1)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()

    def functions(beta, eta):
        t = np.tanh(beta / sd)
        return np.stack([t[..., 0], t[..., 1], t[..., 0] * t[..., 1], np.tanh(eta[..., 0])], -1)

    want = (p[..., None] * functions(beta, eta)).sum((0, 1))
    draws = []
    for _ in range(8000):
        steps.elliptical(random, 2, sampler.label_sign, state.H, sd, state.beta, state.eta)
        draws.append(functions(state.beta, state.eta))
    np.testing.assert_allclose(state.eta, state.H @ state.beta, atol=1e-9)
    x = np.array(draws)[None]
    assert array_stats.ess(x, chain_axis=0, draw_axis=1, method="mean").min() > ESS_FLOOR
    t, limit = largest_t(batch_mean(x, 20), exactly(want))
    assert t < limit


# --- scales ---------------------------------------------------------------------------------------


def transform(sampler, monkeypatch, state, move, u):
    """Return a copy of state after one scale move by u, and the parameters of its density."""
    asked = []

    def log_scale(random, width, *parameters):
        asked.append(parameters)
        return u if len(asked) - 1 == move else 0.0

    for file in (gibbs_jcfo, probit):
        monkeypatch.setattr(file, "log_scale", log_scale)
    moved = copy.deepcopy(state)
    sampler.scales(moved, rng())
    return moved, asked[move]


def log_determinant(apply, size):
    """ln |det| of a linear map, column by column."""
    return np.linalg.slogdet(np.stack([apply(e) for e in np.eye(size)], axis=1))[1]


@linear_kernels
@pytest.mark.parametrize("B", [None, 2])
def test_scale_of_features_against_weights(kernel, B, monkeypatch):
    """The density of u is that of the moved point, tau and rho integrated out, times |Jacobian|."""
    problem = made(kernel, D=4, B=B)
    sampler, state, point, _ = drawn(problem)
    marginal = made(kernel, D=4, B=B, form="marginal")
    D = len(state.theta)

    def target(s):
        at = {"bias": s.beta[0], "sample_weight": s.beta[1:], "feature_weight": s.theta}
        np.testing.assert_allclose(problem.decision(at), point["eta"], rtol=1e-8, atol=1e-10)
        return log_joint(marginal, at, point["y"])

    for u in (-1.3, -0.2, 0.4, 2.0):
        moved, parameters = transform(sampler, monkeypatch, state, 0, u)

        def apply(vector, u=u):
            at = copy.deepcopy(state)
            at.theta[:], at.beta[:] = vector[:D], vector[D:]
            at = transform(sampler, monkeypatch, at, 0, u)[0]
            return np.append(at.theta, at.beta)

        jacobian = log_determinant(apply, D + len(state.beta))
        claimed = steps.log_scale_density(u, *parameters) - steps.log_scale_density(0, *parameters)
        assert claimed == pytest.approx(target(moved) - target(state) + jacobian, rel=1e-8)


@every_kernel
def test_scale_of_latent_values_and_weights(kernel, degree, monkeypatch):
    problem = made(kernel, degree)
    sampler, state, _, _ = drawn(problem)
    move = 1 if sampler.linear else 0
    N = len(state.z)

    def target(s):
        at = {"bias": s.beta[0], "sample_weight": s.beta[1:], "feature_weight": s.theta}
        np.testing.assert_allclose(problem.decision(at), s.eta, rtol=1e-8, atol=1e-10)
        prior = stats.laplace.logpdf(s.beta, scale=problem.hypers.gamma1**-0.5).sum()
        return prior + stats.norm.logpdf(s.z, s.eta).sum()

    for u in (-1.0, 0.3, 1.5):
        moved, parameters = transform(sampler, monkeypatch, state, move, u)

        def apply(vector, u=u):
            at = copy.deepcopy(state)
            at.z[:], at.beta[:] = vector[:N], vector[N:]
            at = transform(sampler, monkeypatch, at, move, u)[0]
            return np.append(at.z, at.beta)

        jacobian = log_determinant(apply, N + len(state.beta))
        claimed = steps.log_scale_density(u, *parameters) - steps.log_scale_density(0, *parameters)
        assert claimed == pytest.approx(target(moved) - target(state) + jacobian, rel=1e-8)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "parameters",
    [(3.0, 0.0, 2.0, 1.5, 0.7, 1.2), (-2.0, 0.0, 0.3, 4.0, -0.5, 3.0), (9.0, 4.0, 1.0, 0, 0, 0)],
)
def test_slice_step_of_a_scale(parameters):
    """Five steps, each from u = 0 of the point reached, from a draw of the density of u."""
    random = rng()
    power, up2, up, down, offset, tilt = (float(p) for p in parameters)
    u = np.linspace(-12.0, 6.0, 40_001)
    log_p = np.array([steps.log_scale_density(x, power, up2, up, down, offset, tilt) for x in u])
    p = np.exp(log_p - log_p.max())
    assert max(p[0], p[-1]) < 1e-9
    mass = np.append(0.0, np.cumsum(0.5 * (p[1:] + p[:-1])))
    mass /= mass[-1]
    ends = np.interp(random.random(3000), mass, u)
    for i in range(len(ends)):
        for _ in range(5):
            r = np.exp(ends[i])
            now = (up2 * r * r, up * r, down / r, offset, tilt / r)
            ends[i] += steps.log_scale(random, 0.8, power, *now)
    assert ks(ends, lambda x: np.interp(x, u, mass)) > ALARM
