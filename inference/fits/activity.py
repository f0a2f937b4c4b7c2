"""The effects of features and samples in the draws of a fit: one walk for all who ask.

`selection.py` defines what an effect is, when a feature or a sample is active, and the direction of
its effect. Its probabilities, and the convergence of all that is quoted (`mixing.py`), come from
the same walk.

If the model has primal weights (a linear kernel), the effects of features cost O((N + B) D) per
draw, and are computed for every draw. Other kernels, and the effects of samples, need the kernel
matrix of each draw. Draws are then thinned evenly until the cost is about six seconds
(`FEATURE_BUDGET`), or one second (`SAMPLE_BUDGET`), but never below `FEWEST` draws.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ardvark.models import Problem
from ardvark.models.parts.effects import VISIBLE

SHARE = 0.9
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Of the signed effects: their median, and the ends of their 90 % and 50 % intervals."""
SIZES = (VISIBLE, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
"""Sizes t of an effect for which P(|effect| > t) is stored: the curve over t."""
THRESHOLD = 0.5
"""The size t of which P(|effect| > t) is reported, per standard deviation of the feature: an odds
ratio of 1.65. At `VISIBLE`, where the priors say how many effects they expect, it would mostly
repeat the prior."""
LISTED = 0.1
"""P(|effect| > `VISIBLE`) above which a feature or sample is quoted with its weight and effect."""
FEATURE_BUDGET, SAMPLE_BUDGET = 1e11, 1e10  # multiply-adds
FEWEST = 200
_CHUNK = 1e6  # numbers held at once: they fit a cache

Point = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Signed:
    """The signed effects of all features, or all samples, over the draws.

    Attributes
    ----------
    mean, sd : array (k,)
    direction : array (k,)
        The probability of the more probable sign; NaN where the effect is 0 in every draw.
    quantiles : array (5, k)
        At `QUANTILES`.
    """

    mean: np.ndarray
    sd: np.ndarray
    direction: np.ndarray
    quantiles: np.ndarray

    @classmethod
    def of(cls, parts: Iterable[np.ndarray]) -> "Signed":
        """Return the summary of effects that come as parts (S, j)."""
        found = []
        for part in parts:
            rows = np.ascontiguousarray(part.T, dtype=float)  # (j, S): quantiles along memory
            sign = np.maximum((rows > 0.0).mean(1), (rows < 0.0).mean(1))
            sign[sign == 0.0] = np.nan  # what has no effect has no sign
            found.append((rows.mean(1), rows.std(1), sign, np.quantile(rows, QUANTILES, axis=1)))
        mean, sd, direction, quantiles = zip(*found, strict=True)
        return cls(
            np.concatenate(mean),
            np.concatenate(sd),
            np.concatenate(direction),
            np.concatenate(quantiles, axis=1),
        )


@dataclass(frozen=True, eq=False)
class Activity:
    """What is active in which draws: all features, or all samples.

    Attributes
    ----------
    threshold : float
        The effect above which something is active.
    active : array of bool (chain, looked, k)
        In the draws that were looked at.
    counts, n90, share : array (chain, draw)
        How many are active, how many carry 90 % of the squares, and the share of the squares that
        the active ones carry; NaN in a draw left out, and the share also where all effects are 0.
    size : array (k,)
        The mean effect.
    curve : array (sizes, k)
        The share of draws in which the effect is above each of `SIZES`.
    signed : Signed or None
        The effects with their signs; None where the draws lack what the sign comes from.
    thin : int
        One draw in so many was looked at.
    listed : array of int (j,)
        Those whose effect is above `VISIBLE` in more than a share `LISTED` of the draws.
    effects : array (chain, looked, j)
        The effects of these; without columns for samples.
    """

    threshold: float
    active: np.ndarray
    counts: np.ndarray
    n90: np.ndarray
    share: np.ndarray
    size: np.ndarray
    curve: np.ndarray
    signed: Signed | None
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
    columns: Callable[[Any], np.ndarray] | None = None
    """Signed effects (chain, draw, j) of some components, where they are cheap by themselves."""
    signed: Callable[[int, slice, np.ndarray], np.ndarray] | None = None
    """The signed effects (S, k) of draws of a chain, from their effects."""
    wanted: bool = True
    """Whether the effects of the listed ones are kept."""


def activity(
    problem: Problem,
    point: Point,
    threshold: float = THRESHOLD,
    *,
    budget: float = 1.0,
    details: bool = True,
    rows: np.ndarray | None = None,
) -> dict[str, Activity]:
    """Return what is active: "feature", and "sample" in a model with a basis.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted.
    point : dict of array
        ``feature_weight`` (chain, draw, D) and ``sample_weight`` (chain, draw, B), if the model has
        one (`needed`).
    threshold : float
        The effect on eta above which a feature or a sample is active.
    budget : float
        The share of the budgets that may be spent.
    details : bool
        Whether to compute n90, which sorts the effects of each draw, and the signed effects;
        otherwise NaN and None.
    rows : array of int, optional
        The training rows over which standard deviations are taken; by default all.
    """
    found = {}
    chains, draws = point["feature_weight"].shape[:2]
    X = problem.X if rows is None else problem.X[rows]
    with threadpool_limits(1, user_api="blas"):  # small products: threads would only wait
        for what, part in _parts(problem, X, point).items():
            thin = _thinning(chains * draws, part.cost, budget * part.budget)
            found[what] = _walk(part, (chains, draws), thin, threshold, details)
    return found


def needed(problem: Problem) -> tuple[str, ...]:
    """Return the variables that effects and their signs are computed from."""
    own = () if problem.spec.has_basis else problem.spec.needed
    return (*(n for n in ("feature_weight", "sample_weight") if n in problem.spec.shared), *own)


def primal_weights(problem: Problem, point: Point, which: Any = slice(None)) -> np.ndarray | None:
    """Return the features' own weights in eta (..., j), with their signs, where they have any.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted.
    point : dict of array
        Variables (..., k) by name.
    which : slice or array of int
        Which features.

    Returns
    -------
    array or None
        None under a kernel that is not linear, or if a variable is missing.
    """
    kernel, D = problem.kernel, problem.D
    if kernel is None:
        own = [n for n in problem.spec.needed if n in point and point[n].shape[-1:] == (D,)]
        return point[own[0]][..., which] if own else None
    if not kernel.is_primal or not {"feature_weight", "sample_weight"} <= set(point):
        return None
    theta = problem.spec.theta(point, problem.hypers)[..., which]
    return theta * (point["sample_weight"] @ problem.Z[:, which])


def _parts(problem: Problem, X: np.ndarray, point: Point) -> dict[str, _Part]:
    spec, kernel, Z = problem.spec, problem.kernel, problem.Z
    varies = problem.X.max(axis=0) > problem.X.min(axis=0)
    spread = varies * problem.X.std(axis=0)  # of the standardised features: 1, or 0 if constant
    if kernel is None or kernel.is_primal:
        parts = {"feature": _primal_part(problem, point, spread)}
    if kernel is None:
        return parts
    theta, a = spec.theta(point, problem.hypers), point["sample_weight"]
    # a mask's zeros cost nothing
    terms = len(X) * float((a != 0.0).sum(-1).mean()) * float((theta != 0.0).sum(-1).mean())
    cost = kernel.feature_cost(terms)
    if "feature_weight" in spec.fixed:  # one kernel matrix serves all draws
        cost, terms = min(cost, terms), 0.0

    def feature(c: int, s: slice) -> np.ndarray:
        return varies * kernel.feature_effects(X, Z, theta[c, s], a[c, s], VISIBLE)

    def slope(c: int, s: slice, _: np.ndarray) -> np.ndarray:
        return spread * kernel.partial_effects(X, Z, theta[c, s], a[c, s])

    def sample(c: int, s: slice) -> np.ndarray:
        return kernel.sample_effects(X, Z, theta[c, s], a[c, s])

    def sign(c: int, s: slice, effect: np.ndarray) -> np.ndarray:
        return np.sign(a[c, s]) * effect

    if not kernel.is_primal:
        D = theta.shape[-1]
        parts = {"feature": _Part(feature, D, cost, FEATURE_BUDGET, signed=slope)}
    own = _Part(sample, a.shape[-1], terms, SAMPLE_BUDGET, signed=sign, wanted=False)
    return {**parts, "sample": own}


def _primal_part(problem: Problem, point: Point, spread: np.ndarray) -> _Part:
    """Return the part of features with weights of their own; without signs if one is missing."""
    theta, kernel = problem.spec.theta(point, problem.hypers), problem.kernel
    weights = primal_weights(problem, point) if kernel is None else None
    signs = kernel is not None or weights is not None
    a, Z = point.get("sample_weight", np.empty(0)), problem.Z

    def own(draws: Any, which: Any) -> np.ndarray:
        if kernel is not None:
            return theta[*draws, which] * (a[draws] @ Z[:, which]) * spread[which]
        return (theta if weights is None else weights)[*draws, which] * spread[which]

    def effect(c: int, s: slice) -> np.ndarray:
        return np.abs(own((c, s), slice(None)))

    def columns(which: Any) -> np.ndarray:
        return own((slice(None), slice(None)), which)

    signed = (lambda c, s, _: own((c, s), slice(None))) if signs else None
    return _Part(effect, len(spread), 0.0, FEATURE_BUDGET, columns, signed)


def _thinning(samples: int, cost: float, budget: float) -> int:
    """Return one draw in how many is looked at."""
    wanted = math.ceil(samples * cost / budget)
    return max(1, min(wanted, samples // FEWEST))


def _walk(
    part: _Part, shape: tuple[int, int], thin: int, threshold: float, details: bool
) -> Activity:
    """Return what is active in the draws looked at, and counts and n90 (chain, draw) of all."""
    chains, draws = shape
    looked = range(0, draws, thin)
    active = np.empty((chains, len(looked), part.size), dtype=bool)
    counts, n90, share = (np.full((chains, draws), np.nan) for _ in range(3))
    size, above = np.zeros(part.size), np.zeros((len(SIZES), part.size))
    kept = np.empty(active.shape if part.wanted and part.columns is None else 0)
    signed = np.empty(active.shape if details and part.columns is None else 0)
    step = max(1, int(_CHUNK / part.size))
    for c in range(chains):
        for at in range(0, len(looked), step):
            rows = looked[at : at + step]
            some, here = slice(rows.start, rows.stop, rows.step), (c, slice(at, at + step))
            found = part.effect(c, some)
            active[here] = found > threshold
            counts[c, some] = active[here].sum(-1)
            size += found.sum(0)
            for i, t in enumerate(SIZES):
                above[i] += np.count_nonzero(found > t, axis=0)
            if details:
                n90[c, some], share[c, some] = carriers(found), carried(found, active[here])
            if kept.size:
                kept[here] = found
            if signed.size and part.signed is not None:
                signed[here] = part.signed(c, some, found)
    curve = above / (chains * len(looked))
    listed = np.flatnonzero(curve[0] > LISTED)
    if part.columns is not None:
        chosen = np.abs(part.columns(listed)[:, ::thin])
    else:
        chosen = kept[..., listed] if kept.size else np.empty((*active.shape[:2], 0))
    size /= chains * len(looked)
    directed = _signed(part, signed, chains * draws) if details and part.signed else None
    return Activity(
        threshold, active, counts, n90, share, size, curve, directed, thin, listed, chosen
    )  # fmt: skip


def _signed(part: _Part, kept: np.ndarray, draws: int) -> Signed:
    """Return the summary of the signed effects, some components at a time."""
    step = max(1, int(_CHUNK / draws))
    blocks = (slice(at, at + step) for at in range(0, part.size, step))
    each = part.columns if part.columns is not None else (lambda which: kept[..., which])
    return Signed.of(
        values.reshape(-1, values.shape[-1]) for values in (each(block) for block in blocks)
    )


def carried(values: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return the share (...) of the squared effects (..., k) that the active ones carry."""
    squares = np.square(values)
    total = squares.sum(-1)
    with np.errstate(invalid="ignore"):  # where all are 0
        return (squares * active).sum(-1) / total


def carriers(values: np.ndarray) -> np.ndarray:
    """Return n90 (...) of effects (..., k): how many of the largest carry 90 % of their squares."""
    squares = np.sort(np.square(values), axis=-1)[..., ::-1]
    sums = np.cumsum(squares, axis=-1)
    total = sums[..., -1:]
    below = (sums < SHARE * total * (1.0 - 1e-12)).sum(-1)  # 9 of 10 is 90 %, whatever rounding
    return np.where(total[..., 0] > 0.0, below + 1, 0)
