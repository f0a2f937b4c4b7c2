"""What a method is asked to fit: a problem of the zoo, or your own `pm.Model`."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from ardvark.common.validate import InputError
from ardvark.models import Problem

if TYPE_CHECKING:
    import pymc as pm

    from .density import Density

_DENSITIES: WeakKeyDictionary[pm.Model, Density] = WeakKeyDictionary()


class Target:
    """What a method is asked to fit: a problem of the zoo, or a `pm.Model` of one's own.

    Parameters
    ----------
    source : Problem or pm.Model
        What to fit.

    Raises
    ------
    InputError
        It is neither, or a model without free variables.
    """

    def __init__(self, source: Problem | pm.Model) -> None:
        self.problem = source if isinstance(source, Problem) else None
        self._source = source
        if self.problem is None:
            import pymc as pm

            if not isinstance(source, pm.Model):
                raise InputError(
                    f"fit needs a Problem or a pm.Model, got {type(source).__name__}: "
                    "the problem comes first. "
                    "Make one with ardvark.problem(model, data)."
                )
            if not source.free_RVs:
                raise InputError(
                    "this model has no variable that is neither observed nor fixed, so it has no "
                    "posterior. pm.do returns a model in which a variable is a constant."
                )

    @property
    def zoo_problem(self) -> Problem:
        """The problem, for a method whose `supports` accepts nothing else."""
        if self.problem is None:
            raise InputError(
                "this method needs a problem made by ardvark.problem, got a bare pm.Model."
            )
        return self.problem

    @property
    def model(self) -> pm.Model:
        """The `pm.Model`; a problem builds one for its fits, on all its data, when first asked."""
        return self._source if self.problem is None else self.problem.fitted_model

    @property
    def sizes(self) -> dict[str, int]:
        """How many numbers each variable holds; a problem needs no `model` for it.

        A variable of a bare model without dims counts as one number.
        """
        if self.problem is not None:
            return self.problem.sizes
        dims, lengths = self.model.named_vars_to_dims, self.model.dim_lengths
        named = {k: v for k, v in dims.items() if v is not None and None not in v}
        return {
            v.name: math.prod(int(lengths[d].eval()) for d in named.get(v.name, ()))
            for v in self.model.unobserved_RVs
        }

    @property
    def free_size(self) -> int:
        """P, the length of the unconstrained vector; a problem needs no `model` for it."""
        if self.problem is not None:
            return self.problem.free_size
        return sum(np.size(v) for v in self.model.initial_point().values())

    @property
    def discrete(self) -> str:
        """What is discrete in it: the names of variables, the masks of a problem, or nothing."""
        if self.problem is None:
            return ", ".join(v.name for v in self.model.discrete_value_vars)
        masked = self.problem.spec.masked
        return f"the masks of {', '.join(masked)}" if masked else ""

    @property
    def density(self) -> Density:
        """The compiled density, shared by every method that asks for the same model."""
        from .density import Density

        known = _DENSITIES.get(self.model)
        if known is None or not known.refresh():  # new lengths: another vector
            _DENSITIES[self.model] = known = Density(self.model)
        return known

    def compile_density(self) -> float:
        """Compile the density unless that is done; return the seconds it took now."""
        started = time.perf_counter()
        _ = self.density
        return time.perf_counter() - started
