"""The harness of sampler steps: is (theta, y) still a draw of the model after many of a step?

A step that leaves p(theta | y) as it is, from (theta, y) ~ p(theta, y), ends at such a draw. So
functions of the end and y are ranked among independent draws of the model, never among states of a
chain (`inference/checks/joint.py` does so with whole sweeps). The ranks of each replicate are among
draws of its own, so they are independent and exactly uniform if the step is right, whether it mixes
or not: `ALARM` is the probability of a false alarm of each test.

A step may integrate variables out, which are drawn anew before anything uses them. Then the steps
that complete it, in the order that the sampler's docstring gives, belong to the test.
"""

import dataclasses
from functools import cached_property

import numpy as np

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.checks.ranks import holm, quantities, shared_names, uniformity
from ardvark.inference.samplers.gibbs.method import make_sampler
from tests.support import rng

REFERENCES = 19  # independent draws that each end is ranked among
TIMES = 15
SWEEPS = 5  # of all steps: they see wrong steps as well as fifteen sweeps do (`test_steps`)
FAST, FULL = 150, 1500  # replicates: a shift of 0.6 and of 0.2 sd of any quantity is seen
SIZES = {"tall": {"N": 9, "D": 3, "B": 3}, "fat": {"N": 5, "D": 7, "B": None}}


def scaled(precision, x):
    return precision * x**2


def divided(variance, x):
    return x**2 / variance


def of_scale(g, variance):
    return variance / g[..., None] ** 2


# what ties two variables to each other, by model: quantities beside those of `ranks`
TIES = {
    "pfcvm": [("alpha sample_weight", scaled), ("beta feature_weight", scaled)],
    "rfvm": [
        ("psi sample_weight", scaled),
        ("delta feature_weight", scaled),
        ("tau u eta", lambda p, u, eta: p[..., None] * (u - eta) ** 2),
    ],
    "jcfo": [
        ("rho feature_weight", divided),
        ("tau sample_weight", divided),
        ("z eta", lambda z, eta: (z - eta) ** 2),
        ("feature_scale rho", of_scale),
    ],
    "sparse_probit": [("tau beta", divided), ("feature_scale tau", of_scale)],
    "horseshoe": [("tau lambda beta", lambda t, v, x: (x / (t[..., None] * v)) ** 2)],
}

SHORT = {
    "ard_linear": {"rounds": 2, "sample_scans": 1, "feature_tries": 4, "sample_tries": 3},
    "ard_kernel": {"exchange_tries": 4, "sample_scans": 1, "sample_tries": 3},
    "horseshoe": {"rounds": 1, "repeats": 1, "exchange_passes": 1, "block": 3.0},
}


def posed(model, size, covariates, **given):
    """A small problem whose likelihood says more than its prior, and whose features correlate."""
    N, D, B = SIZES[size].values()
    names = ("x1", "x3") if covariates else ()
    X = rng().standard_normal((N, D + len(names)))
    X[:, 2:] += 0.7 * X[:, :-2]
    data = Dataset.from_arrays(X, np.arange(N) % 2)
    if av.ZOO[model].has_basis and B is not None:
        given["basis"] = np.arange(B)
    if covariates:
        given["covariate_sd"] = 1.5
    return av.problem(model, data, always=names, **given)


def quick(problem):
    """The sampler of a problem, with fewer proposals in a step."""
    kind = type(make_sampler(problem))
    given = SHORT.get(kind.__module__.rsplit(".", 1)[1], {})
    return type(kind.__name__, (kind,), given | {"__module__": kind.__module__})(problem)


def stacked(points, names):
    return {n: np.stack([np.asarray(p[n]) for p in points]) for n in names}


def make(sampler, steps, state, random):
    """Those of the steps that the sampler has for this problem."""
    for step in steps:
        if step in sampler.STEPS and step not in sampler.left_out:
            getattr(sampler, step)(state, random)


@dataclasses.dataclass
class Bench:
    """Independent draws of a problem, to start from and to be ranked among."""

    problem: object
    replicates: int
    known: dict = dataclasses.field(default_factory=dict)

    @cached_property
    def starts(self):
        random = rng(1)
        return [self.problem.simulate(random) for _ in range(self.replicates)]

    @cached_property
    def references(self):
        """Arrays by name: points would take a hundred times the memory, and benches are kept."""
        random = rng(2)
        points = [self.problem.simulate(random) for _ in range(self.replicates * REFERENCES)]
        return stacked(points, points[0])

    def ends(self, sampler, steps, last=()):
        """The points after `TIMES` of `steps` or `SWEEPS` sweeps, with the eta before `last`."""
        random, found = rng(3), []
        times = SWEEPS if steps == "sweep" else TIMES
        for start in self.starts:
            sampler.set_labels(start["y"])
            state = sampler.state(start)
            make(sampler, ["complete"], state, random)
            for _ in range(times):
                make(sampler, sampler.order(state) if steps == "sweep" else steps, state, random)
            eta = sampler.point(state)["eta"]  # the last steps may compute it anew
            make(sampler, last, state, random)
            found.append(sampler.point(state) | {"eta": eta})
        return found

    def values(self, point, y, names):
        """The quantities of points by name: those of ranks, and what ties variables."""
        value = quantities(self.problem, point, y, names)
        for tied, f in TIES.get(self.problem.spec.name, []):
            if all(n in point for n in tied.split()):
                value[tied] = np.sqrt(f(*[point[n] for n in tied.split()])).mean(-1)
        return value

    def of_references(self, names):
        """The same of the references, once for all steps that end in these variables."""
        if names not in self.known:
            others = {n: self.references[n] for n in (*names, "eta")}
            self.known[names] = self.values(others, self.references["y"], [*names])
        return self.known[names]

    def p_value(self, ends):
        """The smallest p-value of all quantities, corrected for their number."""
        random = rng(4)
        names = shared_names(self.problem, self.starts[0], ends[0])
        value = self.values(stacked(ends, [*names, "eta"]), stacked(self.starts, ["y"])["y"], names)
        other, p = self.of_references(tuple(names)), []
        for name, v in value.items():
            w = other[name].reshape(self.replicates, REFERENCES)
            less, equal = (w < v[:, None]).sum(1), (w == v[:, None]).sum(1)
            u = (less + random.random(len(v)) * (equal + 1)) / (REFERENCES + 1)
            p.append(uniformity(u))
        return holm(np.array(p)).min()

    def moved(self, ends, variable):
        """The share of replicates in which a variable is another one at the end."""
        pairs = zip(self.starts, ends, strict=True)
        return np.mean([(np.asarray(s[variable]) != e[variable]).any() for s, e in pairs])

    def error(self, ends):
        """How far decision values are from those of the weights."""
        names = [n for n in ends[0] if n != "y"]
        point = stacked(ends, names)
        eta = self.problem.decision(point)
        return (np.abs(point["eta"] - eta) / (1.0 + np.abs(eta).max(-1, keepdims=True))).max()
