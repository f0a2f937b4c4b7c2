"""The figure of a choice: differences to the best candidate."""

import numpy as np
import pandas as pd

from ..comparison.report import style
from ..comparison.report.style import Picture, Spot
from .candidates import SHARE

CLEAR = 2.0
"""Standard errors above which a difference is said to be one."""
_LONGEST = 24  # characters of a name


def picture(table: pd.DataFrame, data: str, title: str) -> Picture:
    """Draw log scores beside that of the best candidate, with two standard errors each way.

    The share of the classes may lie so far below the others that their differences are not seen: it
    is then at the edge, with its number.
    """
    table = table[table["log_score"].notna()]
    places, best = np.arange(len(table))[::-1], table.index[0]
    bars = CLEAR * table["difference_se"]
    others = (table["difference"] - bars).drop([SHARE, best], errors="ignore")
    shown = table["difference"].clip(lower=1.3 * others.min() if len(others) else None)
    with style.style():
        figure, (axes,) = style.blank(height=0.3 * len(table) + 1.0)
        axes.axvline(0.0, color="0.6", lw=0.8)
        inside = (shown == table["difference"]).to_numpy()
        bars = bars[inside]
        axes.errorbar(shown[inside], places[inside], xerr=bars, fmt="o", color="black", lw=1.4)
        for at in np.flatnonzero(~inside):
            point, text = (shown.iloc[at], places[at]), f"{table['difference'].iloc[at]:.2f}"
            axes.plot(*point, "<", color="black")
            axes.annotate(text, point, (8, 0), textcoords="offset points", va="center")
        axes.locator_params(axis="x", nbins=6)
        names = [str(name) for name in table.index]
        axes.set_yticks(places, [n if len(n) <= _LONGEST else f"{n[:21]}..." for n in names])
        axes.set_xlabel(f"log score minus that of {best}")
        axes.grid(axis="x")
        style.entitle(figure, title, data)
        told = [f"{name}: {score:.3f}" for name, score in table["log_score"].items()]
        spots = [Spot(axes, *at) for at in zip(shown, places, told, strict=True)]
    scores = ", ".join(told).replace(": ", " ")
    return Picture(figure, f"Log score of {len(table)} candidates on {data}: {scores}.", spots)
