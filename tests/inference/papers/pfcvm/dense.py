"""PFCVM's objective in a dense form of its own, and engines and fits to hold against it."""

import numpy as np
import pytest
from scipy import special

import ardvark as av
from ardvark.inference.papers.pfcvm import em as pfcvm_em
from ardvark.inference.papers.pfcvm import lp as pfcvm_lp
from ardvark.inference.papers.pfcvm.engine import Engine
from tests.support import rng, seed

KERNELS = [("linear", 1), ("rbf", 1), ("polynomial", 2), ("polynomial", 3)]

every_kernel = pytest.mark.parametrize(("kernel", "degree"), KERNELS)

LP, EM = pfcvm_lp.Options, pfcvm_em.Options


def dense(model):
    """The dense prior, without a slab."""
    return slabs(model, np.inf, np.inf)


def slabs(model, sample=0.8, feature=0.6):
    """The dense prior with slabs so narrow that every weight feels them."""
    given = {"active_samples": "all", "sample_slab": sample}
    if model == "pfcvm":
        given |= {"active_features": "all", "feature_slab": feature}
    return given


def make(model="pfcvm", N=14, D=5, number=0, noise=0.7, generator=rng, **given):
    """A problem; `generator=np.random.default_rng` fixes the very data."""
    random = generator(number)
    X = random.standard_normal((N, D))
    y = (X[:, 0] - X[:, 1] + noise * random.standard_normal(N) > 0).astype(int)
    y[:2] = 0, 1
    return av.problem(model, (X, y), **given)


def start(problem, update_bias=True, **options):
    return Engine.start(problem, LP(**options), update_bias)


def sharp(e):
    """The engine with sigmoids that are steps."""
    for block in (e.sample, e.feature):
        block.lam = 2e8 * block.lam
    return e


def anywhere(problem, number=1, low=-0.1, **options):
    """An engine away from any mode, some weights below 0."""
    e, random = start(problem, **options), rng(number)
    e.sample.u = np.r_[0.3, random.uniform(low, 0.6, len(e.basis_sign))]
    e.sample.p = random.uniform(0.5, 3.0, len(e.sample.u))
    if e.free_theta:
        e.feature.u = random.uniform(low, 0.6, e.X.shape[1])
        e.feature.p = random.uniform(0.5, 3.0, e.X.shape[1])
    return e


def fit(problem, method="pfcvm_lp", **options):
    settings = {"draws": 20, "chains": 2, "random_seed": seed(3), "progressbar": False}
    return av.fit(problem, method, **settings | options)


def details_of(tree):
    return {str(k): v.values for k, v in tree["fit"].data_vars.items()}


def dense_eta(e, u_w, theta):
    K = e.hypers.kernel_of().gram(e.X, e.Z, theta)
    return u_w[0] + K @ (e.basis_sign * u_w[1:])


def dense_Q(e, u_w, theta):
    """Q as in the paper, with ln 2 for each sigmoid; nothing of the engine but its numbers."""
    eta = dense_eta(e, u_w, theta)
    value = np.sum(special.log_expit((2 * e.y - 1) * eta))
    for u, block in ((u_w, e.sample), (theta, e.feature)):
        value += np.sum(-0.5 * (block.p + block.slab_precision) * u**2)
        value += np.sum(np.log(2.0) + special.log_expit(block.lam * u))
    return value


def gradient(f, x, step=1e-6):
    out = np.empty(len(x))
    for k in range(len(x)):
        h = np.zeros(len(x))
        h[k] = step
        out[k] = (f(x + h) - f(x - h)) / (2 * step)
    return out


def second_order(e):
    """E_kl = sum_i (y_i - sigma_i) d2 eta_i / d theta_k d theta_l (D, D), loop by loop."""
    X, Z, theta, h = e.X, e.Z, e.feature.u, e.hypers
    a, residual = (
        e.basis_sign * e.sample.u[1:],
        e.y - special.expit(dense_eta(e, e.sample.u, theta)),
    )
    S = (X * theta) @ Z.T
    out = np.zeros((len(theta), len(theta)))
    for i in range(len(X)):
        for j in range(len(Z)):
            if h.kernel == "rbf":
                square = (X[i] - Z[j]) ** 2
                out += residual[i] * a[j] * np.exp(-square @ theta) * np.outer(square, square)
            elif h.kernel == "polynomial":
                P, xz = h.degree, X[i] * Z[j]
                factor = P * (P - 1) * (1 + S[i, j]) ** (P - 2)
                out += residual[i] * a[j] * factor * np.outer(xz, xz)
    return out
