"""Which step size and how much tuning NUTS needs: effective draws for each million gradients.

    python -m lab nuts_settings                     everything (ARDVARK_DATA for the data)
    python -m lab nuts_settings --only colon rfvm   rows whose name contains one of these

Each problem is sampled at several pairs of target acceptance and tuning draws. Leapfrog steps of
the kept draws are counted, which no load disturbs; the processor's seconds hold the tuning too.
Rows are kept in WORK as they end, and a killed run goes on with the same command.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import ardvark as av
from ardvark.inference.fits import diagnostics
from lab.records import table
from lab.script import DENSE, RBF, Measured, Part, Row, resumed, tiny

PROBLEMS: list[tuple[str, str, dict[str, Any]]] = [
    ("pfcvm", "colon", {}),
    ("rfvm", "colon", {}),
    ("pfcvm", "colon", DENSE),
    ("rfvm", "colon", DENSE),
    ("jcfo", "colon", {}),
    ("rfvm", "digits38", {}),
    ("pfcvm", "sonar", RBF),
    ("rvm", "sonar", RBF),
    ("jcfo", "sonar", RBF),
]
SETTINGS = [(0.95, 1000), (0.95, 400), (0.9, 400), (0.8, 400)]


def rows(given: argparse.Namespace) -> Iterator[tuple[str, Any, float, int]]:
    """Yield name, problem, target acceptance and tuning draws."""
    settings = [(0.8, 30)] if given.quick else SETTINGS
    for model, data, hypers in [("pfcvm", "tiny", {})] if given.quick else PROBLEMS:
        words = "dense" if hypers is DENSE else hypers.get("kernel", "")
        for target, tune in settings:
            name = " ".join(filter(None, (model, data, words, f"{target} {tune}")))
            if not given.only or any(word in name for word in given.only):
                held = tiny() if given.quick else data
                yield name, av.problem(model, held, **hypers), target, tune


def measured(problem: Any, target: float, tune: int, draws: int) -> Row:
    """Sample 4 chains; return what they cost and what they are worth."""
    settings = {"random_seed": 1, "progressbar": False, "keep": "shared", "draws": draws}
    before = time.process_time()
    fit = av.fit(problem, "nuts", target_accept=target, tune=tune, **settings)
    taken = time.process_time() - before
    eta, steps = fit["posterior"]["eta"], int(fit["sample_stats"]["n_steps"].sum())
    ess = float(diagnostics.ess(eta, "bulk").min())
    return {
        "steps": steps,
        "processor's s": taken,
        "R-hat": float(diagnostics.rhat(eta).max()),
        "ESS": ess,
        "ESS per 1e6 steps": 1e6 * ess / steps,
        "ESS a second": ess / taken,
        "divergences": diagnostics.divergences(fit),
    }


def measure(given: argparse.Namespace) -> Measured:
    """Measure what is missing."""
    draws = 30 if given.quick else 1000
    work = (
        ({"problem": name, "draws": draws}, lambda p=p, t=t, n=n: measured(p, t, n, draws))
        for name, p, t, n in rows(given)
    )
    formats = {"processor's s": ".0f", "R-hat": ".3f", "ESS": ".0f", "ESS per 1e6 steps": ".0f",
               "ESS a second": ".1f"}  # fmt: skip
    return Measured(tables=[table("", resumed(given.work / "settings.csv", work), formats)])


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", default=[], help="words in the names of rows")


MEASURES = ("inference/contract/density.py", "inference/generic/nuts.py", "models")
PARTS = [Part("Step size and tuning of NUTS", measure)]
