"""Whether the predictions of a fit vary from row to row at all.

They are called nearly constant if their log odds at the training rows have a standard deviation
below 0.1. That is the size from which the effect of a feature counts as visible (`select`), so no
feature, and not all of them together, has a visible effect. The log odds, and not P(y), are looked
at, so that the limit means the same for rare classes as for even ones. At even odds it is a
standard deviation of 0.025 of P(y). Training rows are looked at, because predictions vary most
where a model has seen the labels.
"""

import numpy as np
import xarray as xr

from ardvark.models import Problem
from ardvark.models.parts.effects import VISIBLE

from ...fits.datatree import group, pointwise


def nearly_constant(problem: Problem, tree: xr.DataTree) -> str:
    """Return how little the predictions at the training rows vary, or "" if they do vary.

    A score, of a model without probabilities, has the same limit as log odds. A fit that lacks the
    pointwise likelihood is not judged.
    """
    likelihood = pointwise(tree).get("y")
    if likelihood is None:
        return ""
    if problem.spec.link == "identity":
        eta = group(tree, "posterior")["eta"]
        shown = values = np.asarray(eta.mean(("chain", "draw")).values)
        what, spoken = "the score", "It varies"
    else:
        observed = likelihood.transpose("chain", "draw", "obs").values
        p = np.exp(observed).mean(axis=(0, 1))  # of the label that was observed
        shown = np.where(problem.y == 1, p, 1.0 - p)
        values, spoken = log_odds(shown), "Its log odds vary"
        what = f"P({problem.data.class_names[1]!r})"
    spread = float(values.std())
    if spread >= VISIBLE:
        return ""
    return (
        f"at the training rows, {what} is {shown.min():.3g} to {shown.max():.3g}. {spoken} by "
        f"{spread:.2g} (standard deviation), and an effect is visible from {VISIBLE:g} on"
    )


def log_odds(p: np.ndarray) -> np.ndarray:
    """Return log p / (1 - p), finite for probabilities that are 0 or 1 in float64."""
    p = np.clip(p, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
    return np.log(p) - np.log1p(-p)
