"""The figure of reliability: how often y = 1 where P(y = 1) is p, on rows left out."""

import numpy as np
import xarray as xr

from ardvark.common.validate import InputError

from ...scoring.held_out import HeldOut
from . import style
from .style import Picture, Spot

_SHOWN = 0.9  # central probability of the band of calibrated predictions
_CURVE = "#D55E00"  # as drawn by ArviZ; each is then given the colour of its method


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
