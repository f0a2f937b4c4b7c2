"""`adopt` for a `pm.Model` of one's own: draws of its variables become a fit of it."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ardvark.common.validate import InputError
from ardvark.models.parts.unconstrain import log_density

from ..fits.datatree import group, model_coords, own_draws
from ..fits.own_groups import data_of, other_data
from ..target.backend import Kind
from .given_draws import (
    LEAD,
    Arrays,
    Draws,
    Expected,
    check_support,
    first,
    inside,
    prior_unchecked,
)

if TYPE_CHECKING:
    import pymc as pm


def given_model(model: "pm.Model", draws: Draws, kind: Kind) -> tuple[Arrays, Arrays, float, str]:
    """Return variables and statistics of draws of a model, seconds, and what is unchecked.

    Variables that the draws lack are computed as far as they follow.

    Raises
    ------
    InputError
        The draws cannot be of this model: names, shapes, values, data or their own log density
        contradict it.
    """
    shapes = {name: tuple(map(int, shape)) for name, shape in _shapes(model).items()}
    expected = Expected("model", "this model", shapes, model_coords(model))
    given, stats, seconds = expected.read(draws)
    if isinstance(draws, xr.DataTree):
        _check_data(model, draws)
    free = [rv.name for rv in model.free_RVs]
    lacking = [name for name in free if name not in given]
    if lacking:
        raise InputError(
            f"the draws lack {', '.join(lacking)}. Of a pm.Model every free variable is needed: "
            f"{', '.join(free)}."
        )
    point = expected.checked(given)
    check_support(model, point, kind)
    point = {rv.name: _typed(rv, point[rv.name]) for rv in model.free_RVs}
    point |= _deterministics(model, point)
    with np.errstate(all="ignore"):
        lp = inside(log_density(model, point), kind)
    unchecked = prior_unchecked(draws, free, point, lp, "model")
    return point, stats | {"lp": lp}, seconds, unchecked


def _shapes(model: "pm.Model") -> dict[str, tuple[int, ...]]:
    """Return the shapes of all unobserved variables."""
    from pytensor import function

    variables = model.unobserved_RVs
    shapes = function([], [v.shape for v in variables], mode="FAST_COMPILE")()
    return {v.name: tuple(shape) for v, shape in zip(variables, shapes, strict=True)}


def _typed(variable: Any, values: np.ndarray) -> np.ndarray:
    """Return the draws of a variable in its type: whole numbers where it is discrete."""
    if not variable.dtype.startswith(("int", "uint", "bool")):
        return values
    typed = values.astype(variable.dtype)
    if (other := typed != values).any():
        raise InputError(f"{variable.name} is discrete; another value is {first(other)}.")
    return typed


def _deterministics(model: "pm.Model", point: Arrays) -> Arrays:
    """Return the model's deterministics, of its free variables."""
    import pymc as pm

    names = [v.name for v in model.deterministics]
    if not names:
        return {}
    free = own_draws(model, {rv.name: point[rv.name] for rv in model.free_RVs})
    found = pm.compute_deterministics(
        group(free, "posterior"),
        var_names=names,
        model=model,
        progressbar=False,
        compile_kwargs={"mode": "FAST_COMPILE"},
    )
    return {name: found[name].transpose(*LEAD, ...).values for name in names}


def _check_data(model: "pm.Model", draws: xr.DataTree) -> None:
    """Refuse draws of a model with other data, or in which a variable of ours is a constant."""
    free = {rv.name for rv in model.free_RVs}
    other = other_data(data_of(model), draws)
    if other:
        raise InputError(
            f"{other} of these draws differs from that of this model: they are draws of a model "
            "with other data."
        )
    fixed = free & {str(name) for name in group(draws, "constant_data")}
    if fixed:
        raise InputError(
            f"{', '.join(sorted(fixed))} is a variable of this model, and a constant of the model "
            "that these draws are of: they are draws of another model."
        )
