"""The oracle of the binary masks: the whole state space, with alpha integrated out by quadrature.

Gauss-Hermite nodes are centred and scaled by the mode (`marginal`); `test_masks.py` shows that they
are enough.
"""

import itertools

import numpy as np
from scipy import optimize, special, stats

import ardvark as av
from ardvark.inference.samplers.gibbs.masks import Sampler
from ardvark.models.parts.masks import log_mask_prior
from tests.support import rng


def make(model="fsklr", N=6, D=4, B=None, number=0, random=None, **hypers):
    """A small problem, both classes in it, of the run's seed `number` or from `random`."""
    random = rng(number) if random is None else random
    X = random.normal(size=(N, D))
    y = (X[:, 0] + 0.7 * X[:, 1] ** 2 + random.normal(size=N) > 0.5).astype(int)
    y[:2] = 0, 1
    basis = None if B is None else list(range(B))
    return av.problem(model, (X, y), basis=basis, **hypers)


def all_masks(n):
    return np.array(list(itertools.product((0, 1), repeat=n)))


def kernel_matrix(problem, zeta, z):
    """K (N, A) of the model, from its definition."""
    theta = problem.hypers.delta * np.asarray(zeta, dtype=float)
    return problem.kernel.gram(problem.X, problem.Z[np.asarray(z) == 1], theta)


def covariates(problem):
    """C (N, K) as more columns of the kernel: scaled, so that xi is the precision of g too."""
    if problem.C is None:
        return np.empty((len(problem.y), 0))
    return problem.C * problem.hypers.covariate_sd * problem.hypers.xi**0.5


def marginal(K, s, xi, nodes):
    """Return ln of the integral of prod sigmoid(s K alpha) N(alpha | 0, 1/xi) over alpha."""
    A = K.shape[1]
    if A == 0:
        return len(s) * np.log(0.5)

    def minus(alpha):
        m = s * (K @ alpha)
        return np.logaddexp(0.0, -m).sum() + 0.5 * xi * alpha @ alpha

    def slope(alpha):
        return -K.T @ (s * special.expit(-s * (K @ alpha))) + xi * alpha

    mode = optimize.minimize(minus, np.zeros(A), jac=slope, tol=1e-12).x
    p = special.expit(K @ mode)
    root = np.linalg.inv(np.linalg.cholesky((K.T * (p * (1 - p))) @ K + xi * np.eye(A))).T
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(*[x] * A, indexing="ij"), -1).reshape(-1, A)
    log_w = sum(np.meshgrid(*[np.log(w)] * A, indexing="ij")).ravel()
    alpha = mode + grid @ root.T
    value = -np.logaddexp(0.0, -s * (alpha @ K.T)).sum(-1) - 0.5 * xi * (alpha**2).sum(-1)
    log_volume = np.log(np.diag(root)).sum() + 0.5 * A * np.log(xi) - 0.5 * A * np.log(2 * np.pi)
    return special.logsumexp(value + 0.5 * (grid**2).sum(-1) + log_w) + log_volume


def normal_marginal(K, s, h):
    """Return ln p(s) of FS-SKR: alpha in closed form, tau by quadrature over its logarithm."""
    values, vectors = np.linalg.eigh(K @ K.T / h.xi)
    values, rotated = np.maximum(values, 0.0), (vectors.T @ s) ** 2

    t = np.linspace(-8.0, 8.0, 801)[:, None]  # ln tau, whose density is the Gamma's times tau
    v = values + np.exp(-t)
    gamma = stats.gamma.logpdf(np.exp(t[:, 0]), h.noise_shape, scale=1 / h.noise_rate) + t[:, 0]
    log_density = gamma - 0.5 * np.sum(np.log(2 * np.pi * v) + rotated / v, axis=1)
    return special.logsumexp(log_density) + np.log(t[1, 0] - t[0, 0])


def exact(problem, nodes=7):
    """Return every state (zeta then z) and its posterior probability."""
    h, s = problem.hypers, 2.0 * problem.y - 1.0
    D, B = problem.X.shape[1], len(problem.Z)
    features = all_masks(D) if h.FEATURE_MASK else np.ones((1, D), dtype=int)
    states, log_p = [], []
    for zeta, z in itertools.product(features, all_masks(B)):
        K = np.hstack([kernel_matrix(problem, zeta, z), covariates(problem)])
        evidence = normal_marginal(K, s, h) if problem.spec.name == "fs_skr" else None
        log_prior = log_mask_prior(z, h.a_z, h.mask_prior)
        if h.FEATURE_MASK:
            log_prior += log_mask_prior(zeta, h.a_zeta, h.mask_prior)
        log_p.append(log_prior + (marginal(K, s, h.xi, nodes) if evidence is None else evidence))
        states.append(np.concatenate([zeta, z]))
    return np.array(states), special.softmax(log_p)


def run(sampler, sweeps, number, sweep=None, burn=200, chain=0):
    """Return the masks (sweeps, D + B) of one chain."""
    random = rng(number)
    state = sampler.start(random, chain)
    out = np.empty((sweeps, sampler.D + sampler.B), dtype=np.int64)
    for t in range(-burn, sweeps):
        (sweep or Sampler.sweep)(sampler, state, random)
        if t >= 0:
            out[t, : sampler.D], out[t, sampler.D :] = state.zeta, state.z
    return out
