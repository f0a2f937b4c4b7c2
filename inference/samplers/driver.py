"""The driver of every Markov chain: advance, judge, stop.

A run of so many draws (`nuts`, `gibbs`) is advanced once. A run of `exact` goes on until it has
converged: its chains are judged at the iterations 256, 384, 512, 768, 1024, ..., whatever the clock
says, so equal seeds give equal draws. It ends when two consecutive judgements pass. One alone could
pass by chance, because a rule that looks often enough finds a lucky moment. A run that has
converged early goes on until there are as many draws as were asked for.

A judgement (`EXACT` in `fits/convergence.py`) passes when every quotable quantity has a
rank-normalised R-hat below 1.01, a bulk ESS of `ess` over all chains, and a tail ESS of 400, or of
`ess` if that is less (Vehtari, Gelman, Simpson, Carpenter, Burkner 2021, doi 10.1214/20-BA1221).

Why `ess` is 1000 by default: R-hat is itself an estimate. With m half-chains, of which each has n
effective draws, the ratio of variances is about 1 + (chi2_{m-1} / (m - 1) - 1) / n even when the
chains agree. Of 60 quantities and 8 half-chains, the largest R-hat is below 1.01 with a probability
of 5 % if all chains together have 400 effective draws, 67 % with 700 and 95 % with 1000. So a
limit of 1.01 asks for about 1000, and with 1000 a failure is seldom chance. A mean is then known to
0.03 posterior standard deviations, and a probability to 0.016.

At most `Length.room` draws of a chain are held. When a run becomes longer, every second, then every
fourth iteration is kept. Neighbouring iterations are correlated, so little is lost.

What a run leaves, its draws and where its chains ended, is enough to go on (`Earlier`): a run that
was killed or that reached its limit is the driver begun from there.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ardvark.common.progress import Update

from ..fits.convergence import EXACT, lacking
from ..fits.datatree import own_draws
from ..fits.mixing import Mixing, mixing
from ..target.backend import Arrays, Dims, Earlier, Job, Result
from ..target.chains import Chains
from ..target.length import FIRST, Length
from ..target.reasons import Reason, joined
from ..target.target import Target

PASSES = 2
"""Consecutive judgements that end a run."""
LAST = "last_"
"""How the names of what chains go on from begin, in the group fit."""
KEPT = "kept_iteration"
"""In the group fit, the iteration of each draw, of a run of which not all that were held stay."""

Ended = Literal["draws", "converged", "limit", "time"]
Judge = Callable[[Arrays], Mixing]
Draws = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
"""Posterior and statistics (chain, draw, ...)."""


def drive(
    target: Target,
    chains: Chains,
    length: Length,
    job: Job,
    *,
    title: str = "sampling",
    attrs: Mapping[str, Any] | None = None,
) -> Result:
    """Take chains as far as asked, and return their draws.

    Parameters
    ----------
    target : Target
        What they sample.
    chains : Chains
        New ones, or those that were begun where the job's earlier run ended.
    length : Length
        How far they go.
    job : Job
        With the earlier run, and with where a judged one is kept while it goes on.
    title : str
        What the stage is called.
    attrs : dict, optional
        What the fit of a judged run says of it beside how it went.
    """
    run = Run(chains, length, job.earlier)

    def judge(posterior: Arrays) -> Mixing:
        if target.problem is None:  # its variables are called by their coordinates
            return mixing(None, own_draws(target.model, posterior))
        return mixing(target.problem, posterior)

    def so_far(draws: Draws) -> Result:
        result = run.result(*draws)
        result.attrs |= chains.attrs | dict(attrs or {})
        result.seconds_run = time.perf_counter() - started
        return result

    def keep() -> None:
        if job.checkpoint is not None:
            draws = run.read()
            job.checkpoint(lambda: so_far(draws))

    with chains:
        started = time.perf_counter()
        with job.report.stage(title, total=1.0) as update:
            run.go(judge, update, keep)
        return so_far(run.take())


def judgements() -> Iterator[int]:
    """Yield the iterations at which a run is judged: 2^k and 3 * 2^k in turn, from `FIRST`."""
    for k in itertools.count():
        yield FIRST * 2**k
        yield FIRST * 2**k * 3 // 2


class Run:
    """One run of chains, as far as it got.

    Parameters
    ----------
    chains : Chains
        The chains.
    length : Length
        How long they become.
    earlier : Earlier, optional
        The run that they go on with, whose draws come before theirs.

    Attributes
    ----------
    iterations, every : int
        Of each chain, and how far apart its draws are; those of the earlier run count.
    ended : {"draws", "converged", "limit", "time"}
        Why it is over.
    missing : list of Reason
        What the last judgement lacks; empty if the run has converged.
    trace : dict of list of float
        Iterations, worst R-hat and least ESS of every judgement.
    """

    def __init__(self, chains: Chains, length: Length, earlier: Earlier | None = None) -> None:
        self.chains, self.length, self.earlier = chains, length, earlier
        self.began = 0 if earlier is None else earlier.iterations
        self.iterations, self.every = self.began, length.every
        self.ended: Ended = "draws"
        self.missing: list[Reason] = []
        self.trace: dict[str, list[float]] = {}

    def go(
        self,
        judge: Judge,
        update: Update = lambda *_, **__: None,
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the chains on until the run is over.

        Parameters
        ----------
        judge : callable
            posterior -> how well its chains have mixed.
        update : callable
            Gets the share of the run that is done, and a note.
        keep : callable
            Is called after each judgement that does not end the run.
        """
        if self.length.ess is None:
            self._advance(self.length.limit, self.length.limit, update)
            return
        passes, note, goal, started = 0, "", float(FIRST), time.perf_counter()
        for iterations in itertools.dropwhile(lambda n: n <= self.began, judgements()):
            if self._over(iterations, time.perf_counter() - started):
                return
            goal = max(goal, iterations)
            self._advance(iterations, goal, update, note)
            mixed = judge(self.read()[0])
            passes = passes + 1 if self._passes(mixed, self.length.ess) else 0
            if passes >= PASSES and self._has_enough():
                self.ended = "converged"
                return
            if passes == 1:
                self.missing = [Reason("one pass", {"passes": PASSES})]
            keep()
            ess = mixed.ess_bulk.value
            goal = 1.4 * iterations * max(1.0, self.length.ess / max(ess, 1.0))
            note = f"ESS {ess:.0f} of {self.length.ess:.0f}, R-hat {mixed.rhat.value:.3f}"
            note += ", to be confirmed" if passes else ""

    def read(self) -> Draws:
        """Return posterior and statistics after the warm-up; they change as the run goes on."""
        return self._all(self.chains.read)

    def take(self) -> Draws:
        """Return the same in arrays of their own, of a run that is over."""
        return self._all(self.chains.read if self.earlier else self.chains.take)

    def result(
        self, posterior: dict[str, np.ndarray], sample_stats: dict[str, np.ndarray]
    ) -> Result:
        """Return the run with these draws; those that are too many to keep are taken out."""
        at = self._stay(next(iter(posterior.values())).shape[1])
        if at is not None:
            for arrays in (posterior, sample_stats):
                for name in [*arrays]:  # one at a time, so that no second copy of all is held
                    arrays[name] = arrays[name][:, at]
        result = Result(
            posterior=posterior,
            sample_stats={n: np.ascontiguousarray(x) for n, x in sample_stats.items()},
            seconds_compile=self.chains.seconds_compile,
        )
        return result if self.length.ess is None else self._judged(result, at)

    def _advance(self, iterations: int, goal: float, update: Update, told: str = "") -> None:
        whole = self.chains.tune + goal

        def show(done: float, note: str = "") -> None:
            update(min((self.began + done) / whole, 0.99), note or told)

        self.every = self.length.apart(iterations)
        self.chains.advance(iterations - self.began, self.every, show)
        self.iterations = iterations

    def _over(self, iterations: int, spent: float) -> bool:
        """Whether the run ends before it has so many iterations; the first leg is always run."""
        done = self.iterations - self.began
        if done and iterations > self.length.limit:
            self.ended = "limit"
        elif done and spent * (1.0 + (iterations - self.iterations) / done) > self.length.seconds:
            self.ended = "time"
        return self.ended != "draws"

    def _passes(self, mixed: Mixing, ess: float) -> bool:
        """Whether a judgement passes; it is put down."""
        self.missing = lacking(mixed, replace(EXACT, bulk=ess, tail=min(ess, EXACT.tail)))
        found = {
            "iterations": self.iterations,
            "rhat": mixed.rhat.value,
            "ess_bulk": mixed.ess_bulk.value,
            "ess_tail": mixed.ess_tail.value,
        }
        for name, value in found.items():
            self.trace.setdefault(name, []).append(float(value))
        return not self.missing

    def _has_enough(self) -> bool:
        used = self.iterations - self.length.unused(self.iterations)
        return used >= self.length.least * self.every

    def _all(self, read: Callable[[int], tuple[Arrays, Arrays]]) -> Draws:
        """Return the draws of both runs, of what was kept after the warm-up."""
        first, before = self.length.unused(self.iterations), self.earlier
        found = read(max(0, first - self.began))
        if before is None:
            return dict(found[0]), dict(found[1])
        draws = next(iter(before.posterior.values())).shape[1]
        at = before.at  # their iterations
        if at is None:
            at = before.iterations - before.every * np.arange(draws)[::-1]
        # the last of every so many, counted from the end, so that distances stay the same
        kept = np.flatnonzero(at > first)[::-1][:: self.every // before.every][::-1]
        posterior, stats = (
            {name: np.concatenate([old[name][:, kept], x], axis=1) for name, x in new.items()}
            for old, new in zip((before.posterior, before.sample_stats), found, strict=True)
        )
        return posterior, stats

    def _stay(self, held: int) -> np.ndarray | None:
        """Return which draws of a run that is over stay, evenly spaced; None: all."""
        most = self.length.most
        if most is None or held <= most or self.ended == "draws":
            return None
        return (np.arange(1, most + 1) * held) // most - 1

    def _judged(self, result: Result, at: np.ndarray | None) -> Result:
        """Add to a result how the run went, and from where it can go on."""
        details = {f"judged_{name}": np.array(x) for name, x in self.trace.items()}
        along: Dims = dict.fromkeys(details, ("judgement",))
        result.dims = along | {KEPT: ("draw",)}
        result.details = details | {LAST + name: x for name, x in self.chains.last().items()}
        if at is not None:
            held = at[-1] + 1
            result.details[KEPT] = self.iterations - self.every * (held - 1 - at)
        result.judged = True
        if self.ended != "converged":
            result.status, result.reason = "not_converged", self._stopped()
        short = any(self.length.short_of_memory(int(n)) for n in self.trace["iterations"])
        result.attrs = {
            "iterations": self.iterations,
            "every": self.every,
            "ended": self.ended,
            "reproducible": int(self.ended != "time" and self.earlier is None and not short),
        }
        return result

    def _stopped(self) -> Reason:
        """Return why the run ended before it had converged, and what would help."""
        limit, after = "limit", f"{self.length.limit} iterations a chain"
        if self.ended == "time":
            limit, after = "minutes", f"{self.length.seconds / 60.0:g} minutes"
        return Reason("stopped", {"missing": joined(self.missing), "after": after, "limit": limit})
