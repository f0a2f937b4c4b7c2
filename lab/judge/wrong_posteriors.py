"""A catalogue of wrong posteriors: what is done to right draws, in four sizes each.

A posterior here is a dict of arrays (chain, draw, ...) by the names of the model's variables, with
`eta`. The draws of a chain are independent. Sizes 0 to 3 are meant as half the limit of the judge,
the limit, twice and four times as much, for the typical problem; `lab/judge/judge.py` measures how
large a defect really is on each problem.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ardvark.models import Problem

Arrays = dict[str, np.ndarray]
STEPS = (0.5, 1.0, 2.0, 4.0)
SHARES = (0.05, 0.1, 0.25, 0.5)


@dataclass(frozen=True)
class Source:
    """What a defect may use of a problem.

    Attributes
    ----------
    problem : Problem
    fresh : callable
        Number of draws -> right draws (count, ...), by variable; others at each call.
    foreign : dict
        By the kind of defect, draws (count, ...) of other posteriors, the smallest change first.
    """

    problem: Problem
    fresh: Callable[[int], Arrays]
    foreign: Mapping[str, tuple[Arrays, ...]]


Defect = Callable[[Arrays, int, np.random.Generator, Source], Arrays]
"""(right draws (chain, draw, ...), size 0 to 3, generator, source) -> wrong draws."""


def flat(x: np.ndarray) -> np.ndarray:
    """Return draws (chain, draw, ...) as (S, ...)."""
    return x.reshape(-1, *x.shape[2:])


def lead(draws: Arrays) -> int:
    """Return the feature with the largest mean weight that varies, or -1."""
    weight = flat(draws["feature_weight"])
    moves = weight.std(axis=0) > 0.0
    return int(np.where(moves, np.abs(weight).mean(axis=0), -1.0).argmax()) if moves.any() else -1


def leading(draws: Arrays) -> tuple[str, int]:
    """Return a variable, and its component that matters most."""
    k = lead(draws)
    if k >= 0:
        return "feature_weight", k
    return "sample_weight", int(np.abs(flat(draws["sample_weight"])).mean(axis=0).argmax())


def about_mean(x: np.ndarray, factor: float) -> np.ndarray:
    """Return draws with another sd and the same mean; what is positive stays so, by logarithms."""
    positive = bool((x > 0.0).all())
    y = np.log(x) if positive else x
    mean = y.mean(axis=(0, 1))
    y = mean + factor * (y - mean)
    return np.asarray(np.exp(y) if positive else y)


def everywhere(draws: Arrays, change: Callable[[np.ndarray], np.ndarray]) -> Arrays:
    """Return draws of which all that is continuous has been changed."""
    return {n: change(x) if x.dtype.kind == "f" else x for n, x in draws.items()}


def narrow(draws: Arrays, size: int, _: np.random.Generator, __: Source) -> Arrays:
    """All sds too small."""
    return everywhere(draws, lambda x: about_mean(x, 1.25 ** -STEPS[size]))


def wide(draws: Arrays, size: int, _: np.random.Generator, __: Source) -> Arrays:
    """All sds too large."""
    return everywhere(draws, lambda x: about_mean(x, 1.25 ** STEPS[size]))


def shift(draws: Arrays, size: int, _: np.random.Generator, __: Source) -> Arrays:
    """All decision values shifted."""
    eta = draws["eta"]
    return draws | {"eta": eta + 0.25 * STEPS[size] * eta.std(axis=(0, 1))}


def one_mean(draws: Arrays, size: int, _: np.random.Generator, __: Source) -> Arrays:
    """The weight that matters most is shifted, and no other."""
    name, k = leading(draws)
    x = draws[name].copy()
    x[..., k] += 0.25 * STEPS[size] * x[..., k].std()
    return draws | {name: x}


def one_sd(draws: Arrays, size: int, _: np.random.Generator, __: Source) -> Arrays:
    """The weight that matters most has too small an sd, and no other."""
    name, k = leading(draws)
    x = draws[name].copy()
    x[..., k] = about_mean(x[..., k], 1.25 ** -STEPS[size])
    return draws | {name: x}


def no_correlation(draws: Arrays, size: int, rng: np.random.Generator, __: Source) -> Arrays:
    """In a share of the draws, the components are those of different draws."""
    eta = flat(draws["eta"]).copy()
    rows = rng.permutation(len(eta))[: int(len(eta) * (0.1, 0.25, 0.5, 1.0)[size])]
    for k in range(eta.shape[1]):
        eta[rows, k] = eta[rng.permutation(rows), k]
    return draws | {"eta": eta.reshape(draws["eta"].shape)}


def lost_mode(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """The draws with the largest decision value of one row are missing."""
    count = draws["eta"].shape[0] * draws["eta"].shape[1]
    more = source.fresh(min(2 * count, 6000))
    row = int(more["eta"].std(axis=0).argmax())
    value = more["eta"][:, row]
    kept = np.flatnonzero(value <= np.quantile(value, 1.0 - SHARES[size]))
    chosen = rng.choice(kept, count, replace=len(kept) < count)
    return {n: x[chosen].reshape(draws[n].shape) for n, x in more.items()}


def stuck(draws: Arrays, size: int, rng: np.random.Generator, __: Source) -> Arrays:
    """In a share of the draws, each chain is in its own quarter of the leading weight."""
    name, k = leading(draws)
    chains, length = draws["eta"].shape[:2]
    value = flat(draws[name])[:, k]
    order = np.arange(len(value))
    some = rng.permutation(order)[: int(len(order) * (0.05, 0.1, 0.25, 0.6)[size])]
    places = np.sort(some)
    order[places] = some[np.argsort(value[some], kind="stable")]
    return {n: flat(x)[order].reshape(chains, length, *x.shape[2:]) for n, x in draws.items()}


def clipped(draws: Arrays, size: int, _: np.random.Generator, __: Source) -> Arrays:
    """Both tails of every decision value and weight are cut off."""
    tail = (0.02, 0.04, 0.1, 0.2)[size]

    def change(x: np.ndarray) -> np.ndarray:
        return np.clip(x, *np.quantile(x, (tail, 1.0 - tail), axis=(0, 1)))

    return everywhere(draws, change)


def forgotten(draws: Arrays, size: int, rng: np.random.Generator, __: Source) -> Arrays:
    """In a share of the draws the leading weight is 0."""
    name, k = leading(draws)
    x = draws[name].copy()
    x[..., k] = np.where(rng.random(x.shape[:2]) < SHARES[size], 0.0, x[..., k])
    return draws | {name: x}


def scale(draws: Arrays, size: int, _: np.random.Generator, __: Source) -> Arrays:
    """The bias, or a positive scalar, has another mean."""
    out = dict(draws)
    for name, x in draws.items():
        if x.ndim == 2 and x.dtype.kind == "f" and x.std() > 0.0:
            if name != "bias" and (x > 0.0).all():
                out[name] = x * np.exp(0.25 * STEPS[size] * np.log(x).std())
            else:
                out[name] = x + 0.25 * STEPS[size] * x.std()
    return out


def fixed(draws: Arrays, size: int, _: np.random.Generator, __: Source) -> Arrays:
    """Scalars vary too little, down to not at all."""
    factor = (0.9, 0.8, 0.64, 0.0)[size]
    scalars = {n: x for n, x in draws.items() if x.ndim == 2 and x.dtype.kind == "f"}
    return draws | {n: about_mean(x, factor) for n, x in scalars.items()}


def repeated(draws: Arrays, size: int, rng: np.random.Generator, __: Source) -> Arrays:
    """Draws stand several times, in any order, and are called independent."""
    times = (2, 5, 20, 100)[size]

    def change(x: np.ndarray, order: np.ndarray) -> np.ndarray:
        return np.asarray(flat(x)[order].reshape(x.shape))

    count = draws["eta"].shape[0] * draws["eta"].shape[1]
    order = rng.permutation(np.arange(count) // times)
    return {n: change(x, order) for n, x in draws.items()}


def point(draws: Arrays, size: int, _: np.random.Generator, __: Source) -> Arrays:
    """Every draw is near the mean."""
    factor = (0.5, 0.25, 0.1, 0.0)[size]
    return everywhere(draws, lambda x: about_mean(x, factor))


def with_prior(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """A share of the draws is the prior's."""
    return _mixed(draws, source.foreign["with the prior"][0], (0.05, 0.1, 0.2, 0.5)[size], rng)


def other_prior(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """A share of the draws, or all, are under another sparsity."""
    near, far = source.foreign["another prior"]
    return _mixed(draws, far if size > 1 else near, (0.5, 1.0, 0.5, 1.0)[size], rng)


def other_row(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """A share of the draws, or all, are of other labels."""
    near, far = source.foreign["another data row"]
    return _mixed(draws, far if size > 1 else near, (0.5, 1.0, 0.5, 1.0)[size], rng)


def wrong_row(draws: Arrays, size: int, _: np.random.Generator, __: Source) -> Arrays:
    """P(y = 1) of one row is off by so much."""
    eta = draws["eta"].copy()
    k = int(np.abs(flat(eta).mean(axis=0)).argmin())  # where P is near one half
    eta[..., k] += 4.0 * 0.1 * STEPS[size]
    return draws | {"eta": eta}


def _mixed(draws: Arrays, other: Arrays, share: float, rng: np.random.Generator) -> Arrays:
    """Return draws of which a share are replaced by others, drawn at random."""
    first = next(iter(draws.values()))
    count = first.shape[0] * first.shape[1]
    rows = rng.permutation(count)[: int(count * share)]
    chosen = rng.integers(len(other["eta"]), size=len(rows))
    out = {}
    for name, x in draws.items():
        changed = flat(x).copy()
        changed[rows] = other[name][chosen]
        out[name] = changed.reshape(x.shape)
    return out


CATALOGUE: dict[str, Defect] = {
    "narrow": narrow,
    "wide": wide,
    "shift": shift,
    "one mean": one_mean,
    "one sd": one_sd,
    "no correlation": no_correlation,
    "lost mode": lost_mode,
    "stuck chains": stuck,
    "clipped tails": clipped,
    "forgotten": forgotten,
    "scale": scale,
    "fixed scale": fixed,
    "repeated draws": repeated,
    "a point": point,
    "with the prior": with_prior,
    "another prior": other_prior,
    "another data row": other_row,
    "one wrong row": wrong_row,
}
"""Every kind, by name."""
