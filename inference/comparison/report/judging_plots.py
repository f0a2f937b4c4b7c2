"""Figures that judge fits: the cost of accuracy, reliability, and agreement of chains."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError

from ...fits.datatree import group
from ...fits.diagnostics import ess, rhat
from ...fits.mixing import RHAT_LIMIT
from ...scoring.columns import whole
from ...scoring.held_out import HeldOut
from . import style
from .style import Picture, Spot

_SHOWN = 0.9  # central probability of the band of calibrated predictions
_CURVE = "#D55E00"  # as drawn by ArviZ; each is then given the colour of its method


def frontier(table: pd.DataFrame, reference: str | None, subject: str = "") -> Picture:
    """Draw run time against the error of `eta`, both logarithmic: lower left is better.

    The dotted line is the reference's own error, of one half of its chains against the other.

    Parameters
    ----------
    table : pandas.DataFrame
        `Comparison.table`.
    reference : str or None
    subject : str
        What was fitted, for the title.

    Raises
    ------
    InputError
        There is no reference, or no other fit whose time and error are known.
    """
    from matplotlib import ticker

    known = whole(table)[["seconds_run", "error_eta"]].astype(float).dropna()
    known = known[(known > 0.0).all(axis=1)]
    if reference is None or not len(known.drop(index=reference, errors="ignore")):
        raise InputError("the frontier plot needs a reference and another fit with draws.")
    methods = sorted(map(str, known.index), key=lambda m: m != reference)
    palette = style.colours(methods, reference)
    said, spots = [], []
    with style.style():
        figure, (axis,) = style.blank(1, 3.0)
        for i, method in enumerate(methods):
            seconds, error = map(float, known.loc[method].to_numpy())
            marker = "D" if method == reference else "o"
            axis.plot(seconds, error, marker, color=palette[method], ms=7)
            above = i % 2 == 0
            axis.annotate(
                method, (seconds, error), (0, 9 if above else -9), textcoords="offset points",
                ha="center", va="bottom" if above else "top", color=palette[method],
            )  # fmt: skip
            words = f"{method}: {seconds:.1f} s, error {error:.2f} sd"
            said.append(words)
            spots.append(Spot(axis, seconds, error, words))
        if reference in known.index:
            floor = float(known["error_eta"][reference])
            axis.axhline(floor, ls=":", color="black", lw=1.0)
            said.append(f"the two halves of {reference} differ by {floor:.2f} sd")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.margins(0.15, 0.2)
        for line in (axis.xaxis, axis.yaxis):
            line.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
            line.set_major_formatter(ticker.FormatStrFormatter("%g"))
            line.set_minor_locator(ticker.NullLocator())
        axis.set_xlabel("run time, seconds")
        axis.set_ylabel("largest error of a mean of eta, sd")
        axis.grid()
        style.entitle(figure, _cheapest(known, reference), subject)
    return Picture(figure, f"Run time against error of eta. {'; '.join(said)}.", spots)


def _cheapest(known: pd.DataFrame, reference: str) -> str:
    """Return which method is nearest to the reference and how long each took, in a sentence."""
    others = known.drop(index=reference, errors="ignore")
    best = str(others["error_eta"].idxmin())
    text = (
        f"the closest to {reference} is {best}, with means of eta off by up to "
        f"{others['error_eta'][best]:.2f} sd after {others['seconds_run'][best]:.1f} s"
    )
    if reference in known.index:
        text += f"; {reference} took {known['seconds_run'][reference]:.1f} s"
    return text


def reliability(held_out: HeldOut | None, reference: str | None, subject: str = "") -> Picture:
    """Draw the reliability curve of each method: how often y = 1 if P(y = 1) is p.

    The curve is the isotonic regression of y on P (`arviz_plots.plot_ppc_pava`; Dimitriadis et al.
    2021). The band contains 90 % of such curves for labels drawn from the predictions.

    Parameters
    ----------
    held_out : HeldOut or None
        `Comparison.held_out`.
    reference : str or None
        Drawn first.
    subject : str
        What was fitted, for the title.

    Raises
    ------
    InputError
        There are no predictions of held-out samples.
    """
    import arviz_plots

    if held_out is None or not held_out.probability:
        raise InputError("the reliability plot needs held-out samples (test=).")
    methods = sorted(held_out.probability, key=lambda m: m != reference)
    generator = np.random.default_rng(0)
    labels, truth = {}, {}
    for method in methods:
        p = held_out.probability[method]
        p = p[np.arange(500) % len(p)]  # (500, M)
        drawn = (generator.uniform(size=p.shape) < p).astype(int)
        labels[method] = (("chain", "draw", "obs"), drawn[None])
        truth[method] = ("obs", held_out.y)
    tree = xr.DataTree.from_dict(
        {"/posterior_predictive": xr.Dataset(labels), "/observed_data": xr.Dataset(truth)}
    )
    rows = -(-len(methods) // style.ACROSS)
    palette = style.colours(methods, reference)
    said, wrongly, spots = [], [], []
    with style.style():
        collection = arviz_plots.plot_ppc_pava(
            tree,
            var_names=methods,
            ci_prob=_SHOWN,
            backend="matplotlib",
            col_wrap=style.ACROSS,
            visuals={
                "lines": {"color": _CURVE},
                "credible_interval": {"color": "#888888"},
                "xlabel": {"text": "P(y = 1)"},
                "ylabel": {"text": "share of y = 1"},
            },
        )
        figure = style.figure_of(collection, 2.6 * rows + 0.4)
        axes = collection.viz["plot"]
        for method in methods:
            axis = axes[method].item()
            axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
            axis.grid()
            for line in axis.get_lines():
                if line.get_color() == _CURVE:
                    line.set_color(palette[method])
            p = held_out.probability[method].mean(axis=0)
            said.append(
                f"{method}: P above 0.9 for {_count(p > 0.9)}, of which "
                f"{_count(held_out.y[p > 0.9] == 1)} of y = 1; below 0.1 for {_count(p < 0.1)}, "
                f"of which {_count(held_out.y[p < 0.1] == 1)}"
            )
            sure = np.abs(p - 0.5) > 0.4
            wrong = sure & ((p > 0.5) != held_out.y)
            wrongly.append(f"{_count(wrong)} of {_count(sure)} by {method}")
            furthest = np.argsort(-np.abs(p - held_out.y))[:200]
            spots += [
                Spot(axis, p[n], float(held_out.y[n]),
                     f"{held_out.names[n]}, {method}: P {p[n]:.2f}, y = {held_out.y[n]}")
                for n in furthest
            ]  # fmt: skip
        finding = "predictions with P above 0.9 or below 0.1 that are wrong"
        style.entitle(figure, f"{finding}: {', '.join(wrongly)}", subject)
    words = f"Reliability of P(y = 1) over {len(held_out.y)} held-out samples. {'; '.join(said)}."
    return Picture(figure, words, spots)


def _count(rows: np.ndarray) -> str:
    return str(int(rows.sum()))


def ranks(
    fits: Mapping[str, xr.DataTree], reference: str | None = None, subject: str = ""
) -> Picture:
    """Draw the rank ECDF of each chain of the reference, minus that of chains that agree.

    It is drawn for lp, for the eta with the largest R-hat, and for the leading feature's weight
    (`arviz_plots.plot_rank`). Where R-hat says that chains disagree, black points mark ranks that a
    chain has too often or too rarely. The test behind them treats the draws of a chain as
    independent, so the draws are first thinned to about their effective number. It sees differences
    that are no matter, so chains that agree by their R-hat have no marks.

    Parameters
    ----------
    fits : dict of DataTree
    reference : str, optional
        The Markov chain; by default the first one with more than one chain.
    subject : str
        What was fitted, for the title.

    Raises
    ------
    InputError
        No fit has several chains.
    """
    import arviz_plots

    chains = [
        m
        for m in sorted(fits, key=lambda m: m != reference)
        if fits[m].attrs.get("kind") == "mcmc"
        and group(fits[m], "posterior").sizes.get("chain", 0) > 1
        and group(fits[m], "posterior").sizes["draw"] >= 20
    ]
    if not chains:
        raise InputError("the rank plot needs a fit with several Markov chains.")
    tree = fits[chains[0]]
    shown, rhats = _watched(tree)
    total = shown.sizes["chain"] * shown.sizes["draw"]
    size = min(float(ess(v, "bulk").min()) for v in shown.values())
    # chains that disagree have next to no effective draws: enough must be left to see it
    every = min(max(1, int(np.ceil(total / size))), max(1, shown.sizes["draw"] // 50))
    thin = shown.isel(draw=slice(None, None, every))
    count = shown.sizes["chain"]
    thin = thin.assign_coords(chain=np.arange(count), draw=np.arange(thin.sizes["draw"]))
    palette = style.colours([str(c) for c in range(count)], None)
    said = [f"{name}: R-hat {value:.3f}" for name, value in rhats.items()]
    worst = max(rhats, key=lambda name: rhats[name])
    agrees = rhats[worst] < RHAT_LIMIT
    with style.style():
        collection = arviz_plots.plot_rank(
            xr.DataTree.from_dict({"/posterior": thin}),
            thin=False,
            backend="matplotlib",
            col_wrap=style.ACROSS,
            color=list(palette.values()),
            visuals={"xlabel": {"text": "rank among all chains"}},
        )
        figure = style.figure_of(collection, 2.8)
        axes = collection.viz["plot"]
        for name in shown.data_vars:
            axes[name].item().grid()
            for text in list(axes[name].item().texts):  # p-values of three looks at one fit
                text.remove()
            for points in list(axes[name].item().collections) if agrees else []:
                points.remove()
        agree = "agree" if agrees else "do not agree"
        finding = f"the chains of {chains[0]} {agree}, with R-hat {rhats[worst]:.3f} for {worst}"
        style.entitle(figure, finding, subject)
    spots = [
        Spot(axes[name].item(), 0.5, 0.0, words)
        for name, words in zip(shown.data_vars, said, strict=True)
    ]
    words = (
        f"Rank ECDF of each of the {count} chains of {chains[0]}, minus the ECDF expected if the "
        f"chains agree, from one draw in {every}. {'; '.join(said)}."
    )
    return Picture(figure, words, spots)


def _watched(tree: xr.DataTree) -> tuple[xr.Dataset, dict[str, float]]:
    """Return the scalars (chain, draw) to plot, and their R-hats."""
    posterior, stats = group(tree, "posterior"), group(tree, "sample_stats")
    found: dict[str, xr.DataArray] = {}
    if "lp" in stats:
        found["lp"] = stats["lp"]
    if "eta" in posterior:
        worst = int(np.argmax(rhat(posterior["eta"])))
        found[f"eta of {_name(posterior['eta'], worst)}"] = posterior["eta"][..., worst]
    if "feature_weight" in posterior:
        weight = posterior["feature_weight"]
        lead = int(np.argmax(np.abs(weight.mean(("chain", "draw")).values)))
        found[f"weight of {_name(weight, lead)}"] = weight[..., lead]
    found = {n: v.reset_coords(drop=True) for n, v in found.items()}
    finite = {n: v for n, v in found.items() if np.isfinite(v.values).all()}
    shown = xr.Dataset({n: v for n, v in finite.items() if float(v.std()) > 0.0})
    if not shown.data_vars:
        raise InputError("no variable in these chains ever changed.")
    return shown, {str(n): float(rhat(v)[0]) for n, v in shown.data_vars.items()}


def _name(values: xr.DataArray, k: int) -> str:
    return str(values[values.dims[-1]].values[k])
