"""The exact posterior, whoever samples it: the best sampler for the model, until it has converged.

`rule.py` says which sampler and why, `driver.py` when the run ends. The draws are those of `nuts`
or `gibbs`, so the only error is Monte Carlo error. The fit says which sampler it took
(``attrs["sampler"]``), why (``attrs["sampler_reason"]``), and how the run went (group fit: worst
R-hat and least ESS at each judgement).

`draws` of each chain are kept, evenly spaced over a longer run: as many as other methods draw.
There are more if 4 `ess` over all chains are more. There are fewer of a run that reached a limit,
and of one that was asked for a smaller `ess` and had it earlier. Equal seeds give equal draws. With
`minutes` a run may be ended by the clock, and where memory is short fewer draws are kept
(`target/length.py`), which is said beforehand. Then another machine may give other draws: such a
fit says so (``attrs["reproducible"]``), and a study does not reuse it.

A run that reached a limit is "not_converged", and its reason says what is missing. `resume` takes
it on from there: `gibbs` from its last states, `nuts` from its last points with new
adaptation.
"""

import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ardvark.common.declared import Settings, option
from ardvark.common.validate import InputError

from ...fits.convergence import EXACT
from ...target.backend import About, Job, Kind, Result
from ...target.chains import Chains
from ...target.length import FIRST, Length, until_converged
from ...target.target import Target
from ..driver import drive
from .measured import nearest
from .rule import SAMPLERS, Pick, pick, refusal

NAME = "exact"
KIND: Kind = "mcmc"
ABOUT = About(
    approximates=(
        "Nothing: it runs the exact sampler that mixes best for the model, until everything that "
        "may be quoted has converged."
    ),
    exact="Up to Monte Carlo error, which it brings below a stated size; else it says what lacks.",
    cost="That of the sampler (nuts or gibbs), for as many iterations as convergence takes.",
)
IN_A_FOLD = {"ess": 400.0, "limit": 2048}
"""Options of refits by `choose`, which only predict a fold; `panel` takes the first. A probability
needs fewer effective draws than what may be quoted: 400 give it a Monte Carlo error of a twentieth
of its posterior standard deviation."""
LONG = 60.0
"""Seconds above which a run says beforehand how long it may take."""


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `exact`."""

    ess: float = option(
        EXACT.bulk,
        "effective draws, over all chains, asked of everything that may be quoted. R-hat is below "
        "1.01 by more than chance from about 1000 on",
        at_least=100.0,
    )
    limit: int = option(32768, "iterations per chain after which a run ends anyway", at_least=256)
    minutes: float | None = option(
        None, "time after which a run ends anyway; None: no limit of time", above=0.0
    )
    sampler: Literal["auto", "nuts", "gibbs"] = option(
        "auto", "which sampler; auto: the one that was measured to be best"
    )
    cores: int | None = option(
        None,
        "chains that run in parallel. None: all cores. The draws do not depend on it",
        above=0,
        draws_depend=False,
    )


supports = refusal


def held(options: Options, job: Job) -> int:
    """Return the draws of each chain that are held at least: those of the first judgement."""
    return FIRST


def fit(target: Target, options: Options, job: Job) -> Result:
    """Sample the posterior by the chosen sampler, until it has converged or reached a limit."""
    picked = _chosen(target, options)
    length = until_converged(
        target,
        job,
        ess=options.ess,
        limit=options.limit,
        minutes=options.minutes,
        warm_up=picked.sampler.WARM_UP,
    )
    return drive(
        target,
        _chains(target, options, job, length, picked),
        length,
        job,
        title=_title(target, picked),
        attrs={"sampler": picked.name, "sampler_reason": picked.reason},
    )


def _chosen(target: Target, options: Options) -> Pick:
    if options.sampler == "auto":
        return pick(target)
    why_not = SAMPLERS[options.sampler].supports(target)
    if why_not:
        raise InputError(f"sampler={options.sampler!r} does not apply: {why_not}.")
    return Pick(options.sampler, "it was asked for")


def _title(target: Target, picked: Pick) -> str:
    """Return what the run is, and how long it may take where that was more than a minute."""
    row = None if target.problem is None else nearest(target.problem, picked.name)
    title = f"sampling by {picked.name}"
    return title if row is None or row.seconds <= LONG else f"{title} ({row.text()})"


def _chains(target: Target, options: Options, job: Job, length: Length, picked: Pick) -> Chains:
    """Return chains from dispersed starts, or those that go on with an earlier run."""
    sampler, before, start, started = picked.sampler, job.earlier, None, time.perf_counter()
    given = {"tune": 0} if sampler.WARM_UP else {}  # a share of the run takes its place
    settings = sampler.Options(cores=options.cores, **given)
    if before is not None:
        start = before.last
        seeds = np.random.SeedSequence([job.seed, before.iterations])
        job = replace(job, seed=int(seeds.generate_state(1)[0]))
    elif target.problem is None and picked.name == "nuts":
        from ..gradient.starts import scouted

        start = scouted(sampler, target, job)
    chains = sampler.chains(target, settings, job, length, start)
    chains.seconds_compile = time.perf_counter() - started  # it was compiled for the scouts
    return chains
