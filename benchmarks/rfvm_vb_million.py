"""Time and memory of a whole `rfvm_vb` fit of 100 samples and up to a million features.

Run from the root of the checkout, on one core:

    python -m benchmarks.rfvm_vb_million

Each size runs in a process of its own, so that the peak of resident memory is its own: making the
data, the problem, the fit (two starts, 4 x 25 draws of the shared quantities) and a prediction.
Seconds are of the whole call, compilation apart, wall and processor; the growth is the exponent of
D of the latter from one size to the next. `benchmarks.rfvm_vb_speed` measures a single sweep.
"""

import json
import logging
import math
import resource
import subprocess
import sys
import time

import numpy as np

SIZES = (10_000, 100_000, 1_000_000)
N, CHAINS, DRAWS = 100, 4, 25
TARGET_GB, TARGET_GROWTH = 8.0, 1.1
ROW = "{:>9} {:>9} {:>9} {:>7} {:>8} {:>7} {:>8} {:>7}  {}"


def peak_gb() -> float:
    """Return the largest resident memory so far; Linux counts it in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def one(D: int) -> dict[str, object]:
    import ardvark as av
    from ardvark.data import Dataset

    logging.getLogger("ardvark").setLevel(logging.ERROR)
    stages = [("imports", peak_gb())]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = (X[:, :10].sum(axis=1) > 0).astype(int)
    new = X[:2].copy()
    data = Dataset.from_arrays(X, y, name="synthetic")
    del X  # the data set has its own, locked
    stages.append(("data", peak_gb()))
    problem = av.problem("rfvm", data)
    stages.append(("problem", peak_gb()))
    began, cpu = time.perf_counter(), time.process_time()
    tree = av.fit(
        problem, "rfvm_vb", draws=DRAWS, chains=CHAINS, random_seed=1, keep="shared",
        progressbar=False,
    )  # fmt: skip
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    stages.append(("fit", peak_gb()))
    assert tree["posterior"]["feature_weight"].shape == (CHAINS, DRAWS, D)
    assert tree.attrs["status"] == "finished"
    assert np.isfinite(av.predict(problem, tree, new)).all()
    stages.append(("predict", peak_gb()))
    return {
        "wall": wall - tree.attrs["seconds_compile"],
        "cpu": cpu - tree.attrs["seconds_compile"],
        "sweeps": tree.attrs["sweeps"],
        "X": N * D * 8 / 1e9,
        "stages": stages,
    }


def main() -> None:
    head = ("D", "wall s", "cpu s", "sweeps", "growth", "target", "peak GB", "target")
    print(ROW.format(*head, "peak GB after each stage"))
    before: tuple[int, float] | None = None
    for D in SIZES:
        command = [sys.executable, "-m", "benchmarks.rfvm_vb_million", str(D)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        found = json.loads(done.stdout)
        cpu, growth, target = found["cpu"], "", ""
        if before is not None:
            target = f"D^{TARGET_GROWTH}"
            growth = f"D^{math.log(cpu / before[1]) / math.log(D / before[0]):.2f}"
        peak = found["stages"][-1][1]
        stages = ", ".join(f"{name} {gb:.2f}" for name, gb in found["stages"])
        print(
            ROW.format(
                D, f"{found['wall']:.1f}", f"{cpu:.1f}", found["sweeps"], growth, target,
                f"{peak:.2f}", TARGET_GB, f"{stages} (X alone: {found['X']:.2f})",
            ),
            flush=True,
        )  # fmt: skip
        before = D, cpu


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(json.dumps(one(int(sys.argv[1]))))
    else:
        main()
