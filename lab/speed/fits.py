"""A timed fit in a process of its own: what it costs, and how it mixed.

A case is a model, data, a method, and what differs from the defaults of both. Data are a registered
name, a registered name and a number of rows, shuffled with a fixed seed ("sonar 100"), or two
numbers, and then they are made: blocks of five correlated features, two of them planted
(100x10000), or independent ones where the features are no whole blocks (72x7129).

Seconds are of sampling, those of compilation stand beside them; the processor's hold both. The peak
of resident memory holds everything: imports, data, compiled code, draws, the judgement of
convergence. R-hat and ESS of `exact` are what it stopped by; those of other chains are the worst of
`eta` and the scalars, and "of" says whose ESS. Gradients are those of the kept draws, which no load
disturbs.
"""

import json
import logging
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import ardvark as av
from ardvark.inference.fits import diagnostics
from lab import problems
from lab.rows import Row

PAGE = Path(__file__).parent / "SPEED.md"
FORMATS = dict.fromkeys(("seconds", "seconds_compile", "times", "times_compiled"), ".1f")
FORMATS |= dict.fromkeys(("GB of draws", "estimate", "GB before", "GB"), ".2f")
FORMATS |= {"rhat_eta": ".3f", "ess_eta": ".0f", "runs": ".0f", "memory_mb": ".0f"}


@dataclass(frozen=True)
class Case:
    """One fit. `hypers` and `options` are what differs from the defaults."""

    model: str
    data: str
    method: str
    hypers: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def key(self, seed: int) -> Row:
        """Return what tells its row from others."""
        return {
            "model": self.model, "prior": words(self.hypers), "data": self.data,
            "method": self.method, "options": words(self.options), "seed": seed,
        }  # fmt: skip


def words(settings: Mapping[str, Any]) -> str:
    """Return what differs from the defaults, as a row says it."""
    return " ".join(f"{name}={value}" for name, value in settings.items())


def load(name: str) -> Any:
    """Return the data of a case."""
    if name[0].isdigit():
        N, D = map(int, name.split("x"))
        return problems.synthetic(N, D) if D % problems.BLOCK else problems.planted(N, D)
    known, _, rows = name.partition(" ")
    data = av.load(known)
    return data.take(np.random.default_rng(0).permutation(data.N)[: int(rows)]) if rows else data


def peak_gb() -> float:
    """Return the largest resident memory of this process so far; Linux counts it in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def fitted(case: Case, seed: int) -> tuple[av.Problem, xr.DataTree, Row]:
    """Return the problem and the fit of a case, and its row."""
    logging.getLogger("ardvark").setLevel(logging.ERROR)
    problem = problems.problem(case.model, load(case.data), **case.hypers)
    before, began = peak_gb(), time.process_time()
    options = {"keep": "shared"} | case.options
    tree = av.fit(problem, case.method, random_seed=seed, progressbar=False, **options)
    taken, attrs = time.process_time() - began, tree.attrs
    row = {
        "kernel": "" if problem.kernel is None else problem.kernel.name,
        "N": len(problem.y),
        "D": problem.X.shape[1],
        "by": attrs.get("sampler", case.method),
        "seconds": attrs["seconds_run"],
        "compile": attrs["seconds_compile"],
        "processor": taken,
        "GB": peak_gb(),
        "GB before": before,
        "GB of draws": tree["posterior"].to_dataset().nbytes / 1e9,
        "iterations": attrs.get("iterations", attrs.get("sweeps")),
    }
    return problem, tree, row | mixed(tree) | {"ended": attrs.get("ended", attrs["status"])}


def mixed(tree: xr.DataTree) -> Row:
    """Return how chains mixed; nothing for an approximation."""
    if tree.attrs["kind"] != "mcmc":
        return {}
    if tree.attrs["method"] == "exact":
        went = tree["fit"].to_dataset()
        return {
            "R-hat": float(went["judged_rhat"].values[-1]),
            "ESS": float(went["judged_ess_bulk"].values[-1]),
        }
    posterior, stats = tree["posterior"].to_dataset(), tree["sample_stats"]
    scalars = [n for n in posterior if posterior[n].sizes.keys() == {"chain", "draw"}]
    judged = [posterior[n] for n in ("eta", *scalars)]
    ess = {str(x.name): float(diagnostics.ess(x, "bulk").min()) for x in judged}
    least = min(ess, key=ess.__getitem__)
    return {
        "R-hat": max(float(diagnostics.rhat(x).max()) for x in judged),
        "ESS": ess[least],
        "of": least,
        "gradients": int(stats["n_steps"].sum()) if "n_steps" in stats else None,
        "divergences": diagnostics.divergences(tree),
    }


def cost(case: Case, seed: int) -> Row:
    """Return the row of a case."""
    return fitted(case, seed)[2]


def work(
    cases: Iterable[Case],
    seeds: Iterable[int] = (1,),
    only: Iterable[str] = (),
    one: str = "lab.speed.fits.cost",
) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yield what tells a row from others, and its computation in a fresh process.

    Parameters
    ----------
    only : iterable of str
        Words of the cases that are asked for (all).
    one : str
        The name of the function that computes a row, `cost` or another one like it.
    """
    for case in cases:
        for seed in seeds:
            name = " ".join(map(str, case.key(seed).values()))
            if not only or any(word in name for word in only):
                yield case.key(seed), partial(apart, one, case, seed)


def apart(one: str, case: Case, seed: int) -> Row:
    """Return a row that is computed in a fresh process.

    So the peak of resident memory is its own, and nothing is compiled beforehand.
    """
    module, _, function = one.rpartition(".")
    code = (
        "import json; from lab.speed.fits import Case; "
        f"from {module} import {function} as one; print(json.dumps(one({case}, {seed})))"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{one} of {case} ended with {done.returncode}")
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row
