"""How far P(y = 1) of rows left out is from the exact one: the fits, and what is kept of them.

    ARDVARK_DATA=... python -m lab.findings.left_out [SET ...]

Each set is cut into three stratified folds. The rows of a fold are predicted by every method,
fitted to the others: the exact posterior under a prior, the paper's algorithm, ADVI and Laplace
under the same prior, and the paper's algorithm at its own settings, whose prior is another one. The
prior is a block of the matrix. JCFO's patients, left out one at a time, are in `patients`.

A fold that is done is a file of `left_out/`: per row and method 200 draws of logit P(y = 1), and
P(y = 1) by the algorithm's own formula, so that another definition needs no other fit.
`lab.findings.distances` measures them.
"""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from ardvark.common.validate import InputError
from ardvark.data import Dataset, load
from ardvark.inference.methods import run
from ardvark.inference.methods.prediction import predict
from ardvark.models import Problem
from lab.matrix.declared import BLOCKS
from lab.papers.protocols import stratified
from lab.papers.tables import EXAMPLE, MOVING, RELEASED
from lab.problems import problem as problem_of

KEPT = Path(__file__).with_name("left_out")
FOLDS, DRAWS, THIN = 3, 500, 200
EXACT, SAME, OWN, PROGRAM = "exact", "same prior", "own settings", "authors' program"
Fit = tuple[Problem, str, dict[str, Any]]
"""A problem, the method, and its options."""


@dataclass(frozen=True, kw_only=True)
class Set:
    """One prior on one data set: a block of the matrix."""

    model: str
    data: str
    prior: str
    hypers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Model, data, prior."""
        return f"{self.model}/{self.data}/{self.prior}"


def _sets() -> Iterator[Set]:
    for block in (
        "fsklr/heart/independent", "rfvm/colon_discrete/sparse", "pfcvm/colon/sparse",
        "pfcvm/sonar/sparse", "fsklr/sonar/independent",
    ):  # fmt: skip
        b = BLOCKS[block]
        yield Set(model=b.model, data=b.data, prior=b.prior, hypers=b.hypers)


SETS: dict[str, Set] = {s.name: s for s in _sets()}
"""In the order in which they are fitted."""


# --- fits -----------------------------------------------------------------------------------------


def fits(one: Set, training: Dataset) -> Iterator[tuple[str, Fit]]:
    """Yield the label of each fit, and the fit; exact first."""
    here = problem_of(one.model, training, **one.hypers)
    yield EXACT, (here, "exact", {"cores": 1})
    if one.model == "pfcvm":
        yield SAME, (here, "pfcvm_lp", {"hyperprior": "model"})
        yield OWN, (problem_of("pfcvm", training), "pfcvm_lp", {})
    if one.model == "rfvm":
        yield SAME, (here, "rfvm_vb", {})
        released = problem_of("rfvm", training, **RELEASED)
        yield OWN, (released, "rfvm_vb", {**EXAMPLE, **MOVING})
        program = {"program": True, "tolerance": 1e-5, "max_sweeps": 5000}
        yield PROGRAM, (released, "rfvm_vb", program)
    if one.model == "fsklr":
        yield SAME, (here, "fsklr_savb", {})
        own = problem_of("fsklr", training, a_z=0.5, a_zeta=0.5, mask_prior="printed")
        yield OWN, (own, "fsklr_savb", {"gram": "whole"})
        return
    yield "ADVI", (here, "advi", {})
    yield "Laplace", (here, "laplace", {})


def predictions(fit: Fit, test: Dataset, seed: int) -> dict[str, Any]:
    """Return what is kept of a fit: draws of logit P (S, M), own formula (M,), how it ended."""
    problem, method, options = fit
    started = time.perf_counter()
    tree = run.fit(
        problem, method, draws=DRAWS, chains=4, random_seed=seed, progressbar=False,
        keep="shared", **options,
    )  # fmt: skip
    found: dict[str, Any] = {
        "status": tree.attrs["status"], "seconds": time.perf_counter() - started
    }  # fmt: skip
    if found["status"] == "failed":
        return found
    draws = predict(problem, tree, test).values
    if method == "exact":
        found["halves"] = draws.reshape(2, -1, draws.shape[-1]).mean(axis=1)
    flat = draws.reshape(-1, draws.shape[-1])
    found["mean"] = flat.mean(axis=0)
    thin = flat[np.linspace(0, len(flat) - 1, min(THIN, len(flat))).astype(int)]
    found["logit"] = special.logit(np.clip(thin, 1e-7, 1 - 1e-7)).astype(np.float16)
    if method != "exact":
        with contextlib.suppress(InputError):  # ADVI and Laplace have no formula of their own
            found["own"] = predict(problem, tree, test, rule="paper").values[0, 0]
    return found


def compute(one: Set, k: int) -> None:
    """Fit a fold of a set with every method, and keep what is predicted."""
    data = load(one.data, fetch=False)
    folds = stratified(data.y, FOLDS, np.random.default_rng(0))
    rows = np.flatnonzero(folds == k)
    training, test = (data.take(x, both=False) for x in (np.flatnonzero(folds != k), rows))
    out: dict[str, Any] = {"rows": rows, "y": test.y, "share": training.y.mean()}
    for label, fit in fits(one, training):
        found = predictions(fit, test, seed=k)
        out |= {f"{label}: {name}": value for name, value in found.items()}
        print(one.name, k, label, found["status"], f"{found['seconds']:.0f} s", flush=True)
    file_of(one, k).parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(file_of(one, k), **out)


def file_of(one: Set, k: int) -> Path:
    """Return where a fold is kept."""
    return KEPT / f"{one.name.replace('/', '_')}_{k}.npz"


def main(names: list[str]) -> None:
    """Fit what is missing of the sets that are named, or of all."""
    for one in SETS.values():
        if names and one.name not in names:
            continue
        for k in range(FOLDS):
            if not file_of(one, k).exists():
                try:
                    compute(one, k)
                except Exception as error:  # one fold must not lose the others
                    print(one.name, k, f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
