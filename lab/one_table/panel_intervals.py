"""The intervals beside a panel's coefficients, on tables whose truth is drawn from the prior.

    python -m lab panel_intervals              100 tables (ten minutes)
    python -m lab panel_intervals --stored     report the tables that a stopped run has kept

A table has 60 rows and 30 features, and two columns that are always in the model: `age`, whose
effect is drawn from the prior as those of the features are, and `sex`, a coin that does nothing.
What a panel shows is compared with numbers that use nothing of the library but draws: the effects
are least squares of the draws of eta on the columns, the projections a Newton iteration of their
own, and quantiles are NumPy's. `projected` is the 5 % to 95 % range of the draws' projections, in
which an interval of a panel's coefficient would have to be read.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

import ardvark as av
from lab.records import Goal, at_least, at_most, table
from lab.script import Measured, Part, Row, resumed, stored

RUNS, N, D = 100, 60, 30
MODEL: dict[str, Any] = {"always": ["age", "sex"], "kernel": "linear", "slab": 3.0}
NULL = "sex"
HOW: dict[str, Any] = {"draws": 200, "chains": 2, "tune": 200, "progressbar": False}
ENDS = (0.05, 0.95)
SIZE, FOLDS = 3, 2
RIDGE = 1e-4  # of a projection, as projpred has it


def drawn(seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return the columns, the labels, and P(y = 1) by the truth."""
    rng = np.random.default_rng([63, seed])
    frame = pd.DataFrame(rng.normal(size=(N, D)), columns=[f"x{k + 1}" for k in range(D)])
    frame["age"] = 60.0 + 8.0 * rng.normal(size=N)
    frame[NULL] = rng.permutation(np.arange(N) % 2).astype(float)
    problem = av.problem("rvm", frame, np.arange(N) % 2, **MODEL)
    while True:
        truth = problem.simulate(rng)
        column = problem.always.index(NULL)
        eta = truth["eta"] - problem.C[:, column] * truth["covariate_weight"][column]
        p = special.expit(eta)
        y = (rng.uniform(size=N) < p).astype(int)
        if 10 <= y.sum() <= N - 10:
            return frame, y, p


def projections(p: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the logistic regression on A nearest to each row of p, by Newton's method."""
    found = []
    for one in p:
        b = np.zeros(A.shape[1])
        for _ in range(60):
            q = special.expit(A @ b)
            slope = A.T @ (one - q) - RIDGE * b
            step = np.linalg.solve((A.T * (q * (1.0 - q))) @ A + RIDGE * np.eye(len(b)), slope)
            b = b + step / max(1.0, np.abs(step).max())
            if np.abs(step).max() < 1e-9:
                break
        found.append(b)
    return np.array(found)


def tables(count: int) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yield one row for each table."""
    for seed in range(count):
        yield {"seed": seed}, partial(_table, seed)


def _table(seed: int) -> Row:
    frame, y, true = drawn(seed)
    problem = av.problem("rvm", frame, y, **MODEL)
    fit = av.fit(problem, "gibbs", random_seed=seed, keep="shared", **HOW)
    panel = av.panel(problem, fit, sizes=SIZE, folds=FOLDS, progressbar=False).at(SIZE)
    shown = panel.coefficients.drop(index="intercept")
    # nothing of the library from here on, but the draws of eta
    eta = fit["posterior"]["eta"].values.reshape(-1, N)
    units = (frame - frame.mean()) / frame.std(ddof=0)
    A = np.column_stack([np.ones(N), units])
    effects = np.linalg.lstsq(A, eta.T, rcond=None)[0][1:].T / frame.std(ddof=0).to_numpy()
    own = pd.DataFrame(np.quantile(effects, ENDS, axis=0).T, frame.columns, ["low", "high"])
    own = own.loc[shown.index]
    B = np.column_stack([np.ones(N), units[list(shown.index)]])
    p = special.expit(eta)
    spread = np.quantile(projections(p[:: max(1, len(p) // 200)], B), ENDS, axis=0)[:, 1:]
    spread = pd.DataFrame(spread.T, shown.index, ["low", "high"])
    formula, best = projections(np.stack([p.mean(0), true]), B)[:, 1:]
    scale = frame[list(shown.index)].std(ddof=0)
    projected = spread.div(scale, axis=0)
    inside = (spread["low"] <= best) & (best <= spread["high"])
    ends = shown[["posterior_low", "posterior_high"]].set_axis(["low", "high"], axis=1)
    width = _width(own)
    return {
        "columns": len(shown),
        "shown narrower": int((_width(ends) < width * (1.0 - 1e-6)).sum()),
        "projected narrower": int((_width(projected) < width).sum()),
        "projected / posterior": float(np.median(_width(projected) / width)),
        "shown excludes 0": _excludes(ends.loc[NULL]),
        "posterior excludes 0": _excludes(own.loc[NULL]),
        "projected excludes 0": _excludes(projected.loc[NULL]),
        "truth's projection inside": int(inside.sum()),
        "shown - plain": float(((ends - own).abs().div(width, axis=0)).max(axis=None)),
        "formula - plain": float((shown["per_sd"] - formula).abs().max()),
    }


def _width(ends: pd.DataFrame) -> pd.Series:
    return ends["high"] - ends["low"]


def _excludes(ends: pd.Series) -> bool:
    return bool(ends["low"] > 0.0 or ends["high"] < 0.0)


def measure(given: argparse.Namespace) -> Measured:
    """Compare what panels show with the posterior, on each table."""
    given.work.mkdir(parents=True, exist_ok=True)
    path, asked = given.work / "panel_intervals.csv", tables(1 if given.quick else RUNS)
    rows = stored(path, [key for key, _ in asked]) if given.stored else resumed(path, asked)
    found = pd.DataFrame(rows)
    cases = int(found["columns"].sum())
    share = {name: found[f"{name} narrower"].sum() / cases for name in ("shown", "projected")}
    null = {
        name: int(found[f"{name} excludes 0"].sum()) for name in ("shown", "posterior", "projected")
    }
    kept = found["truth's projection inside"].sum() / cases
    goals = [
        at_least("tables", len(found), RUNS),
        at_most("share of columns with an interval narrower than the posterior's",
                share["shown"], 0.05),
        Goal(f"tables where the interval of {NULL} is without 0, in the panel as in the posterior",
             f"{null['shown']} and {null['posterior']}", null["shown"] == null["posterior"]),
        at_most("distance of an end from plain NumPy's, in widths of the interval",
                float(found["shown - plain"].max()), 1e-6),
        at_most("distance of a coefficient from plain NumPy's, per standard deviation",
                float(found["formula - plain"].max()), 1e-4),
    ]  # fmt: skip
    notes = [
        f"The range of the draws' projections would be narrower than the posterior's interval in "
        f"{share['projected']:.2f} of {cases} columns, by a median factor of "
        f"{found['projected / posterior'].median():.2f}, and without 0 for {NULL}, which does "
        f"nothing, in {null['projected']} of {len(found)} tables. It has the projection of the "
        f"truth inside in {kept:.2f} of the columns: it is about the submodel that is nearest to "
        "the truth on these very rows."
    ]  # fmt: skip
    return Measured(goals, [table("Intervals beside a panel's coefficients", rows)], notes)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    parser.add_argument("--stored", action="store_true", help="compute nothing; rows of WORK only")


MEASURES = (
    "inference/panels/projection.py", "inference/panels/result.py", "inference/fits/activity.py",
    "inference/fits/covariates.py", "inference/fits/selection_text.py",
)  # fmt: skip
PARTS = [Part("Intervals beside a panel's coefficients", measure)]
