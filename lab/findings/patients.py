"""P(y = 1) of patients left out one at a time, by a paper's algorithm and exactly.

    ARDVARK_DATA=... python -m lab.findings.patients

Nothing is fitted: each patient of a gene set is left out once in the papers' tables, whose folds
have the log of the probability that a row gave to the true label. `patients.csv` has what follows
from it. RFVM's and FS-SKLR's tables leave out a fifth of the rows at a time and keep one mean a
fold, so they have no patients here; `left_out` has rows of theirs.

Of each paper there are two rows of the tables: its algorithm at its own settings, and under the
prior of the exact posterior beside it. PFCVM's exact posterior is that of our sparse prior. JCFO's
has the gammas and the genes that its algorithm, with the rates corrected, chooses in each fold; at
its own settings it has its printed rates, and chooses for itself.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lab.papers import fold, store
from lab.papers.protocols import split

STORED = Path(__file__).with_name("patients.csv")
FOLDS = Path(__file__).parents[1] / "paper_check" / "folds"
SURE = 0.9
"""P of a class from which on a method is called sure of it."""
KINDS = {
    "own": "at the paper's settings,\nours where it has none",
    "same": "under the prior\nof the exact posterior",
}


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A paper on a data set.

    Attributes
    ----------
    name : str
        The paper's model, as the page calls it.
    table, data : str
        Of the papers' tables.
    exact, own, same : str
        Rows of that table: the exact posterior, the algorithm at the paper's settings, and the
        algorithm under the exact posterior's prior.
    prior : str
        That prior.
    """

    name: str
    table: str
    data: str
    exact: str
    own: str
    same: str
    prior: str


PANELS = (
    *(
        Panel(name="PFCVM", table="pfcvm-6", data=data, exact="exact", own="pfcvm_lp",
              same="pfcvm_lp-model", prior="our sparse prior")
        for data in ("colon", "golub")
    ),
    Panel(name="JCFO", table="jcfo-1", data="colon", exact="exact-chosen", own="jcfo-printed",
          same="jcfo-one", prior="JCFO's, gammas chosen"),
)  # fmt: skip


def of_folds(panel: Panel) -> pd.DataFrame:
    """Return a row for each patient left out: the label, and P(y = 1) by each of three rows."""
    place = f"{panel.table}/{panel.data}"
    group, _ = fold.find(f"{place}/{panel.exact}")
    data = fold.load(group.name)
    y = np.array([data.y[split(group.protocol, data, k)[1]].item() for k in range(group.folds)])
    found = {"model": panel.name, "data": panel.data, "y": y}
    for kind in ("exact", *KINDS):
        _, row = fold.find(f"{place}/{getattr(panel, kind)}")
        lines = store.lines_of(group, row, FOLDS)
        right = np.exp([float(lines[k]["log_score"]) for k in range(group.folds)])
        found[kind] = np.where(y == 1, right, 1.0 - right)
    return pd.DataFrame(found)


def stored() -> pd.DataFrame:
    """Return the stored rows, numbers as numbers."""
    return pd.read_csv(STORED)


def of_panel(frame: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """Return the rows of a panel."""
    return frame[(frame["model"] == panel.name) & (frame["data"] == panel.data)]


def off(rows: pd.DataFrame, kind: str) -> float:
    """Return the mean distance of P(y = 1) from the exact one."""
    return float((rows[kind] - rows["exact"]).abs().mean())


def wrong_and_sure(rows: pd.DataFrame, kind: str) -> pd.Series:
    """Return which rows are sure of the class that is not the label."""
    return rows[kind].where(rows["y"] == 0, 1.0 - rows[kind]) >= SURE


def main() -> None:
    """Store what the folds say."""
    frame = pd.concat([of_folds(panel) for panel in PANELS], ignore_index=True)
    frame.to_csv(STORED, index=False, float_format="%.4f", lineterminator="\n")


if __name__ == "__main__":
    main()
