"""Fits as plain tables: what is active, and what is predicted, to be read by anything."""

from collections.abc import Mapping

import pandas as pd
import xarray as xr

from ardvark.data import Dataset
from ardvark.inference import predict
from ardvark.models import Problem


def tables(
    problem: Problem, test: Dataset | None, fits: Mapping[str, xr.DataTree]
) -> dict[str, pd.DataFrame]:
    """Return P(active) and predictions of fits of one problem.

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
        predictions : P(y = 1) of each training and test row, averaged over the posterior, a column
            a method (a score where the model has no probability); `y` is the label, 0 or 1.
        active_features, active_samples : P(active), a column a method, and its Monte Carlo error
            in METHOD_mcse. Left out where no fit says.
    """
    sets = {"train": problem.data} | ({} if test is None else {"test": test})
    predictions = pd.concat(
        {
            name: pd.DataFrame({"y": data.y}, index=pd.Index(data.sample_names, name="sample"))
            for name, data in sets.items()
        },
        names=["set"],
    )
    active = {
        "feature": pd.DataFrame(index=pd.Index(problem.data.feature_names, name="feature")),
        "sample": pd.DataFrame(index=pd.Index(problem.basis_names, name="sample")),
    }
    for method, tree in fits.items():
        if tree.attrs["status"] == "failed":
            continue
        means = [predict(problem, tree, data).mean(("chain", "draw")) for data in sets.values()]
        predictions[method] = xr.concat(means, "obs").values
        found = tree["selection"].to_dataset() if "selection" in tree.children else xr.Dataset()
        for what, table in active.items():
            if f"p_active_{what}" in found:
                table[method] = found[f"p_active_{what}"].values
                table[f"{method}_mcse"] = found[f"mcse_{what}"].values
    out = {f"active_{what}s": table for what, table in active.items() if table.shape[1]}
    return {"predictions": predictions, **out}
