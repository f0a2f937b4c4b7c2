"""The peak of resident memory of every sampler at 72 x 7129, and of runs of 16 384 iterations.

    python -m lab memory                     all of it
    python -m lab memory --only exact nuts   a part

Each fit runs in a process of its own, so that the peak is its own: imports, compiled code, data,
draws, the judgement of convergence, and the fit itself. Data as in `lab.priors.sparsity.plant`.
Memory depends on how many numbers a draw has and how many draws are held, hardly on their values.
So gradient samplers take at most `STEPS` steps a draw here, which says nothing of the posterior but
ends in minutes. "estimate" is what the draws were expected to need (`inference/contract/room.py`),
and "no fit" the peak before the fit began. Rows are kept in WORK as they end.
"""

import argparse
import functools
import logging
import resource
from typing import Any
from unittest import mock

from lab.priors.sparsity import plant
from lab.records import at_most, table
from lab.script import Measured, Part, Row, apart, resumed, run

SIZE, TINY = (72, 7129), (20, 20)
STEPS = 3
"""Steps of a trajectory, at most."""
LIMIT = 3.0
"""GB that no peak is to exceed."""
LONG = 16384
NEVER = 1e9  # an ESS that no run reaches: it goes on to its limit
CASES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    # method, model, options
    ("exact", "horseshoe", {"sampler": "nuts", "ess": NEVER, "limit": 2048}),
    ("exact", "jcfo", {"sampler": "nuts", "ess": NEVER, "limit": 2048}),
    ("exact", "pfcvm", {"sampler": "gibbs", "ess": NEVER, "limit": 1536}),
    ("exact", "fsklr", {"sampler": "gibbs", "ess": NEVER, "limit": 1536}),
    ("nuts", "horseshoe", {}),
    ("nuts", "rfvm", {}),
    ("mams", "horseshoe", {}),
    ("mams", "sparse_probit", {}),
    ("gibbs", "rfvm", {"tune": 10}),
    ("gibbs", "fsklr", {"tune": 10}),
    ("advi", "rfvm", {"max_iterations": 200}),
    ("laplace", "pfcvm", {"starts": 1, "max_iterations": 50}),
    ("exact", "horseshoe", {"sampler": "nuts", "ess": NEVER, "limit": LONG}),
    ("exact", "rvm", {"sampler": "gibbs", "ess": NEVER, "limit": LONG}),
    ("gibbs", "rvm", {"tune": 10, "thin": 16, "draws": LONG // 16}),
    ("nuts", "rvm", {"draws": LONG, "keep": "shared"}),
    ("mams", "rvm", {"draws": LONG, "keep": "shared"}),
)
QUICK = (("exact", "horseshoe", {"sampler": "nuts", "limit": 256}), ("gibbs", "fsklr", {"tune": 5}))
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
    from ardvark.inference.generic import nuts

    logging.getLogger("ardvark").setLevel(logging.ERROR)
    hypers = {"kernel": "linear"} if model == "jcfo" else {}
    problem = av.problem(model, plant(1, *size, active=2)[:2], **hypers)
    depth = STEPS.bit_length()
    short: Any = functools.partial(nuts.Options, max_treedepth=depth)
    if method == "nuts":
        options = {"max_treedepth": depth} | options
    elif method == "mams":
        options = {"max_steps": STEPS} | options
    before = resident()
    try:
        with mock.patch.object(
            nuts, "Options", short
        ):  # `exact` has no option of a sampler's steps
            tree = av.fit(problem, method, random_seed=1, progressbar=False, **options)
    except av.InputError as error:
        return {"status": f"refused: {error}"}
    posterior = tree["posterior"].to_dataset()
    draws = posterior.sizes["draw"]
    job = Job(seed=0, chains=posterior.sizes["chain"], names=tuple(map(str, posterior)))
    return {
        "iterations": tree.attrs.get("iterations", draws * options.get("thin", 1)),
        "draws": draws,
        "seconds": tree.attrs["seconds_run"],
        "held": posterior.nbytes / 1e9,
        "estimate": room(Target(problem), job).needed(draws) / 1e9,
        "before": before,
        "peak": resident(),
        "status": tree.attrs["status"],
    }


def measure(given: argparse.Namespace) -> Measured:
    """Measure what is asked for."""
    size = TINY if given.quick else SIZE
    cases = QUICK if given.quick else CASES
    if given.only:
        cases = tuple(case for case in cases if {case[0], case[1]} & set(given.only))
    found = resumed(
        given.work / "rows.csv",
        (
            (
                {"method": method, "model": model, "options": words(options)},
                lambda m=method, k=model, o=options: apart(one, m, k, size, o, quick=given.quick),
            )
            for method, model, options in cases
        ),
    )
    goals = [
        at_most(f"`{r['method']}` of {r['model']}, {r['options']}: peak", r["peak"], LIMIT, "GB")
        for r in found
        if r.get("peak") and not given.quick
    ]
    names = {"held": "draws, GB", "estimate": "estimate, GB", "before": "no fit, GB"}
    names["peak"] = "peak, GB"
    shown = [{names.get(k, k): v for k, v in row.items()} for row in found]
    formats = {names.get(k, k): v for k, v in FORMATS.items()}
    N, D = size
    return Measured(goals, [table(f"Peak of resident memory at {N} x {D}", shown, formats)])


def words(options: dict[str, Any]) -> str:
    """Return options in one line, without an ESS that no run reaches."""
    return ", ".join(f"{k} {v}" for k, v in options.items() if v != NEVER)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    parser.add_argument("--only", nargs="+", help="methods or models", default=())


PARTS = [Part("Peak of memory", measure)]


def main(given: list[str] | None = None) -> None:
    """Measure, and write the record."""
    run(__file__, PARTS, given, add)
