"""PFCVM's objective in a dense form of its own, and engines and fits to hold against it."""

import numpy as np
from scipy import special

import ardvark as av
from ardvark.inference.papers.pfcvm import em as pfcvm_em
from ardvark.inference.papers.pfcvm import lp as pfcvm_lp
from ardvark.inference.papers.pfcvm.engine import Engine
from tests.support import rng, seed

KERNELS = [("linear", 1), ("rbf", 1), ("polynomial", 2), ("polynomial", 3)]


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


def anywhere(problem, number=1, low=-0.1, update_bias=True, **options):
    """An engine away from any mode, some weights below 0."""
    e, random = start(problem, update_bias, **options), rng(number)
    e.sample.u = np.r_[0.3, random.uniform(low, 0.6, len(e.basis_sign))]
    new = random.uniform(0.5, 3.0, len(e.sample.u))
    e.sample.p = np.where(e.sample.keep_precision, e.sample.p, new)
    if e.free_theta:
        e.feature.u = random.uniform(low, 0.6, e.X.shape[1])
        e.feature.p = random.uniform(0.5, 3.0, e.X.shape[1])
    return e


def fit(problem, method="pfcvm_lp", **options):
    settings = {"draws": 20, "chains": 2, "random_seed": seed(3), "progressbar": False}
    return av.fit(problem, method, **settings | options)


def details_of(tree):
    return {str(k): v.values for k, v in tree["fit"].data_vars.items()}


class Paper:
    """The papers' formulas, dense, from a problem alone: nothing of the engine is in them.

    v holds the weights w (1 + B,), bias first, and theta (D,), and their precisions alpha, beta.
    `own` tells whether c, d and the slab are the model's own; lam is in units of a weight's scale.
    """

    def __init__(self, problem, own, lam=5.0):
        self.X, self.Z, self.y, h = problem.X, problem.Z, problem.y, problem.hypers
        self.kernel, self.h = problem.kernel, h
        labels = problem.basis_labels
        self.s = np.ones(len(self.Z)) if labels is None else labels
        self.free = problem.spec.name == "pfcvm"
        one, B = np.ones(len(self.Z)), len(self.Z)
        sample = self._prior(h.sample_prior, own, 0.0 if labels is None else lam)
        self.w = np.array([[0.0, 0.0, 0.0, 0.0], *np.tile(sample, (B, 1))]).T
        if self.free:
            self.theta = np.tile(self._prior(h.feature_prior, own, lam), (problem.X.shape[1], 1)).T
        self.kept = np.r_[own, one < 0.0]  # the bias keeps its precision under the model's prior

    @staticmethod
    def _prior(prior, own, lam):
        """c, d, slab^-2 and lambda of one kind of weight."""
        if not own:
            return 0.0, 0.0, 0.0, lam
        return prior.shape, prior.rate, prior.slab**-2.0, lam / min(prior.scale, prior.slab)

    def blocks(self, v):
        """(weights, precisions, (c, d, t, lam)) of each block that is free."""
        yield v["w"], v["alpha"], self.w
        if self.free:
            yield v["theta"], v["beta"], self.theta

    def K(self, theta):
        """PFCVM (2), (3)."""
        if self.kernel.name == "rbf":
            return np.exp(-((self.X[:, None] - self.Z) ** 2) @ theta)
        S = (self.X * theta) @ self.Z.T
        return S if self.kernel.name == "linear" else (1.0 + S) ** self.kernel.degree

    def Phi(self, v):
        return np.c_[np.ones(len(self.X)), self.K(v["theta"]) * self.s]

    def D(self, v):
        """d eta / d theta (N, D)."""
        a, K = self.s * v["w"][1:], self.K(v["theta"])
        if self.kernel.name == "rbf":
            return -np.einsum("ij,j,ijk->ik", K, a, (self.X[:, None] - self.Z) ** 2)
        P = self.kernel.degree
        power = 1.0 if P == 0 else P * (1.0 + (self.X * v["theta"]) @ self.Z.T) ** (P - 1)
        return np.einsum("ij,j,ijk->ik", power + 0.0 * K, a, self.X[:, None] * self.Z)

    def likelihood(self, v):
        return np.sum(special.log_expit((2 * self.y - 1) * (self.Phi(v) @ v["w"])))

    def Q(self, v):
        """The log of (9), with ln 2 for each sigmoid."""
        value = self.likelihood(v)
        for u, p, (_, _, t, lam) in self.blocks(v):
            value += np.sum(-0.5 * (p + t) * u**2 + np.log(2.0) + special.log_expit(lam * u))
        return value

    def added(self, v):
        """What is added to the precisions in each block's curvature without E: (13) and (21)."""
        p, slopes = special.expit(self.Phi(v) @ v["w"]), (self.Phi(v), self.D(v))
        for (u, _, (_, _, t, lam)), J in zip(self.blocks(v), slopes, strict=False):
            s = special.expit(lam * u)
            yield J.T @ ((p * (1 - p))[:, None] * J) + np.diag(t + lam**2 * s * (1 - s))

    def Sigma(self, v):
        """The inverse of each block's curvature, of units in which its diagonal is 1."""
        for (_, p, _), A in zip(self.blocks(v), self.added(v), strict=False):
            H = A + np.diag(p)
            units = np.sqrt(np.outer(np.diag(H), np.diag(H)))
            yield np.linalg.inv(H / units) / units

    def evidence(self, v):
        """The log of the Laplace evidence (14) and of the hyperprior of ln alpha, ln beta."""
        value = self.Q(v)
        for (_, p, (c, d, _, _)), S in zip(self.blocks(v), self.Sigma(v), strict=True):
            value += np.sum(0.5 * np.log(p) + c * np.log(p) - d * p)
            value += 0.5 * np.linalg.slogdet(S)[1]
        return value

    def updated(self, v, update):
        """(29), and (28) where `update` is "em"; 1 - p Sigma_kk is a product, or it cancels."""
        out, names, both = {}, ("alpha", "beta"), zip(self.Sigma(v), self.added(v), strict=True)
        for name, (u, p, (c, d, _, _)), (S, A) in zip(names, self.blocks(v), both, strict=False):
            new = (np.einsum("ij,ji->i", A, S) + 2 * c) / (u**2 + 2 * d)
            if update == "em":
                new = (1 + 2 * c) / (u**2 + np.diag(S) + 2 * d)
            new = np.clip(new, 1e-12, 1e15)  # the code's limits
            out[name] = np.where(self.kept, p, new) if name == "alpha" else new
        return out

    def log_posterior(self, v):
        """Precisions integrated out; the bias keeps that of its prior."""
        value = self.likelihood(v) - 0.5 * (v["w"][0] / self.h.bias_sd) ** 2
        for k, (u, _, prior) in enumerate(self.blocks(v)):
            u, (c, d, t, lam) = (u[1:], prior[:, 1:]) if k == 0 else (u, prior)
            value += np.sum(np.log(2.0) + special.log_expit(lam * u) - 0.5 * t * u**2)
            value -= np.sum((c + 0.5) * np.log(d + 0.5 * u**2))
        return value

    def expected(self, v):
        """E[precision | weight] of each block."""
        out = {}
        for name, (u, p, (c, d, _, _)) in zip(("alpha", "beta"), self.blocks(v), strict=False):
            new = np.minimum((2 * c + 1) / (u**2 + 2 * d + 1e-300), 1e15)  # a weight of 0
            out[name] = np.r_[p[0], new[1:]] if name == "alpha" else new
        return out


def values(e):
    """An engine's weights and precisions."""
    return {"w": e.sample.u, "theta": e.feature.u, "alpha": e.sample.p, "beta": e.feature.p}
