"""RFVM's bound with D x D matrices and quadrature; and factors to try it on."""

import functools

import numpy as np
from scipy import integrate, special, stats

from ardvark.inference.papers.rfvm.factors import Factors
from ardvark.inference.papers.rfvm.vb import Options
from ardvark.models import rfvm
from tests.support import rng

PARAMETERS = (
    "a", "Sigma", "m", "precision", "b", "var_b", "u", "var_u", "xi",
    "tau_shape", "tau_rate", "psi_shape", "psi_rate", "delta_shape", "delta_rate",
)  # fmt: skip

# wide, and no two alike: what takes one weight's prior for the other's has another bound
WIDE = {
    "sample_shape": 1.3, "sample_rate": 1.5, "feature_shape": 1.6, "feature_rate": 0.9,
    "noise_shape": 2.6, "noise_rate": 1.9,
}  # fmt: skip
SLAB = WIDE | {"sample_slab": 0.7, "feature_slab": 0.9}
# of the released program
FLAT = dict.fromkeys(("sample_shape", "feature_shape"), 1e-12)
FLAT |= dict.fromkeys(("sample_rate", "feature_rate", "noise_shape", "noise_rate"), 1e-14)
DENSE = {"active_features": "all", "active_samples": "all"}


def hypers(N, B, D, **given):
    return rfvm.Hypers(**given).fill(N, B, D)


def arrays(N, D, number, B=None, correlated=True, generator=rng):
    """X (N, D), y (N,), Z (B, D); `generator=np.random.default_rng` fixes the very data."""
    random = generator(number)
    X = random.standard_normal((N, D)) + correlated * random.standard_normal((N, 1))
    y = (X @ random.choice([-2.0, 2.0], D) + 0.5 * random.standard_normal(N) > 0).astype(float)
    y[:2] = 0.0, 1.0
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y, X if B is None else random.standard_normal((B, D))


def factors(X, y, Z, h, number=0, sweeps=2, generator=rng, **options):
    q = Factors(X, y, Z, h, generator(number), Options(**options))
    for _ in range(sweeps):
        q.sweep()
    return q


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def v_moments(parameters, v_factor):
    """Mean, variance and entropy of every q(v_d), by quadrature of its density."""
    m, s = parameters["m"], parameters["precision"] ** -0.5
    low, high = np.maximum(0.0, np.abs(m) - 12.0 * s), np.abs(m) + 12.0 * s
    if v_factor == "truncated":
        low, high = np.maximum(0.0, m - 12.0 * s), np.maximum(0.0, m) + 12.0 * s
    half = 0.5 * (high - low)[:, None]
    x, weight = low[:, None] + half * (1.0 + _NODES), half * _WEIGHTS
    log_p = stats.norm.logpdf(x, m[:, None], s[:, None])
    if v_factor == "folded":
        log_p = np.logaddexp(log_p, stats.norm.logpdf(-x, m[:, None], s[:, None]))
    log_p -= special.logsumexp(log_p, b=weight, axis=1, keepdims=True)
    p = weight * np.exp(log_p)
    mean = (p * x).sum(axis=1)
    return mean, (p * (x - mean[:, None]) ** 2).sum(axis=1), -(p * log_p).sum(axis=1)


def gamma_entropy(shape, rate):
    return shape - np.log(rate) + special.gammaln(shape) + (1.0 - shape) * special.digamma(shape)


def dense_elbo(p, X, y, Z, h, v_factor):
    """The bound from the parameters alone, with D x D matrices."""
    v, var_v, entropy_v = v_moments(p, v_factor)
    A, V = p["Sigma"] + np.outer(p["a"], p["a"]), np.outer(v, v) + np.diag(var_v)
    quadratic = np.sum((X.T @ X) * (Z.T @ A @ Z) * V)  # E|X diag(v) Z'a|^2
    f, c = X @ (v * (Z.T @ p["a"])), p["u"] - p["b"]
    R = np.sum(c**2 + p["var_u"] + p["var_b"] - 2 * c * f) + quadratic
    of_gamma = {k: (p[f"{k}_shape"], p[f"{k}_rate"]) for k in ("tau", "psi", "delta")}
    tau, psi, delta = (shape / rate for shape, rate in of_gamma.values())
    log = {k: special.digamma(shape) - np.log(rate) for k, (shape, rate) in of_gamma.items()}

    def gamma_prior(mean, mean_log, shape, rate):
        log_density = shape * np.log(rate) - special.gammaln(shape) + (shape - 1) * mean_log
        return np.sum(log_density - rate * mean)

    l2, xi, u2 = np.log(2 * np.pi), p["xi"], p["u"] ** 2 + p["var_u"]
    lam = (special.expit(xi) - 0.5) / (2 * xi)
    joint = np.sum(np.log(special.expit(xi)) + (y - 0.5) * p["u"] - xi / 2 - lam * (u2 - xi**2))
    joint += 0.5 * len(y) * (log["tau"] - l2) - 0.5 * tau * R
    joint += 0.5 * np.sum(log["psi"] - l2 - psi * np.diag(A))
    joint += 0.5 * np.sum(log["delta"] + np.log(2 / np.pi) - delta * (v**2 + var_v))
    joint -= 0.5 * (l2 + np.log(h.bias_sd**2) + (p["b"] ** 2 + p["var_b"]) / h.bias_sd**2)
    joint += gamma_prior(tau, log["tau"], h.noise_shape, h.noise_rate)
    joint += gamma_prior(psi, log["psi"], h.sample_shape, h.sample_rate)
    joint += gamma_prior(delta, log["delta"], h.feature_shape, h.feature_rate)
    for prior, square in ((h.sample_prior, np.diag(A)), (h.feature_prior, v**2 + var_v)):
        joint -= np.sum(0.5 * square / prior.slab**2 + log_mass(prior))
    spreads = np.r_[p["var_b"], p["var_u"]]
    entropy = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * p["Sigma"])[1]
    entropy += 0.5 * np.sum(np.log(2 * np.pi * np.e * spreads)) + np.sum(entropy_v)
    entropy += sum(np.sum(gamma_entropy(*law)) for law in of_gamma.values())
    return float(joint + entropy)


@functools.cache
def log_mass(prior):
    """ln E exp(-x^2 / (2 slab^2)) under the Student-t without a slab, by SciPy's quadrature."""
    law = stats.t(2.0 * prior.shape, scale=np.sqrt(prior.rate / prior.shape))
    kept, _ = integrate.quad(
        lambda x: law.pdf(x) * np.exp(-0.5 * (x / prior.slab) ** 2), -np.inf, np.inf
    )
    return np.log(kept)


def parameters(q):
    return {k: np.copy(getattr(q, k)) for k in PARAMETERS}
