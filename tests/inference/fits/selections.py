"""Selections made by hand: whatever has such an effect has a visible one as often, no more."""

import numpy as np
import xarray as xr

from ardvark.models.parts.effects import VISIBLE


def selection(p, names=None, counts=None, n90=None, threshold=0.5, attrs=None, **known):
    """Return a selection with these P(effect) of features, and what else is known of each.

    `counts` and `n90` (chain, draw) are of each draw; other arrays are of each feature, or of each
    group where their name says so.
    """
    p = np.asarray(p, dtype=float)
    found = {"p_active_feature": ("feature", p), "curve_feature": (("t", "feature"), p[None])}
    for name, values in {"active": counts, "n90": counts if n90 is None else n90}.items():
        if values is not None:
            found[f"{name}_features"] = (("chain", "draw"), np.asarray(values, dtype=float))
    for name, values in known.items():
        of_groups = name.endswith("_group") or name == "leading_feature"
        found[name] = ("group" if of_groups else "feature", np.asarray(values))
    coords = {"t": [VISIBLE]} | ({} if names is None else {"feature": list(names)})
    return xr.Dataset(found, coords, {"threshold": threshold} | (attrs or {}))


def selection_of(active):
    """Return the selection of independent draws in which these features are active."""
    p = active.mean((0, 1))
    error = np.sqrt(p * (1.0 - p) / active[..., 0].size)
    known = {"mcse_feature": np.where(error > 0.0, error, np.nan)}
    return selection(p, counts=active.sum(-1), **known)
