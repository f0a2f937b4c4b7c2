"""Joint tests and simulation-based calibration of every (model, form, sampler): rung 6, full size.

    python -m benchmarks.calibration                        everything
    python -m benchmarks.calibration --list                 the names of the rows
    python -m benchmarks.calibration --only 'default/*'     default forms only: a quarter of an hour
    python -m benchmarks.calibration --only 'score/*'       approximations: measured, not judged

Each replicate is a line of a file in OUT, so a killed run goes on with the same command; remove the
folder after a change of code. N = 10 samples, D = 3 features, normal inputs of a fixed seed, one
process a core. A row ends with the smallest p-value over its test quantities, Holm-corrected, the
quantity it belongs to, and what that many replicates can see: the shift, in standard deviations of
the distribution that is ranked in (the posterior in an `sbc` row, the prior in a `joint` one), and
the factor of the standard deviation, that half of all runs would find at p < 1e-4. Seconds are
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
from pathlib import Path
from typing import Any

import numpy as np

import ardvark as av
from ardvark.inference import BACKENDS
from ardvark.inference.calibration.calibrate import KERNELS
from ardvark.inference.calibration.joint import joint_test
from ardvark.inference.calibration.ranks import Calibration, detectable
from ardvark.inference.calibration.sbc import sbc
from ardvark.inference.contract.sampling import Sampling
from ardvark.inference.contract.target import Target
from ardvark.models import ZOO, Problem

N, D = 10, 3
SCORED = ("laplace", "advi", "paper")
REPLICATES = {"joint": 4000, "sbc": 800}
SAMPLER = {"tune": 300}  # of an `sbc` row: small problems
LINE = "{:<58} {:>5} {:>6} {:>5} {:>7} {:>9}  {:<30} {:>6} {:>6} {:>6} {:>6}"


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
    return av.problem(model, (X, np.arange(N) % 2), **choice)


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
        "folder": settings.out,
        "processes": settings.processes,
    }
    if row.test == "joint":
        return joint_test(problem, KERNELS[row.method], **common, progressbar=True)
    sampling = Sampling(draws=250, chains=2, seed=0, progressbar=True)
    return sbc(
        problem, row.method, sampling, **common, **(SAMPLER if row.method in KERNELS else {})
    )


def line(row: Row, found: Calibration) -> str:
    if not len(found.ranks):
        return f"{row.name:<58} every replicate failed, the first: {found.reasons[0]}"
    worst = found.table.iloc[0]
    shift, factor = detectable(len(found.ranks), len(found.names))
    return LINE.format(
        row.name, len(found.ranks), found.failed, f"{np.median(found.draws):.0f}",
        f"{found.seconds:.0f}", f"{worst['holm']:.2g}", str(worst.name), f"{worst['mean']:.3f}",
        f"{worst['width']:.3f}", f"{shift:.2f}", f"{factor:.2f}",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of rows")
    parser.add_argument("--out", type=Path, default=Path("results/calibration"))
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--replicates", type=int, help="of every row, instead of its own number")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    settings = parser.parse_args()
    chosen = [r for r in rows() if any(fnmatch(r.name, p) for p in settings.only)]
    if settings.list:
        print("\n".join(r.name for r in chosen))
        return
    header = (
        "",
        "R",
        "failed",
        "L",
        "seconds",
        "p",
        "quantity",
        "mean",
        "width",
        "shift",
        "factor",
    )
    print(LINE.format(*header), flush=True)
    for row in chosen:
        print(line(row, measure(row, settings)), flush=True)


if __name__ == "__main__":
    main()
