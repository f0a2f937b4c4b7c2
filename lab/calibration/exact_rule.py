"""Does `exact` stop at the right time? Its answers beside those of runs ten times longer.

    python -m lab.calibration.exact_rule    (an hour; ARDVARK_DATA for the data)

A rule that stops a chain as soon as it looks converged may stop too early, for it looks often. Each
problem is fitted by `exact`, by its defaults, under twenty seeds, and once with ten times the
effective draws under another seed. z is the difference of a posterior mean, or of a P(active), from
the long run's, over both Monte Carlo errors. Its root mean square is 1 if the errors are what they
claim to be. Quantities are eta of each row, the bias and the other scalars; and P(active) of each
feature that has between 0.02 and 0.98 in the long run. Names that are two numbers are made data.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import ardvark as av
from ardvark.inference.fits import diagnostics
from lab import rows, tables
from lab.problems import synthetic
from lab.rows import Row

PAGE = Path(__file__).parent / "CALIBRATION.md"

SEEDS, LONG_SEED, LONGER = 20, 1001, 10.0
PROBLEMS = (
    ("pfcvm", "60x12", ""),
    ("rfvm", "40x150", ""),
    ("fsklr", "50x8", ""),
    ("pfcvm", "colon", ""),
    ("rfvm", "colon", ""),
    ("pfcvm", "sonar", "rbf"),
    ("horseshoe", "100x8", ""),
    ("sparse_probit", "200x12", ""),
    ("sparse_probit", "30x60", ""),
)
"""Model, data, and the kernel where it is not the default."""
RARE = 0.02
Reference = dict[str, tuple[np.ndarray, np.ndarray]]
"""Means and their Monte Carlo errors, of "mean" and of "active"."""


@cache
def problem_of(model: str, data: str, kernel: str) -> av.Problem:
    """Return the problem; made data have ten columns' sum (or all) for their labels."""
    size = data.split("x")
    given: Any = synthetic(*map(int, size)) if all(s.isdigit() for s in size) else av.load(data)
    return av.problem(model, given, **({"kernel": kernel} if kernel else {}))


def read(tree: xr.DataTree) -> Reference:
    """Return what a fit says, with the errors that it claims."""
    posterior, selection = tree["posterior"].to_dataset(), tree["selection"].to_dataset()
    names = ["eta", *(n for n in posterior if posterior[n].sizes.keys() == {"chain", "draw"})]
    means = [diagnostics.draws_of(posterior[n]).mean(axis=(0, 1)) for n in names]
    errors = [diagnostics.mcse(posterior[n], "mean") for n in names]
    return {
        "mean": (np.concatenate(means), np.concatenate(errors)),
        "active": (selection["p_active_feature"].values, selection["mcse_feature"].values),
    }


def z_scores(mine: Reference, long: Reference, what: str) -> np.ndarray:
    """Return z of each quantity whose errors are known."""
    (a, error), (b, other) = mine[what], long[what]
    known = np.isfinite(error) & np.isfinite(other) & (error > 0.0)
    if what == "active":
        known &= (b > RARE) & (b < 1.0 - RARE)
    return (a - b)[known] / np.hypot(error, other)[known]


@cache
def long_run(model: str, data: str, kernel: str, ess: float) -> Reference:
    """Return what a run with ten times the effective draws says."""
    problem, settings = problem_of(model, data, kernel), {"progressbar": False, "keep": "shared"}
    return read(
        av.fit(problem, "exact", random_seed=LONG_SEED, ess=LONGER * ess, limit=200_000, **settings)
    )


def one(model: str, data: str, kernel: str, seed: int, ess: float = 1000.0) -> Row:
    """Fit once, and compare with the long run, which is made at first need."""
    problem, settings = problem_of(model, data, kernel), {"progressbar": False, "keep": "shared"}
    long = long_run(model, data, kernel, ess)
    tree = av.fit(problem, "exact", random_seed=seed, ess=ess, **settings)
    mine = read(tree)
    z = {what: z_scores(mine, long, what) for what in ("mean", "active")}
    return {
        "by": tree.attrs["sampler"],
        "ended": tree.attrs["ended"],
        "iterations": tree.attrs["iterations"],
        "s": tree.attrs["seconds_run"],
        **{f"sum z2 {what}": float((v**2).sum()) for what, v in z.items()},
        **{f"count {what}": len(v) for what, v in z.items()},
        "largest |z|": max(float(np.abs(v).max(initial=0.0)) for v in z.values()),
    }


def work(
    problems: Sequence[tuple[str, str, str]] = PROBLEMS, seeds: int = SEEDS, ess: float = 1000.0
) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yield what tells a row from others, and its computation."""
    for model, data, kernel in problems:
        for seed in range(1, seeds + 1):
            key: Row = {"model": model, "data": data, "kernel": kernel, "seed": seed}
            yield key, partial(one, **key, ess=ess)


def table(found: Sequence[Row]) -> pd.DataFrame:
    """Return a row for each problem: the root mean square of z, and how runs ended."""
    runs, listed = pd.DataFrame(found).fillna({"kernel": ""}), []
    for (model, data, kernel), mine in runs.groupby(["model", "data", "kernel"], sort=False):
        listed.append(
            {
                "problem": " ".join(filter(None, (model, data, kernel))),
                "by": mine["by"].iloc[0],
                "runs": len(mine),
                "converged": int((mine["ended"] == "converged").sum()),
                "rms z of means": _rms(mine, "mean"),
                "rms z of P(active)": _rms(mine, "active"),
                "largest |z|": mine["largest |z|"].max(),
                "median iterations": mine["iterations"].median(),
                "median s": mine["s"].median(),
            }
        )
    return pd.DataFrame(listed)


def _rms(runs: pd.DataFrame, what: str) -> float:
    count = runs[f"count {what}"].sum()
    return float(np.sqrt(runs[f"sum z2 {what}"].sum() / count)) if count else np.nan


FORMATS = dict.fromkeys(("rms z of means", "rms z of P(active)", "largest |z|"), ".2f")
FORMATS |= {"median iterations": ".0f", "median s": ".0f", "worst R-hat": ".4f"}
"""Digits of columns of the page's tables."""


def main(words: list[str] | None = None) -> None:
    """Fit what is missing, and publish it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], help="models; other rows stay as they are")
    only = parser.parse_args(words).only
    asked = [p for p in PROBLEMS if not only or p[0] in only]
    frame = table(rows.computed(Path("results/exact_rule.csv"), work(asked)))
    path, command = (
        PAGE.parent / "exact_rule.csv",
        "ARDVARK_DATA=... python -m lab.calibration.exact_rule",
    )
    if only:
        command += f" --only {' '.join(only)}; the others: {tables.said(path)}"
        before = tables.read(path)
        frame = pd.concat([before[~before["problem"].isin(frame["problem"])], frame])
    tables.write(path, frame, command)
    tables.show(PAGE, FORMATS)


if __name__ == "__main__":
    main()
