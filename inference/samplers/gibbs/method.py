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

import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ardvark.common.declared import Settings, option
from ardvark.models import Problem

from ...target.backend import About, Arrays, Job, Kind, Result, only_for
from ...target.chains import Length
from ...target.target import Target
from ...target.threads import ThreadedChains
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
"""Share of a run of `exact` that is not used: nothing is adapted, so in it the chains only approach
the posterior."""


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `gibbs`."""

    tune: int = option(1000, "sweeps per chain, which are discarded", above=0)
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
    length = Length(limit=options.tune + job.draws * options.thin, room=job.draws)
    with chains(target, options, job, length) as running:
        started = time.perf_counter()
        total = job.chains * (options.tune + job.draws * options.thin)
        with job.report.stage("sampling", total=total) as update:
            running.discard(options.tune, update)
            running.advance(job.draws * options.thin, options.thin, update)
        return running.result(started)


def chains(
    target: Target, options: Options, job: Job, length: Length, start: Arrays | None = None
) -> "Chains":
    """Return chains that can be continued, of which no sweep has been discarded.

    `start` is what `last` of earlier chains returned; None: dispersed starts.
    """
    return Chains(target.zoo_problem, options, job, length.room, start)


class Chains(ThreadedChains):
    """The chains of one fit, one thread each."""

    def __init__(
        self, problem: Problem, options: Options, job: Job, room: int, start: Arrays | None = None
    ) -> None:
        super().__init__(job, room, options.cores)
        self.problem = problem
        self.sampler = sampler = make_sampler(problem)
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

    def transition(self, chain: int) -> None:
        """Do one sweep."""
        self.sampler.sweep(self.states[chain], self.generators[chain])

    def state(self, chain: int) -> tuple[Arrays, Mapping[str, float]]:
        """Return the point and the statistics of a chain."""
        state = self.states[chain]
        return self.sampler.point(state), self.sampler.stats(state)

    def variables(self, states: list[Any]) -> tuple[Arrays, Arrays]:
        """Return the points and statistics of S states, with the log density."""
        points, stats = zip(*states, strict=True)
        batch = {k: np.stack([p[k] for p in points]) for k in points[0]}
        found = {k: np.array([s[k] for s in stats]) for k in stats[0]}
        return batch, {"lp": self.problem.log_density(batch), **found}

    def last(self) -> Arrays:
        """Return the last point of each chain, {name: (chain, ...)}."""
        points = [self.sampler.point(state) for state in self.states]
        return {name: np.stack([p[name] for p in points]) for name in points[0]}
