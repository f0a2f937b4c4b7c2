"""How far P(y = 1) of rows left out is from the exact one: the fits, and what is kept of them.

    ARDVARK_DATA=... python -m lab.findings.left_out [SET ...]

Each set is cut into three stratified folds. The rows of a fold are predicted by every method,
fitted to the others: the exact posterior under a prior, the paper's algorithm, ADVI and Laplace
under the same prior, and the paper's algorithm at its own settings, whose prior is another one. The
prior is a block of the matrix; JCFO has the genes and the gammas that its own algorithm chooses
within the fold, on a grid that goes on until the choice lies inside it.

A fold that is done is a file of `left_out/`: per row and method 200 draws of logit P(y = 1), and
P(y = 1) by the algorithm's own formula, so that another definition needs no other fit.
`lab.findings.distances` measures them. A set of `SETS` without lines in its table was not run.
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
from lab.papers import fold
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
    """One prior on one data set: a block of the matrix, or JCFO at its chosen gammas."""

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
        "rfvm/digits38/sparse", "pfcvm/sonar/sparse", "fsklr/sonar/independent",
    ):  # fmt: skip
        b = BLOCKS[block]
        yield Set(model=b.model, data=b.data, prior=b.prior, hypers=b.hypers)


SETS: dict[str, Set] = {
    s.name: s for s in (*_sets(), Set(model="jcfo", data="colon", prior="chosen"))
}
"""In the order in which they are fitted."""


# --- fits -----------------------------------------------------------------------------------------


def fits(one: Set, training: Dataset) -> Iterator[tuple[str, Fit, np.ndarray]]:
    """Yield the label of each fit, the fit, and the features (D',) it is given; exact first."""
    every = np.arange(training.D)
    if one.model == "jcfo":
        yield from _jcfo(one, training)
        return
    here = problem_of(one.model, training, **one.hypers)
    yield EXACT, (here, "exact", {"cores": 1}), every
    if one.model == "pfcvm":
        yield SAME, (here, "pfcvm_lp", {"hyperprior": "model"}), every
        yield OWN, (problem_of("pfcvm", training), "pfcvm_lp", {}), every
    if one.model == "rfvm":
        yield SAME, (here, "rfvm_vb", {}), every
        released = problem_of("rfvm", training, **RELEASED)
        yield OWN, (released, "rfvm_vb", {**EXAMPLE, **MOVING}), every
        program = {"program": True, "tolerance": 1e-5, "max_sweeps": 5000}
        yield PROGRAM, (released, "rfvm_vb", program), every
    if one.model == "fsklr":
        yield SAME, (here, "fsklr_savb", {}), every
        own = problem_of("fsklr", training, a_z=0.5, a_zeta=0.5, mask_prior="printed")
        yield OWN, (own, "fsklr_savb", {"gram": "whole"}), every
        return
    yield "ADVI", (here, "advi", {}), every
    yield "Laplace", (here, "laplace", {}), every


def _jcfo(one: Set, training: Dataset) -> Iterator[tuple[str, Fit, np.ndarray]]:
    """Yield JCFO's fits; both of the algorithm have its filter and a hold-out within the fold."""
    filtered = {"prefilter": 50} if training.D > 50 else {}
    chosen_by = {**filtered, "select": "holdout_open", "starts": 1}
    row = fold.Row(
        label="", model="jcfo", method="exact", reading="exact", chosen_by=chosen_by
    )  # fmt: skip
    gammas, features = fold.choice_of_jcfo(row, training)
    here = problem_of("jcfo", fold.with_features(training, features), **gammas)
    yield EXACT, (here, "exact", {"cores": 1}), features
    yield SAME, (here, "jcfo_em", {"starts": 1}), features
    own = {**chosen_by, "printed_rates": True}
    yield OWN, (problem_of("jcfo", training), "jcfo_em", own), np.arange(training.D)
    yield "ADVI", (here, "advi", {}), features
    yield "Laplace", (here, "laplace", {}), features


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
    for label, fit, features in fits(one, training):
        found = predictions(fit, fold.with_features(test, features), seed=k)
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
