"""A timed fit in a process of its own: what it costs, how it mixed; a script is a table of cases.

A case is a model, data, a method, and what differs from the defaults of both. Data are a registered
name; such a name and a number of rows, shuffled with a fixed seed ("sonar 100"); or two numbers,
and then they are made: blocks of five correlated features, two of them planted (100x10000), or
independent ones where the features are no whole blocks (72x7129).

Seconds are of sampling, those of compilation stand beside them; the processor's hold both. The peak
of resident memory holds everything: imports, data, compiled code, draws, the judgement of
convergence. R-hat and ESS of `exact` are what it stopped by; those of other chains are the worst of
`eta` and the scalars, and "of" says whose ESS. Gradients are those of the kept draws, which no load
disturbs. Rows are kept in WORK as they end.
"""

import argparse
import logging
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from lab.records import Table, table
from lab.script import BLOCK, DENSE, Row, apart, plant, resumed, stored, synthetic

FORMATS = {
    "seconds": ".1f", "compile": ".1f", "processor": ".1f", "GB": ".2f", "GB before": ".2f",
    "GB of draws": ".2f", "estimate": ".2f", "R-hat": ".3f", "ESS": ".0f",
}  # fmt: skip


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
    """Return what differs from the defaults, as a row says it; the dense prior has a name."""
    dense = DENSE.items() <= settings.items()
    rest = [f"{k}={v}" for k, v in settings.items() if not (dense and k in DENSE)]
    return " ".join((["dense"] if dense else []) + rest)


def load(name: str) -> Any:
    """Return the data of a case."""
    import ardvark as av

    if name[0].isdigit():
        N, D = map(int, name.split("x"))
        if D % BLOCK:
            return synthetic(N, D)
        return plant(1, N=N, D=D, active=min(2, D // BLOCK), effect=6.0)[:2]
    known, _, rows = name.partition(" ")
    data = av.load(known)
    return data.take(np.random.default_rng(0).permutation(data.N)[: int(rows)]) if rows else data


def peak_gb() -> float:
    """Return the largest resident memory of this process so far; Linux counts it in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def fitted(
    model: str, data: str, method: str, hypers: dict[str, Any], options: dict[str, Any], seed: int
) -> tuple[Any, xr.DataTree, Row]:
    """Return the problem and the fit of a case, and its row."""
    import ardvark as av
    from lab import problems

    logging.getLogger("ardvark").setLevel(logging.ERROR)
    problem = problems.problem(model, load(data), **hypers)
    before, began = peak_gb(), time.process_time()
    tree = av.fit(
        problem, method, random_seed=seed, progressbar=False, **{"keep": "shared"} | options
    )
    taken, attrs = time.process_time() - began, tree.attrs
    row = {
        "kernel": "" if problem.kernel is None else problem.kernel.name,
        "N": len(problem.y),
        "D": problem.X.shape[1],
        "by": attrs.get("sampler", method),
        "seconds": attrs["seconds_run"],
        "compile": attrs["seconds_compile"],
        "processor": taken,
        "GB": peak_gb(),
        "GB before": before,
        "GB of draws": tree["posterior"].to_dataset().nbytes / 1e9,
        "iterations": attrs.get("iterations", attrs.get("sweeps")),
        "features": attrs.get("features", attrs.get("features_kept")),
        "samples": attrs.get("samples", attrs.get("samples_kept")),
    }
    ended = attrs.get("ended", attrs["status"])
    return problem, tree, row | mixed(tree) | {"ended": ended}


def mixed(tree: xr.DataTree) -> Row:
    """Return how chains mixed; nothing for an approximation."""
    from ardvark.inference.fits import diagnostics

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


def cost(*case: Any) -> Row:
    """Return the row of a case, which is what `fitted` takes."""
    return fitted(*case)[2]


def rows(
    cases: Iterable[Case], given: argparse.Namespace, part: str, one: Callable[..., Row] = cost
) -> list[Row]:
    """Return a row for each case and seed that is asked for.

    `one` takes what `fitted` takes. It is called in a process of its own.
    """
    asked = [
        (case, seed)
        for case in cases
        for seed in (given.seeds[:1] if given.quick else given.seeds)
        if not given.only
        or any(w in " ".join(map(str, case.key(seed).values())) for w in given.only)
    ]
    path = given.work / f"{part}.csv"
    if given.stored:
        return stored(path, [case.key(seed) for case, seed in asked])
    work = (
        (
            case.key(seed),
            partial(
                apart, one, case.model, case.data, case.method, case.hypers, case.options, seed,
                quick=given.quick,
            ),
        )
        for case, seed in asked
    )  # fmt: skip
    return resumed(path, work)


def shown(title: str, found: list[Row], columns: str, note: str = "") -> Table:
    """Return a table of some columns of rows, in this order."""
    return table(title, [{name: row.get(name) for name in columns.split(", ")} for row in found],
                 FORMATS, note)  # fmt: skip


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of a table of cases."""
    parser.add_argument("--only", nargs="+", default=[], help="words of a case: models, data, ...")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], help="of each case (1)")
    parser.add_argument("--stored", action="store_true", help="measure nothing; rows of WORK only")
