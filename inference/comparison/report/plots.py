"""Figures of posteriors: how far `eta` is from the exact one, and the size of effects."""

import numpy as np

from ardvark.common.validate import InputError

from ...fits.datatree import group
from ...fits.selection import PROBABILITY
from . import style
from .forest import Fits, holders, leaders
from .style import Picture, Spot

_POINTS = 250  # samples whose values stand under the pointer


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


# --- the curve over t -----------------------------------------------------------------------------


def curve(fits: Fits, reference: str | None = None, subject: str = "", leading: int = 6) -> Picture:
    """Draw P(|effect| > t) of the leading features against t, one panel per method.

    A size t that matters is for the reader to say; the dotted line is the one that is reported. The
    grey line is the prior, where it is the same for all features.

    Parameters
    ----------
    fits, reference, subject
        As for `forest`.
    leading : int
        How many features, chosen under the reference, or under the first method.

    Raises
    ------
    InputError
        No fit holds such probabilities.
    """
    found = {m: group(t, "selection") for m, t in fits.items()}
    found = {m: each for m, each in found.items() if "curve_feature" in each}
    methods = sorted(found, key=lambda m: m != reference)
    if not methods:
        raise InputError("there is nothing to plot: no fit has P(|effect| > t).")
    first = found[methods[0]]
    sizes, names = first["t"].values, first["feature"].values.astype(str)
    order = leaders(fits[methods[0]], "feature", leading)
    palette = style.colours([names[k] for k in order], None)
    shapes = style.marks([names[k] for k in order], None)
    prior = first["prior_curve_feature"].values if "prior_curve_feature" in first else None
    alike = prior is not None and bool((np.ptp(prior[:, order], axis=1) == 0.0).all())
    said, spots = [], []
    with style.style():
        figure, axes = style.blank(len(methods))
        for axis, method in zip(axes, methods, strict=True):
            P = found[method]["curve_feature"].values  # (sizes, D)
            if alike and prior is not None:
                axis.plot(sizes, prior[:, order[0]], color="#888888", lw=2.0)
            for k in order:
                axis.plot(
                    sizes, P[:, k], f"{shapes[names[k]]}-", ms=3.5, lw=1.2, color=palette[names[k]]
                )
                spots += [Spot(axis, t, p, f"{names[k]}, {method}: P(|effect| > {t:g}) = {p:.2f}")
                          for t, p in zip(sizes, P[:, k], strict=True)]  # fmt: skip
            axis.axvline(first.attrs["threshold"], ls=":", color="black", lw=1.0)
            axis.set_xscale("log")
            axis.set_xticks(sizes[[0, 1, 3, 5, 7]], [f"{t:g}" for t in sizes[[0, 1, 3, 5, 7]]])
            axis.minorticks_off()
            axis.set_ylim(-0.04, 1.04)
            axis.set_title(style.label(method, reference))
            axis.set_xlabel("size t of an effect per sd")
            axis.grid()
            counts = [f"{int((P[i] > PROBABILITY).sum())} at t = {sizes[i]:g}" for i in (0, 3, 5)]
            said.append(f"{', '.join(counts)} under {method}")
        axes[0].set_ylabel("P(|effect| > t)")
        line = {"prior": "#888888"} if alike else {}
        style.legend(figure, palette | line, shapes | dict.fromkeys(line, ""))
        finding = f"features more likely than not to have an effect above t: {said[0]}"
        style.entitle(figure, finding, subject)
    alt = f"P(|effect| > t) of {len(order)} features. Above one half: {'; '.join(said)}."
    return Picture(figure, alt, spots)
