"""Gibbs sampling: exact Markov chains for every model of the zoo.

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
    pfcvm                  `ard_kernel`, other kernels   O(N B D)
    pcvm, rvm              `fixed_kernel`                O(N B)
    sparse_probit          `sparse_probit`               O(N^2 D + N^3)

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
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from ardvark.common.declared import Settings, option
from ardvark.common.progress import Update
from ardvark.models import Problem

from ..contract.backend import About, Arrays, Job, Kind, Result, only_for
from ..contract.chains import Length
from ..contract.draws import Draws
from ..contract.target import Target
from . import ard, ard_kernel, fixed_kernel, jcfo, masks, sparse_probit

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
        "A sweep costs from O(N B), where the kernel is fixed, to O(N B D + N^2 B + N^3) for JCFO; "
        "the table in `gibbs.sampling` has every model."
    ),
)
BATCH = 100  # draws whose log density is computed at once
WARM_UP = 0.25
"""Share of a run of `exact` that is not used: nothing is adapted, so in it the chains only approach
the posterior."""


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


def _of_pfcvm(problem: Problem) -> Sampler:
    """Return the sampler of PFCVM for its kernel: only under the linear one is eta linear."""
    kernel = problem.kernel
    linear = kernel is not None and kernel.is_linear
    return ard.Sampler(problem) if linear else ard_kernel.Sampler(problem)


SAMPLERS: dict[str, Callable[[Problem], Sampler]] = {
    **dict.fromkeys(masks.MODELS, masks.Sampler),
    **dict.fromkeys(jcfo.MODELS, jcfo.Sampler),
    **dict.fromkeys(ard.MODELS, ard.Sampler),
    **dict.fromkeys(ard_kernel.MODELS, _of_pfcvm),
    **dict.fromkeys(fixed_kernel.MODELS, fixed_kernel.Sampler),
    **dict.fromkeys(sparse_probit.MODELS, sparse_probit.Sampler),
}
"""What makes the sampler of a problem, by the model's name."""

supports = only_for(tuple(SAMPLERS), f"made for {', '.join(SAMPLERS)}")


def make_sampler(problem: Problem) -> Sampler:
    """Return the sampler of a problem that `supports` accepts."""
    return SAMPLERS[problem.spec.name](problem)


def fit(target: Target, options: Options, job: Job) -> Result:
    """Sample the posterior with independent chains, each with its own random stream."""
    length = Length(limit=options.tune + job.draws * options.thin, room=job.draws)
    with chains(target, options, job, length) as running:
        started = time.perf_counter()
        total = job.chains * (options.tune + job.draws * options.thin)
        with job.report.stage("sampling", total=total) as update:
            running.discard(options.tune, update)
            running.advance(job.draws * options.thin, options.thin, update)
        posterior, stats = running.read(0)
        return Result(
            posterior=dict(posterior),
            sample_stats=dict(stats),
            seconds_compile=running.seconds_compile,
            seconds_run=time.perf_counter() - started,
        )


def chains(
    target: Target, options: Options, job: Job, length: Length, start: Arrays | None = None
) -> "Chains":
    """Return chains that can be continued, of which no sweep has been discarded.

    `start` is what `last` of earlier chains returned; None: dispersed starts.
    """
    return Chains(target.zoo_problem, options, job, length.room, start)


class Chains:
    """The chains of one fit, one thread each (a `contract.chains.Chains`)."""

    def __init__(
        self, problem: Problem, options: Options, job: Job, room: int, start: Arrays | None = None
    ) -> None:
        self.problem, self.options, self.job = problem, options, job
        self.sampler = sampler = make_sampler(problem)
        self.attrs: dict[str, Any] = {}
        self.draws = Draws(job, room)
        self.generators = job.generators()
        started = time.perf_counter()
        with job.report.stage("compiling"):
            rng = np.random.default_rng(0)
            sampler.sweep(sampler.start(rng, 0), rng)
        self.seconds_compile = time.perf_counter() - started
        self.states = [
            sampler.start(rng, c)
            if start is None
            else sampler.state({name: x[c] for name, x in start.items()})
            for c, rng in enumerate(self.generators)
        ]
        self.iterations, self.kept, self.every = 0, 0, 1
        self._swept = [0] * job.chains
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def discard(self, sweeps: int, update: Update) -> None:
        """Take each chain on by so many sweeps, of which none is kept."""
        self._run(lambda chain: self._sweep(chain, sweeps), update)

    def advance(self, iterations: int, every: int, update: Update) -> None:
        """Take each chain to so many sweeps, of which every `every`-th is kept."""
        if every > self.every:
            self.kept, self.every = self.draws.thin(self.kept, every // self.every), every
        count = iterations // every - self.kept
        self._run(lambda chain: self._collect(chain, self.kept, count, every), update)
        self.iterations, self.kept = iterations, self.kept + count

    def read(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the posterior and the statistics of what was kept after sweep `first`."""
        return self.draws.read(first // self.every, self.kept)

    def last(self) -> Arrays:
        """Return the last point of each chain, {name: (chain, ...)}."""
        points = [self.sampler.point(state) for state in self.states]
        return {name: np.stack([p[name] for p in points]) for name in points[0]}

    def _run(self, work: Callable[[int], None], update: Update) -> None:
        """Do a piece of work of every chain; an error or an interrupt ends them all."""
        workers = min(self.job.chains, self.options.cores or os.cpu_count() or 1)
        with ThreadPoolExecutor(workers) as pool:
            running: Any = [pool.submit(work, chain) for chain in range(self.job.chains)]
            pending = running
            try:
                while pending:
                    finished, pending = wait(running, timeout=0.2, return_when=FIRST_EXCEPTION)
                    update(sum(self._swept))
                    for chain in finished:
                        chain.result()  # a chain's error ends the fit now
            except BaseException:
                self._stop.set()
                raise

    def _sweep(self, chain: int, times: int) -> None:
        """Sweep a chain; it is cut short once `_stop` is set."""
        for _ in range(times):
            if not self._stop.is_set():
                self.sampler.sweep(self.states[chain], self.generators[chain])
                self._swept[chain] += 1

    def _collect(self, chain: int, first: int, count: int, every: int) -> None:
        """Put the draws `first` to `first` + `count` of a chain where they belong."""
        sampler, state = self.sampler, self.states[chain]
        for at in range(0, count, BATCH):
            points, stats = [], []
            for _ in range(min(BATCH, count - at)):
                self._sweep(chain, every)
                points.append(sampler.point(state))
                stats.append(sampler.stats(state))
            batch = {k: np.stack([p[k] for p in points]) for k in points[0]}
            found = {k: np.array([s[k] for s in stats]) for k in stats[0]}
            found = {"lp": self.problem.log_density(batch), **found}
            self.draws.add(chain, first + at, batch, found)
