"""What a feature or a sample does, by the posterior: one definition for all models.

The effect of a feature in a draw is the standard deviation, over the training rows, of the change
of eta when the feature is taken out: its feature weight set to 0, everything else of the draw as it
is. The mean of the change is left out, for the bias can absorb it. A sample has an effect likewise,
by its sample weight (`models/parts/effects.py` has both under each kernel). A constant feature has
none: nothing in the data tells it from the bias. A model without a bias has the same definition.

A feature or a sample is active in a draw when its effect is above a size t, and P(active) is the
share of draws in which it is. "Selected" is P(active) > 0.5. The user chooses t; it is 0.5 by
default (`activity.THRESHOLD`), in log odds per standard deviation an odds ratio of 1.65. The sparse
priors say how many effects they expect above 0.1 (`VISIBLE`). That is too small to report: a
coefficient of which the posterior says 0 +- 0.3 is above 0.1 with a probability of 0.74, and above
0.5 with one of 0.10, either sign counted. The curve of P over t is stored too.

Beside P stands its value under the prior (`prior_activity.py`). A P near to it says nothing. The
Bayes factor for "the effect is above t", the ratio of posterior odds to prior odds, says how much
the data have changed it. Where many features have a high P, a list of those above one half is
arbitrary: the background is the median of P over the features.

n90 is the number of features that carry the effect: in each draw, the smallest number whose squared
effects add up to 90 % of the sum of all squared effects. If several features can stand in for each
other, n90 may be small although no P(active) is large. The share is that of the same sum which the
active ones carry: many effects below the threshold may add up.

The direction of an effect is its sign and size per standard deviation of the feature: the primal
weight times that deviation under a linear kernel, else the average partial effect. P(direction) is
the probability of its more probable sign (Makowski et al. 2019, J. Open Source Softw. 4(40) 1541).
Of a group of correlated features, P is that of at least one of them being active (`groups.py`).

The Monte Carlo error of a P(active) comes from the effective sample size of the indicator
(`diagnostics.inclusion`), which is right for chains and for the independent draws of an
approximation; chains that disagree widen it. It is NaN if the indicator has
the same value in every draw. P(active) is then near 0 or 1, but these draws cannot say how near: by
the rule of three, S independent draws bound the distance by 3 / S with 95 % confidence. A point or
search method has a single state, so its P(active) is 0 or 1 and says nothing about uncertainty.

`activity.py` computes the effects, of all draws or, where that is slow, of draws thinned evenly.
The counts are NaN in draws that were left out.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ardvark.common.validate import InputError
from ardvark.models import SHARED, Problem
from ardvark.models.parts.effects import VISIBLE

from .activity import QUANTILES, SIZES, THRESHOLD, Activity, activity, needed
from .datatree import check_same, dataset, group
from .diagnostics import inclusion
from .groups import CORRELATED, any_active, groups
from .prior_activity import prior_activity

PROBABILITY = 0.5
"""P(active) above which a feature or a sample is selected."""
DIMS = {"feature": "feature", "sample": "basis"}
UNITS = {"logistic": "log odds", "probit": "probit units", "identity": "units of the score"}
"""The unit of eta, by the model's link; latent noise, if any, is between eta and the label."""
WEIGHT, SLOPE = "weight", "average partial effect"
"""What the signed effect of a feature is, per standard deviation."""
_ABOUT_PRIOR = {w: tuple(f"prior_{w}s{end}" for end in ("", "_low", "_high")) for w in DIMS}
_CHUNK = 1e6  # numbers held at once: they fit a cache


def lacking(problem: Problem, tree: xr.DataTree) -> str | None:
    """Return the weights that effects are computed from and this fit lacks, or None."""
    weights = [n for n in needed(problem) if n in SHARED]  # others give only the sign
    return ", ".join(n for n in weights if n not in group(tree, "posterior")) or None


def select(problem: Problem, tree: xr.DataTree, threshold: float = THRESHOLD) -> xr.Dataset:
    """Return the effects of features and samples, with their probabilities; `fit` stores it.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted.
    tree : xarray.DataTree
        A fit of it.
    threshold : float
        The size t of the effect on eta above which a feature or a sample is active.

    Returns
    -------
    xarray.Dataset
        p_active_feature (feature), p_active_sample (basis)
            ``P(|effect| > t)``, the share of draws in which it is active.
        mcse_feature, mcse_sample
            Its Monte Carlo error; NaN if it never changed.
        prior_feature, prior_sample
            ``P(|effect| > t)`` under the prior.
        prior_mcse_feature, prior_mcse_sample
            Its Monte Carlo error.
        curve_feature, curve_sample, prior_curve_feature, prior_curve_sample (t, ...)
            ``P(|effect| > t)`` at other sizes t.
        effect_feature, effect_sample
            Posterior mean of the signed effect, in the unit that ``attrs["unit"]`` names: of a
            feature per standard deviation of it, of a sample per standard deviation of its basis
            function. Above 0 it speaks for the class ``attrs["towards"]``. ``attrs["direction"]``
            says what that of a feature is.
        effect_sd_feature, effect_sd_sample
            Its posterior standard deviation.
        direction_feature, direction_sample
            The probability of its more probable sign.
        effect_at_feature, effect_at_sample (quantile, ...)
            Its quantiles.
        size_feature, size_sample
            Posterior mean of the effect without its sign.
        active_features, active_samples (chain, draw)
            How many are active in each draw.
        n90_features, n90_samples (chain, draw)
            How many carry 90 % of the squared effects.
        share_features, share_samples (chain, draw)
            The share of these that the active ones carry.
        p_active_group, mcse_group, prior_group (group)
            The same of groups of correlated features: whether at least one of them is active.
            leading_feature (group) is the number of the leading one.
        group_of_feature (feature)
            The number of its group; -1 if it belongs to none.

        Counts are NaN in draws that were thinned out: one draw in ``attrs["thin_features"]``, or
        ``attrs["thin_samples"]``, was used. A model without a basis has no samples here, and a
        prior that cannot be simulated has no values. ``attrs["threshold"]`` is the threshold, and
        ``attrs["prior_features"]`` the number of active features that the prior expects.

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
    check_threshold(threshold)
    check_same(problem, tree)
    missing = lacking(problem, tree)
    if missing:
        raise InputError(f"effects are computed from the weights, and this fit lacks {missing}.")
    posterior = group(tree, "posterior")
    found = activity(problem, weights_of(problem, posterior), threshold)
    return described(problem, found, posterior, threshold)


def check_threshold(threshold: float, name: str = "threshold") -> None:
    """Raise `InputError` unless the size of an effect is a finite number above 0."""
    if not (np.isfinite(threshold) and threshold > 0.0):
        raise InputError(f"{name} must be a finite number above 0, got {threshold!r}.")


def select_at(problem: Problem, tree: xr.DataTree, threshold: float) -> xr.DataTree:
    """Return a fit whose group `selection` is of effects above `threshold`; itself if it is."""
    stored = group(tree, "selection")
    if not stored.data_vars or stored.attrs.get("threshold") == threshold:
        return tree
    other = tree.copy()
    other["selection"] = xr.DataTree(select(problem, tree, threshold))
    return other


def weights_of(problem: Problem, posterior: xr.Dataset) -> dict[str, np.ndarray]:
    """Return the weights (chain, draw, ...) that effects are computed from."""
    names = [n for n in needed(problem) if n in posterior]
    return {n: posterior[n].transpose("chain", "draw", ...).values for n in names}


def described(
    problem: Problem,
    activities: Mapping[str, Activity],
    posterior: xr.Dataset,
    threshold: float = THRESHOLD,
) -> xr.Dataset:
    """Return the Dataset of `select` from what was found active in the draws of a posterior."""
    prior = prior_activity(problem, threshold)
    attrs: dict[str, Any] = {"threshold": float(threshold), **direction(problem)}
    arrays: dict[str, np.ndarray] = {}
    dims: dict[str, tuple[str, ...]] = {}
    for what, found in activities.items():
        own = _of_each(found)
        if prior is not None:
            own["prior"], own["prior_mcse"] = prior.probability(what)
            own["prior_curve"] = prior.over_sizes(what)
            attrs |= dict(zip(_ABOUT_PRIOR[what], prior.number(what), strict=True))
        arrays |= {f"{name}_{what}": values for name, values in own.items()}
        dims |= {f"{name}_{what}": (DIMS[what],) for name in own}
        dims[f"effect_at_{what}"] = ("quantile", DIMS[what])
        dims |= {f"{name}_{what}": ("t", DIMS[what]) for name in ("curve", "prior_curve")}
        counts = {"active": found.counts, "n90": found.n90, "share": found.share}
        arrays |= {f"{name}_{what}s": values for name, values in counts.items()}
        dims |= {f"{name}_{what}s": ("chain", "draw") for name in counts}
        attrs[f"thin_{what}s"] = found.thin
    coords: dict[str, Any] = {**problem.coords, "quantile": QUANTILES, "t": SIZES}
    coords |= {d: posterior[d].values.tolist() for d in ("chain", "draw")}
    if members := groups(problem.X, arrays["p_active_feature"]):
        before = None if prior is None else prior.active["feature"]
        of_groups = _of_groups(activities["feature"].active, before, members)
        number = np.full(problem.D, -1)
        for i, each in enumerate(members):
            number[each] = i
        arrays |= {**of_groups, "group_of_feature": number}
        dims |= {**dict.fromkeys(of_groups, ("group",)), "group_of_feature": ("feature",)}
        attrs["correlation"] = CORRELATED
    return dataset(arrays, dims, coords, draws=False).assign_attrs(attrs)


def direction(problem: Problem) -> dict[str, str]:
    """Return unit and class of a signed effect, and what the one of a feature is."""
    kernel, (link, _, noise) = problem.kernel, problem.spec.link.partition(",")
    unit = UNITS.get(link, "units of eta")
    return {
        "unit": f"{unit} before the latent noise" if noise else unit,
        "towards": problem.data.class_names[1],
        "direction": WEIGHT if kernel is None or kernel.is_primal else SLOPE,
    }


def _of_groups(
    active: np.ndarray, prior: np.ndarray | None, members: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the probability that at least one of each group is active, and what goes with it."""
    p, mcse = _probability(any_active(active, members))
    leading = np.array([each[0] for each in members])
    found = {"leading_feature": leading, "p_active_group": p, "mcse_group": mcse}
    if prior is not None:
        found["prior_group"] = any_active(prior, members).mean(axis=0)
    return found


def _of_each(found: Activity) -> dict[str, np.ndarray]:
    """Return what is said of each feature, or of each sample."""
    own = dict(zip(("p_active", "mcse"), _probability(found.active), strict=True))
    own["size"], own["curve"] = found.size, found.curve
    if found.signed is not None:
        own["effect"], own["effect_sd"] = found.signed.mean, found.signed.sd
        own["effect_at"], own["direction"] = found.signed.quantiles, found.signed.direction
    return own


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


# --- its numbers ----------------------------------------------------------------------------------


def summary(found: xr.Dataset, what: str) -> dict[str, float]:
    """Return the numbers of a selection: `what` is "feature" or "sample".

    active, low, high: the mean number of active ones, and its 5 % and 95 % quantiles over draws.
    prior, prior_low, prior_high: the same under the prior; NaN where it is not known. visible: the
    mean number of effects above `VISIBLE`. n90: its median. share: the median share of the squared
    effects that the active ones carry. selected: how many have P(active) above 0.5. background: the
    median of P(active), and quarter its lower quartile. Empty if there is no selection.
    """
    if f"p_active_{what}" not in found:
        return {}
    counts, n90 = (_looked(found, f"{name}_{what}s") for name in ("active", "n90"))
    low, high = np.quantile(counts, (0.05, 0.95), method="inverted_cdf")  # whole numbers
    share = _looked(found, f"share_{what}s")
    p, curve = found[f"p_active_{what}"].values, found[f"curve_{what}"]
    prior = {f"prior{end}": found.attrs.get(f"prior_{what}s{end}", math.nan)
             for end in ("", "_low", "_high")}  # fmt: skip
    return {
        "active": float(counts.mean()),
        "low": float(low),
        "high": float(high),
        **{name: float(value) for name, value in prior.items()},
        "n90": float(np.quantile(n90, 0.5, method="inverted_cdf")),
        "share": float(np.median(share)) if len(share) else math.nan,
        "selected": int((p > PROBABILITY).sum()),
        "background": float(np.median(p)),
        "quarter": float(np.quantile(p, 0.25)),
        "visible": float(curve.sel(t=VISIBLE, method="nearest").sum()),
    }


def _looked(found: xr.Dataset, name: str) -> np.ndarray:
    """Return the numbers of the draws that were looked at."""
    flat = found[name].values.ravel() if name in found else np.empty(0)
    return flat[~np.isnan(flat)]
