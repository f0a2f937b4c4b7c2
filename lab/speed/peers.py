"""The same posterior by our samplers and by three others, each until it has converged.

    pip install -e '.[peers]'                         JAX, NumPyro, BlackJAX
    python -m lab.speed.peers nuts                    our `nuts`, in ESS a second (ARDVARK_DATA)
    python -m lab.speed.peers exact                   `exact` on genes, in seconds
    python -m lab.speed.peers nuts --only 'sonar dense'    rows whose name contains one of these

Every sampler draws from the problem's own PyMC model: the same priors, data and form, in float64.
NumPyro and BlackJAX get its density through JAX; before their clock starts it is compared with ours
at 20 points, and a difference above 1e-10 of its value ends the run. Each takes its own default
target acceptance and tuning: 4 chains of 1000 draws on two cores, after 500 tuning draws (ours) or
1000 (theirs). Then draws and tuning are doubled until the worst R-hat of eta is below 1.01 and its
smallest bulk ESS above 400, or until the limit, 15 minutes of compilation and sampling together; no
run is begun in less time than the last one took. `exact` ends by its own, stricter rule: all that
may be quoted, not eta alone, with 1000 effective draws.

A row is one problem and one sampler, in a process of its own with empty compile caches, ended at
the limit. Rows are kept as they end; a killed run goes on with the same command, and a row that
failed is tried again.

Seconds of sampling, with tuning, ESS and steps (gradients, those of tuning not counted) are of the
last run alone, which favours a sampler that needed several; seconds of compilation are of the
first. ESS a second is of sampling, and of both together. `times` is ours over theirs; of seconds,
theirs over ours, and at least the limit over ours for a sampler that has not converged by then.
Memory is the peak of the process and its children; a page that they share counts once.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ardvark as av
from ardvark.inference.fits import diagnostics
from ardvark.inference.target.target import Target
from lab import problems, rows, tables
from lab.problems import DENSE, RBF
from lab.rows import Row
from lab.speed.fits import FORMATS, PAGE, load

CORES, CHAINS, DRAWS = 2, 4, 1000
RHAT, ESS = 1.01, 400.0
OTHERS = {"numpyro": 1000, "blackjax": 1000, "pymc": 1000}
SAMPLERS = {"ours": 500} | OTHERS
"""Tuning draws by default."""

PROBLEMS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "pfcvm rbf sonar sparse": ("pfcvm", "sonar 100", RBF),
    "pfcvm rbf sonar dense": ("pfcvm", "sonar 100", RBF | DENSE),
    "pfcvm linear colon_discrete sparse": ("pfcvm", "colon_discrete", {}),
    "pfcvm linear colon_discrete dense": ("pfcvm", "colon_discrete", DENSE),
    "rfvm colon_discrete sparse": ("rfvm", "colon_discrete", {}),
    "rfvm colon_discrete dense": ("rfvm", "colon_discrete", DENSE),
    # one prior: Laplace
    "jcfo linear colon_discrete": ("jcfo", "colon_discrete", {"kernel": "linear"}),
}
GENES: dict[str, tuple[str, str, dict[str, Any]]] = {
    f"{model} {data} sparse": (model, data, {})
    for data in ("colon", "golub")
    for model in ("pfcvm", "rfvm")
}
"""Problems for `exact`: 62 x 2000 and 72 x 7129."""


# --- one problem and one sampler, in a process of its own -----------------------------------------


class Compiled:
    """Seconds that JAX spends on compiling, as it reports them: tracing, lowering, compiling."""

    def __init__(self) -> None:
        from jax import monitoring

        self._spans: list[tuple[float, float]] = []
        monitoring.register_event_time_span_listener(self._note)

    def _note(self, event: str, start: float, end: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile"):
            self._spans.append((start, end))

    def seconds(self) -> float:
        """Return the length of the union of the spans, one of which may hold others."""
        return union(self._spans)


def union(spans: list[tuple[float, float]]) -> float:
    """Return the length of a union of intervals."""
    total, reached = 0.0, -np.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def density_error(problem: Any) -> float:
    """Return the largest relative difference of JAX's log density from ours, at 20 points."""
    import jax
    from pymc.sampling.jax import get_jaxified_logp

    model, density = problem.model, Target(problem).density
    theirs = jax.jit(get_jaxified_logp(model))
    rng, worst = np.random.default_rng(0), 0.0
    shapes = [np.shape(v) for v in model.initial_point().values()]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    for _ in range(20):
        x = density.start + rng.uniform(-1.0, 1.0, density.size)
        pieces = np.split(x, ends[:-1])
        value = float(theirs([p.reshape(s) for p, s in zip(pieces, shapes, strict=True)]))
        ours = density.logp_grad(x)[0]
        worst = max(worst, abs(value - ours) / abs(ours))
    return worst


def ours(problem: Any, draws: int, tune: int, seed: int) -> tuple[Any, float, float]:
    """Return the draws, seconds of sampling, and seconds of compilation."""
    settings = {"draws": draws, "chains": CHAINS, "random_seed": seed, "cores": CORES}
    fit = av.fit(problem, "nuts", tune=tune, keep="shared", progressbar=False, **settings)
    return fit, fit.attrs["seconds_run"], fit.attrs["seconds_compile"]


def theirs(
    problem: Any, sampler: str, draws: int, tune: int, seed: int
) -> tuple[Any, float, float]:
    """Return the draws, seconds of sampling, and seconds of compilation."""
    import pymc as pm

    model = problem.model
    jax = Compiled() if sampler != "pymc" else None
    started = time.perf_counter()
    tree = pm.sample(
        draws,
        tune=tune,
        chains=CHAINS,
        cores=CORES,
        random_seed=seed,
        nuts_sampler=sampler,
        var_names=["eta"],
        model=model,
        progressbar=False,
        compute_convergence_checks=False,
    )
    for node in (tree["posterior"], tree["sample_stats"]):
        node.to_dataset().map(np.asarray)  # JAX returns before it is done: wait for the numbers
    seconds = time.perf_counter() - started
    sampling = tree["posterior"].attrs["sampling_time"] if jax is None else seconds - jax.seconds()
    return tree, sampling, seconds - sampling


def sample(problem_name: str, sampler: str, path: str, limit: float) -> None:
    """Sample until converged, and write after each run what there is to `path`.

    The system ends the process `limit` seconds after its clock started.
    """
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    model, data, hypers = (PROBLEMS | GENES)[problem_name]
    problem = problems.problem(model, load(data), **hypers)
    if sampler == "exact":
        Path(path).write_text(json.dumps(exactly(problem, limit)))
        return
    row: dict[str, Any] = {}
    if sampler not in ("ours", "pymc"):
        row["density_error"] = density_error(problem)
        if not row["density_error"] < 1e-10:
            raise ValueError(
                f"JAX's log density differs by {row['density_error']:.1e} of its value"
            )
    signal.setitimer(signal.ITIMER_REAL, limit)
    for found in doubled(problem, sampler, DRAWS, SAMPLERS[sampler], limit):
        row |= found
        Path(path).with_suffix(".new").write_text(json.dumps(row))
        Path(path).with_suffix(".new").replace(path)


def doubled(
    problem: Any, sampler: str, draws: int, tune: int, limit: float
) -> Iterator[dict[str, Any]]:
    """Yield what each run found; draws and tuning are doubled until one has converged."""
    began, compiling = time.perf_counter(), None
    for run in range(20):
        length = (draws * 2**run, tune * 2**run, 1 + run)
        if sampler == "ours":
            tree, seconds, seconds_compile = ours(problem, *length)
        else:
            tree, seconds, seconds_compile = theirs(problem, sampler, *length)
        compiling = seconds_compile if compiling is None else compiling
        eta, stats = tree["posterior"]["eta"], tree["sample_stats"]
        ess, rhat = diagnostics.ess(eta, "bulk").min(), diagnostics.rhat(eta).max()
        yield {
            "runs": run + 1, "draws": length[0], "tune": length[1],
            "ess_eta": float(ess), "rhat_eta": float(rhat),
            "divergences": int(stats["diverging"].sum()), "steps": int(stats["n_steps"].sum()),
            "seconds": seconds, "seconds_compile": compiling,
            "converged": bool(rhat < RHAT and ess > ESS),
        }  # fmt: skip
        if (rhat < RHAT and ess > ESS) or time.perf_counter() - began + seconds > limit:
            return


def exactly(problem: Any, limit: float) -> dict[str, Any]:
    """Return what `exact` found by its defaults, within `limit` seconds of sampling."""
    fit = av.fit(
        problem, "exact", minutes=limit / 60.0, random_seed=1, keep="shared", progressbar=False
    )
    eta = fit["posterior"]["eta"]
    return {
        "ess_eta": float(diagnostics.ess(eta, "bulk").min()),
        "rhat_eta": float(diagnostics.rhat(eta).max()),
        "seconds": fit.attrs["seconds_run"], "seconds_compile": fit.attrs["seconds_compile"],
        "converged": fit.attrs["ended"] == "converged",
    }  # fmt: skip


# --- the processes --------------------------------------------------------------------------------


def memory(group: int) -> float:
    """Return the MB that a process group holds now; pages that its processes share count once."""
    total = 0.0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(process.name)) == group:
                lines = (process / "smaps_rollup").read_text().splitlines()
                total += next(float(v.split()[1]) for v in lines if v.startswith("Pss:")) / 1024.0
        except (OSError, StopIteration):  # it ended meanwhile
            continue
    return total


def one_row(problem: str, sampler: str, minutes: float) -> dict[str, Any]:
    """Run `sample` in a process of its own, with empty compile caches."""
    with tempfile.TemporaryDirectory() as folder:
        result, peak = Path(folder) / "row.json", 0.0
        flags = f"base_compiledir={folder}/pytensor"
        caches = {"PYTENSOR_FLAGS": flags, "NUMBA_CACHE_DIR": f"{folder}/numba"}
        given = f"{problem!r}, {sampler!r}, {str(result)!r}, {60.0 * minutes}"
        process = subprocess.Popen(
            [sys.executable, "-c", f"from lab.speed.peers import sample; sample({given})"],
            env=os.environ | caches | {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"},
            start_new_session=True,  # a group of its own, to end with all its children
        )
        try:
            while process.poll() is None:
                peak = max(peak, memory(process.pid))
                time.sleep(1.0)
        finally:
            if process.poll() is None or memory(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode not in (0, -signal.SIGALRM):
            raise RuntimeError(
                f"the process ended with {process.returncode}; what it said is above"
            )
        row = json.loads(result.read_text()) if result.exists() else {"converged": False}
    return {"limit": minutes} | row | {"memory_mb": peak}


def table(found: pd.DataFrame, mine: str) -> pd.DataFrame:
    """Return one line a row: how it ended, and what it took over what `mine` took.

    Parameters
    ----------
    found : DataFrame
        Problem and sampler, and what `one_row` returns, a line each.
    mine : {"ours", "exact"}
        The sampler that the others are compared with. Beside `exact`, which ends by its own rule,
        seconds are compared; beside our `nuts`, seconds an effective draw.

    Returns
    -------
    DataFrame
        In the order of `found`. A sampler that has not converged took at least the limit, so its
        ratios are bounds from below; its column "bound" says so. Of effective draws it has no
        ratio. Where `mine` has not converged there are none.
    """
    columns = [
        "problem", "sampler", "ess_eta", "rhat_eta", "divergences", "runs", "steps", "seconds",
        "seconds_compile", "memory_mb",
    ]  # fmt: skip
    out, a_draw = found.reindex(columns=columns), mine == "ours"
    done, limit = found["converged"].astype(bool), 60.0 * found["limit"]
    ended = np.where(done, "converged", [f"not in {m:g} min" for m in found["limit"]])
    out.insert(2, "ended", ended)
    compiling = out["seconds_compile"].fillna(0.0)  # unknown where no run ended
    for name, cost, least in (
        ("times", out["seconds"], limit - compiling),
        ("times_compiled", out["seconds"] + out["seconds_compile"], limit),
    ):
        if a_draw:
            cost, least = cost / out["ess_eta"], np.nan
            out[name.replace("times", "ess_s")] = (1.0 / cost).where(done)
        known = cost.where(done)[out["sampler"] == mine]
        known.index = out.loc[known.index, "problem"]
        out[name] = cost.where(done, least) / out["problem"].map(known)
    if not a_draw:
        out["bound"] = np.where(done, "", "at least")
    return out


def work(mine: str, only: Iterable[str], limit: float) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yield what tells a row from others, and its computation, at most `limit` minutes."""
    for problem in PROBLEMS if mine == "ours" else GENES:
        for sampler in (mine, *OTHERS):
            name = f"{problem} {sampler}"
            if not only or any(word in name for word in only):
                key: Row = {"problem": problem, "sampler": sampler}
                yield key, partial(one_row, problem, sampler, limit)


def main(words: list[str] | None = None) -> None:
    """Run what is missing, and publish it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", choices=("nuts", "exact"), help="what the others stand beside")
    parser.add_argument("--only", nargs="+", default=[], help="words in the names of rows")
    parser.add_argument("--limit", type=float, default=15.0, help="minutes a row (15)")
    given = parser.parse_args(words)
    mine = "ours" if given.which == "nuts" else "exact"
    found = rows.computed(Path("results/peers.csv"), work(mine, given.only, given.limit))
    frame = table(pd.DataFrame(found), mine)
    command = f"ARDVARK_DATA=... python -m lab.speed.peers {given.which} --limit {given.limit:g}"
    if given.only:
        command += " --only " + " ".join(map(repr, given.only))
    tables.write(PAGE.parent / f"peers_{given.which}.csv", frame, command)
    tables.show(PAGE, FORMATS)


if __name__ == "__main__":
    main()
