"""What a model's file may leave out, because its PyMC model says it: the densities.

`log_joint`, `log_jacobian` and `to_free` of a file of one's own follow from its `build`. The files
of the zoo write them out, from the paper: that the two agree is a proof, which what is derived here
cannot be. What is derived is slower, since PyMC is asked for one draw after the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .building import no_parent
from .unconstrain import log_densities_of

if TYPE_CHECKING:
    import pymc as pm

NAMES = ("log_joint", "log_jacobian", "to_free")
"""What may be left out."""
_HELD = 4  # compiled densities, of the hyperparameters that were used last


class Derived:
    """The functions that a model's file lacks, by its PyMC model.

    The model's own variables are "the paper's": their density is PyMC's, without Jacobian.

    Parameters
    ----------
    build : callable
        (inputs, y, h, coords) -> pm.Model, of the file.
    """

    def __init__(self, build: "Callable[[Any, np.ndarray, Any, Any], pm.Model]") -> None:
        self._build = build
        self._known: list[_Known] = []  # the last one used is the last

    def build(self, inputs: Any, y: np.ndarray, h: Any, coords: Any) -> "pm.Model":
        """Return the file's model, and remember of which data."""
        self._remember(_Known(self._build, inputs, np.array(y), h, coords))
        return self._build(inputs, y, h, coords)

    def _remember(self, found: "_Known") -> "_Known":
        others = [known for known in self._known if known is not found]
        self._known = [*others[1 - _HELD :], found]
        return found

    def _of(self, inputs: Any, y: np.ndarray, h: Any) -> "_Known":
        """Return the model of these data; built and compiled once for each."""
        for known in self._known:
            same = known.inputs.X is inputs.X and known.inputs.Z is inputs.Z and known.h == h
            if same and np.array_equal(known.y, y):
                return self._remember(known)
        lengths = {"obs": inputs.N, "basis": inputs.B, "feature": inputs.D}
        coords: dict[str, Any] = {name: range(n) for name, n in lengths.items()}
        if inputs.C is not None:
            coords["covariate"] = range(inputs.C.shape[1])
        return self._remember(_Known(self._build, inputs, np.array(y), h, coords))

    def log_joint(
        self, point: Mapping[str, np.ndarray], inputs: Any, y: np.ndarray, h: Any
    ) -> np.ndarray:
        """Return log p(y, variables | X), without Jacobian."""
        return self._of(inputs, y, h).densities(point)[..., 1]

    def log_jacobian(self, point: Mapping[str, np.ndarray], h: Any) -> np.ndarray:
        """Return log |d variables / d unconstrained vector|, which no data change."""
        known = next(k for k in reversed(self._known) if k.h == h and k.fits(point))
        both = known.densities(point)
        return np.asarray(both[..., 0] - both[..., 1])

    def to_free(
        self, point: Mapping[str, np.ndarray], inputs: Any, h: Any
    ) -> dict[str, np.ndarray]:
        """Return the free variables, which are the paper's."""
        known = next((k for k in reversed(self._known) if k.h == h), None)
        if known is None:
            known = self._of(inputs, np.zeros(inputs.N, dtype=int), h)
        return {rv.name: np.asarray(point[rv.name]) for rv in known.model.free_RVs}


@dataclass(eq=False)
class _Known:
    """Data and hyperparameters, and a model of them that nobody else can change."""

    build: Callable[..., Any]
    inputs: Any
    y: np.ndarray
    h: Any
    coords: Any

    @cached_property
    def model(self) -> "pm.Model":
        """The file's model of them."""
        with no_parent():
            return self.build(self.inputs, self.y, self.h, self.coords)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The two densities, compiled."""
        return log_densities_of(self.model)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the free variables."""
        return {rv.name: tuple(rv.shape.eval()) for rv in self.model.free_RVs}

    def fits(self, point: Mapping[str, np.ndarray]) -> bool:
        """Whether the free variables of a point have the shapes of this model's."""
        return all(np.shape(point[n])[np.ndim(point[n]) - len(s) :] == s
                   for n, s in self.shapes.items())  # fmt: skip

    def densities(self, point: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the log densities (..., 2) with and without Jacobian, at each draw of a point."""
        arrays = [np.asarray(point[name]) for name in self.shapes]
        lead = arrays[0].shape[: arrays[0].ndim - len(next(iter(self.shapes.values())))]
        out = np.empty((*lead, 2))
        for at in np.ndindex(lead):
            out[at] = self.function(*[x[at] for x in arrays])
        return out
