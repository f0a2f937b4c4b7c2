"""Time and memory of an iteration of `pfcvm_lp`, its growth with D, the D x D form, whole fits.

    python -m lab pfcvm_lp_speed                 (ARDVARK_DATA for whole fits; on one core)

An iteration is two turns of Newton in w and theta, both curvatures, the objective and the update
of all precisions, with nothing pruned yet. Seconds are the median; memory is the peak of
allocations above X and y (tracemalloc, in a run of its own). The whole fits are of golub and colon,
with what they keep beside what the paper reports; the quick form takes rows of digits38.
"""

import argparse

import numpy as np
from scipy import linalg, special

import ardvark as av
from ardvark.data import load
from ardvark.inference.papers.pfcvm import lp as pfcvm_lp
from ardvark.inference.papers.pfcvm.engine import Engine
from ardvark.models import Problem, problem
from lab import script
from lab.records import Table, at_most, table
from lab.script import Measured, Part, growth, has_data, one_thread, seconds

TARGET_SECONDS, TARGET_MB, TARGET_GROWTH, TARGET_FIT = 0.25, 300.0, 1.1, 20.0
OPTIONS = pfcvm_lp.Options(feature_threshold=np.inf)
REPORTED = {"golub": "2.94 on average (ALLAML)", "colon": "4.94 on average"}
FITS = (
    ("pfcvm_lp", {}),
    ("pfcvm_lp", {"stopping": "change"}),
    ("pfcvm_lp", {"scale": "fixed"}),
    ("pfcvm_lp", {"hyperprior": "model"}),
    ("pfcvm_em", {}),
    ("pfcvm_em", {"hyperprior": "model"}),
)


def synthetic(N: int, D: int, kernel: str = "linear") -> Problem:
    return problem("pfcvm", script.synthetic(N, D), standardize=False, kernel=kernel)


def iteration(e: Engine) -> None:
    e.climb(OPTIONS.rounds, 1e-8)
    curvatures = e.curvatures()
    e.evidence(*curvatures)
    pfcvm_lp.update_precisions(e, *curvatures, OPTIONS.update, 0.0)


def seconds_per_iteration(given: Problem, iterations: int) -> float:
    e = Engine.start(given, OPTIONS, True)
    return float(np.median(script.times(lambda: iteration(e), iterations)))


def peak_mb(given: Problem) -> float:
    """Return the peak of a start and two iterations, in MB."""

    def call() -> None:
        e = Engine.start(given, OPTIONS, True)
        iteration(e)
        iteration(e)

    return script.peak_mb(call)


def dense_seconds(given: Problem) -> float:
    """Seconds of one D x D Cholesky inverse of (21), which an iteration of the paper's needs."""
    e = Engine.start(given, OPTIONS, True)
    e.climb(1, 1e-8)
    J, eta = e.jacobian(e.feature.u), e.eta(e.feature.u)
    assert eta is not None
    C = (special.expit(eta) * special.expit(-eta))[:, None]

    def invert() -> None:
        H = J.T @ (C * J)
        H[np.diag_indices_from(H)] += e.feature.p + e.feature.bend(e.feature.u)
        linalg.cho_solve(linalg.cho_factor(H, lower=True, overwrite_a=True), np.eye(len(H)))

    return seconds(invert)


def iterations(sizes: list[tuple[int, int, str]], count: int) -> Table:
    """Return a row for each size and kernel, before pruning."""
    rows = []
    for N, D, kernel in sizes:
        given = synthetic(N, D, kernel)
        used = peak_mb(given)
        rows.append({"size": f"{N} x {D}", "kernel": kernel,
                     "s an iteration": seconds_per_iteration(given, count), "MB": used,
                     "copies of X": used / (given.X.nbytes / 1e6)})  # fmt: skip
    formats = {"s an iteration": ".4f", "MB": ".0f", "copies of X": ".1f"}
    return table("An iteration before pruning", rows, formats)


def beside(N: int, Ds: list[int]) -> Table:
    """Return our iteration beside one D x D inverse."""
    rows = []
    for D in Ds:
        given = synthetic(N, D)
        rows.append({"size": f"{N} x {D}", "whole iteration, s": seconds_per_iteration(given, 7),
                     "one D x D inverse, s": dense_seconds(given),
                     "its memory, MB, at least": 2 * D * D * 8 / 1e6})  # fmt: skip
    formats = {"whole iteration, s": ".4f", "one D x D inverse, s": ".3f"}
    return table("Beside the D x D form", rows, formats | {"its memory, MB, at least": ".0f"})


def whole_fits(quick: bool) -> tuple[Table, float]:
    """Return a row for each method and its options, and the seconds of the first."""
    rows = []
    for name in ("digits38",) if quick else REPORTED:
        data = load(name)
        given = av.problem("pfcvm", data.take(np.arange(0, data.N, 12)) if quick else data)
        for method, options in FITS[:1] if quick else FITS:
            how = {"random_seed": 0, "draws": 20 if quick else 250, "progressbar": False}
            fits = []
            taken = seconds(
                lambda g=given, m=method, o=options, h=how, f=fits: f.append(av.fit(g, m, **h, **o))
            )
            a = fits[0].attrs
            rows.append(
                {"data": name, "method": " ".join([method, *(f"{k}={v}" for k, v in
                                                             options.items())]),
                 "s": taken, "features": a["features_kept"], "samples": a["samples_kept"],
                 "iterations": a["iterations"], "status": a["status"],
                 "features in the paper": REPORTED.get(name, "")}
            )  # fmt: skip
    return table("Whole fits", rows, {"s": ".2f"}), rows[0]["s"]


def measure(given: argparse.Namespace) -> Measured:
    """Measure an iteration, its growth, the D x D form, and whole fits."""
    q = given.quick
    N, D, Ds = (12, 5, [10, 20]) if q else (72, 7129, [10_000, 100_000])
    wide = [(N if q else 100, d, "linear") for d in Ds]
    with one_thread():
        first = iterations([(N, D, k) for k in ("linear", "polynomial", "rbf")] + wide, 5)
        dense = beside(N, [5, 6] if q else [1000, 2000, 4000])
        found = Measured(tables=[first, dense])
        if q or has_data(given):
            fits, taken = whole_fits(q)
            found.tables.append(fits)
            found.goals.append(at_most("whole fit of golub", taken, TARGET_FIT, "s"))
    taken, used = ([row[i] for row in first.rows] for i in (2, 3))
    power = growth(Ds, taken[-2:])
    found.goals = [
        at_most("an iteration at 72 x 7129, any kernel", max(taken[:3]), TARGET_SECONDS, "s"),
        at_most("its memory above the data", max(used[:3]), TARGET_MB, "MB"),
        at_most("growth to 100 x 100 000: exponent of D", power, TARGET_GROWTH),
        *found.goals,
    ]
    return found


MEASURES = ("inference/papers/pfcvm",)
PARTS = [Part("PFCVM's own algorithm", measure)]
