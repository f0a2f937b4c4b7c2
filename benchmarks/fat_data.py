"""Exact draws where features are many: 100 samples, up to 100 000 features, two of them planted.

    python -m benchmarks.fat_data                                     all of it
    python -m benchmarks.fat_data --data 10000 --methods gibbs        a part
    python -m benchmarks.fat_data --data allaml --methods nuts --prior dense --draws 1000 --tune 500

Each fit runs in a process of its own, so that the peak of resident memory is its own: the data, the
problem, the fit with `keep="shared"` and its summaries. Seconds are of sampling, without
compilation; a unit is a sweep of `gibbs` or a step of `nuts`, and the growth the exponent of D of
its time from one size to the next. Data as in `benchmarks.sparsity.plant`: features in blocks of
five, correlation 0.8; one in each of two blocks has an effect of +-6 logits a standard deviation.
"planted" is the largest P(active) in each of these two blocks, "other" the largest elsewhere. The
name of a data set in place of a number of features takes that set.
"""

import argparse
import json
import logging
import math
import resource
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.sparsity import BLOCK, plant

N, CHAINS = 100, 4
DATA = ("1000", "10000", "100000")
PRIORS: dict[str, dict[str, Any]] = {
    "sparse": {},
    "dense": {"active_features": "all", "active_samples": "all"},
}
ROW = "{:<6} {:<6} {:>14} {:>7} {:>10} {:>7} {:>8} {:>7} {:>6} {:>11} {:>6}  {}"
HEAD = ("model", "method", "data", "s", "ms a unit", "growth", "peak GB", "R-hat", "ESS", "planted")


def one(model: str, method: str, data: str, prior: str, tune: int, draws: int) -> dict[str, object]:
    """Return what one fit costs, how it mixed and what it found."""
    import ardvark as av
    from ardvark.inference.fits import diagnostics

    logging.getLogger("ardvark").setLevel(logging.ERROR)
    hypers = {k: v for k, v in PRIORS[prior].items() if hasattr(av.ZOO[model].Hypers(), k)}
    hypers |= {"kernel": "linear"} if model == "jcfo" else {}
    if data.isdigit():
        X, y, truth = plant(1, N=N, D=int(data), active=2, effect=6.0)
        problem = av.problem(model, (X, y), **hypers)
        del X  # the problem has its own
    else:
        problem, truth = av.problem(model, av.load(data), **hypers), np.zeros(0)
    tree = av.fit(
        problem, method, tune=tune, draws=draws, chains=CHAINS, random_seed=1, keep="shared"
    )
    units, stats = CHAINS * (tune + draws), tree["sample_stats"]
    if "n_steps" in stats:  # the steps of tuning are not kept: as many a draw as afterwards
        units *= float(stats["n_steps"].mean())
    eta = tree["posterior"]["eta"]
    found = {
        "seconds": tree.attrs["seconds_run"],
        "unit": tree.attrs["seconds_run"] / units,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "rhat": float(diagnostics.rhat(eta).max()),
        "ess": float(diagnostics.ess(eta, "bulk").min()),
        "planted": "",
        "other": "",
        "status": tree.attrs["status"],
    }
    if truth.size:
        p = tree["selection"]["p_active_feature"].values.reshape(-1, BLOCK).max(axis=1)
        planted = truth.reshape(-1, BLOCK).any(axis=1)
        found["planted"] = " ".join(f"{x:.2f}" for x in p[planted])
        found["other"] = f"{p[~planted].max():.2f}"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fat_data")
    parser.add_argument("--data", nargs="+", default=DATA, help="numbers of features, or a name")
    parser.add_argument("--prior", choices=tuple(PRIORS), default="sparse")
    parser.add_argument("--models", nargs="+", default=("pfcvm", "rfvm"))
    parser.add_argument("--methods", nargs="+", default=("gibbs", "nuts"))
    parser.add_argument("--tune", type=int, default=250, help="a chain (default 250)")
    parser.add_argument("--draws", type=int, default=500, help="a chain (default 500)")
    parser.add_argument("--one", nargs=6, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        *names, tune, draws = chosen.one
        print(json.dumps(one(*names, int(tune), int(draws))))
        return
    print(ROW.format(*HEAD, "other", "status"))
    for model in chosen.models:
        for method in chosen.methods:
            before: tuple[int, float] | None = None
            for data in chosen.data:
                how = (model, method, data, chosen.prior, str(chosen.tune), str(chosen.draws))
                command = [sys.executable, "-m", "benchmarks.fat_data", "--one", *how]
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
                f, growth = json.loads(done.stdout), ""
                if data.isdigit():
                    D = int(data)
                    if before is not None:
                        power = math.log(f["unit"] / before[1]) / math.log(D / before[0])
                        growth = f"D^{power:.2f}"
                    before = D, f["unit"]
                row = (
                    model, method, data, f"{f['seconds']:.0f}", f"{1e3 * f['unit']:.2f}", growth,
                    f"{f['peak']:.2f}", f"{f['rhat']:.3f}", f"{f['ess']:.0f}", f["planted"],
                    f["other"], f["status"],
                )  # fmt: skip
                print(ROW.format(*row), flush=True)


if __name__ == "__main__":
    main()
