"""Joint tests and simulation-based calibration of every (model, form, sampler): rung 6, full size.

    python -m lab calibration                        everything
    python -m lab calibration --only 'default/*'     default forms only: a quarter of an hour
    python -m lab calibration --only 'score/*'       approximations: measured, not judged

Each replicate is a line of a file in WORK, so a killed run goes on with the same command; remove
the folder after a change of code. N = 10 samples, D = 3 features, normal inputs of a fixed seed,
one process a core. A row ends with the smallest p-value over its test quantities, Holm-corrected,
the quantity it belongs to, and what that many replicates can see: the shift, in standard deviations
of the distribution that is ranked in (the posterior in an `sbc` row, the prior in a `joint` one),
and the factor of the standard deviation, that half of all runs would find at p < 1e-4. Seconds are
those of the replicates, added over the processes.

`default`, `form`: samplers, in a model's default form and in its others; p-values must be above
1e-4. `control`: basis labels that follow the simulated y; must be far below. `score`:
approximations; the p-value says how visible their error is, `mean` and `width` in which way they
err in that quantity: mean below 0.5 if the approximation lies too high, width below 0.5 if it is
too wide, above if too narrow.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

import numpy as np

from ardvark.inference import BACKENDS
from ardvark.inference.checks.calibrate import KERNELS
from ardvark.inference.checks.joint import joint_test
from ardvark.inference.checks.ranks import Calibration, detectable
from ardvark.inference.checks.sbc import sbc
from ardvark.inference.target.sampling import Sampling
from ardvark.inference.target.target import Target
from ardvark.models import ZOO, Problem
from lab import problems, script
from lab.records import Goal, table
from lab.script import Measured, Part

N, D = 10, 3
SCORED = ("laplace", "advi", "paper")
REPLICATES = {"joint": 4000, "sbc": 800}
SAMPLER = {"tune": 300}  # of an `sbc` row: small problems
ALARM = 1e-4  # the smallest p-value of a row of a sampler
QUICK = ["default/joint-pfcvm-*", "control/sbc-pfcvm-*", "score/sbc-pfcvm-*-laplace"]
TITLES = {
    "default": "Samplers, default forms",
    "form": "Samplers, other forms",
    "control": "Controls: basis labels that follow the simulated y",
    "score": "Approximations",
}


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    group: str
    test: str
    model: str
    choice: dict[str, Any]
    method: str
    basis_labels: str = "independent"

    @property
    def name(self) -> str:
        parts = [self.test, self.model, *map(str, self.choice.values()), self.method]
        return f"{self.group}/{'-'.join(parts)}"


def make(model: str, choice: dict[str, Any]) -> Problem:
    X = np.random.default_rng(0).normal(size=(N, D))
    return problems.problem(model, (X, np.arange(N) % 2), **choice)


def applies(method: str, model: str, choice: dict[str, Any]) -> bool:
    problem = make(model, choice)
    if method == "paper":
        method = problem.spec.paper_method
    return method in BACKENDS and BACKENDS[method].supports(Target(problem)) is None


def rows() -> Iterator[Row]:
    """Yield every row, those of default forms first."""
    forms = []
    for model, spec in ZOO.items():
        hypers = spec.Hypers()
        forms += [
            (all(getattr(hypers, k) == v for k, v in choice.items()), model, choice)
            for choice in spec.choices()
            if choice.pop("scale", "fixed") == "fixed"  # learned: in the tests, in full
        ]
    for default in (True, False):
        group = "default" if default else "form"
        for is_default, model, choice in forms:
            if is_default != default:
                continue
            for method in KERNELS:
                if applies(method, model, choice):
                    yield Row(group, "joint", model, choice, method)
                    yield Row(group, "sbc", model, choice, method)
        if default:
            for _, model, choice in (f for f in forms if f[0] and ZOO[f[1]].labels_in_basis):
                yield Row("control", "sbc", model, choice, "nuts", "rederived")
    for is_default, model, choice in forms:
        for method in SCORED:
            if is_default and applies(method, model, choice):
                kind = BACKENDS[ZOO[model].paper_method if method == "paper" else method].KIND
                if kind == "approximation":
                    yield Row("score", "sbc", model, choice, method)


def measure(row: Row, settings: argparse.Namespace) -> Calibration:
    problem = make(row.model, row.choice)
    common = {
        "replicates": settings.replicates or REPLICATES[row.test],
        "basis_labels": row.basis_labels,
        "folder": settings.work,
        "processes": settings.processes,
    }
    shown = not settings.quick
    if row.test == "joint":
        return joint_test(problem, KERNELS[row.method], **common, progressbar=shown)
    sampling = Sampling(draws=250, chains=2, seed=0, progressbar=shown)
    return sbc(
        problem, row.method, sampling, **common, **(SAMPLER if row.method in KERNELS else {})
    )


def shown(row: Row, found: Calibration) -> script.Row:
    """Return a row of the table."""
    out: script.Row = {"row": row.name, "R": len(found.ranks), "failed": found.failed}
    if not len(found.ranks):
        return out | {"quantity": f"every replicate failed, the first: {found.reasons[0]}"}
    worst = found.table.iloc[0]
    shift, factor = detectable(len(found.ranks), len(found.names))
    return out | {
        "L": int(np.median(found.draws)), "seconds": found.seconds, "p": worst["holm"],
        "quantity": str(worst.name), "mean": worst["mean"], "width": worst["width"],
        "shift": shift, "factor": factor,
    }  # fmt: skip


def goals(rows: dict[str, list[script.Row]]) -> list[Goal]:
    """Return whether every sampler passes and every control is caught."""
    out = []
    exact = rows.get("default", []) + rows.get("form", [])
    if exact:
        passed = [row for row in exact if row.get("p", 0.0) >= ALARM]
        low = min(exact, key=lambda row: row.get("p", 0.0))
        said = f"{len(passed)} of {len(exact)} rows; the smallest p is {low.get('p', 0.0):.2g}"
        whole = len(passed) == len(exact)
        text = f"every row of an exact sampler: p at least {ALARM:g}"
        out.append(Goal(text, f"{said} (`{low['row']}`)", whole))
    if controls := rows.get("control", []):
        found = [row.get("p", 1.0) for row in controls]
        text = f"basis labels that follow the simulated y: p below {ALARM:g}"
        out.append(Goal(text, ", ".join(f"{p:.2g}" for p in found), max(found) < ALARM))
    return out


def run_rows(given: argparse.Namespace) -> Measured:
    """Measure the rows that are asked for, a table for each group."""
    if given.quick:
        given.only, given.replicates, given.processes = QUICK, 4, 1
    found: dict[str, list[script.Row]] = {}
    for row in rows():
        if any(fnmatch(row.name, pattern) for pattern in given.only):
            found.setdefault(row.group, []).append(shown(row, measure(row, given)))
    formats = {"seconds": ".0f", "p": ".2g", "mean": ".3f", "width": ".3f", "shift": ".2f",
               "factor": ".2f"}  # fmt: skip
    tables = [table(TITLES[group], listed, formats) for group, listed in found.items()]
    return Measured(goals(found), tables)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of rows")
    parser.add_argument("--replicates", type=int, help="of every row, instead of its own number")
    parser.add_argument("--processes", type=int, default=os.cpu_count())


MEASURES = (
    "inference/checks",
    "inference/samplers/gradient",
    "inference/samplers/gibbs",
    "inference/papers",
    "models",
)
PARTS = [Part("Joint tests and simulation-based calibration", run_rows)]
