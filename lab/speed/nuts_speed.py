"""NUTS on every continuous model and form, its settings, and MAMS beside it.

    python -m lab nuts_speed models      NUTS: time and mixing   (ARDVARK_DATA for the data)
    python -m lab nuts_speed settings    which step size and how much tuning
    python -m lab nuts_speed mams        MAMS beside NUTS: effective draws a gradient
    python -m lab nuts_speed --only rvm colon

Four chains of 1000 draws each. A case is one of `lab/speed/fits.py`. `models`: in each model's
default form R-hat is to be below 1.01, with at most 5 divergences. `settings`: pairs of target
acceptance and tuning. `mams`: trajectories of several lengths where a fit takes seconds; 2 is the
default. Where R-hat is above 1.01 a chain has not converged, and its rate is worth little.
"""

import argparse
from collections.abc import Iterator
from typing import Any

from ardvark.models import ZOO
from lab.records import Goal, Table, every, table
from lab.script import DENSE, RBF, Measured, Part, Row
from lab.speed import fits
from lab.speed.fits import Case

KERNELS = {
    "sonar 100": ("rbf",),
    "digits38 120": ("rbf",),
    "colon_discrete": ("linear", "polynomial"),
}
LIMITS = {"R-hat": 1.01, "divergences": 5}
TARGETS = ((0.95, 1000), (0.95, 400), (0.9, 400), (0.8, 400))
SETTINGS: list[tuple[str, str, dict[str, Any]]] = [
    *((model, "colon", prior) for prior in ({}, DENSE) for model in ("pfcvm", "rfvm")),
    ("jcfo", "colon", {}),
    ("rfvm", "digits38", {}),
    *((model, "sonar", RBF) for model in ("pfcvm", "rvm", "jcfo")),
]
LENGTHS = (1.4, 2.0, 2.8)
BESIDE: list[tuple[str, str, dict[str, Any], tuple[float, ...]]] = [
    *((model, "sonar", RBF, LENGTHS) for model in ("pcvm", "rvm")),
    *((model, "colon", {}, LENGTHS) for model in ("pcvm", "rvm")),
    ("jcfo", "sonar 100", {}, LENGTHS),
    ("sparse_probit", "sonar", {}, LENGTHS),
    ("pfcvm", "sonar 100", RBF, (2.0,)),
    *((model, "colon", {}, (2.0,)) for model in ("sparse_probit", "jcfo", "pfcvm", "rfvm")),
]
"""Model, data, what differs from the model's defaults, and the lengths of MAMS."""
GOAL = 1.5  # times the rate of NUTS, on most problems
RATE = "ESS per 1e6 gradients"
TINY = {"draws": 30, "tune": 30, "chains": 2}


def forms() -> Iterator[Case]:
    """Yield every continuous model in each of its forms, on the data of `KERNELS`."""
    for data, kernels in KERNELS.items():
        for model in ("pfcvm", "jcfo", "rfvm", "pcvm", "rvm", "sparse_probit"):
            for choice in ZOO[model].choices():
                if choice.pop("scale", "fixed") != "fixed":
                    continue
                kernel = choice.get("kernel")
                # the polynomial kernel of degree 1 is JCFO's own linear one; the degree-2 kernels
                # of the others are no goal
                other = kernel == "polynomial" and model != "jcfo"
                if kernel is None or (kernel in kernels and not other):
                    yield Case(model, data, "nuts", choice, {"tune": 1000})


def is_default(model: str, choice: dict[str, Any]) -> bool:
    """Whether the form is the model's default one; the kernel follows the data."""
    hypers = ZOO[model].Hypers()
    return all(getattr(hypers, k) == v for k, v in choice.items() if k != "kernel")


def models(given: argparse.Namespace) -> Measured:
    """Measure NUTS on every continuous model."""
    cases = [Case("pfcvm", "14x3", "nuts", {}, TINY)] if given.quick else list(forms())
    default = {
        (case.model, fits.words(case.hypers))
        for case in cases
        if is_default(case.model, case.hypers)
    }
    found = fits.rows(cases, given, "models")
    for row in found:
        row["default form"] = "yes" if (row["model"], row["prior"]) in default else ""
        row["ESS / s"] = row["ESS"] / row["seconds"]
    goals, judged = [], [row for row in found if row["default form"]]
    for what, limit in LIMITS.items():
        missed = [
            f"{row['model']} {row['prior']} {row['data']} {row[what]:.5g}"
            for row in judged
            if not row[what] <= limit
        ]
        goals.append(every(f"{what} at most {limit} in every default form", missed, len(judged)))
    columns = (
        "model, prior, data, default form, compile, seconds, R-hat, ESS, ESS / s, divergences, "
        "gradients"
    )
    return Measured(goals, [fits.shown("4 x (1000 + 1000) draws", found, columns)])


def rated(found: list[Row]) -> list[Row]:
    """Return rows with their effective draws for each million gradients."""
    return [row | {RATE: 1e6 * row["ESS"] / row["gradients"]} for row in found]


def settings(given: argparse.Namespace) -> Measured:
    """Measure pairs of target acceptance and tuning."""
    cases = [
        Case(model, data, "nuts", hypers, {"target_accept": target, "tune": tune})
        for model, data, hypers in SETTINGS
        for target, tune in TARGETS
    ]
    if given.quick:
        cases = [Case("pfcvm", "14x3", "nuts", {}, TINY)]
    columns = f"model, prior, data, options, gradients, processor, R-hat, ESS, {RATE}, divergences"
    return Measured(tables=[fits.shown("", rated(fits.rows(cases, given, "settings")), columns)])


def mams(given: argparse.Namespace) -> Measured:
    """Measure what is missing of both methods, and compare them."""
    asked = [("pfcvm", "14x3", {}, (2.0,))] if given.quick else BESIDE
    size = TINY if given.quick else {}
    cases = [
        Case(model, data, method, hypers, options | size)
        for model, data, hypers, lengths in asked
        for method, options in [("nuts", {}), *(("mams", {"length": x}) for x in lengths)]
    ]
    found = rated(fits.rows(cases, given, "mams"))
    beside = compared(found)
    good = [row for row in beside.rows if row[5] >= GOAL]
    goal = Goal(
        goal=f"{GOAL:g} times the effective draws a gradient of `nuts`, on most problems",
        measured=f"{len(good)} of {len(beside.rows)}",
        met=2 * len(good) > len(beside.rows),
    )
    columns = f"model, prior, data, method, options, gradients, R-hat, ESS, of, {RATE}, divergences"
    return Measured([goal], [beside, fits.shown("Every fit", found, columns)])


def compared(found: list[Row]) -> Table:
    """Return the table of problems: the rate of both methods by their defaults."""
    out = []
    for nuts in (row for row in found if row["method"] == "nuts"):
        problem = {name: nuts[name] for name in ("model", "prior", "data")}
        same = (row for row in found if problem.items() <= row.items())
        other = next(row for row in same if row["options"].startswith("length=2.0"))
        out.append(
            problem
            | {"`nuts`": nuts[RATE], "`mams`": other[RATE], "ratio": other[RATE] / nuts[RATE],
               "R-hat of `nuts`": nuts["R-hat"], "R-hat of `mams`": other["R-hat"]}
        )  # fmt: skip
    formats = {"`nuts`": ".0f", "`mams`": ".0f", "ratio": ".2f"} | dict.fromkeys(
        ("R-hat of `nuts`", "R-hat of `mams`"), ".3f"
    )
    return table(RATE, out, formats)


MEASURES = ("inference/target/density.py", "inference/samplers/gradient", "models")
PARTS = [
    Part("NUTS on every continuous model", models, "models"),
    Part("Step size and tuning of NUTS", settings, "settings"),
    Part("MAMS beside NUTS", mams, "mams"),
]
add = fits.add
