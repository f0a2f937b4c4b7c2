"""RFVM's stop: the same updates, ended by the rule of the released code, and by ours."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from lab.papers import store
from lab.papers.protocols import Group, Row
from lab.papers.results import Result
from lab.papers.sheets import BY_PAPER
from lab.papers.wording import head, kept, plus_minus, row

SWEEPS = re.compile(r"not settled after (\d+) sweeps")
RULES = (
    ("released rule, printed updates", "rfvm_vb-elbo", ""),
    ("our rule, the same updates", "rfvm_vb", ""),
    ("the same, its state after 5000 sweeps", "rfvm_vb", "5000"),
    ("as released", "rfvm_vb-example", ""),
    ("our rule, released updates", "rfvm_vb-released", ""),
    ("the same, its state after 5000 sweeps", "rfvm_vb-released", "5000"),
)
"""What a run is called, its row, and a step of its path (none: its end)."""


def table(found: Mapping[str, Result]) -> Iterator[str]:
    """Yield a line for each data set and rule."""
    heads = ["data", "the fit ends by", "row", "sweeps", "features", "samples"]
    yield from head([*heads, "accuracy, %", "log score", "by means alone", "settled"], 3)
    for group in BY_PAPER["RFVM"].groups:
        for rule, label, step in RULES:
            end = found.get(f"{group.name}/{label}")
            if end is None:
                continue
            r = end.at(step) if step else end
            accuracy, score = r.mean("accuracy"), r.mean("log_score")
            if accuracy is None or score is None:
                continue
            alone = by_means(r if step else end_of_path(end))
            yield row([
                group.data, rule, f"`{label}`", step or sweeps(end),
                *(f"{kept((r.mean(x) or (0.0, 0.0))[0])} %" for x in ("features", "samples")),
                plus_minus(*accuracy), "" if step else plus_minus(*score, 2), alone,
                "" if step else f"{end.finished} of {len(end.lines)}",
            ])  # fmt: skip


def end_of_path(r: Result) -> Result:
    """Return the last state of a row's path; a row without steps has none."""
    return r.at(str(r.row.steps[-1]) if r.row.steps else "")


def by_means(r: Result) -> str:
    """Return the log score of states, which are stored by their means alone."""
    score = r.mean("log_score")
    return plus_minus(*score, 2) if score else ""


def sweeps(r: Result) -> str:
    """Return after how many sweeps the folds ended that say it: those that had not settled."""
    ends = [int(m[1]) for x in r.lines.values() if (m := SWEEPS.search(x["reason"]))]
    if not ends:
        return ""
    low, high = min(ends), max(ends)
    return str(low) if low == high else f"{low} to {high}"


def curve(group: Group, label: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the sweeps of a row's path (step,), and (step, 2) features in % and accuracy in %."""
    found: Row = next(r for r in group.rows if r.label == label)
    paths = store.whole_paths(group, found, folder)
    points = [
        [np.mean([float(p[str(step)][x]) for p in paths]) for x in ("features", "accuracy")]
        for step in (found.steps if paths else ())
    ]
    unit = [100.0 / group.sizes[1], 100.0]
    return np.array(found.steps, dtype=float), np.array(points).reshape(-1, 2) * unit


def drawn(folder: Path) -> list[Group]:
    """Return the data sets that have a path."""
    return [g for g in BY_PAPER["RFVM"].groups if len(curve(g, "rfvm_vb", folder)[1])]


def draw(file: Path, folder: Path) -> None:
    """Draw features and accuracy against sweeps, a column for each data set."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    groups = drawn(folder)
    if not groups:
        return
    size = (2.6 * len(groups) + 0.6, 4.4)
    figure, axes = plt.subplots(
        2, len(groups), figsize=size, layout="constrained", sharex=True, sharey="row", squeeze=False
    )
    for column, group in enumerate(groups):
        for label, name in (("rfvm_vb", "printed updates"), ("rfvm_vb-released", "released")):
            steps, points = curve(group, label, folder)
            for line, axis in enumerate(axes[:, column]):
                if len(points):
                    axis.plot(steps, points[:, line], marker="o", markersize=3, label=name)
        top, bottom = axes[:, column]
        printed = next(r for r in group.rows if r.label == "rfvm_vb").printed
        top.axhline(printed["features"], color="black", linewidth=0.8, linestyle="--")
        bottom.axhline(
            printed["accuracy"], color="black", linewidth=0.8, linestyle="--", label="printed"
        )
        bottom.axhline(
            100 * group.sizes[2], color="grey", linewidth=0.8, linestyle=":", label="larger class"
        )
        for axis in (top, bottom):
            axis.axvline(5000, color="grey", linewidth=0.8)
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
