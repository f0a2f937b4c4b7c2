"""What a method must offer, and what it hands back.

A backend is a module with these names (one file per method; `BACKENDS` in `fitting.py` lists them):

    NAME       its name on the command line and in tables
    KIND       "mcmc" (exact in the limit), "approximation" (draws from a stated q), "search"
               (visited states with scores) or "point" (one state)
    Options    frozen dataclass of its options, every one with a default
    supports   (model, problem) -> None, or the reason why it cannot be used
    NEEDS_MODEL  optional, True unless given: False where `supports` and `fit` look at the problem
               alone. Then no `pm.Model` is built for a problem, and `supports` gets None for it
    fit        (target, options, *, draws, chains, seed, keep, report) -> Result

`fit` receives options that were checked, a seed that is always an integer, the names of the
variables to keep (None: all), and a `Reporter`. It raises `FitFailed` when there is nothing to
return, and sets `status` to "not_converged" when there is something that must not be trusted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .progress import Reporter
from .target import Target

KINDS = ("mcmc", "approximation", "search", "point")


class FitFailed(RuntimeError):
    """A method ended without a usable result; the message is the reason."""


@dataclass
class Result:
    """Draws and details of one fit, as plain arrays.

    Attributes
    ----------
    posterior : dict of array (chain, draw, ...)
        Free variables and deterministics by name.
    sample_stats : dict of array (chain, draw, ...)
        Statistics per draw, under the names of `datatree.SAMPLE_STATS`.
    details : dict of array
        The `fit` group: location, scale, objective trace, visited states, ...
    dims : dict of tuple of str
        Dims of arrays (without chain and draw) that the PyMC model does not name.
    status, reason : str
        "ok" or "not_converged", and why.
    attrs : dict
        Further facts for the fit's attrs (numbers and strings).
    """

    posterior: dict[str, np.ndarray]
    sample_stats: dict[str, np.ndarray] = field(default_factory=dict)
    details: dict[str, np.ndarray] = field(default_factory=dict)
    dims: dict[str, tuple[str, ...]] = field(default_factory=dict)
    status: str = "ok"
    reason: str = ""
    seconds_compile: float = 0.0
    seconds_run: float = 0.0
    attrs: dict[str, Any] = field(default_factory=dict)


class Backend(Protocol):
    """The names a backend module has (see the module docstring)."""

    NAME: str
    KIND: str
    Options: type[Any]
    supports: Callable[[Any, Any], str | None]

    def fit(
        self,
        target: Target,
        options: Any,
        *,
        draws: int,
        chains: int,
        seed: int,
        keep: list[str] | None,
        report: Reporter,
    ) -> Result:
        """Compute the posterior or its approximation."""
        ...
