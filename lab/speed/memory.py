"""The peak of resident memory of every sampler at 72 x 7129, and of runs of 16 384 iterations.

    python -m lab memory                     all of it
    python -m lab memory --only exact nuts   a part

A case is one of `lab/speed/fits.py`. Memory depends on how many numbers a draw has and how many
draws are held, hardly on their values. So gradient samplers take at most `STEPS` steps a draw here,
which says nothing of the posterior but ends in minutes, and `exact` goes on to its limit.
"estimate" is what the draws were expected to need (`inference/target/room.py`).
"""

import argparse
import functools
from typing import Any
from unittest import mock

from lab.records import at_most
from lab.script import EXACT_CODE, Measured, Part, Row
from lab.speed import fits
from lab.speed.fits import Case

STEPS = 3
"""Steps of a trajectory, at most."""
LIMIT = 3.0
"""GB that no peak is to exceed."""
LONG = 16384
FAT = "72x7129"
CASES = [
    Case("horseshoe", FAT, "exact", {}, {"sampler": "nuts", "limit": 1024}),
    Case("horseshoe", FAT, "nuts"),
    Case("horseshoe", FAT, "mams"),
    Case("rfvm", FAT, "advi", {}, {"max_iterations": 200}),
    Case("pfcvm", FAT, "laplace", {}, {"starts": 1, "max_iterations": 50}),
    Case("rvm", FAT, "exact", {}, {"sampler": "gibbs", "limit": LONG}),
    Case("rvm", FAT, "gibbs", {}, {"tune": 10, "thin": 16, "draws": LONG // 16}),
    Case("horseshoe", "72x100", "nuts", {}, {"draws": LONG}),
    Case("horseshoe", "72x100", "mams", {}, {"draws": LONG}),
    Case("horseshoe", FAT, "exact", {}, {"sampler": "nuts", "limit": LONG}),
    Case("pfcvm", FAT, "exact", {}, {"sampler": "gibbs", "limit": 1024}),
    Case("jcfo", FAT, "nuts", {"kernel": "linear"}, {}),
    Case("sparse_probit", FAT, "mams"),
    Case("rfvm", FAT, "gibbs", {}, {"tune": 10}),
    Case("fsklr", FAT, "gibbs", {}, {"tune": 10}),
]
QUICK = [
    Case("horseshoe", "20x20", "exact", {}, {"sampler": "nuts", "limit": 256}),
    Case("fsklr", "20x20", "gibbs", {}, {"tune": 5}),
]
COLUMNS = (
    "method, model, N, D, options, iterations, seconds, GB of draws, estimate, GB before, GB, ended"
)


def one(
    model: str, data: str, method: str, hypers: dict[str, Any], options: dict[str, Any], seed: int
) -> Row:
    """Return the row of a case, or why it was refused."""
    from ardvark import InputError
    from ardvark.inference.samplers.exact import until
    from ardvark.inference.samplers.gradient import nuts
    from ardvark.inference.target.backend import Job
    from ardvark.inference.target.room import room
    from ardvark.inference.target.target import Target

    few = {"max_treedepth": STEPS.bit_length()}
    short = functools.partial(nuts.Options, **few) if method == "exact" else nuts.Options
    most = {"nuts": few, "mams": {"max_steps": STEPS}}.get(method, {})
    try:
        # `exact` has no option of a sampler's steps, and here it goes on to its limit
        with (
            mock.patch.object(nuts, "Options", short),
            mock.patch.object(until, "PASSES", LONG),
        ):
            given = {"keep": "all"} | most | options
            problem, tree, row = fits.fitted(model, data, method, hypers, given, seed)
    except InputError as error:
        return {"ended": f"refused: {error}"}
    posterior = tree["posterior"].to_dataset()
    draws = posterior.sizes["draw"]
    job = Job(seed=0, chains=posterior.sizes["chain"], names=tuple(map(str, posterior)))
    held = draws + (nuts.Options().tune if method == "nuts" else 0)
    row["iterations"] = row["iterations"] or draws * options.get("thin", 1)
    return row | {"estimate": room(Target(problem), job).needed(held) / 1e9}


def measure(given: argparse.Namespace) -> Measured:
    """Measure what is asked for."""
    found = fits.rows(QUICK if given.quick else CASES, given, "memory", one)
    goals = [
        at_most(
            f"{r['method']} of {r['model']}, {r['N']} x {r['D']}, {r['iterations']:.0f} "
            "iterations: peak",
            r["GB"],
            LIMIT,
            "GB",
        )
        for r in found
        if r.get("GB") and not given.quick
    ]
    return Measured(goals, [fits.shown("Peak of resident memory", found, COLUMNS)])


MEASURES = (
    *EXACT_CODE,
    "inference/samplers/gradient",
    "inference/methods",
    "inference/fits",
    "models",
)
PARTS = [Part("Peak of memory", measure)]
add = fits.add
