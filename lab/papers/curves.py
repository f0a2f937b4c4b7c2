"""Accuracy and log score against the number of features kept, along each path, one figure a set."""

from pathlib import Path

import numpy as np

from lab.papers import store
from lab.papers.protocols import LEAVE_ONE_OUT, Group, Row
from lab.papers.statistics import mean_error

PANELS = {"accuracy": "accuracy, %", "log_score": "mean log score"}


def path_of(group: Group, row: Row, folder: Path) -> tuple[np.ndarray, int]:
    """Return a row a step: mean features, mean accuracy and error, mean log score and error.

    Folds with all their steps are counted; their number is returned beside it.
    """
    whole, points = store.whole_paths(group, row, folder), []
    for step in map(str, row.steps) if whole else ():
        lines = [fold[step] for fold in whole]
        point = [float(np.mean([float(x["features"]) for x in lines]))]
        for column in PANELS:
            once = column == "accuracy" and group.protocol is LEAVE_ONE_OUT
            point += mean_error((float(x[column]) for x in lines), once)
        points.append(point)
    return np.array(points), len(whole)


def found(group: Group, folder: Path) -> list[tuple[Row, np.ndarray, int]]:
    """Return the group's paths that have folds."""
    every = [(row, *path_of(group, row, folder)) for row in group.rows if row.steps]
    return [path for path in every if path[2]]


def contents(group: Group, folder: Path) -> list[str]:
    """Return what is in the group's figure, in words; empty where there is none."""
    of = group.folds
    return [f"`{row.label}` ({n} of {of} folds)" for row, _, n in found(group, folder)]


def draw(group: Group, file: Path, folder: Path) -> None:
    """Draw the group's paths, if it has any."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    every = found(group, folder)
    if not every:
        return
    N, D, larger = group.sizes
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    chance = {"accuracy": larger, "log_score": larger * np.log(larger)}
    chance["log_score"] += (1.0 - larger) * np.log(1.0 - larger)
    for i, (axis, (column, label)) in enumerate(zip(axes, PANELS.items(), strict=True)):
        unit = 100.0 if column == "accuracy" else 1.0
        for row, points, _ in every:
            points = points[points[:, 0] >= 0.5]
            axis.errorbar(
                points[:, 0], unit * points[:, 1 + 2 * i], unit * points[:, 2 + 2 * i],
                marker="o", markersize=3, linewidth=1, capsize=2, label=row.label,
            )  # fmt: skip
        axis.axhline(unit * chance[column], color="grey", linewidth=0.8, linestyle=":")
        axis.set_xscale("log")
        axis.set_xlim(0.5, 1.3 * D)
        axis.set_xlabel("features kept, mean over folds")
        axis.set_ylabel(label)
    axes[0].legend(fontsize=8)
    figure.suptitle(f"{group.data}, {N} x {D}, {group.protocol.name}", fontsize=10)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=80, metadata={"Software": None})
    plt.close(figure)
