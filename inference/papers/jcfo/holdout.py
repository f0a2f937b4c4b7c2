"""Which rows JCFO's gammas are chosen on, and how far their grid goes: section 4 of the paper.

Krishnapuram, Carin, Hartemink (2004) choose both gammas on held-out rows of the training data, and
do not print the values tried.
"""

from collections.abc import Callable

import numpy as np

from ...target.backend import FitFailed

HELD_OUT = 0.1  # share of each class
FURTHER = 12  # most candidates that `go_on` adds at an end
Gammas = tuple[float, float]


def holdout_rows(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a mask (N,) of held-out rows: `HELD_OUT` of each class, but never all of it."""
    held = np.zeros(len(y), dtype=bool)
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        count = min(max(1, round(HELD_OUT * len(rows))), len(rows) - 1)
        held[rng.permutation(rows)[:count]] = True
    if not held.any():
        raise FitFailed('select="holdout" needs 2 samples of a class, so that one can be held out')
    return held


def go_on(
    tried: list[Gammas],
    scores: list[float],
    score_of: Callable[[Gammas], float],
    powers: tuple[float, float],
) -> None:
    """Add gammas at both ends, by factors of 10 to `powers`, as long as the best is at the end."""
    for end, factor in ((-1, 0.1), (0, 10.0)):
        for _ in range(FURTHER):
            others = scores[:-1] if end else scores[1:]
            if others and scores[end] <= max(others):
                break
            first, second = (g * factor**p for g, p in zip(tried[end], powers, strict=True))
            place = len(tried) if end else 0
            tried.insert(place, (first, second))
            scores.insert(place, score_of((first, second)))
