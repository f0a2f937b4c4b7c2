"""Every figure of a comparison: its name, what draws it, of what, and how to read it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from . import judging_plots, plots
from .look import Picture

Kind = Literal["forest", "eta", "frontier", "image", "samples", "pair", "calibration", "ranks"]


@dataclass(frozen=True)
class Figure:
    """One kind of figure.

    Attributes
    ----------
    draw : callable
        (what is drawn, reference, subject, **settings) -> Picture; it raises `InputError` where
        these fits cannot be drawn so.
    of : {"fits", "table", "held_out"}
        What is drawn: an attribute of the comparison.
    reading : str
        How to read it, in a sentence or two.
    """

    draw: Callable[..., Picture]
    of: Literal["fits", "table", "held_out"]
    reading: str


FIGURES: dict[Kind, Figure] = {
    "frontier": Figure(
        judging_plots.frontier, "table",
        "Lower left is better. Below the dotted line an error is the reference's own noise.",
    ),
    "eta": Figure(
        plots.eta, "fits",
        "On the diagonal a mean is right; a bar that is shorter upright than across is "
        "overconfident.",
    ),
    "forest": Figure(
        plots.forest, "fits",
        "Features in the order of P(active). A method whose bars miss the black one is wrong about "
        "a weight, one whose bars are shorter is overconfident.",
    ),
    "image": Figure(
        plots.image, "fits", "The same for features that are pixels, each at its place.",
    ),
    "samples": Figure(
        plots.samples, "fits", "Samples in the order of P(active); their weights have a sign.",
    ),
    "pair": Figure(
        plots.pair, "fits",
        "Of the leading features, the two with the most negative posterior correlation. Grey is "
        "the reference: a method whose cloud is round where that is a ridge treats them as "
        "independent.",
    ),
    "calibration": Figure(
        judging_plots.calibration, "held_out",
        "A curve that leaves the band says that the probabilities do not hold: flatter than the "
        "diagonal is overconfident, steeper is too cautious.",
    ),
    "ranks": Figure(
        judging_plots.ranks, "fits",
        "One line a chain. Chains that agree stay around zero; black points mark where they do "
        "not.",
    ),
}  # fmt: skip
"""Every figure, by the name that `Comparison.plot` takes, in the order of the page."""
