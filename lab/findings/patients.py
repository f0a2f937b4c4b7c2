"""The picture of FINDINGS.md: P(y = 1) of patients left out, by a paper's algorithm and exactly.

    ARDVARK_DATA=... python -m lab.findings.patients

Nothing is fitted: each patient of a gene set is left out once in the papers' tables, whose folds
have the log of the probability that a row gave to the true label. `patients.csv` has what follows
from it, and `findings.png` is drawn from that. RFVM's and FS-SKLR's tables leave out a fifth of the
rows at a time and keep one mean a fold, so they have no dots.

Of each paper there are two rows of the tables: its algorithm at its own settings, and under the
prior of the exact posterior beside it. PFCVM's exact posterior is that of our sparse prior. JCFO's
has the gammas and the genes that its algorithm, with the rates corrected, chooses in each fold; at
its own settings it has its printed rates, and chooses for itself.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ardvark.inference.comparison.report import style
from lab.papers import fold, store
from lab.papers.protocols import split

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STORED = Path(__file__).with_name("patients.csv")
PICTURE = Path(__file__).with_name("findings.png")
FOLDS = Path(__file__).parents[1] / "paper_check" / "folds"
SURE = 0.9
"""P of a class from which on a method is called sure of it."""
WIDTH, HEIGHT = 9.5, 7.2  # inches
_DARK, _LIGHT = "#004166", "#E69F00"
"""Of y = 1 and y = 0: a dark filled disc and a light open ring, which differ in grey too."""
TITLE = "Patients left out: how far an algorithm is from the exact posterior at that prior"
KINDS = {"own": "at the paper's settings", "same": "under the exact one's prior"}


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A paper on a data set: a column of the picture.

    Attributes
    ----------
    name : str
        The paper's model, as the page calls it.
    table, data : str
        Of the papers' tables.
    exact, own, same : str
        Rows of that table: the exact posterior, the algorithm at the paper's settings, and the
        algorithm under the exact posterior's prior.
    prior : str
        That prior.
    """

    name: str
    table: str
    data: str
    exact: str
    own: str
    same: str
    prior: str


PANELS = (
    *(
        Panel(name="PFCVM", table="pfcvm-6", data=data, exact="exact", own="pfcvm_lp",
              same="pfcvm_lp-model", prior="our sparse prior")
        for data in ("colon", "golub")
    ),
    Panel(name="JCFO", table="jcfo-1", data="colon", exact="exact-chosen", own="jcfo-printed",
          same="jcfo-one", prior="JCFO's, gammas chosen"),
)  # fmt: skip


# --- what is stored -------------------------------------------------------------------------------


def of_folds(panel: Panel) -> pd.DataFrame:
    """Return a row for each patient left out: the label, and P(y = 1) by each of three rows."""
    place = f"{panel.table}/{panel.data}"
    group, _ = fold.find(f"{place}/{panel.exact}")
    data = fold.load(group.name)
    y = np.array([data.y[split(group.protocol, data, k)[1]].item() for k in range(group.folds)])
    found = {"model": panel.name, "data": panel.data, "y": y}
    for kind in ("exact", *KINDS):
        _, row = fold.find(f"{place}/{getattr(panel, kind)}")
        lines = store.lines_of(group, row, FOLDS)
        right = np.exp([float(lines[k]["log_score"]) for k in range(group.folds)])
        found[kind] = np.where(y == 1, right, 1.0 - right)
    return pd.DataFrame(found)


def stored() -> pd.DataFrame:
    """Return the stored rows, numbers as numbers."""
    return pd.read_csv(STORED)


def of_panel(frame: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """Return the rows of a panel."""
    return frame[(frame["model"] == panel.name) & (frame["data"] == panel.data)]


def off(rows: pd.DataFrame, kind: str) -> float:
    """Return the mean distance of P(y = 1) from the exact one."""
    return float((rows[kind] - rows["exact"]).abs().mean())


def wrong_and_sure(rows: pd.DataFrame, kind: str) -> pd.Series:
    """Return which rows are sure of the class that is not the label."""
    return rows[kind].where(rows["y"] == 0, 1.0 - rows[kind]) >= SURE


# --- the picture ----------------------------------------------------------------------------------


def draw(frame: pd.DataFrame) -> style.Picture:
    """Draw a column for each paper and data set: a dot a patient, exactly and by the algorithm."""
    with style.style():
        figure, axes = style.blank(len(KINDS) * len(PANELS), HEIGHT, rows=len(KINDS))
        figure.set_size_inches(WIDTH, HEIGHT)
        places = itertools.product(KINDS, PANELS)
        for axis, (kind, panel) in zip(axes, places, strict=True):
            _panel(axis, panel, of_panel(frame, panel), kind)
            if panel is PANELS[0]:
                axis.set_ylabel(f"P(y = 1), algorithm\n{KINDS[kind]}")
            if kind == "same":
                axis.set_xlabel(f"P(y = 1), exact posterior\nunder {panel.prior}")
        figure.suptitle(TITLE, x=0.01, ha="left", fontweight="bold")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return style.Picture(figure, alt(frame))


def _panel(axis: "Axes", panel: Panel, rows: pd.DataFrame, kind: str) -> None:
    sure = rows[wrong_and_sure(rows, kind)]
    if len(sure):  # the layout of a figure fails on an empty line that is not clipped
        axis.plot(
            sure["exact"], sure[kind], "x", color="#B00020", ms=8, mew=1.5, zorder=3,
            clip_on=False, label="algorithm wrong and sure",
        )  # fmt: skip
    axis.plot([0.0, 1.0], [0.0, 1.0], color="0.55", lw=1.0, zorder=1, label="algorithm = posterior")
    for y, colour, face in ((1, _DARK, _DARK), (0, _LIGHT, "none")):
        mine = rows[rows["y"] == y]
        axis.plot(
            mine["exact"], mine[kind], "o", color=colour, mfc=face, ms=5.0, mew=1.2, alpha=0.75,
            clip_on=False, label=f"y = {y}",
        )  # fmt: skip
    axis.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xticks=[0.0, 0.5, 1.0], yticks=[0.0, 0.5, 1.0])
    axis.set_aspect("equal")
    title = f"{panel.name} on {panel.data}: {said(rows, kind)}"
    axis.set_title(title, fontsize=10.0, loc="left")


def said(rows: pd.DataFrame, kind: str) -> str:
    """Return the title of a panel: how far off, and how many are wrong and sure."""
    counts = [wrong_and_sure(rows, name).sum() for name in (kind, "exact")]
    return f"off by {off(rows, kind):.2f}\nwrong and sure: {counts[0]} (exact: {counts[1]})"


def alt(frame: pd.DataFrame) -> str:
    """Return the picture in words."""
    parts = []
    for panel in PANELS:
        rows = of_panel(frame, panel)
        for kind, where in KINDS.items():
            title = said(rows, kind).replace("\n", " ")
            parts.append(f"{panel.name} on {panel.data}, {where}: {title}")
    return f"P(y = 1) of each patient left out. {'; '.join(parts)}."


def main() -> None:
    """Store what the folds say, and draw it."""
    frame = pd.concat([of_folds(panel) for panel in PANELS], ignore_index=True)
    frame.to_csv(STORED, index=False, float_format="%.4f", lineterminator="\n")
    PICTURE.write_bytes(draw(frame)._repr_png_())


if __name__ == "__main__":
    main()
