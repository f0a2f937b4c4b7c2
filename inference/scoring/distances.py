"""How far every fit is from the reference: one table, a row for each statistic of each quantity.

`quantities.py` reads the draws, `statistics/` says what is measured of them, and `floors.py` how
much of it is noise. The comparison's table, its verdicts and its page are read from these rows.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.models import Problem

from ..fits.datatree import group
from ..fits.diagnostics import masks
from ..fits.quotable import listed
from ..fits.selection import DIMS
from .draws import CONTINUOUS, MASK, PROBABILITY, Draws, ReferenceDraws
from .limits import smallest
from .quantities import WEIGHTS, has_draws, has_primal, labels, quantities
from .statistic import Distance
from .statistics import STATISTICS
from .statistics.p_active import P_ACTIVE, probabilities
from .statistics.ranking import leading


def measure(
    fits: Mapping[str, xr.DataTree],
    reference: str | None,
    problem: Problem | None = None,
    probability: Mapping[str, np.ndarray] | None = None,
) -> pd.DataFrame:
    """Return every distance of every fit from the reference, with its noise floor.

    The reference's own rows compare one half of its chains with the other, without a floor.
    Quantities are processed one at a time to save memory.

    Parameters
    ----------
    fits : dict of DataTree
    reference : str or None
        The fit that distances are measured from; there are none without it, or without its draws.
    problem, probability
        As for `quantities`.

    Returns
    -------
    pandas.DataFrame
        One row a distance (`frame`), by fit in the order of the fits.
    """
    drawn = {name: tree for name, tree in fits.items() if has_draws(tree)}
    if reference is None or reference not in drawn:
        return frame([])
    exact = drawn[reference]
    found: dict[str, list[Distance]] = {name: [] for name in drawn}
    for quantity, draws_of in quantities(problem, probability or {}, exact).items():
        values = draws_of(reference, exact)
        if values is None or values.shape[0] * values.shape[1] < 2:
            continue
        sides = list(_sides(quantity, values, problem, exact))
        for name, tree in drawn.items():
            if tree is exact:
                found[name] += _halves(name, sides)
            elif quantity != "lp" or tree.attrs.get("form") == exact.attrs.get("form"):
                draws = draws_of(name, tree)
                if draws is not None and draws.shape[2:] == values.shape[2:]:
                    found[name] += _beside(name, draws, _independent(tree), sides)
    for name, tree in drawn.items():
        if tree is not exact:
            found[name] += _selection(name, tree, exact)
    return frame([distance for distances in found.values() for distance in distances])


def frame(distances: Sequence[Distance]) -> pd.DataFrame:
    """Return distances as a table: the fields of `Distance`, and `limit`.

    `limit` is the smallest deviation that is too large for some purpose (`limits.py`), NaN where
    the distance decides nothing.
    """
    table = pd.DataFrame(distances, columns=list(Distance._fields))
    pairs = zip(table["statistic"], table["quantity"], strict=True)
    table.insert(7, "limit", [smallest(*pair) for pair in pairs])
    return table.astype({"limit": float})


def beside(
    fit: Draws, reference: ReferenceDraws, name: str = "", quantity: str = ""
) -> list[Distance]:
    """Return every distance that applies to a quantity, each with its floor."""
    applies = [s for s in STATISTICS.values() if s.of in reference.kinds]
    return [s.distance(fit, reference, name, quantity) for s in applies]


# --- what is set side by side ---------------------------------------------------------------------

Side = tuple[str, np.ndarray, ReferenceDraws]
"""A quantity, which components of its draws are compared, and the reference's draws of these."""


def _independent(tree: xr.DataTree) -> bool:
    """Whether the draws of a fit are independent by construction, unlike those of a chain."""
    return tree.attrs.get("kind") != "mcmc"


def _sides(
    quantity: str, values: np.ndarray, problem: Problem | None, exact: xr.DataTree
) -> Iterator[Side]:
    """Yield the reference's side of a quantity, and that of the ranking if it is derived from it.

    `values` are the reference's draws (chain, draw, K) of the quantity.
    """
    independent, every = _independent(exact), np.arange(values.shape[2])
    columns = _leading(quantity, values, exact)
    kinds = PROBABILITY if quantity == "probability" else CONTINUOUS
    if quantity == "feature_weight" and quantity in masks(exact):
        columns, kinds = every, MASK
    names = labels(quantity, len(every), problem, exact)
    named = tuple(names[k] for k in columns) if names else ()
    yield (
        quantity,
        columns,
        ReferenceDraws(values[..., columns], independent, None, kinds, labels=named),
    )
    ranked = "primal_weight" if has_primal(problem, exact) else "feature_weight"
    if quantity == ranked and len(every) > 1:
        yield "ranking", every, ReferenceDraws(values, independent).sizes()


def _leading(quantity: str, values: np.ndarray, exact: xr.DataTree) -> np.ndarray:
    """Return the components of a quantity that are compared one by one."""
    every = np.arange(values.shape[2])
    what = "sample" if quantity == "sample_weight" else "feature"
    selection = group(exact, "selection")
    shown = listed(selection, what) if quantity in WEIGHTS else None
    if shown is None or selection.sizes[DIMS[what]] != len(every):
        return every
    if len(shown):
        return shown
    size = np.abs(values).mean(axis=(0, 1))  # nothing is visible: the largest of what there is
    return np.sort(np.argsort(-size, kind="stable")[: leading(len(every))])


def _beside(
    name: str, draws: np.ndarray, independent: bool, sides: Sequence[Side]
) -> Iterator[Distance]:
    """Yield the distances of a fit's draws (chain, draw, K), all components of a quantity."""
    for quantity, columns, reference in sides:
        fit = Draws(draws[..., columns], independent)
        if quantity == "ranking":
            fit = fit.sizes()
        yield from beside(fit, reference, name, quantity)


def _halves(name: str, sides: Sequence[Side]) -> Iterator[Distance]:
    """Yield the distances of the first half of the reference's chains from the second."""
    for quantity, _, reference in sides:
        if reference.draws.shape[0] < 2:
            continue
        first, second = reference.split()
        for s in STATISTICS.values():
            if s.halves and s.of in reference.kinds:
                value = s.value(first, second)
                yield Distance(name, quantity, s.name, value, s.deviation(value))


def _selection(name: str, tree: xr.DataTree, exact: xr.DataTree) -> Iterator[Distance]:
    """Yield the distance of P(active) from the reference's."""
    fit, known = probabilities(tree), probabilities(exact)
    if fit is not None and known is not None and fit.p.shape == known.p.shape:
        yield P_ACTIVE.distance(fit, known, name, "selection")
