"""MAMS beside NUTS: effective draws for each million gradients, on every continuous model.

    python -m lab mams_speed                     everything (ARDVARK_DATA for the data)
    python -m lab mams_speed --only rvm colon    rows whose name contains one of these

Both methods run by their defaults, 4 x 1000 draws. Gradients are those of the kept draws, which no
load disturbs. An effective sample size is the smallest bulk ESS of eta and of the scalars. Where
R-hat is above 1.01 a chain has not converged, and its rate is worth little. `sonar 100` are 100
rows of sonar, shuffled with a fixed seed. MAMS also runs with trajectories of other lengths.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

import ardvark as av
from ardvark.inference.fits import diagnostics
from lab.records import Goal, Table, table
from lab.script import RBF, Measured, Part, Row, resumed, tiny

PROBLEMS: list[tuple[str, str, dict[str, Any]]] = [
    ("pfcvm", "sonar 100", RBF),
    ("pcvm", "sonar", RBF),
    ("pcvm", "colon", {}),
    ("rvm", "sonar", RBF),
    ("rvm", "colon", {}),
    ("jcfo", "sonar 100", {}),
    ("sparse_probit", "sonar", {}),
    ("sparse_probit", "colon", {}),
    ("jcfo", "colon", {}),
    ("pfcvm", "colon", {}),
    ("rfvm", "colon", {}),
]
LENGTHS = (1.4, 2.0, 2.8)  # 2 is the default; the others only where a fit takes seconds
SHORT = ("pcvm", "rvm", "sparse_probit sonar", "jcfo sonar")
GOAL = 1.5  # times the rate of NUTS, on most models
KEY = "ESS per 1e6 gradients"


def rows(given: argparse.Namespace) -> Iterator[tuple[str, Any, str, dict[str, Any]]]:
    """Yield name, problem, method and options."""
    for model, data, hypers in [("pfcvm", "tiny", {})] if given.quick else PROBLEMS:
        name = " ".join(filter(None, (model, data, hypers.get("kernel", ""))))
        if given.only and not any(word in name for word in given.only):
            continue
        problem = av.problem(model, load(data), **hypers)
        lengths = LENGTHS if name.startswith(SHORT) or given.quick else (2.0,)
        yield name, problem, "nuts", {}
        for length in lengths:
            yield name, problem, "mams", {"length": length}


def load(name: str) -> Any:
    """Return a data set by the names of `PROBLEMS`."""
    if name == "sonar 100":
        data = av.load("sonar")
        return data.take(np.random.default_rng(0).permutation(data.N)[:100])
    return tiny() if name == "tiny" else av.load(name)


def measured(problem: Any, method: str, options: dict[str, Any], given: argparse.Namespace) -> Row:
    """Sample 4 chains; return what they cost and what they are worth."""
    sizes = {"tune": 50, "draws": 50} if given.quick else {"draws": 1000}
    fit = av.fit(
        problem, method, random_seed=given.seed, progressbar=False, keep="shared",
        selection=False, **sizes, **options,
    )  # fmt: skip
    posterior, stats = fit["posterior"].to_dataset(), fit["sample_stats"]
    wanted = ["eta", *(n for n in posterior if posterior[n].sizes.keys() == {"chain", "draw"})]
    ess = {str(n): float(diagnostics.ess(posterior[n], "bulk").min()) for n in wanted}
    gradients = int(stats["n_steps"].sum())
    least = min(ess, key=ess.__getitem__)
    return {
        "gradients": gradients,
        "R-hat": max(float(diagnostics.rhat(posterior[n]).max()) for n in wanted),
        "ESS": ess[least],
        "of": least,
        KEY: 1e6 * ess[least] / gradients,
        "divergences": diagnostics.divergences(fit),
        "run, s": fit.attrs["seconds_run"],
    }


def measure(given: argparse.Namespace) -> Measured:
    """Measure what is missing, and compare."""
    work = (
        (
            {"problem": n, "method": m, "length": o.get("length"), "seed": given.seed},
            lambda p=p, m=m, o=o: measured(p, m, o, given),
        )
        for n, p, m, o in rows(given)
    )
    found = resumed(given.work / "rows.csv", work)
    formats = {"R-hat": ".3f", "ESS": ".0f", KEY: ".0f", "run, s": ".0f"}
    beside = compared(found)
    good = [row for row in beside.rows if row[3] >= GOAL]
    goal = Goal(
        goal=f"{GOAL:g} times the effective draws a gradient of `nuts`, on most problems",
        measured=f"{len(good)} of {len(beside.rows)}",
        met=2 * len(good) > len(beside.rows),
    )
    every = table("Every fit", found, formats, "Seconds beside other jobs on the machine.")
    return Measured(goals=[goal], tables=[beside, every])


def compared(found: list[Row]) -> Table:
    """Return the table of problems: the rate of both methods by their defaults."""
    out = []
    for nuts in (row for row in found if row["method"] == "nuts"):
        same = [row for row in found if row["problem"] == nuts["problem"]]
        mams = next(row for row in same if row["length"] == LENGTHS[1])
        out.append(
            {"problem": nuts["problem"], "`nuts`": nuts[KEY], "`mams`": mams[KEY],
             "ratio": mams[KEY] / nuts[KEY], "R-hat of `nuts`": nuts["R-hat"],
             "R-hat of `mams`": mams["R-hat"]}
        )  # fmt: skip
    formats = {"`nuts`": ".0f", "`mams`": ".0f", "ratio": ".2f"} | dict.fromkeys(
        ("R-hat of `nuts`", "R-hat of `mams`"), ".3f"
    )
    return table(KEY, out, formats)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", default=[], help="words in the names of rows")
    parser.add_argument("--seed", type=int, default=1)


MEASURES = ("inference/generic", "models")
PARTS = [Part("MAMS beside NUTS", measure)]
