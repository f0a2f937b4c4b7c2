"""Every figure of a comparison: its name, its function, its data and how to read it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from . import forest, plots, reliability, variables
from .style import Picture

Kind = Literal["forest", "variables", "curve", "eta", "samples", "reliability"]


@dataclass(frozen=True)
class Figure:
    """One kind of figure.

    Attributes
    ----------
    draw : callable
        (what is drawn, reference, subject, **settings) -> Picture. It raises `InputError` if these
        fits cannot be drawn in this way.
    of : {"fits", "held_out"}
        What is drawn: an attribute of the comparison.
    reading : str
        How to read it, in a sentence or two.
    """

    draw: Callable[..., Picture]
    of: Literal["fits", "held_out"]
    reading: str


FIGURES: dict[Kind, Figure] = {
    "eta": Figure(
        plots.eta, "fits",
        "A point on the diagonal has the right mean. A method is overconfident where its upright "
        "bar is shorter than the reference's bar across it.",
    ),
    "forest": Figure(
        forest.forest, "fits",
        "The features that most probably have an effect. The sign of an effect is its direction. A "
        "method is wrong about an effect where its bar misses the reference's, and overconfident "
        "where its bar is shorter. Left, the probability that the effect is above the threshold; a "
        "grey mark is its value under the prior.",
    ),
    "variables": Figure(
        variables.variables, "fits",
        "The variables of a model of your own in which the fits differ most. A method is wrong "
        "about one where its bar misses the reference's, which lies around zero, and overconfident "
        "where its bar is shorter.",
    ),
    "curve": Figure(
        plots.curve, "fits",
        "How large an effect has to be to matter is for the reader to say: each line is the "
        "probability that the effect of a feature is above that. Where it is near the grey line of "
        "the prior, the data have said nothing. The dotted line is the threshold of the tables.",
    ),
    "samples": Figure(
        partial(forest.forest, what="sample"), "fits",
        "The same for samples, per standard deviation of their basis functions.",
    ),
    "reliability": Figure(
        reliability.reliability, "held_out",
        "The probabilities are not reliable where a curve leaves the band. A curve flatter than "
        "the diagonal is overconfident; a steeper one is too cautious.",
    ),
}  # fmt: skip
"""Every figure, by the name that `Comparison.plot` takes, in the order of the page."""
