"""The rows of a comparison's table: what is said of one fit, by the columns' names."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.data import Dataset
from ardvark.models import Problem

from ..fits import diagnostics
from ..fits.datatree import group
from ..fits.mixing import mixing_of
from ..fits.selection import summary
from ..methods.prediction import classes
from ..scoring.baselines import Baseline
from ..scoring.columns import COLUMNS
from ..scoring.distances import rows
from ..scoring.held_out import measures, wrong_and_sure
from ..scoring.quantities import has_draws
from ..scoring.statistics import STATISTICS
from .verdicts.verdict import Verdict


def tabulate(
    fits: Mapping[str, xr.DataTree],
    distances: pd.DataFrame,
    verdicts: Mapping[str, Verdict],
    problem: Problem | None = None,
    test: Dataset | None = None,
    predicted: Mapping[str, np.ndarray] | None = None,
    plain: Mapping[str, Baseline] | None = None,
) -> pd.DataFrame:
    """Return the table: one row a fit, and one a baseline where there is a test split.

    Parameters
    ----------
    fits : dict of DataTree
    distances : DataFrame
        How far the fits are from the reference (`distances.measure`).
    verdicts : dict of Verdict
    problem, test : Problem, Dataset, optional
    predicted : dict of array (chain, draw, M)
        Predictions for the test samples, by fit that has draws.
    plain : dict of Baseline
        The plain classifiers on the test samples.
    """
    found = {name: _fit(tree) | {"verdict": verdicts[name].level} for name, tree in fits.items()}
    for d in rows(distances):
        column = STATISTICS[d.statistic].column(d.quantity)
        found[d.method][column] = d.value
        if not np.isnan(d.floor):
            found[d.method][f"{column}_beyond"] = 0.0 if d.inside else d.deviation
    if problem is not None and test is not None:
        for name, draws in (predicted or {}).items():
            found[name] |= held_out(problem, draws, test)
    for name, baseline in (plain or {}).items():
        found[name] = {"kind": "baseline", "status": "finished", "reason": "", **baseline.row}
    table = pd.DataFrame.from_dict(found, orient="index", columns=[c.name for c in COLUMNS])
    table.index.name = "method"
    return table


def _fit(tree: xr.DataTree) -> dict[str, Any]:
    """Return what is said of a fit by itself."""
    told = ("kind", "status", "reason", "seconds_compile", "seconds_run")
    row = {name: tree.attrs.get(name) for name in told}
    if not has_draws(tree):
        return row
    return row | computation(tree) | selection(tree)


def held_out(problem: Problem, draws: np.ndarray, test: Dataset) -> dict[str, float]:
    """Return every measure of predictions (chain, draw, M) on the test samples."""
    p = draws.mean(axis=(0, 1))
    known = problem.spec.link != "identity"  # whose predictions are scores
    found = measures(test.y, classes(problem, p), p, p if known else None)
    return found | (wrong_and_sure(test.y, draws) if known else {})


def computation(tree: xr.DataTree) -> dict[str, Any]:
    """Return draws, R-hat, ESS, divergences and k-hat of one fit, as far as they apply."""
    posterior, stats = group(tree, "posterior"), group(tree, "sample_stats")
    row: dict[str, Any] = {"draws": posterior.sizes["chain"] * posterior.sizes["draw"]}
    if tree.attrs["kind"] == "mcmc" and posterior.sizes["draw"] >= 4:
        mixed = mixing_of(tree)
        row["rhat"], eta = mixed.rhat.value, mixed.only("eta")
        if not eta.table.empty:
            row["rhat_eta"] = eta.rhat.value
        row["ess_bulk"], row["ess_tail"] = mixed.ess_bulk.value, mixed.ess_tail.value
        if "diverging" in stats:
            row["divergences"] = diagnostics.divergences(tree)
        row |= _bits(tree)
    if "log_q" in stats and "lp" in stats:
        row["khat"] = diagnostics.khat(stats["lp"].values, stats["log_q"].values)
    return row


def _bits(tree: xr.DataTree) -> dict[str, float]:
    """Return how reliable the inclusion probabilities of a fit's masks are."""
    found = [diagnostics.inclusion(weight) for weight in diagnostics.masks(tree).values()]
    if not found:
        return {}
    return {
        "mcse_bits": float(max(f["mcse"].fillna(0.0).max() for f in found)),
        "spread_bits": float(max(f["spread"].max() for f in found)),
        "unmoved_bits": int(sum(f["unmoved"].sum() for f in found)),
    }


def selection(tree: xr.DataTree) -> dict[str, float]:
    """Return how many features and samples are active, and how many the method itself selects."""
    found, own = group(tree, "selection"), group(tree, "fit")
    row: dict[str, float] = {}
    for what in ("feature", "sample"):
        numbers = summary(found, what)
        if numbers:
            row |= {
                f"active_{what}s": numbers["active"],
                f"active_{what}s_low": numbers["low"],
                f"active_{what}s_high": numbers["high"],
                f"prior_{what}s": numbers["prior"],
                f"background_{what}s": numbers["background"],
                f"n90_{what}s": numbers["n90"],
                f"selected_{what}s": numbers["selected"],
            }
        if f"selected_{what}" in own:
            row[f"own_{what}s"] = int((own[f"selected_{what}"] != 0).sum())
    return row
