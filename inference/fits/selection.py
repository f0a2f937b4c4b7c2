"""Selection by the posterior: which features and samples matter, one definition for all models.

The effect of a feature in a draw is the standard deviation, over the training rows, of the change
of eta when the feature is taken out: its feature weight set to 0, everything else of the draw as it
is. The mean of the change is left out, for the bias can absorb it. A sample has an effect likewise,
by its sample weight (`models/parts/effects.py` has both under each kernel). A feature or a sample
is active in a draw when its effect is above `VISIBLE`. P(active) is the share of draws in which it
is. "Selected" is P(active) > 0.5. A constant feature is never active: nothing in the data tells it
from the bias. A model without a bias has the same definition.

n90 is the number of features that carry the effect: in each draw, the smallest number whose squared
effects add up to 90 % of the sum of all squared effects. If several features can stand in for each
other, n90 may be small although no P(active) is large.

The Monte Carlo error of a P(active) comes from the effective sample size of the indicator
(`diagnostics.inclusion`), which is right for chains and for the independent draws of an
approximation; chains that disagree widen it. It is NaN if the indicator has
the same value in every draw. P(active) is then near 0 or 1, but these draws cannot say how near: by
the rule of three, S independent draws bound the distance by 3 / S with 95 % confidence. A point or
search method has a single state, so its P(active) is 0 or 1 and says nothing about uncertainty.

`activity.py` computes the effects, of all draws or, where that is slow, of draws thinned evenly.
The counts are NaN in draws that were left out.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from ardvark.common.validate import InputError
from ardvark.models import Problem
from ardvark.models.parts.effects import VISIBLE

from .activity import Activity, activity
from .datatree import check_same, dataset, group
from .diagnostics import inclusion

PROBABILITY = 0.5
"""P(active) above which a feature or a sample is selected."""
_CHUNK = 1e6  # numbers held at once: they fit a cache
_NAMED = 8  # features named in a sentence


def lacking(problem: Problem, tree: xr.DataTree) -> str | None:
    """Return the weights that effects are computed from and this fit lacks, or None."""
    needed = [n for n in ("feature_weight", "sample_weight") if n in problem.spec.shared]
    return ", ".join(n for n in needed if n not in group(tree, "posterior")) or None


def select(problem: Problem, tree: xr.DataTree, threshold: float = VISIBLE) -> xr.Dataset:
    """Return which features and samples are active, with their probabilities; `fit` stores it.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted.
    tree : xarray.DataTree
        A fit of it.
    threshold : float
        The effect on eta above which a feature or a sample is active.

    Returns
    -------
    xarray.Dataset
        p_active_feature (feature), p_active_sample (basis) : share of draws in which it is active.
        mcse_feature, mcse_sample : its Monte Carlo error; NaN if it never changed.
        active_features, active_samples (chain, draw) : how many are active in each draw.
        n90_features, n90_samples (chain, draw) : how many carry 90 % of the squared effects.

        Counts are NaN in draws that were thinned out: one draw in ``attrs["thin_features"]``, or
        ``attrs["thin_samples"]``, was used. A model without a basis has no samples here.
        ``attrs["threshold"]`` is the threshold.

    Raises
    ------
    InputError
        The fit is of another problem or lacks the weights, or the threshold is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 0] + 2 * X[:, 1] > 0)
    >>> fit = av.fit(problem, "paper", random_seed=1, progressbar=False)
    >>> found = av.select(problem, fit)
    >>> found["p_active_feature"].round(1).values.tolist()
    [1.0, 1.0, 0.0, 0.0]
    >>> int(found["n90_features"].median())  # so many carry 90 % of the effect
    2
    """
    if not (np.isfinite(threshold) and threshold > 0.0):
        raise InputError(f"threshold must be a finite number above 0, got {threshold!r}.")
    check_same(problem, tree)
    missing = lacking(problem, tree)
    if missing:
        raise InputError(f"effects are computed from the weights, and this fit lacks {missing}.")
    posterior = group(tree, "posterior")
    return described(
        problem, activity(problem, weights_of(posterior), threshold), posterior, threshold
    )


def weights_of(posterior: xr.Dataset) -> dict[str, np.ndarray]:
    """Return the weights (chain, draw, ...) that effects are computed from."""
    names = [n for n in ("feature_weight", "sample_weight") if n in posterior]
    return {n: posterior[n].transpose("chain", "draw", ...).values for n in names}


def described(
    problem: Problem,
    activities: Mapping[str, Activity],
    posterior: xr.Dataset,
    threshold: float = VISIBLE,
) -> xr.Dataset:
    """Return the Dataset of `select` from what was found active in the draws of a posterior."""
    arrays: dict[str, np.ndarray] = {}
    attrs: dict[str, float] = {"threshold": float(threshold)}
    for what, found in activities.items():
        arrays[f"p_active_{what}"], arrays[f"mcse_{what}"] = _probability(found.active)
        arrays[f"active_{what}s"], arrays[f"n90_{what}s"] = found.counts, found.n90
        attrs[f"thin_{what}s"] = found.thin
    ends = {"feature": ("feature",), "sample": ("basis",), "features": ("chain", "draw")}
    ends["samples"] = ends["features"]
    dims = {name: ends[name.rpartition("_")[2]] for name in arrays}
    lead = {d: posterior[d].values.tolist() for d in ("chain", "draw")}
    return dataset(arrays, dims, {**problem.coords, **lead}, draws=False).assign_attrs(attrs)


def _probability(active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return P(active) (k,) and its Monte Carlo error, NaN if nothing ever changed."""
    chains, draws, size = active.shape
    p, mcse = np.empty(size), np.empty(size)
    step = max(1, int(_CHUNK / (chains * draws)))
    for at in range(0, size, step):
        part = xr.DataArray(active[..., at : at + step], dims=("chain", "draw", "k"))
        found = inclusion(part)
        p[at : at + step], mcse[at : at + step] = found["probability"], found["mcse"]
    return p, mcse


# --- what a reader wants to know ------------------------------------------------------------------


def summary(found: xr.Dataset, what: str) -> dict[str, float]:
    """Return the numbers of a selection: `what` is "feature" or "sample".

    active, low, high: the mean number of active ones, and its 5 % and 95 % quantiles over draws.
    n90: its median. selected: how many have P(active) above 0.5. Empty if there is no selection.
    """
    if f"p_active_{what}" not in found:
        return {}
    counts, n90 = (_looked(found[f"{name}_{what}s"]) for name in ("active", "n90"))
    low, high = np.quantile(counts, (0.05, 0.95), method="inverted_cdf")  # whole numbers
    return {
        "active": float(counts.mean()),
        "low": float(low),
        "high": float(high),
        "n90": float(np.quantile(n90, 0.5, method="inverted_cdf")),
        "selected": int((found[f"p_active_{what}"] > PROBABILITY).sum()),
    }


def _looked(values: xr.DataArray) -> np.ndarray:
    flat = values.values.ravel()
    return flat[~np.isnan(flat)]


def selection_text(tree: xr.DataTree) -> str:
    """Return which features a fit says are active, in one or two sentences; "" if it cannot say.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 0] + 2 * X[:, 1] > 0)
    >>> fit = av.fit(problem, "paper", random_seed=1, progressbar=False)
    >>> print(av.selection_text(fit))
    On average 2.0 of 4 features are active (90 % interval 2 to 2). Active with
    probability above 0.5 are x2 (1.00), x1 (1.00); 2 features carry 90 % of the effect.
    """
    found = group(tree, "selection")
    numbers = summary(found, "feature")
    if not numbers:
        return ""
    probability, D = found["p_active_feature"], found.sizes["feature"]
    # named by probability; equal ones keep the order of the data
    order = np.argsort(-probability.values, kind="stable")[: int(numbers["selected"])]
    names = [str(n) for n in probability["feature"].values[order]]
    carry = _carry(int(numbers["n90"]))
    if tree.attrs.get("kind") in ("point", "search"):
        which = f": {_listed(names)}; {carry}." if names else "."
        return f"At the returned point {len(names)} of {D} features are active{which}"
    if numbers["active"] == 0.0:
        return f"None of the {D} features is active in any draw."
    mean = numbers["active"]
    text = (
        f"On average {mean:.{1 if mean < 100 else 0}f} of {D} features are active "
        f"(90 % interval {numbers['low']:.0f} to {numbers['high']:.0f}). "
    )
    if not names:
        return (
            f"{text}No feature is active with probability above {PROBABILITY:g}, so these data "
            f"single out no feature; {carry}."
        )
    shown = [f"{n} ({p:.2f})" for n, p in zip(names, probability.values[order], strict=True)]
    return f"{text}Active with probability above {PROBABILITY:g} are {_listed(shown)}; {carry}."


def _carry(n90: int) -> str:
    return "1 feature carries 90 % of the effect" if n90 == 1 else (
        f"{n90} features carry 90 % of the effect"
    )  # fmt: skip


def _listed(words: Sequence[str]) -> str:
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {more} more" if more > 0 else "")
