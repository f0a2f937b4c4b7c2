"""Replicates of an experiment on simulated data, stored as they end, in one or more processes."""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ardvark.common.pieces import Pieces, Processes
from ardvark.common.progress import Reporter
from ardvark.common.store import identity, parsed
from ardvark.common.validate import positive
from ardvark.models import Problem

from ..fits.datatree import versions
from .ranks import Calibration

Row = dict[str, Any]


@dataclass(frozen=True)
class Trial(Pieces[int, Row]):
    """One experiment to repeat: replicate r is piece r.

    With a folder each replicate is one line of a file, written as it ends. Failed ones are tried
    again. A run that was killed goes on where it was, and a longer one continues a shorter one: the
    numbers are those of a run in one go, with any number of processes.
    """

    name: str
    """What is repeated, in a few words: the start of the file's name."""
    make: Callable[[], Callable[[int], Row]]
    """Compiles, once in each process; returns the function that does replicate r. A row holds `u`,
    a dict of ranks, `draws`, the number they are taken among, and in `sbc` whether the fit has
    `converged`; equal r give equal rows."""
    path: Path | None = None
    """The file of the replicates, if they are stored."""

    @classmethod
    def of(
        cls,
        name: str,
        make: Callable[[], Callable[[int], Row]],
        settings: Mapping[str, Any],
        folder: str | os.PathLike[str] | None,
    ) -> "Trial":
        """Return the trial with its file in a folder, if one is given.

        `settings` are everything that decide a replicate's numbers, beside its index and versions:
        another trial has another file.
        """
        if folder is None:
            return cls(name, make)
        hashed = identity({**settings, "versions": versions()})
        return cls(name, make, Path(folder) / f"{name}-{hashed}.jsonl")

    def start(self) -> Callable[[int], Row]:
        """Return the function that does a replicate, and times it."""
        replicate = self.make()

        def timed(r: int) -> Row:
            started = time.perf_counter()
            row = {"replicate": r, "status": "finished", "reason": "", **replicate(r)}
            return row | {"seconds": time.perf_counter() - started}

        return timed

    def failure(self, key: int, reason: str) -> Row:
        """Return a replicate without ranks."""
        return {"replicate": key, "status": "failed", "reason": reason, "seconds": 0.0}

    def get(self, key: int) -> Row | None:
        """Return a replicate that is stored and did not fail."""
        return None if self.path is None else parsed(_finished, self.path).get(key)

    def put(self, key: int, result: Row) -> None:
        """Add a line to the file."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                # newline first: the last write may have been killed
                file.write(f"\n{json.dumps(result)}")

    def calibration(self, replicates: int, processes: Processes, progressbar: bool) -> Calibration:
        """Return what replicates 0..R-1 say."""
        positive("replicates", replicates)
        stage = Reporter(self.name, progressbar).stage("replicates", total=replicates)
        rows = self.run(range(replicates), processes, stage)
        return _collect(self.name, list(rows.values()))


def _finished(path: Path) -> dict[int, Row]:
    """Return the replicates of a file that did not fail; a line that a kill cut short is none."""
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if row["status"] == "finished":
            rows[row["replicate"]] = row
    return rows


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
        unconverged=sum(not r.get("converged", True) for r in good),
    )


def draw_basis_labels(problem: Problem, rng: np.random.Generator) -> np.ndarray | None:
    """Return the basis labels with which y is simulated; None if the model has none."""
    return rng.choice([-1.0, 1.0], len(problem.basis)) if problem.spec.labels_in_basis else None
