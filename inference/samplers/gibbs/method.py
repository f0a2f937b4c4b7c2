"""Gibbs sampling: exact Markov chains for the models of the zoo.

Each block of variables is drawn from its full conditional, or moved by a Metropolis step that
leaves it invariant. So the chain targets the posterior itself, and once it has converged, its only
error is Monte Carlo error. It is the exact method where NUTS does not apply (binary variables), and
where NUTS is slow: under the sparse priors of PFCVM, RFVM and the horseshoe, whose posterior has
many modes. Where NUTS works well, it is an independent check. The chain of JCFO runs in its latent
form. The chains of PFCVM and RFVM run with the precisions integrated out. Each draw has the
variables of the problem's own form.

    model                  sweep, and its source         cost of a sweep
    fsklr, sklr, fs_skr    `masks`                       O(N A (D + B) + N A^2 (D + 1))
    jcfo                   `jcfo`                        O(N B D + N^2 B + N^3)
    pfcvm, rfvm            `ard_linear`, linear kernel   O(N B D)
    pfcvm                  `ard_kernel`, other kernels   O(N B D)
    sparse_probit          `sparse_probit`               O(N^2 D + N^3)
    horseshoe              `horseshoe`                   O(N D)

where A is the number of samples that are on (`lab/algorithms/ALGORITHMS.md`).

Chains start far apart: some masks with few bits on and some with half of them, and weights drawn
from the prior. Nothing is adapted, so `tune` only lets a chain approach the posterior. R-hat alone
does not show whether chains over binary masks have converged. See also `diagnostics.inclusion`, and
the counts `feature_flips` and `sample_flips` of each sweep in sample_stats.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np

from ardvark.common.declared import Settings, option
from ardvark.common.progress import Update
from ardvark.models import Problem

from ...target.backend import About, Arrays, Job, Kind, Result, only_for
from ...target.draws import Draws
from ...target.length import Length
from ...target.target import Target
from ..driver import drive
from .sampler import GibbsSampler

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
        "A sweep costs from O(N D) for the horseshoe to O(N B D + N^2 B + N^3) for JCFO; "
        "the page of the method has all models."
    ),
)
WARM_UP = 0.25
"""Share of a run of `exact` that is not used, in place of `tune`: nothing is adapted, so in it the
chains only approach the posterior."""
BATCH = 100  # draws whose log density is computed at once


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `gibbs`."""

    tune: int = option(1000, "sweeps per chain, which are discarded", at_least=0)
    thin: int = option(1, "sweeps per stored draw", above=0)
    cores: int | None = option(
        None,
        "chains that run in parallel. None: all cores. The draws do not depend on it",
        above=0,
        draws_depend=False,
    )


SAMPLER_OF = {
    "fsklr": "masks",
    "sklr": "masks",
    "fs_skr": "masks",
    "jcfo": "jcfo",
    "pfcvm": "ard_linear",
    "rfvm": "ard_linear",
    "sparse_probit": "sparse_probit",
    "horseshoe": "horseshoe",
}
"""The file in this folder that has the sampler of a model, by the model's name."""

supports = only_for(tuple(SAMPLER_OF), f"made for {', '.join(SAMPLER_OF)}", covariates=True)


def make_sampler(problem: Problem) -> GibbsSampler:
    """Return the sampler of a problem that `supports` accepts; its file is imported here."""
    kernel, file = problem.kernel, SAMPLER_OF[problem.spec.name]
    if file == "ard_linear" and kernel is not None and not kernel.is_linear:
        file = "ard_kernel"  # for an eta that is not linear in the feature weights
    sampler: GibbsSampler = import_module(f".{file}", __package__).Sampler(problem)
    return sampler


def fit(target: Target, options: Options, job: Job) -> Result:
    """Sample the posterior with independent chains, each with its own random stream."""
    length = Length.of_draws(job.draws, options.thin)
    return drive(target, chains(target, options, job, length), length, job)


def chains(
    target: Target, options: Options, job: Job, length: Length, start: Arrays | None = None
) -> "Chains":
    """Return chains that can be continued.

    `start` is what `last` of earlier chains returned; None: dispersed starts.
    """
    return Chains(target.zoo_problem, options, job, length.room, start)


class Chains:
    """The chains of one fit, each in a thread of its own (a `target.chains.Chains`).

    Parameters
    ----------
    problem : Problem
    options : Options
    job : Job
    room : int
        Draws of each chain that are held at once.
    start : dict of array (chain, ...), optional
        Where they start.
    """

    def __init__(
        self, problem: Problem, options: Options, job: Job, room: int, start: Arrays | None = None
    ) -> None:
        self.problem, self.job, self.tune = problem, job, options.tune
        self.attrs: dict[str, Any] = {}
        self.draws = Draws(job, room)
        self.sampler = sampler = make_sampler(problem)
        started = time.perf_counter()
        with job.report.stage("compiling"):
            rng = np.random.default_rng(0)
            sampler.sweep(sampler.start(rng, 0), rng)
        self.seconds_compile = time.perf_counter() - started
        self.generators = job.generators()
        self.states = [
            sampler.start(rng, c)
            if start is None
            else sampler.state({name: x[c] for name, x in start.items()})
            for c, rng in enumerate(self.generators)
        ]
        self.kept, self.every = 0, 1
        self._workers = min(job.chains, options.cores or os.cpu_count() or 1)
        self._done = [0] * job.chains
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def advance(self, iterations: int, every: int, update: Update) -> None:
        """Take each chain to so many sweeps, of which every `every`-th is kept."""
        if every > self.every:
            self.kept, self.every = self.draws.thin(self.kept, every // self.every), every
        count = iterations // every - self.kept
        self._run(lambda chain: self._collect(chain, count), update)
        self.kept += count

    def read(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the posterior and the statistics of what was kept after sweep `first`."""
        return self.draws.read(first // self.every, self.kept)

    def take(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the same in arrays of their own, and hold no draw any more."""
        return self.draws.take(first // self.every, self.kept)

    def last(self) -> Arrays:
        """Return the last point of each chain, {name: (chain, ...)}."""
        return _stacked([self.sampler.point(state) for state in self.states])

    def _run(self, work: Callable[[int], None], update: Update) -> None:
        """Do a piece of work of every chain; an error or an interrupt ends them all."""
        with ThreadPoolExecutor(self._workers) as pool:
            running: Any = [pool.submit(work, chain) for chain in range(self.job.chains)]
            pending = running
            try:
                while pending:
                    finished, pending = wait(running, timeout=0.2, return_when=FIRST_EXCEPTION)
                    update(sum(self._done) / self.job.chains)
                    for chain in finished:
                        chain.result()  # a chain's error ends the fit now
            except BaseException:
                self._stop.set()
                raise

    def _collect(self, chain: int, count: int) -> None:
        """Put so many draws of a chain where they belong; `tune` sweeps come before the first."""
        self._sweep(chain, self.tune - self._done[chain])
        for at in range(0, count, BATCH):
            points, stats = [], []
            for _ in range(min(BATCH, count - at)):
                self._sweep(chain, self.every)
                state = self.states[chain]
                points.append(self.sampler.point(state))
                stats.append(self.sampler.stats(state))
            batch = _stacked(points)
            found = {"lp": self.problem.log_density(batch), **_stacked(stats)}
            self.draws.add(chain, self.kept + at, batch, found)

    def _sweep(self, chain: int, times: int) -> None:
        """Do sweeps of a chain; they are cut short once `_stop` is set."""
        for _ in range(times):
            if not self._stop.is_set():
                self.sampler.sweep(self.states[chain], self.generators[chain])
                self._done[chain] += 1


def _stacked(parts: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Return the arrays or numbers of several points or draws, one after the other."""
    return {name: np.stack([part[name] for part in parts]) for name in parts[0]}
