"""All that may be quoted from the draws of a fit, each quantity under its name in words.

`mixing.py` says what that is, and judges it.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import xarray as xr

from ardvark.common.validate import InputError
from ardvark.models import Problem
from ardvark.models.parts.effects import VISIBLE

from ..target.reasons import Reason
from . import chains
from .activity import LISTED, Activity, activity, primal_weights
from .datatree import COVARIATES, component_names, group, is_bare, pointwise

OFTEN = 0.05
"""What is true or false in a draw (a bit of a mask, whether an effect is large) is quoted if it is
true, and false, in at least this share of the draws."""
_BUDGET = 0.1  # of the budgets of a selection: mixing is asked for repeatedly during a run

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Part:
    """Quantities of one kind: values (chain, draw, k) and their names."""

    kind: str
    names: list[str]
    values: np.ndarray
    thin: int = 1


@dataclass(frozen=True, eq=False)
class Source:
    """Draws, with what is known of the model they come from."""

    draws: Arrays
    sizes: tuple[int, int]
    masked: tuple[str, ...]
    fixed: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    """Names of features, samples and covariates."""
    listed: Mapping[str, np.ndarray]
    """The features and the samples that are quoted."""
    activities: Mapping[str, Activity]
    primal: np.ndarray | None
    log_likelihood: np.ndarray | None
    bare: bool = False
    """Whether they are of a `pm.Model` of one's own, whose names mean nothing to the zoo."""
    tree: xr.DataTree | None = None
    """The draws with their coordinates, if they have any."""

    @classmethod
    def of(
        cls,
        problem: Problem | None,
        draws: xr.DataTree | Arrays,
        activities: Mapping[str, Activity] | None,
    ) -> "Source":
        """Return the draws of a fit, with the features and samples that are quoted."""
        tree = draws if isinstance(draws, xr.DataTree) else None
        arrays = _arrays(draws)
        first = next(iter(arrays.values()))
        sizes = (first.shape[0], first.shape[1])
        masked, fixed, labels = _known(problem, tree)
        found = dict(activities or {})
        if not found and problem is not None and sizes[1] >= chains.FEWEST:
            needed = [n for n in ("feature_weight", "sample_weight") if n in problem.spec.shared]
            if all(n in arrays for n in needed):
                found = activity(problem, arrays, budget=_BUDGET, details=False)
        listed = {what: of.listed for what, of in found.items()} or _selected(tree)
        return cls(
            arrays, sizes, masked, fixed, labels, listed, found,
            _primal(problem, arrays, listed.get("feature")), _likelihood(problem, arrays, tree),
            bare=problem is None and (tree is None or is_bare(tree)), tree=tree,
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield all that is judged."""
        if self.bare:
            yield from self._variables()
            return
        if "eta" in self.draws:
            eta = self.draws["eta"]
            yield Part("eta", [_component("eta", i) for i in _indices(eta)], eta)
        for name, values in self.draws.items():
            # what takes whole values may rightly have the same one in all draws
            moves = values.ndim == 2 and (values.dtype.kind == "f" or np.ptp(values) > 0)
            if moves and name not in self.fixed:
                yield Part("scalar", [name], values[..., None].astype(float))
        if COVARIATES in self.draws:
            known = self.labels["covariate"]
            yield Part("scalar", [f"the weight of {c}" for c in known], self.draws[COVARIATES])
        if self.log_likelihood is not None:
            yield Part("log likelihood", ["the log likelihood"], self.log_likelihood[..., None])
        yield from self._of("feature", "feature_weight", "{}")
        yield from self._of("sample", "sample_weight", "sample {}")

    def _variables(self) -> Iterator[Part]:
        """Yield every component of every variable that has more than one value in all draws.

        A correlation of a variable with itself, for example, has one.
        """
        for name, values in self.draws.items():
            flat = values.reshape(*self.sizes, -1)
            moves = (flat != flat[:1, :1]).any(axis=(0, 1))
            names = self._components(name)
            named = [names[k] for k in np.flatnonzero(moves)]
            yield Part("variable", named, flat[..., moves].astype(float))

    def _components(self, name: str) -> list[str]:
        """Return the components of a variable in words, by their coordinates if they are known."""
        if self.tree is not None:
            return component_names(name, group(self.tree, "posterior")[name])
        return [_component(name, index) for index in _indices(self.draws[name])]

    def _of(self, what: str, weight: str, word: str) -> Iterator[Part]:
        """Yield the weights, effects and bits of the features or samples that are quoted."""
        labels = [word.format(name) for name in self.labels[what]]
        listed = self.listed.get(what, np.empty(0, dtype=int))
        chosen = [labels[k] for k in listed]
        masked = weight in self.masked
        if weight in self.draws and weight not in self.fixed and "eta" in self.draws:
            values = self.draws[weight]
            if masked:
                on = values != 0
                often = _often(on)
                yield Part("mask", [f"the mask of {labels[k]}" for k in often], on[..., often])
            else:
                names = [f"the weight of {name}" for name in chosen]
                yield Part("weight", names, values[..., listed])
        if what == "feature" and self.primal is not None and not masked:
            names = [f"the primal weight of {name}" for name in chosen]
            yield Part("primal weight", names, self.primal)
        found = self.activities.get(what)
        if found is None:
            return
        if found.effects.shape[-1]:
            moves = np.ptp(found.effects, axis=(0, 1)) > 0 if masked else np.ones(len(listed), bool)
            names = [f"the effect of {chosen[k]}" for k in np.flatnonzero(moves)]
            yield Part("effect", names, found.effects[..., moves], found.thin)
        on = found.active[..., listed]
        often = _often(on)
        names = [f"whether the effect of {chosen[k]} is above {found.threshold:g}" for k in often]
        yield Part("active", names, on[..., often], found.thin)

    def frozen(self) -> Reason | None:
        """Return which mask has never changed, None if all have."""
        for name in self.masked:
            on = self.draws[name] != 0 if name in self.draws else np.zeros((0, 0, 0), dtype=bool)
            if on.size and (on == on[:1, :1]).all():
                return Reason("frozen", {"mask": name})
        return None


def _arrays(draws: xr.DataTree | Arrays) -> Arrays:
    if isinstance(draws, xr.DataTree):
        posterior = group(draws, "posterior")
        return {str(n): v.transpose("chain", "draw", ...).values for n, v in posterior.items()}
    return draws


def _known(
    problem: Problem | None, tree: xr.DataTree | None
) -> tuple[tuple[str, ...], tuple[str, ...], Mapping[str, tuple[str, ...]]]:
    """Return the masked and the fixed variables, and the names of features and samples."""
    if problem is not None:
        coords = problem.coords
        labels = {
            "feature": coords["feature"],
            "sample": coords["basis"],
            "covariate": problem.always,
        }
        return problem.spec.masked, problem.spec.fixed, labels
    if tree is None:
        return (), (), {"feature": (), "sample": (), "covariate": ()}
    masked, fixed = (tuple(str(tree.attrs.get(n, "")).split()) for n in ("masked", "fixed"))
    posterior = group(tree, "posterior")
    found: dict[str, tuple[str, ...]] = {}
    every = ("feature", "feature_weight"), ("sample", "sample_weight"), ("covariate", COVARIATES)
    for what, name in every:
        dims = (
            [d for d in posterior[name].dims if d not in ("chain", "draw")]
            if name in posterior
            else []
        )
        found[what] = tuple(map(str, posterior[name][dims[0]].values)) if dims else ()
    return masked, fixed, found


def _selected(tree: xr.DataTree | None) -> dict[str, np.ndarray]:
    """Return what the selection stored in a tree lists."""
    selection = xr.Dataset() if tree is None else group(tree, "selection")
    return {w: found for w in ("feature", "sample") if (found := listed(selection, w)) is not None}


def listed(selection: xr.Dataset, what: str) -> np.ndarray | None:
    """Return the features, or samples, that a stored selection lists; None if it has none.

    They are those whose effect is visible in more than a share `LISTED` of the draws.
    """
    if f"curve_{what}" not in selection:
        return None
    visible = selection[f"curve_{what}"].sel(t=VISIBLE, method="nearest").values
    return np.flatnonzero(visible > LISTED)


def _often(on: np.ndarray) -> np.ndarray:
    """Return which bits (chain, draw, k) are on, and off, in at least a share `OFTEN` of draws."""
    share = on.mean(axis=(0, 1))
    return np.flatnonzero((share > OFTEN) & (share < 1.0 - OFTEN))


def _primal(problem: Problem | None, draws: Arrays, listed: np.ndarray | None) -> np.ndarray | None:
    """Return the primal weights (chain, draw, j) of the listed features, where there are any."""
    if problem is None or listed is None or "feature_weight" not in draws:
        return None
    return primal_weights(problem, draws, listed)


def _likelihood(
    problem: Problem | None, draws: Arrays, tree: xr.DataTree | None
) -> np.ndarray | None:
    """Return the log likelihood (chain, draw), where it can be known."""
    known = xr.Dataset() if tree is None else pointwise(tree)
    if "y" in known:
        return known["y"].transpose("chain", "draw", ...).values.sum(axis=-1)
    if problem is not None and "eta" in draws:
        with suppress(InputError):  # a variable was not kept
            return problem.log_likelihood(draws, draws["eta"]).sum(axis=-1)
    return None


def _indices(values: np.ndarray) -> Iterator[tuple[int, ...]]:
    return iter(np.ndindex(values.shape[2:]))


def _component(name: str, index: tuple[int, ...]) -> str:
    return f"{name}[{','.join(map(str, index))}]" if index else name
