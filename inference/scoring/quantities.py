"""The quantities that are compared between fits: their draws, and their components in words.

    eta, feature_weight, sample_weight   the shared quantities
    primal_weight   theta_k sum_j a_j z_jk, the weight of feature k itself, if the kernel is linear
                    and the model has a basis; its scale is identified, unlike that of its factors
    scalar          the bias, the weights of covariates and every other number of the model; the log
                    of what is positive
    precision       the log of every positive vector of the model, such as precisions and scales
    variable        every other vector of a `pm.Model` of one's own, whose variables have no roles:
                    all of them are scalars or of this kind, as they are and not as logs
    probability     P(y = 1) at the test rows, or at the training rows if there are no test rows
    lp              log posterior of the unconstrained vector, between fits of the same form
    any other       functions of the posterior that the user gives

    ranking         the order of the features by mean absolute primal weight, or, without primal
                    weights, by mean absolute feature weight
    selection       P(active) of the features

Of the weights of features and samples the leading ones are compared, one by one: those that are
active in more than a tenth of the reference's draws. The reference alone chooses them. Which others
a fit has active is judged by `selection`, and how they act together by `eta`.

`distances.py` measures how far they are from the reference.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import xarray as xr

from ardvark.models import SHARED, ZOO, Problem

from ..fits.datatree import COVARIATES, component_names, group, is_bare, pointwise
from .limits import PARAMETERS

WEIGHTS = {
    "feature_weight": "the weight of",
    "primal_weight": "the primal weight of",
    "sample_weight": "the weight of sample",
}
"""Quantities of which the leading components are compared, in words."""
SIGNED = ("bias", COVARIATES)
"""Scalars that may be positive in all draws although they need not be."""


# --- the draws of each quantity -------------------------------------------------------------------


def quantities(
    problem: Problem | None,
    probability: Mapping[str, np.ndarray],
    exact: xr.DataTree | None = None,
) -> dict[str, Callable[[str, xr.DataTree], np.ndarray | None]]:
    """Return functions, by quantity, that read its draws (chain, draw, K) from a fit, or None.

    Parameters
    ----------
    problem : Problem, optional
        Needed for primal weights.
    probability : dict of array (chain, draw, M)
        P(y = 1) at test rows, by fit.
    exact : DataTree, optional
        The reference, whose scalars and precisions are read.
    """
    found: dict[str, Callable[[str, xr.DataTree], np.ndarray | None]] = {}
    if not _is_own(problem, exact):
        found = {name: partial(_shared, name) for name in SHARED}
        found["primal_weight"] = lambda _, tree: primal(problem, tree)
    for quantity, known in _parameters(problem, exact).items():
        found[quantity] = partial(_logs, known)
    found["probability"] = lambda name, tree: probability.get(name, fitted(tree))
    found["lp"] = lambda _, tree: _lp(tree)
    return found


def _parameters(problem: Problem | None, exact: xr.DataTree | None) -> dict[str, dict[str, bool]]:
    """Return by quantity its variables in the reference, and whether their log is compared."""
    found: dict[str, dict[str, bool]] = {name: {} for name in PARAMETERS}
    fixed = () if problem is None else problem.spec.fixed
    posterior = xr.Dataset() if exact is None else group(exact, "posterior")
    if _is_own(problem, exact):
        for name, values in posterior.data_vars.items():
            # as they are: draws do not say whether what was positive has to be
            found["scalar" if values.ndim == 2 else "variable"][str(name)] = False
        return {quantity: known for quantity, known in found.items() if known}
    for name, values in posterior.data_vars.items():
        own, x = str(name), values.values
        if own in (*SHARED, *fixed) or own.endswith("_raw") or x.dtype.kind != "f":
            continue
        positive = own not in SIGNED and bool((x > 0.0).all())
        if x.ndim == 2 or own == COVARIATES:
            found["scalar"][own] = positive
        elif x.ndim == 3 and positive:
            found["precision"][own] = True
    return {quantity: known for quantity, known in found.items() if known}


def _is_own(problem: Problem | None, exact: xr.DataTree | None) -> bool:
    """Whether the fits are of a `pm.Model` of one's own, whose names mean nothing to the zoo."""
    return problem is None and exact is not None and is_bare(exact)


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


def has_draws(tree: xr.DataTree) -> bool:
    """Whether a fit has a posterior, which a failed fit does not."""
    return bool(group(tree, "posterior").data_vars)


# --- their components -----------------------------------------------------------------------------


def labels(quantity: str, size: int, problem: Problem | None, tree: xr.DataTree) -> tuple[str, ...]:
    """Return the components of a quantity in words; none for a quantity of the user's own."""
    if quantity in PARAMETERS:
        known, posterior = _parameters(problem, tree)[quantity], group(tree, "posterior")
        found: list[str] = []
        for name, positive in known.items():
            word = f"log {name}" if positive else name
            if name == COVARIATES and not _is_own(problem, tree):
                size = posterior[name].size // (posterior.sizes["chain"] * posterior.sizes["draw"])
                covariates = _names("covariate", size, problem, tree)
                found += [f"the weight of {c}" for c in covariates]
                continue
            found += component_names(word, posterior[name])
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
