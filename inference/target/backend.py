"""What a method must define, and what it returns.

A backend is a module with these names (one file per method; `BACKENDS` in `methods/registry.py`
lists them):

    NAME       its name on the command line and in tables
    KIND       "mcmc" (exact in the limit), "approximation" (draws from a stated q), "search"
               (visited states with scores) or "point" (one state)
    ABOUT      what it approximates, when it is exact and what it costs: three sentences that help a
               reader to choose (`ardvark methods` prints them)
    Options    its options, a subclass of `Settings`, every one with a default
    supports   (target) -> None, or the reason why the method cannot be used
    fit        (target, options, job) -> Result

`supports` and `fit` use the `Target`: `target.problem` is the problem of the zoo or None, and
`target.model` is its `pm.Model`. The model of a problem is built on all of its data when first
read. A method that uses only the problem avoids that cost; `supports` should not read the model.

`fit` receives checked options and a `Job`. It raises `FitFailed` if there is nothing to return, and
sets `status` to "not_converged" if the result must not be trusted. A method may also define

    predict_paper  (problem, details, X_new) -> P(y = 1), its own predictor
    held           (options, job) -> the draws of each chain that it must hold at once, for a method
                   where they are not those that were asked for (`length.py`)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import numpy as np

from ardvark.common.progress import Reporter
from ardvark.common.validate import one_of

from .reasons import Reason
from .sampling import Sampling
from .target import Target

Kind = Literal["mcmc", "approximation", "search", "point"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Status = Literal["finished", "not_converged", "failed"]
STATUSES: tuple[Status, ...] = get_args(Status)
Dims = dict[str, tuple[str, ...]]
Arrays = Mapping[str, np.ndarray]


class FitFailed(RuntimeError):
    """A method ended without a usable result; the message is the reason."""


@dataclass(frozen=True, eq=False)
class Earlier:
    """What an earlier run of chains left, from which they go on.

    Attributes
    ----------
    posterior, sample_stats : dict of array (chain, draw, ...)
        Its draws after the warm-up.
    last : dict of array (chain, ...)
        Where its chains ended, as `Chains.last` returned it.
    iterations, every : int
        How far it got, and the distance of its draws.
    at : array (draw,), optional
        The iteration of each of its draws, where some were left out at the end.
    """

    posterior: Arrays
    sample_stats: Arrays
    last: Arrays
    iterations: int
    every: int
    at: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class Job(Sampling):
    """A `Sampling` as a method gets it: `keep` is spelled out for the target, stages are shown.

    Attributes
    ----------
    names : tuple of str, optional
        Names of the variables to return; None: all.
    label : str
        What is running, put before each stage.
    earlier : Earlier, optional
        The run to go on with, for a method that can (`exact`).
    checkpoint : callable, optional
        Takes a function that returns the run as far as it got, for a method that can go on; whether
        it is called, the checkpoint decides (`methods/checkpoint.py`).
    """

    names: tuple[str, ...] | None = None
    label: str = ""
    earlier: Earlier | None = None
    checkpoint: Callable[[Callable[[], "Result"]], None] | None = None

    @cached_property
    def report(self) -> Reporter:
        """Where stages are shown; silent without `progressbar`."""
        return Reporter(self.label, self.progressbar)

    def keeps(self, name: str) -> bool:
        """Whether the variable is to be returned."""
        return self.names is None or name in self.names

    def one_draw(self, point: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return a point as a posterior of one chain and one draw, {name: (1, 1, ...)}."""
        return {k: np.asarray(x)[None, None] for k, x in point.items() if self.keeps(k)}


@dataclass
class Result:
    """Draws and details of one fit, as plain arrays.

    Attributes
    ----------
    posterior : dict of array (chain, draw, ...)
        Free variables and deterministics of the target, under its names (`Target.sizes`).
    sample_stats : dict of array (chain, draw, ...)
        Statistics per draw, under the names of `datatree.SAMPLE_STATS`.
    details : dict of array
        The `fit` group: location, scale, objective trace, visited states, ...
    dims : dict of tuple of str
        Dims of arrays (without chain and draw) that the PyMC model does not name.
    status : str
        "finished" or "not_converged".
    reason : str or Reason
        Why; a `Reason` if code has to tell it from others (`reasons.py`).
    judged : bool
        Whether the status says that its chains have converged, or what they lack. Otherwise `fit`
        judges the draws of a Markov chain.
    seconds_compile, seconds_run : float
        If the second is omitted, it is the rest of the time that the method took.
    attrs : dict
        Further facts for the fit's attrs (numbers and strings).

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.inference import Result
    >>> Result({"bias": np.zeros((4, 100))}).status  # 4 chains of 100 draws
    'finished'
    """

    posterior: dict[str, np.ndarray]
    sample_stats: dict[str, np.ndarray] = field(default_factory=dict)
    details: dict[str, np.ndarray] = field(default_factory=dict)
    dims: Dims = field(default_factory=dict)
    status: Status = "finished"
    reason: str | Reason = ""
    judged: bool = False
    seconds_compile: float = 0.0
    seconds_run: float = 0.0
    attrs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of("status", self.status, STATUSES)


@dataclass(frozen=True, kw_only=True)
class About:
    """A method in three sentences, for a reader who chooses between methods."""

    approximates: str
    exact: str
    cost: str


class Backend(Protocol):
    """The names a backend module has (see the module docstring)."""

    NAME: str
    KIND: Kind
    ABOUT: About
    Options: type[Any]
    supports: Callable[[Target], str | None]
    fit: Callable[[Target, Any, Job], Result]


# --- ready-made `supports` ------------------------------------------------------------------------


def only_for(
    models: Sequence[str], what: str, *, fixed_scale: bool = False, covariates: bool = False
) -> Callable[[Target], str | None]:
    """Return the `supports` of a method for some models of the zoo; `what` describes the method.

    With `fixed_scale`, a prior whose scale is learned is refused; without `covariates`, columns
    that are always in the model.
    """
    names = " or ".join(map(repr, models))
    some = "model" if len(models) == 1 else "models"

    def supports(target: Target) -> str | None:
        """Return why the method does not apply, or None."""
        if target.problem is None:
            return f"it needs a problem for the {some} {names}, not a bare pm.Model"
        if target.problem.spec.name not in models:
            return f"it is {what}, and the model is {target.problem.spec.name!r}"
        if target.problem.always and not covariates:
            return f"it takes no covariates (always) of {target.problem.spec.name!r}"
        if fixed_scale and target.problem.hypers.learned_scale is not None:
            name, learned = target.problem.spec.name, target.problem.hypers.learned_scale
            return (
                f'it has no step for a learned {learned}; choose scale="fixed", which is '
                f'av.problem("{name}", data, scale="fixed"), --set scale=fixed, the candidate '
                f'{name}:scale=fixed, or hypers={{"scale": "fixed"}} of SparseBayesClassifier; or '
                "take an exact method"
            )
        return None

    return supports


_WITHOUT_DISCRETE = (
    "sum them out of it (pymc_extras.marginalize), leave out rows whose observation is missing, or "
    "take on draws of pm.sample by ardvark.adopt(model, draws)"
)
"""What helps a model of one's own; a problem has other methods."""


def continuous_only(title: str) -> Callable[[Target], str | None]:
    """Return the `supports` of a method, called `title`, that needs a differentiable density.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from ardvark.inference import continuous_only
    >>> supports = continuous_only("a random walk")  # None, or the reason why it does not apply
    >>> supports(SimpleNamespace(discrete="the masks of z", problem="fsklr"))
    'a random walk takes no discrete variables, and this model has the masks of z'
    """

    def supports(target: Target) -> str | None:
        """Return why the method does not apply, or None."""
        if not target.discrete:
            return None
        told = f"{title} takes no discrete variables, and this model has {target.discrete}"
        return told if target.problem is not None else f"{told}; {_WITHOUT_DISCRETE}"

    return supports
