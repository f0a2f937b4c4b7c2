"""The picture of FINDINGS.md: P(y = 1) of rows left out, by a paper's algorithm and exactly.

    python -m lab.findings.picture

Nothing is fitted. A column is a paper on one data set of its own tables: a set of `left_out`, or
patients left out one at a time (`patients`). In the top row the algorithm is at the paper's
settings; in the bottom row it has the prior of the exact posterior. P is by its own formula.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ardvark.inference.comparison.report import style
from lab.findings import distances, left_out, patients
from lab.findings.patients import KINDS, off, wrong_and_sure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE = Path(__file__).with_name("findings.png")
WIDTH, HEIGHT = 11.5, 7.6  # inches
_DARK, _LIGHT = "#004166", "#E69F00"
"""Of y = 1 and y = 0: a dark filled disc and a light open ring, which differ in grey too."""
TITLE = "P(y = 1) of rows left out: an algorithm beside a posterior computed without approximation"
SUBTITLE = (
    "On the diagonal both agree; that does not make either right. Top row: the priors differ too, "
    "so a gap is not the approximation's alone.\n"
    "Bottom row: one prior for both. Our sparse prior is in no paper, so the flat lines are not "
    "what a paper proposes. Sure: 0.9 or more for a class."
)
LABELS = {"own": left_out.OWN, "same": left_out.SAME}


@dataclass(frozen=True, kw_only=True)
class Column:
    """A paper on a data set; `kept` is its set of `left_out`, or empty: it is of `patients`."""

    name: str
    data: str
    prior: str
    kept: str = ""


COLUMNS = (
    Column(name="PFCVM", data="colon", prior="our sparse prior"),
    Column(name="JCFO", data="colon", prior="JCFO's prior, gammas chosen"),
    Column(
        name="FS-SKLR", data="heart", prior="FS-SKLR's prior, (12) to (15)",
        kept="fsklr/heart/independent",
    ),
    Column(
        name="RFVM", data="colon_discrete", prior="our sparse prior",
        kept="rfvm/colon_discrete/sparse",
    ),
)  # fmt: skip


def dots(column: Column) -> pd.DataFrame:
    """Return a row for each row left out: its label, and P(y = 1) exactly and by the algorithm."""
    if not column.kept:
        frame = patients.stored()
        mine = (frame["model"] == column.name) & (frame["data"] == column.data)
        return frame[mine]
    folds = distances.folds_of(left_out.SETS[column.kept])
    answers = {kind: distances.answers(folds, label) for kind, label in LABELS.items()}
    exact = distances.answers(folds, left_out.EXACT)
    return pd.DataFrame({"y": distances.of_rows(folds, "y").astype(int), "exact": exact, **answers})


def draw() -> style.Picture:
    """Draw a column for each paper: a dot a row left out, exactly and by the algorithm."""
    frames = {column: dots(column) for column in COLUMNS}
    with style.style():
        figure, axes = style.blank(len(KINDS) * len(COLUMNS), HEIGHT, rows=len(KINDS))
        figure.set_size_inches(WIDTH, HEIGHT)
        for axis, (kind, column) in zip(axes, itertools.product(KINDS, COLUMNS), strict=True):
            _panel(axis, column, frames[column], kind)
            if column is COLUMNS[0]:
                axis.set_ylabel(f"P(y = 1), algorithm\n{KINDS[kind]}")
            if kind == "same":
                axis.set_xlabel(f"P(y = 1), exact posterior\nboth: {column.prior}")
        figure.suptitle(f"{TITLE}\n{SUBTITLE}", x=0.01, ha="left", fontsize=11.0)
        handles = dict(
            pair[::-1]
            for axis in axes
            for pair in zip(*axis.get_legend_handles_labels(), strict=True)
        )
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return style.Picture(figure, alt(frames))


def _panel(axis: "Axes", column: Column, rows: pd.DataFrame, kind: str) -> None:
    axis.plot([0.0, 1.0], [0.0, 1.0], color="0.55", lw=1.0, zorder=1, label="algorithm = posterior")
    for y, colour, face in ((1, _DARK, _DARK), (0, _LIGHT, "none")):
        mine = rows[rows["y"] == y]
        axis.plot(
            mine["exact"], mine[kind], "o", color=colour, mfc=face, ms=3.6, mew=1.0, alpha=0.7,
            clip_on=False, label=f"y = {y}",
        )  # fmt: skip
    for name, who, mark in ((kind, "algorithm", "x"), ("exact", "posterior", "+")):
        sure = rows[wrong_and_sure(rows, name)]
        if len(sure):  # the layout of a figure fails on an empty line that is not clipped
            axis.plot(
                sure["exact"], sure[kind], mark, color="black", ms=7, mew=1.2, zorder=3,
                clip_on=False, label=f"{who} wrong and sure",
            )  # fmt: skip
    axis.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xticks=[0.0, 0.5, 1.0], yticks=[0.0, 0.5, 1.0])
    axis.set_aspect("equal")
    ours = kind == "same" and column.prior.startswith("our")
    name = f"{column.name}'s optimiser, our prior" if ours else f"{column.name} on {column.data}"
    title = f"{name}\n{said(rows, kind)}"
    axis.set_title(title, fontsize=9.5, loc="left")


def said(rows: pd.DataFrame, kind: str) -> str:
    """Return what a panel's title says: how far apart both are, and how many are wrong and sure."""
    counts = [wrong_and_sure(rows, name).sum() for name in (kind, "exact")]
    apart = f"apart by {off(rows, kind):.2f} on average"
    return f"{apart}\nwrong and sure: {counts[0]} of {len(rows)} (exact: {counts[1]})"


def alt(frames: dict[Column, pd.DataFrame]) -> str:
    """Return the picture in words."""
    parts = [
        f"{column.name} on {column.data}, {where}: {said(rows, kind)}".replace("\n", " ")
        for column, rows in frames.items()
        for kind, where in KINDS.items()
    ]
    return f"P(y = 1) of each row left out. {'; '.join(parts)}."


def main() -> None:
    """Draw it."""
    PICTURE.write_bytes(draw()._repr_png_())


if __name__ == "__main__":
    main()
