"""Time and memory of a sweep of `rfvm_vb`, its growth with D, and the D x D form beside it.

    python -m lab rfvm_vb_speed                      (ARDVARK_DATA for allaml; on one core)

Seconds are the median over sweeps after the first (which compiles); memory is the peak of
allocations above X and y (tracemalloc, in a run of its own).
"""

import argparse

import numpy as np

from ardvark.data import load
from ardvark.inference.papers.rfvm.factors import Factors
from ardvark.inference.papers.rfvm.vb import Options
from ardvark.models import problem, rfvm
from lab.records import Table, at_most, table
from lab.script import (
    Measured,
    Part,
    growth,
    has_data,
    one_thread,
    peak_mb,
    seconds,
    synthetic,
    times,
)

TARGET_SECONDS, TARGET_MB, TARGET_GROWTH = 0.05, 300.0, 1.1
Pair = tuple[np.ndarray, np.ndarray]


def start(X: np.ndarray, y: np.ndarray, **options: str) -> Factors:
    N, D = X.shape
    h = rfvm.Hypers().fill(N, N, D)
    return Factors(X, y.astype(float), X, h, np.random.default_rng(1), Options(**options))


def sweep(q: Factors) -> None:
    q.sweep()
    q.elbo()


def seconds_a_sweep(q: Factors, sweeps: int) -> float:
    return float(np.median(times(lambda: sweep(q), sweeps + 1)[1:]))


def memory(X: np.ndarray, y: np.ndarray, **options: str) -> float:
    """Return the peak of a start and two sweeps, in MB."""

    def call() -> None:
        q = start(X, y, **options)
        sweep(q)
        sweep(q)

    return peak_mb(call)


def dense_update(q: Factors) -> np.ndarray:
    """Return m_d by D x D matrices, as the released code forms them."""
    GP = (q.Xt @ q.Xt.T) * (q.Zt @ q.A @ q.Zt.T)
    np.fill_diagonal(GP, 0.0)
    linear = (q.Xt @ (q.u - q.b)) * (q.Zt @ q.a)
    return q.tau * (linear - GP @ q.v) / q.precision


def forms(cases: dict[str, Pair], sweeps: int) -> Table:
    """Return a row for each factor and update of v."""
    rows = []
    for name, (X, y) in cases.items():
        for v_factor in ("folded", "truncated"):
            for v_update in ("sequential", "simultaneous"):
                options = {"v_factor": v_factor, "v_update": v_update}
                taken = seconds_a_sweep(start(X, y, **options), sweeps)
                rows.append(
                    {"size": name, "factor": v_factor, "update": v_update, "s a sweep": taken,
                     "MB above the data": memory(X, y, **options)}
                )  # fmt: skip
    return table("", rows, {"s a sweep": ".4f", "MB above the data": ".0f"})


def sizes(N: int, Ds: list[int], sweeps: int) -> tuple[Table, float]:
    """Return a row for each number of features, and the exponent of D of the time."""
    rows, taken = [], []
    for D in Ds:
        X, y = synthetic(N, D)
        taken.append(seconds_a_sweep(start(X, y), sweeps))
        used = memory(X, y)
        rows.append({"size": f"{N} x {D}", "s a sweep": taken[-1], "MB above the data": used,
                     "copies of X": used / (X.nbytes / 1e6)})  # fmt: skip
    formats = {"s a sweep": ".4f", "MB above the data": ".0f", "copies of X": ".1f"}
    return table("Growth with D", rows, formats), growth(Ds, taken)


def dense(N: int, Ds: list[int]) -> Table:
    """Return our sweep beside one update by D x D matrices."""
    rows = []
    for D in Ds:
        q = start(*synthetic(N, D), v_update="simultaneous")
        rows.append({"size": f"{N} x {D}", "whole sweep, s": seconds_a_sweep(q, 10),
                     "one D x D update of m, s": seconds(lambda q=q: dense_update(q)),
                     "its memory, MB, at least": 3 * D * D * 8 / 1e6})  # fmt: skip
    formats = {"whole sweep, s": ".4f", "one D x D update of m, s": ".4f"}
    return table("Beside the D x D form", rows, formats | {"its memory, MB, at least": ".0f"})


def measure(given: argparse.Namespace) -> Measured:
    """Measure the forms, the growth and the D x D form."""
    N, D = (12, 5) if given.quick else (72, 7129)
    cases = {f"synthetic {N} x {D}": synthetic(N, D)}
    if has_data(given):
        real = problem("rfvm", load("allaml"))
        cases["allaml 72 x 7129"] = (real.X, real.y)
    with one_thread():
        first = forms(cases, 2 if given.quick else 40)
        grown, power = sizes(12 if given.quick else 100, [10, 20] if given.quick else
                             [10_000, 100_000], 5)  # fmt: skip
        beside = dense(N, [5, 6] if given.quick else [1000, 2000, 4000])
    taken, used = ([row[i] for row in first.rows] for i in (3, 4))
    goals = [
        at_most("a sweep at 72 x 7129", max(taken), TARGET_SECONDS, "s"),
        at_most("its memory above the data", max(used), TARGET_MB, "MB"),
        at_most("growth to 100 x 100 000: exponent of D", power, TARGET_GROWTH),
    ]
    return Measured(goals, [first, grown, beside])


MEASURES = ("inference/papers/rfvm/vb.py", "inference/papers/rfvm/factors.py")
PARTS = [Part("RFVM's own algorithm", measure)]
