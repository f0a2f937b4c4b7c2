"""Fits of problems that differ in their data or in numbers of their priors: they share a model.

Building a `pm.Model` takes milliseconds; compiling it takes seconds. Every data array of the zoo's
models is a `pm.Data`, and so are the scales computed from the data, so that one compiled model can
be bound to one problem after another.
"""

import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import joblib
import numpy as np
import xarray as xr

from ardvark.common.pieces import Processes, elsewhere
from ardvark.common.progress import Reporter, forecast
from ardvark.models import Problem

from .registry import Plan
from .reuse import Fits

if TYPE_CHECKING:
    import pymc as pm

Models = dict[tuple, "pm.Model"]  # the first model of each kind


@dataclasses.dataclass(frozen=True, eq=False)
class Sharing(Problem):
    """A problem that takes an earlier one's compiled model, once a method reads it.

    The first model of each kind (model, shapes, and every hyperparameter that is not a `pm.Data`)
    is kept in `models`, and gets the values of this problem. After that, only the problem that
    received it last may be fitted. The sample names on the shared model are those of the first
    problem; a fit takes them from its own problem.
    """

    models: Models

    @cached_property
    def fitted_model(self) -> "pm.Model":
        """The shared model, bound to this problem's data."""
        own = super().fitted_model
        values = {v.name: v.get_value() for v in own.data_vars}
        shapes = tuple((name, np.shape(v)) for name, v in sorted(values.items()))
        # what a prior was filled from is not built in: the rates that it was filled to are
        hypers = {**self.hypers.posterior_fields(), **self.hypers.form_fields()}
        built_in = ((k, v) for k, v in hypers.items() if k not in values)
        shared = self.models.setdefault((self.spec.name, shapes, tuple(built_in)), own)
        if shared is not own:
            import pymc as pm

            with shared:
                pm.set_data(values)
        return shared

    @classmethod
    def of(cls, problem: Problem, models: Models) -> "Sharing":
        """Return the same problem, sharing what the others with these `models` compile."""
        fields = {f.name: getattr(problem, f.name) for f in dataclasses.fields(Problem)}
        return cls(**fields, models=models)


def refits(
    title: str,
    problems: Mapping[str, Problem],
    plan: Plan,
    folder: str | os.PathLike[str] | None,
    processes: Processes,
    kept_of: Mapping[str, Callable[[xr.DataTree], xr.DataTree]] | None = None,
) -> Iterator[tuple[str, xr.DataTree]]:
    """Fit problems as one of them is planned; yield each fit with the problem's name as it ends.

    Fits that are in the folder are used again; its files are named by method and problem. In other
    processes fits are silent, and a bar shows how many have ended. Once one was computed, it is
    told how long the others may take. `kept_of` says by problem what is kept in a fit's place.
    """
    models: Models = {}
    shown = Reporter(f"{title} {plan.name}", plan.sampling.progressbar and elsewhere(processes))
    there = plan.on(processes)
    names = {f"{plan.name}-{name.replace(' ', '-')}": name for name in problems}
    plans = {key: there.of(Sharing.of(problems[name], models)) for key, name in names.items()}
    kept = {key: kept_of[name] for key, name in names.items()} if kept_of else {}
    work = Fits(plans, None if folder is None else Path(folder), kept)
    first = 1 + sum(map(work.kept, plans))  # that is computed: kept ones come before it
    stage = shown.stage("fits", total=len(plans))
    began = time.perf_counter()
    for done, (key, tree) in enumerate(work.results(list(plans), processes, stage), 1):
        left = len(plans) - done
        if done == first and left and plan.sampling.progressbar:
            at_once = joblib.effective_n_jobs(processes)
            seconds = left * (time.perf_counter() - began) / at_once
            print(forecast(title, done, left, seconds), file=sys.stderr)
        yield names[key], tree
        began = time.perf_counter()
