"""The rows of a comparison's table: what is said of one fit, by the columns' names."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ..fits import diagnostics
from ..fits.datatree import group, is_bare
from ..fits.mixing import mixing_of
from ..fits.selection import summary
from ..scoring.columns import COLUMNS, DISTANCES, WORST
from ..scoring.limits import PARAMETERS
from ..scoring.quantities import has_draws
from .verdicts.verdict import Verdict


def tabulate(
    fits: Mapping[str, xr.DataTree],
    distances: pd.DataFrame,
    verdicts: Mapping[str, Verdict],
    scores: Mapping[str, Mapping[str, float]],
    plain: Iterable[str] = (),
) -> pd.DataFrame:
    """Return the table: one row a fit, and one a baseline where there is a test split.

    It has the columns that some row can fill.

    Parameters
    ----------
    fits : dict of DataTree
    distances : DataFrame
        How far the fits are from the reference (`distances.measure`).
    verdicts : dict of Verdict
    scores : dict of dict
        Measures of predictions on the test samples, by fit and baseline.
    plain : iterable of str
        The baselines.
    """
    found = {name: _fit(tree) | {"verdict": verdicts[name].level} for name, tree in fits.items()}
    values = distances.set_index(["fit", "quantity", "statistic"])["value"]
    for name, row in found.items():
        row |= {c: values.get((name, *pair), np.nan) for c, pair in DISTANCES.items()}
        if is_bare(fits[name]):
            row |= _worst(distances[distances["fit"] == name])
    for name in plain:
        found[name] = {"kind": "baseline", "status": "finished", "reason": ""}
    for name, measured in scores.items():
        found[name] |= measured
    table = pd.DataFrame.from_dict(found, orient="index", columns=[c.name for c in COLUMNS])
    table.index.name = "method"
    return table.loc[:, (table.notna() & (table != "")).any()]


def _fit(tree: xr.DataTree) -> dict[str, Any]:
    """Return what is said of a fit by itself."""
    told = ("kind", "status", "reason", "seconds_compile", "seconds_run")
    row = {name: tree.attrs.get(name) for name in told}
    if not has_draws(tree):
        return row
    return row | computation(tree) | _active(tree)


def computation(tree: xr.DataTree) -> dict[str, Any]:
    """Return draws, R-hat, ESS, divergences and k-hat of one fit, as far as they apply."""
    posterior, stats = group(tree, "posterior"), group(tree, "sample_stats")
    row: dict[str, Any] = {"draws": posterior.sizes["chain"] * posterior.sizes["draw"]}
    if tree.attrs["kind"] == "mcmc" and posterior.sizes["draw"] >= 4:
        mixed = mixing_of(tree)
        row["rhat"] = mixed.rhat.value
        row["ess_bulk"], row["ess_tail"] = mixed.ess_bulk.value, mixed.ess_tail.value
        if "diverging" in stats:
            row["divergences"] = diagnostics.divergences(tree)
    if "log_q" in stats and "lp" in stats:
        row["khat"] = diagnostics.khat(stats["lp"].values, stats["log_q"].values)
    return row


def _worst(distances: pd.DataFrame) -> dict[str, float]:
    """Return what the worst component of a model of one's own is off by."""
    own = distances[distances["quantity"].isin(PARAMETERS)]  # and not the log density
    own = own.sort_values("deviation", ascending=False).drop_duplicates("statistic")
    values = own.set_index("statistic")["value"]
    return {column: values.get(statistic, np.nan) for column, statistic in WORST.items()}


def _active(tree: xr.DataTree) -> dict[str, float]:
    """Return how many features have an effect, and how many the prior expects."""
    found = summary(group(tree, "selection"), "feature")
    return {"active_features": found["active"], "prior_features": found["prior"]} if found else {}
