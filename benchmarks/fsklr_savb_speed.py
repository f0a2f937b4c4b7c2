"""Time, memory and accuracy of `fsklr_savb`: whole fits, 72 x 7129, growth with D, 5 folds.

Run from the root of the checkout, on one core:

    python -m benchmarks.fsklr_savb_speed

Memory is the peak of allocations above X and y (tracemalloc, in a run of its own with few sweeps;
the visited states of a whole fit add two bytes or less a bit). The folds are of digits38_noisy,
stratified, seed 0, default hyperparameters, beside Table II of the paper, whose own were tuned and
not stated. Ten pixels of digits38 are constant: with noise added they are noise alone.
"""

import time
import tracemalloc
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

import ardvark as av
from ardvark.data import load
from ardvark.inference.contract.backend import Job, Result
from ardvark.inference.contract.target import Target
from ardvark.inference.papers.fsklr import savb as fsklr_savb
from ardvark.inference.papers.fsklr.savb import Options, Search

TARGET_SECONDS, TARGET_MB = 60.0, 300.0
ROW = "{:<44} {:>9} {:>8} {:>6} {:>8}"
FOLD = "{:<38} {:>15} {:>15} {:>9} {:>8} {:>11} {:>8}"
PAPER = {  # Table II: accuracy, F1, sparsity
    "fsklr": (0.976, 0.972, 0.547),
    "sklr": (0.960, 0.952, 0.407),
    "fs_skr": (0.925, 0.928, 0.198),
}


def synthetic(N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    return X, (X[:, :10].sum(axis=1) > 0).astype(int)


def fitted(problem: Any, seed: int = 1, **options: Any) -> Result:
    return fsklr_savb.fit(Target(problem), Options(**options), Job(draws=1, chains=1, seed=seed))


def peak_mb(problem: Any) -> float:
    _ = problem.X, problem.Z
    tracemalloc.start()
    fitted(problem, feature_sweeps=3, sample_sweeps=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def whole_fit(label: str, problem: Any, target: str = "") -> None:
    result = fitted(problem)
    a = result.attrs
    memory = f"{peak_mb(problem):.0f}"
    print(ROW.format(label, f"{result.seconds_run:.1f}", target, memory, f"{TARGET_MB:.0f}"))
    print(
        f"    {result.status} {result.reason}: {a['features']} features, {a['samples']} samples, "
        f"score {a['score']:.1f}"
    )


def sweep_seconds(problem: Any) -> float:
    search, times = Search(problem, Options(), np.random.default_rng(0)), []
    for _ in range(6):
        began = time.perf_counter()
        search.sweep_features()
        search.refit()
        times.append(time.perf_counter() - began)
    return float(np.median(times[1:]))  # the first starts with every bit on


def folds(model: str, hypers: dict[str, Any], *, seeds: int = 1, **options: Any) -> None:
    """Print means over folds and seeds of the search."""
    data, noise = load("digits38_noisy"), load("digits38").X.std(axis=0) == 0.0
    rows = []
    splits = StratifiedKFold(5, shuffle=True, random_state=0).split(data.X, data.y)
    for number, (train, test) in enumerate(splits):
        problem = av.problem(model, data.take(train), **hypers)
        new = problem.standardized(data.X[test])
        for repeat in range(seeds):
            result = fitted(problem, seed=number + 100 * repeat, **options)
            score = fsklr_savb.predict_paper(problem, result.details, new)
            label = score > (0.0 if model == "fs_skr" else 0.5)
            feature, a = result.details["selected_feature"], result.attrs
            rows.append(
                [
                    accuracy_score(data.y[test], label),
                    f1_score(data.y[test], label),
                    feature.sum(),
                    feature[noise].sum(),
                    a["samples"],
                    a["sample_sparsity"],
                    result.seconds_run,
                ]
            )
    m, sd = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
    if seeds > 1:
        by_seed = np.reshape(rows, (5, seeds, -1))[:, :, 0].mean(axis=0)
        print(f"accuracy by seed of the search: {np.round(by_seed, 3)}")
    print(
        FOLD.format(
            " ".join([model, *(f"{k}={v}" for k, v in (hypers | options).items())]),
            f"{m[0]:.3f} +- {sd[0]:.3f}",
            f"{m[1]:.3f} +- {sd[1]:.3f}",
            f"{m[2]:.1f}",
            f"{m[3]:.1f}",
            f"{m[4]:.0f} ({m[5]:.2f})",
            f"{m[6]:.1f}",
        )
    )


def main() -> None:
    for kernel in ("linear", "rbf"):  # compiles, or loads what was compiled
        fitted(av.problem("fsklr", synthetic(10, 3), kernel=kernel), feature_sweeps=1)
    print(ROW.format("whole fit, 100 + 100 sweeps", "seconds", "target", "MB", "target"))
    digits = load("digits38_noisy")
    for model, kernel in (
        ("fsklr", "rbf"),
        ("fsklr", "linear"),
        ("sklr", "rbf"),
        ("fs_skr", "rbf"),
    ):
        problem = av.problem(model, digits, kernel=kernel)
        whole_fit(f"digits38_noisy {model} {kernel}", problem, f"{TARGET_SECONDS:.0f}")
    for kernel in ("linear", "rbf"):
        problem = av.problem("fsklr", synthetic(72, 7129), kernel=kernel)
        whole_fit(f"synthetic 72 x 7129 fsklr {kernel}", problem)

    before = 0.0
    for D in (10_000, 100_000):
        problem = av.problem("fsklr", synthetic(100, D), kernel="linear")
        seconds = sweep_seconds(problem)
        growth = f", x{seconds / before:.1f}" if before else ""
        print(f"feature sweep and refit, 100 x {D} linear: {seconds:.4f} s{growth}")
        before = seconds

    print(FOLD.format("5 folds", "accuracy", "F1", "features", "of noise", "samples", "seconds"))
    folds("fsklr", {}, seeds=4)
    folds("fsklr", {}, alpha="mean")
    folds("fsklr", {}, score="bound")
    folds("fsklr", {"mask_prior": "printed"})
    folds("fsklr", {"kernel": "linear"})
    folds("sklr", {})
    folds("fs_skr", {})
    for model, (accuracy, f1, sparsity) in PAPER.items():
        print(FOLD.format(f"{model}, the paper", accuracy, f1, "", "", f"({sparsity})", ""))


if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        main()
