"""Time and memory of `jcfo_em`: whole fits, one iteration at 72 x 7129, growth with D.

    python -m lab jcfo_em_speed                  (ARDVARK_DATA for whole fits; on one core)

Memory is the peak of allocations above X and y (tracemalloc, in a run of its own). The whole fits
are of colon and golub; the quick form takes rows of digits38. Seconds an iteration are the median
over the first ten of a start, when every feature is still in the work, and over the rest of it.
"""

import argparse
from typing import Any

import numpy as np

import ardvark as av
from ardvark.data import Dataset, load
from ardvark.inference.papers.jcfo.em import Options
from ardvark.inference.papers.jcfo.em_steps import Basis, State, iterate, seed
from ardvark.models.parts.kernels import make_kernel
from lab.records import Goal, Table, at_most, table
from lab.script import (
    Measured,
    Part,
    Row,
    growth,
    has_data,
    one_thread,
    peak_mb,
    synthetic,
    times,
)

TARGET_SECONDS, TARGET_MB, TARGET_GROWTH = 10.0, 300.0, 1.1
LINEAR: dict[str, Any] = {"kernel": "linear"}
FITS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (  # model, hypers, options
    ("jcfo", LINEAR, {"prefilter": 50}),
    ("jcfo", {}, {"prefilter": 50, "select": "holdout"}),
    ("jcfo", LINEAR | {"gamma2": 400.0}, {}),
    ("jcfo", LINEAR | {"gamma2": 400.0}, {"revive": True}),
    ("sparse_probit", {}, {"select": "holdout"}),
)


def one_start(basis: Basis, y: np.ndarray, number: int, iterations: int, rates: Any) -> list[float]:
    """Return the seconds of each iteration of one start."""
    state = State(basis, y, *seed(basis, y, rates, number, np.random.default_rng(0)), rates)
    options = Options(max_iterations=1)
    return times(lambda: iterate(state, options), iterations)


def memory(basis: Basis, y: np.ndarray, number: int, rates: Any) -> float:
    return peak_mb(lambda: one_start(basis, y, number, 4, rates))


def iterations(N: int, D: int, count: int) -> Table:
    """Return a row for each basis and start."""
    X, labels = synthetic(N, D)
    y, rows = labels.astype(float), []
    cases = [
        ("linear", Basis(X, X), (1.0, 20.0)),
        ("polynomial 1", Basis(X, X, make_kernel("polynomial", 1)), (2.0, 10.0)),
        ("polynomial 2", Basis(X, X, make_kernel("polynomial", 2)), (2.0, 10.0)),
        ("rbf", Basis(X, X, make_kernel("rbf")), (1.0, 10.0)),
        ("sparse probit", Basis(X), (5.0, 1.0)),
    ]
    for name, basis, rates in cases:
        for number in (0, 1) if basis.Z is not None else (0,):
            taken = one_start(basis, y, number, count, rates)
            rows.append({"basis": name, "start": number + 1, "s, first ten": np.median(taken[:10]),
                         "s, later": np.median(taken[10:]),
                         "MB": memory(basis, y, number, rates)})  # fmt: skip
    formats = {"s, first ten": ".4f", "s, later": ".4f", "MB": ".0f"}
    return table(f"One iteration at {N} x {D}", rows, formats)


def sizes(N: int, Ds: list[int]) -> tuple[Table, float]:
    """Return a row for each number of features, and the exponent of D of the time."""
    rows, taken = [], []
    for D in Ds:
        X, labels = synthetic(N, D)
        y, basis = labels.astype(float), Basis(X, X)
        taken.append(float(np.median(one_start(basis, y, 1, 5, (1.0, 20.0)))))
        used = memory(basis, y, 1, (1.0, 20.0))
        rows.append({"size": f"{N} x {D}", "s an iteration": taken[-1], "MB": used,
                     "copies of X": used / (X.nbytes / 1e6)})  # fmt: skip
    formats = {"s an iteration": ".4f", "MB": ".0f", "copies of X": ".2f"}
    return table("Growth with D, linear", rows, formats), growth(Ds, taken)


def whole_fit(data: Dataset, model: str, hypers: dict[str, Any], options: dict[str, Any]) -> Row:
    """Return what a fit costs and keeps, and how well it is converged."""
    problem = av.problem(model, data, **hypers)
    a = av.fit(problem, "jcfo_em", random_seed=1, progressbar=False, **options).attrs
    return {
        "data": data.name,
        "fit": " ".join([model, *(f"{k}={v}" for k, v in (hypers | options).items())]),
        "s": a["seconds_run"],
        "status": a["status"],
        **{k: a[k] for k in ("iterations", "features", "samples")},
        "KKT residual": a["kkt_nonzero"],
        "violations at 0": a["kkt_violations"],
        "gamma1": a["gamma1"],
        "gamma2": a.get("gamma2", np.nan),
    }


def measure(given: argparse.Namespace) -> Measured:
    """Measure an iteration, its growth and whole fits."""
    q = given.quick
    with one_thread():
        first = iterations(12 if q else 72, 5 if q else 7129, 12 if q else 60)
        grown, power = sizes(12 if q else 100, [10, 20] if q else [10_000, 100_000])
        fits: list[Row] = []
        if q:
            data = load("digits38")
            few = data.take(np.arange(0, data.N, 12))
            fits = [whole_fit(few, "jcfo", LINEAR, {"prefilter": 20})]
        elif has_data(given):
            fits = [whole_fit(load(name), *how) for name in ("colon", "golub") for how in FITS]
    goals: list[Goal] = [
        at_most("memory above the data", max(row[4] for row in first.rows), TARGET_MB, "MB"),
        at_most("growth to 100 x 100 000: exponent of D", power, TARGET_GROWTH),
        *(at_most(f"{f['data']}, {f['fit']}", f["s"], TARGET_SECONDS, "s")
          for f in fits if "prefilter" in f["fit"] and f["data"] == "colon"),
    ]  # fmt: skip
    shown = {"s": ".2f", "KKT residual": ".1e", "gamma1": ".3g", "gamma2": ".3g"}
    whole = [table("Whole fits", fits, shown)] if fits else []
    return Measured(goals, [first, grown, *whole])


MEASURES = ("inference/papers/jcfo", "models/parts/kernels")
PARTS = [Part("JCFO's own algorithm", measure)]
