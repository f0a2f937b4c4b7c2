"""Fits as plain tables: effects, groups and predictions, to be read by anything."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.data import Dataset
from ardvark.inference import effects
from ardvark.inference.fits.covariates import ODDS
from ardvark.inference.fits.datatree import write_files
from ardvark.inference.fits.effects import group_table
from ardvark.inference.methods.prediction import classes, predicted_draws
from ardvark.models import Problem

_ENDS = {"low": 0.05, "high": 0.95}


def export(
    problem: Problem, test: Dataset | None, fits: Mapping[str, xr.DataTree], folder: Path
) -> list[str]:
    """Write the tables of a study as CSV files into a folder, and return the files' names."""
    found = {f"{name}.csv": table for name, table in tables(problem, test, fits).items()}
    write_files(folder, found)
    return list(found)


def tables(
    problem: Problem, test: Dataset | None, fits: Mapping[str, xr.DataTree]
) -> dict[str, pd.DataFrame]:
    """Return effects, groups of correlated features, and predictions of fits of one problem.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted.
    test : Dataset, optional
        Other rows to predict.
    fits : dict of DataTree
        Fits by method; a failed one is left out.

    Returns
    -------
    dict of DataFrame
        predictions : one row per training and test row. `label` is its class, and `y` that class as
            0 or 1. Of each method there are METHOD, P(y = 1) averaged over the posterior (a score
            where the model has no probability); METHOD_low and METHOD_high, the ends of its 90 %
            interval; and METHOD_label, the class that is predicted.
        effects : one row per feature or sample (`kind`) and method: the signed effect with its
            90 % interval, the odds ratio, and the probabilities of its sign and of its size
            (`ardvark.effects`). `unit` and `towards` say what it is, and `threshold` which size.
            Covariates (columns that are always in the model) follow, with their odds ratios.
            `odds_per` says whether these are for one sd of the column or for one unit.
        groups : one row per group of correlated features and method: the members, and the
            probability that at least one has an effect. Left out where no fit has groups.
    """
    known = {m: t for m, t in fits.items() if t.attrs["status"] != "failed"}
    found = {"predictions": _predictions(problem, test, known)}
    kinds = ("feature", "sample", "covariate")
    each = [_effects(m, tree, what) for m, tree in known.items() for what in kinds]
    if any(len(table) for table in each):
        found["effects"] = pd.concat([t for t in each if len(t)]).set_index(["kind", "name"])
    together = [_groups(method, tree) for method, tree in known.items()]
    if any(len(table) for table in together):
        found["groups"] = pd.concat([t for t in together if len(t)]).set_index("group")
    return found


def prediction(problem: Problem, drawn: xr.DataArray) -> pd.DataFrame:
    """Return predictions of rows: mean, 90 % interval, and the class that is predicted.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted.
    drawn : xarray.DataArray (chain, draw, obs)
        What `ardvark.predict` returned.

    Returns
    -------
    DataFrame
        `mean`, `low`, `high` of P(y = 1), or of a score, and `label`; indexed by row.
    """
    mean = drawn.mean(("chain", "draw")).values
    columns = {"mean": mean} | {
        end: drawn.quantile(at, ("chain", "draw")).values for end, at in _ENDS.items()
    }
    label = np.array(problem.data.class_names)[classes(problem, mean)]
    return pd.DataFrame(columns, index=pd.Index(drawn["obs"].values, name="row")).assign(
        label=label
    )


def _predictions(
    problem: Problem, test: Dataset | None, fits: Mapping[str, xr.DataTree]
) -> pd.DataFrame:
    sets = {"train": problem.data} | ({} if test is None else {"test": test})
    names = np.array(problem.data.class_names)
    table = pd.concat(
        {
            name: pd.DataFrame(
                {"label": names[data.y], "y": data.y},
                index=pd.Index(data.sample_names, name="sample"),
            )
            for name, data in sets.items()
        },
        names=["set"],
    )
    for method, tree in fits.items():
        drawn = [predicted_draws(problem, tree, data) for data in sets.values()]
        together = xr.DataArray(np.concatenate(drawn, axis=-1), dims=("chain", "draw", "obs"))
        for name, values in prediction(problem, together).items():
            table[method if name == "mean" else f"{method}_{name}"] = values.to_numpy()
    return table


def _effects(method: str, tree: xr.DataTree, what: str) -> pd.DataFrame:
    found = effects(tree, what)
    if not len(found):
        return found
    about = {name: found.attrs[name] for name in ("unit", "towards", "threshold")}
    if ODDS[0] in found:
        about["odds_per"] = "unit" if what == "covariate" else "sd"
    table = found.reset_index(names="name").assign(**about)
    table.insert(0, "kind", what)
    table.insert(2, "method", method)
    return table


def _groups(method: str, tree: xr.DataTree) -> pd.DataFrame:
    found = group_table(tree).reset_index(names="group")
    members = [", ".join(names) for names in found.pop("members")]
    return found.assign(method=method, members=members)
