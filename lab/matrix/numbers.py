"""The numbers of one cell: how far a method's posterior is from the exact one.

Errors are in posterior standard deviations of the exact fit, the unit of the verdicts as well.
What `compare` computes is taken from there; added are the worst row, the bias and the other
scalars, the leading effects one by one, and how well the training rows are predicted. Spreads are
compared by the widths of 90 % intervals: an approximation in logarithms of the weights has an eta
with so heavy tails that the sd of its draws does not settle.
"""

import numpy as np
import pandas as pd
import xarray as xr
from scipy import special

from ardvark.inference.fits.datatree import group
from ardvark.inference.fits.prior_activity import prior_activity
from ardvark.inference.scoring.quantities import fitted, primal
from ardvark.models import Problem
from ardvark.models.parts.effects import VISIBLE

INTERVAL = (0.05, 0.95)
"""Quantiles at the ends of the interval whose width is a spread."""
LEADING = 10
"""Features whose effects are looked at one by one: those with the largest exact P(active)."""
Numbers = dict[str, float]

NAMES = (
    "eta_error", "eta_width", "bias_error", "bias_width", "scalar_error", "effect_error",
    "effect_width", "p_off", "p_off_base", "p_draw", "p_worst", "p_between", "slope",
    "agreement", "p_active_off", "top", "active", "active_exact", "active_prior", "log_score",
    "log_score_exact", "log_score_base", "p_active_most",
)  # fmt: skip
"""Every number::

    eta_error        error of eta: largest over rows of |difference of means|, in exact posterior
                     sds
    eta_width        median over rows of the width of its central 90 % interval, divided by the
                     exact one
    bias_error       error of the bias, in sds
    bias_width       width of the 90 % interval of the bias, divided by the exact one
    scalar_error     largest error of another scalar (tau) that both draw, in sds
    effect_error     largest error of the weights of the ten features with the largest exact
                     P(active), in sds
    effect_width     median over them of the ratio of widths of 90 % intervals
    p_off            mean over the training rows of |difference of P(y = 1)|
    p_off_base       the same of a constant, the share of y = 1 in the training rows
    p_draw           the same of one draw of the exact posterior, averaged over its draws: what a
                     single state is off by, drawn without an error
    p_worst          the largest difference of P(y = 1) of a row
    p_between        of a second setting: mean over the rows of |difference of P(y = 1)| from the
                     first setting of the same method
    slope            slope of logit P(y = 1) on the exact one, over the rows; below 1 it is pulled
                     towards 1/2
    agreement        share of rows that both put into the same class; ties, P = 1/2, are class 0
    p_active_off     largest difference of P(active) of a feature
    top              share in common of the ten features with the largest mean absolute weights;
                     none where the model has no feature weights
    active           mean number of active features
    active_exact     the same of the exact posterior
    active_prior     the same of the prior, by simulation
    log_score        mean log probability of the labels of the rows
    log_score_exact  the same of the exact posterior
    log_score_base   the same of the constant
    p_active_most    the largest exact P(active) of a feature
"""


def numbers(
    problem: Problem, tree: xr.DataTree, exact: xr.DataTree, distances: pd.DataFrame
) -> Numbers:
    """Return the numbers of a fit beside the exact one; NaN for what it has not.

    Of the exact fit itself: only those that are not differences.

    Parameters
    ----------
    problem : Problem
    tree, exact : DataTree
        Fits of the problem.
    distances : DataFrame
        The fit's own rows of `Comparison.distances`.
    """
    found: Numbers = {"active": active(tree), "active_exact": active(exact)}
    probability = group(exact, "selection").get("p_active_feature")
    if probability is not None:
        found["p_active_most"] = float(probability.max())
    draws = fitted(exact)
    mine, true = _means(fitted(tree)), _means(draws)
    if draws is not None and mine is not None and true is not None:
        found["p_worst"] = float(np.abs(mine - true).max())
        found["slope"] = _slope(mine, true)
        base = np.full(len(true), problem.y.mean())
        for name, p in (("", mine), ("_exact", true), ("_base", base)):
            found[f"log_score{name}"] = _log(p, problem.y)
        found["p_off_base"] = float(np.abs(base - true).mean())
        found["p_draw"] = float(np.abs(draws - true).mean())
    if tree is exact:  # `distances` have one half of its chains beside the other
        for name in ("p_worst", "slope"):
            found.pop(name, None)
        return {name: found.get(name, np.nan) for name in NAMES}
    found |= {
        "eta_error": _value(distances, "eta", "error"),
        "eta_width": _widths(*(group(t, "posterior").get("eta") for t in (tree, exact))),
        "p_off": _value(distances, "probability", "difference"),
        "agreement": _value(distances, "probability", "agreement"),
        "p_active_off": _value(distances, "selection", "p_active"),
        "top": _top(problem, tree, exact) if _ranked(exact) else np.nan,
    }
    found |= _scalars(tree, exact) | _effects(problem, tree, exact)
    return {name: found.get(name, np.nan) for name in NAMES}


def _value(distances: pd.DataFrame, quantity: str, statistic: str) -> float:
    which = (distances["quantity"] == quantity) & (distances["statistic"] == statistic)
    return next(iter(distances.loc[which, "value"]), np.nan)


def _top(problem: Problem, tree: xr.DataTree, exact: xr.DataTree) -> float:
    """Return the share in common of the ten features with the largest mean absolute weights."""
    sizes = [w for w in (_weights(problem, t) for t in (tree, exact)) if w is not None]
    if len(sizes) < 2:
        return np.nan
    most = min(LEADING, max(1, sizes[0].shape[-1] // 2))
    mine, true = (set(np.argsort(-np.abs(w).mean((0, 1)), kind="stable")[:most]) for w in sizes)
    return len(mine & true) / most


def _ranked(tree: xr.DataTree) -> bool:
    """Whether the feature weights differ from each other: SKLR's are all 1."""
    weight = group(tree, "posterior").get("feature_weight")
    return weight is None or bool((weight != weight[..., :1]).any())


def active(tree: xr.DataTree) -> float:
    """Return the mean number of active features of a fit, NaN if it has none."""
    selection = group(tree, "selection")
    if "active_features" not in selection:
        return np.nan
    return float(selection["active_features"].mean())


def active_in_prior(problem: Problem) -> float:
    """Return the expected number of active features under the prior; NaN if it is not known."""
    found = prior_activity(problem, VISIBLE)
    return np.nan if found is None else found.number("feature")[0]


def _scalars(tree: xr.DataTree, exact: xr.DataTree) -> Numbers:
    """Return the errors of the bias and of the other scalars that both have."""
    mine, true = group(tree, "posterior"), group(exact, "posterior")
    shared = [
        str(name)
        for name, values in true.items()
        if values.ndim == 2 and name in mine and (name == "bias" or float(mine[name].std()) > 0.0)
    ]
    error = {n: _error(mine[n].values, true[n].values) for n in shared}
    found: Numbers = {}
    if "bias" in error:
        found["bias_error"] = error.pop("bias")
        found["bias_width"] = _widths(mine["bias"], true["bias"])
    if error:
        found["scalar_error"] = max(error.values())
    return found


def _error(mine: np.ndarray, true: np.ndarray) -> float:
    sd = true.std()
    return float(abs(mine.mean() - true.mean()) / sd) if sd > 0.0 else np.nan


def _effects(problem: Problem, tree: xr.DataTree, exact: xr.DataTree) -> Numbers:
    """Return the errors of the weights of the features that the exact posterior puts first."""
    mine, true = (_weights(problem, t) for t in (tree, exact))
    p = group(exact, "selection").get("p_active_feature")
    if mine is None or true is None or p is None or not (p > 0.0).any():
        return {}
    first = np.argsort(-p.values, kind="stable")[:LEADING]
    a, b = (w.reshape(-1, w.shape[-1])[:, first] for w in (mine, true))
    sd = b.std(axis=0)
    moved = sd > 0.0
    if not moved.any():
        return {}
    error = np.abs(a.mean(axis=0) - b.mean(axis=0))[moved] / sd[moved]
    width = _width(b)
    seen = width > 0.0  # a weight that is seldom on has none
    ratio = _width(a)[seen] / width[seen]
    return {
        "effect_error": float(error.max()),
        "effect_width": float(np.median(ratio)) if seen.any() else np.nan,
    }


def _weights(problem: Problem, tree: xr.DataTree) -> np.ndarray | None:
    """Return the features' own weights (chain, draw, D), or else the kernel's."""
    own = primal(problem, tree)
    posterior = group(tree, "posterior")
    if own is None and "feature_weight" in posterior:
        own = posterior["feature_weight"].transpose("chain", "draw", ...).values
    return own


def _means(draws: np.ndarray | None) -> np.ndarray | None:
    return None if draws is None else draws.mean(axis=(0, 1))


def between(tree: xr.DataTree, first: xr.DataTree | None) -> float:
    """Return the mean absolute difference of P(y = 1) of two fits; NaN if one has none."""
    mine, other = (None if t is None else _means(fitted(t)) for t in (tree, first))
    return np.nan if mine is None or other is None else float(np.abs(mine - other).mean())


def _width(draws: np.ndarray) -> np.ndarray:
    """Return the widths (K,) of the central 90 % intervals of draws (S, K)."""
    low, high = np.quantile(draws, INTERVAL, axis=0)
    return np.asarray(high - low)


def _widths(mine: xr.DataArray | None, true: xr.DataArray | None) -> float:
    """Return the median ratio of widths; NaN where one of them has no spread."""
    if mine is None or true is None or mine.sizes["chain"] * mine.sizes["draw"] < 2:
        return np.nan
    size = (mine.sizes["chain"] * mine.sizes["draw"], true.sizes["chain"] * true.sizes["draw"])
    a, b = (
        _width(v.transpose("chain", "draw", ...).values.reshape(n, -1))
        for v, n in zip((mine, true), size, strict=True)
    )
    return float(np.median(a[b > 0.0] / b[b > 0.0])) if (b > 0.0).any() else np.nan


def _slope(mine: np.ndarray, true: np.ndarray) -> float:
    """Return the least-squares slope of logit P on the exact one, P within 1e-6 of 0 and 1."""
    a, b = (special.logit(np.clip(p, 1e-6, 1.0 - 1e-6)) for p in (mine, true))
    spread = float(b.var())
    return float(np.mean((a - a.mean()) * (b - b.mean())) / spread) if spread > 0.0 else np.nan


def _log(p: np.ndarray, y: np.ndarray) -> float:
    """Return the mean log probability of the labels, probabilities held within 1e-12 of 0 and 1."""
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    return float(np.log(np.where(y == 1, p, 1.0 - p)).mean())
