"""The picture of FINDINGS.md: P(y = 1) of each patient, by a paper's algorithm and exactly.

    ARDVARK_DATA=... python -m lab.findings.patients [MODEL ...]

It fits what is missing in `patients.csv`, some minutes in all, and draws
`lab/findings/findings.png`. Both fits of a paper have the same prior and the same rows; no row is
left out. PFCVM, RFVM and FS-SKLR are blocks of the matrix, whose `p_off` is the mean distance of a
panel's dots from the diagonal. JCFO has the gammas and the genes that its own algorithm chooses, as
in the row `exact-chosen` of the papers' tables, because at the gammas that our rule fills its
posterior is close to its prior.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ardvark.inference.comparison.report import style
from ardvark.inference.methods import run
from ardvark.inference.scoring.quantities import fitted
from ardvark.models import Problem
from lab.matrix.declared import BLOCKS, EXACT, PAPERS
from lab.papers import fold
from lab.problems import problem as problem_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STORED = Path(__file__).with_name("patients.csv")
PICTURE = Path(__file__).with_name("findings.png")
DRAWS = 500
"""A chain, of four, at least: as in the matrix."""
WIDTH, HEIGHT = 10.0, 3.5  # inches
_DARK, _LIGHT = "#004166", "#E69F00"
"""Of y = 1 and y = 0: a dark filled disc and a light open ring, which differ in grey too."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A paper's panel.

    Attributes
    ----------
    name : str
        The paper's model, as the page calls it.
    data : str
    rows : str
        What a dot is.
    finding : str
        The title, which the tests hold against the numbers.
    block : str
        In the matrix; "" for JCFO.
    """

    name: str
    data: str
    rows: str
    finding: str
    block: str = ""


PANELS = (
    Panel(name="PFCVM", data="golub", rows="golub: 72 patients", block="pfcvm/golub/sparse",
          finding="nearly the same answer\nfor every patient"),
    Panel(name="RFVM", data="leukemia_discrete", rows="the same patients",
          block="rfvm/leukemia_discrete/sparse",
          finding="the same answer\nfor every patient"),
    Panel(name="JCFO", data="colon", rows="colon: 62 tissue samples",
          finding="less sure than\nthe posterior"),
    Panel(name="FS-SKLR", data="heart", rows="heart: 270 patients", block="fsklr/heart/independent",
          finding="about right, but\noff for single patients"),
)  # fmt: skip


# --- fits -----------------------------------------------------------------------------------------


def missing() -> list[Panel]:
    """Return the panels without stored rows."""
    held = set(stored()["model"])
    return [panel for panel in PANELS if panel.name not in held]


def fits(panel: Panel) -> pd.DataFrame:
    """Return a row for each patient: the label, P(y = 1) exactly and by the paper's algorithm.

    Raises
    ------
    RuntimeError
        The exact posterior has not converged.
    """
    problem, method, options = _jcfo() if panel.name == "JCFO" else _of_block(panel.block)
    both = []
    for name, given in (("exact", {}), (method, options)):
        tree = run.fit(
            problem, name, draws=DRAWS, chains=4, random_seed=1, progressbar=False,
            keep="shared", **given,
        )  # fmt: skip
        if name == "exact" and tree.attrs["status"] != "finished":
            raise RuntimeError(f"{panel.name}: {tree.attrs['reason']}")
        draws = fitted(tree)
        assert draws is not None
        both.append(draws.mean(axis=(0, 1)))
    place = {"model": panel.name, "data": panel.data}
    return pd.DataFrame({**place, "y": problem.y, "exact": both[0], "paper": both[1]})


def _of_block(name: str) -> tuple[Problem, str, dict[str, Any]]:
    """Return a block's problem, and the paper's algorithm with its options there."""
    cells = {cell.label: cell for cell in BLOCKS[name].cells}
    assert EXACT in cells
    return BLOCKS[name].problem(), cells[PAPERS].method, dict(cells[PAPERS].options)


def _jcfo() -> tuple[Problem, str, dict[str, Any]]:
    """Return JCFO on the genes and at the gammas that its algorithm chooses, and the algorithm."""
    group, row = fold.find("jcfo-1/colon/exact-chosen")
    data = fold.load(group.name)
    gammas, genes = fold.choice_of_jcfo(row, data)
    problem = problem_of("jcfo", fold.with_features(data, genes), **{**row.hypers, **gammas})
    return problem, "jcfo_em", {"starts": 1}


# --- the picture ----------------------------------------------------------------------------------


def stored() -> pd.DataFrame:
    """Return the stored rows, numbers as numbers."""
    return pd.read_csv(STORED)


def draw(frame: pd.DataFrame) -> style.Picture:
    """Draw a panel for each paper: a dot a patient, its P(y = 1) exactly and by the algorithm."""
    with style.style():
        figure, axes = style.beside([1.0] * len(PANELS), HEIGHT)
        figure.set_size_inches(WIDTH, HEIGHT)
        for axis, panel in zip(axes, PANELS, strict=True):
            _panel(axis, panel, frame[frame["model"] == panel.name])
        axes[0].set_ylabel("P(y = 1) by the paper's algorithm")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return style.Picture(figure, alt(frame))


def _panel(axis: "Axes", panel: Panel, rows: pd.DataFrame) -> None:
    axis.plot([0.0, 1.0], [0.0, 1.0], color="0.55", lw=1.0, zorder=1, label="algorithm = posterior")
    size = 5.0 if len(rows) < 100 else 3.5
    for y, colour, face in ((1, _DARK, _DARK), (0, _LIGHT, "none")):
        mine = rows[rows["y"] == y]
        axis.plot(
            mine["exact"], mine["paper"], "o", color=colour, mfc=face, ms=size, mew=1.2,
            alpha=0.75, clip_on=False, label=f"a row with y = {y}",
        )  # fmt: skip
    axis.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xticks=[0.0, 0.5, 1.0], yticks=[0.0, 0.5, 1.0])
    axis.set_aspect("equal")
    title = f"{panel.name}\n{panel.finding}"
    axis.set_title(title, fontsize=10.5, fontweight="bold", loc="left")
    axis.set_xlabel(f"P(y = 1), exact posterior\n{panel.rows}")


def alt(frame: pd.DataFrame) -> str:
    """Return the picture in words."""
    parts = []
    for panel in PANELS:
        rows = frame[frame["model"] == panel.name]
        exact, paper = (rows[name] for name in ("exact", "paper"))
        parts.append(
            f"{panel.name} on {panel.data}: exact {exact.min():.2f} to {exact.max():.2f}, the "
            f"algorithm {paper.min():.2f} to {paper.max():.2f}"
        )
    return f"P(y = 1) of each patient, under the same prior. {'; '.join(parts)}."


def main(names: list[str]) -> None:
    """Fit what is missing, of the models that are named or of all; draw when nothing is."""
    for panel in missing():
        if names and panel.name not in names:
            continue
        frame = pd.concat([stored(), fits(panel)], ignore_index=True)
        frame.to_csv(STORED, index=False, float_format="%.4f", lineterminator="\n")
        print(panel.name, flush=True)
    if not missing():
        PICTURE.write_bytes(draw(stored())._repr_png_())


if __name__ == "__main__":
    main(sys.argv[1:])
