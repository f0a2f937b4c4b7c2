"""Time and memory of an iteration of `pfcvm_lp`, its growth with D, the D x D form, whole fits.

Run from the root of the checkout, on one core:

    python -m benchmarks.pfcvm_lp_speed

An iteration is two turns of Newton in w and theta, both curvatures, the objective and the update
of all precisions, with nothing pruned yet. Seconds are the median; memory is the peak of
allocations above X and y (tracemalloc, in a run of its own). With ARDVARK_DATA set, whole fits of
golub and colon too, with what they keep beside what the paper reports.
"""

import os
import time
import tracemalloc

import numpy as np
from scipy import linalg, special
from threadpoolctl import threadpool_limits

import ardvark as av
from ardvark.data import load
from ardvark.inference.fitting import registry
from ardvark.inference.papers.pfcvm import em as pfcvm_em
from ardvark.inference.papers.pfcvm import lp as pfcvm_lp
from ardvark.inference.papers.pfcvm.engine import Engine
from ardvark.models import Problem, problem

TARGET_SECONDS, TARGET_MB, TARGET_GROWTH, TARGET_FIT = 0.25, 300.0, 1.1, 20.0
ROW = "{:<44} {:>10} {:>10} {:>10} {:>10}"
OPTIONS = pfcvm_lp.Options(feature_threshold=np.inf)


def synthetic(N: int, D: int, kernel: str = "linear") -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = (X[:, :10].sum(axis=1) > 0).astype(int)
    return problem("pfcvm", (X, y), standardize=False, kernel=kernel)


def iteration(e: Engine) -> None:
    e.climb(OPTIONS.rounds, 1e-8)
    curvatures = e.curvatures()
    e.evidence(*curvatures)
    pfcvm_lp.update_precisions(e, *curvatures, OPTIONS.update, 0.0)


def seconds_per_iteration(given: Problem, iterations: int) -> float:
    e, times = Engine.start(given, OPTIONS, True), []
    for _ in range(iterations):
        began = time.perf_counter()
        iteration(e)
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def peak_mb(given: Problem) -> float:
    tracemalloc.start()
    e = Engine.start(given, OPTIONS, True)
    for _ in range(2):
        iteration(e)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def dense_seconds(given: Problem) -> float:
    """Seconds of one D x D Cholesky inverse of (21), which an iteration of the paper's needs."""
    e = Engine.start(given, OPTIONS, True)
    e.climb(1, 1e-8)
    J, eta = e.jacobian(e.feature.u), e.eta(e.feature.u)
    assert eta is not None
    C = (special.expit(eta) * special.expit(-eta))[:, None]
    began = time.perf_counter()
    H = J.T @ (C * J)
    H[np.diag_indices_from(H)] += e.feature.p + e.feature.bend(e.feature.u)
    linalg.cho_solve(linalg.cho_factor(H, lower=True, overwrite_a=True), np.eye(len(H)))
    return time.perf_counter() - began


def whole_fits() -> None:
    for module in (pfcvm_lp, pfcvm_em):
        registry.BACKENDS.setdefault(module.NAME, module)
    print(ROW.format("whole fit", "s", "target", "features", "samples"), " iterations  status")
    paper = {"golub": "2.94 features on average (ALLAML)", "colon": "4.94 features on average"}
    for name, reported in paper.items():
        given = av.problem("pfcvm", load(name))
        for method, options in (
            ("pfcvm_lp", {}),
            ("pfcvm_lp", {"stopping": "change"}),
            ("pfcvm_lp", {"scale": "fixed"}),
            ("pfcvm_lp", {"hyperprior": "model"}),
            ("pfcvm_em", {}),
            ("pfcvm_em", {"hyperprior": "model"}),
        ):
            began = time.perf_counter()
            tree = av.fit(given, method, random_seed=0, draws=250, progressbar=False, **options)
            seconds, a = time.perf_counter() - began, tree.attrs
            label = f"{name} {method} {' '.join(f'{k}={v}' for k, v in options.items())}"
            target = f"{TARGET_FIT:.0f}" if name == "golub" and method == "pfcvm_lp" else ""
            row = (f"{seconds:.2f}", target, a["features_kept"], a["samples_kept"])
            print(ROW.format(label, *row), f" {a['iterations']:10d}  {a['status']}")
        print(f"    the paper: {reported}")


def main() -> None:
    print(ROW.format("before pruning", "s an it.", "target", "MB", "target"))
    for kernel in ("linear", "polynomial", "rbf"):
        given = synthetic(72, 7129, kernel)
        row = (f"{seconds_per_iteration(given, 7):.4f}", TARGET_SECONDS, f"{peak_mb(given):.0f}")
        print(ROW.format(f"synthetic 72 x 7129 {kernel}", *row, f"{TARGET_MB:.0f}"))
    times = []
    for D in (10_000, 100_000):
        given = synthetic(100, D)
        times.append(seconds_per_iteration(given, 5))
        memory = peak_mb(given)
        print(ROW.format(f"synthetic 100 x {D}", f"{times[-1]:.4f}", "", f"{memory:.0f}", ""))
        print(f"    that is {memory / (given.X.nbytes / 1e6):.1f} copies of X")
    growth = np.log(times[1] / times[0]) / np.log(10.0)
    print(f"grows like D^{growth:.2f} (target: D^{TARGET_GROWTH})")
    for D in (1000, 2000, 4000):
        given = synthetic(72, D)
        ours, dense = seconds_per_iteration(given, 7), dense_seconds(given)
        print(
            f"72 x {D}: whole iteration {ours:.4f} s; one D x D inverse alone {dense:.3f} s, "
            f"at least {2 * D * D * 8 / 1e6:.0f} MB"
        )
    if os.environ.get("ARDVARK_DATA"):
        whole_fits()


if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        main()
