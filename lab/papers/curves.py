"""The figures of paths: accuracy and log score against the features kept, one figure a data set.

RFVM's stops have one more, with the sweeps on its horizontal axis.
"""

from pathlib import Path

import numpy as np

from lab.papers import store
from lab.papers.protocols import LEAVE_ONE_OUT, Group, Row
from lab.papers.statistics import mean_error
from lab.papers.tables import GROUPS

PANELS = {"accuracy": "accuracy, %", "log_score": "mean log score"}
STOPS = {"rfvm_vb": "printed updates", "rfvm_vb-released": "released"}
LAST = 5000  # sweeps: where RFVM's released code ends at the latest


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


def write(out: Path) -> None:
    """Draw every figure that there are stored folds for."""
    folder = out / "folds"
    for group in GROUPS:
        draw(group, out / "figures" / f"{group.name.replace('/', '_')}.png", folder)
    draw_stops(out / "figures" / "rfvm_stops.png", folder)


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


def draw_stops(file: Path, folder: Path) -> None:
    """Draw RFVM's features and accuracy against sweeps, a column for each data set."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    paths = [(group, _of_stops(group, folder)) for group in GROUPS if group.paper == "RFVM"]
    paths = [(group, found_of) for group, found_of in paths if "rfvm_vb" in found_of]
    if not paths:
        return
    size = (2.6 * len(paths) + 0.6, 4.4)
    figure, axes = plt.subplots(
        2, len(paths), figsize=size, layout="constrained", sharex=True, sharey="row", squeeze=False
    )
    for (top, bottom), (group, found_of) in zip(axes.T, paths, strict=True):
        for label, (row, points) in found_of.items():
            for axis, values in ((top, points[:, 0] / group.sizes[1]), (bottom, points[:, 1])):
                axis.plot(row.steps, 100.0 * values, marker="o", markersize=3, label=STOPS[label])
        printed = found_of["rfvm_vb"][0].printed
        top.axhline(printed["features"], color="black", linewidth=0.8, linestyle="--")
        bottom.axhline(
            printed["accuracy"], color="black", linewidth=0.8, linestyle="--", label="printed"
        )
        bottom.axhline(
            100 * group.sizes[2], color="grey", linewidth=0.8, linestyle=":", label="larger class"
        )
        for axis in (top, bottom):
            axis.axvline(LAST, color="grey", linewidth=0.8)
        top.set_xscale("log")
        top.set_yscale("log")
        top.set_title(group.data, fontsize=10)
        bottom.set_xlabel("sweeps")
    axes[0, 0].set_ylabel("features kept, %")
    axes[1, 0].set_ylabel("accuracy, %")
    handles, names = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, names, fontsize=8, ncols=len(names), loc="outside lower center")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=72, metadata={"Software": None}, pil_kwargs={"optimize": True})
    plt.close(figure)


def _of_stops(group: Group, folder: Path) -> dict[str, tuple[Row, np.ndarray]]:
    """Return the two paths of the figure of stops, by label."""
    return {row.label: (row, points) for row, points, _ in found(group, folder)
            if row.label in STOPS}  # fmt: skip
