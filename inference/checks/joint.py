"""The joint test of a Markov kernel: exact at any chain length, whether or not the chain has mixed.

A kernel that leaves p(theta | y) invariant, started at theta_0 with (theta_0, y) ~ p(theta, y),
leaves the pair distributed as p(theta, y) after any number of sweeps. So independent replicates
test it (Gandy & Scott 2020, arXiv 2001.06465). Draw theta_0 and y, do L sweeps from theta_0, and
rank test quantities of (theta_L, y) among those of M independent draws of (theta, y) from the
model. The rank is uniform for any L and M. So a false alarm has the stated probability, whether or
not the chain has converged, and no thinning is needed. Bits and counts are ranked like everything
else, with ties broken at random. More sweeps give a wrong kernel more time to leave p(theta, y): L
changes the power of the test, never its validity. A kernel that hardly moves is invariant, and
passes. `sbc` detects slow mixing, because it starts chains elsewhere.

Ranking among independent draws replaces the two-sample test. Draws from the model cost little, and
the ranks of a replicate are those of `sbc` (`ranks.py`): the same quantities and the same p-values.

A kernel is an object made for one problem (`Kernel`); `NutsKernel` is PyMC's NUTS at a fixed step
size and mass matrix, for every continuous model.
"""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ardvark.common.pieces import Processes
from ardvark.common.validate import InputError, positive, whole
from ardvark.models import Problem
from ardvark.models.parts.unconstrain import unconstrain
from ardvark.models.spec import Point

from ..samplers.gradient import nuts
from ..target.target import Target
from .ranks import Calibration, quantities, rank, shared_names
from .replicates import Row, Trial, draw_basis_labels

TARGET_ACCEPT = 0.8
"""Mean acceptance to which the step size of a kernel is adapted."""
ADAPTATION = 300
"""Data sets that it is adapted on, each with its own theta, from which one step is done."""

# --- kernels --------------------------------------------------------------------------------------


class Kernel[State](Protocol):
    """A transition that leaves the posterior of its problem invariant, for its current labels."""

    def set_labels(self, y: np.ndarray) -> None:
        """Rebind the labels (N,), real numbers where the model has a squared-error likelihood.

        A model whose labels enter the basis has a second argument, `basis_labels` (B,).
        """
        ...

    def state(self, point: Point) -> State:
        """Return the state that starts exactly at a point of the model's variables."""
        ...

    def sweep(self, state: State, rng: np.random.Generator) -> None:
        """Do one transition, in place; all randomness comes from rng."""
        ...

    def point(self, state: State) -> dict[str, np.ndarray]:
        """Return the paper's variables, the shared quantities and `eta`."""
        ...


class NutsKernel:
    """PyMC's own NUTS step on a problem's model, with its step size and masses held fixed.

    They are adapted to the prior. The mass matrix is diagonal, with the variances of prior draws.
    The step size reaches `target_accept` on average over data sets simulated from the model. Both
    are fixed before the test begins, so the kernel does not depend on any replicate.

    Parameters
    ----------
    problem : Problem
        A problem with continuous variables only.
    """

    def __init__(self, problem: Problem) -> None:
        import pymc as pm
        from pymc.step_methods.hmc.quadpotential import QuadPotentialDiag

        why_not = nuts.supports(Target(problem))
        if why_not:
            raise InputError(f"{problem.spec.name} has no NUTS kernel: {why_not}.")
        self._problem = problem = dataclasses.replace(problem)  # a model of its own
        self._model = problem.fitted_model
        self._names = [v.name for v in self._model.value_vars]
        self._unconstrain = unconstrain(self._model)
        self._constrain = self._model.compile_fn(
            self._model.replace_rvs_by_values(self._model.unobserved_RVs),
            inputs=self._model.value_vars,
            mode="FAST_COMPILE",  # called once a replicate: compiling costs more than it saves
            point_fn=False,
            on_unused_input="ignore",
        )
        rng = np.random.default_rng([0, 1])
        prior = [self.state(problem.simulate(rng)) for _ in range(200)]
        flat = np.array([np.concatenate([s[n].ravel() for n in self._names]) for s in prior])
        self._step = pm.NUTS(
            model=self._model,
            potential=QuadPotentialDiag(flat.var(0)),
            target_accept=TARGET_ACCEPT,
        )
        for _ in range(ADAPTATION):
            point = problem.simulate(rng)
            self.set_labels(point["y"])
            self.sweep(self.state(point), rng)
        self._step.stop_tuning()

    def set_labels(self, y: np.ndarray, basis_labels: np.ndarray | None = None) -> None:
        """Rebind the labels, and those in the basis."""
        import pymc as pm

        with self._model:
            pm.set_data({"label": y})
            if basis_labels is not None:
                pm.set_data({"basis_labels": basis_labels})

    def state(self, point: Point) -> dict[str, np.ndarray]:
        """Return the values of the model's unconstrained variables at the point."""
        free = self._problem.to_free(point)
        values = self._unconstrain(*[np.asarray(free[v.name]) for v in self._model.free_RVs])
        return dict(zip(self._names, values, strict=True))

    def sweep(self, state: dict[str, np.ndarray], rng: np.random.Generator) -> None:
        """Do one NUTS transition."""
        self._step.rng = rng
        self._step.potential.set_rng(rng)
        state.update(self._step.step(state)[0])

    def point(self, state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return every variable of the model, deterministics included."""
        values = self._constrain(*[state[n] for n in self._names])
        return {
            v.name: np.asarray(x) for v, x in zip(self._model.unobserved_RVs, values, strict=True)
        }


# --- independent replicates -----------------------------------------------------------------------


def joint_test(
    problem: Problem,
    make_kernel: Callable[[Problem], Kernel[Any]],
    *,
    replicates: int = 1000,
    sweeps: int = 20,
    references: int = 99,
    random_seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    processes: Processes = None,
    progressbar: bool = False,
    called: str = "",
) -> Calibration:
    """Rank (theta_L, y), L sweeps after (theta_0, y) was drawn, among independent (theta, y).

    Parameters
    ----------
    problem : Problem
        Gives X, Z and hyperparameters; its labels are not used.
    make_kernel : callable
        Makes the kernel, once in each process; a function or class of a module if `processes` is
        not 1. It must not depend on anything but the problem.
    replicates : int
        R, the number of simulated data sets.
    sweeps, references : int
        L and M.
    random_seed : int
        Replicate r is a function of (random_seed, r).
    folder, processes, progressbar
        As for `sbc`.
    called : str
        What the kernel is called in the result: a method. By default the name of `make_kernel`.
    """
    positive("sweeps", sweeps)
    positive("references", references)
    own = dataclasses.replace(problem)  # with a model of its own, whose labels are rebound
    seed = whole("random_seed", random_seed)
    chains = _Chains(own, make_kernel, sweeps, references, seed)
    identity = {
        "problem": (problem.fingerprint, problem.form),
        "kernel": (make_kernel.__module__, make_kernel.__qualname__),
        "ranks": (sweeps, references, seed),
    }
    name = f"joint-{problem.spec.name}-{called or make_kernel.__name__}"
    trial = Trial.of(name, chains.start, identity, folder)
    return trial.calibration(replicates, processes, progressbar)


@dataclass(frozen=True)
class _Chains:
    """The replicates of `joint_test`."""

    problem: Problem
    make_kernel: Callable[[Problem], Kernel[Any]]
    sweeps: int
    references: int
    seed: int

    def start(self) -> Callable[[int], Row]:
        kernel = self.make_kernel(self.problem)
        return lambda r: self.replicate(kernel, r)

    def replicate(self, kernel: Kernel[Any], r: int) -> Row:
        rng = np.random.default_rng([self.seed, r])
        signs = draw_basis_labels(self.problem, rng)
        problem = dataclasses.replace(self.problem, basis_labels=signs)
        start = problem.simulate(rng)
        y = start["y"]
        kernel.set_labels(y, *(() if signs is None else (signs,)))
        state = kernel.state(start)
        for _ in range(self.sweeps):
            kernel.sweep(state, rng)
        end = kernel.point(state)
        names = shared_names(problem, start, end)
        value = quantities(problem, end, y, names)
        if not np.isfinite(list(value.values())).all():
            raise ValueError("the chain reached a value that is not finite")
        others = simulated_quantities(problem, self.references, names, rng)
        u = rank(np.array(list(value.values())), others, rng)
        return {"u": dict(zip(value, u.tolist(), strict=True)), "draws": len(others)}


def simulated_quantities(
    problem: Problem, n: int, names: list[str], rng: np.random.Generator
) -> np.ndarray:
    """Return the test quantities (n, F) of independent draws of (theta, y)."""
    draws = [problem.simulate(rng) for _ in range(n)]
    stacked = {k: np.stack([d[k] for d in draws]) for k in draws[0]}
    return np.stack(list(quantities(problem, stacked, stacked["y"], names).values()), axis=-1)
