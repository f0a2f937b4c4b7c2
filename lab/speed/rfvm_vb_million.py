"""Time and memory of a whole `rfvm_vb` fit of 100 samples and up to a million features.

    python -m lab rfvm_vb_million                    (on one core)

Each size runs in a process of its own, so that the peak of resident memory is its own: making the
data, the problem, the fit (two starts, 4 x 25 draws of the shared quantities) and a prediction.
Seconds are of the whole call, compilation apart, wall and processor; the growth is the exponent of
D of the latter from one size to the next. `lab.speed.rfvm_vb_speed` measures a single sweep.
"""

import argparse
import logging
import resource
import time

import numpy as np

from lab.records import at_most, table
from lab.script import Measured, Part, Row, apart, growth, synthetic

SIZES = [10_000, 100_000, 1_000_000]
N, CHAINS, DRAWS = 100, 4, 25
TARGET_GB, TARGET_GROWTH = 8.0, 1.1


def peak_gb() -> float:
    """Return the largest resident memory so far; Linux counts it in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def one(N: int, D: int) -> Row:
    """Return what one size costs, and the peak of memory after each stage."""
    import ardvark as av
    from ardvark.data import Dataset

    logging.getLogger("ardvark").setLevel(logging.ERROR)
    stages = {"imports": peak_gb()}
    X, y = synthetic(N, D)
    new = X[:2].copy()
    data = Dataset.from_arrays(X, y, name="synthetic")
    del X  # the data set has its own, locked
    stages["data"] = peak_gb()
    problem = av.problem("rfvm", data)
    stages["problem"] = peak_gb()
    began, cpu = time.perf_counter(), time.process_time()
    tree = av.fit(
        problem, "rfvm_vb", draws=DRAWS, chains=CHAINS, random_seed=1, keep="shared",
        progressbar=False,
    )  # fmt: skip
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    stages["fit"] = peak_gb()
    if tree["posterior"]["feature_weight"].shape != (CHAINS, DRAWS, D):
        raise RuntimeError("the fit has other draws than were asked for")
    if tree.attrs["status"] != "finished" or not np.isfinite(av.predict(problem, tree, new)).all():
        raise RuntimeError(f"{tree.attrs['status']}: {tree.attrs['reason']}")
    compiling = tree.attrs["seconds_compile"]
    return {
        "D": D,
        "wall, s": max(wall - compiling, 1e-3),  # no clock here is finer
        "processor, s": max(cpu - compiling, 1e-3),
        "sweeps": tree.attrs["sweeps"],
        "X, GB": N * D * 8 / 1e9,
        **{f"{name}, GB": peak for name, peak in stages.items()},
        "peak, GB": peak_gb(),
    }


def measure(given: argparse.Namespace) -> Measured:
    """Measure one row for each size."""
    sizes, rows, powers = [5, 10] if given.quick else SIZES, list[Row](), list[float]()
    for D in sizes:
        row = apart(one, 12 if given.quick else N, D, quick=given.quick)
        if rows:
            spent = [r["processor, s"] for r in (*rows, row)]
            powers.append(growth(sizes[: len(spent)], spent))
            row["growth"] = f"D^{powers[-1]:.2f}"
        rows.append(row)
    goals = [
        at_most("growth of the processor's seconds: exponent of D", max(powers), TARGET_GROWTH),
        at_most(f"peak memory at D = {sizes[-1]}", rows[-1]["peak, GB"], TARGET_GB, "GB"),
    ]
    formats = {name: ".1f" if name.endswith(" s") else ".2f" for name in rows[0] if "," in name}
    note = "Memory is the peak after each stage."
    return Measured(goals, [table("", rows, formats, note)])


MEASURES = ("inference/papers/rfvm/vb.py", "inference/papers/rfvm/factors.py")
PARTS = [Part("RFVM at a million features", measure)]
