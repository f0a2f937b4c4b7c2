"""The effects of features and samples in the draws of a fit: one walk for all who ask.

`selection.py` defines what an effect is, and when a feature or a sample is active. Its
probabilities, and the convergence of all that is quoted (`mixing.py`), come from the same walk.

If the model has primal weights (a linear kernel), the effects of features cost O((N + B) D) per
draw, and are computed for every draw. Other kernels, and the effects of samples, need the kernel
matrix of each draw. Draws are then thinned evenly until the cost is about six seconds
(`FEATURE_BUDGET`), or one second (`SAMPLE_BUDGET`), but never below `FEWEST` draws.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from ardvark.models import Problem
from ardvark.models.parts import effects
from ardvark.models.parts.effects import VISIBLE

SHARE = 0.9
LISTED = 0.1
"""P(active) above which a feature or a sample is quoted with its weight and effect."""
FEATURE_BUDGET, SAMPLE_BUDGET = 1e11, 1e10  # multiply-adds
FEWEST = 200
_CHUNK = 1e6  # numbers held at once: they fit a cache

Point = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Activity:
    """What is active in which draws: all features, or all samples.

    Attributes
    ----------
    active : array of bool (chain, looked, k)
        In the draws that were looked at.
    counts, n90 : array (chain, draw)
        How many are active, and how many carry 90 % of the squares; NaN in a draw left out.
    thin : int
        One draw in so many was looked at.
    listed : array of int (j,)
        Those that are active in more than a share `LISTED` of the draws.
    effects : array (chain, looked, j)
        The effects of these; without columns for samples.
    """

    active: np.ndarray
    counts: np.ndarray
    n90: np.ndarray
    thin: int
    listed: np.ndarray
    effects: np.ndarray


@dataclass(frozen=True)
class _Part:
    """What a walk needs: effects (S, k) of draws of a chain, and what one draw costs."""

    effect: Callable[[int, slice], np.ndarray]
    size: int
    cost: float
    budget: float
    columns: Callable[[np.ndarray], np.ndarray] | None = None
    """Effects (chain, draw, j) of some components, where they are cheap by themselves."""
    wanted: bool = True
    """Whether the effects of the listed ones are kept."""


def activity(
    problem: Problem,
    point: Point,
    threshold: float = VISIBLE,
    *,
    budget: float = 1.0,
    carry: bool = True,
) -> dict[str, Activity]:
    """Return what is active: "feature", and "sample" in a model with a basis.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted.
    point : dict of array
        ``feature_weight`` (chain, draw, D) and ``sample_weight`` (chain, draw, B), if the model has
        one.
    threshold : float
        The effect above which a feature or a sample is active.
    budget : float
        The share of the budgets that may be spent.
    carry : bool
        Whether to compute n90, which sorts the effects of each draw; NaN otherwise.
    """
    found = {}
    chains, draws = point["feature_weight"].shape[:2]
    with threadpool_limits(1, user_api="blas"):  # small products: threads would only wait
        for what, part in _parts(problem, point, threshold).items():
            thin = _thinning(chains * draws, part.cost, budget * part.budget)
            found[what] = _walk(part, (chains, draws), thin, threshold, carry)
    return found


def _parts(problem: Problem, point: Point, threshold: float) -> dict[str, _Part]:
    spec, kernel = problem.spec, problem.kernel
    X, Z = problem.X, problem.Z
    theta = spec.theta(point, problem.hypers)  # (chain, draw, D)
    varies = (X.max(axis=0) > X.min(axis=0)).astype(float)
    spread, D = varies * X.std(axis=0), theta.shape[-1]
    if kernel is None:  # no basis: the feature weights are the primal ones

        def primal(c: int, s: slice) -> np.ndarray:
            return varies * effects.primal_effects(X, theta[c, s])

        part = _Part(primal, D, 0.0, FEATURE_BUDGET, lambda k: np.abs(theta[..., k]) * spread[k])
        return {"feature": part}
    a = point["sample_weight"]

    def feature(c: int, s: slice) -> np.ndarray:
        return varies * kernel.feature_effects(X, Z, theta[c, s], a[c, s], threshold)

    def sample(c: int, s: slice) -> np.ndarray:
        return kernel.sample_effects(X, Z, theta[c, s], a[c, s])

    def columns(k: np.ndarray) -> np.ndarray:
        return np.abs(theta[..., k] * (a @ Z[:, k])) * spread[k]

    # a mask's zeros cost nothing
    terms = len(X) * float((a != 0.0).sum(-1).mean()) * float((theta != 0.0).sum(-1).mean())
    cost = kernel.feature_cost(terms)
    if "feature_weight" in spec.fixed:  # one kernel matrix serves all draws
        cost, terms = min(cost, terms), 0.0
    few = columns if kernel.is_primal else None
    return {
        "feature": _Part(feature, D, cost, FEATURE_BUDGET, few),
        "sample": _Part(sample, a.shape[-1], terms, SAMPLE_BUDGET, wanted=False),
    }


def _thinning(samples: int, cost: float, budget: float) -> int:
    """Return one draw in how many is looked at."""
    wanted = math.ceil(samples * cost / budget)
    return max(1, min(wanted, samples // FEWEST))


def _walk(
    part: _Part, shape: tuple[int, int], thin: int, threshold: float, carry: bool
) -> Activity:
    """Return what is active in the draws looked at, and counts and n90 (chain, draw) of all."""
    chains, draws = shape
    looked = range(0, draws, thin)
    active = np.empty((chains, len(looked), part.size), dtype=bool)
    counts, n90 = np.full((chains, draws), np.nan), np.full((chains, draws), np.nan)
    kept = np.empty(active.shape if part.wanted and part.columns is None else 0)
    step = max(1, int(_CHUNK / part.size))
    for c in range(chains):
        for at in range(0, len(looked), step):
            rows = looked[at : at + step]
            some = slice(rows.start, rows.stop, rows.step)
            found = part.effect(c, some)
            active[c, at : at + step] = found > threshold
            counts[c, some] = active[c, at : at + step].sum(-1)
            if carry:
                n90[c, some] = carriers(found)
            if kept.size:
                kept[c, at : at + step] = found
    listed = np.flatnonzero(active.mean(axis=(0, 1)) > LISTED)
    if part.columns is not None:
        chosen = part.columns(listed)[:, ::thin]
    else:
        chosen = kept[..., listed] if kept.size else np.empty((*active.shape[:2], 0))
    return Activity(active, counts, n90, thin, listed, chosen)


def carriers(values: np.ndarray, share: float = SHARE) -> np.ndarray:
    """Return n90 (...) of effects (..., k): how many of the largest carry 90 % of their squares."""
    squares = np.sort(np.square(values), axis=-1)[..., ::-1]
    sums = np.cumsum(squares, axis=-1)
    total = sums[..., -1:]
    below = (sums < share * total * (1.0 - 1e-12)).sum(-1)  # 9 of 10 is 90 %, whatever rounding
    return np.where(total[..., 0] > 0.0, below + 1, 0)
