"""Compare posteriors of one problem: one row per method, the exact one as reference.

The columns are declared in `columns.py`; what they say follows below.

"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.data import Dataset
from ardvark.models import SHARED, Problem
from ardvark.validate import InputError, logger, one_of, unknown

from .. import diagnostics
from ..datatree import group
from ..prediction import predict
from ..selection import selection_text, summary
from . import report
from .baselines import baselines
from .columns import COLUMNS, described
from .measures import moments, score
from .plots import FIGURES, Kind
from .sensitivity import Sensitivity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__doc__ = f"{__doc__}{described()}\n"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Fits of one problem beside each other.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per method (and per baseline, with a test split), the columns of this module's
        docstring.
    fits : dict of DataTree
    reference : str or None
        The row the errors are measured against.
    problem : Problem or None
    """

    table: pd.DataFrame
    fits: dict[str, xr.DataTree]
    reference: str | None = None
    problem: Problem | None = None

    def plot(self, kind: Kind = "forest", **settings: Any) -> "Figure":
        """Return a figure: "forest" (leading features), "image" (pixels), "eta" (decision values).

        Parameters
        ----------
        kind : {"forest", "image", "eta"}
        **settings
            Of the figure: `leading`, the number of features in a forest.

        Raises
        ------
        InputError
            An unknown kind, or one that these fits have no draws for.
        """
        one_of("kind", kind, tuple(FIGURES))
        p = self.problem
        subject = "" if p is None else f"{p.spec.name} on {p.data.name}"
        return FIGURES[kind](self.fits, self.reference, subject, **settings)

    def figures(self) -> "dict[str, Figure]":
        """Return every kind of figure that these fits have draws for."""
        drawn: dict[str, Figure] = {}
        for kind in FIGURES:
            try:
                drawn[kind] = self.plot(kind)
            except InputError as error:
                logger.info("no %s figure: %s", kind, error)
        return drawn

    def selection(self) -> dict[str, str]:
        """Return which features each fit says are active, in words; the reference first."""
        words = {name: selection_text(tree) for name, tree in self.fits.items()}
        order = sorted(words, key=lambda name: name != self.reference)
        return {name: words[name] for name in order if words[name]}

    def to_html(
        self,
        path: str | os.PathLike[str],
        command: str = "",
        sensitivity: Sensitivity | None = None,
    ) -> Path:
        """Write one self-contained page with the table and the figures; return its path.

        Parameters
        ----------
        path : path
            The file.
        command : str
            How the comparison was made, shown at the end of the page.
        sensitivity : Sensitivity, optional
            What moves with the prior (`ardvark.sensitivity`): a section of the page.
        """
        page = report.page(
            self.table,
            self.figures(),
            self.selection(),
            reference=self.reference,
            problem=self.problem,
            sensitivity=sensitivity,
            command=command,
            versions=str(next(iter(self.fits.values())).attrs.get("versions", "")),
        )
        target = Path(path)
        target.write_text(page, encoding="utf-8")
        return target


def compare(
    fits: Mapping[str, xr.DataTree],
    reference: str | None = None,
    problem: Problem | None = None,
    test: Dataset | None = None,
) -> Comparison:
    """Compare fits of the same posterior.

    Parameters
    ----------
    fits : dict of DataTree
        Results of `fit`, by the name of their row.
    reference : str, optional
        The fit to measure errors against; by default the first converged Markov chain.
    problem : Problem, optional
        Needed with `test`.
    test : Dataset, optional
        Held-out samples, in the original units. Adds accuracy, log score and two scikit-learn
        baselines.

    Raises
    ------
    InputError
        No fits, fits of different problems, an unknown reference, `test` without `problem`.
    """
    if not fits:
        raise InputError("nothing to compare: fits is empty.")
    prints = {name: tree.attrs.get("fingerprint") for name, tree in fits.items()}
    if len(set(prints.values())) > 1:
        listed = ", ".join(f"{k}: {v}" for k, v in prints.items())
        raise InputError(f"these fits are of different problems (fingerprints {listed}).")
    if test is not None and problem is None:
        raise InputError("a test split needs the problem as well: pass problem=.")
    if reference is not None and reference not in fits:
        raise unknown("reference", reference, fits)
    if reference is None:
        reference = reference_of(fits)

    rows = {}
    for name, tree in fits.items():
        row: dict[str, Any] = {k: tree.attrs.get(k) for k in ("kind", "status", "reason")}
        row |= {k: tree.attrs.get(k) for k in ("seconds_compile", "seconds_run")}
        if _drawn(tree):
            row |= _reliability(tree) | _selection(tree)
            if reference is not None and _drawn(fits[reference]):
                row |= _errors(tree, fits[reference])
            if test is not None and problem is not None:
                p = predict(problem, tree, test).mean(("chain", "draw")).values
                row |= score(problem, p, test)
        rows[name] = row
    if test is not None and problem is not None:
        for name, row in baselines(problem.data, test).items():
            rows[name] = {"kind": "baseline", "status": "ok", "reason": "", **row}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=[c.name for c in COLUMNS])
    table.index.name = "method"
    return Comparison(table, dict(fits), reference, problem)


def reference_of(fits: Mapping[str, xr.DataTree]) -> str | None:
    """Return the fit that errors are measured against: the first converged Markov chain, or any."""
    good = [n for n, t in fits.items() if t.attrs["kind"] == "mcmc" and _drawn(t)]
    converged = [n for n in good if fits[n].attrs["status"] == "ok"]
    return next(iter(converged or good), None)


def _drawn(tree: xr.DataTree) -> bool:
    return bool(group(tree, "posterior").data_vars)


def _reliability(tree: xr.DataTree) -> dict[str, Any]:
    """Return draws, R-hat, ESS, divergences and k-hat of one fit, each where it means something."""
    posterior, stats = group(tree, "posterior"), group(tree, "sample_stats")
    row: dict[str, Any] = {"draws": posterior.sizes["chain"] * posterior.sizes["draw"]}
    if tree.attrs["kind"] == "mcmc" and posterior.sizes["draw"] >= 4:
        fixed = tree.attrs.get("fixed", "").split()  # by the model: nothing to converge
        values = [posterior[name] for name in posterior.data_vars if name not in fixed]
        values = [diagnostics.moved(tree, v) for v in values]
        values = [v for v in values if v.size]
        by_name = {str(v.name): diagnostics.rhat(v) for v in values}
        row["rhat"] = diagnostics.worst(by_name.values(), np.max)
        if "eta" in by_name:
            row["rhat_eta"] = diagnostics.worst([by_name["eta"]], np.max)
        for method in ("bulk", "tail"):
            found = (diagnostics.ess(v, method) for v in values)
            row[f"ess_{method}"] = diagnostics.worst(found, np.min)
        if "diverging" in stats:
            row["divergences"] = diagnostics.divergences(tree)
        row |= _bits(tree)
    if "log_q" in stats and "lp" in stats:
        row["khat"] = diagnostics.khat(stats["lp"].values, stats["log_q"].values)
    return row


def _bits(tree: xr.DataTree) -> dict[str, float]:
    """Return how far the inclusion probabilities of a fit's masks may be believed."""
    found = [diagnostics.inclusion(weight) for weight in diagnostics.masks(tree).values()]
    if not found:
        return {}
    return {
        "mcse_bits": float(max(f["mcse"].fillna(0.0).max() for f in found)),
        "spread_bits": float(max(f["spread"].max() for f in found)),
        "unmoved_bits": int(sum(f["unmoved"].sum() for f in found)),
    }


def _errors(tree: xr.DataTree, reference: xr.DataTree) -> dict[str, float]:
    """Return the distance of each shared quantity from the reference."""
    row = {}
    found, exact = group(tree, "posterior"), group(reference, "posterior")
    for name in SHARED:
        if name not in found or name not in exact:
            continue
        if tree is reference:
            values = exact[name].values
            if values.shape[0] < 2:
                continue
            middle = values.shape[0] // 2
            mean, sd = moments(values[:middle])
            mean0, sd0 = moments(values[middle:])
        else:
            mean, sd = moments(found[name].values)
            mean0, sd0 = moments(exact[name].values)
        if name == "feature_weight" and name in diagnostics.masks(reference):
            row[f"error_{name}"] = float(np.max(np.abs(mean - mean0)))
            continue
        live = (sd0 > 0.0) | (
            mean != mean0
        )  # a weight that is 0 in every draw of both says nothing
        with np.errstate(divide="ignore", invalid="ignore"):
            row[f"error_{name}"] = float(
                np.max(np.abs(mean - mean0)[live] / sd0[live], initial=0.0)
            )
            row[f"sd_ratio_{name}"] = float(np.median(sd[live] / sd0[live]))
    return row


def _selection(tree: xr.DataTree) -> dict[str, float]:
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
                f"n90_{what}s": numbers["n90"],
                f"selected_{what}s": numbers["selected"],
            }
        if f"selected_{what}" in own:
            row[f"own_{what}s"] = int((own[f"selected_{what}"] != 0).sum())
    return row
