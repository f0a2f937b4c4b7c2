"""Which step size and how much tuning NUTS needs: effective draws for each million gradients.

    python -m benchmarks.nuts_settings                     everything (ARDVARK_DATA for the data)
    python -m benchmarks.nuts_settings --only colon rfvm   rows whose name contains one of these

Each problem is sampled at several pairs of target acceptance and tuning draws. Leapfrog steps of
the kept draws are counted, which no load disturbs; the processor's seconds hold the tuning too.
Rows are appended to OUT/settings.csv as they end, and a killed run goes on with the same command.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import ardvark as av
from ardvark.inference.fits import diagnostics

DENSE = {"active_features": "all", "active_samples": "all"}
RBF = {"kernel": "rbf"}
PROBLEMS: list[tuple[str, str, dict[str, Any]]] = [
    ("pfcvm", "colon", {}),
    ("rfvm", "colon", {}),
    ("pfcvm", "colon", DENSE),
    ("rfvm", "colon", DENSE),
    ("jcfo", "colon", {}),
    ("rfvm", "digits38", {}),
    ("pfcvm", "sonar", RBF),
    ("rvm", "sonar", RBF),
    ("jcfo", "sonar", RBF),
]
SETTINGS = [(0.95, 1000), (0.95, 400), (0.9, 400), (0.8, 400)]


def rows(only: list[str]) -> Iterator[tuple[str, Any, float, int]]:
    """Yield name, problem, target acceptance and tuning draws."""
    for model, data, hypers in PROBLEMS:
        words = "dense" if hypers is DENSE else hypers.get("kernel", "")
        for target, tune in SETTINGS:
            name = " ".join(filter(None, (model, data, words, f"{target} {tune}")))
            if not only or any(word in name for word in only):
                yield name, av.problem(model, data, **hypers), target, tune


def measured(problem: Any, target: float, tune: int) -> dict[str, Any]:
    """Sample 4 x 1000 draws; return what they cost and what they are worth."""
    settings = {"random_seed": 1, "progressbar": False, "keep": "shared"}
    before = time.process_time()
    fit = av.fit(problem, "nuts", target_accept=target, tune=tune, **settings)
    seconds = time.process_time() - before
    eta, steps = fit["posterior"]["eta"], int(fit["sample_stats"]["n_steps"].sum())
    ess = float(diagnostics.ess(eta, "bulk").min())
    return {
        "steps": steps,
        "cpu_seconds": seconds,
        "rhat_eta": float(diagnostics.rhat(eta).max()),
        "ess_eta": ess,
        "ess_per_million": 1e6 * ess / steps,
        "ess_per_cpu_second": ess / seconds,
        "divergences": diagnostics.divergences(fit),
    }


def main() -> None:
    """Run what is missing and print what there is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/nuts_settings"))
    parser.add_argument("--only", nargs="+", default=[], help="words in the names of rows")
    given = parser.parse_args()
    path = given.out / "settings.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pd.read_csv(path) if path.exists() else pd.DataFrame({"row": []})
    for name, problem, target, tune in rows(given.only):
        if name in set(table["row"]):
            continue
        row = pd.DataFrame([{"row": name} | measured(problem, target, tune)])
        table = pd.concat([table, row], ignore_index=True) if len(table) else row
        table.to_csv(path, index=False)
        print(row.round(4).to_string(index=False), file=sys.stderr, flush=True)
    print(table.round(4).to_string(index=False))


if __name__ == "__main__":
    main()
