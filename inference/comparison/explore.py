"""A comparison to play with, in a notebook: menus over the figures of the report."""

import importlib.util
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ardvark.common.validate import InputError
from ardvark.models import Problem

from ..fits.datatree import group
from ..fits.selection_text import effects
from .report.forest import forest, holders
from .report.look import Picture
from .report.marginal import marginal
from .table import Comparison

if TYPE_CHECKING:
    import ipywidgets

QUANTITIES = ("feature_weight", "sample_weight", "eta", "bias", "tau")
"""What may be chosen, where the fits have it."""
DRAWS = 400
"""Draws of the prior."""
MOST = 30
"""Rows of the forest, at most."""


def explore(comparison: Comparison, *, widgets: bool | None = None) -> "ipywidgets.VBox | Picture":
    """Return a comparison with menus, for a notebook.

    The menus choose the methods, the least P(active) of the features that are listed, one quantity
    and one of its components, and whether the prior stands beside the posterior. Above is the
    forest of the listed features, below the posterior of the chosen quantity under each method.

    Parameters
    ----------
    comparison : Comparison
        With draws of feature weights.
    widgets : bool, optional
        False returns the forest alone, as a static picture. So does the default where there is no
        notebook, or no ipywidgets (`pip install "ardvark[notebooks]"`).

    Returns
    -------
    ipywidgets.VBox or Picture

    Raises
    ------
    InputError
        No fit has feature weights; `widgets=True` without ipywidgets.

    Examples
    --------
    >>> import ardvark as av
    >>> problem = av.problem("pfcvm", av.load("digits38").take(range(40)))
    >>> fits = {"paper": av.fit(problem, "paper", random_seed=0, progressbar=False)}
    >>> av.explore(av.compare(fits, problem=problem), widgets=False)
    Forest of the 12 leading features, effect on eta towards ...
    """
    there = importlib.util.find_spec("ipywidgets") is not None
    if widgets is None:
        widgets = there and "ipykernel" in sys.modules
    if not widgets:
        return forest(comparison.fits, comparison.reference)
    if not there:
        raise InputError('menus need ipywidgets: pip install "ardvark[notebooks]".')
    return _menus(comparison)


def listed(comparison: Comparison, quantity: str, least: float) -> list[str]:
    """Return the components of a quantity, features and samples with at least this P(active) only.

    Those with a P(active) are in its order, under the reference or the first fit that has them.
    """
    names = _names(comparison, quantity)
    first = comparison.fits[holders(comparison.fits, comparison.reference, quantity)[0]]
    kind = quantity.removesuffix("_weight")
    if kind == quantity or not len(table := effects(first, kind)):
        return names
    p = table["p_active"].to_numpy()
    return [names[k] for k in np.argsort(-p, kind="stable") if p[k] >= least]


def _names(comparison: Comparison, quantity: str) -> list[str]:
    first = comparison.fits[holders(comparison.fits, comparison.reference, quantity)[0]]
    values = group(first, "posterior")[quantity].transpose("chain", "draw", ...)
    return [str(n) for n in values[values.dims[-1]].values] if values.ndim > 2 else []


@cache
def _prior(problem: Problem, quantity: str) -> np.ndarray | None:
    """Return draws (DRAWS, ...) of the prior of a quantity; None if the model does not have it."""
    rng = np.random.default_rng(0)
    points = [problem.simulate(rng) for _ in range(DRAWS)]
    if quantity == "eta":
        return np.array([problem.decision(point) for point in points])
    return np.array([p[quantity] for p in points], float) if quantity in points[0] else None


def posterior_of(
    comparison: Comparison, methods: Sequence[str], quantity: str, at: str | None, prior: bool
) -> Picture:
    """Return the lower figure: the posterior of one quantity, with the prior or without."""
    beside = None
    if prior and comparison.problem is not None:
        beside = _prior(comparison.problem, quantity)
        if beside is not None and at is not None:
            beside = beside[:, _names(comparison, quantity).index(at)]
    some = {m: comparison.fits[m] for m in methods}
    return marginal(some, comparison.reference, quantity, at, beside)


def _menus(comparison: Comparison) -> "ipywidgets.VBox":
    import ipywidgets as w

    fits, reference = comparison.fits, comparison.reference
    methods = holders(fits, reference, "feature_weight")
    known = {n for m in methods for n in group(fits[m], "posterior").data_vars}
    chosen = w.SelectMultiple(options=methods, value=methods, description="methods")
    least = w.FloatSlider(0.1, min=0.0, max=0.95, step=0.05, description="P(active) ≥")
    quantity = w.Dropdown(options=[q for q in QUANTITIES if q in known], description="quantity")
    component = w.Dropdown(description="of")
    prior = w.Checkbox(True, description="prior beside posterior")
    note, upper, lower = w.Label(), w.Image(format="png"), w.Image(format="png")

    def draw(_: Any) -> None:
        some = [m for m in methods if m in chosen.value] or methods[:1]
        count = len(listed(comparison, "feature_weight", least.value))
        note.value = f"{count} features have a P(active) of at least {least.value:.2f}."
        rows = min(max(count, 1), MOST)
        upper.value = forest({m: fits[m] for m in some}, reference, leading=rows)._repr_png_()
        held = [m for m in some if quantity.value in group(fits[m], "posterior")] or methods[:1]
        picture = posterior_of(comparison, held, quantity.value, component.value, prior.value)
        lower.value = picture._repr_png_()

    def choose_anew(_: Any) -> None:
        names, kept = listed(comparison, quantity.value, least.value), component.value
        component.unobserve(draw, "value")  # one drawing, when the list is complete
        component.options = names or [("nothing to choose", None)]
        component.index = names.index(kept) if kept in names else 0
        component.observe(draw, "value")
        draw(None)

    component.observe(draw, "value")
    for control in (quantity, least):
        control.observe(choose_anew, "value")
    for control in (chosen, prior):
        control.observe(draw, "value")
    choose_anew(None)
    return w.VBox(
        [w.HBox([chosen, w.VBox([least, quantity, component, prior])]), note, upper, lower]
    )
