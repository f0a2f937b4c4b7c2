"""The peak of resident memory of every sampler at 72 x 7129, and of runs of 16 384 iterations.

    python -m lab.speed.memory                     all of it (an hour; a stopped run goes on)
    python -m lab.speed.memory --only exact nuts   a part

A case is one of `fits.py`. Memory depends on how many numbers a draw has and how many draws are
held, hardly on their values. So gradient samplers take at most `STEPS` steps a draw here, which
says nothing of the posterior but ends in minutes, and `exact` goes on to its limit. "estimate" is
what the draws were expected to need (`inference/target/length.py`).
"""

import argparse
import dataclasses
import functools
from pathlib import Path
from unittest import mock

import pandas as pd

from ardvark import InputError
from ardvark.inference.samplers import driver
from ardvark.inference.samplers.gradient import nuts
from ardvark.inference.target.backend import Job
from ardvark.inference.target.length import needed
from ardvark.inference.target.target import Target
from lab import rows, tables
from lab.rows import Row
from lab.speed.fits import FORMATS, PAGE, Case, fitted, work

STEPS = 3
"""Steps of a trajectory, at most."""
LONG = 16384
FAT = "72x7129"
CASES = [
    Case("horseshoe", FAT, "exact", {}, {"sampler": "nuts", "limit": 1024}),
    Case("horseshoe", FAT, "nuts"),
    Case("rfvm", FAT, "advi", {}, {"max_iterations": 200}),
    Case("pfcvm", FAT, "laplace", {}, {"starts": 1, "max_iterations": 50}),
    Case("horseshoe", "72x100", "nuts", {}, {"draws": LONG}),
    Case("horseshoe", FAT, "exact", {}, {"sampler": "nuts", "limit": LONG}),
    Case("pfcvm", FAT, "exact", {}, {"sampler": "gibbs", "limit": 1024}),
    Case("jcfo", FAT, "nuts", {"kernel": "linear"}),
    Case("rfvm", FAT, "gibbs", {}, {"tune": 10}),
    Case("fsklr", FAT, "gibbs", {}, {"tune": 10}),
]
COLUMNS = [
    "method", "model", "N", "D", "options", "iterations", "seconds", "GB of draws", "estimate",
    "GB before", "GB", "ended",
]  # fmt: skip


def peak(case: Case, seed: int) -> Row:
    """Return the row of a case, or why it was refused."""
    few = {"max_treedepth": STEPS.bit_length()}
    short = functools.partial(nuts.Options, **few) if case.method == "exact" else nuts.Options
    most = few if case.method == "nuts" else {}
    asked = dataclasses.replace(case, options={"keep": "all"} | most | case.options)
    try:
        # `exact` has no option of a sampler's steps, and here it goes on to its limit
        with (
            mock.patch.object(nuts, "Options", short),
            mock.patch.object(driver, "PASSES", LONG),
        ):
            problem, tree, row = fitted(asked, seed)
    except InputError as error:
        return {"ended": f"refused: {error}"}
    posterior = tree["posterior"].to_dataset()
    draws = posterior.sizes["draw"]
    job = Job(seed=0, chains=posterior.sizes["chain"], names=tuple(map(str, posterior)))
    held = draws + (nuts.Options().tune if case.method == "nuts" else 0)
    row["iterations"] = row["iterations"] or draws * case.options.get("thin", 1)
    return row | {"estimate": needed(Target(problem), job, held) / 1e9}


def main(words: list[str] | None = None) -> None:
    """Measure what is missing, and publish it when all cases are there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], help="words of a case: models, methods")
    only = parser.parse_args(words).only
    found = rows.computed(
        Path("results/memory.csv"), work(CASES, only=only, one="lab.speed.memory.peak")
    )
    frame = pd.DataFrame(found).reindex(columns=COLUMNS)
    if only:
        print(frame)
        return
    tables.write(PAGE.parent / "memory.csv", frame, "python -m lab.speed.memory")
    tables.show(PAGE, FORMATS)


if __name__ == "__main__":
    main()
