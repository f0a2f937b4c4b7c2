"""The figure of a choice: differences to the best candidate."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..comparison.report import style
from ..comparison.report.style import Picture, Spot
from . import words
from .candidates import SHARE
from .scores import Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 24  # characters of a name


def _cut(axes: "Axes", lowest: float, places: np.ndarray, differences: pd.Series) -> None:
    """Leave out what would squeeze the others: an arrow with its number stands at the edge.

    The share of the classes may lie so far below `lowest`, the end of the others' bars, that
    their differences are not seen.
    """
    right = axes.get_xlim()[1]
    edge = lowest - 0.15 * (right - lowest)
    beyond = (differences < edge).to_numpy()
    if not beyond.any():
        return
    axes.set_xlim(edge, right)
    for place, difference in zip(places[beyond], differences[beyond], strict=True):
        axes.plot(edge, place, "<", color="black", clip_on=False)
        axes.annotate(
            f"{difference:.2f}", (edge, place), (8, 0), textcoords="offset points", va="center"
        )


def picture(choice: Scores) -> Picture:
    """Draw log scores beside that of the best candidate, with two standard errors each way."""
    table = choice.table[choice.table["log_score"].notna()]
    places = np.arange(len(table))[::-1]
    with style.style():
        figure, (axes,) = style.blank(height=0.3 * len(table) + 1.0)
        axes.axvline(0.0, color="0.6", lw=0.8)
        bars = words.CLEAR * table["difference_se"]
        axes.errorbar(table["difference"], places, xerr=bars, fmt="o", color="black", lw=1.4)
        axes.locator_params(axis="x", nbins=6)
        others = (table["difference"] - bars).drop([SHARE, choice.best], errors="ignore")
        if len(others):
            _cut(axes, others.min(), places, table["difference"])
        names = [str(name) for name in table.index]
        axes.set_yticks(places, [n if len(n) <= _LONGEST else f"{n[:21]}..." for n in names])
        axes.set_xlabel(f"log score minus that of {choice.best}")
        axes.grid(axis="x")
        style.entitle(figure, words.sentences(choice)[0], choice.data)
        left = axes.get_xlim()[0]
        spots = [
            Spot(axes, max(row["difference"], left), place, f"{name}: {row['log_score']:.3f}")
            for (name, row), place in zip(table.iterrows(), places, strict=True)
        ]
    scores = ", ".join(f"{name} {score:.3f}" for name, score in table["log_score"].items())
    alt = f"Log score of {len(table)} candidates on {choice.data}: {scores}."
    return Picture(figure, alt, spots)
