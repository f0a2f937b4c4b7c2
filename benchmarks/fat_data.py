"""Exact draws of PFCVM and RFVM with 100 samples and up to 100 000 features, two of them planted.

    python -m benchmarks.fat_data                                     all of it
    python -m benchmarks.fat_data --sizes 10000 --methods gibbs       a part

Each fit runs in a process of its own, so that the peak of resident memory is its own: the data, the
problem, the fit with `keep="shared"` and its summaries. Seconds are of sampling, without
compilation; a unit is a sweep of `gibbs` or a step of `nuts`, and the growth the exponent of D of
its time from one size to the next. Data as in `benchmarks.sparsity.plant`: features in blocks of
five, correlation 0.8; one in each of two blocks has an effect of +-6 logits a standard deviation.
"planted" is the largest P(active) in each of these two blocks, "other" the largest elsewhere.
"""

import argparse
import json
import logging
import math
import resource
import subprocess
import sys

from benchmarks.sparsity import BLOCK, plant

N, CHAINS = 100, 4
SIZES = (1_000, 10_000, 100_000)
ROW = "{:<6} {:<6} {:>7} {:>7} {:>10} {:>7} {:>8} {:>7} {:>6} {:>11} {:>6}  {}"
HEAD = ("model", "method", "D", "s", "ms a unit", "growth", "peak GB", "R-hat", "ESS", "planted")


def one(model: str, method: str, D: int, tune: int, draws: int) -> dict[str, object]:
    """Return what one fit costs, how it mixed and what it found."""
    import ardvark as av
    from ardvark.inference import diagnostics

    logging.getLogger("ardvark").setLevel(logging.ERROR)
    X, y, truth = plant(1, N=N, D=D, active=2, effect=6.0)
    problem = av.problem(model, (X, y))
    del X  # the problem has its own
    tree = av.fit(
        problem, method, tune=tune, draws=draws, chains=CHAINS, random_seed=1, keep="shared"
    )
    units, stats = CHAINS * (tune + draws), tree["sample_stats"]
    if "n_steps" in stats:  # the steps of tuning are not kept: as many a draw as afterwards
        units *= float(stats["n_steps"].mean())
    p = tree["selection"]["p_active_feature"].values.reshape(-1, BLOCK).max(axis=1)
    planted = truth.reshape(-1, BLOCK).any(axis=1)
    eta = tree["posterior"]["eta"]
    return {
        "seconds": tree.attrs["seconds_run"],
        "unit": tree.attrs["seconds_run"] / units,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "rhat": float(diagnostics.rhat(eta).max()),
        "ess": float(diagnostics.ess(eta, "bulk").min()),
        "planted": " ".join(f"{x:.2f}" for x in p[planted]),
        "other": float(p[~planted].max()),
        "status": tree.attrs["status"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fat_data")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="numbers of features")
    parser.add_argument("--models", nargs="+", default=("pfcvm", "rfvm"))
    parser.add_argument("--methods", nargs="+", default=("gibbs", "nuts"))
    parser.add_argument("--tune", type=int, default=250, help="a chain (default 250)")
    parser.add_argument("--draws", type=int, default=500, help="a chain (default 500)")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        model, method, *numbers = chosen.one
        print(json.dumps(one(model, method, *map(int, numbers))))
        return
    print(ROW.format(*HEAD, "other", "status"))
    for model in chosen.models:
        for method in chosen.methods:
            before: tuple[int, float] | None = None
            for D in chosen.sizes:
                numbers = [str(n) for n in (D, chosen.tune, chosen.draws)]
                command = [sys.executable, "-m", "benchmarks.fat_data", "--one", model, method]
                done = subprocess.run(
                    [*command, *numbers], stdout=subprocess.PIPE, check=True, text=True
                )
                f = json.loads(done.stdout)
                growth = ""
                if before is not None:
                    growth = f"D^{math.log(f['unit'] / before[1]) / math.log(D / before[0]):.2f}"
                before = D, f["unit"]
                row = (
                    model, method, D, f"{f['seconds']:.0f}", f"{1e3 * f['unit']:.2f}", growth,
                    f"{f['peak']:.2f}", f"{f['rhat']:.3f}", f"{f['ess']:.0f}", f["planted"],
                    f"{f['other']:.2f}", f["status"],
                )  # fmt: skip
                print(ROW.format(*row), flush=True)


if __name__ == "__main__":
    main()
