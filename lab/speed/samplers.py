"""Which exact sampler where, and what a change of the samplers is worth: seconds of the processor.

    python -m lab.speed.samplers                        every case by every sampler that applies
    python -m lab.speed.samplers --samplers auto nutpie numpyro     `exact` beside `pm.sample`
    python -m lab.speed.samplers --before ../before     the samplers of another checkout beside ours
    python -m lab.speed.samplers --only "horseshoe 2000x30" --samplers gibbs --minutes 5
    python -m lab.speed.samplers --quick                one small case

A run is `exact` by its own rule, until everything that may be quoted has converged or the minutes
are over, in a process of its own. Seconds are of the processor, compilation in, because other jobs
may run beside it; the judgement of convergence is in them too. With `--before` both checkouts take
the sampler that they choose by themselves, one after the other, with one environment. `times` is
theirs over ours. For a run that has not converged they are of the effective draws asked for, as far
as its smallest ESS goes: seconds times asked over reached, which favours the run.

`nutpie` and `numpyro` are `pm.sample` on the same PyMC model, by their defaults: 4 chains of 1000
draws after 1000 of tuning, doubled until the worst R-hat of eta is below 1.01 and its smallest bulk
ESS above 400, or until the minutes of the processor are over. Their seconds are of the last run
alone, compilation in, as if its length had been known. Beside them "times" compares effective draws
of eta a second: above 1, `exact` has more.

Data "NxD" have five real effects and a common factor (`tall`). A path is a CSV file whose column
"y" has the labels, and "FILE:504" its first 504 features.
"""

import argparse
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ardvark as av
from ardvark.inference.fits import diagnostics

HERE = Path(__file__).parents[2]
SAMPLERS = ("gibbs", "nuts")
MODELS = ("horseshoe", "sparse_probit", "pfcvm")
SIZES = ("50x10", "200x30", "200x100", "1000x30", "168x504", "10000x30")
ESS = 1000.0
RHAT, ESS_OF_ETA = 1.01, 400.0
"""When a sampler beside `exact` has converged."""
VERSIONS = ("pymc", "nutpie", "numba", "numpy")
PEERS = ("nutpie", "numpyro")
WORK = """
import json, logging, resource, sys
logging.getLogger("ardvark").setLevel(logging.ERROR)
given = json.loads(sys.argv[1])
sys.path.insert(0, given["lab"])
from samplers import PEERS, beside, exactly
limit = int(60 * given["minutes"])
if given["sampler"] in PEERS:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
for row in (beside if given["sampler"] in PEERS else exactly)(given):
    row["GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(json.dumps(row), flush=True)
"""
"""What a process does: it prints a row whenever there is one, and the last one counts."""


def exactly(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the row of `exact`."""
    problem = av.problem(given["model"], *load(given["data"]))
    began = time.process_time()
    fit = av.fit(
        problem, "exact", sampler=given["sampler"], minutes=given["minutes"], keep="shared",
        random_seed=given["seed"], progressbar=False,
    )  # fmt: skip
    seconds, went = time.process_time() - began, fit["fit"].to_dataset()
    yield {
        "by": fit.attrs["sampler"], "processor": seconds,
        "iterations": int(fit.attrs["iterations"]), "ESS": float(went["judged_ess_bulk"][-1]),
        "R-hat": float(went["judged_rhat"][-1]), "ended": fit.attrs["ended"],
        "ESS of eta": float(diagnostics.ess(fit["posterior"]["eta"], "bulk").min()),
    }  # fmt: skip


def beside(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each run of `pm.sample`, of twice the draws of the run before."""
    import pymc as pm

    model = av.problem(given["model"], *load(given["data"])).model
    for draws in (1000 * 2**i for i in range(8)):
        began = time.process_time()
        tree = pm.sample(
            draws, tune=draws, chains=4, cores=2, random_seed=given["seed"] + draws, model=model,
            nuts_sampler=given["sampler"], progressbar=False, compute_convergence_checks=False,
        )  # fmt: skip
        eta = tree["posterior"]["eta"].load()
        seconds = time.process_time() - began
        ess, rhat = float(diagnostics.ess(eta, "bulk").min()), float(diagnostics.rhat(eta).max())
        done = rhat < RHAT and ess > ESS_OF_ETA
        yield {
            "by": given["sampler"], "processor": seconds, "iterations": draws, "ESS": ess,
            "R-hat": rhat, "ended": "converged" if done else "time", "ESS of eta": ess,
        }  # fmt: skip
        if done:
            return


def tall(N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X (N, D), correlated by a common factor (0.2), and y (N,) by five effects of D."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, D)) + 0.5 * rng.standard_normal((N, 1))
    effects = np.zeros(D)
    effects[:5] = np.array([1.5, -1.0, 0.8, -0.6, 0.5])[:D]
    y = rng.random(N) < 1.0 / (1.0 + np.exp(0.5 - X @ effects))
    return X, y.astype(int)


def load(name: str) -> tuple:
    """Return the data of a case, as arguments of `problem`."""
    if name[0].isdigit():
        N, D = map(int, name.split("x"))
        return tall(N, D)
    path, _, first = name.partition(":")
    if not path.endswith((".csv", ".csv.gz")):
        return (name,)
    table = pd.read_csv(path)
    features = table.drop(columns="y")
    return features.iloc[:, : int(first or features.shape[1])], table["y"]


def run(
    tree: Path, model: str, data: str, sampler: str, minutes: float, seed: int = 1
) -> dict[str, object]:
    """Return the row of one run by the package in a folder; `ended` says why there is none."""
    given = {"model": model, "data": data, "sampler": sampler, "minutes": minutes, "seed": seed}
    given["lab"] = str(Path(__file__).parent)
    settings = {
        "PYTHONPATH": os.pathsep.join([str(tree), os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", WORK, json.dumps(given)]
    done = subprocess.run(
        command, cwd=tree, env=os.environ | settings, capture_output=True, text=True
    )
    row = {"model": model, "data": data}
    found = done.stdout.splitlines()
    if found and done.returncode in (0, -signal.SIGXCPU, -signal.SIGKILL):
        return row | json.loads(found[-1])
    said = [f"ended with {done.returncode}", *done.stderr.strip().splitlines()]
    return row | {"by": sampler, "ended": "time" if done.returncode < 0 else said[-1][:60]}


def needed(row: dict) -> float:
    """Return the seconds for all effective draws, of a run that may have ended before."""
    if row["ended"] == "converged":
        return row["processor"]
    return row["processor"] * max(1.0, ESS / max(row["ESS"], 1.0))


def shown(row: dict) -> str:
    """Return a run in one line."""
    if "processor" not in row:
        return f"{row['by']}: {row['ended']}"
    return (
        f"{row['by']:6s} {row['processor']:7.1f} s  {row['iterations']:6d} iterations  "
        f"ESS {row['ESS']:5.0f}  R-hat {row['R-hat']:.3f}  {row['GB']:.2f} GB  {row['ended']}"
    )


def compared(rows: list[dict], name: str) -> str:
    """Return what each run takes in times of the first; of eta's ESS a second, what the first has.

    A sampler beside `exact` that has not converged has no ratio.
    """
    found = [r for r in rows if "processor" in r]
    if len(found) < 2 or found[0] is not rows[0]:
        return ""
    first, said = found[0], []
    for r in found[1:]:
        if r["by"] not in PEERS:
            said.append(f"{r[name]} {needed(r) / needed(first):.2f}")
        elif r["ended"] == "converged":
            ours, theirs = (x["ESS of eta"] / x["processor"] for x in (first, r))
            said.append(f"over {r['by']} {ours / theirs:.2f} in ESS of eta a second")
    return f"    times of {first[name]}: {', '.join(said)}"


def main(words: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, help="another checkout, with its own rule")
    parser.add_argument("--only", nargs="+", help='cases, such as "horseshoe 2000x30"')
    parser.add_argument("--samplers", nargs="+", default=SAMPLERS)
    parser.add_argument("--minutes", type=float, default=10.0, help="a run ends after so many")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args(words)
    cases = [tuple(c.split(" ", 1)) for c in given.only or ()]
    cases = cases or [(m, size) for m in MODELS for size in SIZES]
    if given.quick:
        cases, given.samplers, given.minutes = [("sparse_probit", "50x3")], ["gibbs"], 0.2
    versions = ", ".join(f"{v} {metadata.version(v)}" for v in VERSIONS)
    print(
        f"{datetime.date.today()}, {platform.python_version()}, {versions}, {os.cpu_count()} cores"
    )
    print("python -m lab.speed.samplers", *(sys.argv[1:] if words is None else words))
    for model, data in cases:
        for seed in given.seeds:
            if given.before is None:
                jobs = [(HERE, s, s) for s in given.samplers]
            else:
                before = given.before.resolve()
                jobs = [(HERE, "auto", "now"), (before, "auto", "before")]
            rows = []
            for tree, sampler, called in jobs:
                row = run(tree, model, data, sampler, given.minutes, seed) | {"called": called}
                print(f"{model} {data} seed {seed} {called:6s} {shown(row)}", flush=True)
                rows.append(row)
            print(compared(rows, "called"), flush=True)


if __name__ == "__main__":
    main()
