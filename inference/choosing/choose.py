"""`choose`: scores of several candidates on the same folds of one table, so that one can choose."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ardvark.common.pieces import Processes
from ardvark.common.progress import Reporter
from ardvark.common.validate import InputError, logger, whole
from ardvark.common.writer import one_writer
from ardvark.data import Dataset
from ardvark.models.always import compared
from ardvark.models.arguments import as_dataset

from ..methods import registry
from ..samplers.exact.measured import between, likely_folds
from ..samplers.exact.method import IN_A_FOLD
from ..samplers.exact.rule import pick
from ..target.backend import FitFailed
from ..target.sampling import Sampling
from ..target.target import Target
from .candidates import Candidate, Given, Plain, Row, Zoo
from .candidates import candidates as made_of
from .choice import Choice
from .folds import Key, Refits, partitions

_SHORT = 10.0
"""Seconds of plain candidates that nobody is told of beforehand."""


def choose(
    data: Any = None,
    y: Any = None,
    *,
    candidates: Iterable[str] | Mapping[str, Given] | None = None,
    always: Sequence[str] = (),
    groups: Any = None,
    folds: int = 5,
    repeats: int = 1,
    method: str = "exact",
    draws: int = 500,
    chains: int = 4,
    random_seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    processes: Processes = None,
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
        pipelines. By default rfvm, jcfo, fsklr, horseshoe and these four; where there are columns
        that are always in, also "covariates", a ridge regression on these alone.
    always : sequence of str
        Columns that are always in the models of the zoo, as for `ardvark.problem`. For the plain
        classifiers they are features as others are.
    groups : array (N,), or the name of a column of a frame, optional
        Which rows belong together, such as visits of a patient: folds keep them together, and so
        do the inner folds that choose a penalty. A table may have them already.
    folds, repeats : int
        Number of folds, and of partitions into so many folds. Classes are spread evenly.
    method : str
        How models of the zoo are fitted. Anything but "exact" approximates.
    draws, chains : int
        Of each fit; "exact" draws as many as it needs.
    random_seed : int
        Equal seeds give equal results, with any number of processes.
    folder : path, optional
        For the pieces, one small file each. Killed and run again, the same call continues.
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
    kept = [always] if isinstance(always, str) else list(always)
    dataset = compared(as_dataset(data, y, None, kept, groups), kept)
    _check(dataset, folds, repeats)
    sampling = Sampling(draws=draws, chains=chains, seed=random_seed, keep="shared")
    own = {**(IN_A_FOLD if method.casefold() == "exact" else {}), **options}
    asked = made_of(candidates, always)
    whole_ones = []
    for name, candidate in asked.items():
        if isinstance(candidate, Zoo):  # what is wrong with it is said before anything runs
            whole_ones.append(candidate.problem(dataset))
            plan = registry.prepare(method, whole_ones[-1], own, sampling)
            asked[name] = replace(candidate, plan=plan.on(processes))
    held = partitions(dataset.y, folds, repeats, random_seed, dataset.groups)
    place = None if folder is None else Path(folder)
    refits = Refits(dataset, asked, held, random_seed, place)
    keys = list(product(range(len(held)), asked))
    at_once = processes if isinstance(processes, int) else 1
    if whole_ones and method.casefold() == "exact":
        ess = float(own["ess"]) / registry.BACKENDS["exact"].Options().ess
        samplers = [(problem, pick(Target(problem)).name) for problem in whole_ones]
        time = likely_folds(samplers, len(held) / at_once, ess)
        fits = len(samplers) * len(held)
        logger.info("choose: %d fits of models%s", fits, time and f", which {time}")
    _foretell_plain(asked, dataset, held, at_once)
    stage = Reporter(f"choose on {dataset.name}", progressbar).stage("fits", total=len(keys))
    with nullcontext() if place is None else one_writer(place):
        rows = refits.run([(name, fold) for fold, name in keys], processes, stage)
    return _collected(refits, rows, repeats)


def _check(data: Dataset, folds: int, repeats: int) -> None:
    few = int(np.argmin(data.counts))
    if data.counts[few] < 2:
        raise InputError(
            f"class {data.class_names[few]!r} has only one sample, which cannot be held out and "
            "learned from. Folds need at least 2 samples of each class."
        )
    whole("folds", folds, 2, max(data.counts))
    whole("repeats", repeats, 1)


def _foretell_plain(
    asked: Mapping[str, Candidate], data: Dataset, held: Sequence[np.ndarray], at_once: int
) -> None:
    """Say how long the fits of plain candidates may take, unless it is a matter of seconds."""
    rows = data.N - int(held[0].sum())
    each = [c.seconds(rows, data.D) for c in asked.values() if isinstance(c, Plain)]
    known = [seconds for seconds in each if seconds is not None]
    time, unknown = sum(known) * len(held) / at_once, len(each) - len(known)
    if 3.0 * time > _SHORT or unknown:
        times = f", which may take {between(time / 3.0, 3.0 * time)}" if known else ""
        more = f"; how long {unknown} of them take is not known" if unknown else ""
        fits = len(each) * len(held)
        logger.info("choose: %d fits of plain classifiers%s%s", fits, times, more)


def _collected(refits: Refits, rows: Mapping[Key, Row], repeats: int) -> Choice:
    """Return the choice that rows make; those of a candidate that failed once are left out."""
    data, held, folds = refits.data, refits.held, len(refits.held) // repeats
    fits = pd.DataFrame([{"candidate": n, "fold": f, **row} for (n, f), row in rows.items()])
    fits = fits.drop(columns="log_p", errors="ignore")
    reasons = fits[fits["status"] == "failed"].groupby("candidate", sort=False)["reason"]
    for name, said in reasons:
        logger.warning("%s failed in %d of %d folds: %s", name, len(said), len(held), said.iloc[0])
    first = reasons.first()
    having = [name for name in refits.asked if name not in first]
    if not having:
        told = "; ".join(f"{name}: {reason}" for name, reason in first.items())
        raise FitFailed(f"every candidate failed. {told}")
    number = np.empty((data.N, repeats), dtype=int)
    log_p = {name: np.empty((data.N, repeats, 2)) for name in having}
    for fold, out in enumerate(held):
        number[out, fold // folds] = fold % folds
        for name in having:
            log_p[name][out, fold // folds] = rows[name, fold]["log_p"]
    asked = {name: candidate.asked for name, candidate in refits.asked.items()}
    return Choice(data.name, asked, data.y, number, log_p, fits)
