"""The forest: the signed effects of the leading features, or samples, and their probabilities."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError, one_of

from ...fits.activity import QUANTILES, THRESHOLD
from ...fits.datatree import group
from ...fits.diagnostics import inclusion, masks
from ...fits.effects import effects, towards
from ...fits.selection import PROBABILITY, SLOPE
from . import style
from .style import Picture, Spot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Fits = Mapping[str, xr.DataTree]
Of = Literal["effect", "weight"]
ENDS = (0.05, 0.25, 0.75, 0.95)
"""Of a wide and a narrow bar: the ends of 90 % and 50 % intervals."""
_LONGEST = 24  # characters of a name beside a row
_PRIOR = "#888888"


def forest(
    fits: Fits,
    reference: str | None = None,
    subject: str = "",
    leading: int = 12,
    of: Of | None = None,
    what: Literal["feature", "sample"] = "feature",
) -> Picture:
    """Draw the signed effects of the leading features, or samples, by method.

    Features are ordered by P(|effect| > t) under the reference (or the first method), which is
    written beside them; ties are ordered by mean size. The left panel shows it under each method,
    and a grey mark where the prior has it. The right panel shows posterior mean, 50 % and
    90 % interval.

    Parameters
    ----------
    fits : dict of DataTree
    reference : str, optional
        The fit that is drawn first, in black.
    subject : str
        What was fitted, for the title.
    leading : int
        How many features.
    of : {"effect", "weight"}, optional
        The effect on eta per standard deviation of the feature (`ardvark.effects`), or the feature
        weights as they are in the model. For a binary mask, the mean of a weight is an inclusion
        probability, and bars extend by two Monte Carlo errors each way. By default effects, if the
        first fit has them.
    what : {"feature", "sample"}
        The effect of a sample is per standard deviation of its basis function.

    Raises
    ------
    InputError
        No fit holds such weights, or effects where those are asked for.
    """
    methods = holders(fits, reference, f"{what}_weight")
    known = {m: effects(fits[m], what) for m in methods}
    if of is None:
        of = "effect" if _has(known[methods[0]], "effect") else "weight"
    one_of("of", of, ("effect", "weight"))
    if of == "effect":
        methods = [m for m in methods if _has(known[m], "effect")]
        if not methods:
            raise InputError("there is nothing to plot: no fit has signed effects.")
    order = leaders(fits[methods[0]], what, leading)
    rows = _rows(fits, methods, known, order, of, what)
    palette = style.colours(methods, reference)
    height = 1.2 + (0.16 + 0.08 * len(methods)) * len(order)
    with style.style():
        shapes = style.marks(methods, reference)
        figure, axes = style.beside((1.0, 3.2) if _any(rows.active) else (1.0,), height)
        spots = _bars(axes[-1], rows, palette, shapes)
        axes[-1].set_xlabel(rows.label)
        if len(axes) > 1:
            _probabilities(axes[0], rows, palette, shapes)
        _label_rows(axes, rows)
        called, shaped = ({style.label(m, reference): each[m] for m in methods}
                          for each in (palette, shapes))  # fmt: skip
        style.legend(figure, called, shaped, {"prior": _PRIOR} if _any(rows.prior) else {})
        style.entitle(figure, _finding(rows, known, what), subject)
    return Picture(figure, _words(rows, what), spots)


def holders(fits: Fits, reference: str | None, name: str) -> list[str]:
    """Return the methods that hold a quantity, the reference first."""
    methods = [m for m, t in fits.items() if name in group(t, "posterior")]
    if not methods:
        raise InputError(f"there is nothing to plot: no fit has {name!r}.")
    return sorted(methods, key=lambda m: m != reference)


def leaders(tree: xr.DataTree, what: str, count: int) -> np.ndarray:
    """Return the components that lead by P(active), and then by their mean size."""
    table = effects(tree, what)
    size = np.abs(group(tree, "posterior")[f"{what}_weight"].mean(("chain", "draw")).values)
    if len(table) and table["size"].notna().all():
        size = table["size"].to_numpy()
    key = -table["p_active"].to_numpy() if len(table) else np.zeros(len(size))
    return np.lexsort((-size, key))[:count]


def is_mask(tree: xr.DataTree, name: str) -> bool:
    """Return whether a weight is a mask itself, and not one that a mask switches off."""
    mask = masks(tree).get(name)
    return mask is not None and bool(np.isin(mask.values, (0, 1)).all())


@dataclass(frozen=True, eq=False)
class _Rows:
    """What the rows of a forest show, of each method (methods, rows)."""

    names: list[str]
    methods: list[str]
    means: np.ndarray
    ends: np.ndarray
    """Of the wide and the narrow bar (methods, rows, 4), in the order of `ENDS`."""
    active: np.ndarray
    """P(active); NaN where it is not known."""
    prior: np.ndarray
    """P(active) under the prior (rows,)."""
    label: str
    """What the bars are."""
    threshold: float
    """The effect that P(active) is about."""


def _has(table: pd.DataFrame, column: str) -> bool:
    return _any(table[column].to_numpy(dtype=float))


def _any(values: np.ndarray) -> bool:
    return bool(np.isfinite(values).any())


def _rows(
    fits: Fits,
    methods: list[str],
    known: Mapping[str, pd.DataFrame],
    order: np.ndarray,
    of: Of,
    what: str,
) -> _Rows:
    """Return what is drawn of the components in `order`."""
    nothing = np.full(len(order), np.nan)
    tables = [known[m].iloc[order] if len(known[m]) else None for m in methods]
    active = np.stack([nothing if t is None else t["p_active"].to_numpy() for t in tables])
    prior = nothing if tables[0] is None else tables[0]["prior"].to_numpy()
    first = group(fits[methods[0]], "posterior")[f"{what}_weight"]
    names = [str(n) for n in first[first.dims[-1]].values[order]]
    if of == "effect":
        found = [group(fits[m], "selection") for m in methods]
        means = np.stack([f[f"effect_{what}"].values[order] for f in found])
        at = [QUANTILES.index(q) for q in ENDS]
        ends = np.stack([f[f"effect_at_{what}"].values[at][:, order].T for f in found])
        label = f"{_meaning(known[methods[0]], what)}: mean, 50 % and 90 % intervals"
    else:
        masked = is_mask(fits[methods[0]], f"{what}_weight")
        parts = [_weights(group(fits[m], "posterior")[f"{what}_weight"], order, masked)
                 for m in methods]  # fmt: skip
        means, ends = (np.stack(each) for each in zip(*parts, strict=True))
        label = f"{what} weight: mean, 50 % and 90 % intervals"
        if masked:
            label = "inclusion probability +- 2 Monte Carlo errors"
    threshold = float(group(fits[methods[0]], "selection").attrs.get("threshold", THRESHOLD))
    return _Rows(names, methods, means, ends, active, prior, label, threshold)


def _meaning(table: pd.DataFrame, what: str) -> str:
    """Return what a signed effect is, with its unit."""
    of = "feature" if what == "feature" else "basis function"
    slope = table.attrs["direction"] == SLOPE and what == "feature"
    name = "average partial effect" if slope else "effect on eta"
    return f"{name}{towards(table)}, {table.attrs['unit']}\nper sd of the {of}"


def _weights(values: xr.DataArray, order: np.ndarray, masked: bool) -> tuple[np.ndarray, ...]:
    """Return means (rows,) and the ends of both bars (rows, 4) of weights."""
    flat = values.values.reshape(-1, values.shape[-1])[:, order]
    mean = flat.mean(axis=0)
    if not masked:
        return mean, np.quantile(flat, ENDS, axis=0).T
    error = 2.0 * inclusion(values)["mcse"].fillna(0.0).values[order]
    return mean, mean[:, None] + error[:, None] * np.array([-1.0, -1.0, 1.0, 1.0])


# --- the two panels -------------------------------------------------------------------------------


def _height(rows: _Rows, i: int) -> np.ndarray:
    """Return where the marks of method i lie: rows run down, one unit each, methods inside."""
    count = len(rows.methods)
    inside = 0.0 if count == 1 else 0.6 * (0.5 - i / (count - 1))
    return inside - np.arange(len(rows.names))


def _bars(
    axis: "Axes", rows: _Rows, palette: Mapping[str, str], shapes: Mapping[str, str]
) -> list[Spot]:
    axis.axvline(0.0, color="#888888", lw=0.8)
    spots: list[list[Spot]] = [[] for _ in rows.names]
    for i, method in enumerate(rows.methods):
        y, colour, (low, left, right, high) = _height(rows, i), palette[method], rows.ends[i].T
        axis.hlines(y, low, high, color=colour, lw=1.0)
        axis.hlines(y, left, right, color=colour, lw=3.0)
        axis.plot(rows.means[i], y, shapes[method], ms=4.5, color=colour, mfc="white", mew=1.2)
        for k, name in enumerate(rows.names):
            words = f"{name}, {method}: mean {rows.means[i, k]:.3g}, {low[k]:.3g} to {high[k]:.3g}"
            spots[k].append(Spot(axis, rows.means[i, k], y[k], words))
    axis.margins(x=0.03)
    return [spot for row in spots for spot in row]


def _probabilities(
    axis: "Axes", rows: _Rows, palette: Mapping[str, str], shapes: Mapping[str, str]
) -> None:
    """Draw P(active) of each method, and a mark where the prior has it."""
    y = -np.arange(len(rows.names))
    axis.vlines(rows.prior, y - 0.42, y + 0.42, color=_PRIOR, lw=2.0)
    for i, method in enumerate(rows.methods):
        y = _height(rows, i)
        axis.plot(rows.active[i], y, shapes[method], ms=4.5, color=palette[method])
    axis.set_xlim(-0.04, 1.04)
    axis.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
    axis.set_xlabel(f"P(|effect| > {rows.threshold:g})")


def _label_rows(axes: Sequence["Axes"], rows: _Rows) -> None:
    """Name the rows at the left, with P(active) under the first method, and shade every other."""
    count = len(rows.names)
    names = [n if len(n) <= _LONGEST else f"{n[: _LONGEST - 1]}…" for n in rows.names]
    if _any(rows.active[0]):
        names = [f"{n}   {p:.2f}" for n, p in zip(names, rows.active[0], strict=True)]
    for axis in axes:
        axis.set_ylim(0.5 - count, 0.5)
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
        axis.grid(axis="x")
        for k in range(1, count, 2):
            axis.axhspan(-k - 0.5, -k + 0.5, color="#f3f3f3", zorder=-1, lw=0)
    axes[0].set_yticks(-np.arange(count), names)
    axes[0].tick_params(axis="y", length=0)


def _finding(rows: _Rows, known: Mapping[str, pd.DataFrame], what: str) -> str:
    """Return what the forest shows, in a sentence: how many are active, and by which methods."""
    first, *others = rows.methods
    if not _any(rows.active[0]):
        return f"the leading {what} under {first} is {rows.names[0]}, {rows.means[0, 0]:.2g}"
    active = {m: t["p_active"].to_numpy() > PROBABILITY for m, t in known.items() if len(t)}
    found, count = active[first], int(active[first].sum())
    above = f"|effect| above {rows.threshold:g}"
    if not count:
        return (
            f"no {what} has {above} more probably than not under {first}; the leading one is "
            f"{rows.names[0]} with {rows.active[0, 0]:.2f}"
        )
    has = "has" if count == 1 else "have"
    text = f"{count} of {len(found)} {what}s more probably than not {has} {above} under {first}"
    shared = [f"{int(active[m][found].sum())} under {m}" for m in others if m in active]
    return f"{text}, and of these {', '.join(shared)}" if shared else text


def _words(rows: _Rows, what: str) -> str:
    lines = []
    for k, name in enumerate(rows.names):
        p = ""
        if not np.isnan(rows.active[0, k]):
            before = "" if np.isnan(rows.prior[k]) else f", prior {rows.prior[k]:.2f}"
            p = f" (P {rows.active[0, k]:.2f}{before})"
        each = (f"{m} {rows.means[i, k]:.2f}" for i, m in enumerate(rows.methods))
        lines.append(f"{name}{p}: {', '.join(each)}")
    number = rows.label.partition(":")[0].partition(" +-")[0].replace("\n", " ")
    return f"Forest of the {len(rows.names)} leading {what}s, {number}. {'; '.join(lines)}."
