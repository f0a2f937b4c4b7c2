"""The common style of all figures, and what a figure is: a picture, its description, its marks.

A title is a sentence that states what was found; the problem stands before it. Methods differ by
colour and by the shape of their marks, so that figures can be read in grey.

ArviZ draws through pyplot. Its figures are closed there at once, so that none is shown twice in a
notebook and none stays in memory. The reference is black. The other methods have the colours of
Okabe and Ito, which colour-blind readers can distinguish.
"""

import base64
import io
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.5
"""Inches: as wide as a page; text of 9 points is then legible on a screen."""
ACROSS = 3
"""Panels in a row, at most."""
DPI = 110
_TITLE = 84  # characters in a line of a title
_ENTRIES = 5  # in a line of a legend
SPOTS = 1000
"""Places of a figure that answer to a pointer, at most."""

_LEFT: dict[str, Any] = {"x": 0.01, "ha": "left"}
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKS = ("s", "^", "D", "v", "P", "X")
_STYLE: dict[Any, Any] = {
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "figure.titlesize": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Spot:
    """A place in a figure, and what a pointer over it says."""

    axes: "Axes"
    x: float
    y: float
    text: str


@dataclass(frozen=True, repr=False)
class Picture:
    """A figure with its description in words.

    Attributes
    ----------
    figure : matplotlib Figure
    alt : str
        A description for readers who cannot see it.
    spots : sequence of Spot
        Names and values of what is drawn, the most important first.
    """

    figure: "Figure"
    alt: str
    spots: Sequence[Spot] = ()

    def __repr__(self) -> str:
        return textwrap.fill(self.alt, 80)

    @contextmanager
    def untitled(self) -> Iterator[str]:
        """Yield the title, and draw without it meanwhile: text that stands above wraps better."""
        title = self.figure.get_suptitle()
        self.figure.suptitle("", **_LEFT)
        yield " ".join(title.split())
        self.figure.suptitle(title, **_LEFT)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=DPI)
        return buffer.getvalue()

    def png(self) -> str:
        """Return the picture, base64."""
        return base64.b64encode(self._repr_png_()).decode()

    def places(self) -> list[tuple[float, float, str]]:
        """Return each spot inside the picture as shares of its width and height, from the top."""
        self.figure.draw_without_rendering()  # the layout is known only now
        width, height = self.figure.get_size_inches() * self.figure.dpi
        out = []
        for spot in self.spots[:SPOTS]:
            x, y = spot.axes.transData.transform((spot.x, spot.y))
            if 0.0 <= x <= width and 0.0 <= y <= height:
                out.append((float(x / width), float(1.0 - y / height), spot.text))
        return out


@contextmanager
def style() -> Iterator[None]:
    """Draw in the common style; the user's own settings are restored afterwards."""
    import matplotlib

    _shown_in_this_cell()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def _shown_in_this_cell() -> None:
    """Let a notebook show a figure as a picture, even if pyplot has not made any figure yet.

    A kernel is set up for that when pyplot makes its first figure, which ours may not come from.
    """
    if "ipykernel" not in sys.modules:
        return
    from IPython import get_ipython
    from IPython.core.pylabtools import select_figure_formats
    from matplotlib.figure import Figure

    shell = get_ipython()
    try:
        if shell is not None:
            shell.display_formatter.formatters["image/png"].lookup_by_type(Figure)
    except KeyError:  # nothing is said of figures
        select_figure_formats(shell, {"png"})


def blank(panels: int = 1, height: float = 2.6, rows: int = 0) -> "tuple[Figure, list[Axes]]":
    """Return (figure, axes) with this many panels, `ACROSS` per row unless rows are given.

    `height` is that of a row, in inches.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = -(-panels // rows) if rows else min(panels, ACROSS)
    down = -(-panels // across)
    figure = Figure(figsize=(WIDTH, height * down + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(down, across, squeeze=False).ravel())
    for spare in axes[panels:]:
        spare.remove()
    return figure, axes[:panels]


def beside(widths: Sequence[float], height: float) -> "tuple[Figure, list[Axes]]":
    """Return (figure, axes) with panels of these relative widths, side by side in one row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    across = figure.subplots(1, len(widths), squeeze=False, width_ratios=list(widths))
    return figure, list(across.ravel())


def figure_of(collection: Any, height: float) -> "Figure":
    """Return the figure that ArviZ drew, of the common width, closed in pyplot."""
    import matplotlib.pyplot as plt

    figure: Figure = collection.viz["figure"].item()
    plt.close(figure)
    figure.set_size_inches(WIDTH, height)
    figure.set_layout_engine("constrained")
    return figure


def colours(methods: Sequence[str], reference: str | None) -> dict[str, str]:
    """Return a colour for each method, black for the reference."""
    others = iter(_COLOURS * (len(methods) // len(_COLOURS) + 1))
    return {m: "black" if m == reference else next(others) for m in methods}


def marks(methods: Sequence[str], reference: str | None) -> dict[str, str]:
    """Return the shape of each method's marks, a circle for the reference."""
    others = iter(_MARKS * (len(methods) // len(_MARKS) + 1))
    return {m: "o" if m == reference else next(others) for m in methods}


def label(method: str, reference: str | None) -> str:
    """Return how a method is called in a legend or a title."""
    return f"{method} (reference)" if method == reference else method


def legend(
    figure: "Figure",
    colours: Mapping[str, str],
    shapes: Mapping[str, str],
    ticks: Mapping[str, str] | None = None,
) -> None:
    """Name the colours and shapes of points, and the colours of upright ticks, below a figure."""
    from matplotlib.lines import Line2D

    shown = [Line2D([], [], marker=shapes[name], color=c) for name, c in colours.items()]
    for c in (ticks or {}).values():
        shown.append(Line2D([], [], color=c, marker="|", ms=10, mew=2.0, ls=""))
    names = [*colours, *(ticks or {})]
    rows = -(-len(shown) // _ENTRIES)
    figure.legend(shown, names, loc="outside lower center", ncols=-(-len(shown) // rows))


def entitle(figure: "Figure", finding: str, subject: str) -> None:
    """Write the title of a figure: the problem, and what the figure shows of it.

    It starts at the left, where a narrow screen begins, and long ones take several lines.
    """
    title = f"{subject}: {finding}" if subject else f"{finding[:1].upper()}{finding[1:]}"
    figure.suptitle(textwrap.fill(title, _TITLE, break_on_hyphens=False), **_LEFT)
