"""What is compared between fits, and how far each fit is from the reference in it.

    eta, feature_weight, sample_weight   the shared quantities
    primal_weight   theta_k sum_j a_j z_jk, the weight of feature k itself, where the kernel is
                    linear and the model has a basis: unlike its two factors it has one scale
    probability     P(y = 1) at the test rows, or at the training rows without any
    lp              log posterior of the unconstrained vector, between fits of one form
    any other       functions of the posterior that the user gives

Beside the distances of `distances.py` (`floors.py` has their noise floors):

    probability   difference  mean size of the difference of the predictive probabilities
                  agreement   share of the rows that both put in the same class
    ranking       spearman, top   order of the features by their mean size: of primal weights where
                                  there are any, else of feature weights
    selection     p_active    largest difference of P(active) over the features
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError
from ardvark.models import SHARED, ZOO, Problem

from ..fits.datatree import group, pointwise
from ..fits.diagnostics import masks
from . import distances
from .distances import flat, reduced
from .floors import REPEATS, Exact, Score, effective, scored

Scores = dict[str, dict[str, Score]]
"""By quantity, by statistic."""
Function = Callable[[xr.Dataset], object]
"""A quantity of the user's: posterior -> array (chain, draw, ...)."""


# --- the draws of each quantity -------------------------------------------------------------------


def quantities(
    problem: Problem | None,
    probability: Mapping[str, np.ndarray],
    own: Mapping[str, Function] | None = None,
) -> dict[str, Callable[[str, xr.DataTree], np.ndarray | None]]:
    """Return by name how a quantity's draws (chain, draw, K) are read from a fit, None without it.

    Parameters
    ----------
    problem : Problem, optional
        Needed for primal weights.
    probability : dict of array (chain, draw, M)
        P(y = 1) at test rows, by fit.
    own : dict of callable
        Quantities of the user's, functions of the posterior group.

    Raises
    ------
    InputError
        A name of the user's is taken, or what comes back is no array of (chain, draw, ...).
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
            f"quantity {name!r} must return one value, or one array, a draw: its shape is "
            f"{values.shape}, and the posterior's (chain, draw) are {sizes}."
        )
    return values.reshape(*sizes, -1)


def has_primal(problem: Problem | None, tree: xr.DataTree) -> bool:
    """Whether the features have weights of their own that are not a variable of the model."""
    if problem is None or problem.kernel is None or not problem.kernel.is_primal:
        return False
    posterior = group(tree, "posterior")
    return all(name in posterior for name in ("feature_weight", "sample_weight"))


def primal(problem: Problem | None, tree: xr.DataTree) -> np.ndarray | None:
    """Return the features' own weights (chain, draw, D), where the kernel is linear."""
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


# --- how far they are from the reference's --------------------------------------------------------


def measure(
    fits: Mapping[str, xr.DataTree],
    reference: str,
    problem: Problem | None = None,
    probability: Mapping[str, np.ndarray] | None = None,
    own: Mapping[str, Function] | None = None,
) -> dict[str, Scores]:
    """Return every distance of every fit from the reference, with its noise floor.

    The reference's own entry compares one half of its chains with the other, without a floor.
    Parameters as for `quantities`. One quantity at a time, so that few draws are copied.
    """
    exact_tree = fits[reference]
    found: dict[str, Scores] = {name: {} for name in fits}
    for quantity, draws_of in quantities(problem, probability or {}, own).items():
        values = draws_of(reference, exact_tree)
        if values is None or values.shape[0] * values.shape[1] < 2:
            continue
        binary = quantity == "feature_weight" and quantity in masks(exact_tree)
        exact = Exact(values, independent=_independent(exact_tree), binary=binary)
        ranks = _ranked(quantity, exact, problem, exact_tree)
        for name, tree in fits.items():
            if quantity == "lp" and tree.attrs.get("form") != exact_tree.attrs.get("form"):
                continue
            if tree is exact_tree:
                for group_name, scores in _halves(quantity, exact, ranks).items():
                    found[name].setdefault(group_name, {}).update(scores)
                continue
            if not group(tree, "posterior").data_vars:
                continue
            other = draws_of(name, tree)
            if other is None or other.shape[2:] != values.shape[2:]:
                continue
            independent = _independent(tree)
            draws = effective(other, independent)[0]
            found[name][quantity] = exact.scores(other, independent, draws)
            if quantity == "probability":
                for stat, function in OF_PROBABILITY.items():
                    score = exact.of_means(stat, function, other, independent, draws)
                    found[name][quantity][stat] = score
            if ranks is not None:
                found[name]["ranking"] = {
                    stat: ranks.of_means(stat, function, np.abs(other), independent, draws)
                    for stat, function in OF_RANKS.items()
                }
    for name, tree in fits.items():
        if tree is not exact_tree and group(tree, "posterior").data_vars:
            found[name] |= _selection(tree, exact_tree)
    return found


def difference(p: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the mean size of the difference of probabilities (..., K)."""
    return np.abs(p - exact).mean(axis=-1)


def agreement(p: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the share of rows (..., K) that both put in the same class."""
    return ((p > 0.5) == (exact > 0.5)).mean(axis=-1)


OF_PROBABILITY = {"difference": difference, "agreement": agreement}
OF_RANKS = {"spearman": distances.spearman, "top": distances.top}


def _independent(tree: xr.DataTree) -> bool:
    """Whether a fit's draws are independent by construction: those of anything but a chain."""
    return tree.attrs.get("kind") != "mcmc"


def _ranked(
    quantity: str, exact: Exact, problem: Problem | None, tree: xr.DataTree
) -> Exact | None:
    """Return the sizes of the weights that features are ranked by, if it is this quantity."""
    if quantity not in ("feature_weight", "primal_weight") or exact.draws.shape[2] < 2:
        return None
    if quantity == "feature_weight" and has_primal(problem, tree):
        return None
    size = np.abs(exact.draws)
    return Exact(size, independent=exact.independent, binary=True, known=exact.effective)


def _halves(quantity: str, exact: Exact, ranks: Exact | None) -> Scores:
    """Return the distances of the first half of the chains from the second: no floor beside."""
    middle = exact.draws.shape[0] // 2
    if middle < 1:
        return {}
    first, second = exact.draws[:middle], exact.draws[middle:]
    if exact.binary:
        means = flat(first).mean(axis=0), flat(second).mean(axis=0)
        components = {"error": np.abs(means[0] - means[1])}
    else:
        components = distances.marginal(first, second)
    out = {quantity: {n: float(reduced(n, values)) for n, values in components.items()}}
    functions: list[tuple[str, np.ndarray, Mapping]] = []
    if quantity == "probability":
        functions.append((quantity, exact.draws, OF_PROBABILITY))
    if ranks is not None:
        functions.append(("ranking", ranks.draws, OF_RANKS))
    for name, draws, of_means in functions:
        means = flat(draws[:middle]).mean(axis=0), flat(draws[middle:]).mean(axis=0)
        out.setdefault(name, {}).update({n: float(f(*means)) for n, f in of_means.items()})
    return {
        name: {
            n: Score(v, distances.deviation(n, v, distances.SHARES.get(n))) for n, v in s.items()
        }
        for name, s in out.items()
    }


def _selection(tree: xr.DataTree, exact: xr.DataTree) -> Scores:
    """Return the largest difference of P(active), beside what its Monte Carlo errors make of it.

    A P(active) that never changed has no error known: it is taken as one draw's.
    """
    found, known = group(tree, "selection"), group(exact, "selection")
    if "p_active_feature" not in found or "p_active_feature" not in known:
        return {}
    p, p0 = found["p_active_feature"].values, known["p_active_feature"].values
    if p.shape != p0.shape:
        return {}
    value = float(np.abs(p - p0).max())
    error = np.zeros(p.shape)
    for part, whole in ((found, tree), (known, exact)):
        posterior = group(whole, "posterior")
        draws = posterior.sizes["chain"] * posterior.sizes["draw"]
        if draws > 1:
            error += np.nan_to_num(part["mcse_feature"].values, nan=1.0 / draws) ** 2
    noise = np.random.default_rng(0).normal(size=(REPEATS, len(p))) * np.sqrt(error)
    return {"selection": {"p_active": scored(value, value, np.abs(noise).max(axis=1))}}


def as_frame(found: Mapping[str, Scores]) -> pd.DataFrame:
    """Return the distances as a table: one row a method, quantity and statistic."""
    rows = [
        {
            "method": method,
            "quantity": quantity,
            "statistic": name,
            "value": score.value,
            "deviation": score.deviation,
            "floor": score.floor,
            "typical": score.typical,
            "inside": score.inside,
        }
        for method, scores in found.items()
        for quantity, statistics in scores.items()
        for name, score in statistics.items()
    ]
    columns = [
        "method",
        "quantity",
        "statistic",
        "value",
        "deviation",
        "floor",
        "typical",
        "inside",
    ]
    return pd.DataFrame(rows, columns=columns)


def each(found: Scores, names: tuple[str, ...], statistic: str) -> Iterator[tuple[str, Score]]:
    """Yield the scores of one statistic, by quantity, where they are known."""
    for name in names:
        score = found.get(name, {}).get(statistic)
        if score is not None and not np.isnan(score.deviation):
            yield name, score
