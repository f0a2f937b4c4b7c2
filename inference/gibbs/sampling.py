"""Gibbs sampling: exact Markov chains for binary masks, for JCFO, and for PFCVM and RFVM.

Each block of variables is drawn from its full conditional, or moved by a Metropolis step that
leaves it invariant. So the chain targets the posterior itself, and once it has converged, its only
error is Monte Carlo error. It is the exact method where NUTS does not apply (binary variables), and
where NUTS is slow: under the sparse priors of PFCVM and RFVM, whose posterior has many modes. Where
NUTS works well, it is an independent check. The chain of JCFO runs in its latent form. The chains
of PFCVM and RFVM run with the precisions integrated out. Each draw has the variables of the
problem's own form.

    model                  sweep, and its source         cost of a sweep
    fsklr, sklr, fs_skr    `masks`                       O(N A (D + B) + N A^2 (D + 1))
    jcfo                   `jcfo`                        O(N B D + N^2 B + N^3)
    pfcvm, rfvm            `ard`, linear kernel          O(N B D)

where A is the number of samples that are on (`benchmarks/gibbs_speed.py`).

Chains start far apart: some masks with few bits on and some with half of them, and weights drawn
from the prior. Nothing is adapted, so `tune` only lets a chain approach the posterior. R-hat alone
does not show whether chains over binary masks have converged. See also `diagnostics.inclusion`, the
counts `feature_flips` and `sample_flips` of each sweep in sample_stats, and the columns of the
comparison that are computed from them.
"""

import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ardvark.common.declared import Settings, option
from ardvark.models import Problem

from ..contract.backend import About, Job, Kind, Result, only_for
from ..contract.draws import Draws
from ..contract.target import Target
from . import ard, jcfo, masks

NAME = "gibbs"
KIND: Kind = "mcmc"
ABOUT = About(
    approximates=(
        "Nothing: its Markov chain samples the posterior itself, drawing each block from its full "
        "conditional."
    ),
    exact=(
        "In the limit of many draws, if the chains have converged. For chains over binary masks, "
        "R-hat alone does not show that."
    ),
    cost=(
        "A sweep costs O(N A (D + B) + N A^2 (D + 1)) under masks, for A samples in use; O(N B D "
        "+ N^2 B + N^3) for JCFO; and O(N B D) for PFCVM and RFVM."
    ),
)
BATCH = 100  # draws whose log density is computed at once


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `gibbs`."""

    tune: int = option(1000, "sweeps per chain, which are discarded", above=0)
    thin: int = option(1, "sweeps per stored draw", above=0)
    cores: int | None = option(
        None, "chains that run in parallel. None: all cores. The draws do not depend on it", above=0
    )


class Sampler(Protocol):
    """One sweep of a chain for one problem, with its start and its output. It has no state."""

    def __init__(self, problem: Problem) -> None: ...

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


SAMPLERS: dict[str, type[Sampler]] = {
    **dict.fromkeys(masks.MODELS, masks.Sampler),
    **dict.fromkeys(jcfo.MODELS, jcfo.Sampler),
    **dict.fromkeys(ard.MODELS, ard.Sampler),
}
"""The sampler of each model that has one, by the model's name."""

_of_a_model = only_for(tuple(SAMPLERS), f"made for {', '.join(SAMPLERS)}")


def supports(target: Target) -> str | None:
    """Return why the method does not apply, or None."""
    why_not = _of_a_model(target)
    if why_not is None and target.zoo_problem.spec.name in ard.MODELS:
        kernel = target.zoo_problem.kernel
        if kernel is not None and not kernel.is_linear:
            return f"it needs the linear kernel for {' and '.join(ard.MODELS)}, not {kernel.name!r}"
    return why_not


def make_sampler(problem: Problem) -> Sampler:
    """Return the sampler of a problem that `supports` accepts."""
    return SAMPLERS[problem.spec.name](problem)


def fit(target: Target, options: Options, job: Job) -> Result:
    """Sample the posterior with independent chains, each with its own random stream."""
    sampler = make_sampler(target.zoo_problem)
    started = time.perf_counter()
    with job.report.stage("compiling"):
        rng = np.random.default_rng(0)
        sampler.sweep(sampler.start(rng, 0), rng)
    seconds_compile = time.perf_counter() - started

    started = time.perf_counter()
    chains = Chains(target.zoo_problem, sampler, options, job)
    chains.run()
    return Result(
        posterior=chains.draws.posterior,
        sample_stats=chains.draws.sample_stats,
        seconds_compile=seconds_compile,
        seconds_run=time.perf_counter() - started,
    )


class Chains:
    """The chains of one fit, one thread each, which fill `draws` as they run."""

    def __init__(self, problem: Problem, sampler: Sampler, options: Options, job: Job) -> None:
        self.problem, self.sampler, self.options, self.job = problem, sampler, options, job
        self.draws = Draws(job)
        self._swept = [0] * job.chains
        self._stop = threading.Event()

    def run(self) -> None:
        """Run every chain to its end; an error or an interrupt ends them all."""
        job, options = self.job, self.options
        workers = min(job.chains, options.cores or os.cpu_count() or 1)
        total = job.chains * (options.tune + job.draws * options.thin)
        with (
            job.report.stage("sampling", total=total) as update,
            ThreadPoolExecutor(workers) as pool,
        ):
            chains = [pool.submit(self._chain, c, rng) for c, rng in enumerate(job.generators())]
            try:
                running: Any = chains
                while running:
                    finished, running = wait(chains, timeout=0.2, return_when=FIRST_EXCEPTION)
                    update(sum(self._swept))
                    for chain in finished:
                        chain.result()  # a chain's error ends the fit now
            finally:
                self._stop.set()

    def _chain(self, chain: int, rng: np.random.Generator) -> None:
        """Sample one chain; it is cut short once `_stop` is set."""
        sampler, draws = self.sampler, self.job.draws
        state = sampler.start(rng, chain)

        def sweep(times: int) -> None:
            for _ in range(times):
                if not self._stop.is_set():
                    sampler.sweep(state, rng)
                    self._swept[chain] += 1

        sweep(self.options.tune)
        for first in range(0, draws, BATCH):
            points, stats = [], []
            for _ in range(min(BATCH, draws - first)):
                sweep(self.options.thin)
                points.append(sampler.point(state))
                stats.append(sampler.stats(state))
            batch = {k: np.stack([p[k] for p in points]) for k in points[0]}
            found = {k: np.array([s[k] for s in stats]) for k in stats[0]}
            self.draws.add(chain, first, batch, {"lp": self.problem.log_density(batch), **found})
