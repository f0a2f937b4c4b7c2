"""Is `exact` right although it decides itself when to stop? SBC, and chains with known faults.

    python -m lab exact_calibration                      both parts
    python -m lab exact_calibration sbc --only 'rfvm*'   rows whose name fits the pattern
    python -m lab exact_calibration faults               chains with faults

`sbc`: simulation-based calibration of `exact` by its defaults, on small problems under each model's
default prior. A rule that stops at a moment of luck would leave draws that are too narrow, or off.
Replicates that reached the limit of draws without having converged are kept and counted; dropping
them would select data sets.

`faults`: a normal quantity has two copies, 4 sd apart and equally likely. Chains change copies
seldom, or never, or do not move at all. A stop is false if a chain could never change copies, or
if the mean is more than 4 of its Monte Carlo errors from the truth.
"""

import argparse
import math
import os
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from ardvark.common.progress import Update
from ardvark.inference.checks.sbc import sbc
from ardvark.inference.fits import diagnostics
from ardvark.inference.fits.mixing import mixing
from ardvark.inference.samplers.exact.choice import choose
from ardvark.inference.samplers.exact.until import Asked, until_converged
from ardvark.inference.target.backend import Arrays
from ardvark.inference.target.sampling import Sampling
from ardvark.inference.target.target import Target
from ardvark.models import ZOO
from lab import problems
from lab.calibration.calibration import ALARM
from lab.records import Goal, table
from lab.script import EXACT_CODE, RBF, Measured, Part, Row, resumed

# --- simulation-based calibration -----------------------------------------------------------------

N, NARROW, WIDE = 10, 3, 40  # samples; features where `exact` takes gradients, and where jumps
CASES: tuple[tuple[str, int, dict[str, Any]], ...] = (
    *((name, NARROW, {}) for name in ZOO),
    ("pfcvm", NARROW, RBF),
    ("pfcvm", WIDE, {}),
    ("rfvm", WIDE, {}),
)
REPLICATES = 200


def calibrated(given: argparse.Namespace) -> Measured:
    """Rank true values among the draws of `exact`, model by model."""
    cases = (("sparse_probit", NARROW, {}),) if given.quick else CASES
    # `gibbs` has nothing to compile
    options: dict[str, Any] = {"ess": 100.0, "sampler": "gibbs"} if given.quick else {}
    rows: list[Row] = []
    for model, D, hypers in cases:
        name = " ".join([model, f"{N}x{D}", *hypers.values()])
        if not fnmatch(name, given.only):
            continue
        X = np.random.default_rng(0).normal(size=(N, D))
        problem = problems.problem(model, X, np.arange(N) % 2, **hypers)
        found = sbc(
            problem,
            "exact",
            Sampling(draws=250, chains=4, seed=0, progressbar=not given.quick),
            replicates=2 if given.quick else given.replicates,
            folder=given.work,
            processes=1 if given.quick else given.processes,
            **options,
        )
        worst = found.table.iloc[0]
        rows.append(
            {"problem": name, "by": choose(Target(problem)).name, "replicates": len(found.ranks),
             "failed": found.failed, "not converged": found.unconverged,
             "quantities": len(found.names), "p": worst["holm"], "quantity": str(worst.name),
             "mean": worst["mean"], "width": worst["width"], "CPU s": found.seconds}
        )  # fmt: skip
    low = min(rows, key=lambda row: row["p"])
    goal = Goal(
        f"`exact` with its own stopping: p of every row at least {ALARM:g}",
        f"the smallest of {len(rows)} is {low['p']:.2g} ({low['problem']})",
        bool(low["p"] >= ALARM),
    )
    formats = {"p": ".2g", "mean": ".3f", "width": ".3f", "CPU s": ".0f"}
    return Measured([goal], [table("", rows, formats)])


# --- chains with faults ---------------------------------------------------------------------------

COUNT, APART, LIMIT = 4, 4.0, 8192
"""Chains; standard deviations between the copies; iterations."""
RUNS = 200
TOGETHER = "all start at one"
FAULTS: dict[str, tuple[float, tuple[int, ...], tuple[int, ...]]] = {
    # once in so many iterations a chain changes copies; where it starts; which do not move at all
    "none": (2.0, (0, 1, 0, 1), ()),
    "copies change once in 10": (10.0, (0, 1, 0, 1), ()),
    "once in 1000": (1000.0, (0, 1, 0, 1), ()),
    f"once in 1000, {TOGETHER}": (1000.0, (0, 0, 0, 0), ()),
    "once in 5000": (5000.0, (0, 1, 0, 1), ()),
    f"once in 5000, {TOGETHER}": (5000.0, (0, 0, 0, 0), ()),
    "never, two and two": (math.inf, (0, 0, 1, 1), ()),
    "never, one of four": (math.inf, (0, 0, 0, 1), ()),
    "one chain does not move": (2.0, (0, 1, 0, 1), (0,)),
}


class Faulty:
    """Chains of independent normal draws around the copy at which each chain is."""

    def __init__(self, name: str, seed: int) -> None:
        self.period, start, self.still = FAULTS[name]
        self.random, self.at = np.random.default_rng(seed), np.array(start)
        self.held = np.empty((COUNT, 0))
        self.attrs: dict[str, Any] = {}
        self.seconds_compile = 0.0

    def __enter__(self) -> "Faulty":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def advance(self, iterations: int, every: int, update: Update) -> None:
        """Add draws to all chains; all are kept."""
        size = (COUNT, iterations - self.held.shape[1])
        changes = self.random.random(size) < 1.0 / self.period
        copies = (self.at[:, None] + changes.cumsum(axis=1)) % 2
        self.at = copies[:, -1]
        drawn = self.random.normal(size=size) + APART * (copies - 0.5)
        for chain in self.still:
            drawn[chain] = 0.0
        self.held = np.concatenate([self.held, drawn], axis=1)

    def read(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the draws after the first ones."""
        return {"eta": self.held[:, first:, None]}, {}

    take = read  # few draws: what lets go of them need not be another one

    def last(self) -> Arrays:
        """Return where the chains are."""
        return {"eta": self.held[:, -1:]}


def stopped(limit: int, *, fault: str, seed: int) -> Row:
    """Return how a run over faulty chains ended, and how far its mean is from the truth."""
    asked = Asked(ess=1000.0, limit=limit, seconds=math.inf, room=limit, warm_up=0.25, chains=COUNT)
    run = until_converged(Faulty(fault, seed), lambda draws: mixing(None, draws), asked)
    eta = xr.DataArray(run.posterior["eta"], dims=("chain", "draw", "row"))
    z = float(eta.mean()) / float(diagnostics.mcse(eta, "mean")[0])
    return {"ended": run.ended, "iterations": run.iterations, "z": z}


def keys(runs: int) -> Iterator[dict[str, Any]]:
    """Yield what tells a run from others."""
    for name in FAULTS:
        for seed in range(runs):
            yield {"fault": name, "seed": seed}


def faulty(given: argparse.Namespace) -> Measured:
    """Count the stops of chains with faults, and the false ones among them."""
    limit, wanted = (512, keys(1)) if given.quick else (LIMIT, keys(RUNS))
    found = resumed(
        given.work / "faults.csv", ((key, partial(stopped, limit, **key)) for key in wanted)
    )
    rows: list[Row] = []
    for name, (period, _, still) in FAULTS.items():
        runs = [row for row in found if row["fault"] == name]
        stops = [row for row in runs if row["ended"] == "converged"]
        never = math.isinf(period) or still
        false = stops if never else [row for row in stops if abs(row["z"]) > 4.0]
        z = [row["z"] for row in stops]
        rows.append(
            {"fault": name, "runs": len(runs), "stops": len(stops), "false": len(false),
             "rms z of the stops": float(np.sqrt(np.mean(np.square(z)))) if z else math.nan,
             "median iterations": float(np.median([row["iterations"] for row in runs]))}
        )  # fmt: skip
    apart = [row for row in rows[1:] if not row["fault"].endswith(TOGETHER)]
    wrong, sick = (sum(r[what] for r in apart) for what in ("false", "runs"))
    goal = Goal(
        "no false stop where chains start at both copies", f"{wrong} in {sick} runs", wrong == 0
    )
    formats = {"rms z of the stops": ".2f", "median iterations": ".0f"}
    title = f"Runs of at most {limit} iterations"
    note = (
        "Where all chains start at one copy and none has left it yet, nothing in their draws tells "
        "that there is another. So chains start far apart, and a second opinion starts elsewhere."
    )
    return Measured([goal], [table(title, rows, formats)], [note])


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    parser.add_argument("--only", default="*", help="pattern of problems")
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    parser.add_argument("--processes", type=int, default=os.cpu_count())


MEASURES = (*EXACT_CODE, "inference/checks", "models")
PARTS = [
    Part("Simulation-based calibration of `exact`", calibrated, "sbc"),
    Part("Whether `exact` stops chains with faults", faulty, "faults"),
]
