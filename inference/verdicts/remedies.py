"""What to do about a fit that must not be trusted: commands that fit the case.

A verdict gives them in the terms of `ardvark.fit`, the command line in its flags, the estimator's
warning in its arguments. No remedy names a method that is already in use, nor an option that the
method does not have.
"""

import ast
import json
import math
import shlex
from collections.abc import Mapping
from typing import Any

import xarray as xr

from ardvark.models import Problem

from ..fitting.registry import BACKENDS, applicable

FEWEST = 50.0
"""Effective draws below which nothing is said: a probability is then known to 0.07 at best."""
ENOUGH = 400.0
"""Effective draws below which Vehtari et al. (2021) do not trust R-hat and ESS themselves. With
this many draws a mean is known to 0.05 sd."""
EXACT = 'ardvark.fit(problem, "exact")'
"""The command that picks an exact sampler, and runs it until it has converged."""
RESUME = "ardvark.resume(problem, fit)"
REFERENCE = "use the reference"
_FLAGS = {"draws": "--draws", "chains": "--chains", "random_seed": "--seed"}
"""The flags of `ardvark compare` that are arguments of `ardvark.fit`; others are options."""
_AGAIN: tuple[tuple[str, str, float], ...] = (
    ("still rising", "max_iterations", 4),
    ("the ELBO fell", "step_sizes", 0.1),
    ("stopped short", "max_iterations", 4),
    ("iterations", "max_iterations", 4),
    ("sweeps", "max_sweeps", 4),
)
"""What a reason contains, the option that helps, and by how much it changes."""


def run(tree: xr.DataTree, **changes: Any) -> str:
    """Return the command that fits again by the same method, with other arguments."""
    given = "".join(f", {name}={value!r}" for name, value in changes.items())
    method = tree.attrs.get("method")
    if method not in BACKENDS:
        return f"run it again with {given[2:]}"
    return f'ardvark.fit(problem, "{method}"{given})'


def instead(beside: bool) -> str:
    """Return what to do about an approximation that is wrong."""
    return REFERENCE if beside else EXACT


def again(tree: xr.DataTree, beside: bool) -> str:
    """Return what to do about a method that reports that it did not converge."""
    reason = str(tree.attrs.get("reason") or "")
    if "raise " in reason:  # it says so itself
        return ""
    if "boundary" not in reason and "curvature" not in reason:
        for words, name, by in _AGAIN:
            if words in reason and has_option(tree, name):
                return run(tree, **{name: _times(option_of(tree, name), by)})
    return instead(beside)


def _times(value: Any, by: float) -> Any:
    if isinstance(value, list | tuple):
        return tuple(float(f"{v * by:.2g}") for v in value)
    return type(value)(value * by)


def has_option(tree: xr.DataTree, name: str) -> bool:
    """Whether the method of a fit has an option of that name."""
    method = str(tree.attrs.get("method"))
    return method in BACKENDS and name in [d.name for d in BACKENDS[method].Options.declared()]


def option_of(tree: xr.DataTree, name: str) -> Any:
    """Return the value that an option of a fit's method had."""
    given = options(tree).get(name)
    return getattr(BACKENDS[tree.attrs["method"]].Options(), name) if given is None else given


def mix(tree: xr.DataTree, beside: bool) -> str:
    """Return what to do about chains that disagree."""
    if tree.attrs.get("method") == "exact":
        return RESUME
    return instead(beside)


def move(tree: xr.DataTree, beside: bool) -> str:
    """Return what to do about chains that never moved, or a mask that never changed."""
    if tree.attrs.get("method") == "exact":
        return run(tree, random_seed=int(tree.attrs.get("seed") or 0) + 1)
    return instead(beside)


def raise_draws(tree: xr.DataTree, ess: float) -> str:
    """Return how a fit gets enough effective draws."""
    if tree.attrs.get("method") == "exact":
        return RESUME
    return run(tree, draws=enough_draws(tree["posterior"].sizes["draw"], ess))


def enough_draws(draws: int, ess: float) -> int:
    """Return how many draws per chain would give `ENOUGH` effective draws, to two digits."""
    needed = draws * ENOUGH / max(ess, 1.0)
    unit = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    return math.ceil(needed / unit) * unit


def options(tree: xr.DataTree) -> dict[str, Any]:
    """Return the options that a fit was given."""
    return dict(json.loads(tree.attrs.get("options") or "{}"))


def raise_target(tree: xr.DataTree, beside: bool) -> str:
    """Return the next higher target of acceptance, against divergences."""
    # where none was given, the sampler says which one it took
    taken = options(tree).get("target_accept") or tree.attrs.get("target_accept")
    target = float(taken or 0.8)
    higher = next((t for t in (0.9, 0.95, 0.99, 0.995) if t > target + 1e-9), 0.999)
    if tree.attrs.get("method") in BACKENDS and not has_option(tree, "target_accept"):
        return mix(tree, beside)
    return run(tree, target_accept=higher)


def on_command_line(remedy: str, name: str, fits: Mapping[str, xr.DataTree]) -> str:
    """Return a remedy for the fit of that name in the flags of the `ardvark compare` that made it.

    Examples
    --------
    >>> from ardvark.inference.verdicts.remedies import on_command_line
    >>> fits = {"nuts": None}
    >>> on_command_line('ardvark.fit(problem, "nuts", draws=2000, tune=900)', "nuts", fits)
    'run the same command with --draws 2000 --option nuts.tune=900'
    >>> on_command_line('ardvark.fit(problem, "exact")', "nuts", fits)
    'run the same command with --methods exact,nuts'
    """
    if not remedy.startswith("ardvark."):
        return remedy
    call = ast.parse(remedy, mode="eval").body
    assert isinstance(call, ast.Call)
    if remedy == RESUME:
        limit = _limit(fits[name])
        method, changes = name, {limit: 4 * option_of(fits[name], limit)}
    else:
        method = ast.literal_eval(call.args[1])
        changes = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    flags = [] if method in fits else ["--methods", ",".join([method, *fits])]
    for changed, value in changes.items():
        if changed in _FLAGS:
            flags += [_FLAGS[changed], str(value)]
        else:
            word = value if isinstance(value, str) else json.dumps(value)
            flags += ["--option", f"{method}.{changed}={word}"]
    return f"run the same command with {shlex.join(flags)}" if flags else f"use {method}"


def _limit(tree: xr.DataTree) -> str:
    """Return the option of `exact` whose limit ended its run."""
    return "minutes" if tree.attrs.get("ended") == "time" else "limit"


def for_estimator(problem: Problem, tree: xr.DataTree) -> str:
    """Return what to do about a fit that has not converged, in the arguments of the estimator."""
    method = tree.attrs["method"]
    if method == "exact":
        return _longer(tree)
    words = []
    backend = BACKENDS[method]
    names = [o.name for o in backend.Options.declared()]
    if backend.KIND == "mcmc":
        steps = ["raise draws", "method_options={'tune': ...}"]
        if "target_accept" in names:
            steps.append("method_options={'target_accept': 0.95} if transitions diverge")
        words.append(f"Try a longer run: {', '.join(steps)}.")
    else:
        words += [
            f"Try method_options={{{name!r}: ...}} with more than the default."
            for name in names
            if name in ("max_iterations", "max_sweeps")
        ]
    if "exact" in applicable(problem):
        words.append("Or try method='exact', which runs until it has converged.")
    return " ".join(words)


def _longer(tree: xr.DataTree) -> str:
    """Return how a run of `exact` is given more time, or goes on."""
    asked = options(tree)
    limit = _limit(tree)
    return (
        f"Try method_options={{{limit!r}: {4 * asked[limit]}}}, or go on from here: "
        "classifier.posterior_ = ardvark.resume(classifier.problem_, classifier.posterior_)."
    )
