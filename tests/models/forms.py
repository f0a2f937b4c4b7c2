"""Every form of every model as a small problem, and its PyMC density at the paper's variables."""

from functools import cached_property

import numpy as np
import pytensor
import pytest
from pytensor.compile.mode import Mode

import ardvark as av
from ardvark.data import Dataset
from ardvark.models import ZOO
from ardvark.models.spec import COVARIATE_SD
from tests.support import rng


def in_short(spec):
    """Return forms with each combination of the settings beside the kernel, and each kernel.

    No line of a model's file combines them: its `build` and its `log_joint` ask the kernel for eta.
    """
    rest = [{k: v for k, v in choice.items() if k != "kernel"} for choice in spec.choices()]
    rest = [choice for i, choice in enumerate(rest) if choice not in rest[:i]]
    kernels = [{"kernel": k} for k in spec.kernels] or [{}]
    count = max(len(rest), len(kernels))
    return [kernels[i % len(kernels)] | rest[i % len(rest)] for i in range(count)]


FORMS = [
    pytest.param(
        (name, choice),
        id="-".join([name, *choice.values()]),
        marks=[] if choice in in_short(spec) else [pytest.mark.slow],
    )
    for name, spec in ZOO.items()
    for choice in spec.choices()
]
"""Every form, as a parameter (name, choice); all kernels in all forms are slow."""
every_model = pytest.mark.parametrize("name", list(ZOO))
ALWAYS = ("x5", "x2")
"""Covariates among six columns: neither the first columns, nor in the order of the data."""


def with_covariates():
    """Return every form with or without covariates, each in turn; of a single form, both.

    No line of a model's file combines covariates with a setting of its form.
    """
    out = []
    for name in ZOO:
        own = [form for form in FORMS if form.values[0][0] == name]
        for number, form in enumerate(own * (2 if len(own) == 1 else 1)):
            has = number % 2 == 1
            label = f"{form.id}-covariates" if has else form.id
            out.append(pytest.param((*form.values[0], has), id=label, marks=form.marks))
    return out


def one_form():
    """Return the last form of every model, and those with a value for each row.

    Every second one has covariates.
    """
    out = []
    for name, spec in ZOO.items():
        short = in_short(spec)
        latent = [c for c in short if "latent" in c.values() or "explicit" in c.values()]
        latent = latent[:1] if name in ("jcfo", "rfvm") else []
        for choice in {str(c): c for c in (short[-1], *latent)}.values():
            has = len(out) % 2 == 1
            label = "-".join([name, *choice.values(), *(["covariates"] if has else [])])
            out.append(pytest.param((name, choice, has), id=label))
    return out


# Hyperparameters that are not 1, and no two alike: a scale for a rate, a missing root or another
# weight's shape is seen.
UNLIKE = {
    "sample_shape": 2.5,
    "sample_rate": 0.4,
    "feature_shape": 3.5,
    "feature_rate": 0.2,
    "bias_sd": 1.7,
    "covariate_sd": 0.6,
    "noise_shape": 2.2,
    "noise_rate": 5.0,
    "gamma1": 3.0,
    "gamma2": 0.5,
    "xi": 2.5,
    "a_z": 3.0,
    "a_zeta": 2.0,
    "global_scale": 0.3,
    "slab_scale": 1.4,
    "slab_df": 3.0,
    "degree": 3,
}
SLABS = {"sample_slab": 1.6, "feature_slab": 0.8}


def unlike(name, slabs=True, choice=None, covariates=False):
    """Return the hyperparameters of a model that no default makes equal, with or without slabs.

    The prior of covariates is only for a problem that has some.
    """
    given = UNLIKE | SLABS if slabs else UNLIKE
    fields = ZOO[name].Hypers.__dataclass_fields__
    return {k: v for k, v in given.items() if k in fields and (covariates or k != COVARIATE_SD)}


def make(name, choice=None, N=9, D=4, number=0, **settings):
    """Return a problem on N x D normal numbers; `settings` are hyperparameters or a basis."""
    data = Dataset.from_arrays(rng(number).normal(size=(N, D)), np.arange(N) % 2)
    return av.problem(name, data, **(choice or {}), **settings)


def prior_points(problem, n, number=1):
    """Return n ancestral draws."""
    draws = rng(number)
    return [problem.simulate(draws) for _ in range(n)]


def stacked(points):
    """Return one point whose variables have a leading axis of draws."""
    return {k: np.stack([p[k] for p in points]) for k in points[0]}


def log_joint_at(problem, point, y):
    """Return the log density of the paper's variables at labels that are not the problem's own."""
    return problem.spec.log_joint(point, problem.inputs, y, problem.hypers)


def at_own_labels(problem, point):
    """Return the log density of the unconstrained vector at the labels drawn with the point.

    A latent form has no density at any others.
    """
    jacobian = problem.spec.log_jacobian(point, problem.hypers)
    return log_joint_at(problem, point, point["y"]) + jacobian


PLAIN = Mode(linker="vm", optimizer=None)
"""A graph as it was written: to make it faster takes longer than twenty values of it."""


class Compiled:
    """A problem's PyMC model: its density and gradient, and its variables, each compiled once."""

    def __init__(self, problem, gradient=False):
        self.problem, self.model = problem, problem.fitted_model
        free, values = [], []
        for rv in self.model.free_RVs:
            x, transform = rv.type(name=rv.name), self.model.rvs_to_transforms[rv]
            free.append(x)
            values.append(x if transform is None else transform.forward(x, *rv.owner.inputs))
        self._unconstrain = pytensor.function(free, values, mode=PLAIN, allow_input_downcast=True)
        logp = self.model.logp()
        slopes = pytensor.grad(logp, self.model.value_vars) if gradient else []
        self.values = self._compiled([logp, *slopes])

    def _compiled(self, outputs):
        settings = {"inputs": self.model.value_vars, "on_unused_input": "ignore"}
        return self.model.compile_fn(outputs, mode=PLAIN, **settings)

    @cached_property
    def start(self):
        """PyMC's initial point."""
        return self.model.initial_point()

    @cached_property
    def _variables(self):
        return self._compiled(self.model.replace_rvs_by_values(self.model.unobserved_RVs))

    def variables(self, values):
        """Return every variable of the model, by name, from its unconstrained ones."""
        names = [rv.name for rv in self.model.unobserved_RVs]
        return dict(zip(names, self._variables(values), strict=True))

    def unconstrained(self, point):
        """Return the values of the model's unconstrained variables at the point."""
        free = self.problem.to_free(point)
        values = self._unconstrain(*[np.asarray(free[rv.name]) for rv in self.model.free_RVs])
        return {v.name: x for v, x in zip(self.model.value_vars, values, strict=True)}

    def density(self, point):
        """Return PyMC's log density of the unconstrained vector, at the point's own labels."""
        self.model.set_data("label", point["y"])
        return float(self.values(self.unconstrained(point))[0])
