"""What one gradient costs, against the least that it could take.

    python -m lab compiled_speed gradient       K a and its gradient, against the formula
    python -m lab compiled_speed density        a model's density and gradient, as D grows
    python -m lab compiled_speed rbf            the same with the rbf kernel, as N and D grow

`gradient`: value and gradient of f = K a as a density compiles it and as PyTensor's own products
do, each by Numba and called with Z = X, and the time of two sums over X, which reads it twice. One
thread; the least processor time of several calls, in microseconds.

`density`: log density and gradient of a whole model, as a sampler calls them, against the least
that they could take, two sums over X and D exponentials, and per number of X. `rbf`: the same, per
N^2 D.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from lab.records import Goal, at_most, table
from lab.script import Measured, Part, Row, one_thread

SIZES = [("linear", 62, 2000), ("linear", 72, 7129), ("linear", 100, 100_000),
         ("rbf", 100, 60), ("rbf", 357, 64), ("rbf", 62, 2000)]  # fmt: skip
GRID = [(62, 2000), (72, 7129), (100, 100_000), (20, 1000), (20, 10_000), (20, 100_000),
        (20, 1_000_000)]  # fmt: skip
RBF_GRID = [(100, 60), (200, 60), (400, 60), (800, 60), (100, 600), (100, 6000), (100, 60_000),
            (20, 1_000_000)]  # fmt: skip
TINY = (12, 5)
JUDGED = ("72 x 7129", "100 x 100000")  # sizes that have a goal
LIMIT = 1.5  # times the floor
FORMATS = {
    "operation, us": ".0f", "formula, us": ".0f", "two sums, us": ".0f",
    "formula / operation": ".2f", "density, us": ".0f", "floor, us": ".0f", "ratio": ".2f",
    "ns / (N D)": ".2f", "ns / (N^2 D)": ".3f",
}  # fmt: skip


def least(call: Callable[[], Any], quick: bool) -> float:
    """Return the least processor time of one call among those of a second, in microseconds.

    Of this thread: other jobs lengthen it by what they take of the caches and the memory only.
    """
    call()
    best, count, started = np.inf, 0, time.perf_counter()
    while count < 3 or time.perf_counter() - started < (0.01 if quick else 1.0):
        before = time.thread_time()
        call()
        best, count = min(best, time.thread_time() - before), count + 1
    return best * 1e6


def products(kernel: str, N: int, D: int, quick: bool) -> Row:
    """Return the times of value and gradient of K a: one operation, the formula, two sums."""
    import pytensor
    import pytensor.tensor as pt

    from ardvark.inference.target.compiled import MODE
    from ardvark.models.parts.kernels import make_kernel

    rng = np.random.default_rng(0)
    values = (rng.normal(size=(N, D)), rng.gamma(1.0, size=D) / D,
              rng.normal(size=N), rng.normal(size=N))  # fmt: skip
    taken = []
    for ours in (True, False):
        X, theta, a, g = pt.dmatrix(), pt.dvector(), pt.dvector(), pt.dvector()
        if ours:
            f = make_kernel(kernel).product(X, X, theta, a)
        elif kernel == "linear":
            f = X @ (theta * (X.T @ a))
        else:
            f = make_kernel(kernel).gram(X, X, theta, pt) @ a
        outputs = [f, *pt.grad((f * g).sum(), [theta, a])]
        function = pytensor.function([X, theta, a, g], outputs, mode=MODE if ours else "NUMBA")
        taken.append(least(lambda call=function: call(*values), quick))
    two = least(lambda: (values[0].sum(), values[0].sum()), quick)
    return {"size": f"{kernel} {N} x {D}", "operation, us": taken[0], "formula, us": taken[1],
            "formula / operation": taken[1] / taken[0], "two sums, us": two}  # fmt: skip


def gradient_part(given: argparse.Namespace) -> Measured:
    """Measure one row for each kernel and size."""
    sizes = [("linear", *TINY)] if given.quick else SIZES
    with one_thread():
        rows = [products(*size, given.quick) for size in sizes]
    goals = [
        at_most(f"gradient of {row['size']}, over two sums over X",
                row["operation, us"] / row["two sums, us"], LIMIT)
        for row in rows if row["size"] in [f"linear {size}" for size in JUDGED]
    ]  # fmt: skip
    return Measured(goals, [table("", rows, FORMATS)])


def gradient_of(model: str, X: np.ndarray, **hypers: str) -> tuple[Callable[[], Any], np.ndarray]:
    """Return a call of a model's density and gradient, and the point where it is called."""
    import ardvark as av
    from ardvark.inference.target.density import Density

    density = Density(av.problem(model, (X, np.arange(len(X)) % 2), **hypers).model)
    x = density.start + 0.1 * np.random.default_rng(1).normal(size=density.size)
    return (lambda: density.logp_grad(x)), x


def density_part(given: argparse.Namespace) -> Measured:
    """Measure one row for each model and size."""
    rows, goals = [], list[Goal]()
    with one_thread():
        for N, D in [TINY] if given.quick else GRID:
            X = np.random.default_rng(0).normal(size=(N, D))
            for model in ("pfcvm",) if given.quick else ("pfcvm", "rfvm"):
                call, x = gradient_of(model, X)
                taken, some = least(call, given.quick), x[-D:]
                floor = least(lambda X=X, v=some: (X.sum(), X.sum(), np.exp(v)), given.quick)
                name = f"{model} {N} x {D}"
                rows.append(
                    {"model, N x D": name, "density, us": taken, "floor, us": floor,
                     "ratio": taken / floor, "ns / (N D)": taken / (N * D) * 1e3}
                )  # fmt: skip
                if f"{N} x {D}" in JUDGED:
                    goals.append(at_most(f"{name}, over its floor", taken / floor, LIMIT))
    return Measured(goals, [table("", rows, FORMATS)])


def rbf_part(given: argparse.Namespace) -> Measured:
    """Measure one row for each size."""
    rows = []
    with one_thread():
        for N, D in [TINY] if given.quick else RBF_GRID:
            X = np.random.default_rng(0).normal(size=(N, D))
            call, _ = gradient_of("pfcvm", X, kernel="linear" if given.quick else "rbf")
            taken = least(call, given.quick)
            each = taken / (N * N * D) * 1e3
            rows.append({"N x D": f"{N} x {D}", "density, us": taken, "ns / (N^2 D)": each})
    return Measured(tables=[table("", rows, FORMATS)])


MEASURES = ("inference/target/compiled.py", "inference/target/density.py", "models")
PARTS = [
    Part("One gradient of K a", gradient_part, "gradient"),
    Part("Density and gradient of a model", density_part, "density"),
    Part("Density and gradient with the rbf kernel", rbf_part, "rbf"),
]
