"""How long the exact posterior takes: `exact`, by its own rule, for every model, kernel and size.

    python -m lab exact_speed exact --seeds 1 2 3    what `exact` takes, three seeds
    python -m lab exact_speed samplers               every exact sampler on the same problems
    python -m lab exact_speed horseshoe              `gibbs` of the horseshoe on a shared machine
    python -m lab exact_speed --only colon sonar     a part

A run ends when everything that may be quoted has converged (`samplers/exact/until.py`), or after
the minutes of `--minutes`. A case is one of `lab/speed/fits.py`. Nothing else should run.
"""

import argparse
from collections.abc import Iterable

from lab.records import Goal, every
from lab.script import EXACT_CODE, RBF, Measured, Part, Row
from lab.speed import fits
from lab.speed.fits import Case

LINEAR = {"kernel": "linear"}
ASKED = {
    45.0: [
        (model, data, {}) for data in ("colon", "colon_discrete") for model in ("pfcvm", "rfvm")
    ],
    180.0: [
        *((m, data, {}) for data in ("golub", "allaml", "prostate_ge") for m in ("pfcvm", "rfvm")),
        ("pfcvm", "sonar", RBF),
        ("pfcvm", "digits38", RBF),
    ],
    60.0: [
        *((model, data, {}) for data in ("digits38", "sonar") for model in ("pfcvm", "rfvm")),
        *((model, "sonar", {}) for model in ("jcfo", "pcvm", "rvm", "fsklr", "sklr", "fs_skr")),
        ("jcfo", "colon", LINEAR),
        *(("sparse_probit", data, {}) for data in ("sonar", "colon")),
    ],
    900.0: [
        (model, data, {}) for data in ("100x10000", "100x100000") for model in ("pfcvm", "rfvm")
    ],
}
"""Model, data, and what differs from the model's defaults, by the seconds that were asked for."""
QUICK = {60.0: [("pfcvm", "20x5", {}), ("sklr", "20x5", {})]}
COLUMNS = (
    "model, prior, data, seed, kernel, N, D, by, seconds, compile, GB, iterations, R-hat, ESS, "
    "ended"
)


def found(given: argparse.Namespace, part: str, samplers: Iterable[str]) -> list[tuple[float, Row]]:
    """Return the seconds that were asked for, and a row, for each case, sampler and seed."""
    options = {"minutes": 0.01 if given.quick else given.minutes}
    out = []
    for asked, cases in (QUICK if given.quick else ASKED).items():
        listed = [
            Case(model, data, "exact", hypers, {"sampler": sampler} | options)
            for model, data, hypers in cases
            for sampler in samplers
            if applies(model, hypers, sampler)
        ]
        out += [(asked, row) for row in fits.rows(listed, given, part)]
    return out


def applies(model: str, hypers: Row, sampler: str) -> bool:
    """Whether a sampler can be asked for; `auto` always can."""
    from ardvark.inference.methods import registry
    from lab import problems

    if sampler == "auto":
        return True
    tiny = problems.problem(model, [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 0, 1], **hypers)
    return sampler in registry.applicable(tiny)


def by_itself(given: argparse.Namespace) -> Measured:
    """Measure `exact` as it is, against the seconds that were asked for."""
    runs = found(given, "exact", ("auto",))
    title = "Time until `exact` stops by its own rule"
    return Measured([judged(runs)], [fits.shown(title, [row for _, row in runs], COLUMNS)])


def judged(runs: list[tuple[float, Row]]) -> Goal:
    """Return the goal: every run of a case has converged within the seconds asked for."""
    cases: dict[str, list[tuple[float, Row]]] = {}
    for asked, row in runs:
        name = " ".join(filter(None, (row["model"], row["prior"], row["data"])))
        cases.setdefault(name, []).append((asked, row))
    missed = []
    for name, mine in cases.items():
        asked, worst = mine[0][0], max(row["seconds"] for _, row in mine)
        open_ = sum(row["ended"] != "converged" for _, row in mine)
        if open_ or worst > asked:
            said = f"{name} {worst:.0f} s for {asked:.0f}"
            missed.append(said + (f", {open_} of {len(mine)} not converged" if open_ else ""))
    what = "every seed of a case converged within the seconds asked for"
    return every(what, missed, len(cases))


def every_sampler(given: argparse.Namespace) -> Measured:
    """Measure each exact sampler that applies: what the choice of `exact` rests on."""
    runs = found(given, "samplers", ("nuts", "mams", "gibbs"))
    table = fits.shown("Every exact sampler", [row for _, row in runs], COLUMNS)
    return Measured(tables=[table])


def of_horseshoe(given: argparse.Namespace) -> Measured:
    """Measure the horseshoe by `gibbs`; seconds are the processor's, over two cores."""
    minutes = {"minutes": 0.01 if given.quick else given.minutes}
    case = Case("horseshoe", "20x5" if given.quick else "golub", "exact", {}, minutes)
    rows = fits.rows([case], given, "horseshoe")
    runs = [(180.0, row | {"seconds": row["processor"] / 2.0}) for row in rows]
    title = "Time until `exact` stops, the horseshoe"
    note = "Other processes ran beside it: seconds are those of the processor, over two cores."
    table = fits.shown(title, [row for _, row in runs], COLUMNS, note)
    return Measured([judged(runs)], [table])


MEASURES = (*EXACT_CODE, "models")
PARTS = [
    Part("Time to the exact posterior", by_itself, "exact"),
    Part("Time to the exact posterior of the horseshoe", of_horseshoe, "horseshoe"),
    Part("Exact samplers side by side", every_sampler, "samplers"),
]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    fits.add(parser)
    parser.add_argument("--minutes", type=float, default=15.0, help="a run ends after so many")
