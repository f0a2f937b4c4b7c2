"""The quantities that are compared between fits, and their distances from the reference.

    eta, feature_weight, sample_weight   the shared quantities
    primal_weight   theta_k sum_j a_j z_jk, the weight of feature k itself, if the kernel is linear
                    and the model has a basis; its scale is identified, unlike that of its factors
    scalar          the bias and every other number of the model; the log of what is positive
    precision       the log of every positive vector of the model, such as precisions and scales
    probability     P(y = 1) at the test rows, or at the training rows if there are no test rows
    lp              log posterior of the unconstrained vector, between fits of the same form
    any other       functions of the posterior that the user gives

    ranking         the order of the features by mean absolute primal weight, or, without primal
                    weights, by mean absolute feature weight
    selection       P(active) of the features

Of the weights of features and samples the leading ones are compared, one by one: those that are
active in more than a tenth of the reference's draws. The reference alone chooses them. Which others
a fit has active is judged by `selection`, and how they act together by `eta`.

`statistics/` computes the distances; each statistic declares the kind of quantity it applies to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError
from ardvark.models import SHARED, ZOO, Problem

from ..fits.activity import LISTED
from ..fits.datatree import group, pointwise
from ..fits.diagnostics import masks
from .draws import CONTINUOUS, MASK, PROBABILITY, RANKING, SELECTION, Draws, Exact
from .statistic import PARAMETERS, Score
from .statistics import STATISTICS
from .statistics.p_active import activity
from .statistics.ranking import leading

WEIGHTS = {
    "feature_weight": "the weight of",
    "primal_weight": "the primal weight of",
    "sample_weight": "the weight of sample",
}
"""Quantities of which the leading components are compared, in words."""
Scores = dict[str, dict[str, Score]]
"""By quantity, by statistic."""
Function = Callable[[xr.Dataset], object]
"""A quantity defined by the user: posterior -> array (chain, draw, ...)."""
SIGNED = ("bias",)
"""Scalars that may be positive in all draws although they need not be."""
FRAME = (
    "method", "quantity", "statistic", "value", "deviation", "floor", "typical", "inside",
)  # fmt: skip
"""The columns of `as_frame`."""


# --- the draws of each quantity -------------------------------------------------------------------


def quantities(
    problem: Problem | None,
    probability: Mapping[str, np.ndarray],
    own: Mapping[str, Function] | None = None,
    exact: xr.DataTree | None = None,
) -> dict[str, Callable[[str, xr.DataTree], np.ndarray | None]]:
    """Return functions, by quantity, that read its draws (chain, draw, K) from a fit, or None.

    Parameters
    ----------
    problem : Problem, optional
        Needed for primal weights.
    probability : dict of array (chain, draw, M)
        P(y = 1) at test rows, by fit.
    own : dict of callable
        Quantities defined by the user, as functions of the posterior group.
    exact : DataTree, optional
        The reference, whose scalars and precisions are read.

    Raises
    ------
    InputError
        A name exists already, or a function does not return an array (chain, draw, ...).
    """
    found: dict[str, Callable[[str, xr.DataTree], np.ndarray | None]] = {
        name: partial(_shared, name) for name in SHARED
    }
    found["primal_weight"] = lambda _, tree: primal(problem, tree)
    for quantity, known in _parameters(problem, exact).items():
        found[quantity] = partial(_logs, known)
    found["probability"] = lambda name, tree: probability.get(name, fitted(tree))
    found["lp"] = lambda _, tree: _lp(tree)
    for name, function in (own or {}).items():
        if name in (*found, *PARAMETERS, "ranking", "selection"):
            raise InputError(f"a quantity named {name!r} exists already; choose another name.")
        found[name] = partial(_own, name, function)
    return found


def _parameters(problem: Problem | None, exact: xr.DataTree | None) -> dict[str, dict[str, bool]]:
    """Return by quantity its variables in the reference, and whether their log is compared."""
    found: dict[str, dict[str, bool]] = {name: {} for name in PARAMETERS}
    fixed = () if problem is None else problem.spec.fixed
    posterior = xr.Dataset() if exact is None else group(exact, "posterior")
    for name, values in posterior.data_vars.items():
        own, x = str(name), values.values
        if own in (*SHARED, *fixed) or own.endswith("_raw") or x.dtype.kind != "f":
            continue
        positive = own not in SIGNED and bool((x > 0.0).all())
        if x.ndim == 2:
            found["scalar"][own] = positive
        elif x.ndim == 3 and positive:
            found["precision"][own] = True
    return {quantity: known for quantity, known in found.items() if known}


def _logs(known: Mapping[str, bool], _: str, tree: xr.DataTree) -> np.ndarray | None:
    """Return variables side by side, (chain, draw, K), the logs of those that are positive."""
    posterior, tiny = group(tree, "posterior"), np.finfo(float).tiny
    if not all(name in posterior for name in known):
        return None
    parts = []
    for name, positive in known.items():
        x = posterior[name].transpose("chain", "draw", ...).values
        x = x.reshape(*x.shape[:2], -1)
        parts.append(np.log(np.maximum(x, tiny)) if positive else x)
    return np.concatenate(parts, axis=-1)


def _shared(name: str, _: str, tree: xr.DataTree) -> np.ndarray | None:
    posterior = group(tree, "posterior")
    return posterior[name].transpose("chain", "draw", ...).values if name in posterior else None


def _lp(tree: xr.DataTree) -> np.ndarray | None:
    stats = group(tree, "sample_stats")
    if "lp" not in stats or stats["lp"].size < 2 or not np.isfinite(stats["lp"].values).all():
        return None
    return stats["lp"].transpose("chain", "draw").values[..., None]


def _own(name: str, function: Function, _: str, tree: xr.DataTree) -> np.ndarray:
    posterior = group(tree, "posterior")
    found = function(posterior)
    if isinstance(found, xr.DataArray):
        found = found.transpose("chain", "draw", ..., missing_dims="ignore").values
    values = np.asarray(found, dtype=float)
    sizes = (posterior.sizes["chain"], posterior.sizes["draw"])
    if values.shape[:2] != sizes:
        raise InputError(
            f"quantity {name!r} must return one value, or one array, for each draw. It returned "
            f"the shape {values.shape}, and the posterior's (chain, draw) are {sizes}."
        )
    return values.reshape(*sizes, -1)


def has_primal(problem: Problem | None, tree: xr.DataTree) -> bool:
    """Whether the features have weights of their own that are not a variable of the model."""
    if problem is None or problem.kernel is None or not problem.kernel.is_primal:
        return False
    posterior = group(tree, "posterior")
    return all(name in posterior for name in ("feature_weight", "sample_weight"))


def primal(problem: Problem | None, tree: xr.DataTree) -> np.ndarray | None:
    """Return the features' own weights (chain, draw, D), if the kernel is linear."""
    if problem is None or not has_primal(problem, tree):
        return None
    posterior = group(tree, "posterior")
    point = {
        name: posterior[name].transpose("chain", "draw", ...).values
        for name in ("feature_weight", "sample_weight")
    }
    return problem.spec.theta(point, problem.hypers) * (point["sample_weight"] @ problem.Z)


def fitted(tree: xr.DataTree) -> np.ndarray | None:
    """Return P(y = 1) (chain, draw, N) at the training rows, from the pointwise likelihood."""
    likelihood, data = pointwise(tree), group(tree, "observed_data")
    model = ZOO.get(str(tree.attrs.get("model")))
    if "y" not in likelihood or "y" not in data or model is None or model.link == "identity":
        return None
    log_p = likelihood["y"].transpose("chain", "draw", "obs").values
    return np.where(data["y"].values == 1, np.exp(log_p), -np.expm1(log_p))


# --- how far they are from the reference ----------------------------------------------------------


def measure(
    fits: Mapping[str, xr.DataTree],
    reference: str,
    problem: Problem | None = None,
    probability: Mapping[str, np.ndarray] | None = None,
    own: Mapping[str, Function] | None = None,
) -> dict[str, Scores]:
    """Return every distance of every fit from the reference, with its noise floor.

    The reference's own entry compares one half of its chains with the other, without a floor. The
    parameters are those of `quantities`. Quantities are processed one at a time to save memory.
    """
    exact_tree = fits[reference]
    found: dict[str, Scores] = {name: {} for name in fits}
    others = {n: t for n, t in fits.items() if t is not exact_tree and has_draws(t)}
    readers = quantities(problem, probability or {}, own, exact_tree)
    for quantity, draws_of in readers.items():
        values = draws_of(reference, exact_tree)
        if values is None or values.shape[0] * values.shape[1] < 2:
            continue
        sides = _sides(quantity, values, problem, exact_tree)
        for name in (n for n, t in fits.items() if t is exact_tree):
            found[name] |= {of: both for of, s in sides.items() if (both := _halves(s.exact))}
        for name, tree in others.items():
            draws = draws_of(name, tree) if _comparable(quantity, tree, exact_tree) else None
            if draws is not None and draws.shape[2:] == values.shape[2:]:
                found[name] |= {of: side.scores(draws, tree) for of, side in sides.items()}
    for name, tree in others.items():
        found[name] |= _selection(tree, exact_tree)
    return found


def _comparable(quantity: str, tree: xr.DataTree, exact: xr.DataTree) -> bool:
    """Whether a quantity means the same in two fits; lp does only if their forms are the same."""
    return quantity != "lp" or tree.attrs.get("form") == exact.attrs.get("form")


@dataclass(frozen=True, eq=False)
class _Side:
    """The reference's draws of a quantity, and which components they are of all."""

    exact: Exact
    columns: np.ndarray

    def scores(self, draws: np.ndarray, tree: xr.DataTree) -> dict[str, Score]:
        """Return the distances of a fit's draws (chain, draw, K) of all components."""
        found = Draws(draws[..., self.columns], _independent(tree))
        return scores(found.sizes() if self.exact.kinds >= RANKING else found, self.exact)


def scores(found: Draws, exact: Exact) -> dict[str, Score]:
    """Return every distance that applies to a quantity, each with its floor."""
    return {s.name: s.score(found, exact) for s in STATISTICS if s.of in exact.kinds}


def has_draws(tree: xr.DataTree) -> bool:
    """Whether a fit has a posterior, which a failed fit does not."""
    return bool(group(tree, "posterior").data_vars)


def _independent(tree: xr.DataTree) -> bool:
    """Whether the draws of a fit are independent by construction, unlike those of a chain."""
    return tree.attrs.get("kind") != "mcmc"


def _sides(
    quantity: str, values: np.ndarray, problem: Problem | None, tree: xr.DataTree
) -> dict[str, _Side]:
    """Return the reference's draws of a quantity, and of the ranking if it is derived from it."""
    kinds = CONTINUOUS
    if quantity == "probability":
        kinds = PROBABILITY
    elif quantity == "feature_weight" and quantity in masks(tree):
        kinds = MASK
    every = np.arange(values.shape[2])
    columns = every if kinds == MASK else _leading(quantity, values, tree)
    names = labels(quantity, len(every), problem, tree)
    named = tuple(names[k] for k in columns) if names else ()
    exact = Exact(values[..., columns], _independent(tree), kinds=kinds, labels=named)
    ranked = "primal_weight" if has_primal(problem, tree) else "feature_weight"
    if quantity != ranked or len(every) < 2:
        return {quantity: _Side(exact, columns)}
    order = Exact(values, _independent(tree)).sizes()
    return {quantity: _Side(exact, columns), "ranking": _Side(order, every)}


def _leading(quantity: str, values: np.ndarray, tree: xr.DataTree) -> np.ndarray:
    """Return the components of a quantity that are compared one by one."""
    every, selection = np.arange(values.shape[2]), group(tree, "selection")
    what = "sample" if quantity == "sample_weight" else "feature"
    name = f"p_active_{what}"
    if quantity not in WEIGHTS or name not in selection:
        return every
    p = selection[name].values
    if p.shape != every.shape:
        return every
    listed = np.flatnonzero(p > LISTED)
    if len(listed):
        return listed
    size = np.abs(values).mean(axis=(0, 1))  # nothing is active: the largest of what there is
    return np.sort(np.argsort(-size, kind="stable")[: leading(len(every))])


def labels(quantity: str, size: int, problem: Problem | None, tree: xr.DataTree) -> tuple[str, ...]:
    """Return the components of a quantity in words; none for a quantity of the user's own."""
    if quantity in PARAMETERS:
        known, posterior = _parameters(problem, tree)[quantity], group(tree, "posterior")
        found: list[str] = []
        for name, positive in known.items():
            width = posterior[name].size // (posterior.sizes["chain"] * posterior.sizes["draw"])
            word = f"log {name}" if positive else name
            found += [word] if quantity == "scalar" else [f"{word}[{k}]" for k in range(width)]
        return tuple(found)
    if quantity == "eta":
        return tuple(f"eta[{k}]" for k in range(size))
    if quantity == "probability":
        return tuple(f"row {k}" for k in range(size))
    if quantity not in WEIGHTS:
        return ()
    axis = "basis" if quantity == "sample_weight" else "feature"
    names = _names(axis, size, problem, tree)
    return tuple(f"{WEIGHTS[quantity]} {name}" for name in names)


def _names(axis: str, size: int, problem: Problem | None, tree: xr.DataTree) -> list[str]:
    """Return the names of features or of basis samples; numbers where they have none."""
    if problem is not None and len(problem.coords.get(axis, ())) == size:
        return list(map(str, problem.coords[axis]))
    coords = group(tree, "posterior").coords
    if axis in coords and coords[axis].size == size:
        return list(map(str, coords[axis].values))
    return [str(k) for k in range(size)]


def _halves(exact: Exact) -> dict[str, Score]:
    """Return the distances of the first half of the chains from the second, without floors."""
    if exact.draws.shape[0] < 2:
        return {}
    first, second = exact.split()
    found = {}
    for s in STATISTICS:
        if s.halves and s.of in exact.kinds:
            value = s.value(first, second)
            found[s.name] = Score(s, value, s.deviation(value))
    return found


def _selection(tree: xr.DataTree, exact: xr.DataTree) -> Scores:
    """Return the distances of P(active) from the reference's."""
    found, known = activity(tree), activity(exact)
    if found is None or known is None or found.p.shape != known.p.shape:
        return {}
    return {"selection": {s.name: s.score(found, known) for s in STATISTICS if s.of in SELECTION}}


def as_frame(found: Mapping[str, Scores]) -> pd.DataFrame:
    """Return the distances as a table with one row per method, quantity and statistic."""
    rows = [
        (method, quantity, name, s.value, s.deviation, s.floor, s.typical, s.inside)
        for method, scores in found.items()
        for quantity, statistics in scores.items()
        for name, s in statistics.items()
    ]
    return pd.DataFrame(rows, columns=list(FRAME))
