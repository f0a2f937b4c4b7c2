"""A model whose posterior is known, with samplers of it that are right, and wrong in known ways."""

import dataclasses

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from ardvark.inference.checks import sbc as cal
from ardvark.inference.target.backend import Result
from ardvark.inference.target.sampling import Sampling
from ardvark.models import ZOO, problem
from ardvark.models.spec import BaseHypers, Inputs, ModelSpec


def sbc(problem, method, *, draws=250, chains=2, random_seed=0, **settings):
    """Simulation-based calibration at the sizes that `av.calibrate` has."""
    sampling = Sampling(draws=draws, chains=chains, seed=random_seed)
    return cal.sbc(problem, method, sampling, **settings)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToyHypers(BaseHypers):
    def fill(self, N, B, D):
        return self


def toy_build(inputs, y, h, coords):
    X = inputs.X
    with pm.Model(coords=coords) as model:
        label = pm.Data("label", np.asarray(y, dtype=float), dims="obs")
        theta = pm.Normal("theta")
        bit = pm.Bernoulli("bit", 0.3)
        eta = pm.Deterministic("eta", X[:, 0] * theta + X[:, 1] * bit, dims="obs")
        pm.Normal("y", eta, 1.0, observed=label, dims="obs")
    return model


def toy_decision(point, inputs, h=None):
    X = inputs.X
    theta, bit = (np.asarray(point[k])[..., None] for k in ("theta", "bit"))
    return theta * X[:, 0] + bit * X[:, 1]


def toy_simulate(rng, inputs, h):
    """theta ~ N(0, 1), bit ~ Bernoulli(0.3), y_i ~ N(x_i1 theta + x_i2 bit, 1)."""
    point = {"theta": np.asarray(rng.normal()), "bit": np.asarray(rng.binomial(1, 0.3))}
    eta = toy_decision(point, inputs)
    return point | {"eta": eta, "y": rng.normal(eta, 1.0)}


def toy_log_joint(point, inputs, y, h):
    prior = stats.norm.logpdf(point["theta"]) + stats.bernoulli.logpmf(point["bit"], 0.3)
    return prior + stats.norm.logpdf(y, toy_decision(point, inputs), 1.0).sum(-1)


TOY = ModelSpec(
    name="toy",
    title="Toy",
    citation="none",
    year=2000,
    link="identity",
    priors="normal",
    paper_method="",
    Hypers=ToyHypers,
    build=toy_build,
    log_joint=toy_log_joint,
    log_jacobian=lambda *a, **k: np.zeros(()),
    to_free=lambda point, *a: {k: point[k] for k in ("theta", "bit")},
    simulate=toy_simulate,
    decision=toy_decision,
    log_predictive=lambda y, eta, point, h: stats.norm.logpdf(y, eta, 1.0),
    variables={},
    masked=("bit",),
    doc="",
)


def make_toy():
    """Return the toy at inputs that tell the coefficient and the bit apart."""
    X = np.array([[1.0, 0.5], [-1.0, 1.0], [0.5, 1.5], [-0.5, -1.0]])
    with pytest.MonkeyPatch.context() as zoo:
        zoo.setitem(ZOO, "toy", TOY)
        return problem("toy", (X, [0, 1, 0, 1]), standardize=False)


def theta_given(X, y, bit):
    """Return mean and variance of theta | bit, y: conjugate."""
    variance = 1.0 / (1.0 + X[:, 0] @ X[:, 0])
    return variance * ((y - np.multiply.outer(bit, X[:, 1])) @ X[:, 0]), variance


def bit_odds(X, y):
    """Return P(bit = 1 | y), with theta integrated out: y - x_2 bit ~ N(0, I + x_1 x_1')."""
    cov = np.eye(len(X)) + np.outer(X[:, 0], X[:, 0])
    p = [
        w * stats.multivariate_normal.pdf(y - b * X[:, 1], cov=cov) for b, w in ((0, 0.7), (1, 0.3))
    ]
    return p[1] / sum(p)


class Conjugate:
    """The toy's posterior, independent draws; or wrong ones."""

    NAME, KIND = "conjugate", "approximation"

    @dataclasses.dataclass(frozen=True)
    class Options:
        factor: float = 1.0
        shift: float = 0.0
        deaf: bool = False
        seeded: bool = True
        memory: float = 0.0

    @staticmethod
    def supports(target):
        return None

    @staticmethod
    def fit(target, options, job):
        X, y = target.problem.X, target.problem.y
        rng = np.random.default_rng(job.seed if options.seeded else 7)
        size = (job.chains, job.draws)
        if options.deaf:
            bit, mean, variance = rng.binomial(1, 0.3, size), 0.0, 1.0
        else:
            bit = rng.binomial(1, bit_odds(X, y), size)
            mean, variance = theta_given(X, y, bit)
        e = rng.normal(size=size)
        for t in range(1, job.draws if options.memory else 1):  # an AR(1) process, stationary
            e[:, t] = options.memory * e[:, t - 1] + np.sqrt(1 - options.memory**2) * e[:, t]
        sd = np.sqrt(variance)
        theta = mean + sd * (options.shift + options.factor * e)
        point = {"theta": theta, "bit": bit}
        return Result(posterior={**point, "eta": toy_decision(point, target.problem.inputs)})


class Gibbs:
    """A two-block Gibbs sampler of the toy, as a kernel; or a wrong one."""

    def __init__(self, problem, *, factor=1.0, deaf=False, seeded=True, still=False):
        self.X, self.wrong = problem.X, (factor, deaf, seeded, still)

    def set_labels(self, y):
        self.y = y

    def state(self, point):
        return {"theta": float(point["theta"]), "bit": int(point["bit"])}

    def sweep(self, state, rng):
        factor, deaf, seeded, still = self.wrong
        if still:
            return
        rng = rng if seeded else np.random.default_rng(7)
        if deaf:
            state |= {"theta": rng.normal(), "bit": rng.binomial(1, 0.3)}
            return
        mean, variance = theta_given(self.X, self.y, state["bit"])
        state["theta"] = rng.normal(mean, factor * np.sqrt(variance))
        rest = self.y - self.X[:, 0] * state["theta"]
        log_odds = np.log(0.3 / 0.7) + rest @ self.X[:, 1] - 0.5 * self.X[:, 1] @ self.X[:, 1]
        state["bit"] = int(rng.random() < 1 / (1 + np.exp(-log_odds)))

    def point(self, state):
        point = {k: np.asarray(v) for k, v in state.items()}
        return point | {"eta": toy_decision(point, Inputs(self.X, self.X))}


def gibbs(**wrong):
    def make_kernel(problem):
        return Gibbs(problem, **wrong)

    return make_kernel
