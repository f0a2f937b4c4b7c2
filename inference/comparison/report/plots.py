"""Figures of posteriors: how far `eta` is from the exact one, pixels, what trades off."""

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError

from ...fits.datatree import group
from ...fits.selection_text import effects
from . import style
from .forest import Fits, holders, is_mask, leaders
from .style import Picture, Spot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

TRADE = -0.3
"""Two weights trade off below this correlation: a tenth of the variance of one is the other's."""
_POINTS = 250  # draws, or samples, shown in a panel
_SIGNED, _SHARE = "RdBu_r", "Greys"  # white is nothing, also where a dark page inverts it
_BARRED, _DARK = 0.1, 0.6  # shares of the largest effect: pixels with a bar, and with a white one


# --- decision values ------------------------------------------------------------------------------


def eta(fits: Fits, reference: str | None, subject: str = "") -> Picture:
    """Draw each method's posterior of `eta` against the reference's, one panel per method.

    Points are posterior means, one for each sample. Bars extend by one posterior sd each way. An
    accurate approximation has points on the diagonal with bars of equal length.

    Parameters
    ----------
    fits, reference, subject
        As for `forest`.

    Raises
    ------
    InputError
        There is no reference, or no other fit.
    """
    methods = holders(fits, reference, "eta")
    if reference is None or reference not in methods or len(methods) < 2:
        raise InputError("the plot of eta needs a reference and at least one other fit with draws.")
    palette = style.colours(methods, reference)
    others = methods[1:]
    exact = group(fits[reference], "posterior")["eta"]
    mean0, sd0 = exact.mean(("chain", "draw")).values, exact.std(("chain", "draw")).values
    names = [str(n) for n in exact[exact.dims[-1]].values]

    said, worst, spots = [], [], []
    with style.style():
        figure, axes = style.blank(len(others))
        for axis, method in zip(axes, others, strict=True):
            found = group(fits[method], "posterior")["eta"]
            mean, sd = found.mean(("chain", "draw")).values, found.std(("chain", "draw")).values
            axis.errorbar(
                mean0, mean, xerr=sd0, yerr=sd, fmt="o", ms=2.5, lw=0.5, alpha=0.5,
                color=palette[method],
            )  # fmt: skip
            low = float(min((mean0 - sd0).min(), (mean - sd).min()))
            high = float(max((mean0 + sd0).max(), (mean + sd).max()))
            axis.plot([low, high], [low, high], color="black", lw=0.8)
            axis.set_xlabel(f"eta under {reference}")
            axis.set_ylabel(f"eta under {method}")
            axis.grid()
            off = (mean - mean0) / np.where(sd0 > 0.0, sd0, np.nan)
            said.append(
                f"{method}: the median error is {np.nanmedian(np.abs(off)):.2f} sd and the largest "
                f"{np.nanmax(np.abs(off)):.2f} sd; the median sd is {np.median(sd):.2f}, the "
                f"reference's {np.median(sd0):.2f}"
            )
            worst.append(f"{np.nanmax(np.abs(off)):.2f} under {method}")
            furthest = np.argsort(-np.abs(np.nan_to_num(off)))[:_POINTS]
            spots += [
                Spot(axis, mean0[n], mean[n], f"{names[n]}: {reference} {mean0[n]:.2f} (sd "
                     f"{sd0[n]:.2f}), {method} {mean[n]:.2f} (sd {sd[n]:.2f})")
                for n in furthest
            ]  # fmt: skip
        finding = f"means of eta are off by up to {', '.join(worst)}, in posterior sds"
        style.entitle(figure, finding, subject)
    alt = f"Posterior means of eta of {len(names)} samples against {reference}'s. "
    return Picture(figure, f"{alt}{'; '.join(said)}.", spots)


# --- pixels ---------------------------------------------------------------------------------------


def image(fits: Fits, reference: str | None = None, subject: str = "") -> Picture:
    """Draw features that are pixels as an image: their signed effects above, P(active) below.

    Pixels are features named `something_row_column`, such as `pixel_3_4`, that fill a rectangle.
    All methods share one scale of effects, so pale images have small effects. A bar crosses pixels
    with clearly negative effects, so that signs can be read in grey. Fits without signed effects
    show P(active) alone.

    Parameters
    ----------
    fits : dict of DataTree
    reference : str, optional
        The fit that is drawn first.
    subject : str
        What was fitted, for the title.

    Raises
    ------
    InputError
        The features are not pixels, or no fit holds feature weights and their P(active).
    """
    methods = [m for m in holders(fits, reference, "feature_weight") if "selection" in fits[m]]
    if not methods:
        raise InputError("there is nothing to plot: no fit has P(active).")
    names = [str(n) for n in group(fits[methods[0]], "posterior")["feature"].values]
    rows, columns = _pixels(names)
    shape = (rows.max() + 1, columns.max() + 1)
    tables = {m: effects(fits[m]) for m in methods}
    signed = np.stack([t["effect"].to_numpy() for t in tables.values()])  # (methods, D)
    largest = np.nanmax(np.abs(signed)) if np.isfinite(signed).any() else 0.0
    down = 2 if largest > 0.0 else 1

    said, spots = [], []
    with style.style():
        height = 3.6 / max(2.0, len(methods) / 2.0)
        figure, axes = style.blank(down * len(methods), height, rows=down)
        below = axes[-len(methods) :]
        for i, (method, table) in enumerate(tables.items()):
            probability = table["p_active"].to_numpy()
            if down == 2:
                effect = _picture(axes[i], shape, (rows, columns), signed[i], _SIGNED, largest)
                _bar_negatives(axes[i], (rows, columns), signed[i] / largest)
            active = _picture(below[i], shape, (rows, columns), probability, _SHARE, 1.0)
            axes[i].set_title(style.label(method, reference).replace(" ", "\n"))
            likely = np.argsort(-probability, kind="stable")
            words = [f"{names[k]} {probability[k]:.2f}{_with_sign(signed[i, k])}" for k in likely]
            said.append(f"{method} {', '.join(words[:4])}")
            spots += [
                Spot(below[i], columns[k], rows[k], f"{names[k]}, {method}: P(active) "
                     f"{probability[k]:.2f}{_with_sign(signed[i, k])}")
                for k in likely
            ]  # fmt: skip
        if down == 2:
            bar = figure.colorbar(effect, ax=axes[: len(methods)], shrink=0.9)
            bar.set_label("effect per sd\n(barred: negative)")
        figure.colorbar(active, ax=below, shrink=0.9).set_label("P(active)")
        style.entitle(figure, _pixel_finding(methods, names, signed, tables), subject)
    return Picture(
        figure,
        f"Images of {shape[0]} by {shape[1]} pixels: signed effects and P(active) under each "
        f"method. Most probably active: {'; '.join(said)}.",
        spots,
    )


def _picture(
    axis: "Axes",
    shape: tuple[int, int],
    at: tuple[np.ndarray, np.ndarray],
    values: np.ndarray,
    colours: str,
    largest: float,
) -> "AxesImage":
    """Draw values as pixels, on a scale that is the same for all methods."""
    picture = np.zeros(shape)
    picture[at] = values
    least = -largest if colours == _SIGNED else 0.0
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set(visible=True, color="#bbbbbb")
    return axis.imshow(picture, cmap=colours, vmin=least, vmax=largest)


def _bar_negatives(axis: "Axes", at: tuple[np.ndarray, np.ndarray], share: np.ndarray) -> None:
    """Cross the pixels with negative effects by a bar; `share` is relative to the largest."""
    for k in np.flatnonzero(share < -_BARRED):
        colour = "white" if share[k] < -_DARK else "black"
        axis.hlines(at[0][k], at[1][k] - 0.3, at[1][k] + 0.3, color=colour, lw=1.0)


def _pixel_finding(
    methods: list[str], names: list[str], signed: np.ndarray, tables: dict[str, pd.DataFrame]
) -> str:
    """Return what the images show, in a sentence: how far apart they are, or which pixel leads."""
    shown, called = signed, "effects"
    if not np.isfinite(signed).all():
        shown, called = np.stack([t["p_active"].to_numpy() for t in tables.values()]), "P(active)"
    if len(methods) == 1:
        k = int(np.argmax(np.abs(shown[0])))
        return f"the largest of the {called} is that of {names[k]}, {shown[0, k]:.2g}"
    size = np.linalg.norm(shown[0])
    if size == 0.0:
        return f"{called} are zero for all pixels under {methods[0]}"
    words = [
        f"{np.linalg.norm(row - shown[0]) / size:.0%} under {m}".replace("%", " %")
        for m, row in zip(methods[1:], shown[1:], strict=True)
    ]
    return f"distance from the {called} under {methods[0]}, relative to them: {', '.join(words)}"


def _with_sign(effect: float) -> str:
    return "" if np.isnan(effect) else f", effect {effect:+.2g}"


def _pixels(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column of each feature, or say that features are not pixels."""
    matches = [re.fullmatch(r".*_(\d+)_(\d+)", name) for name in names]
    at = np.array([(int(m[1]), int(m[2])) for m in matches if m])  # (pixels, 2)
    if len(at) < len(names) or len(np.unique(at, axis=0)) < np.prod(at.max(axis=0) + 1):
        raise InputError("the features are not pixels: their names do not end in _row_column.")
    return at[:, 0], at[:, 1]


# --- a degenerate direction -----------------------------------------------------------------------


def pair(fits: Fits, reference: str | None = None, subject: str = "", leading: int = 10) -> Picture:
    """Draw the two leading features that trade off most, if any do, one panel per method.

    Among the `leading` features (as in `forest`), these two have the weights with the most negative
    posterior correlation under the reference (or the first method). Grey points are its draws, in
    every panel. An approximation with independent factors shows a round cloud on a ridge.

    Parameters
    ----------
    fits, reference, subject, leading
        As for `forest`.

    Raises
    ------
    InputError
        No fit holds weights of two features that vary, or they are binary.
    """
    methods: tuple[str, ...] | list[str] = holders(fits, reference, "feature_weight")
    tree = fits[methods[0]]
    if is_mask(tree, "feature_weight"):
        raise InputError(
            "there is nothing to plot: a pair of binary masks has only four possible values."
        )
    order = leaders(tree, "feature", leading)
    first = _flat(tree)[:, order]
    order = order[first.std(axis=0) > 0.0]
    if len(order) < 2:
        raise InputError("there is no pair to plot: fewer than two leading features vary.")
    correlation = np.corrcoef(_flat(tree)[:, order], rowvar=False)
    np.fill_diagonal(correlation, np.inf)
    a, b = order[list(np.unravel_index(correlation.argmin(), correlation.shape))]
    names = [str(n) for n in group(tree, "posterior")["feature"].values]
    palette = style.colours(list(methods), reference)

    drawn = {m: _flat(fits[m])[:, [a, b]] for m in methods}  # (S, 2)
    shown = {m: _thinned(values) for m, values in drawn.items()}
    ends = np.concatenate(list(shown.values()))
    low, high = ends.min(axis=0), ends.max(axis=0)
    room = 0.05 * (high - low)
    said, spots = [], []
    with style.style():
        figure, axes = style.blank(len(methods))
        for axis, method in zip(axes, methods, strict=True):
            draws = drawn[method]
            axis.plot(*shown[methods[0]].T, "o", ms=2, color="#bbbbbb", mew=0)
            size = 2.5 if len(draws) > 1 else 7
            axis.plot(*shown[method].T, "o", ms=size, color=palette[method], alpha=0.6, mew=0)
            words = f"{method}: one point"
            if len(draws) > 1 and (draws.std(axis=0) > 0.0).all():
                words = f"{method}: correlation {np.corrcoef(draws.T)[0, 1]:.2f}"
            said.append(words)
            axis.set_title(words)
            axis.set_xlabel(names[a])
            axis.set_ylabel(names[b])
            axis.set_xlim(low[0] - room[0], high[0] + room[0])
            axis.set_ylim(low[1] - room[1], high[1] + room[1])
            axis.grid()
            mean = draws.mean(axis=0)
            spots.append(
                Spot(axis, mean[0], mean[1], f"{words}; means {names[a]} {mean[0]:.3g}, {names[b]} "
                     f"{mean[1]:.3g}")
            )  # fmt: skip
        both = f"{names[a]} and {names[b]}"
        finding = f"of the leading features, {both} trade off most ({said[0]})"
        if correlation.min() > TRADE:
            finding = f"no two of the leading features trade off ({both}: {said[0]})"
        style.entitle(figure, finding, subject)
    alt = f"Draws of the weights of {names[a]} and {names[b]}. {'; '.join(said)}."
    return Picture(figure, alt, spots)


def _flat(tree: xr.DataTree) -> np.ndarray:
    """Return draws (S, D) of the feature weights."""
    values = group(tree, "posterior")["feature_weight"].values
    return values.reshape(-1, values.shape[-1])


def _thinned(draws: np.ndarray) -> np.ndarray:
    """Return at most `_POINTS` of the draws (S, ...), evenly spaced."""
    return draws[np.linspace(0, len(draws) - 1, min(len(draws), _POINTS)).astype(int)]
