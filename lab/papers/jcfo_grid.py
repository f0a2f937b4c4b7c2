"""JCFO with a grid of gammas that goes on until the choice lies inside it, on sonar's five folds.

    ARDVARK_DATA=... python -m lab.papers.jcfo_grid

The tables of the paper (colon, golub) have five values of gamma2, and the weakest penalty was
chosen most often: the grid ended too early. Here each fold has that grid ("five") and the one that
goes on ("open", `select="holdout_open"`), the algorithm corrected, one start. Beside the number of
features that the algorithm keeps stand the numbers that the prior, and the exact posterior, have
active at the gammas of the open grid. Sonar is small: colon's 62 folds take hours.
Rows are kept in results/; `jcfo_grid.csv` and the table of the page are written last.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ardvark.data import Dataset, load
from ardvark.inference.methods import run
from ardvark.inference.methods.prediction import predict
from lab import rows, tables
from lab.papers.fold import EXACT_DRAWS, gammas, log_score
from lab.papers.protocols import FIVE_FOLD, split
from lab.problems import problem as problem_of

STORED = Path(__file__).parents[1] / "paper_check" / "jcfo_grid.csv"
KEPT = Path("results/jcfo_grid.csv")
DATA = "sonar"
GRIDS = {"five": "holdout", "open": "holdout_open"}


def algorithm(training: Dataset, test: Dataset, select: str) -> tuple[rows.Row, dict[str, float]]:
    """Return how JCFO's algorithm does with a grid, and the gammas that it chose."""
    problem = problem_of("jcfo", training)
    tree = run.fit(
        problem, "jcfo_em", draws=1, chains=1, random_seed=0, progressbar=False, keep="shared",
        select=select, starts=1,
    )  # fmt: skip
    p = predict(problem, tree, test, rule="paper").mean(("chain", "draw")).values
    details = tree["fit"].data_vars
    tried = details["holdout_gamma"].values
    chosen = gammas(tree)
    found = {
        **chosen,
        "tried": len(tried),
        "inside": bool(tried[:, 1].min() < chosen["gamma2"] < tried[:, 1].max()),
        "features": int(details["selected_feature"].values.sum()),
    }
    return found | scores(p, test), chosen


def scores(p: np.ndarray, test: Dataset) -> dict[str, float]:
    """Return the share of right labels and the log score of P(y = 1), p (M,)."""
    true = test.y == 1
    return {"accuracy": float(((p > 0.5) == true).mean()), "log_score": log_score(p, true)}


def exact(training: Dataset, test: Dataset, chosen: dict[str, float]) -> rows.Row:
    """Return the active features of the prior and of the posterior at these gammas."""
    problem = problem_of("jcfo", training, **chosen)
    tree = run.fit(
        problem, "exact", draws=EXACT_DRAWS, chains=4, random_seed=0, progressbar=False,
        keep="shared", cores=1,
    )  # fmt: skip
    p = predict(problem, tree, test).mean(("chain", "draw")).values
    said = scores(p, test)
    return {
        "exact_status": tree.attrs["status"],
        "prior_active": float(tree["selection"].attrs["prior_features"]),
        "exact_active": float(tree["selection"]["active_features"].mean()),
        **{f"exact_{name}": value for name, value in said.items()},
    }


def line(data: Dataset, fold: int, grid: str) -> rows.Row:
    """Return a fold with a grid."""
    training, test = (data.take(part, both=False) for part in split(FIVE_FOLD, data, fold))
    found, chosen = algorithm(training, test, GRIDS[grid])
    return found | (exact(training, test, chosen) if grid == "open" else {})


def work() -> Iterator[tuple[rows.Row, Callable[[], rows.Row]]]:
    """Yield each fold with each grid."""
    data = load(DATA, fetch=False)
    for grid in GRIDS:
        for fold in range(5):
            yield {"grid": grid, "fold": fold}, partial(line, data, fold, grid)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a line a grid: the gammas chosen, and means over folds."""
    out = []
    for grid, mine in frame.groupby("grid", sort=False):
        cells: dict[str, Any] = {"grid": grid}
        for name in ("gamma1", "gamma2"):
            cells[name] = " ".join(f"{x:.2g}" for x in sorted(mine[name].unique()))
        cells["inside"] = f"{mine['inside'].astype(bool).sum()} of {len(mine)}"
        for name in ("features", "prior_active", "exact_active"):
            cells[name.replace("_", ": ")] = mine[name].mean()
        for who in ("", "exact_"):
            for name, unit, form in (("accuracy", 100.0, ".1f"), ("log_score", 1.0, ".2f")):
                values = unit * mine[f"{who}{name}"].dropna()
                error = (values.var() / len(values)) ** 0.5 if len(values) else np.nan
                shown = f"{values.mean():{form}} +- {error:{form}}" if len(values) else ""
                cells[f"{who}{name}".replace("_", " ").replace("exact ", "exact: ")] = shown
        out.append(cells)
    return pd.DataFrame(out)


def main() -> None:
    """Compute what is missing and write it."""
    frame = pd.DataFrame(rows.computed(KEPT, work()))
    tables.write(STORED, frame, "lab.papers.jcfo_grid")
    tables.fill(Path(__file__).with_name("jcfo.md"), grid=tables.markdown(summary(frame)))


if __name__ == "__main__":
    main()
