"""What a fit of a `pm.Model` of one's own keeps beside its draws: densities and data.

A problem of the zoo computes its own; here PyMC does, in the groups that ArviZ looks for.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from ardvark.common.validate import logger

if TYPE_CHECKING:
    import pymc as pm

DATA = ("observed_data", "constant_data")
"""The groups of data."""
WRITTEN = "written"
"""The attribute with the distributions of the model, as PyMC prints them."""
LARGEST = 1e8
"""Numbers of a pointwise log likelihood up to which it is stored (800 MB)."""


def data_of(model: "pm.Model") -> dict[str, dict[str, np.ndarray]]:
    """Return the arrays of observed_data and constant_data, as far as the model has them."""
    from pymc.backends.arviz import find_constants, find_observations

    found = find_observations(model), find_constants(model)
    return {
        name: {key: np.asarray(values) for key, values in arrays.items()}
        for name, arrays in zip(DATA, found, strict=True)
        if arrays
    }


def other_data(arrays: Mapping[str, Mapping[str, np.ndarray]], tree: xr.DataTree) -> str:
    """Return which data of a fit or of draws differ from these arrays by group; "" if none do.

    What one of them lacks is not compared.
    """
    for name in arrays.keys() & tree.children.keys():
        theirs = tree[name].to_dataset()
        for key, ours in arrays[name].items():
            if key in theirs and not (
                theirs[key].shape == ours.shape
                and np.allclose(theirs[key].values, ours, rtol=1e-6, equal_nan=True)
            ):
                return f"{key} in {name}"
    return ""


def log_densities(model: "pm.Model", posterior: xr.Dataset) -> dict[str, xr.Dataset]:
    """Return the pointwise log likelihood and the log prior of draws, as far as there are any.

    There is none without every free variable, and no log likelihood of a model without observed
    variables, such as one whose data enter by a `pm.Potential`.

    Parameters
    ----------
    model : pm.Model
        Not changed.
    posterior : Dataset
        Its variables, with the dims chain and draw.
    """
    from pymc.stats import compute_log_likelihood, compute_log_prior

    found: dict[str, xr.Dataset] = {}
    if not posterior.sizes or not all(rv.name in posterior for rv in model.free_RVs):
        return found
    tree = xr.DataTree.from_dict({"/posterior": posterior})
    compute = {"log_prior": compute_log_prior, "log_likelihood": compute_log_likelihood}
    if not model.observed_RVs or _numbers(model, posterior) > LARGEST:
        del compute["log_likelihood"]
    for name, function in compute.items():
        try:
            found[name] = function(
                tree,
                model=model,
                extend_inferencedata=False,
                progressbar=False,
                compile_kwargs={"mode": "FAST_COMPILE"},  # Numba would compile for many seconds
            ).drop_attrs()
        except Exception as error:  # whatever a distribution of one's own cannot do
            logger.warning("without %s: %s: %s", name, type(error).__name__, error)
    return found


def _numbers(model: "pm.Model", posterior: xr.Dataset) -> float:
    """Return how many numbers the pointwise log likelihood has."""
    values = [model.rvs_to_values[rv] for rv in model.observed_RVs]
    terms = sum(np.size(v.get_value() if hasattr(v, "get_value") else v.eval()) for v in values)
    return float(terms) * posterior.sizes["chain"] * posterior.sizes["draw"]
