"""What to do about a fit that must not be trusted: the remedies that depend on the fit.

A verdict gives them in the terms of `ardvark.fit`, the estimator's warning in its own.
"""

import json
import math
from typing import Any

import xarray as xr

from ardvark.models import Problem

from ..fitting.registry import BACKENDS, applicable

ENOUGH = 400.0
"""Effective draws below which Vehtari et al. (2021) do not trust R-hat and ESS themselves. With
this many draws a mean is known to 0.05 sd."""
_AGAIN: tuple[tuple[str, str], ...] = (
    ("still rising", "raise max_iterations"),
    ("the ELBO fell", "lower step_sizes"),
    ("ran to a boundary", "use exact; no Gaussian fits a density that peaks at its boundary"),
    ("stopped short", "raise max_iterations"),
    ("curvature", "use exact, or another starting point"),
    ("iterations", "raise max_iterations"),
    ("sweeps", "raise max_sweeps"),
)


def again(tree: xr.DataTree) -> str:
    """Return what to do about a method that reports that it did not converge."""
    reason = str(tree.attrs.get("reason") or "")
    if "raise " in reason:  # it says so itself
        return ""
    return next((remedy for words, remedy in _AGAIN if words in reason), "use another method")


def mix(tree: xr.DataTree) -> str:
    """Return what to do about chains that disagree."""
    if tree.attrs.get("method") == "exact":
        return "go on with ardvark.resume, or raise limit"
    return "exact, which picks the sampler and runs until it has converged"


def raise_draws(draws: int, ess: float) -> str:
    """Return how many draws a chain needs."""
    return f"raise draws to about {enough_draws(draws, ess)}"


def enough_draws(draws: int, ess: float) -> int:
    """Return how many draws per chain would give `ENOUGH` effective draws, to two digits."""
    needed = draws * ENOUGH / max(ess, 1.0)
    unit = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    return math.ceil(needed / unit) * unit


def options(tree: xr.DataTree) -> dict[str, Any]:
    """Return the options that a fit was given."""
    return dict(json.loads(tree.attrs.get("options") or "{}"))


def raise_target(tree: xr.DataTree) -> str:
    """Return the next higher target of acceptance, against divergences."""
    # where none was given, the sampler says which one it took
    taken = options(tree).get("target_accept") or tree.attrs.get("target_accept")
    target = float(taken or 0.8)
    higher = next((t for t in (0.9, 0.95, 0.99, 0.995) if t > target + 1e-9), 0.999)
    return f"raise target_accept to {higher:g}, or use another parameterisation"


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
    limit = "minutes" if tree.attrs["ended"] == "time" else "limit"
    return (
        f"Try method_options={{{limit!r}: {4 * asked[limit]}}}, or go on from here: "
        "classifier.posterior_ = ardvark.resume(classifier.problem_, classifier.posterior_)."
    )
