"""Simulation-based calibration: test whether a posterior is right on data from its own model.

If theta ~ p(theta), y ~ p(y | theta) and theta_1..theta_L are independent draws from p(theta | y),
the L + 1 values of any test quantity f(theta, y) are exchangeable, and the rank of the true one
among the drawn ones is uniform (Talts, Betancourt, Simpson, Vehtari, Gelman 2018, arXiv 1804.06788,
theorem 1). If the density is wrong, the sampler has not mixed, or the posterior is too wide or too
narrow, the ranks are not uniform. `ranks.py` has the quantities, the ranks and their p-values.

**Ranks are uniform for independent draws only.** So a Markov chain is thinned: the number of draws
used is half of the smallest bulk effective size of the quantities, evenly spaced. A chain that
starts away from its target and stops too early fails the test, as it should. `joint.py` has the
test that is exact at any length.

**Labels in the basis.** PFCVM and PCVM are calibrated with basis labels that are not a function of
the simulated y. Each replicate draws its own, as fair coins. To fit with 2y - 1 instead, as a user
does, must fail.

An approximation is tested by the same call. Its p-values only say how detectable its error is with
that many replicates; `Calibration.table` says in which direction it errs.
"""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ardvark.common.pieces import Processes
from ardvark.common.validate import InputError
from ardvark.models import Problem

from ..methods import registry
from ..target.backend import FitFailed, Job
from ..target.sampling import Sampling
from ..target.target import Target
from .ranks import Calibration, quantities, rank, shared_names
from .replicates import Row, Trial, draw_basis_labels

if TYPE_CHECKING:
    import pymc as pm

RANKS = 100
"""L, the largest number of draws to rank among; a chain that mixes slowly gives fewer."""

# --- simulated data sets --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Relabelled(Problem):
    """A problem with simulated labels, which may be of one class only, or real numbers.

    A `Dataset` requires two classes, and dropping replicates with one class would bias the ranks.
    """

    labels: np.ndarray
    original: Problem

    @property
    def y(self) -> np.ndarray:
        """Labels (N,)."""
        return self.labels

    @cached_property
    def fitted_model(self) -> "pm.Model":
        """The original's model, compiled once, at these labels: one problem is fitted at a time."""
        import pymc as pm

        data = {"label": self.labels}
        if self.basis_labels is not None:
            data["basis_labels"] = self.basis_labels
        with self.original.fitted_model as model:
            pm.set_data(data)
        return model


def relabelled(problem: Problem, y: np.ndarray, basis_labels: np.ndarray | None) -> Relabelled:
    """Return the problem at other labels; a method that reads its model gets the compiled one."""
    fields = {f.name: getattr(problem, f.name) for f in dataclasses.fields(Problem)}
    fields["basis_labels"] = basis_labels
    found = Relabelled(**fields, labels=y, original=problem)
    for name in ("X", "Z"):  # where the cached properties keep their values
        found.__dict__[name] = getattr(problem, name)
    return found


# --- simulation-based calibration -----------------------------------------------------------------


def sbc(
    problem: Problem,
    method: str,
    sampling: Sampling,
    *,
    replicates: int = 200,
    folder: str | os.PathLike[str] | None = None,
    processes: Processes = None,
    **options: Any,
) -> Calibration:
    """Rank true values among the draws of a method, over data sets simulated from the model.

    A fit that has not converged is ranked like the others, and counted.

    Parameters
    ----------
    problem : Problem
        Gives X, Z and hyperparameters; its labels are not used.
    method : str
        A name in `BACKENDS`, or "paper". A point or a search has no draws to rank among.
    sampling : Sampling
        Of each fit. Replicate r is a function of (seed, r).
    replicates : int
        Simulated data sets.
    folder : path, optional
        Where replicates are kept, so that an interrupted run can continue. Delete it after a change
        of code.
    processes : int, optional
        How many replicates run at once, each in a process of its own. By default as
        `joblib.parallel_config` says: one, unless it was called.
    **options
        Options of the method.

    Raises
    ------
    InputError
        The method does not apply, or returns no draws from a stated distribution.
    """
    plan = registry.prepare(method, problem, options, sampling)
    own = dataclasses.replace(problem)  # with a model of its own, whose labels are rebound
    plan = dataclasses.replace(plan, target=Target(own))
    name = plan.name
    refuse_without_draws(plan)
    fits = _Fits(plan.on(processes))
    options = dataclasses.asdict(plan.options) | {"cores": None}  # they change the time alone
    identity = {
        "problem": (problem.fingerprint, problem.form),
        "method": (name, options, sampling.draws, sampling.chains),
        "ranks": (RANKS, sampling.seed),
    }
    trial = Trial.of(f"sbc-{problem.spec.name}-{name}", fits.start, identity, folder)
    return trial.calibration(replicates, processes, sampling.progressbar)


def refuse_without_draws(plan: registry.Plan) -> None:
    """Refuse a method that returns no draws from a stated distribution."""
    if plan.backend.KIND not in ("mcmc", "approximation"):
        raise InputError(
            f"method {plan.name!r} is a {plan.backend.KIND}: it returns no draws among which a "
            "true value could be ranked. Calibrate a method of kind mcmc or approximation."
        )


@dataclass(frozen=True)
class _Fits:
    """The replicates of `sbc`: simulate, fit, rank."""

    plan: registry.Plan

    def start(self) -> Callable[[int], Row]:
        return self.replicate

    def replicate(self, r: int) -> Row:
        plan, whole = self.plan, self.plan.target.zoo_problem
        rng = np.random.default_rng([plan.sampling.seed, r])
        signs = draw_basis_labels(whole, rng)
        true = dataclasses.replace(whole, basis_labels=signs).simulate(rng)
        y = true["y"]
        problem = relabelled(whole, y, signs)
        # the backend itself: what `fit` adds to its draws takes as long as they do
        job = Job(
            draws=plan.sampling.draws,
            chains=plan.sampling.chains,
            seed=int(rng.integers(2**31)),
        )
        fitted = plan.backend.fit(Target(problem), plan.options, job)
        drawn = fitted.posterior
        names = shared_names(problem, true, drawn)
        value = quantities(problem, true, y, names)
        found = np.stack(list(quantities(problem, drawn, y, names).values()), axis=-1)
        if not np.isfinite(found).all():
            raise FitFailed(f"{plan.name} returned draws that are not finite")
        others = thinned(found, plan.backend.KIND)
        u = rank(np.array(list(value.values())), others, rng)
        return {
            "u": dict(zip(value, u.tolist(), strict=True)),
            "draws": len(others),
            "converged": fitted.status == "finished",
        }


def thinned(found: np.ndarray, kind: str) -> np.ndarray:
    """Return (L, F) nearly independent draws of (chain, draw, F)."""
    flat = found.reshape(-1, found.shape[-1])
    size = float(len(flat))
    if kind == "mcmc":
        from arviz_stats.base import array_stats

        moves = found[:, :, np.ptp(flat, axis=0) > 0]  # a bit that never flips has no size
        ess = array_stats.ess(moves, chain_axis=0, draw_axis=1, method="bulk")
        size = float(np.min(ess, initial=size)) / 2.0
    L = int(np.clip(size, 1, RANKS))
    return flat[np.linspace(0, len(flat) - 1, L).round().astype(int)]
