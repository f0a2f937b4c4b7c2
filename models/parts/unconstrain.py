"""From a model's variables to its unconstrained vector, and the density there, by PyMC."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pymc as pm


def _symbols(model: "pm.Model") -> tuple[dict[Any, Any], list[Any]]:
    """Return a symbol for each free variable, and what it is as a value variable."""
    from pytensor.graph.replace import clone_replace

    symbols = {rv: rv.type(name=rv.name) for rv in model.free_RVs}
    values = []
    for rv, x in symbols.items():
        transform = model.rvs_to_transforms[rv]
        values.append(x if transform is None else transform.forward(x, *rv.owner.inputs))
    # limits of a transform may be other variables: those given, and not draws of them
    return symbols, clone_replace(values, symbols)


def unconstrain(model: "pm.Model") -> Callable[..., list[np.ndarray]]:
    """Return the compiled map from free variables, in their order, to their value variables."""
    import pytensor

    symbols, values = _symbols(model)
    return pytensor.function(
        list(symbols.values()), values, mode="FAST_COMPILE", allow_input_downcast=True,
        on_unused_input="ignore",
    )  # fmt: skip


def log_densities_of(model: "pm.Model") -> Callable[..., list[np.ndarray]]:
    """Return the function from free variables, in their order, to two log densities.

    The first is that of the unconstrained vector, Jacobian included, the second that of the
    variables themselves.
    """
    import pytensor
    from pytensor.graph.replace import clone_replace

    symbols, values = _symbols(model)
    known = dict(zip((model.rvs_to_values[rv] for rv in symbols), values, strict=True))
    both = clone_replace([model.logp(), model.logp(jacobian=False)], known)
    return pytensor.function(
        list(symbols.values()), both, mode="FAST_COMPILE", allow_input_downcast=True,
        on_unused_input="ignore",
    )  # fmt: skip


def log_density(model: "pm.Model", point: dict[str, np.ndarray]) -> np.ndarray:
    """Return the log density (chain, draw) of draws of all free variables; NaN where it fails."""
    function = log_densities_of(model)
    arrays = [point[rv.name] for rv in model.free_RVs]
    chains, draws = arrays[0].shape[:2]
    out = np.empty((chains, draws))
    for at in np.ndindex(chains, draws):
        out[at] = function(*[values[at] for values in arrays])[0]
    return out
