"""Does `exact` stop at the right time? Its answers beside those of runs ten times longer.

    python -m lab exact_rule                         everything (ARDVARK_DATA for the data)
    python -m lab exact_rule --only 60x12            problems whose name contains this

A rule that stops a chain as soon as it looks converged may stop too early, for it looks often. Each
problem is fitted by `exact`, by its defaults, under twenty seeds, and once with ten times the
effective draws under another seed. z is the difference of a posterior mean, or of a P(active), from
the long run's, over both Monte Carlo errors. Its root mean square is 1 if the errors are what they
claim to be. Quantities are eta of each row, the bias and the other scalars; and P(active) of each
feature that has between 0.02 and 0.98 in the long run. Names that are two numbers are made data.
"""

import argparse
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

import ardvark as av
from ardvark.inference.fits import diagnostics
from lab.records import Goal, table
from lab.script import EXACT_CODE, RBF, Measured, Part, Row, resumed, synthetic

SEEDS, LONG_SEED, LONGER = 20, 1001, 10.0
PROBLEMS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("pfcvm", "60x12", {}),
    ("rfvm", "40x150", {}),
    ("fsklr", "50x8", {}),
    ("pfcvm", "colon", {}),
    ("rfvm", "colon", {}),
    ("pfcvm", "sonar", RBF),
)
QUICK = (("rvm", "20x3", {}),)
LOW, HIGH = 0.8, 1.25
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


_LONG: dict[tuple[str, str, str], Reference] = {}


def one(model: str, data: str, kernel: str, seed: int, quick: bool) -> Row:
    """Fit once, and compare with the long run, which is made at first need."""
    problem, key = problem_of(model, data, kernel), (model, data, kernel)
    short = 100.0 if quick else 1000.0
    settings: dict[str, Any] = {"progressbar": False, "keep": "shared"}
    settings |= {"sampler": "gibbs"} if quick else {}  # it has nothing to compile
    if key not in _LONG:
        ess, limit = LONGER * short, 200_000
        tree = av.fit(problem, "exact", random_seed=LONG_SEED, ess=ess, limit=limit, **settings)
        _LONG[key] = read(tree)
    tree = av.fit(problem, "exact", random_seed=seed, ess=short, **settings)
    mine = read(tree)
    z = {what: z_scores(mine, _LONG[key], what) for what in ("mean", "active")}
    return {
        "by": tree.attrs["sampler"],
        "ended": tree.attrs["ended"],
        "iterations": tree.attrs["iterations"],
        "s": tree.attrs["seconds_run"],
        **{f"sum z2 {what}": float((v**2).sum()) for what, v in z.items()},
        **{f"count {what}": len(v) for what, v in z.items()},
        "largest |z|": max(float(np.abs(v).max(initial=0.0)) for v in z.values()),
    }


def measure(given: argparse.Namespace) -> Measured:
    """Fit what is missing, and give the root mean square of z by problem."""
    chosen = [
        (model, data, hypers.get("kernel", ""))
        for model, data, hypers in (QUICK if given.quick else PROBLEMS)
        if not given.only or any(word in f"{model} {data}" for word in given.only)
    ]
    seeds = range(1, (2 if given.quick else SEEDS) + 1)
    found = resumed(
        given.work / "rows.csv",
        (
            (
                {"model": m, "data": d, "kernel": k, "seed": seed},
                lambda m=m, d=d, k=k, seed=seed: one(m, d, k, seed, given.quick),
            )
            for m, d, k in chosen
            for seed in seeds
        ),
    )
    goals, rows = [], []
    for m, d, k in chosen:
        mine = [r for r in found if (r["model"], r["data"], r["kernel"] or "") == (m, d, k)]
        name = " ".join(filter(None, (m, d, k)))
        rms = {what: _rms(mine, what) for what in ("mean", "active")}
        converged = sum(r["ended"] == "converged" for r in mine)
        rows.append(
            {"problem": name, "by": mine[0]["by"], "runs": len(mine), "converged": converged,
             "rms z of means": rms["mean"], "rms z of P(active)": rms["active"],
             "largest |z|": max(r["largest |z|"] for r in mine),
             "median iterations": float(np.median([r["iterations"] for r in mine])),
             "median s": float(np.median([r["s"] for r in mine]))}
        )  # fmt: skip
        known = [x for x in rms.values() if not np.isnan(x)]
        goals.append(
            Goal(
                f"{name}: rms of z of means and of P(active) within {LOW} to {HIGH}",
                ", ".join(f"{x:.2f}" for x in known),
                all(LOW <= x <= HIGH for x in known),
            )
        )
    formats = dict.fromkeys(("rms z of means", "rms z of P(active)", "largest |z|"), ".2f")
    formats |= {"median iterations": ".0f", "median s": ".0f"}
    return Measured(
        goals, [table("Runs of `exact` beside one of ten times the ESS", rows, formats)]
    )


def _rms(rows: list[Row], what: str) -> float:
    count = sum(r[f"count {what}"] for r in rows)
    return float(np.sqrt(sum(r[f"sum z2 {what}"] for r in rows) / count)) if count else np.nan


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    parser.add_argument("--only", nargs="+", default=(), help="words in the names of problems")


MEASURES = (*EXACT_CODE, "models")
PARTS = [Part("Whether `exact` stops at the right time", measure)]
