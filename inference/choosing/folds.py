"""The same folds for every candidate: each piece is one candidate without one fold.

Everything is learned on the rows outside the fold: levels and fill values of a table, means and
standard deviations, hyperparameters that follow from the sizes of the data, and penalties. With a
folder, each piece is a JSON file that is written when it ends, and a run that was killed continues.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ardvark.common.pieces import Pieces
from ardvark.common.store import identity
from ardvark.common.validate import logger
from ardvark.data import Dataset, Table

from ..checks.sharing import Models
from ..fits.datatree import replacing
from ..methods.registry import Plan
from .candidates import Candidate

Key = tuple[str, int]
"""The name of a candidate, and the number of a fold; those of the second repeat follow the first's.
"""
Row = dict[str, Any]


def partition(y: np.ndarray, folds: int, rng: np.random.Generator) -> np.ndarray:
    """Return the fold (N,) of each row.

    Sizes of folds differ by at most one, and so do the numbers of rows of a class.
    """
    order = np.concatenate([rng.permutation(np.flatnonzero(y == label)) for label in (0, 1)])
    out = np.empty(len(y), dtype=int)
    out[order] = np.arange(len(y)) % folds
    return out


def partitions(y: np.ndarray, folds: int, repeats: int, seed: int) -> np.ndarray:
    """Return the folds (N, R) of each row in R partitions; more repeats keep the first ones."""
    drawn = [partition(y, folds, np.random.default_rng([seed, r, 1])) for r in range(repeats)]
    return np.stack(drawn, axis=1)


@dataclass(frozen=True)
class Folds(Pieces[Key, Row]):
    """The fits of one choice.

    A row has the name of the candidate; `log_p`, the log probabilities (M, 2) of y = 0 and y = 1
    for the M rows of the fold, in their order; `error`, the Monte Carlo error of the sum of those
    of the labels; status, reason and seconds of the fit.

    Attributes
    ----------
    data : Dataset
        All rows.
    folds : array (N, R)
        The fold of each row in each partition.
    candidates : tuple of Candidate
        With distinct names.
    plans : dict of Plan
        How the models of the zoo are fitted, by the name of the candidate.
    seed : int
        Seeds of the fits are made of it and the number of the fold, the same for all candidates.
    folder : Path, optional
        Where the pieces are stored.
    """

    data: Dataset
    folds: np.ndarray
    candidates: tuple[Candidate, ...]
    plans: Mapping[str, Plan]
    seed: int
    folder: Path | None

    @property
    def keys(self) -> list[Key]:
        """Every piece: the first fold of all candidates, then the second."""
        numbers = range((int(self.folds.max()) + 1) * self.folds.shape[1])
        return [(candidate.name, number) for number in numbers for candidate in self.candidates]

    def held(self, number: int) -> tuple[np.ndarray, int]:
        """Return which rows (N,) a fold holds out, and its partition."""
        repeat, fold = divmod(number, int(self.folds.max()) + 1)
        return self.folds[:, repeat] == fold, repeat

    def start(self) -> Callable[[Key], Row]:
        """Return the function that fits a candidate without a fold; fits share compiled models."""
        return partial(self._fit, models={})

    def _fit(self, key: Key, *, models: Models) -> Row:
        train, held = self.data.apart(self.held(key[1])[0])
        seed = int(np.random.SeedSequence([self.seed, key[1]]).generate_state(1)[0]) >> 1
        member = self._candidate(key).fit(train, seed, self.plans.get(key[0]), models)
        return {
            **self._row(key, member.status, member.reason),
            "seconds": member.seconds,
            "log_p": member.log_p(held.X).tolist(),
            "error": member.error(held.X, held.y),
        }

    def failure(self, key: Key, reason: str) -> Row:
        """Return the row of a fit that raised an error."""
        return self._row(key, "failed", reason) | {"seconds": 0.0}

    def _row(self, key: Key, status: str, reason: str) -> Row:
        about = {"candidate": key[0], "fold": key[1], "request": self._request(key)}
        return about | {"status": status, "reason": str(reason)}

    def _candidate(self, key: Key) -> Candidate:
        return next(c for c in self.candidates if c.name == key[0])

    def note(self, key: Key, result: Row) -> str:
        """Return which candidate has ended, in which fold."""
        return f"{key[0]}, fold {key[1] + 1}: {result['status']}"

    # --- stored -----------------------------------------------------------------------------------

    def _request(self, key: Key) -> str:
        """Return the hash of all that decides the numbers of a piece."""
        plan, data = self.plans.get(key[0]), self.data
        settings = {
            "data": data.fingerprint,
            "cleaning": data.cleaning.declared() if isinstance(data, Table) else None,
            "plan": None if plan is None else plan.request,
            "candidate": self._candidate(key).settings(),
            "held": np.flatnonzero(self.held(key[1])[0]).tolist(),
            "fold": key[1],
            "seed": self.seed,
        }
        return identity(settings)

    def put(self, key: Key, result: Row) -> None:
        """Write the piece to its file."""
        if self.folder is not None:
            with replacing(self._path(key)) as part:
                part.write_text(json.dumps(result), encoding="utf-8")

    def get(self, key: Key) -> Row | None:
        """Return the piece of the folder, if it is the one asked for and did not fail."""
        if self.folder is None or not self._path(key).exists():
            return None
        try:
            row: Row = json.loads(self._path(key).read_text(encoding="utf-8"))
            same = row["request"] == self._request(key) and row["status"] != "failed"
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("%s cannot be read, so it is computed again: %s", self._path(key), error)
            return None
        return row if same else None

    def _path(self, key: Key) -> Path:
        assert self.folder is not None
        word = re.sub(r"[^\w.=-]+", "_", key[0])
        return self.folder / "folds" / f"{word}-{key[1]:03d}.json"
