"""How long the exact posterior takes: `exact`, by its own rule, for every model, kernel and size.

    python -m lab exact_speed                        what `exact` takes, three seeds
    python -m lab exact_speed samplers               every exact sampler on the same problems
    python -m lab exact_speed --only colon sonar     a part

A run ends when everything that may be quoted has converged (`inference/exact/until.py`), or after
the minutes of `--minutes`. Each run is a process of its own, so that its peak of resident memory is
its own; its seconds are of sampling, and compilation is listed beside them. Names of data that are
two numbers, 100x10000, are made: blocks of five correlated features, two of them planted (as in
`lab.speed.fat_data`). Rows are kept in WORK as they end. Nothing else should run.
"""

import argparse
import logging
import resource
from typing import Any

from lab.priors.sparsity import BLOCK, plant
from lab.records import Goal, table
from lab.script import DENSE, EXACT_CODE, RBF, Measured, Part, Row, apart, resumed, stored

SEEDS = (1, 2, 3)
HYPERS: dict[str, dict[str, Any]] = {
    "default": {},
    "dense": DENSE,
    "rbf": RBF,
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": "polynomial"},
}
CASES: tuple[tuple[str, str, str, float], ...] = (
    # model, what differs from its defaults, data, seconds that were asked for
    ("pfcvm", "default", "colon", 45.0),
    ("rfvm", "default", "colon", 45.0),
    ("pfcvm", "default", "colon_discrete", 45.0),
    ("rfvm", "default", "colon_discrete", 45.0),
    ("pfcvm", "default", "golub", 180.0),
    ("rfvm", "default", "golub", 180.0),
    ("pfcvm", "default", "allaml", 180.0),
    ("rfvm", "default", "allaml", 180.0),
    ("pfcvm", "default", "prostate_ge", 180.0),
    ("rfvm", "default", "prostate_ge", 180.0),
    ("pfcvm", "rbf", "sonar", 180.0),
    ("pfcvm", "rbf", "digits38", 180.0),
    ("pfcvm", "default", "digits38", 60.0),
    ("rfvm", "default", "digits38", 60.0),
    ("pfcvm", "default", "sonar", 60.0),
    ("rfvm", "default", "sonar", 60.0),
    ("jcfo", "default", "sonar", 60.0),
    ("jcfo", "linear", "colon", 60.0),
    ("pcvm", "default", "sonar", 60.0),
    ("rvm", "default", "sonar", 60.0),
    ("sparse_probit", "default", "sonar", 60.0),
    ("sparse_probit", "default", "colon", 60.0),
    ("fsklr", "default", "sonar", 60.0),
    ("sklr", "default", "sonar", 60.0),
    ("fs_skr", "default", "sonar", 60.0),
    ("pfcvm", "default", "100x10000", 900.0),
    ("rfvm", "default", "100x10000", 900.0),
    ("pfcvm", "default", "100x100000", 900.0),
    ("rfvm", "default", "100x100000", 900.0),
)
QUICK = (("pfcvm", "default", "20x5", 60.0), ("sklr", "default", "20x5", 60.0))
FORMATS = {"seconds": ".1f", "compile": ".1f", "GB": ".2f", "R-hat": ".3f", "ESS": ".0f"}


def one(model: str, prior: str, data: str, sampler: str, seed: int, minutes: float) -> Row:
    """Return what one run costs, how it ended and what it had."""
    import ardvark as av

    logging.getLogger("ardvark").setLevel(logging.ERROR)
    if data[0].isdigit() and "x" in data:
        N, D = map(int, data.split("x"))
        X, y, _ = plant(1, N=N, D=D, active=min(2, D // BLOCK), effect=6.0)
        given: Any = (X, y)
    else:
        given = av.load(data)
    problem = av.problem(model, given, **HYPERS[prior])
    tree = av.fit(
        problem, "exact", sampler=sampler, minutes=minutes, random_seed=seed, progressbar=False,
        keep="shared",
    )  # fmt: skip
    attrs, went = tree.attrs, tree["fit"].to_dataset()
    return {
        "kernel": "" if problem.kernel is None else problem.kernel.name,
        "N": len(problem.y),
        "D": problem.X.shape[1],
        "by": attrs["sampler"],
        "seconds": attrs["seconds_run"],
        "compile": attrs["seconds_compile"],
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "iterations": attrs["iterations"],
        "R-hat": float(went["judged_rhat"].values[-1]),
        "ESS": float(went["judged_ess_bulk"].values[-1]),
        "ended": attrs["ended"],
    }


def rows(given: argparse.Namespace, part: str, samplers: tuple[str, ...]) -> list[Row]:
    """Return a row for each case, sampler and seed."""
    cases = QUICK if given.quick else CASES
    if given.only:
        cases = tuple(c for c in cases if {c[0], c[2]} & set(given.only))
    seeds = SEEDS[:1] if given.quick or part == "samplers" else given.seeds
    keys = [
        {"model": model, "prior": prior, "data": data, "sampler": sampler, "seed": seed}
        for model, prior, data, _ in cases
        for sampler in samplers
        for seed in seeds
        if applies(model, prior, sampler)
    ]
    minutes = 0.01 if given.quick else given.minutes
    path = given.work / f"exact_speed_{part}.csv"
    if given.stored:
        return stored(path, keys)
    return resumed(
        path, ((k, lambda k=k: apart(one, *k.values(), minutes, quick=given.quick)) for k in keys)
    )


def applies(model: str, prior: str, sampler: str) -> bool:
    """Whether a sampler can be asked for; `auto` always can."""
    import ardvark as av
    from ardvark.inference.fitting import registry

    if sampler == "auto":
        return True
    tiny = av.problem(model, [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 0, 1], **HYPERS[prior])
    return sampler in registry.applicable(tiny)


def by_itself(given: argparse.Namespace) -> Measured:
    """Measure `exact` as it is, against the seconds that were asked for."""
    found = rows(given, "exact", ("auto",))
    asked = {case[:3]: case[3] for case in (*CASES, *QUICK)}
    goals = []
    for key, seconds in asked.items():
        mine = [r for r in found if (r["model"], r["prior"], r["data"]) == key]
        if not mine:
            continue
        worst = max(r["seconds"] for r in mine)
        open_ = sum(r["ended"] != "converged" for r in mine)
        words = f"{worst:.0f} s, the longest of {len(mine)}"
        words += f"; {open_} of them had not converged" if open_ else ""
        what = " ".join(filter(None, key))
        goals.append(
            Goal(f"{what}: converged within {seconds:.0f} s", words, not open_ and worst <= seconds)
        )
    return Measured(goals, [table("Time until `exact` stops by its own rule", found, FORMATS)])


def every_sampler(given: argparse.Namespace) -> Measured:
    """Measure each exact sampler that applies: what the choice of `exact` rests on."""
    found = rows(given, "samplers", ("nuts", "gibbs"))
    return Measured([], [table("Every exact sampler, one seed", found, FORMATS)])


MEASURES = (*EXACT_CODE, "models")
PARTS = [
    Part("Time to the exact posterior", by_itself, "exact"),
    Part("Exact samplers side by side", every_sampler, "samplers"),
]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    parser.add_argument("--only", nargs="+", help="models or data sets", default=())
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--stored", action="store_true", help="measure nothing; rows of WORK only")
    parser.add_argument("--minutes", type=float, default=15.0, help="a run ends after so many")
