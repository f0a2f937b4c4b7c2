"""The figure of a model without features: the variables that the fits differ in most."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from ardvark.common.validate import InputError

from ...fits.datatree import component_names, group, is_bare
from . import style
from .style import Picture, Spot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Fits = Mapping[str, xr.DataTree]
ENDS = (0.05, 0.25, 0.75, 0.95)
"""Of a wide and a narrow bar: the ends of 90 % and 50 % intervals."""


def variables(
    fits: Fits, reference: str | None = None, subject: str = "", leading: int = 12
) -> Picture:
    """Draw the intervals of the variables that differ most between the fits.

    A row is a component of a variable. Each fit has a bar there, of its 50 % and 90 % intervals, in
    units of the reference's standard deviation from the reference's mean: so variables of any scale
    share one axis, and the reference's own bar lies around zero.

    Parameters
    ----------
    fits : dict of DataTree
        Of a `pm.Model`.
    reference : str, optional
        The fit that is drawn first, in black; without one the first fit has its place.
    subject : str
        What was fitted, for the title.
    leading : int
        How many rows.

    Raises
    ------
    InputError
        The fits are of a problem, whose figure is the forest, or have no variable in common.
    """
    methods = [m for m, t in fits.items() if is_bare(t) and group(t, "posterior").data_vars]
    methods.sort(key=lambda m: m != reference)
    if not methods:
        raise InputError("there is nothing to plot: no fit of a pm.Model of your own has draws.")
    rows = _rows([group(fits[m], "posterior") for m in methods], methods, leading)
    palette, shapes = style.colours(methods, reference), style.marks(methods, reference)
    with style.style():
        height = 1.2 + (0.16 + 0.08 * len(methods)) * len(rows.names)
        figure, (axis,) = style.beside((1.0,), height)
        spots = _bars(axis, rows, palette, shapes)
        called, shaped = ({style.label(m, reference): each[m] for m in methods}
                          for each in (palette, shapes))  # fmt: skip
        style.legend(figure, called, shaped, {})
        style.entitle(figure, _finding(rows), subject)
    lines = (f"{name}: {', '.join(rows.told(k))}" for k, name in enumerate(rows.names))
    alt = f"Intervals of the {len(rows.names)} variables that differ most, in sds of {methods[0]}. "
    return Picture(figure, f"{alt}{'; '.join(lines)}.", spots)


@dataclass(frozen=True, eq=False)
class _Rows:
    """What the rows show, of each method (methods, rows); the first method has the units."""

    names: list[str]
    methods: list[str]
    means: np.ndarray
    sds: np.ndarray
    ends: np.ndarray
    """Of the wide and the narrow bar (methods, rows, 4), in the order of `ENDS`."""

    def scaled(self, values: np.ndarray) -> np.ndarray:
        """Return values (..., rows) in sds of the first method, from its means."""
        return (values - self.means[0]) / self.sds[0]

    def told(self, k: int) -> list[str]:
        """Return row k in words, a part for each method."""
        each = zip(self.methods, self.means[:, k], self.sds[:, k], strict=True)
        return [f"{method} {mean:.3g} (sd {sd:.3g})" for method, mean, sd in each]


def _rows(posteriors: list[xr.Dataset], methods: list[str], leading: int) -> _Rows:
    """Return the components in which the methods differ most; the first ones of a single fit."""
    shared = [n for n in posteriors[0].data_vars if all(n in each for each in posteriors)]
    names, columns = [], []
    for name in shared:
        arrays = [each[name].transpose("chain", "draw", ...) for each in posteriors]
        if len({a.shape[2:] for a in arrays}) > 1:
            continue
        names += component_names(str(name), arrays[0])
        columns.append([a.values.reshape(a.shape[0] * a.shape[1], -1) for a in arrays])
    if not columns:
        raise InputError("there is nothing to plot: the fits have no variable in common.")
    moments = [
        [np.concatenate([f(part[i]) for part in columns]) for i in range(len(methods))]
        for f in (lambda x: x.mean(axis=0), lambda x: x.std(axis=0))
    ]
    means, sds = (np.array(each) for each in moments)
    moves = np.flatnonzero(sds[0] > 0.0)
    if not moves.size:
        raise InputError("there is nothing to plot: no variable ever changes.")
    apart = np.abs(means - means[0])[:, moves] / sds[0, moves]
    spread = np.where(sds[:, moves] > 0.0, sds[:, moves], sds[0, moves])  # a point has none
    wider = np.abs(np.log(spread / sds[0, moves]))
    order = moves[np.argsort(-np.maximum(apart, wider).max(axis=0), kind="stable")[:leading]]
    starts = np.cumsum([0, *(part[0].shape[1] for part in columns)])
    ends = np.empty((len(methods), len(order), len(ENDS)))
    for row, k in enumerate(order):
        part = int(np.searchsorted(starts, k, side="right")) - 1
        for i in range(len(methods)):
            ends[i, row] = np.quantile(columns[part][i][:, k - starts[part]], ENDS)
    return _Rows([names[k] for k in order], methods, means[:, order], sds[:, order], ends)


def _bars(
    axis: "Axes", rows: _Rows, palette: Mapping[str, str], shapes: Mapping[str, str]
) -> list[Spot]:
    count, spots = len(rows.methods), []
    axis.axvline(0.0, color="#888888", lw=0.8)
    for i, method in enumerate(rows.methods):
        inside = 0.0 if count == 1 else 0.6 * (0.5 - i / (count - 1))
        y, colour = inside - np.arange(len(rows.names)), palette[method]
        low, left, right, high = (rows.scaled(end) for end in rows.ends[i].T)
        middle = rows.scaled(rows.means[i])
        axis.hlines(y, low, high, color=colour, lw=1.0)
        axis.hlines(y, left, right, color=colour, lw=3.0)
        axis.plot(middle, y, shapes[method], ms=4.5, color=colour, mfc="white", mew=1.2)
        spots += [
            Spot(axis, middle[k], y[k], f"{name}, {rows.told(k)[i]}")
            for k, name in enumerate(rows.names)
        ]
    axis.set_ylim(0.5 - len(rows.names), 0.5)
    axis.set_yticks(-np.arange(len(rows.names)), rows.names)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x")
    axis.set_xlabel(f"from the mean under {rows.methods[0]}, in its sds: 50 % and 90 % intervals")
    return spots


def _finding(rows: _Rows) -> str:
    """Return what the figure shows, in a sentence."""
    first, *others = rows.methods
    if not others:
        return f"{rows.names[0]} has the mean {rows.means[0, 0]:.3g}, sd {rows.sds[0, 0]:.3g}"
    off = np.abs(rows.scaled(rows.means))
    i, k = np.unravel_index(int(off.argmax()), off.shape)
    finding = (
        f"the mean of {rows.names[k]} under {rows.methods[i]} is off by {off[i, k]:.2f} sds of "
        f"{first}"
    )
    ratio = rows.sds[i, k] / rows.sds[0, k]
    return f"{finding}, and its sd is {ratio:.2f} times as large" if ratio else finding
