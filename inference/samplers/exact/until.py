"""Run Markov chains until they have converged on everything that may be quoted from them.

The chains are judged at the iterations 256, 384, 512, 768, 1024, ..., whatever the clock says, so
equal seeds give equal draws. A run ends when two consecutive judgements pass. One alone could pass
by chance, because a rule that looks often enough finds a lucky moment.

A run that has converged early goes on until there are as many draws as were asked for.

A judgement (`EXACT` in `fits/convergence.py`) passes when every quotable quantity has a
rank-normalised R-hat below 1.01, a bulk ESS of `ess` over all chains, and a tail ESS of 400, or of
`ess` if that is less (Vehtari, Gelman, Simpson, Carpenter, Burkner 2021, doi 10.1214/20-BA1221).

Why `ess` is 1000 by default: R-hat is itself an estimate. With m half-chains, of which each has n
effective draws, the ratio of variances is about 1 + (chi2_{m-1} / (m - 1) - 1) / n even when the
chains agree. Of 60 quantities and 8 half-chains, the largest R-hat is below 1.01 with a probability
of 5 % if all chains together have 400 effective draws, 67 % with 700 and 95 % with 1000. So a
limit of 1.01 asks for about 1000, and with 1000 a failure is seldom chance. A mean is then known to
0.03 posterior standard deviations, and a probability to 0.016.

At most `room` draws of a chain are held. When a run becomes longer, every second, then every
fourth iteration is kept. Neighbouring iterations are correlated, so little is lost.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ardvark.common.progress import Update

from ...fits.convergence import EXACT, Profile, lacking
from ...fits.mixing import Mixing
from ...target.backend import Arrays
from ...target.chains import Chains
from ...target.reasons import Reason

FIRST = 256
"""Iterations at the first judgement."""
PASSES = 2
"""Consecutive judgements that end a run."""

Ended = Literal["converged", "limit", "time"]


def checkpoints() -> Iterator[int]:
    """Yield the iterations at which a run is judged: 2^k and 3 * 2^k in turn, from `FIRST`."""
    for k in itertools.count():
        yield FIRST * 2**k
        yield FIRST * 2**k * 3 // 2


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of a run, and what it may cost.

    Attributes
    ----------
    ess : float
        Effective draws of every quantity, over all chains.
    limit : int
        Iterations per chain.
    seconds : float
        inf: as long as it takes. A run ends before a judgement that it would not reach in time.
    room : int
        Draws of each chain that are held at once, those of the warm-up included.
    warm_up : float
        Share of the iterations, from the start, that is not judged and not used.
    chains : int
        How many chains run.
    coarsest : int
        Iterations between two draws of the run that goes on: what it left out is not to be had.
    least : int
        Draws of each chain after the warm-up without which no judgement passes.
    """

    ess: float
    limit: int
    seconds: float
    room: int
    warm_up: float
    chains: int
    coarsest: int = 1
    least: int = 0

    @property
    def profile(self) -> Profile:
        """What a judgement asks: `EXACT`, with the effective draws that this run is to have."""
        return replace(EXACT, bulk=self.ess, tail=min(self.ess, EXACT.tail))

    def every(self, iterations: int) -> int:
        """Return the smallest power of two such that every so many-th iteration fits the room."""
        return max(self.coarsest, 2 ** math.ceil(math.log2(iterations / self.room)))


@dataclass
class Run:
    """A run as far as it got.

    Attributes
    ----------
    ended : {"converged", "limit", "time"}
        Why it is over.
    missing : list of Reason
        What the last judgement lacks; empty if the run has converged.
    posterior, sample_stats : dict of array (chain, draw, ...)
        What was kept after the warm-up.
    iterations, every : int
        Iterations of each chain after adaptation, and between two kept ones.
    trace : dict of list
        Iterations, worst R-hat, least bulk and tail ESS of every judgement.
    mixing : Mixing, optional
        The last judgement, of the draws that were kept.
    """

    ended: Ended = "limit"
    missing: list[Reason] = field(default_factory=list)
    posterior: dict[str, np.ndarray] = field(default_factory=dict)
    sample_stats: dict[str, np.ndarray] = field(default_factory=dict)
    iterations: int = 0
    every: int = 1
    trace: dict[str, list[float]] = field(default_factory=dict)
    mixing: Mixing | None = None


def until_converged(
    chains: Chains,
    judge: Callable[[Arrays], Mixing],
    asked: Asked,
    *,
    first: int = 0,
    update: Update = lambda *_, **__: None,
    keep: Callable[[Run], None] = lambda _: None,
) -> Run:
    """Take chains on from judgement to judgement, until they have converged or may not go on.

    Parameters
    ----------
    chains : Chains
        Chains under way.
    judge : callable
        posterior -> how well its chains have mixed.
    asked : Asked
        What is asked, and the limits.
    first : int
        Iterations that the chains have behind them; judgements up to there are left out.
    update : callable
        Gets the share of the run that is done, and a note.
    keep : callable
        Gets the run at each judgement that does not end it.
    """
    run = _judged(chains, judge, asked, first, update, keep)
    run.posterior, run.sample_stats = map(dict, chains.take(warm_up(asked, run.iterations)))
    return run


def warm_up(asked: Asked, iterations: int) -> int:
    """Return how many of the iterations are not used."""
    return math.ceil(asked.warm_up * iterations)


def _judged(
    chains: Chains,
    judge: Callable[[Arrays], Mixing],
    asked: Asked,
    first: int,
    update: Update,
    keep: Callable[[Run], None],
) -> Run:
    """Return a run that has ended, without its draws."""
    run, passes, note, started = Run(), 0, "", time.perf_counter()
    needed: float = FIRST
    for iterations in itertools.dropwhile(lambda n: n <= first, checkpoints()):
        spent = time.perf_counter() - started
        leg = spent * (iterations - run.iterations) / max(run.iterations - first, 1)
        if run.iterations and iterations > asked.limit:
            return run
        if run.iterations and spent + leg > asked.seconds:
            run.ended = "time"
            return run
        needed = max(needed, iterations)

        def show(done: float, needed: float = needed, note: str = note) -> None:
            update(min((first + done / asked.chains) / needed, 0.99), note)

        run.every = asked.every(iterations)
        chains.advance(iterations, run.every, show)
        run.iterations = iterations
        run.mixing = mixing = judge(chains.read(warm_up(asked, iterations))[0])
        run.missing = lacking(mixing, asked.profile)
        found = {
            "iterations": iterations,
            "rhat": mixing.rhat.value,
            "ess_bulk": mixing.ess_bulk.value,
            "ess_tail": mixing.ess_tail.value,
        }
        for name, value in found.items():
            run.trace.setdefault(name, []).append(float(value))
        passes = 0 if run.missing else passes + 1
        enough = iterations - warm_up(asked, iterations) >= asked.least * run.every
        if passes >= PASSES and enough:
            run.ended = "converged"
            return run
        if passes == 1:
            run.missing = [Reason("one pass", {"passes": PASSES})]
        keep(run)
        ess = mixing.ess_bulk.value
        needed = 1.4 * iterations * max(1.0, asked.ess / max(ess, 1.0))
        note = f"ESS {ess:.0f} of {asked.ess:.0f}, R-hat {mixing.rhat.value:.3f}"
    raise AssertionError("checkpoints never end")
