"""The figure of a choice: differences to the best candidate, and the weights of the stack."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..comparison.report import look
from ..comparison.report.look import Picture, Spot
from . import words
from .candidates import SHARE, STACK
from .scores import Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BARS = "#0072B2"
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
    """Draw log scores beside that of the best candidate, and weights with their intervals.

    Bars of the left panel are two standard errors each way.
    """
    table = choice.table[choice.table["log_score"].notna()]
    places = np.arange(len(table))[::-1]
    with look.style():
        figure, (left, right) = look.beside((3.0, 2.0), 0.3 * len(table) + 1.4)
        left.axvline(0.0, color="0.6", lw=0.8)
        bars = words.CLEAR * table["difference_se"]
        left.errorbar(table["difference"], places, xerr=bars, fmt="o", color="black", lw=1.4)
        left.locator_params(axis="x", nbins=6)
        lowest = (table["difference"] - bars).drop(SHARE, errors="ignore").min()
        _cut(left, lowest, places, table["difference"])
        names = [str(name) for name in table.index]
        left.set_yticks(places, [n if len(n) <= _LONGEST else f"{n[:21]}..." for n in names])
        left.set_xlabel(f"log score minus that of {choice.best}")
        shown = table["weight"].notna().to_numpy()
        ends = table[["weight_low", "weight_high"]].to_numpy()[shown]
        right.hlines(places[shown], ends[:, 0], ends[:, 1], color=_BARS, lw=1.4)
        right.plot(table["weight"][shown], places[shown], "s", color=_BARS)
        right.set_xlim(-0.03, 1.03)
        right.set_ylim(left.get_ylim())
        right.set_yticks(places, [""] * len(places))
        right.set_xlabel("weight in the stack, 90 % interval")
        for axes in (left, right):
            axes.grid(axis="x")
        look.entitle(figure, words.sentences(choice)[0], choice.about["data"])
        spots = [
            Spot(
                left,
                max(row["difference"], left.get_xlim()[0]),
                place,
                f"{name}: {row['log_score']:.3f}",
            )
            for (name, row), place in zip(table.iterrows(), places, strict=True)
        ]
    weights = choice.weights.sort_values(ascending=False, kind="stable")
    alt = (
        f"Log score of {len(table) - 1} candidates and the stack on {choice.about['data']}. "
        f"The best is {choice.best}, the stack is {choice.difference(STACK, choice.best)[0]:+.3f} "
        f"beside it. Weights: {', '.join(f'{n} {w:.2f}' for n, w in weights.items())}."
    )
    return Picture(figure, alt, spots)
