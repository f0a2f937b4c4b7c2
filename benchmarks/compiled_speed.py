"""What a user waits for before sampling, and what one gradient costs.

    python -m benchmarks.compiled_speed                all parts
    python -m benchmarks.compiled_speed compile        seconds to compile, in fresh processes
    python -m benchmarks.compiled_speed gradient       K a and its gradient, against the formula
    python -m benchmarks.compiled_speed density        a model's density and gradient, as D grows
    python -m benchmarks.compiled_speed rbf            the same with the rbf kernel, as N and D grow

`compile`: the density of a model, and the function to its variables; with an empty cache, in a new
process with that cache, and for data of another shape in the same process. Beside it nutpie's own
compilation of the same model, which fixes the shapes: in a new process with the cache of an earlier
one, and for the other shape.

`gradient`: value and gradient of f = K a as one operation and as the plain formula, each compiled
by Numba and called with Z = X, and the time of two sums over X, which reads it twice. One thread;
the least processor time of several calls, in microseconds.

`density`: log density and gradient of a whole model, as a sampler calls them, against the least
that they could take, two sums over X and D exponentials, and per number of X. `rbf`: the same, per
N^2 D.
"""

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

MODELS = [("pfcvm", "linear"), ("pfcvm", "rbf"), ("rfvm", "linear"), ("jcfo", "linear")]
SIZES = [("linear", 62, 2000), ("linear", 72, 7129), ("linear", 100, 100_000),
         ("rbf", 100, 60), ("rbf", 357, 64), ("rbf", 62, 2000)]  # fmt: skip
GRID = [(62, 2000), (72, 7129), (100, 100_000), (20, 1000), (20, 10_000), (20, 100_000),
        (20, 1_000_000)]  # fmt: skip
RBF_GRID = [(100, 60), (200, 60), (400, 60), (800, 60), (100, 600), (100, 6000), (100, 60_000),
            (20, 1_000_000)]  # fmt: skip


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def compile_here(model: str, kernel: str, which: str) -> None:
    """Print the seconds for two shapes, in this process."""
    import nutpie

    import ardvark as av
    from ardvark.inference.contract.density import Density

    rng = np.random.default_rng(0)
    for N, D in ((20, 5), (31, 9)):
        problem = av.problem(model, (rng.normal(size=(N, D)), np.arange(N) % 2), kernel=kernel)
        built = problem.model
        if which == "ardvark":
            print(seconds(lambda m=built: Density(m).expansion([v.name for v in m.unobserved_RVs])))
        else:
            print(seconds(lambda m=built: nutpie.compile_pymc_model(m)))


def compile_part() -> None:
    """Print one row for each model."""
    print(
        f"{'':<14}{'ardvark: none':>15}{'cached':>8}{'shape':>8}{'nutpie: cached':>17}{'shape':>8}"
    )
    for model, kernel in MODELS:
        with tempfile.TemporaryDirectory() as cache:
            flags = {"PYTENSOR_FLAGS": f"base_compiledir={cache}"}

            def fresh(which: str, m: str = model, k: str = kernel, f: dict = flags) -> list[float]:
                code = f"from benchmarks.compiled_speed import compile_here as c; c{m, k, which}"
                run = [sys.executable, "-c", code]
                done = subprocess.run(run, env=os.environ | f, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(done.stderr)
                return [float(x) for x in done.stdout.split()]

            (none, shape), (cached, _) = fresh("ardvark"), fresh("ardvark")
            fresh("nutpie")
            by_nutpie, again = fresh("nutpie")
        row = f"{none:>15.1f}{cached:>8.2f}{shape:>8.2f}{by_nutpie:>17.1f}{again:>8.1f}"
        print(f"{model + ' ' + kernel:<14}{row}", flush=True)


def least(call: Callable[[], Any]) -> float:
    """Return the least processor time of one call among those of a second, in microseconds.

    Of this thread: other jobs lengthen it by what they take of the caches and the memory only.
    """
    call()
    best, count, started = np.inf, 0, time.perf_counter()
    while count < 3 or time.perf_counter() - started < 1.0:
        before = time.thread_time()
        call()
        best, count = min(best, time.thread_time() - before), count + 1
    return best * 1e6


def gradient_part() -> None:
    """Print one row for each kernel and size."""
    import pytensor
    import pytensor.tensor as pt
    from threadpoolctl import threadpool_limits

    from ardvark.models.parts.kernels import make_kernel

    importlib.import_module("scipy.linalg")  # its BLAS must be there before the limit on threads
    print(f"{'':<24}{'operation':>11}{'formula':>11}{'ratio':>8}{'two sums':>11}")
    with threadpool_limits(1, user_api="blas"):
        for kernel, N, D in SIZES:
            rng = np.random.default_rng(0)
            values = (rng.normal(size=(N, D)), rng.gamma(1.0, size=D) / D,
                      rng.normal(size=N), rng.normal(size=N))  # fmt: skip
            times = []
            for fused in (True, False):
                X, theta, a, g = pt.dmatrix(), pt.dvector(), pt.dvector(), pt.dvector()
                if fused:
                    f = make_kernel(kernel).product(X, X, theta, a)
                elif kernel == "linear":
                    f = X @ (theta * (X.T @ a))
                else:
                    f = make_kernel(kernel).gram(X, X, theta, pt) @ a
                outputs = [f, *pt.grad((f * g).sum(), [theta, a])]
                function = pytensor.function([X, theta, a, g], outputs, mode="NUMBA")
                times.append(least(lambda call=function, v=values: call(*v)))
            two = least(lambda X=values[0]: (X.sum(), X.sum()))
            row = f"{times[0]:>11.0f}{times[1]:>11.0f}{times[1] / times[0]:>8.2f}{two:>11.0f}"
            print(f"{f'{kernel} {N} x {D}':<24}{row}", flush=True)


def gradient_of(model: str, X: np.ndarray, **hypers: str) -> tuple[Callable[[], Any], np.ndarray]:
    """Return a call of a model's density and gradient, and the point where it is called."""
    import ardvark as av
    from ardvark.inference.contract.density import Density

    density = Density(av.problem(model, (X, np.arange(len(X)) % 2), **hypers).model)
    x = density.start + 0.1 * np.random.default_rng(1).normal(size=density.size)
    return (lambda: density.logp_grad(x)), x


def density_part() -> None:
    """Print one row for each model and size."""
    from threadpoolctl import threadpool_limits

    importlib.import_module("scipy.linalg")  # its BLAS must be there before the limit on threads
    print(f"{'':<24}{'density':>11}{'floor':>11}{'ratio':>8}{'ns / (N D)':>12}")
    with threadpool_limits(1, user_api="blas"):
        for N, D in GRID:
            X = np.random.default_rng(0).normal(size=(N, D))
            for model in ("pfcvm", "rfvm"):
                call, x = gradient_of(model, X)
                taken, some = least(call), x[-D:]
                floor = least(lambda X=X, v=some: (X.sum(), X.sum(), np.exp(v)))
                row = f"{taken:>11.0f}{floor:>11.0f}{taken / floor:>8.2f}"
                each = taken / (N * D) * 1e3
                print(f"{f'{model} {N} x {D}':<24}{row}{each:>12.2f}", flush=True)


def rbf_part() -> None:
    """Print one row for each size."""
    from threadpoolctl import threadpool_limits

    importlib.import_module("scipy.linalg")  # its BLAS must be there before the limit on threads
    print(f"{'':<24}{'density':>11}{'ns / (N^2 D)':>14}")
    with threadpool_limits(1, user_api="blas"):
        for N, D in RBF_GRID:
            X = np.random.default_rng(0).normal(size=(N, D))
            taken = least(gradient_of("pfcvm", X, kernel="rbf")[0])
            row = f"{taken:>11.0f}{taken / (N * N * D) * 1e3:>14.3f}"
            print(f"{f'pfcvm {N} x {D}':<24}{row}", flush=True)


def main() -> None:
    """Print the parts that are asked for."""
    parts = {"compile": compile_part, "gradient": gradient_part, "density": density_part,
             "rbf": rbf_part}  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=tuple(parts))
    asked = parser.parse_args().part
    for name, show in parts.items():
        if asked in (None, name):
            show()


if __name__ == "__main__":
    main()
