"""The figure of the matrix: every approximation, on every posterior, at one glance."""

from typing import TYPE_CHECKING

import pandas as pd

from ardvark.inference.comparison.report import style
from ardvark.inference.comparison.report.style import Picture
from lab.matrix.declared import AGAIN, EXACT, FLAT, PAPERS
from lab.matrix.pages import METHODS, RIGHT_WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARE = "share"
"""The distance of P(y = 1) from the exact one, divided by that of a constant."""
PANELS = (
    (SHARE, "P(y = 1) off by, a constant = 1", (0.0, 1.6), (0.0, 1.0)),
    ("eta_width", "width of eta, exact = 1", (1e-2, 1e2), RIGHT_WIDTH),
)
"""Number, title, limits of the axis (those of a ratio are on a log scale), and lines."""
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

    A grey tick is a second exact run. A mark at the border with an arrow lies beyond it. An open
    mark stands beside an exact fit that has not converged.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows of `matrix.csv`.
    """
    known = frame[frame["cell"].isin([EXACT, AGAIN, *METHODS]) & (frame["prior"] != FLAT)]
    known = known.assign(share=known["p_off"] / known["p_off_base"])
    groups = list(dict.fromkeys(_group(row) for row in known.to_dict("records")))
    with style.style():
        figure, axes = style.blank(len(PANELS) * len(METHODS), 0.9 + _ROW * len(groups), rows=1)
        figure.set_size_inches(style.WIDTH * 1.35, 1.7 + _ROW * len(groups))
        for axis in axes[1:]:
            axis.sharey(axes[0])
            axis.tick_params(labelleft=False)
        for i, (number, title, limits, lines) in enumerate(PANELS):
            for j, method in enumerate(METHODS):
                axis = axes[i * len(METHODS) + j]
                _strip(axis, known, groups, method, number, limits, lines)
                above = f"{title}\n\n" if j == len(METHODS) // 2 else ""  # over the middle strip
                axis.set_title(above + _SAID.get(method, method), fontsize=9)
        axes[0].set_yticks(range(len(groups)), [" ".join(g) for g in groups], fontsize=8)
        axes[0].set_ylim(len(groups) - 0.4, -0.6)
        shown = [p for p in MARKS if p in set(known["prior"])]
        handles = [
            axes[0].plot([], [], MARKS[p][0], color=MARKS[p][1], ms=5, label=p.replace("_", " "))[0]
            for p in shown
        ]
        handles += [
            axes[0].plot([], [], "o", color="0.4", mfc="none", ms=5, label="exact: not converged")[
                0
            ],
            axes[0].plot([], [], "|", color="0.5", ms=6, label="second exact run")[0],
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return Picture(figure, alt(frame))


_SAID = {PAPERS: "paper's algorithm"}


def alt(frame: pd.DataFrame) -> str:
    """Return the figure in words: the median of each method under each prior."""
    parts = []
    for method in METHODS:
        for prior, rows in frame[frame["cell"] == method].groupby("prior", sort=False):
            off, width = (rows["p_off"] / rows["p_off_base"]).median(), rows["eta_width"].median()
            parts.append(
                f"{method} under {prior}: P(y = 1) off by {off:.2f} of a constant's distance, "
                f"width ratio {width:.2g}"
            )
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
    if number == SHARE:
        axis.set_xticks([0.0, 0.5, 1.0], ["0", "½", "1"])
    else:
        axis.set_xscale("log")
        axis.set_xticks([0.01, 0.1, 1.0, 10.0, 100.0], ["10⁻²", "0.1", "1", "10", "10²"])
        axis.minorticks_off()
    axis.set_xlim(low, high)
    for line in lines:
        axis.axvline(line, color="0.75", lw=0.8, zorder=0)
    axis.tick_params(axis="x", labelsize=8)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="y", lw=0.4)
    records = frame.to_dict("records")
    converged = {
        (_group(r), r["prior"]) for r in records if r["cell"] == EXACT and r["status"] == "finished"
    }
    place = {prior: 0.26 * (k - 1) for k, prior in enumerate(("sparse", "dense", "diffuse"))}
    place |= {"independent": -0.14, "printed_masks": 0.14}
    run = {
        (_group(r), r["prior"]) for r in records if r["cell"] == method and r[number] == r[number]
    }
    for row in (r for r in records if r["cell"] in (AGAIN, method)):
        if (_group(row), row["prior"]) not in run:
            continue
        value, y = row[number], groups.index(_group(row)) + place.get(row["prior"], 0.0)
        if row["cell"] == AGAIN:
            axis.plot(value, y, "|", color="0.5", ms=5)
            continue
        mark, colour = MARKS[row["prior"]]
        solid = (_group(row), row["prior"]) in converged
        axis.plot(
            min(max(value, low), high), y, mark, color=colour, ms=4.0,
            mfc=colour if solid else "none", clip_on=False,
        )  # fmt: skip
        if not low <= value <= high:
            side = -1 if value < low else 1
            axis.annotate(
                "‹" if side < 0 else "›", (low if side < 0 else high, y), (side * 6, -1),
                textcoords="offset points", ha="center", va="center", color=colour, fontsize=9,
                annotation_clip=False,
            )  # fmt: skip
