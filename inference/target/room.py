"""How much memory a fit will need, known before anything is compiled.

The draws of all chains are the larger part, at 8 bytes a number, together with the log likelihood
of each row. A fit holds them once, and up to `COPIES` of them for a while: nutpie's own trace
beside the tree that is made of it, or what is computed from the draws when convergence is judged
and effects are summarised. Imported modules and compiled code, which every fit has, are left out:
they take about 0.6 GB. `lab/speed/memory.py` measures the peaks.
"""

import math
from dataclasses import dataclass

from ardvark.common import memory
from ardvark.common.validate import InputError

from .backend import Job
from .target import Target

COPIES = 2.0
"""How often the draws are held, at most."""
MATRICES = 6.0
"""Copies of the data's arrays: of the problem, its model and its transposed form."""


@dataclass(frozen=True)
class Room:
    """What a fit needs: `fixed` bytes, and `draw` bytes for each draw of all chains together."""

    fixed: float
    draw: float

    def needed(self, draws: int) -> float:
        """Return the bytes that are needed for so many draws of each chain."""
        return self.fixed + draws * self.draw

    def draws(self, size: float) -> int:
        """Return for how many draws of each chain so many bytes are enough."""
        return max(0, math.floor((size - self.fixed) / self.draw))


def room(target: Target, job: Job) -> Room:
    """Return what a fit of a target needs, with the variables and chains of a job."""
    numbers = sum(size for name, size in target.sizes.items() if job.keeps(name))
    fixed, problem = 0.0, target.problem
    if problem is not None:
        numbers += len(problem.y)
        fixed = 8.0 * MATRICES * (len(problem.y) + len(problem.basis)) * problem.D
    copies = COPIES if job.earlier is None else COPIES + 1.0  # those of the earlier run
    return Room(fixed, 8.0 * copies * job.chains * max(numbers, 1))


def refuse_too_large(target: Target, job: Job, draws: int) -> None:
    """Raise an error if so many draws of each chain need more memory than a fit may take.

    Raises
    ------
    InputError
        With both sizes, and what would need less.
    """
    needed, allowed = room(target, job).needed(draws), memory.allowed()
    if needed > allowed:
        each = f"{draws} draws of each of {job.chains} chains"
        shared = 'keep="shared", ' if job.keep == "all" and target.problem is not None else ""
        raise InputError(
            f"{each} need about {memory.text(needed)} of memory, and {memory.text(allowed)} may be "
            f"taken ({memory.SHARE:.0%} of what is free, or the part of one of several processes). "
            f"Ask for less: {shared}fewer draws or fewer chains."
        )
