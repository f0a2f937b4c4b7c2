"""Replicates of an experiment on simulated data: stored as they end, in one process or several."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ardvark.common.processes import run_pieces
from ardvark.common.progress import Reporter
from ardvark.common.validate import logger, positive
from ardvark.models import Problem

from ..fits.datatree import as_json, versions
from .ranks import Calibration

BasisLabels = Literal["independent", "fixed", "rederived"]
"""Which labels sign the basis functions while y is simulated: see `sbc`."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One experiment to repeat. Sent to each process once, so it must pickle."""

    name: str
    """The start of its file's name."""
    identity: Mapping[str, Any]
    """Everything that decides a replicate's numbers, beside its index."""
    start: Callable[[], Callable[[int], Row]]
    """Compiles, once in each process; returns the function that does replicate r. A row holds `u`,
    a dict of ranks, and `draws`, the number they are taken among; equal r give equal rows."""

    def work(self) -> Callable[[int], Row]:
        """Return the work of one process: a replicate, failed or not."""
        return partial(_attempt, self.start())


def repeat(
    trial: Trial,
    replicates: int,
    *,
    folder: str | os.PathLike[str] | None = None,
    processes: int = 1,
    progressbar: bool = False,
) -> Calibration:
    """Do replicates 0..R-1 of a trial; those its file in `folder` holds are not done again.

    Each replicate is one line of the file, written as it ends. Failed ones are tried again. A run
    that was killed goes on where it was, and a longer one continues a shorter one: the numbers are
    those of a run in one go, with any number of processes.
    """
    positive("replicates", replicates)
    positive("processes", processes)
    rows: dict[int, Row] = {}
    path = None
    if folder is not None:
        asked = as_json({**trial.identity, "versions": versions()})
        request = hashlib.sha256(asked.encode()).hexdigest()[:16]
        path = Path(folder) / f"{trial.name}-{request}.jsonl"
        rows = _stored(path)
    missing = [r for r in range(replicates) if r not in rows]
    done = replicates - len(missing)
    with Reporter(trial.name, progressbar).stage("replicates", total=replicates) as update:
        for row in run_pieces(trial.work, missing, int(processes)):
            rows[row["replicate"]] = row
            if path is not None:
                _append(path, row)
            done += 1
            update(done)
    return _collect(trial.name, [rows[r] for r in range(replicates)])


def _collect(name: str, rows: list[Row]) -> Calibration:
    good = [r for r in rows if r["status"] == "finished"]
    names = tuple(good[0]["u"]) if good else ()
    return Calibration(
        names=names,
        ranks=np.array([[r["u"][n] for n in names] for r in good]),
        reasons=tuple(r["reason"] for r in rows if r["status"] != "finished"),
        draws=np.array([r["draws"] for r in good]),
        seconds=float(sum(r["seconds"] for r in rows)),
        name=name,
    )


def _attempt(replicate: Callable[[int], Row], r: int) -> Row:
    started = time.perf_counter()
    try:
        row = {"replicate": r, "status": "finished", "reason": "", **replicate(r)}
    except Exception as error:
        logger.debug("traceback", exc_info=True)
        row = {"replicate": r, "status": "failed", "reason": f"{type(error).__name__}: {error}"}
    return row | {"seconds": time.perf_counter() - started}


def _stored(path: Path) -> dict[int, Row]:
    """Return the replicates a file holds that did not fail; a line cut short by a kill is none."""
    rows = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if row["status"] == "finished":
            rows[row["replicate"]] = row
    return rows


def _append(path: Path, row: Row) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(f"\n{json.dumps(row)}")  # newline first: the last write may have been killed


def draw_basis_labels(
    problem: Problem, how: BasisLabels, rng: np.random.Generator
) -> np.ndarray | None:
    """Return the basis labels that y is simulated with; None where a model has none."""
    if how == "independent" and problem.spec.labels_in_basis:
        return rng.choice([-1.0, 1.0], len(problem.basis))
    return problem.basis_labels
