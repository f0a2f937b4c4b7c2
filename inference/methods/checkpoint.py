"""Checkpoints of `exact`: a run that was killed goes on from its last one.

While a run goes on, its draws up to a judgement and the states of its chains are written to a file,
at most once in `SECONDS`. The next fit of the same request with the same file begins there. When
the run ends, the file goes.

The draws are then not those of a run that was never stopped, because chains start their random
streams anew; so ``attrs["reproducible"]`` is 0. They are as exact.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ardvark.common.validate import InputError, logger

from ..fits.datatree import assemble, group, read, save
from ..samplers.driver import KEPT, LAST
from ..target.backend import Earlier, Result
from .registry import Plan

SECONDS = 60.0
"""Between two checkpoints, at least: a shorter run has none."""


@dataclass(eq=False)
class Checkpoint:
    """The file of one run.

    Attributes
    ----------
    path : Path
        Where it is kept.
    plan : Plan
        Whose run it is.
    """

    path: Path
    plan: Plan
    _written: float = field(default_factory=time.monotonic)

    def earlier(self) -> Earlier | None:
        """Return what a run of this plan left there, None if there is nothing of it."""
        if not self.path.exists():
            return None
        try:
            tree = read(self.path)
        except InputError as error:
            logger.warning("%s The fit begins anew.", error)
            return None
        if tree.attrs.get("request") != self.plan.request:
            return None
        logger.info(
            "%s: going on from iteration %d, where a run was stopped",
            self.plan.name, tree.attrs["iterations"],
        )  # fmt: skip
        return earlier_of(tree)

    def __call__(self, make: Callable[[], Result]) -> None:
        """Write the run as far as it got, unless that was done a short time ago."""
        if time.monotonic() - self._written < SECONDS:
            return
        result, problem = make(), self.plan.target.problem
        attrs: dict[str, Any] = {
            "method": self.plan.name, "kind": "mcmc", "request": self.plan.request,
            "status": "not_converged", "reason": "it was stopped", **result.attrs,
        }  # fmt: skip
        model = self.plan.target.model if problem is None else None
        tree = assemble(result, model=model, problem=problem, attrs=attrs, derived=False)
        save(tree, self.path)
        self._written = time.monotonic()

    def done(self) -> None:
        """Remove the file of a run that has ended."""
        self.path.unlink(missing_ok=True)


def earlier_of(fit: xr.DataTree) -> Earlier:
    """Return what a fit by `exact` left, from which its chains go on."""
    ended = group(fit, "fit")
    return Earlier(
        posterior=_arrays(group(fit, "posterior")),
        sample_stats=_arrays(group(fit, "sample_stats")),
        last={
            str(n).removeprefix(LAST): np.asarray(x.values)
            for n, x in ended.items()
            if str(n).startswith(LAST)
        },
        iterations=int(fit.attrs["iterations"]),
        every=int(fit.attrs["every"]),
        at=ended[KEPT].values if KEPT in ended else None,
    )


def _arrays(held: xr.Dataset) -> dict[str, np.ndarray]:
    return {str(n): x.transpose("chain", "draw", ...).values for n, x in held.items()}
