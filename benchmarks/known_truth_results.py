"""The rows of `known_truth.py`, and their means with standard errors over data sets.

Only data sets that every method has fitted count, so that all means are over the same data sets.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Row = dict[str, Any]
BINS = 10
"""Of P(active), each of width 0.1."""
KEY = ("N", "D", "correlation", "active", "data_set", "method")
SET = list(KEY[:-1])
Estimate = tuple[float, float]
"""A number and its standard error."""


# --- rows -----------------------------------------------------------------------------------------


def key_of(row: Row) -> tuple[Any, ...]:
    """Return what tells a row from others."""
    return tuple(row[name] for name in KEY)


def without_rest(path: Path) -> None:
    """Remove a last line that a kill cut off, so that the next one is not appended to it."""
    if path.exists() and not (held := path.read_bytes()).endswith(b"\n"):
        path.write_bytes(held[: held.rfind(b"\n") + 1])


def read(path: Path) -> list[Row]:
    """Return the rows of a file, numbers as numbers."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            {k: v if k == "commit" else _typed(v) for k, v in row.items()}
            for row in csv.DictReader(file)
        ]


def _typed(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None


def write(rows: Iterable[Row], path: Path) -> None:
    """Write rows to a file, in the order given."""
    listed = list(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(listed[0]))
        writer.writeheader()
        writer.writerows(listed)


class Results:
    """The rows of whole data sets.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row for each data set and method.
    methods : list of str
        In their order.
    """

    def __init__(self, rows: Sequence[Row], methods: Sequence[str]) -> None:
        self.methods = list(methods)
        frame = pd.DataFrame(rows, columns=None if rows else [*KEY, "status"])
        frame = frame[frame["status"] != "failed"]
        count = frame.groupby(SET)["method"].transform("size")
        self.frame = frame[count == len(self.methods)].reset_index(drop=True)
        self._of = {m: own.set_index(SET).sort_index() for m, own in self.frame.groupby("method")}

    @property
    def sets(self) -> int:
        """The number of data sets."""
        return len(self.frame) // len(self.methods)

    @property
    def cells(self) -> int:
        """The number of cells with at least one of them."""
        return len(self.frame[SET[:-1]].drop_duplicates())

    @property
    def judged(self) -> list[str]:
        """The methods that give P(active)."""
        return [m for m in self.methods if self.of(m)["expected_active"].notna().all()]

    @property
    def predicting(self) -> list[str]:
        """The methods that give P(y = 1)."""
        return [m for m in self.methods if self.of(m)["log_score"].notna().all()]

    def of(self, method: str) -> pd.DataFrame:
        """Return the rows of a method, a data set each, in the same order for all methods."""
        return self._of[method]

    def value(self, method: str, name: str) -> np.ndarray:
        """Return a measure of each data set; `lost` is the log score below the best possible."""
        own = self.of(method)
        if name == "lost":
            return (own["best_log_score"] - own["log_score"]).to_numpy()
        if name == "own_power":
            return (own["own_right"] / own.index.get_level_values("active")).to_numpy()
        if name == "half_power":
            return (own["half_right"] / own.index.get_level_values("active")).to_numpy()
        return own[name].to_numpy(dtype=float)

    def mean(self, method: str, name: str, where: tuple[str, float] | None = None) -> Estimate:
        """Return the mean of a measure over data sets; `where` is a factor and its level."""
        x = self.value(method, name)
        return mean(x if where is None else x[self.at(method, where)])

    def at(self, method: str, where: tuple[str, float]) -> np.ndarray:
        """Return which data sets have a level of a factor."""
        return np.asarray(self.of(method).index.get_level_values(where[0]) == where[1])

    def more(self, method: str, other: str, name: str) -> Estimate:
        """Return by how much a measure is larger than another method's, data set by data set."""
        return mean(self.value(method, name) - self.value(other, name))

    def false(self, method: str, which: str) -> Estimate:
        """Return the share of the features in a method's lists that are false.

        `which` is a list: "own", "half" (P(active) > 1/2) or "fdr" (10 %).
        """
        own = self.of(method)
        false = own[f"{which}_false"].to_numpy(dtype=float)
        return ratio(false, false + own[f"{which}_right"].to_numpy(dtype=float))

    def expected(self, method: str, which: str) -> float:
        """Return the share that the method expects to be false in the same lists."""
        own = self.of(method)
        count = float((own[f"{which}_right"] + own[f"{which}_false"]).sum())
        return float(own[f"{which}_expected"].sum()) / count if count else float("nan")

    def bins(self, method: str) -> list[tuple[int, float, float, float]]:
        """Return, for each bin of P(active), features, mean P, share active, its error."""
        own, found = self.of(method), []
        for b in range(BINS):
            n, p, true = (own[f"{what}_{b}"].to_numpy(dtype=float) for what in ("n", "p", "true"))
            total = int(n.sum())
            share, error = ratio(true, n)
            found.append((total, p.sum() / total if total else float("nan"), share, error))
        return found


def mean(x: np.ndarray) -> Estimate:
    """Return the mean over data sets and its standard error."""
    error = float(x.std(ddof=1) / len(x) ** 0.5) if len(x) > 1 else float("nan")
    return float(x.mean()) if len(x) else float("nan"), error


def ratio(part: np.ndarray, whole: np.ndarray) -> Estimate:
    """Return sum(part) / sum(whole) and its standard error, where data sets are independent.

    The error is that of the linearised ratio: what a data set adds to the numerator beyond the
    ratio times its denominator is one observation. It is NaN where fewer than two data sets add
    anything.
    """
    total, count = whole.sum(), len(whole)
    if not total:
        return float("nan"), float("nan")
    share = part.sum() / total
    if np.count_nonzero(whole) < 2:
        return float(share), float("nan")
    beyond = part - share * whole
    error = (count / (count - 1) * (beyond**2).sum()) ** 0.5 / total
    return float(share), float(error)
