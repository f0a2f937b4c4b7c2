"""What statistical tests share: seeds that can be moved, and limits that state their false alarms.

Draws are chaotic: another processor, or code just compiled instead of cached, draws other numbers
from the same seed. So each statistical assertion must hold under any seed. `make reseed` runs the
tests marked `statistical` with another `ARDVARK_RESEED`, which every generator and every
`random_seed` of the tests goes through here to follow.

A statistical assertion fails by chance with probability at most `ALARM`: about 300 of them then
fail less than once in 1000 runs. A negative control states with which probability it sees its
defect (at least 1 - `ALARM` unless it says otherwise).
"""

import os

import numpy as np
from scipy import stats

OFFSET = int(os.environ.get("ARDVARK_RESEED", "0"))
ALARM = 3e-6


def seed(number: int = 0) -> int:
    """Return the seed that stands for `number` in this run."""
    return number + 1_000_003 * OFFSET


def rng(number: int = 0) -> np.random.Generator:
    """Return a generator of this run's seed `number`."""
    return np.random.default_rng(seed(number))


def z_limit(comparisons: int = 1, alarm: float = ALARM) -> float:
    """Return the |z| that the largest of so many normal z-scores passes with probability `alarm`.

    Two-sided and Bonferroni-corrected, so valid whatever the dependence among them.
    """
    return float(stats.norm.isf(alarm / (2 * comparisons)))


def t_limit(df: float, comparisons: int = 1, alarm: float = ALARM) -> float:
    """Return the same limit for a standard error estimated with `df` degrees of freedom."""
    return float(stats.t.isf(alarm / (2 * comparisons), df))
