"""Figures of posteriors: what matters, how far `eta` is from the exact one, what trades off."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from ardvark.common.validate import InputError

from ..fits.datatree import group
from ..fits.diagnostics import inclusion, masks
from . import look
from .look import Picture, Spot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Fits = Mapping[str, xr.DataTree]

_QUANTILES = (0.03, 0.25, 0.75, 0.97)
_POINTS = 250  # draws, or samples, shown in a panel


def _drawn(fits: Fits, reference: str | None, name: str) -> list[str]:
    """Return the methods that hold a quantity, the reference first."""
    methods = [m for m, t in fits.items() if name in group(t, "posterior")]
    if not methods:
        raise InputError(f"there is nothing to plot: no fit has {name!r}.")
    return sorted(methods, key=lambda m: m != reference)


def _label(method: str, reference: str | None) -> str:
    return f"{method} (reference)" if method == reference else method


def _leading(tree: xr.DataTree, what: str, leading: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the components that lead by P(active), then by mean size, and P(active) if known."""
    mean = np.abs(group(tree, "posterior")[f"{what}_weight"].mean(("chain", "draw")).values)
    found = group(tree, "selection")
    active = found[f"p_active_{what}"].values if f"p_active_{what}" in found else None
    key = np.zeros(len(mean)) if active is None else -active
    return np.lexsort((-mean, key))[:leading], active


def _binary(tree: xr.DataTree, name: str) -> bool:
    """Return whether a weight is a mask itself, and not one that a mask switches off."""
    mask = masks(tree).get(name)
    return mask is not None and bool(np.isin(mask.values, (0, 1)).all())


# --- weights --------------------------------------------------------------------------------------


def forest(
    fits: Fits, reference: str | None = None, subject: str = "", leading: int = 12
) -> Picture:
    """Draw posterior mean, 50 % and 94 % interval of the leading feature weights, by method.

    Features are ordered by their P(active) under the reference (or the first method), which is
    written beside them; ties are ordered by the posterior mean of their weight. For a binary mask,
    that mean is an inclusion probability, and bars extend by two Monte Carlo errors each way.

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
    return _forest(fits, reference, subject, leading, "feature")


def samples(
    fits: Fits, reference: str | None = None, subject: str = "", leading: int = 12
) -> Picture:
    """Draw the leading sample weights as `forest` draws features.

    Raises
    ------
    InputError
        No fit holds sample weights.
    """
    return _forest(fits, reference, subject, leading, "sample")


def _forest(fits: Fits, reference: str | None, subject: str, leading: int, what: str) -> Picture:
    import arviz_plots

    name = f"{what}_weight"
    methods = _drawn(fits, reference, name)
    order, active = _leading(fits[methods[0]], what, leading)
    first = group(fits[methods[0]], "posterior")[name]
    names = [str(n) for n in first[first.dims[-1]].values[order]]
    masked = _binary(fits[methods[0]], name)
    means, bars = _summaries(fits, methods, name, order, masked)
    labels = names
    if active is not None:
        labels = [f"{n}   {p:.2f}" for n, p in zip(names, active[order], strict=True)]
    coords = {"model": methods, "row": labels}
    dims = ("model", "row")
    ends = (*dims, "ci_bound")
    mean = xr.Dataset({name: (dims, means)}, coords)

    def interval(low: int, high: int) -> xr.Dataset:
        bounds = {"ci_bound": ["lower", "upper"]}
        return xr.Dataset({name: (ends, bars[..., [low, high]])}, {**coords, **bounds})

    palette = look.colours(methods, reference)
    with look.style():
        collection = arviz_plots.plot_forest(
            xr.DataTree.from_dict({"/posterior": mean.expand_dims(chain=1, draw=1)}),
            var_names=[name],
            combined=True,
            labels=["row"],
            shade_label="row",
            backend="matplotlib",
            color=[palette[m] for m in methods],
            stats={"trunk": interval(1, 2), "twig": interval(0, 3), "point_estimate": mean},
            visuals={"shade": {"color": "#dddddd"}},
        )
        figure = look.figure_of(collection, 1.3 + (0.15 + 0.06 * len(methods)) * len(names))
        height = collection.get_aes_as_dataset("y")[name].transpose("row", "model").values
        beside, axis = figure.axes
        beside.set_axis_off()
        axis.set_ylim(height.min() - 0.3, height.max() + 0.3)
        axis.axvline(0.0, color="#888888", lw=0.8)
        axis.set_xlabel(
            "inclusion probability +- 2 Monte Carlo errors"
            if masked
            else f"{what} weight: mean, 50 % and 94 % intervals"
        )
        _legend(figure, {_label(m, reference): palette[m] for m in methods})
        beside_them = "" if active is None else f", their P(active) under {methods[0]}"
        figure.suptitle(look.titled(f"Leading {what}s{beside_them}", subject))
    spots = [
        Spot(axis, means[i, k], height[k, i], f"{names[k]}, {m}: mean {means[i, k]:.3g}, "
             f"{bars[i, k, 0]:.3g} to {bars[i, k, 3]:.3g}")
        for k in range(len(names))
        for i, m in enumerate(methods)
    ]  # fmt: skip
    return Picture(figure, _forest_words(methods, names, means, active, order, what, masked), spots)


def _summaries(
    fits: Fits, methods: list[str], name: str, order: np.ndarray, masked: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return means (methods, leading) and the ends of both bars (methods, leading, 4)."""
    means = np.empty((len(methods), len(order)))
    bars = np.empty((*means.shape, 4))
    for i, method in enumerate(methods):
        found = group(fits[method], "posterior")[name]
        flat = found.values.reshape(-1, found.shape[-1])[:, order]  # (draws, leading)
        means[i], bars[i] = flat.mean(axis=0), np.quantile(flat, _QUANTILES, axis=0).T
        if masked:
            error = 2.0 * inclusion(found)["mcse"].fillna(0.0).values[order]
            bars[i] = means[i][:, None] + error[:, None] * np.array([-1.0, -1.0, 1.0, 1.0])
    return means, bars


def _forest_words(
    methods: list[str],
    names: list[str],
    means: np.ndarray,
    active: np.ndarray | None,
    order: np.ndarray,
    what: str,
    masked: bool,
) -> str:
    number = "inclusion probability" if masked else "posterior mean weight"
    lines = []
    for k, name in enumerate(names):
        p = "" if active is None else f" (P(active) {active[order[k]]:.2f})"
        each = ", ".join(f"{m} {means[i, k]:.2f}" for i, m in enumerate(methods))
        lines.append(f"{name}{p}: {each}")
    return f"Forest of the {len(names)} leading {what}s, {number}. {'; '.join(lines)}."


def _legend(figure: "Figure", colours: Mapping[str, str]) -> None:
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], marker="o", color=c) for c in colours.values()]
    figure.legend(marks, list(colours), loc="outside lower center", ncols=min(len(marks), 5))


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
    methods = _drawn(fits, reference, "eta")
    if reference is None or reference not in methods or len(methods) < 2:
        raise InputError("the plot of eta needs a reference and at least one other fit with draws.")
    palette = look.colours(methods, reference)
    others = methods[1:]
    exact = group(fits[reference], "posterior")["eta"]
    mean0, sd0 = exact.mean(("chain", "draw")).values, exact.std(("chain", "draw")).values
    names = [str(n) for n in exact[exact.dims[-1]].values]

    said, spots = [], []
    with look.style():
        figure, axes = look.blank(len(others))
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
            furthest = np.argsort(-np.abs(np.nan_to_num(off)))[:_POINTS]
            spots += [
                Spot(axis, mean0[n], mean[n], f"{names[n]}: {reference} {mean0[n]:.2f} (sd "
                     f"{sd0[n]:.2f}), {method} {mean[n]:.2f} (sd {sd[n]:.2f})")
                for n in furthest
            ]  # fmt: skip
        figure.suptitle(look.titled("Decision values: posterior mean and sd", subject))
    alt = f"Posterior means of eta of {len(names)} samples against {reference}'s. "
    return Picture(figure, f"{alt}{'; '.join(said)}.", spots)


# --- pixels ---------------------------------------------------------------------------------------


def image(fits: Fits, reference: str | None = None, subject: str = "") -> Picture:
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
        raise InputError("there is nothing to plot: no fit has P(active).")
    names = [str(n) for n in group(fits[methods[0]], "posterior")["feature"].values]
    rows, columns = _pixels(names)
    shape = (rows.max() + 1, columns.max() + 1)

    said, spots = [], []
    with look.style():
        figure, axes = look.blank(2 * len(methods), 3.6 / max(2.0, len(methods) / 2.0), rows=2)
        for i, method in enumerate(methods):
            posterior = group(fits[method], "posterior")
            weight = posterior["feature_weight"].mean(("chain", "draw")).values
            probability = group(fits[method], "selection")["p_active_feature"].values
            # each method's weights in its own largest: only their ratios are identified
            shares = np.abs(weight) / max(np.abs(weight).max(), 1e-300)
            for axis, values in ((axes[i], shares), (axes[len(methods) + i], probability)):
                picture = np.zeros(shape)
                picture[rows, columns] = values
                drawn = axis.imshow(picture, cmap="viridis", vmin=0.0, vmax=1.0)
                axis.set_xticks([])
                axis.set_yticks([])
            axes[i].set_title(_label(method, reference).replace(" ", "\n"))
            likely = [f"{names[k]} {probability[k]:.2f}" for k in np.argsort(-probability)[:4]]
            said.append(f"{method} {', '.join(likely)}")
            spots += [
                Spot(axes[len(methods) + i], columns[k], rows[k],
                     f"{names[k]}, {method}: P(active) {probability[k]:.2f}, weight "
                     f"{weight[k]:.3g}")
                for k in np.argsort(-probability)
            ]  # fmt: skip
        axes[0].set_ylabel("weight\n/ largest")
        axes[len(methods)].set_ylabel("P(active)")
        figure.colorbar(drawn, ax=axes, shrink=0.8)
        figure.suptitle(look.titled("Pixels", subject))
    return Picture(
        figure,
        f"Images of {shape[0]} by {shape[1]} pixels: mean weight and P(active) under each method. "
        f"Most probably active: {'; '.join(said)}.",
        spots,
    )


def _pixels(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column of each feature, or say that features are not pixels."""
    matches = [re.fullmatch(r".*_(\d+)_(\d+)", name) for name in names]
    at = np.array([(int(m[1]), int(m[2])) for m in matches if m])  # (pixels, 2)
    if len(at) < len(names) or len(np.unique(at, axis=0)) < np.prod(at.max(axis=0) + 1):
        raise InputError("the features are not pixels: their names do not end in _row_column.")
    return at[:, 0], at[:, 1]


# --- a degenerate direction -----------------------------------------------------------------------


def pair(fits: Fits, reference: str | None = None, subject: str = "", leading: int = 10) -> Picture:
    """Draw the two leading features that trade off most, one panel per method.

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
    methods: tuple[str, ...] | list[str] = _drawn(fits, reference, "feature_weight")
    tree = fits[methods[0]]
    if _binary(tree, "feature_weight"):
        raise InputError(
            "there is nothing to plot: a pair of binary masks has only four possible values."
        )
    order, _ = _leading(tree, "feature", leading)
    first = _flat(tree)[:, order]
    order = order[first.std(axis=0) > 0.0]
    if len(order) < 2:
        raise InputError("there is no pair to plot: fewer than two leading features vary.")
    correlation = np.corrcoef(_flat(tree)[:, order], rowvar=False)
    np.fill_diagonal(correlation, np.inf)
    a, b = order[list(np.unravel_index(correlation.argmin(), correlation.shape))]
    names = [str(n) for n in group(tree, "posterior")["feature"].values]
    palette = look.colours(list(methods), reference)

    drawn = {m: _flat(fits[m])[:, [a, b]] for m in methods}  # (S, 2)
    shown = {m: _thinned(values) for m, values in drawn.items()}
    ends = np.concatenate(list(shown.values()))
    low, high = ends.min(axis=0), ends.max(axis=0)
    room = 0.05 * (high - low)
    said, spots = [], []
    with look.style():
        figure, axes = look.blank(len(methods))
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
        figure.suptitle(look.titled("The two leading features that trade off most", subject))
    alt = f"Draws of the weights of {names[a]} and {names[b]}. {'; '.join(said)}."
    return Picture(figure, alt, spots)


def _flat(tree: xr.DataTree) -> np.ndarray:
    """Return draws (S, D) of the feature weights."""
    values = group(tree, "posterior")["feature_weight"].values
    return values.reshape(-1, values.shape[-1])


def _thinned(draws: np.ndarray) -> np.ndarray:
    """Return at most `_POINTS` of the draws (S, ...), evenly spaced."""
    return draws[np.linspace(0, len(draws) - 1, min(len(draws), _POINTS)).astype(int)]
