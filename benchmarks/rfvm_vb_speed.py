"""Time and memory of a sweep of `rfvm_vb`, its growth with D, and the D x D form beside it.

Run from the root of the checkout, on one core:

    python -m benchmarks.rfvm_vb_speed

Seconds are the median over sweeps after the first (which compiles); memory is the peak of
allocations above X and y (tracemalloc, in a run of its own). With ARDVARK_DATA set, ALLAML too.
"""

import os
import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

from ardvark.data import load
from ardvark.inference.papers.rfvm.factors import Factors
from ardvark.inference.papers.rfvm.vb import Options
from ardvark.models import problem, rfvm

TARGET_SECONDS, TARGET_MB = 0.05, 300.0
ROW = "{:<44} {:>12} {:>12} {:>12} {:>12}"


def synthetic(N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = (X[:, :10].sum(axis=1) > 0).astype(float)
    return X, y


def start(X: np.ndarray, y: np.ndarray, **options: str) -> Factors:
    N, D = X.shape
    h = rfvm.Hypers().filled(N, N, D)
    return Factors(X, y, X, h, np.random.default_rng(1), Options(**options))


def seconds_per_sweep(q: Factors, sweeps: int) -> float:
    times = []
    for _ in range(sweeps + 1):
        began = time.perf_counter()
        q.sweep()
        q.elbo()
        times.append(time.perf_counter() - began)
    return float(np.median(times[1:]))


def peak_mb(X: np.ndarray, y: np.ndarray, **options: str) -> float:
    tracemalloc.start()
    q = start(X, y, **options)
    for _ in range(2):
        q.sweep()
        q.elbo()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def dense_update(q: Factors) -> np.ndarray:
    """Return m_d by D x D matrices, as the released code forms them."""
    GP = (q.Xt @ q.Xt.T) * (q.Zt @ q.A @ q.Zt.T)
    np.fill_diagonal(GP, 0.0)
    linear = (q.Xt @ (q.u - q.b)) * (q.Zt @ q.a)
    return q.tau * (linear - GP @ q.v) / q.precision


def main() -> None:
    print(ROW.format("", "s a sweep", "target", "MB", "target"))
    cases = {"synthetic 72 x 7129": synthetic(72, 7129)}
    if os.environ.get("ARDVARK_DATA"):
        given = problem("rfvm", load("allaml"))
        cases["allaml 72 x 7129"] = (given.X, given.y.astype(float))
    for name, (X, y) in cases.items():
        for v_factor in ("folded", "truncated"):
            for v_update in ("sequential", "simultaneous"):
                options = {"v_factor": v_factor, "v_update": v_update}
                seconds = seconds_per_sweep(start(X, y, **options), 40)
                row = (f"{seconds:.4f}", TARGET_SECONDS, f"{peak_mb(X, y, **options):.0f}")
                print(ROW.format(f"{name} {v_factor} {v_update}", *row, f"{TARGET_MB:.0f}"))

    before = 0.0
    for D in (10_000, 100_000):
        X, y = synthetic(100, D)
        seconds = seconds_per_sweep(start(X, y), 5)
        growth = f"x{seconds / before:.1f}" if before else ""
        memory = peak_mb(X, y)
        target = "x10" if before else ""
        print(ROW.format(f"100 x {D} {growth}", f"{seconds:.4f}", target, f"{memory:.0f}", ""))
        print(f"    that is {memory / (X.nbytes / 1e6):.2f} copies of X")
        before = seconds

    for D in (1000, 2000, 4000):
        q = start(*synthetic(72, D), v_update="simultaneous")
        seconds = seconds_per_sweep(q, 10)
        began = time.perf_counter()
        dense_update(q)
        dense = time.perf_counter() - began
        print(
            f"72 x {D}: whole sweep {seconds:.4f} s; one D x D update of m alone {dense:.4f} s, "
            f"at least {3 * D * D * 8 / 1e6:.0f} MB"
        )


if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        main()
