"""The peak of resident memory of every sampler at 72 x 7129, and of runs of 16 384 iterations.

    python -m lab memory                     all of it
    python -m lab memory --only exact nuts   a part

Each fit runs in a process of its own, so that the peak is its own: imports, compiled code, data,
draws, the judgement of convergence, and the fit itself. The data are made (`script.synthetic`).
Memory depends on how many numbers a draw has and how many draws are held, hardly on their values.
So gradient samplers take at most `STEPS` steps a draw here, which says nothing of the posterior but
ends in minutes, and `exact` goes on to its limit. "estimate" is what the draws were expected to
need (`inference/contract/room.py`), and "no fit" the peak before the fit began. Rows are kept in
WORK as they end.
"""

import argparse
import functools
import logging
import resource
from typing import Any
from unittest import mock

from lab.records import at_most, table
from lab.script import EXACT_CODE, Measured, Part, Row, apart, resumed, stored, synthetic

FAT, SLIM, TINY = (72, 7129), (72, 100), (20, 20)
STEPS = 3
"""Steps of a trajectory, at most."""
LIMIT = 3.0
"""GB that no peak is to exceed."""
LONG = 16384
CASES: tuple[tuple[str, str, tuple[int, int], dict[str, Any]], ...] = (
    # method, model, size, options
    ("exact", "horseshoe", FAT, {"sampler": "nuts", "limit": 1024}),
    ("nuts", "horseshoe", FAT, {}),
    ("mams", "horseshoe", FAT, {}),
    ("advi", "rfvm", FAT, {"max_iterations": 200}),
    ("laplace", "pfcvm", FAT, {"starts": 1, "max_iterations": 50}),
    ("exact", "rvm", FAT, {"sampler": "gibbs", "limit": LONG}),
    ("gibbs", "rvm", FAT, {"tune": 10, "thin": 16, "draws": LONG // 16}),
    ("nuts", "horseshoe", SLIM, {"draws": LONG}),
    ("mams", "horseshoe", SLIM, {"draws": LONG}),
    ("exact", "horseshoe", FAT, {"sampler": "nuts", "limit": LONG}),
    ("exact", "pfcvm", FAT, {"sampler": "gibbs", "limit": 1024}),
    ("nuts", "jcfo", FAT, {}),
    ("mams", "sparse_probit", FAT, {}),
    ("gibbs", "rfvm", FAT, {"tune": 10}),
    ("gibbs", "fsklr", FAT, {"tune": 10}),
)
QUICK = (
    ("exact", "horseshoe", TINY, {"sampler": "nuts", "limit": 256}),
    ("gibbs", "fsklr", TINY, {"tune": 5}),
)
FORMATS = {"seconds": ".0f", "held": ".2f", "estimate": ".2f", "before": ".2f", "peak": ".2f"}


def resident() -> float:
    """Return the GB that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def one(method: str, model: str, size: tuple[int, int], options: dict[str, Any]) -> Row:
    """Return the peak of one fit, or why it was refused."""
    import ardvark as av
    from ardvark.inference.contract.backend import Job
    from ardvark.inference.contract.room import room
    from ardvark.inference.contract.target import Target
    from ardvark.inference.exact import until
    from ardvark.inference.generic import nuts

    logging.getLogger("ardvark").setLevel(logging.ERROR)
    hypers = {"kernel": "linear"} if model == "jcfo" else {}
    problem = av.problem(model, synthetic(*size), **hypers)
    depth = STEPS.bit_length()
    short: Any = nuts.Options
    if method == "exact":
        short = functools.partial(nuts.Options, max_treedepth=depth)
    elif method == "nuts":
        options = {"max_treedepth": depth} | options
    elif method == "mams":
        options = {"max_steps": STEPS} | options
    before = resident()
    try:
        # `exact` has no option of a sampler's steps, and here it goes on to its limit
        with (
            mock.patch.object(nuts, "Options", short),
            mock.patch.object(until, "PASSES", LONG),
        ):
            tree = av.fit(problem, method, random_seed=1, progressbar=False, **options)
    except av.InputError as error:
        return {"status": f"refused: {error}"}
    posterior = tree["posterior"].to_dataset()
    draws = posterior.sizes["draw"]
    job = Job(seed=0, chains=posterior.sizes["chain"], names=tuple(map(str, posterior)))
    held = draws + (nuts.Options().tune if method == "nuts" else 0)
    return {
        "iterations": tree.attrs.get("iterations", draws * options.get("thin", 1)),
        "draws": draws,
        "seconds": tree.attrs["seconds_run"],
        "held": posterior.nbytes / 1e9,
        "estimate": room(Target(problem), job).needed(held) / 1e9,
        "before": before,
        "peak": resident(),
        "status": tree.attrs["status"],
    }


def measure(given: argparse.Namespace) -> Measured:
    """Measure what is asked for."""
    cases = QUICK if given.quick else CASES
    if given.only:
        cases = tuple(case for case in cases if {case[0], case[1]} & set(given.only))
    path, keys = given.work / "rows.csv", [key(*case) for case in cases]
    if given.stored:
        found = stored(path, keys)
    else:
        rows = zip(keys, cases, strict=True)
        found = resumed(path, ((k, lambda c=c: apart(one, *c, quick=given.quick)) for k, c in rows))
    goals = [
        at_most(
            f"{r['method']} of {r['model']}, {r['N']} x {r['D']}, {r['iterations']:.0f} "
            "iterations: peak",
            r["peak"],
            LIMIT,
            "GB",
        )
        for r in found
        if r.get("peak") and not given.quick
    ]
    names = {"held": "draws, GB", "estimate": "estimate, GB", "before": "no fit, GB"}
    names["peak"] = "peak, GB"
    shown = [{names.get(k, k): v for k, v in row.items()} for row in found]
    formats = {names.get(k, k): v for k, v in FORMATS.items()}
    return Measured(goals, [table("Peak of resident memory", shown, formats)])


def key(method: str, model: str, size: tuple[int, int], options: dict[str, Any]) -> Row:
    """Return what tells a row from others."""
    words = ", ".join(f"{k} {v}" for k, v in options.items())
    return {"method": method, "model": model, "N": size[0], "D": size[1], "options": words}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    parser.add_argument("--stored", action="store_true", help="measure nothing; rows of WORK only")
    parser.add_argument("--only", nargs="+", help="methods or models", default=())


MEASURES = (*EXACT_CODE, "inference/generic", "inference/fitting", "inference/fits", "models")
PARTS = [Part("Peak of memory", measure)]
