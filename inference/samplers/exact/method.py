"""The exact posterior, whoever samples it: the best sampler for the model, until it has converged.

`rule.py` says which sampler and why, `until.py` when the run ends. The draws are those of `nuts` or
`gibbs`, so the only error is Monte Carlo error. The fit says which sampler it took
(``attrs["sampler"]``), why (``attrs["sampler_reason"]``), and how the run went (group fit: worst
R-hat and least ESS at each judgement).

`draws` of each chain are kept, evenly spaced over a longer run: as many as other methods draw.
There are more if 4 `ess` over all chains are more. There are fewer of a run that reached a limit,
and of one that was asked for a smaller `ess` and had it earlier. Equal seeds give equal draws. With
`minutes` a run may be ended by the clock, and where memory is short fewer draws are kept
(`target/room.py`), which is said beforehand. Then another machine may give other draws: such a
fit says so (``attrs["reproducible"]``), and a study does not reuse it.

A run that reached a limit is "not_converged", and its reason says what is missing. `resume` takes
it on from there: `gibbs` from its last states, `nuts` from its last points with new
adaptation.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ardvark.common import memory
from ardvark.common.declared import Settings, option
from ardvark.common.validate import InputError, logger

from ...fits.convergence import EXACT
from ...fits.datatree import own_draws
from ...fits.mixing import Mixing, mixing
from ...target.backend import About, Arrays, Dims, Job, Kind, Result
from ...target.chains import Chains, Continuing, Length, Resumed
from ...target.reasons import Reason, joined
from ...target.room import room
from ...target.sampling import Sampling
from ...target.target import Target
from .measured import nearest
from .rule import SAMPLERS, Pick, pick, refusal
from .until import FIRST, Asked, Run, until_converged, warm_up

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
"""Options of `choose`'s refits, which only predict a fold; `panel` takes the first. A probability
needs fewer effective draws than what may be quoted: 400 give it a Monte Carlo error of a twentieth
of its posterior standard deviation."""
KEPT = "kept_iteration"
"""In the group fit, the iteration of each draw, of a run of which not all that were held stay."""
LONG = 60.0
"""Seconds above which a run says beforehand how long it may take."""
LARGEST = 4e8
"""Numbers of draws that are held at once on any machine: 3.2 GB."""
_THINNED = (
    "exact: at most %d draws of each chain are held at once, for %d would need about %s of memory, "
    "and %s may be taken. Longer runs are thinned more, and %s."
)


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `exact`."""

    ess: float = option(
        EXACT.bulk,
        "effective draws, over all chains, asked of everything that may be quoted. R-hat is below "
        "1.01 by more than chance from about 1000 on",
        at_least=100.0,
    )
    limit: int = option(16384, "iterations per chain after which a run ends anyway", at_least=256)
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


def most_kept(sampling: Sampling, ess: float = EXACT.bulk) -> int:
    """Return how many draws of each chain are kept, where so many are asked for."""
    return max(sampling.draws, _of_ess(sampling, ess))


def _of_ess(sampling: Sampling, ess: float) -> int:
    """Return of how many draws of each chain one in four is to be effective."""
    return math.ceil(4.0 * ess / sampling.chains)


def held(options: Options, job: Job) -> int:
    """Return the draws of each chain that are held at least: those of the first judgement."""
    return FIRST


def fit(target: Target, options: Options, job: Job) -> Result:
    """Sample the posterior by the chosen sampler, until it has converged or reached a limit."""
    picked = _chosen(target, options)
    method = picked.sampler
    asked, everywhere, length = _asked(target, options, job, method)
    settings = method.Options(cores=options.cores)

    def judge(posterior: Arrays) -> Mixing:
        if target.problem is None:  # its variables are called by their coordinates
            return mixing(None, own_draws(target.model, posterior))
        return mixing(target.problem, posterior)

    with _chains(target, settings, job, length, method) as chains:
        started = time.perf_counter()

        def so_far(run: Run, details: Arrays) -> Result:
            judged: Dims = {f"judged_{name}": ("judgement",) for name in run.trace}
            return Result(
                posterior=run.posterior,
                sample_stats={n: np.ascontiguousarray(x) for n, x in run.sample_stats.items()},
                details={f"judged_{name}": np.array(x) for name, x in run.trace.items()}
                | {f"last_{name}": x for name, x in chains.last().items()}
                | dict(details),
                dims=judged | {KEPT: ("draw",)},
                status="finished" if run.ended == "converged" else "not_converged",
                reason="" if run.ended == "converged" else _stopped(run, options),
                mixing=None if run.mixing is None else run.mixing.to_dataset(),
                seconds_compile=chains.seconds_compile,
                seconds_run=time.perf_counter() - started,
                attrs={
                    "sampler": picked.name,
                    "sampler_reason": picked.reason,
                    "iterations": run.iterations,
                    "every": run.every,
                    "ended": run.ended,
                    "reproducible": int(
                        run.ended != "time"
                        and job.earlier is None
                        and not _forced(run, asked, everywhere)
                    ),
                    **chains.attrs,
                },
            )

        def keep(run: Run) -> None:
            if job.checkpoint is not None:
                draws = chains.read(warm_up(asked, run.iterations))
                now = replace(run, posterior=dict(draws[0]), sample_stats=dict(draws[1]))
                job.checkpoint(lambda: so_far(now, {}))

        with job.report.stage(_title(target, picked), total=1.0) as update:
            first = 0 if job.earlier is None else job.earlier.iterations
            run = until_converged(chains, judge, asked, first=first, update=update, keep=keep)
        at = _thinned(run, most_kept(job, options.ess), judge)
        return so_far(run, {} if at is None else {KEPT: at})


def _thinned(run: Run, most: int, judge: Callable[[Arrays], Mixing]) -> np.ndarray | None:
    """Keep so many draws of a run at most, evenly spaced; return their iterations if some went."""
    held = next(iter(run.posterior.values())).shape[1]
    if held <= most:
        return None
    kept = (np.arange(1, most + 1) * held) // most - 1
    for arrays in (run.posterior, run.sample_stats):
        for name in [*arrays]:  # one at a time, so that no second copy of all is held
            arrays[name] = arrays[name][:, kept]
    run.mixing = judge(run.posterior)
    return np.asarray(run.iterations - run.every * (held - 1 - kept))


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


def _asked(
    target: Target, options: Options, job: Job, method: Continuing
) -> tuple[Asked, Asked, Length]:
    """Return what is asked of the run, the same on a machine of any size, and the chains' length.

    The first holds fewer draws where memory is short.
    """
    enough = math.ceil(most_kept(job, options.ess) / (1.0 - method.WARM_UP))
    wanted = 2 * enough  # at least half of the room is filled, whatever the length
    numbers = sum(size for name, size in target.sizes.items() if job.keeps(name))
    most = min(wanted, max(FIRST, int(LARGEST / job.chains / numbers)))
    needs, allowed = room(target, job), memory.allowed()
    fits = min(most, max(FIRST, needs.draws(allowed)))
    if fits < enough:
        here = "equal seeds give other draws where memory is larger"
        told = here if fits < most else "on every machine alike"
        sizes = memory.text(needs.needed(enough)), memory.text(allowed)
        logger.warning(_THINNED, fits, enough, *sizes, told)
    everywhere = Asked(
        ess=options.ess,
        limit=options.limit,
        seconds=math.inf if options.minutes is None else 60.0 * options.minutes,
        room=most,
        warm_up=method.WARM_UP,
        chains=job.chains,
        coarsest=1 if job.earlier is None else job.earlier.every,
        least=min(job.draws, _of_ess(job, options.ess), fits if fits < enough else enough),
    )
    length = Length(limit=options.limit, room=fits)
    return replace(everywhere, room=fits), everywhere, length


def _chains(
    target: Target, settings: Settings, job: Job, length: Length, method: Continuing
) -> Chains:
    """Return chains from dispersed starts, or those that go on with an earlier run."""
    before = job.earlier
    if before is None:
        start = None
        if target.problem is None and method.NAME == "nuts":
            from ..gradient.starts import scouted

            start = scouted(method, target, job)
        return method.chains(target, settings, job, length, start)
    seeds = np.random.SeedSequence([job.seed, before.iterations])
    other = replace(job, seed=int(seeds.generate_state(1)[0]))
    return Resumed(method.chains(target, settings, other, length, before.last), before)


def _forced(run: Run, asked: Asked, everywhere: Asked) -> bool:
    """Whether a judgement saw fewer draws than it would have on a machine with more memory."""
    judged = [int(n) for n in run.trace["iterations"]]
    return any(asked.every(n) > everywhere.every(n) for n in judged)


def _stopped(run: Run, options: Options) -> Reason:
    """Return why a run ended before it had converged, and what would help."""
    limit, after = "limit", f"{options.limit} iterations a chain"
    if run.ended == "time":
        limit, after = "minutes", f"{options.minutes:g} minutes"
    return Reason("stopped", {"missing": joined(run.missing), "after": after, "limit": limit})
