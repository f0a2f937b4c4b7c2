"""The same folds for every candidate: each piece is one candidate without one fold.

Everything is learned on the rows outside the fold: levels and fill values of a table, means and
standard deviations, hyperparameters that follow from the sizes of the data, and penalties.

joblib keeps each piece in a folder as it ends, so that a run that was killed goes on where it was.
A thread predicts one piece after another, and its fits share the models that it has compiled.
"""

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import joblib
import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold
from threadpoolctl import threadpool_limits

from ardvark.common import memory
from ardvark.common.store import identity
from ardvark.common.validate import logger
from ardvark.data import Dataset, Table

from .candidates import Candidate, Row

compiled = threading.local()
"""What each thread has compiled: `models`."""


def partitions(y: np.ndarray, folds: int, repeats: int, seed: int) -> list[np.ndarray]:
    """Return which rows (N,) each fold holds out; those of the second repeat follow the first's.

    Sizes of folds differ by at most one, and so do the numbers of rows of a class. More repeats
    keep the first ones.
    """
    state = int(np.random.SeedSequence(seed).generate_state(1)[0])
    splitter = RepeatedStratifiedKFold(n_splits=folds, n_repeats=repeats, random_state=state)
    with warnings.catch_warnings():
        # a class may have fewer rows than there are folds: each training set still has some
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return [np.isin(np.arange(len(y)), held) for _, held in splitter.split(y, y)]


def attempt(
    candidate: Candidate,
    data: Dataset,
    held: np.ndarray,
    seed: tuple[int, int],
    folder: Path | None,
    part: float,
) -> Row:
    """Return what a candidate says of a fold; of one that raises an error, the error.

    Parameters
    ----------
    candidate : Candidate
    data : Dataset
        All rows.
    held : array (N,)
        Which of them are held out.
    seed : tuple of int
        That of all fits, and the number of the fold: a seed is made of both, the same for all
        candidates.
    folder : Path, optional
        Where the answer is kept, and found again.
    part : float
        The bytes of memory that the fit may take.
    """
    memory.limit(part)
    store = joblib.Memory(folder, verbose=0)
    answer = store.cache(predicted, ignore=["candidate", "data", "held", "seed"])
    own = int(np.random.SeedSequence(seed).generate_state(1)[0]) >> 1
    try:
        with _silent(), threadpool_limits(1, user_api="blas"):
            row: Row = answer(_request(candidate, data, held, own), candidate, data, held, own)
            return row
    except Exception as error:
        logger.debug("traceback", exc_info=True)
        reason = f"{type(error).__name__}: {error}"
        return {"status": "failed", "reason": reason, "seconds": 0.0, "error": np.nan}


def _request(candidate: Candidate, data: Dataset, held: np.ndarray, seed: int) -> str:
    """Return the hash of all that decides an answer, by which a stored one is known."""
    cleaning = data.cleaning.declared() if isinstance(data, Table) else None
    rows = np.flatnonzero(held).tolist()
    return identity([data.fingerprint, cleaning, candidate.settings, rows, seed])


def predicted(
    request: str, candidate: Candidate, data: Dataset, held: np.ndarray, seed: int
) -> Row:
    """Return what a candidate says of a fold; `request` decides it."""
    models = vars(compiled).setdefault("models", {})
    return candidate.predict(*data.apart(held), seed, models)


@contextmanager
def _silent() -> Iterator[None]:
    """Silence the logger in this thread: hundreds of fits would warn, and `choose` reports once."""
    here = threading.get_ident()

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    logger.addFilter(elsewhere)
    try:
        yield
    finally:
        logger.removeFilter(elsewhere)
