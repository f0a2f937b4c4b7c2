"""The same folds for every candidate: each piece is one candidate without one fold.

Everything is learned on the rows outside the fold: levels and fill values of a table, means and
standard deviations, hyperparameters that follow from the sizes of the data, and penalties.

Each piece is a small file as it ends, so that a run that was killed goes on where it was.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np

from ardvark.common.pieces import Pieces
from ardvark.common.store import identity
from ardvark.data import Dataset, Table
from ardvark.data.groups import folds_of

from ..fits.datatree import replacing
from .candidates import Candidate, Row

Key = tuple[str, int]
"""The name of a candidate, and the number of the fold that it does without."""


def partitions(
    y: np.ndarray, folds: int, repeats: int, seed: int, groups: Sequence[str] | None = None
) -> list[np.ndarray]:
    """Return which rows (N,) each fold holds out; those of the second repeat follow the first's.

    Sizes of folds differ by at most one, and so do the numbers of rows of a class, unless rows
    belong to groups, which stay together. More repeats keep the first ones.
    """
    state = int(np.random.SeedSequence(seed).generate_state(1)[0])
    return folds_of(y, groups, folds, repeats, state)


@dataclass(frozen=True, eq=False)
class Refits(Pieces[Key, Row]):
    """What each candidate says of each fold.

    Attributes
    ----------
    data : Dataset
        All rows.
    asked : dict of Candidate
    held : sequence of array (N,)
        Which rows each fold holds out.
    seed : int
        The seed of a fit is made of it and of the number of the fold, the same for all candidates.
    folder : Path, optional
        Where answers are kept, and found again.
    """

    data: Dataset
    asked: Mapping[str, Candidate]
    held: Sequence[np.ndarray]
    seed: int
    folder: Path | None = None

    def start(self) -> Callable[[Key], Row]:
        """Return the function that predicts a fold; the fits of a thread share their models."""
        compiled = threading.local()

        def predicted(key: Key) -> Row:
            name, fold = key
            models = vars(compiled).setdefault("models", {})
            train, held = self.data.apart(self.held[fold])
            return self.asked[name].predict(train, held, self._seed(fold), models)

        return predicted

    def failure(self, key: Key, reason: str) -> Row:
        """Return a row without predictions."""
        return {"status": "failed", "reason": reason, "seconds": 0.0, "error": np.nan}

    def get(self, key: Key) -> Row | None:
        """Return the stored row; none if its file was damaged."""
        if self.folder is None or not self._path(key).exists():
            return None
        try:
            row: Row = joblib.load(self._path(key))
        except Exception:  # whatever a pickle that was cut short raises
            return None
        return row

    def put(self, key: Key, result: Row) -> None:
        """Store what did not fail."""
        if self.folder is not None and result["status"] != "failed":
            with replacing(self._path(key)) as part:
                joblib.dump(result, part)

    def note(self, key: Key, result: Row) -> str:
        """Return which piece has ended."""
        return f"{key[0]}, fold {key[1] + 1}: {result['status']}"

    def _seed(self, fold: int) -> int:
        return int(np.random.SeedSequence((self.seed, fold)).generate_state(1)[0]) >> 1

    def _path(self, key: Key) -> Path:
        """Return the file of a piece, by the hash of all that decides it."""
        assert self.folder is not None
        (name, fold), data = key, self.data
        cleaning = data.cleaning.declared() if isinstance(data, Table) else None
        rows = np.flatnonzero(self.held[fold]).tolist()
        decides = [data.fingerprint, cleaning, self.asked[name].settings, rows, self._seed(fold)]
        if data.groups is not None:  # inner folds keep them together
            decides.append(list(data.groups))
        return self.folder / f"{identity(decides)}.pkl"
