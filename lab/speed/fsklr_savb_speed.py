"""Time, memory and accuracy of `fsklr_savb`: whole fits, 72 x 7129, growth with D, 5 folds.

    python -m lab fsklr_savb_speed fits              (on one core)
    python -m lab fsklr_savb_speed refit

`refit` is algorithm 2 with as many samples in use as observations, which is most of the time of a
fit: in eta, as it runs, and in the coefficients, in turn and from the same start.

Memory is the peak of allocations above X and y (tracemalloc, in a run of its own with few sweeps;
the visited states of a whole fit add two bytes or less a bit). The folds are of digits38_noisy,
stratified, seed 0, default hyperparameters, beside Table II of the paper, whose own were tuned and
not stated. Ten pixels of digits38 are constant: with noise added they are noise alone.
"""

import argparse
from collections.abc import Iterator
from itertools import islice
from typing import Any
from unittest import mock

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import StratifiedKFold

import ardvark as av
from ardvark.data import load
from ardvark.inference.contract.backend import Job, Result
from ardvark.inference.contract.target import Target
from ardvark.inference.papers.fsklr import savb as fsklr_savb
from ardvark.inference.papers.fsklr import variational
from ardvark.inference.papers.fsklr.savb import Options, Search
from lab.records import Table, at_most, table
from lab.script import (
    Measured,
    Part,
    Row,
    one_thread,
    peak_mb,
    seconds,
    synthetic,
    times,
)

TARGET_SECONDS, TARGET_MB = 60.0, 300.0
PAPER = {  # Table II: accuracy, F1, sparsity
    "fsklr": (0.976, 0.972, 0.547),
    "sklr": (0.960, 0.952, 0.407),
    "fs_skr": (0.925, 0.928, 0.198),
}
FOLDS: tuple[tuple[str, dict[str, Any], int, dict[str, Any]], ...] = (  # hypers, seeds, options
    ("fsklr", {}, 4, {}),
    ("fsklr", {}, 1, {"alpha": "mean"}),
    ("fsklr", {}, 1, {"score": "bound"}),
    ("fsklr", {"mask_prior": "printed"}, 1, {}),
    ("fsklr", {"kernel": "linear"}, 1, {}),
    ("sklr", {}, 1, {}),
    ("fs_skr", {}, 1, {}),
)
FEW = {"feature_sweeps": 3, "sample_sweeps": 3}


def fitted(problem: Any, seed: int = 1, **options: Any) -> Result:
    return fsklr_savb.fit(Target(problem), Options(**options), Job(draws=1, chains=1, seed=seed))


def whole_fit(label: str, problem: Any, sweeps: dict[str, int]) -> Row:
    """Return what a fit costs and selects."""
    _ = problem.X, problem.Z  # the data are not counted
    used = peak_mb(lambda: fitted(problem, **FEW))
    result = fitted(problem, **sweeps)
    a = result.attrs
    return {"fit": label, "s": result.seconds_run, "MB": used, "status": result.status,
            "features": a["features"], "samples": a["samples"], "score": a["score"]}  # fmt: skip


def sweep_seconds(problem: Any) -> float:
    search = Search(problem, Options(), np.random.default_rng(0))

    def sweep() -> None:
        search.sweep_features()
        search.refit()

    return float(np.median(times(sweep, 6)[1:]))  # the first starts with every bit on


def one_fold(
    model: str, hypers: dict[str, Any], seeds: int, options: dict[str, Any]
) -> Iterator[tuple[float, ...]]:
    """Yield the figures of each fold and seed of the search."""
    data, noise = load("digits38_noisy"), load("digits38").X.std(axis=0) == 0.0
    splits = StratifiedKFold(5, shuffle=True, random_state=0).split(data.X, data.y)
    for number, (train, test) in enumerate(splits):
        problem = av.problem(model, data.take(train), **hypers)
        new, y = problem.standardized(data.X[test]), data.y[test]
        for repeat in range(seeds):
            result = fitted(problem, seed=number + 100 * repeat, **options)
            score = fsklr_savb.predict_paper(problem, result.details, new)
            label = score > (0.0 if model == "fs_skr" else 0.5)
            feature, a = result.details["selected_feature"], result.attrs
            yield (
                accuracy_score(y, label), f1_score(y, label), feature.sum(), feature[noise].sum(),
                a["samples"], a["sample_sparsity"], result.seconds_run,
            )  # fmt: skip


def folds(quick: bool) -> Table:
    """Return means over folds and seeds of the search, and the paper's figures."""
    rows: list[Row] = []
    for model, hypers, seeds, options in FOLDS[-2:-1] if quick else FOLDS:
        how = options | (FEW if quick else {})
        some = islice(one_fold(model, hypers, seeds, how), 2 if quick else None)
        found = np.array(list(some))
        m, sd = found.mean(axis=0), found.std(axis=0, ddof=1)
        rows.append(
            {"fit": " ".join([model, *(f"{k}={v}" for k, v in (hypers | options).items())]),
             "seeds": seeds, "accuracy": m[0], "its sd": sd[0], "F1": m[1], "sd of F1": sd[1],
             "features": m[2], "of noise": m[3], "samples": m[4], "sparsity": m[5], "s": m[6]}
        )  # fmt: skip
    for model, (accuracy, f1, sparsity) in PAPER.items():
        printed = {"accuracy": accuracy, "F1": f1, "sparsity": sparsity}
        rows.append({"fit": f"{model}, the paper"} | printed)
    formats = dict.fromkeys(("accuracy", "its sd", "F1", "sd of F1"), ".3f")
    formats |= dict.fromkeys(("features", "of noise", "s"), ".1f")
    return table("Five folds of digits38_noisy", rows, formats | {"samples": ".0f", "sparsity":
                 ".2f"})  # fmt: skip


def whole_fits(quick: bool) -> Table:
    """Return a row for each model, kernel and data."""
    for kernel in ("linear", "rbf"):  # compiles, or loads what was compiled
        fitted(av.problem("fsklr", synthetic(10, 3), kernel=kernel), feature_sweeps=1)
    digits, (N, D) = load("digits38_noisy"), (12, 5) if quick else (72, 7129)
    digits = digits.take(np.arange(0, digits.N, 12)) if quick else digits
    cases = [("fsklr", "rbf"), ("fsklr", "linear"), ("sklr", "rbf"), ("fs_skr", "rbf")]
    rows = [
        whole_fit(f"digits38_noisy {m} {k}", av.problem(m, digits, kernel=k), FEW if quick else {})
        for m, k in cases
    ]
    rows += [
        whole_fit(f"{N} x {D} fsklr {k}", av.problem("fsklr", synthetic(N, D), kernel=k), {})
        for k in ("linear", "rbf")
    ]
    formats = {"s": ".1f", "MB": ".0f", "score": ".1f"}
    return table("Whole fits, 100 + 100 sweeps", rows, formats)


def measure(given: argparse.Namespace) -> Measured:
    """Measure whole fits, growth with D, and five folds."""
    N, Ds = (12, [10, 20]) if given.quick else (100, [10_000, 100_000])
    with one_thread():
        whole = whole_fits(given.quick)
        rows = [
            {"size": f"{N} x {D}, linear", "feature sweep and refit, s": sweep_seconds(
                av.problem("fsklr", synthetic(N, D), kernel="linear"))}
            for D in Ds
        ]  # fmt: skip
        scored = folds(given.quick)
    goals = [
        at_most("100 + 100 sweeps of digits38_noisy, rbf", whole.rows[0][1], TARGET_SECONDS, "s"),
        at_most("memory", max(row[2] for row in whole.rows), TARGET_MB, "MB"),
    ]
    growing = table("Growth with D", rows, {"feature sweep and refit, s": ".4f"})
    return Measured(goals, [whole, growing, scored])


def refits(given: argparse.Namespace) -> Measured:
    """Measure one row for each number of observations, all of them in use."""
    rows: list[Row] = []
    with one_thread():
        for N in (30,) if given.quick else (150, 350, 700, 1150):
            X, label = synthetic(N, 10)
            K = np.exp(-cdist(X, X, "sqeuclidean") / 10)
            y, rho = label.astype(float), np.random.default_rng(0).random(N)

            def refit(limit: float, K: Any = K, y: Any = y, rho: Any = rho) -> Any:
                with mock.patch.object(variational, "_ROWS", limit):
                    return variational.logistic(K, y, 1.0, rho, 300, 1e-3)

            found = {limit: refit(limit) for limit in (0.0, np.inf)}
            taken = [(seconds(lambda: refit(0.0)), seconds(lambda: refit(np.inf)))
                     for _ in range(1 if given.quick else 5)]  # fmt: skip
            eta, alpha = np.median(taken, axis=0)
            apart = np.abs(found[0.0].mean - found[np.inf].mean).max()
            rows.append(
                {"N = A": N, "iterations": len(found[0.0].elbo), "in eta, s": eta,
                 "in alpha, s": alpha, "ratio": np.median([b / a for a, b in taken]),
                 "m apart by": apart}
            )  # fmt: skip
    formats = dict.fromkeys(("in eta, s", "in alpha, s"), ".2f") | {"ratio": ".1f"}
    return Measured(tables=[table("", rows, formats | {"m apart by": ".0e"})])


MEASURES = ("inference/papers/fsklr",)
PARTS = [
    Part("FS-SKLR's own algorithm", measure, "fits"),
    Part("FS-SKLR's algorithm 2 in eta and in the coefficients", refits, "refit"),
]
