"""What to do about a fit that must not be trusted: the rules that choose a remedy for the case.

No remedy names a method that is already in use, nor an option that the method does not have. How a
remedy is written, in Python, in flags or for the estimator, is said in `saying.py`.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import xarray as xr

from ...fits.convergence import VERDICT
from ...fits.datatree import is_bare
from ...methods.registry import BACKENDS

Action = Literal["fit", "resume", "rerun", "rewrite", "use the reference", "fit its problem"]


@dataclass(frozen=True)
class Remedy:
    """What to do about a fit.

    Attributes
    ----------
    action : str
        "fit" by `method` with other arguments; "resume" the fit, with other options; "rerun" it,
        where nothing is known of its method; "rewrite" the model, "use the reference", or "fit
        its problem".
    method : str
        In `BACKENDS`.
    changes : dict
        The arguments or options that change.
    """

    action: Action
    method: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)


USE_EXACT = Remedy("fit", "exact")
"""The method that picks an exact sampler, and runs it until it has converged."""
USE_REFERENCE = Remedy("use the reference")
REWRITE = Remedy("rewrite")
"""What helps where steps along gradients fail in a model of one's own."""
LONGER = 4
"""The factor by which what ended a run grows."""
_SHORTER = 0.1
_CHANGED = {"still rising": "max_iterations", "short": "max_iterations", "fell": "step_sizes"}
"""By the code of a reason, the option that helps."""


def run(tree: xr.DataTree, **changes: Any) -> Remedy:
    """Return the remedy to fit again by the same method, with other arguments."""
    method = str(tree.attrs.get("method"))
    return Remedy("fit", method, changes) if method in BACKENDS else Remedy("rerun", "", changes)


def instead(beside: bool) -> Remedy:
    """Return what to do about an approximation that is wrong."""
    return USE_REFERENCE if beside else USE_EXACT


def proof(tree: xr.DataTree) -> Remedy | None:
    """Return what to do about draws that do not prove what they are of.

    Nothing of ours draws discrete variables of a model of one's own.
    """
    discrete = any(v.dtype.kind in "iub" for v in tree["posterior"].data_vars.values())
    return None if is_bare(tree) and discrete else USE_EXACT


def again(tree: xr.DataTree, beside: bool) -> Remedy | None:
    """Return what to do about a method that reports that it did not converge."""
    code = str(tree.attrs.get("reason_code", "told"))
    if code == "unfinished":  # its words say what to raise
        return None
    option = _CHANGED.get(code, "")
    if not has_option(tree, option):
        return instead(beside)
    value = option_of(tree, option)
    if option == "step_sizes":
        return run(tree, step_sizes=tuple(float(f"{v * _SHORTER:.2g}") for v in value))
    return run(tree, **{option: LONGER * value})


def has_option(tree: xr.DataTree, name: str) -> bool:
    """Whether the method of a fit has an option of that name."""
    method = str(tree.attrs.get("method"))
    return method in BACKENDS and name in [d.name for d in BACKENDS[method].Options.declared()]


def option_of(tree: xr.DataTree, name: str) -> Any:
    """Return the value that an option of a fit's method had."""
    given = options(tree).get(name)
    return getattr(BACKENDS[tree.attrs["method"]].Options(), name) if given is None else given


def options(tree: xr.DataTree) -> dict[str, Any]:
    """Return the options that a fit was given."""
    return dict(json.loads(tree.attrs.get("options") or "{}"))


def _is_exact(tree: xr.DataTree) -> bool:
    return tree.attrs.get("method") == "exact"


def resume(tree: xr.DataTree) -> Remedy:
    """Return the remedy to go on with a run of `exact`, with more of what ended it."""
    limit = "minutes" if tree.attrs.get("ended") == "time" else "limit"
    return Remedy("resume", "exact", {limit: LONGER * option_of(tree, limit)})


def mix(tree: xr.DataTree, beside: bool) -> Remedy:
    """Return what to do about chains that disagree."""
    return resume(tree) if _is_exact(tree) else instead(beside)


def move(tree: xr.DataTree, beside: bool) -> Remedy:
    """Return what to do about chains that never moved, or a mask that never changed."""
    return reseed(tree) if _is_exact(tree) else instead(beside)


def reseed(tree: xr.DataTree) -> Remedy:
    """Return the remedy to fit again with another seed."""
    return run(tree, random_seed=int(tree.attrs.get("seed") or 0) + 1)


def raise_draws(tree: xr.DataTree, ess: float) -> Remedy:
    """Return how a fit gets enough effective draws."""
    if _is_exact(tree):
        return resume(tree)
    return run(tree, draws=enough_draws(tree["posterior"].sizes["draw"], ess))


def more(tree: xr.DataTree) -> Remedy:
    """Return how a fit becomes longer, whatever it lacks."""
    return raise_draws(tree, VERDICT.bulk / LONGER)


def enough_draws(draws: int, ess: float) -> int:
    """Return how many draws per chain would give enough effective ones, to two digits."""
    needed = draws * VERDICT.bulk / max(ess, 1.0)
    unit = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    return math.ceil(needed / unit) * unit


def raise_target(tree: xr.DataTree, beside: bool) -> Remedy:
    """Return the next higher target of acceptance, against divergences."""
    # where none was given, the sampler says which one it took
    taken = options(tree).get("target_accept") or tree.attrs.get("target_accept")
    target = float(taken or 0.8)
    higher = next((t for t in (0.9, 0.95, 0.99, 0.995) if t > target + 1e-9), 0.999)
    if tree.attrs.get("method") in BACKENDS and not has_option(tree, "target_accept"):
        return _reach(tree, mix(tree, beside))
    return run(tree, target_accept=higher)


def reach(tree: xr.DataTree) -> Remedy:
    """Return what to do about slowly explored tails."""
    return _reach(tree, raise_draws(tree, VERDICT.bulk / LONGER))


def _reach(tree: xr.DataTree, otherwise: Remedy) -> Remedy:
    along_gradients = tree.attrs.get("method") in ("exact", "nuts")
    return REWRITE if is_bare(tree) and along_gradients else otherwise


def deepen(tree: xr.DataTree, limit: int) -> Remedy | None:
    """Return the remedy of deeper trajectories, None if the method has no such option."""
    if tree.attrs.get("method") in BACKENDS and not has_option(tree, "max_treedepth"):
        return None
    return run(tree, max_treedepth=limit + 2)
