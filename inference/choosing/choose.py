"""`choose`: several candidates on the same folds of one table."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ardvark.common.pieces import Processes
from ardvark.common.progress import Reporter, forecast
from ardvark.common.validate import InputError, logger, whole
from ardvark.common.writer import one_writer
from ardvark.data import Dataset
from ardvark.models.arguments import as_dataset

from ..methods import registry
from ..samplers.exact.method import IN_A_FOLD
from ..target.backend import FitFailed
from ..target.sampling import Sampling
from .candidates import Candidate, Given, Zoo
from .candidates import candidates as made_of
from .choice import Choice
from .folds import Folds, Key, Row, partitions


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
    processes: Processes = None,
    progressbar: bool = True,
    **options: Any,
) -> Choice:
    """Compare models of the zoo and plain classifiers on the same folds, and stack them.

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
        to such words, or to dicts of "model" and hyperparameters. By default rfvm, jcfo, fsklr,
        horseshoe and these four.
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
        How many fits run at once, each in a process of its own. By default as
        `joblib.parallel_config` says: one, unless it was called.
    progressbar : bool
        Show how many fits are done, and how long the rest will take as soon as the first fold is.
    **options
        Of the method. By default "exact" has ``ess=400`` and ``limit=2048`` here.

    Returns
    -------
    Choice
        Its `table`, `sentence`, `weights` and `plot`; `fit` gives the stack on all rows.

    Raises
    ------
    InputError
        An unknown candidate or one without probabilities, a method that does not apply, fewer than
        2 folds or more than rows, a class with a single row.
    TypeError
        An unknown hyperparameter or option.
    FitFailed
        Every candidate failed.

    Notes
    -----
    The weights maximise the log score of the mixture of predictive distributions (Yao, Vehtari,
    Simpson, Gelman 2018, Bayesian Analysis 13(3)). `Choice` says how the stack is scored, and what
    the folds cannot show.

    Examples
    --------
    >>> import joblib
    import numpy as np
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
    work = _planned(
        dataset,
        with_always(made_of(candidates), always),
        _checked(dataset, folds, repeats),
        Sampling(draws=draws, chains=chains, seed=random_seed, keep="shared"),
        method=method,
        options=options,
        folder=None if out is None else Path(out),
        processes=processes,
    )
    with nullcontext() if out is None else one_writer(out):
        rows = _run(work, processes, progressbar)
    about = {
        "data": dataset.name,
        "fingerprint": dataset.fingerprint,
        "classes": list(dataset.class_names),
        "folds": folds,
        "seed": random_seed,
        "method": method,
        "draws": draws,
        "chains": chains,
        "options": _options(method, options),
    }
    return _collected(work, rows, about)


def with_always(found: Iterable[Candidate], always: Sequence[str]) -> tuple[Candidate, ...]:
    """Return candidates whose models keep columns, beside hyperparameters of their own."""
    names = [always] if isinstance(always, str) else list(always)
    if not names:
        return tuple(found)
    kept = {"always": names}
    return tuple(
        replace(c, hypers={**kept, **c.hypers}) if isinstance(c, Zoo) else c for c in found
    )


def _checked(data: Dataset, folds: int, repeats: int) -> tuple[int, int]:
    folds, repeats = whole("folds", folds, 2, data.N), whole("repeats", repeats, 1)
    few = int(np.argmin(data.counts))
    if data.counts[few] < 2:
        raise InputError(
            f"class {data.class_names[few]!r} has only one sample, which cannot be held out and "
            "learned from. Folds need at least 2 samples of each class."
        )
    return folds, repeats


def _options(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    return {**(IN_A_FOLD if method.casefold() == "exact" else {}), **options}


def _planned(
    data: Dataset,
    found: tuple[Candidate, ...],
    sizes: tuple[int, int],
    sampling: Sampling,
    *,
    method: str,
    options: Mapping[str, Any],
    folder: Path | None,
    processes: Processes,
) -> Folds:
    """Return the work; whatever is wrong with a candidate is said here, before anything runs."""
    own = _options(method, options)
    problems = {c.name: c.problem(data) for c in found if isinstance(c, Zoo)}
    plans = {
        name: registry.prepare(method, problem, own, sampling).on(processes)
        for name, problem in problems.items()
    }
    drawn = partitions(data.y, *sizes, sampling.seed)
    return Folds(data, drawn, found, plans, sampling.seed, folder)


def _run(work: Folds, processes: Processes, progressbar: bool) -> list[Row]:
    """Return all pieces; say how long the rest takes once the first fold is done."""
    keys, ended = work.keys, dict[Key, Row]()
    stage = Reporter(f"choose on {work.data.name}", progressbar).stage("fits", total=len(keys))
    first = {key for key in keys if key[1] == 0}
    for key, row in work.results(keys, processes, stage):
        ended[key] = row
        if progressbar and key in first and first <= ended.keys():
            left = [k for k in keys if k not in ended]
            print(estimate(ended, left, processes), file=sys.stderr)
    return list(ended.values())


def estimate(ended: Mapping[Key, Row], left: Sequence[Key], processes: Processes) -> str:
    """Return how long the pieces that are left may take, by what each candidate took at first."""
    seconds = sum(ended[name, 0]["seconds"] for name, _ in left)
    return forecast("choose", len(ended), len(left), seconds / joblib.effective_n_jobs(processes))


def _collected(work: Folds, rows: list[Row], about: Mapping[str, Any]) -> Choice:
    """Return the choice that pieces make."""
    log_p: dict[str, np.ndarray] = {}
    errors: dict[str, np.ndarray] = {}
    fits: dict[str, dict[str, Any]] = {}
    for candidate in work.candidates:
        name = candidate.name
        mine = sorted((r for r in rows if r["candidate"] == name), key=lambda r: r["fold"])
        bad = [r for r in mine if r["status"] == "failed"]
        early = [r for r in mine if r["status"] == "not_converged"]
        fits[name] = {
            "seconds": float(sum(r["seconds"] for r in mine)),
            "unconverged": len(early),
            "reason": next((r["reason"] for r in [*bad, *early]), ""),
        }
        if bad:
            logger.warning(
                "%s failed in %d of %d folds: %s", name, len(bad), len(mine), bad[0]["reason"]
            )
            continue
        log_p[name] = np.empty((*work.folds.shape, 2))
        errors[name] = np.array([row["error"] for row in mine])
        for row in mine:
            held, repeat = work.held(row["fold"])
            log_p[name][held, repeat] = row["log_p"]
    if not log_p:
        reasons = "; ".join(f"{name}: {fit['reason']}" for name, fit in fits.items())
        raise FitFailed(f"every candidate failed. {reasons}")
    asked = {candidate.name: candidate.asked() for candidate in work.candidates}
    return Choice(about, asked, work.data.y, work.folds, log_p, errors, fits, work.data)
