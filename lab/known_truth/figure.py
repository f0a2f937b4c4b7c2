"""The figure of `known_truth.py`: what is found, promised and predicted, by method."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.known_truth.results import Results

LINES = {
    "pfcvm, exact": ("o-", "#0072b2"),
    "rfvm, exact": ("s-", "#004166"),
    "horseshoe, exact": ("^-", "#009e73"),
    "pfcvm_lp, printed updates": ("o--", "#d55e00"),
    "rfvm_vb, printed updates": ("s--", "#e69f00"),
}
"""Mark and colour of a line; an algorithm's is dashed, and its mark is that of its model."""
FEWEST = 10
"""Features of a bin that is drawn."""


def draw(found: Results, path: Path) -> None:
    """Draw what is found, what P(active) promises, how reliable it is, and the log score."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 7.6), layout="constrained")
    (power, reliable), (false, score) = figure.subplots(2, 2)
    _dots(power, found, found.methods, (("power_20", "s", "20 %"), ("power_10", "o", "10 %")))
    power.set_title("Active features found, at a false discovery proportion of ...", fontsize=10)
    power.set_xlabel("share of the active features")
    power.set_xlim(-0.02, 1.02)
    _reliable(reliable, found)
    _promised(false, found)
    predicting = found.predicting
    _dots(score, found, predicting, (("lost", "o", ""),))
    score.set_title("Prediction: log score below the best possible", fontsize=10)
    score.set_xlabel("nats a fresh row; the line is P(y = 1) = 1/2")
    coin = found.mean(found.methods[0], "best_log_score").value + np.log(2.0)
    worst = max(found.mean(m, "lost").value for m in predicting)
    score.set_xlim(0.0, 1.06 * max(coin, worst))
    score.axvline(coin, color="0.6", lw=0.8)
    figure.savefig(path, dpi=110)


def _dots(
    axis: Any, found: Results, methods: list[str], shown: Sequence[tuple[str, str, str]]
) -> None:
    """Draw means and their standard errors, a line of the axis for each method."""
    for i, (name, mark, label) in enumerate(shown):
        estimates = [found.mean(m, name) for m in methods]
        axis.errorbar(
            [e.value for e in estimates],
            np.arange(len(methods)) + 0.16 * i - 0.08 * (len(shown) - 1),
            xerr=[e.error for e in estimates], fmt=mark, ms=5, lw=1.0,
            color=("#0072b2", "black")[i], mfc=("#0072b2", "white")[i], label=label,
        )  # fmt: skip
    _rows(axis, methods, below=1.0 if len(shown) > 1 else 0.0)
    if len(shown) > 1:
        axis.legend(fontsize=8, loc="lower right", ncols=2)


def _rows(axis: Any, methods: list[str], below: float) -> None:
    """Name the lines of an axis, with room for a legend below them."""
    axis.set_yticks(range(len(methods)), methods, fontsize=8)
    axis.set_ylim(len(methods) - 0.5 + below, -0.5)
    axis.grid(axis="y", color="0.9", lw=0.6)
    axis.set_axisbelow(True)


def _reliable(axis: Any, found: Results) -> None:
    axis.plot([0.0, 1.0], [0.0, 1.0], color="0.6", lw=0.8)
    for m in (m for m in found.judged if m in LINES):
        mark, colour = LINES[m]
        axis.plot([], [], mark, color=colour, ms=4, lw=1.0, label=m)
        kept = [(p, share.value, share.error) for n, p, share in found.bins(m) if n >= FEWEST]
        if kept:
            p, share, error = np.array(kept).T
            axis.errorbar(p, share, yerr=error, fmt=mark, color=colour, ms=4, lw=1.0)
    axis.set_title("Reliability of P(active)", fontsize=10)
    axis.set_xlabel(f"P(active), mean of a bin of at least {FEWEST} features")
    axis.set_ylabel("share that is active")
    axis.set_xlim(-0.02, 1.02)
    axis.set_ylim(-0.02, 1.02)
    axis.legend(fontsize=7, loc="upper left")


def _promised(axis: Any, found: Results) -> None:
    methods = found.judged
    for i, m in enumerate(methods):
        for which, mark, shift in (("half", "s", -0.14), ("fdr", "o", 0.14)):
            promised, (share, error, _) = found.expected(m, which), found.false(m, which)
            axis.plot([promised, share], [i + shift] * 2, color="0.7", lw=1.0, zorder=1)
            axis.plot(promised, i + shift, mark, ms=5, color="black", mfc="white")
            axis.errorbar(share, i + shift, xerr=error, fmt=mark, ms=5, lw=1.0, color="#d55e00")
    for mark, said in (("s", "P(active) > 1/2"), ("o", "FDR 10 %")):
        axis.plot([], [], mark, ms=5, color="black", mfc="white", label=f"{said}: promised")
        axis.plot([], [], mark, ms=5, color="#d55e00", label=f"{said}: realised")
    _rows(axis, methods, below=1.4)
    axis.set_title("False features in a method's lists: promised and realised", fontsize=10)
    axis.set_xlabel("share of the listed features")
    axis.set_xlim(-0.02, 1.02)
    axis.legend(fontsize=7, loc="lower center", ncols=2)
