"""Time and memory of `jcfo_em`: whole fits, one iteration at 72 x 7129, growth with D.

Run from the root of the checkout, on one core:

    python -m benchmarks.jcfo_em_speed

Memory is the peak of allocations above X and y (tracemalloc, in a run of its own). The whole fits
need ARDVARK_DATA. Seconds an iteration are the median over the first ten of a start, when every
feature is still in the work, and over the rest of it.
"""

import os
import time
import tracemalloc
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import ardvark as av
from ardvark.data import load
from ardvark.inference.fitting import registry
from ardvark.inference.papers.jcfo import em as jcfo_em
from ardvark.inference.papers.jcfo.em import Options
from ardvark.inference.papers.jcfo.em_steps import Basis, State, iterate, seed

TARGET_SECONDS, TARGET_MB = 10.0, 300.0
ROW = "{:<52} {:>11} {:>11} {:>8} {:>8}"


def synthetic(N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = (X[:, :10].sum(axis=1) > 0).astype(float)
    return X, y


def one_start(basis: Basis, y: np.ndarray, number: int, iterations: int, rates: Any) -> list[float]:
    """Return the seconds of each iteration of one start."""
    state = State(basis, y, *seed(basis, y, rates, number, np.random.default_rng(0)), rates)
    options, times = Options(max_iterations=1), []
    for _ in range(iterations):
        began = time.perf_counter()
        iterate(state, options)
        times.append(time.perf_counter() - began)
    return times


def peak_mb(basis: Basis, y: np.ndarray, number: int, rates: Any) -> float:
    tracemalloc.start()
    one_start(basis, y, number, 4, rates)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def whole_fit(name: str, model: str, hypers: dict[str, Any], **options: Any) -> None:
    problem = av.problem(model, load(name), **hypers)
    tree = av.fit(problem, "jcfo_em", random_seed=1, progressbar=False, **options)
    a = tree.attrs
    given = " ".join(f"{k}={v}" for k, v in (hypers | options).items())
    target = f"{TARGET_SECONDS:.0f}" if "prefilter" in options and name == "colon" else ""
    print(ROW.format(f"{name} {model} {given}", f"{a['seconds_run']:.2f}", target, "", ""))
    print(
        f"    {a['status']}: {a['iterations']} iterations of the best start, {a['features']} "
        f"features, {a['samples']} samples, KKT residual {a['kkt_nonzero']:.1e}, "
        f"{a['kkt_violations']} violations at 0, gamma {a['gamma1']:.3g}, "
        f"{a.get('gamma2', np.nan):.3g}"
    )


def main() -> None:
    registry.BACKENDS.setdefault("jcfo_em", jcfo_em)
    print(ROW.format("one iteration", "s, first 10", "s, later", "MB", "target"))
    X, y = synthetic(72, 7129)
    cases = [
        ("linear", Basis(X, X), (1.0, 20.0)),
        ("polynomial 1", Basis(X, X, "polynomial"), (2.0, 10.0)),
        ("polynomial 2", Basis(X, X, "polynomial", 2), (2.0, 10.0)),
        ("rbf", Basis(X, X, "rbf"), (1.0, 10.0)),
        ("sparse probit", Basis(X), (5.0, 1.0)),
    ]
    for name, basis, rates in cases:
        for number in (0, 1) if basis.Z is not None else (0,):
            times = one_start(basis, y, number, 60, rates)
            shown = [f"{np.median(t):.4f}" for t in (times[:10], times[10:])]
            memory = f"{peak_mb(basis, y, number, rates):.0f}"
            label = f"synthetic 72 x 7129 {name}, start {number + 1}"
            print(ROW.format(label, *shown, memory, f"{TARGET_MB:.0f}"))

    before = 0.0
    for D in (10_000, 100_000):
        X, y = synthetic(100, D)
        seconds = float(np.median(one_start(Basis(X, X), y, 1, 5, (1.0, 20.0))))
        growth = f" x{seconds / before:.1f}, target x{10**1.1:.1f}" if before else ""
        memory = peak_mb(Basis(X, X), y, 1, (1.0, 20.0))
        print(ROW.format(f"100 x {D} linear{growth}", f"{seconds:.4f}", "", f"{memory:.0f}", ""))
        print(f"    that is {memory / (X.nbytes / 1e6):.2f} copies of X")
        before = seconds

    if not os.environ.get("ARDVARK_DATA"):
        return
    print(ROW.format("whole fit", "seconds", "target", "", ""))
    linear = {"kernel": "linear"}
    for name in ("colon", "golub"):
        whole_fit(name, "jcfo", linear, prefilter=50)
        whole_fit(name, "jcfo", {}, prefilter=50, select="holdout")
        whole_fit(name, "jcfo", linear | {"gamma2": 400.0})
        whole_fit(name, "jcfo", linear | {"gamma2": 400.0}, revive=True)
        whole_fit(name, "sparse_probit", {}, select="holdout")


if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        main()
