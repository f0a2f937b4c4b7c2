"""How far P(y = 1) of rows left out is from the exact one: measures of what `left_out` keeps.

    python -m lab.findings.distances

Nothing is fitted. A set whose three folds are kept has its lines in `left_out.csv`, one a method.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from ardvark.inference.scoring import held_out
from lab import tables
from lab.findings.left_out import EXACT, FOLDS, SETS, Set, file_of
from lab.findings.patients import SURE

STORED = Path(__file__).with_name("left_out.csv")
Fold = dict[str, np.ndarray]
Scale = Callable[[np.ndarray], np.ndarray]
SCALES: tuple[Scale, Scale] = (np.asarray, special.expit)
"""From logit P: itself, and P."""


def folds_of(one: Set) -> list[Fold]:
    """Return what is kept of each fold; none if one is missing."""
    files = [file_of(one, k) for k in range(FOLDS)]
    return [dict(np.load(file)) for file in files] if all(f.exists() for f in files) else []


def methods(folds: list[Fold]) -> list[str]:
    """Return the labels of the methods, exact first."""
    return [key.removesuffix(": status") for key in folds[0] if key.endswith(": status")]


def of_rows(folds: list[Fold], key: str) -> np.ndarray:
    """Return a number of each row left out, of all folds."""
    return np.concatenate([fold[key] for fold in folds], axis=-1).astype(float)


def spread(folds: list[Fold], label: str, scale: Scale = np.asarray) -> np.ndarray:
    """Return of each row left out the sd over a method's draws of logit P, or of what it becomes.

    Folds may differ in their number of draws: Laplace without a curvature has a single state.
    """
    draws = [scale(fold[f"{label}: logit"].astype(float)) for fold in folds]
    return np.concatenate([x.std(axis=0) for x in draws])


def excluded(folds: list[Fold], label: str) -> float:
    """Return how many rows are wrong with an interval of P that excludes 1/2; NaN without one."""
    draws = [special.expit(fold[f"{label}: logit"].astype(float)) for fold in folds]
    if min(len(p) for p in draws) == 1:
        return np.nan
    counts = [
        held_out.wrong_and_sure(fold["y"], p)["wrong_sure"]
        for fold, p in zip(folds, draws, strict=True)
    ]
    return float(sum(counts))


def answers(folds: list[Fold], label: str) -> np.ndarray:
    """Return a method's P(y = 1) of each row: by its own formula if it has one, or of its draws."""
    return of_rows(folds, f"{label}: {'own' if f'{label}: own' in folds[0] else 'mean'}")


def measures(folds: list[Fold], label: str) -> dict[str, Any]:
    """Return how a method does on the rows that were left out.

    Returns
    -------
    dict
        off, off_draws : mean |P - P_exact|, P being its answer (`answers`), or the mean of its
        draws. floor : what it is for a method that is exact, by the two halves of the exact draws.
        width, width_p : the median over rows of the sd of logit P, or of P, relative to exact's;
        0 is a single state. wrong : rows in the wrong class. sure : those of them whose P of that
        class is at least 0.9. excluded : wrong by the draws, and their 90 % interval excludes 1/2;
        NaN if a fold has a single state, which has no interval. log_score : its mean.
        status : of the folds. A fold that failed has no rows here.
    """
    ended = [str(fold[f"{label}: status"]) for fold in folds]
    folds = [fold for fold in folds if f"{label}: mean" in fold]
    y, p, exact = of_rows(folds, "y"), answers(folds, label), answers(folds, EXACT)
    first, second = of_rows(folds, f"{EXACT}: halves")
    wrong = (p > 0.5) != (y == 1.0)
    width, width_p = (
        np.median(spread(folds, label, x) / spread(folds, EXACT, x)) for x in SCALES
    )  # fmt: skip
    return {
        "rows": len(y),
        "folds": len(folds),
        "off": np.abs(p - exact).mean(),
        "off_draws": np.abs(of_rows(folds, f"{label}: mean") - exact).mean(),
        "floor": np.abs(first - second).mean() / 2.0,  # half: each is a mean of half of the draws
        "width": width,
        "width_p": width_p,
        "wrong": wrong.sum(),
        "sure": (wrong & (np.maximum(p, 1.0 - p) >= SURE)).sum(),
        "excluded": excluded(folds, label),
        "log_score": held_out.log_scores(y, p).mean(),
        "status": ", ".join(f"{ended.count(name)} {name}" for name in sorted(set(ended))),
    }


def table() -> pd.DataFrame:
    """Return the measures of each method on each set whose folds are all there."""
    return pd.DataFrame(
        {"set": name, "method": label, **measures(folds, label)}
        for name, one in SETS.items()
        if (folds := folds_of(one))
        for label in methods(folds)
    ).round(4)


def main() -> None:
    """Store the table."""
    tables.write(STORED, table(), "python -m lab.findings.distances")


if __name__ == "__main__":
    main()
