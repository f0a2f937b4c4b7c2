"""Simulation-based calibration of a `pm.Model` of one's own, on data drawn from its prior.

`sbc.py` says what it tests and why. Here PyMC draws the truth: free variables and data together,
from the model's own graph. The method is then given the same model with those data in place of the
observed ones; it is compiled once.

The quantities are every variable's first and last component and the mean of its |x|^1/2, and the
log density at the draws, which is a function of variables and data: without such a one a sampler
that ignores the data would pass.
"""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ardvark.common.pieces import Processes
from ardvark.common.validate import InputError
from ardvark.models.parts.unconstrain import unconstrain

from ..fits.datatree import component_names, group, own_draws
from ..methods import registry
from ..target.backend import FitFailed, Job, Result
from ..target.target import Target
from .ranks import Calibration, rank
from .replicates import Row, Trial
from .sbc import RANKS, refuse_without_draws, thinned

if TYPE_CHECKING:
    import pymc as pm

DENSITY = "log density"


def own_sbc(
    plan: registry.Plan,
    *,
    replicates: int = 100,
    folder: str | os.PathLike[str] | None = None,
    processes: Processes = None,
) -> Calibration:
    """Rank true values among the draws of a method, over data drawn from the model's prior.

    Parameters
    ----------
    plan : Plan
        The model, the method, and the size of each fit. Replicate r is a function of (seed, r).
    replicates, folder, processes
        As for `sbc`.

    Raises
    ------
    InputError
        The model has no observed variable, or a part that cannot be drawn from; or the method
        returns no draws from a stated distribution.
    """
    refuse_without_draws(plan)
    model = plan.target.model
    _check(model)
    draw = PriorDraws(model)
    options = dataclasses.asdict(plan.options) | {"cores": None}  # they change the time alone
    once = {name: values.ravel()[:9].tolist() for name, values in draw(0).items()}
    identity = {
        "model": once,  # another prior, likelihood or constant draws other numbers
        "method": (plan.name, options, plan.sampling.draws, plan.sampling.chains),
        "ranks": (RANKS, plan.sampling.seed),
    }
    name = f"sbc-{model.name or 'model'}-{plan.name}"
    trial = Trial.of(name, _Fits(plan.on(processes)).start, identity, folder)
    return trial.calibration(replicates, processes, plan.sampling.progressbar)


def _check(model: "pm.Model") -> None:
    if not model.observed_RVs:
        raise InputError(
            "this model has no observed variable, so no data can be simulated from it."
        )
    if model.potentials:
        raise InputError(
            f"the potential {model.potentials[0].name} of this model cannot be drawn from. Write "
            "it as a distribution (pm.CustomDist), or calibrate the model without it."
        )


class PriorDraws:
    """Joint draws of a model's variables and data, one a call; compiled once.

    Parameters
    ----------
    model : pm.Model
    """

    def __init__(self, model: "pm.Model") -> None:
        from pymc.pytensorf import compile as compile_graph

        self._outputs = [*model.unobserved_RVs, *model.observed_RVs]
        self._function = compile_graph([], self._outputs, mode="FAST_COMPILE", random_seed=0)

    def __call__(self, seed: int) -> dict[str, np.ndarray]:
        """Return the draw of this seed, by name."""
        from pymc.pytensorf import reseed_rngs
        from pytensor.tensor.random.type import RandomType

        shared = self._function.f.get_shared() if hasattr(self._function, "f") else (
            self._function.get_shared()
        )  # fmt: skip
        reseed_rngs([v for v in shared if isinstance(v.type, RandomType)], seed)
        values = self._function()
        return {v.name: np.asarray(x) for v, x in zip(self._outputs, values, strict=True)}


def observing(model: "pm.Model") -> tuple["pm.Model", dict[str, Any]]:
    """Return a copy of the model whose observed values can be set, and these, by variable."""
    import pytensor
    from pymc.model.fgraph import clone_model

    copy, found = clone_model(model), {}
    for rv in copy.observed_RVs:
        before = copy.rvs_to_values[rv]
        start = np.zeros(tuple(rv.shape.eval()), dtype=before.dtype)
        value = pytensor.shared(start, name=f"{rv.name}_observed")
        copy.rvs_to_values[rv] = found[rv.name] = value
        del copy.values_to_rvs[before]
        copy.values_to_rvs[value] = rv
    return copy, found


@dataclass(frozen=True)
class _Fits:
    """The replicates: simulate, fit, rank."""

    plan: registry.Plan

    def start(self) -> Callable[[int], Row]:
        return _Replicates(self.plan).replicate


@dataclass(frozen=True)
class _Replicates:
    """What one process compiles once, and does for every replicate."""

    plan: registry.Plan

    @cached_property
    def draw(self) -> PriorDraws:
        return PriorDraws(self.plan.target.model)

    @cached_property
    def observed(self) -> tuple["pm.Model", dict[str, Any]]:
        return observing(self.plan.target.model)

    @cached_property
    def unconstrain(self) -> Callable[..., list[np.ndarray]]:
        return unconstrain(self.observed[0])

    def replicate(self, r: int) -> Row:
        plan, (model, values) = self.plan, self.observed
        rng = np.random.default_rng([plan.sampling.seed, r])
        true = self.draw(int(rng.integers(2**31)))
        for name, value in values.items():
            value.set_value(true[name].astype(value.dtype))
        job = Job(
            draws=plan.sampling.draws, chains=plan.sampling.chains, seed=int(rng.integers(2**31))
        )
        target = Target(model)
        fitted = plan.backend.fit(target, plan.options, job)
        drawn = {name: np.asarray(x, dtype=float) for name, x in fitted.posterior.items()}
        found = quantities(own_draws(model, drawn))
        value = quantities(own_draws(model, {n: true[n][None, None] for n in drawn}))
        if (lp := _densities(fitted)) is not None:
            found[DENSITY] = lp
            free = self.unconstrain(*[true[rv.name] for rv in model.free_RVs])
            at = np.concatenate([np.ravel(x) for x in free], dtype=float)
            value[DENSITY] = target.density.logp(at[None])
        stacked = np.stack(list(found.values()), axis=-1)
        if not np.isfinite(stacked).all():
            raise FitFailed(f"{plan.name} returned draws that are not finite")
        others = thinned(stacked, plan.backend.KIND)
        u = rank(np.array([float(value[name].squeeze()) for name in found]), others, rng)
        return {
            "u": dict(zip(found, u.tolist(), strict=True)),
            "draws": len(others),
            "converged": fitted.status == "finished",
        }


def _densities(fitted: Result) -> np.ndarray | None:
    """Return the log density (chain, draw) of a result's draws, where each has one."""
    lp = fitted.sample_stats.get("lp")
    return None if lp is None or not np.isfinite(lp).all() else np.asarray(lp)


def quantities(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Return the test quantities (chain, draw) of draws of a model, by name."""
    found: dict[str, np.ndarray] = {}
    for name, values in group(tree, "posterior").data_vars.items():
        x = values.values.astype(float)
        flat, names = x.reshape(*x.shape[:2], -1), component_names(str(name), values)
        for k in sorted({0, len(names) - 1}):
            found[names[k]] = flat[..., k]
        if len(names) > 1:
            found[f"mean |{name}|^1/2"] = np.sqrt(np.abs(flat)).mean(axis=-1)
    # two ways to the same number may differ in the last digits, and would break a tie one way
    return {name: np.round(x, 10) for name, x in found.items()}
