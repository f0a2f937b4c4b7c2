"""`choose`: several candidates on the same folds of one table."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from ardvark.common import memory
from ardvark.common.progress import Reporter
from ardvark.common.validate import InputError, logger, whole
from ardvark.common.writer import one_writer
from ardvark.data import Dataset
from ardvark.models.arguments import as_dataset

from ..methods import registry
from ..samplers.exact.method import IN_A_FOLD
from ..target.backend import FitFailed
from ..target.sampling import Sampling
from .candidates import Candidate, Given, Row, Zoo
from .candidates import candidates as made_of
from .choice import Choice
from .folds import attempt, compiled, partitions


def choose(
    data: Any = None,
    y: Any = None,
    *,
    candidates: Iterable[str] | Mapping[str, Given] | None = None,
    always: Sequence[str] = (),
    folds: int = 5,
    repeats: int = 1,
    method: str = "exact",
    draws: int = 500,
    chains: int = 4,
    random_seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    processes: int | None = None,
    progressbar: bool = True,
    **options: Any,
) -> Choice:
    """Compare models of the zoo and plain classifiers on the same folds.

    Each candidate is fitted without each fold, and predicts it. Whatever is learned is learned
    outside the fold: standardisation, levels and fill values of a table, hyperparameters that
    follow from the sizes of the data, penalties.

    Parameters
    ----------
    data, y : Dataset, name, arrays or data frame
        As for `ardvark.problem`, without the model.
    candidates : sequence of str, or dict, optional
        Models of the zoo ("rfvm"), with hyperparameters if you like ("pfcvm:kernel=rbf:slab=2");
        "l1", "elastic_net" and "ridge", logistic regression with a penalty that an inner
        cross-validation chooses; "share", the share of the classes. A dict gives names of your own
        to such words, to dicts of "model" and hyperparameters, or to scikit-learn's classifiers and
        pipelines. By default rfvm, jcfo, fsklr, horseshoe and these four.
    always : sequence of str
        Columns that are always in the models of the zoo, as for `ardvark.problem`. For the plain
        classifiers they are features as others are.
    folds, repeats : int
        Number of folds, and of partitions into so many folds. Classes are spread evenly.
    method : str
        How models of the zoo are fitted. Anything but "exact" approximates.
    draws, chains : int
        Of each fit; "exact" draws as many as it needs.
    random_seed : int
        Equal seeds give equal results, with any number of processes.
    out : path, optional
        A folder for the pieces, one small file each. Killed and run again, the same call continues.
    processes : int, optional
        Number of fits that run in parallel, each on one core, by joblib. None: as many as
        `joblib.parallel_config` says, or one; it also says where, such as on a Dask cluster.
    progressbar : bool
        Show how many fits are done, and how long the rest may take.
    **options
        Of the method. By default "exact" has ``ess=400`` and ``limit=2048`` here.

    Returns
    -------
    Choice
        Its `table`, `sentence` and `plot`.

    Raises
    ------
    InputError
        An unknown candidate or one without probabilities, a method that does not apply, fewer than
        2 folds or more than the larger class has rows, a class with a single row.
    TypeError
        An unknown hyperparameter or option.
    FitFailed
        Every candidate failed.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> choice = av.choose(X, X[:, 0] > 0, candidates=["l1", "ridge", "share"], progressbar=False)
    >>> choice.table.loc["share", "log_score"].round(1)
    np.float64(-0.7)
    >>> print(choice)
    data: 3 candidates, 40 rows, each held out once in 5 folds
    ...
    """
    dataset = as_dataset(data, y, None)
    _check(dataset, folds, repeats)
    jobs = joblib.effective_n_jobs(processes)
    sampling = Sampling(draws=draws, chains=chains, seed=random_seed, keep="shared")
    own = {**(IN_A_FOLD if method.casefold() == "exact" else {}), **options}
    asked = made_of(candidates, always)
    for name, candidate in asked.items():
        if isinstance(candidate, Zoo):  # what is wrong with it is said before anything runs
            plan = registry.prepare(method, candidate.problem(dataset), own, sampling)
            asked[name] = replace(candidate, plan=plan.on(jobs))
    held = partitions(dataset.y, folds, repeats, random_seed)
    folder = None if out is None else Path(out)
    with nullcontext() if folder is None else one_writer(folder):
        found = _run(dataset, asked, held, random_seed, folder, jobs, progressbar)
    return _collected(dataset, asked, held, folds, found)


def _check(data: Dataset, folds: int, repeats: int) -> None:
    few = int(np.argmin(data.counts))
    if data.counts[few] < 2:
        raise InputError(
            f"class {data.class_names[few]!r} has only one sample, which cannot be held out and "
            "learned from. Folds need at least 2 samples of each class."
        )
    whole("folds", folds, 2, max(data.counts))
    whole("repeats", repeats, 1)


def _run(
    data: Dataset,
    asked: Mapping[str, Candidate],
    held: Sequence[np.ndarray],
    seed: int,
    folder: Path | None,
    jobs: int,
    progressbar: bool,
) -> list[Row]:
    """Return what each candidate says of the first fold, then of the second."""
    pieces = [(name, fold) for fold in range(len(held)) for name in asked]
    part = memory.allowed() / jobs
    said = joblib.Parallel(n_jobs=jobs, return_as="generator")(
        joblib.delayed(attempt)(asked[name], data, held[fold], (seed, fold), folder, part)
        for name, fold in pieces
    )
    found: list[Row] = []
    stage = Reporter(f"choose on {data.name}", progressbar).stage("fits", total=len(pieces))
    try:
        with stage as update:
            for (name, fold), row in zip(pieces, said, strict=True):
                found.append({"candidate": name, "fold": fold, **row})
                update(len(found), f"{name}, fold {fold + 1}: {row['status']}")
    finally:
        vars(compiled).clear()
        memory.limit(np.inf)
    return found


def _collected(
    data: Dataset,
    asked: Mapping[str, Candidate],
    held: Sequence[np.ndarray],
    folds: int,
    found: list[Row],
) -> Choice:
    """Return the choice that rows make; those of a candidate that failed once are left out."""
    fits = pd.DataFrame(found).drop(columns="log_p", errors="ignore")
    failed = fits[fits["status"] == "failed"]
    for name, bad in failed.groupby("candidate", sort=False):
        reason = bad["reason"].iloc[0]
        logger.warning("%s failed in %d of %d folds: %s", name, len(bad), len(held), reason)
    having = [name for name in asked if name not in set(failed["candidate"])]
    if not having:
        first = failed.drop_duplicates("candidate")
        reasons = first["candidate"] + ": " + first["reason"]
        raise FitFailed(f"every candidate failed. {'; '.join(reasons)}")
    repeats = len(held) // folds
    number = np.empty((data.N, repeats), dtype=int)
    log_p = {name: np.empty((data.N, repeats, 2)) for name in having}
    for fold, rows in enumerate(held):
        number[rows, fold // folds] = fold % folds
    for row in found:
        if row["candidate"] in log_p:
            log_p[row["candidate"]][held[row["fold"]], row["fold"] // folds] = row["log_p"]
    given = {name: candidate.asked for name, candidate in asked.items()}
    return Choice(data.name, given, data.y, number, log_p, fits)
