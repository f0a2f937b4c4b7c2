"""The figure of a calibration: how far the ranks are from uniform ones."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIMULATIONS = 10_000  # of uniform ranks, for the width of the bands
_COLUMNS = 4


def band(replicates: int, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where, and between which limits (P,), the whole curve of uniform ranks lies.

    Parameters
    ----------
    replicates : int
        R, the number of ranks.
    share : float
        The probability, by simulation (Saeilynoja, Buerkner, Vehtari 2022, Stat. Comput. 32;
        ArviZ).
    """
    from arviz_stats.ecdf_utils import ecdf_pit

    any_ranks = (np.arange(replicates) + 0.5) / replicates
    rng = np.random.default_rng(0)
    x, _, low, high = ecdf_pit(any_ranks, share, _SIMULATIONS, rng=rng)
    return x, low - x, high - x


def difference(u: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the distribution function of ranks u (R,) minus that of uniform ones, at x (P,)."""
    return np.searchsorted(np.sort(u), x, side="right") / len(u) - x


def differences(ranks: Mapping[str, np.ndarray], share: float, title: str) -> "Figure":
    """Draw the distribution function of u minus that of a uniform one, quantity by quantity.

    If the curve is above zero on the left and below zero on the right, the draws are too narrow. If
    it is above zero everywhere, they are too high.

    Parameters
    ----------
    ranks : dict of array (R,)
        Ranks u by quantity.
    share : float
        The probability with which a single curve of a correct method lies in its band.
    title : str
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = math.ceil(len(ranks) / _COLUMNS)
    figure = Figure(figsize=(2.6 * _COLUMNS, 2.1 * rows + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, _COLUMNS, squeeze=False, sharex=True, sharey=True).ravel()
    x, low, high = band(len(next(iter(ranks.values()))), share)
    for axis, (name, u) in zip(axes, ranks.items(), strict=False):
        curve = difference(u, x)
        outside = ((curve < low) | (curve > high)).any()
        axis.fill_between(x, low, high, step="mid", color="0.88", lw=0)
        axis.axhline(0.0, color="0.6", lw=0.8)
        axis.step(x, curve, where="mid", color="#D55E00" if outside else "#0072B2", lw=1.4)
        axis.set_title(f"{name}{' (outside)' if outside else ''}", fontsize=8)
    for axis in axes[len(ranks) :]:
        axis.axis("off")
    figure.supxlabel("rank u of the true value among the draws", fontsize=8)
    figure.supylabel("share below u, minus u", fontsize=8)
    figure.suptitle(title, fontsize=10)
    return figure
