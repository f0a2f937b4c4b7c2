"""How long a run is: what is asked of it, and what it may cost in iterations, time and memory.

A Markov chain has one of two settings. Either it makes so many draws, or it goes on until
everything that may be quoted has converged (`exact`). One `Length` says which, and `driver.py`
reads it.

How much memory a fit needs is known before anything is compiled. The draws of all chains are the
larger part, at 8 bytes a number, together with the log likelihood of each row. A fit holds them
once, and up to `COPIES` of them for a while: nutpie's own trace beside the tree that is made of it,
or what is computed from the draws when convergence is judged and effects are summarised. Imported
modules and compiled code, which every fit has, are left out: they take about 0.6 GB.
`lab/speed/memory.py` measures the peaks.
"""

import math
from dataclasses import dataclass

from ardvark.common import memory
from ardvark.common.validate import InputError, logger

from .backend import Job
from .sampling import Sampling
from .target import Target

COPIES = 2.0
"""How often the draws are held, at most."""
MATRICES = 6.0
"""Copies of the data's arrays: of the problem, its model and its transposed form."""
LARGEST = 4e8
"""Numbers of draws that are held at once on any machine: 3.2 GB."""
FIRST = 256
"""Iterations at the first judgement, whose draws are always held."""
_THINNED = (
    "exact: at most %d draws of each chain are held at once, for %d would need about %s of memory, "
    "and %s may be taken. Longer runs are thinned more, and %s."
)


@dataclass(frozen=True, kw_only=True)
class Length:
    """How long the chains of one run become.

    Attributes
    ----------
    limit : int
        Iterations per chain, at most.
    room : int
        Draws of each chain that are held at once, those of the warm-up included.
    ess : float, optional
        Effective draws, over all chains, asked of everything that may be quoted. None: the run has
        `limit` iterations, and is not judged.
    every : int
        Iterations between two draws, at least. Of a run that goes on, those of the earlier one:
        what it left out is not to be had.
    warm_up : float
        Share of the iterations, from the start, that is not judged and not used.
    seconds : float
        A judged run ends before a judgement that it would not reach in time.
    least : int
        Draws of each chain after the warm-up without which no judgement passes.
    most : int, optional
        Draws of each chain that are kept in the end, evenly spaced; None: all.
    plenty : int, optional
        What `room` would be on a machine with more memory, if that is more.
    """

    limit: int
    room: int
    ess: float | None = None
    every: int = 1
    warm_up: float = 0.0
    seconds: float = math.inf
    least: int = 0
    most: int | None = None
    plenty: int | None = None

    @classmethod
    def of_draws(cls, draws: int, every: int = 1) -> "Length":
        """Return the length of a run of so many draws, `every` iterations apart."""
        return cls(limit=draws * every, room=draws, every=every)

    def apart(self, iterations: int, room: int | None = None) -> int:
        """Return how far apart the draws are that are held after so many iterations.

        It is the smallest power of two by which they fit the room.
        """
        if self.ess is None:
            return self.every
        return max(self.every, 2 ** math.ceil(math.log2(iterations / (room or self.room))))

    def unused(self, iterations: int) -> int:
        """Return how many of the iterations are warm-up."""
        return math.ceil(self.warm_up * iterations)

    def short_of_memory(self, iterations: int) -> bool:
        """Whether a judgement sees fewer draws than it would on a machine with more memory."""
        return self.apart(iterations) > self.apart(iterations, self.plenty)


def until_converged(
    target: Target, job: Job, *, ess: float, limit: int, minutes: float | None, warm_up: float
) -> Length:
    """Return the length of a run of `exact`; where memory is short it says so, and holds less.

    Parameters
    ----------
    target : Target
    job : Job
    ess : float
        Effective draws asked of everything that may be quoted, over all chains.
    limit : int
        Iterations per chain.
    minutes : float or None
        None: as long as it takes.
    warm_up : float
        Share of the iterations that is not used.
    """
    most = most_kept(job, ess)
    enough = math.ceil(most / (1.0 - warm_up))
    numbers = sum(size for name, size in target.sizes.items() if job.keeps(name))
    # twice as many as are enough, because at least half of the room is filled, whatever the length
    plenty = min(2 * enough, max(FIRST, int(LARGEST / job.chains / numbers)))
    allowed = memory.allowed()
    room = min(plenty, max(FIRST, affordable(target, job, allowed)))
    if room < enough:
        here = "equal seeds give other draws where memory is larger"
        told = here if room < plenty else "on every machine alike"
        sizes = memory.text(needed(target, job, enough)), memory.text(allowed)
        logger.warning(_THINNED, room, enough, *sizes, told)
    return Length(
        limit=limit,
        room=room,
        ess=ess,
        every=1 if job.earlier is None else job.earlier.every,
        warm_up=warm_up,
        seconds=math.inf if minutes is None else 60.0 * minutes,
        least=min(job.draws, _of_ess(job, ess), room if room < enough else enough),
        most=most,
        plenty=plenty,
    )


def most_kept(sampling: Sampling, ess: float) -> int:
    """Return how many draws of each chain `exact` keeps, where so many are asked for."""
    return max(sampling.draws, _of_ess(sampling, ess))


def _of_ess(sampling: Sampling, ess: float) -> int:
    """Return of how many draws of each chain one in four is to be effective."""
    return math.ceil(4.0 * ess / sampling.chains)


# --- memory ---------------------------------------------------------------------------------------


def needed(target: Target, job: Job, draws: int) -> float:
    """Return the bytes that a fit needs for so many draws of each of the job's chains."""
    fixed, each = _bytes(target, job)
    return fixed + draws * each


def affordable(target: Target, job: Job, size: float) -> int:
    """Return for how many draws of each chain so many bytes are enough."""
    fixed, each = _bytes(target, job)
    return max(0, math.floor((size - fixed) / each))


def _bytes(target: Target, job: Job) -> tuple[float, float]:
    """Return the bytes that a fit takes anyway, and those of a draw of all chains together."""
    numbers = sum(size for name, size in target.sizes.items() if job.keeps(name))
    fixed, problem = 0.0, target.problem
    if problem is not None:
        numbers += len(problem.y)
        fixed = 8.0 * MATRICES * (len(problem.y) + len(problem.basis)) * problem.D
    copies = COPIES if job.earlier is None else COPIES + 1.0  # those of the earlier run
    return fixed, 8.0 * copies * job.chains * max(numbers, 1)


def refuse_too_large(target: Target, job: Job, draws: int) -> None:
    """Raise an error if so many draws of each chain need more memory than a fit may take.

    Raises
    ------
    InputError
        With both sizes, and what would need less.
    """
    size, allowed = needed(target, job, draws), memory.allowed()
    if size > allowed:
        each = f"{draws} draws of each of {job.chains} chains"
        shared = 'keep="shared", ' if job.keep == "all" and target.problem is not None else ""
        raise InputError(
            f"{each} need about {memory.text(size)} of memory, and {memory.text(allowed)} may be "
            f"taken ({memory.SHARE:.0%} of what is free, or the part of one of several processes). "
            f"Ask for less: {shared}fewer draws or fewer chains."
        )
