"""The figure of the matrix: every approximation, on every posterior, at one glance."""

from typing import TYPE_CHECKING

import pandas as pd

from ...report import look
from ...report.look import Picture
from .declared import AGAIN, EXACT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = (
    ("p_off", "P(y = 1) off by", (1e-3, 1.0), (0.02, 0.15)),
    ("eta_sd_ratio", "sd of eta / exact sd", (1e-2, 1e2), (0.8, 1.25)),
)
"""Number, title, limits of the axis, and the lines: the limits of the verdicts."""
METHODS = ("paper's, this prior", "paper's, own settings", "ADVI", "Laplace")
MARKS = {
    "sparse": ("o", "#0072B2"),
    "dense": ("s", "#D55E00"),
    "diffuse": ("^", "#009E73"),
    "double_exponential": ("D", "#CC79A7"),
    "independent": ("P", "#56B4E9"),
    "printed_masks": ("v", "#E69F00"),
}
"""By prior: mark and colour. Shapes differ too, for readers who do not see the colours."""
_ROW = 0.3  # inches


def draw(frame: pd.DataFrame) -> Picture:
    """Draw the matrix: a row a model and data set, a strip a method, a mark a prior.

    A grey tick is what a second exact run differs by. An arrow at the border stands for a value
    beyond it, a cross for a method without an sd, an open mark beside an exact fit that has not
    converged.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows of `matrix.csv`.
    """
    known = frame[frame["cell"].isin([EXACT, AGAIN, *METHODS])]
    groups = list(dict.fromkeys(_group(row) for row in known.to_dict("records")))
    with look.style():
        strips = len(PANELS) * len(METHODS)
        figure, axes = look.blank(strips, 0.9 + _ROW * len(groups), rows=1)
        figure.set_size_inches(look.WIDTH * 1.35, 1.3 + _ROW * len(groups))
        for axis in axes[1:]:
            axis.sharey(axes[0])
            axis.tick_params(labelleft=False)
        for i, (number, title, limits, lines) in enumerate(PANELS):
            for j, method in enumerate(METHODS):
                axis = axes[i * len(METHODS) + j]
                _strip(axis, known, groups, method, number, limits, lines)
                axis.set_title(method.replace("paper's, ", "paper's,\n"), fontsize=8)
                if j == 0:
                    axis.annotate(
                        title, (0.0, 1.0), (0, 26), "axes fraction", "offset points", fontsize=10
                    )
        axes[0].set_yticks(range(len(groups)), [" ".join(g) for g in groups], fontsize=8)
        axes[0].set_ylim(len(groups) - 0.4, -0.6)
        shown = [p for p in MARKS if p in set(known["prior"])]
        handles = [
            axes[0].plot([], [], MARKS[p][0], color=MARKS[p][1], ms=5, label=p.replace("_", " "))[0]
            for p in shown
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(shown), title="prior")
    return Picture(figure, alt(frame))


def alt(frame: pd.DataFrame) -> str:
    """Return the figure in words: the median of each method under each prior."""
    parts = []
    for method in METHODS:
        for prior, rows in frame[frame["cell"] == method].groupby("prior", sort=False):
            off, sd = rows["p_off"].median(), rows["eta_sd_ratio"].median()
            parts.append(f"{method} under {prior}: P(y = 1) off by {off:.2f}, sd ratio {sd:.2g}")
    return f"Medians over data sets. {'; '.join(parts)}."


def _group(row: dict) -> tuple[str, ...]:
    return tuple(filter(None, (row["model"], row["kernel"], row["data"])))


def _strip(
    axis: "Axes",
    frame: pd.DataFrame,
    groups: list[tuple[str, ...]],
    method: str,
    number: str,
    limits: tuple[float, float],
    lines: tuple[float, float],
) -> None:
    low, high = limits
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    for line in lines:
        axis.axvline(line, color="0.75", lw=0.8, zorder=0)
    axis.tick_params(axis="x", labelsize=7)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="y", lw=0.4)
    records = frame.to_dict("records")
    converged = {
        (_group(r), r["prior"]) for r in records if r["cell"] == EXACT and r["status"] == "finished"
    }
    place = {prior: 0.24 * (k - 1) for k, prior in enumerate(("sparse", "dense", "diffuse"))}
    place |= {"independent": -0.12, "printed_masks": 0.12}
    for row in (r for r in records if r["cell"] in (AGAIN, method)):
        colour, y = MARKS[row["prior"]][1], groups.index(_group(row)) + place.get(row["prior"], 0.0)
        value = row[number]
        mark = MARKS[row["prior"]][0]
        if row["cell"] == AGAIN:
            if low < value < high:
                axis.plot(value, y, "|", color="0.5", ms=5)
            continue
        if value != value:
            if row["p_off"] != row["p_off"]:
                continue
            value, mark = low, "x"
        elif not low <= value <= high:
            mark = "<" if value < low else ">"
        solid = (_group(row), row["prior"]) in converged
        axis.plot(
            min(max(value, low), high), y, mark, color=colour, ms=4.0,
            mfc=colour if solid else "none", clip_on=False,
        )  # fmt: skip
