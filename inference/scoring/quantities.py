"""The quantities that are compared between fits, and their distances from the reference.

    eta, feature_weight, sample_weight   the shared quantities
    primal_weight   theta_k sum_j a_j z_jk, the weight of feature k itself, if the kernel is linear
                    and the model has a basis; its scale is identified, unlike that of its factors
    probability     P(y = 1) at the test rows, or at the training rows if there are no test rows
    lp              log posterior of the unconstrained vector, between fits of the same form
    any other       functions of the posterior that the user gives

    ranking         the order of the features by mean absolute primal weight, or, without primal
                    weights, by mean absolute feature weight
    selection       P(active) of the features

`statistics/` computes the distances; each statistic declares the kind of quantity it applies to.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError
from ardvark.models import SHARED, ZOO, Problem

from ..fits.datatree import group, pointwise
from ..fits.diagnostics import masks
from .draws import CONTINUOUS, MASK, PROBABILITY, SELECTION, Draws, Exact
from .statistic import Score
from .statistics import STATISTICS
from .statistics.p_active import activity

Scores = dict[str, dict[str, Score]]
"""By quantity, by statistic."""
Function = Callable[[xr.Dataset], object]
"""A quantity defined by the user: posterior -> array (chain, draw, ...)."""
FRAME = (
    "method", "quantity", "statistic", "value", "deviation", "floor", "typical", "inside",
)  # fmt: skip
"""The columns of `as_frame`."""


# --- the draws of each quantity -------------------------------------------------------------------


def quantities(
    problem: Problem | None,
    probability: Mapping[str, np.ndarray],
    own: Mapping[str, Function] | None = None,
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

    Raises
    ------
    InputError
        A name exists already, or a function does not return an array (chain, draw, ...).
    """
    found: dict[str, Callable[[str, xr.DataTree], np.ndarray | None]] = {
        name: partial(_shared, name) for name in SHARED
    }
    found["primal_weight"] = lambda _, tree: primal(problem, tree)
    found["probability"] = lambda name, tree: probability.get(name, fitted(tree))
    found["lp"] = lambda _, tree: _lp(tree)
    for name, function in (own or {}).items():
        if name in (*found, "ranking", "selection"):
            raise InputError(f"a quantity named {name!r} exists already; choose another name.")
        found[name] = partial(_own, name, function)
    return found


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
    for quantity, draws_of in quantities(problem, probability or {}, own).items():
        values = draws_of(reference, exact_tree)
        if values is None or values.shape[0] * values.shape[1] < 2:
            continue
        sides = _sides(quantity, values, problem, exact_tree)
        for name in (n for n, t in fits.items() if t is exact_tree):
            found[name] |= {of: halves for of, exact in sides.items() if (halves := _halves(exact))}
        for name, tree in others.items():
            draws = draws_of(name, tree) if _comparable(quantity, tree, exact_tree) else None
            if draws is not None and draws.shape[2:] == values.shape[2:]:
                found[name] |= _scored(Draws(draws, _independent(tree)), sides)
    for name, tree in others.items():
        found[name] |= _selection(tree, exact_tree)
    return found


def _comparable(quantity: str, tree: xr.DataTree, exact: xr.DataTree) -> bool:
    """Whether a quantity means the same in two fits; lp does only if their forms are the same."""
    return quantity != "lp" or tree.attrs.get("form") == exact.attrs.get("form")


def _scored(draws: Draws, sides: Mapping[str, Exact]) -> Scores:
    """Return the distances of a fit in a quantity, and in the ranking if it is derived from it."""
    return {
        of: scores(draws.sizes() if of == "ranking" else draws, exact)
        for of, exact in sides.items()
    }


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
) -> dict[str, Exact]:
    """Return the reference's draws of a quantity, and of the ranking if it is derived from it."""
    kinds = CONTINUOUS
    if quantity == "probability":
        kinds = PROBABILITY
    elif quantity == "feature_weight" and quantity in masks(tree):
        kinds = MASK
    exact = Exact(values, _independent(tree), kinds=kinds)
    ranked = "primal_weight" if has_primal(problem, tree) else "feature_weight"
    if quantity != ranked or values.shape[2] < 2:
        return {quantity: exact}
    return {quantity: exact, "ranking": exact.sizes()}


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
