"""What the variables of a model look like, without building it on all the data."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .parts.building import no_parent

if TYPE_CHECKING:
    import pymc as pm


class Layout(NamedTuple):
    """The variables of a model.

    Attributes
    ----------
    shapes : dict of tuple of int
        The shape of each variable, by name.
    free_size : int
        P, the length of the unconstrained vector.
    free_feature_size : int
        How many of its numbers belong to one feature each.
    constants : dict of array ()
        The numbers that the model holds as data: filled hyperparameters.
    """

    shapes: dict[str, tuple[int, ...]]
    free_size: int
    free_feature_size: int
    constants: dict[str, np.ndarray]


def layout_of(
    build: Callable[[dict[str, tuple[Any, ...]]], "pm.Model"], coords: Mapping[str, tuple[Any, ...]]
) -> Layout:
    """Return the layout of the model with these coordinates.

    Parameters
    ----------
    build : callable
        Builds the model of the first two rows and centres, with the coordinates that it is given.
        It has the same variables and dims as the whole, and no copy of X.
    coords : dict of tuple
        The coordinates of the whole model.
    """
    few = dict(coords) | {name: coords[name][:2] for name in ("obs", "basis")}
    with no_parent():
        small = build(few)
    dims = {v.name: small.named_vars_to_dims.get(v.name) or () for v in small.unobserved_RVs}
    shapes = {k: tuple(len(coords[d]) for d in along) for k, along in dims.items()}
    sizes = {v.name: math.prod(shapes[v.name]) for v in small.free_RVs}
    per_feature = [size for name, size in sizes.items() if dims[name] == ("feature",)]
    values = {v.name: np.asarray(v.get_value()) for v in small.data_vars}
    constants = {name: value for name, value in values.items() if value.ndim == 0}
    return Layout(shapes, sum(sizes.values()), sum(per_feature), constants)
