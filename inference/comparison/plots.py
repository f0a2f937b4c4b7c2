"""Pictures of a comparison: which features matter, and how far `eta` is from the exact one."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr

from ardvark.validate import InputError

from ..datatree import group
from ..diagnostics import inclusion, masks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Fits = Mapping[str, xr.DataTree]
Kind = Literal["forest", "eta", "image"]

# Okabe & Ito's palette, told apart by colour-blind readers; the reference is black
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_INTERVAL = (0.03, 0.97)


def _figure(
    width: float, height: float, columns: int = 1, rows: int = 1
) -> "tuple[Figure, list[Axes]]":
    """Return (figure, axes row by row), without pyplot's global state: no window and no leak."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False).ravel())


def _drawn(fits: Fits, reference: str | None, name: str) -> list[str]:
    """Return the methods that hold a quantity, the reference first."""
    methods = [m for m, t in fits.items() if name in group(t, "posterior")]
    if not methods:
        raise InputError(f"no fit holds {name!r}: nothing to draw.")
    return sorted(methods, key=lambda m: m != reference)


def _colours(methods: list[str], reference: str | None) -> dict[str, str]:
    others = iter(_COLOURS * 3)
    return {m: "black" if m == reference else next(others) for m in methods}


def forest(
    fits: Fits, reference: str | None = None, subject: str = "", leading: int = 12
) -> "Figure":
    """Draw posterior mean and 94 % interval of the leading feature weights, method by method.

    Features are ordered by their P(active) under the reference (or the first method), which is
    written beside them, and equal ones by the posterior mean of their weight. Under a binary mask
    that mean is an inclusion probability; bars show two Monte Carlo errors each way.

    Parameters
    ----------
    fits : dict of DataTree
    reference : str, optional
        The fit that is drawn first, in black.
    subject : str
        What was fitted, for the title.
    leading : int
        How many features.

    Raises
    ------
    InputError
        No fit holds feature weights.
    """
    methods = _drawn(fits, reference, "feature_weight")
    colours = _colours(methods, reference)
    first = group(fits[methods[0]], "posterior")["feature_weight"]
    mean = first.mean(("chain", "draw")).values
    selection = group(fits[methods[0]], "selection")
    active = selection["p_active_feature"].values if "p_active_feature" in selection else None
    order = np.lexsort((-mean, np.zeros(len(mean)) if active is None else -active))[:leading]
    names = [str(n) for n in first["feature"].values[order]]
    masked = "feature_weight" in masks(fits[methods[0]])

    figure, (axis,) = _figure(8.5, 1.6 + 0.42 * len(order))
    for i, method in enumerate(methods):
        posterior = group(fits[method], "posterior")
        values = posterior["feature_weight"].values[:, :, order]
        flat = values.reshape(-1, len(order))  # (draws, leading)
        low, high = np.quantile(flat, _INTERVAL, axis=0)
        if masked:
            error = 2.0 * inclusion(posterior["feature_weight"])["mcse"].fillna(0.0).values[order]
            low, high = flat.mean(axis=0) - error, flat.mean(axis=0) + error
        at = np.arange(len(order)) + 0.7 * ((i + 0.5) / len(methods) - 0.5)
        label = f"{method} (reference)" if method == reference else method
        axis.hlines(at, low, high, color=colours[method], lw=1.6)
        axis.plot(flat.mean(axis=0), at, "o", color=colours[method], ms=4.5, label=label)
    axis.set_yticks(np.arange(len(order)), names)
    axis.set_ylim(len(order) - 0.5, -0.5)
    axis.set_xlim(left=-0.02 if masked else 0.0)
    what = "feature weight: posterior mean and 94 % interval"
    axis.set_xlabel("inclusion probability and two Monte Carlo errors" if masked else what)
    axis.set_title(_title("Leading features", subject))
    axis.grid(axis="x", alpha=0.3)
    if active is not None:
        _beside(axis, [f"{p:.2f}" for p in active[order]], f"P(active) under {methods[0]}")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper")
    return figure


def _beside(axis: "Axes", words: list[str], label: str) -> None:
    """Write a word at the right end of each row, and what they are."""
    right = axis.twinx()
    right.set_ylim(axis.get_ylim())
    right.set_yticks(np.arange(len(words)), words)
    right.tick_params(length=0)
    right.set_ylabel(label)


def eta(fits: Fits, reference: str | None, subject: str = "") -> "Figure":
    """Draw each method's posterior of `eta` against the reference's, one panel a method.

    Points are posterior means, one a sample; bars are one posterior sd each way. Points on the
    diagonal with equal bars are what a faithful approximation looks like.

    Parameters
    ----------
    fits, reference, subject
        As for `forest`.

    Raises
    ------
    InputError
        There is no reference, or nothing beside it.
    """
    methods = _drawn(fits, reference, "eta")
    if reference is None or reference not in methods or len(methods) < 2:
        raise InputError("eta needs a reference and at least one other fit with draws.")
    colours = _colours(methods, reference)
    others = methods[1:]
    exact = group(fits[reference], "posterior")["eta"]
    mean0, sd0 = exact.mean(("chain", "draw")).values, exact.std(("chain", "draw")).values

    figure, axes = _figure(max(3.6 * len(others) + 0.5, 6.0), 3.9, len(others))
    for axis, method in zip(axes, others, strict=True):
        found = group(fits[method], "posterior")["eta"]
        mean, sd = found.mean(("chain", "draw")).values, found.std(("chain", "draw")).values
        colour = colours[method]
        axis.errorbar(
            mean0, mean, xerr=sd0, yerr=sd, fmt="o", ms=3, lw=0.6, alpha=0.6, color=colour
        )
        low = float(min((mean0 - sd0).min(), (mean - sd).min()))
        high = float(max((mean0 + sd0).max(), (mean + sd).max()))
        axis.plot([low, high], [low, high], color="black", lw=0.8)
        axis.set_xlabel(f"eta under {reference}")
        axis.set_ylabel(f"eta under {method}")
        axis.grid(alpha=0.3)
    figure.suptitle(_title("Decision values: posterior mean and sd", subject))
    return figure


def _title(what: str, subject: str) -> str:
    return f"{what}, {subject}" if subject else what


def image(fits: Fits, reference: str | None = None, subject: str = "") -> "Figure":
    """Draw features that are pixels as an image: their mean weight above, P(active) below.

    Pixels are features named `something_row_column`, such as `pixel_3_4`, that fill a rectangle.

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
    methods = [m for m in _drawn(fits, reference, "feature_weight") if "selection" in fits[m]]
    if not methods:
        raise InputError("no fit holds P(active): nothing to draw.")
    names = [str(n) for n in group(fits[methods[0]], "posterior")["feature"].values]
    rows, columns = _pixels(names)
    shape = (rows.max() + 1, columns.max() + 1)

    figure, axes = _figure(2.4 * len(methods) + 0.8, 5.4, len(methods), 2)
    for i, method in enumerate(methods):
        weight = group(fits[method], "posterior")["feature_weight"].mean(("chain", "draw")).values
        probability = group(fits[method], "selection")["p_active_feature"].values
        # each method's weights in its own largest: only their ratios are identified
        shares = np.abs(weight) / max(np.abs(weight).max(), 1e-300)
        for axis, values in ((axes[i], shares), (axes[len(methods) + i], probability)):
            picture = np.zeros(shape)
            picture[rows, columns] = values
            drawn = axis.imshow(picture, cmap="viridis", vmin=0.0, vmax=1.0)
            axis.set_xticks([])
            axis.set_yticks([])
        axes[i].set_title(f"{method} (reference)" if method == reference else method)
    axes[0].set_ylabel("mean weight / largest")
    axes[len(methods)].set_ylabel("P(active)")
    figure.colorbar(drawn, ax=axes, shrink=0.8)
    figure.suptitle(_title("Pixels", subject))
    return figure


def _pixels(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column of each feature, or say that features are not pixels."""
    matches = [re.fullmatch(r".*_(\d+)_(\d+)", name) for name in names]
    at = np.array([(int(m[1]), int(m[2])) for m in matches if m])  # (pixels, 2)
    if len(at) < len(names) or len(np.unique(at, axis=0)) < np.prod(at.max(axis=0) + 1):
        raise InputError("features are not pixels: no names that end in _row_column.")
    return at[:, 0], at[:, 1]


FIGURES: "dict[Kind, Callable[..., Figure]]" = {
    "forest": forest,
    "image": image,
    "eta": eta,
}
"""Every figure, by the name that `Comparison.plot` takes."""
