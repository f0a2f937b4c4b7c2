"""Gibbs sampling: exact Markov chains for the binary masks of FS-SKLR, and for JCFO.

Each block of variables is drawn from its full conditional, or moved by a Metropolis step that
leaves it invariant, so the chain targets the posterior itself; its only error is Monte Carlo error,
once it has converged. It is the zoo's exact column where NUTS cannot go (binary variables), and an
independent second opinion where it can: JCFO's chain runs in its latent form, and each draw holds
the variables of the problem's own form.

    model                  sweep, and its source         cost of a sweep
    fsklr, sklr, fs_skr    `gibbs_masks`                 O(N A (D + B) + N A^2 (D + 1))
    jcfo                   `gibbs_jcfo`                  O(N B D + N^2 B + N^3)

with A the samples that are on (`benchmarks/gibbs_speed.py`).

Chains start far apart: masks with few bits on and with half of them, weights from the prior.
Nothing is adapted, so `tune` only lets a chain come near. How far binary chains may be believed is
not in R-hat alone: see `diagnostics.inclusion`, the counts `feature_flips` and `sample_flips` of
each sweep in sample_stats, and the columns of the comparison that are made of them.
"""

import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ardvark.validate import positive

from ..backend import Result
from ..progress import Reporter
from ..target import Target

NAME = "gibbs"
KIND = "mcmc"
NEEDS_MODEL = False
MODELS = ("fsklr", "sklr", "fs_skr", "jcfo")
BATCH = 100  # draws whose log density is computed at once
Batches = dict[str, list[np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `gibbs`.

    tune : sweeps a chain, discarded. thin : sweeps a stored draw. cores : chains that run at once
    (None: all cores); it changes the time, never the draws.
    """

    tune: int = 1000
    thin: int = 1
    cores: int | None = None

    def __post_init__(self) -> None:
        positive("tune", self.tune)
        positive("thin", self.thin)


class Sampler(Protocol):
    """One sweep of one problem's chain, and the way in and out. It holds no state of its own."""

    def set_labels(self, y: np.ndarray) -> None:
        """Bind other labels (N,)."""

    def start(self, rng: np.random.Generator, chain: int) -> Any:
        """Return a start that differs from chain to chain."""

    def state(self, point: Mapping[str, np.ndarray]) -> Any:
        """Return the state at a point of the model's variables."""

    def sweep(self, state: Any, rng: np.random.Generator) -> None:
        """Move the state once through every block."""

    def point(self, state: Any) -> dict[str, np.ndarray]:
        """Return the variables and shared quantities of a state, as copies."""

    def stats(self, state: Any) -> dict[str, float]:
        """Return statistics of the last sweep, under names of `datatree.SAMPLE_STATS`."""


def supports(model: Any, problem: Any) -> str | None:
    """Return why there is no Gibbs sampler for the problem, or None."""
    if problem is None or problem.spec.name not in MODELS:
        return f"its full conditionals are those of {', '.join(MODELS)}"
    return None


def make_sampler(problem: Any) -> Sampler:
    """Return the sampler of a problem that `supports` accepts."""
    if problem.spec.name == "jcfo":
        from . import jcfo as gibbs_jcfo

        return gibbs_jcfo.Sampler(problem)
    from . import masks as gibbs_masks

    return gibbs_masks.Sampler(problem)


def fit(
    target: Target,
    options: Options,
    *,
    draws: int,
    chains: int,
    seed: int,
    keep: list[str] | None,
    report: Reporter,
) -> Result:
    """Sample the posterior: independent chains, each with a random stream of its own."""
    problem = target.problem
    sampler = make_sampler(problem)
    streams = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(chains)]
    started = time.perf_counter()
    with report.stage("compiling"):
        rng = np.random.default_rng(0)
        sampler.sweep(sampler.start(rng, 0), rng)
    seconds_compile = time.perf_counter() - started

    started = time.perf_counter()
    done, stop = [0] * chains, threading.Event()
    workers = min(chains, options.cores or os.cpu_count() or 1)

    def run(chain: int) -> tuple[Batches, Batches]:
        return _chain(problem, sampler, streams[chain], chain, draws, options, keep, done, stop)

    total = chains * (options.tune + draws * options.thin)
    with report.stage("sampling", total=total) as update, ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(run, chain) for chain in range(chains)]
        try:
            running: Any = jobs
            while running:
                finished, running = wait(jobs, timeout=0.2, return_when=FIRST_EXCEPTION)
                update(sum(done))
                for job in finished:
                    job.result()  # a chain's error ends the fit now
        finally:
            stop.set()  # an interrupt, too, ends every chain
    found = [job.result() for job in jobs]
    posterior, statistics = (
        {k: np.stack([np.concatenate(f[part][k]) for f in found]) for k in found[0][part]}
        for part in (0, 1)
    )
    return Result(
        posterior=posterior,
        sample_stats=statistics,
        seconds_compile=seconds_compile,
        seconds_run=time.perf_counter() - started,
    )


def _chain(
    problem: Any,
    sampler: Sampler,
    rng: np.random.Generator,
    chain: int,
    draws: int,
    options: Options,
    keep: list[str] | None,
    done: list[int],
    stop: threading.Event,
) -> tuple[Batches, Batches]:
    """Return one chain's draws and statistics; both are cut short once `stop` is set."""
    state = sampler.start(rng, chain)

    def sweep(times: int) -> None:
        for _ in range(times):
            if not stop.is_set():
                sampler.sweep(state, rng)
                done[chain] += 1

    sweep(options.tune)
    posterior: Batches = {}
    statistics: Batches = {}
    for first in range(0, draws, BATCH):
        points, stats = [], []
        for _ in range(min(BATCH, draws - first)):
            sweep(options.thin)
            points.append(sampler.point(state))
            stats.append(sampler.stats(state))
        batch = {k: np.stack([p[k] for p in points]) for k in points[0]}
        statistics.setdefault("lp", []).append(problem.log_density(batch))
        for name in stats[0]:
            statistics.setdefault(name, []).append(np.array([s[name] for s in stats]))
        for name, values in batch.items():
            if keep is None or name in keep:
                posterior.setdefault(name, []).append(values)
    return posterior, statistics
