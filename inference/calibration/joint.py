"""Joint tests of a Markov kernel: exact at any chain length, whether or not the chain has mixed.

A kernel that leaves p(theta | y) invariant, started at theta_0 with (theta_0, y) ~ p(theta, y),
leaves the pair distributed as p(theta, y) after any number of sweeps. Two tests follow.

- `joint_test` uses independent replicates (Gandy & Scott 2020, arXiv 2001.06465). Draw theta_0 and
  y, do L sweeps from theta_0, and rank test quantities of (theta_L, y) among those of M independent
  draws of (theta, y) from the model. The rank is uniform for any L and M. So a false alarm has the
  stated probability, whether or not the chain has converged, and no thinning is needed. Bits and
  counts are ranked like everything else, with ties broken at random. More sweeps give a wrong
  kernel more time to leave p(theta, y): L changes the power of the test, never its validity. A
  kernel that hardly moves is invariant, and passes. `sbc` detects slow mixing, because it starts
  chains elsewhere.
- `successive_conditional` is Geweke's test (2004, J. Am. Stat. Assoc. 99). One long chain
  alternates y | theta and one sweep of theta | y, and is compared with independent draws of (theta,
  y). Every sweep gives a pair to compare, whereas `joint_test` needs L sweeps for one. But the
  pairs depend on each other, and the p-values rest on an estimate of that dependence.

Ranking among independent draws replaces the two-sample test. Draws from the model cost little, and
the ranks of a replicate are those of `sbc` (`ranks.py`): the same quantities and the same p-values.

A kernel is an object made for one problem (`Kernel`); `NutsKernel` is PyMC's NUTS at a fixed step
size and mass matrix, for every continuous model.
"""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pandas as pd
from scipy import stats

from ardvark.common.validate import InputError, one_of, positive, whole
from ardvark.common.work import Processes
from ardvark.models import Problem
from ardvark.models.spec import Point

from ..contract.target import Target
from ..generic import nuts
from .ranks import Calibration, holm, quantities, rank, shared_names
from .replicates import Row, Trial, draw_basis_labels

if TYPE_CHECKING:
    import pymc as pm

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
    seed : int
        Seed of the adaptation. Equal seeds give equal kernels.
    target_accept : float
        Mean acceptance to which the step size is adapted.
    adaptation : int
        Number of data sets used. Each is drawn with its own theta, from which one step is done.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        seed: int = 0,
        target_accept: float = 0.8,
        adaptation: int = 300,
    ) -> None:
        why_not = nuts.supports(Target(problem))
        if why_not:
            raise InputError(f"{problem.spec.name} has no NUTS kernel: {why_not}.")
        self._problem = problem = dataclasses.replace(problem)  # a model of its own
        self._model = problem.model
        self._names = [v.name for v in self._model.value_vars]
        self._unconstrain = _unconstrain(self._model)
        self._constrain = self._model.compile_fn(
            self._model.replace_rvs_by_values(self._model.unobserved_RVs),
            inputs=self._model.value_vars,
            mode="FAST_COMPILE",  # called once a replicate: compiling costs more than it saves
            point_fn=False,
            on_unused_input="ignore",
        )
        rng = np.random.default_rng([seed, 1])
        prior = [self.state(problem.simulate(rng)) for _ in range(200)]
        flat = np.array([np.concatenate([s[n].ravel() for n in self._names]) for s in prior])
        self._prepare(flat.var(0), target_accept)
        for _ in range(adaptation):
            point = problem.simulate(rng)
            self.set_labels(point["y"])
            self.sweep(self.state(point), rng)
        self._hold()

    def _prepare(self, variances: np.ndarray, target_accept: float) -> None:
        """Make the step that adapts its size, with the variances (P,) of prior draws."""
        import pymc as pm
        from pymc.step_methods.hmc.quadpotential import QuadPotentialDiag

        self._step = pm.NUTS(
            model=self._model,
            potential=QuadPotentialDiag(variances),
            target_accept=target_accept,
        )

    def _hold(self) -> None:
        """End the adaptation."""
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


def _unconstrain(model: "pm.Model") -> Callable[..., list[np.ndarray]]:
    """Return the compiled map from free variables, in their order, to their value variables."""
    import pytensor

    free, out = [], []
    for rv in model.free_RVs:
        x = rv.type(name=rv.name)
        transform = model.rvs_to_transforms[rv]
        free.append(x)
        out.append(x if transform is None else transform.forward(x, *rv.owner.inputs))
    return pytensor.function(free, out, mode="FAST_COMPILE", allow_input_downcast=True)


# --- independent replicates -----------------------------------------------------------------------


def joint_test(
    problem: Problem,
    make_kernel: Callable[[Problem], Kernel[Any]],
    *,
    replicates: int = 1000,
    sweeps: int = 20,
    references: int = 99,
    random_seed: int = 0,
    basis_labels: Literal["independent", "fixed"] = "independent",
    folder: str | os.PathLike[str] | None = None,
    processes: Processes = 1,
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
    basis_labels : {"independent", "fixed"}
        Drawn for each replicate, or those of the problem; for models that have them.
    folder, processes, progressbar
        As for `sbc`.
    called : str
        What the kernel is called in the result: a method. By default the name of `make_kernel`.
    """
    one_of("basis_labels", basis_labels, ("independent", "fixed"))
    positive("sweeps", sweeps)
    positive("references", references)
    own = dataclasses.replace(problem)  # with a model of its own, whose labels are rebound
    seed = whole("random_seed", random_seed)
    chains = _Chains(own, make_kernel, sweeps, references, seed, basis_labels)
    identity = {
        "problem": (problem.fingerprint, problem.form),
        "kernel": (make_kernel.__module__, make_kernel.__qualname__),
        "ranks": (sweeps, references, seed, basis_labels),
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
    basis_labels: Literal["independent", "fixed"]

    def start(self) -> Callable[[int], Row]:
        kernel = self.make_kernel(self.problem)
        return lambda r: self.replicate(kernel, r)

    def replicate(self, kernel: Kernel[Any], r: int) -> Row:
        rng = np.random.default_rng([self.seed, r])
        signs = draw_basis_labels(self.problem, self.basis_labels, rng)
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


# --- Geweke's chain -------------------------------------------------------------------------------


def draw_labels(problem: Problem, point: Point, rng: np.random.Generator) -> np.ndarray:
    """Draw y given theta (N,), with latent noise integrated out."""
    if problem.spec.link == "identity":
        s = rng.normal(point["eta"], np.asarray(point["tau"]) ** -0.5)
        return (1.0 + s) / 2.0
    log_p = problem.spec.log_predictive(1, np.asarray(point["eta"]), point, problem.hypers)
    return rng.binomial(1, np.exp(log_p))


def successive_conditional(
    problem: Problem,
    kernel: Kernel[Any],
    *,
    iterations: int = 5000,
    references: int = 20_000,
    batches: int = 40,
    random_seed: int = 0,
    labels: Callable[[Problem, Point, np.random.Generator], np.ndarray] = draw_labels,
) -> pd.DataFrame:
    """Compare Geweke's chain, y | theta then one sweep of theta | y, with independent draws.

    Each quantity is mapped to its rank u among the independent draws, so that every moment exists.
    The means of u and of |2u - 1| are compared with 1/2; their errors come from batch means, and
    from the number of independent draws.

    Parameters
    ----------
    problem, kernel
        The kernel is one made for the problem; basis labels stay those of the problem.
    iterations, references, batches : int
        Length of the chain, number of independent draws, and number of batches. A batch must be
        much longer than the chain's memory, otherwise the errors are too small.
    labels : callable
        Draws y given a point. The default integrates out the latent noise, which is right only if
        the kernel's state has none.

    Returns
    -------
    pandas.DataFrame
        By quantity, smallest p-value first: `z_mean`, `z_width`, `p_value`, `holm`.

    Raises
    ------
    InputError
        The state holds latent noise (one variable a sample) and `labels` is the default.
    """
    rng = np.random.default_rng(random_seed)
    point = problem.simulate(rng)
    y = point["y"]
    names: list[str] = []
    chain = []
    for _ in range(iterations):
        kernel.set_labels(y)
        state = kernel.state(point)
        kernel.sweep(state, rng)
        if not names:
            names = shared_names(problem, point, kernel.point(state))
            latent = [n for n in names if problem.spec.dims.get(n) == ("obs",)]
            if latent and labels is draw_labels:
                raise InputError(
                    f"y depends on {latent[0]} as well as eta: pass `labels`, which draws y given "
                    "the whole state, or use joint_test."
                )
        point = kernel.point(state)
        chain.append(quantities(problem, point, y, names))  # before y follows theta again
        y = labels(problem, point, rng)
    found = np.array([list(q.values()) for q in chain])  # (T, F)
    others = np.sort(simulated_quantities(problem, references, names, rng), axis=0)
    u = np.empty_like(found)
    for f in range(found.shape[1]):
        less = np.searchsorted(others[:, f], found[:, f], "left")
        upto = np.searchsorted(others[:, f], found[:, f], "right")
        u[:, f] = (less + rng.random(iterations) * (upto - less + 1)) / (references + 1)
    z = np.stack([_z(v, batches, references) for v in (u, np.abs(2.0 * u - 1.0))])  # (2, F)
    p = np.minimum(1.0, 2.0 * 2.0 * stats.t.sf(np.abs(z).max(0), batches - 1))
    columns = {"z_mean": z[0], "z_width": z[1], "p_value": p, "holm": holm(p)}
    frame = pd.DataFrame(columns, index=pd.Index(list(chain[0]), name="quantity"))
    return frame.sort_values("p_value", kind="stable")


def _z(u: np.ndarray, batches: int, references: int) -> np.ndarray:
    """Return how far the mean of u (T, F) is from 1/2, in standard errors.

    The ranks share their reference draws, which adds 1 / (12 M): the variance of a uniform over M.
    """
    size = len(u) // batches
    means = u[: size * batches].reshape(batches, size, -1).mean(1)
    error = np.sqrt(means.var(0, ddof=1) / batches + 1.0 / (12.0 * references))
    return (means.mean(0) - 0.5) / error
