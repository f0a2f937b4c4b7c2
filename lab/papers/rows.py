"""Every row that was run, as one table: means over folds, the printed figures, what to know."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from lab.papers.results import REFERENCE, Result

FILE = "rows.csv"
MEANS = ("accuracy", "accuracy_draws", "f1", "f1_other", "log_score", "features", "samples")
BESIDE = ("accuracy", "log_score")  # differences to L1 are of these
OFTEN = 0.2  # of the splits: a noise feature that is selected in more of them is counted


def write(out: Path, found: Mapping[str, Result]) -> None:
    """Write the table of the rows."""
    file = out / FILE
    table(found).to_csv(file, index=False, float_format="%.5g", lineterminator="\n")


def table(found: Mapping[str, Result]) -> pd.DataFrame:
    """Return a line for each row, and for each step of its path that all folds have.

    Means are of rows with all their folds: `x_error` is behind the +- of `x`, `x_l1` is the
    difference to L1 logistic regression on the same folds, `printed_x` is the paper's figure.
    """
    lines = []
    for r in found.values():
        head = {"table": r.group.name.split("/")[0], "data": r.group.data, "row": r.row.label}
        lines.append(head | {"step": ""} | _whole(r, found.get(f"{r.group.name}/{REFERENCE}")))
        for step in map(str, r.row.steps):
            state = r.at(step)
            if state.whole:
                lines.append(head | {"step": step} | dict(_means(state)))
    return pd.DataFrame(lines)


def _whole(r: Result, l1: Result | None) -> dict[str, Any]:
    """Return a row's means, the figures beside them, and how its folds ended."""
    line: dict[str, Any] = {
        "reading": r.row.reading,
        "folds": len(r.lines),
        "of": r.group.folds,
        "converged": r.finished,
        "collapsed": r.collapsed,
        "failed": r.failed,
    }
    if r.whole:
        line |= dict(_means(r))
        line |= dict(_stability(r))
        for column in BESIDE:
            pair = r.beside(l1, column) if l1 is not None and r is not l1 else None
            if pair is not None:
                line |= {f"{column}_l1": pair[0], f"{column}_l1_error": pair[1]}
    line |= {f"printed_{name}": value for name, value in r.row.printed.items()}
    line |= {f"printed_{name}_sd": value for name, value in r.row.printed_sd.items()}
    reasons = [x["reason"] for x in r.lines.values() if x["status"] != "finished"]
    commonest = max(sorted(set(reasons)), key=reasons.count, default="")
    return line | {
        "seconds": sum(r.by_fold("seconds").values()),
        "version": " ".join(dict.fromkeys(x["version"] for x in r.lines.values())),
        "note": r.row.note,
        "reason": commonest,
    }


def _means(r: Result) -> Iterator[tuple[str, float]]:
    for column in MEANS:
        pair = r.mean(column)
        if pair is not None:
            yield column, pair[0]
            yield f"{column}_error", pair[1]


def _stability(r: Result) -> Iterator[tuple[str, float]]:
    """Yield how much selections agree, where some features are known to be noise."""
    if r.group.noise is None:
        return
    for name, (value, error) in r.stability().items():
        yield name, value
        yield f"{name}_error", error
    if len(r.selections) > 1:
        often = r.selections[:, r.group.noise :].mean(axis=0) > OFTEN
        yield "noise", int(often.sum())
