"""A second catalogue of wrong posteriors, written by a reader who had not seen the judge's rules.

The kinds are errors that Bayesian computation for sparse classifiers makes in practice. They have
the interface of `wrong_posteriors.py`: right draws (chain, draw, ...) by variable in, wrong ones
out, in four sizes each. Every changed draw is one that the model allows: what is positive stays
positive, and `eta` is computed again from the changed weights.

A defect of the law (another likelihood, another Jacobian) takes right draws again with the weights
of the wrong law. A defect of the sampler or of the storage changes the draws themselves.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from ardvark.inference.fits.datatree import problem_dims
from ardvark.models import Problem
from ardvark.models.parts.distributions import logistic_logp
from lab.judge.wrong_posteriors import Arrays, Defect, Source, flat, leading

ALL = 10**6
"""More draws than there are: `Source.fresh` then returns every one."""


# --- what the defects share -----------------------------------------------------------------------


def parameters(draws: Arrays) -> Iterator[str]:
    """Yield the variables that vary and from which the others follow."""
    derived = {"eta", "u"} | ({"feature_weight"} if "beta" in draws else set())
    for name, x in draws.items():
        if name not in derived and x.dtype.kind == "f" and np.ptp(flat(x), axis=0).any():
            yield name


def is_positive(x: np.ndarray) -> bool:
    """Whether a variable has positive draws alone, and so is changed on the log scale."""
    return bool((x > 0.0).all())


def completed(draws: Arrays, new: Arrays, problem: Problem) -> Arrays:
    """Return draws with some parameters replaced, and with everything that follows from them."""
    out = draws | new
    if "beta" in new:
        out["feature_weight"] = np.abs(out["beta"])
    out["eta"] = np.asarray(problem.decision(out))
    if "u" in draws:  # noise added to eta
        out["u"] = out["eta"] + (draws["u"] - draws["eta"])
    return out


def changed(
    draws: Arrays, source: Source, change: Callable[[str, np.ndarray], np.ndarray]
) -> Arrays:
    """Return draws of which every parameter has been changed, a positive one by its logarithm."""
    new = {}
    for name in parameters(draws):
        x = draws[name]
        positive = is_positive(x)
        y = change(name, np.log(x) if positive else x)
        new[name] = np.exp(y) if positive else y
    return completed(draws, new, source.problem)


def taken(pool: Arrays, log_weight: np.ndarray, count: int, rng: np.random.Generator) -> Arrays:
    """Return `count` draws of a pool (S, ...) by systematic resampling, in random order.

    A draw is repeated only where its weight exceeds S / count times the mean weight.
    """
    weight = np.exp(log_weight - log_weight.max())
    ends = np.cumsum(weight) / weight.sum()
    at = np.searchsorted(ends, (rng.random() + np.arange(count)) / count)
    rows = rng.permutation(np.minimum(at, len(ends) - 1))
    return {name: x[rows] for name, x in pool.items()}


def reweighted(
    draws: Arrays,
    source: Source,
    rng: np.random.Generator,
    log_weight: Callable[[Arrays], np.ndarray],
) -> Arrays:
    """Return draws of the law whose density is the right one times exp(log_weight)."""
    pool, shape = source.fresh(ALL), draws["eta"].shape[:2]
    found = taken(pool, log_weight(pool), shape[0] * shape[1], rng)
    return {name: x.reshape(*shape, *x.shape[1:]) for name, x in found.items()}


def choices(source: Source) -> np.random.Generator:
    """Return a generator that is the same for every fit of a problem.

    So a defect that is chosen at random is one defect, whatever the number of draws: its size is
    measured with many, and holds for a fit with few.
    """
    return np.random.default_rng(int(source.problem.fingerprint, 16))


def log_likelihood(pool: Arrays, source: Source) -> np.ndarray:
    """Return log P(y_n | eta) (S, N)."""
    return source.problem.log_likelihood(pool, pool["eta"])


def confidence(pool: Arrays, source: Source) -> np.ndarray:
    """Return how far eta is on the side of the labels, mean over rows, standardised (S,)."""
    margin = (pool["eta"] * (2 * source.problem.y - 1)).mean(axis=-1)
    return np.asarray((margin - margin.mean()) / margin.std())


def block(draws: Arrays, source: Source) -> tuple[list[str], int, int]:
    """Return the parameters of the weights that matter most, and their two largest components."""
    name, first = leading(draws)
    dims = problem_dims(source.problem)
    names = [n for n in parameters(draws) if dims.get(n) == dims[name]]
    size = np.abs(flat(draws[name])).mean(axis=0)
    size[first] = -1.0
    return names, first, int(size.argmax())


def weights(draws: Arrays) -> str:
    """Return the variable of the weights that matter most, from which eta is computed."""
    return "beta" if "beta" in draws else leading(draws)[0]


# --- another law ----------------------------------------------------------------------------------


def tempered(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """The likelihood has a power above 1, as in a cold posterior."""
    more = (0.05, 0.1, 0.2, 0.4)[size]
    return reweighted(
        draws, source, rng, lambda pool: more * log_likelihood(pool, source).sum(axis=-1)
    )


def jacobian(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """The Jacobian of one log transform is counted twice, in the end: the density times x."""
    power = (0.1, 0.25, 0.5, 1.0)[size]
    names, first, _ = block(draws, source)
    name = next((n for n in names if is_positive(draws[n])), "")
    if "feature_weight" in names:
        name = "feature_weight"
    return reweighted(draws, source, rng, lambda pool: power * np.log(pool[name][:, first]))


def rows_left_out(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """Some rows of the data are missing from the likelihood."""
    rows = choices(source).permutation(len(source.problem.y))[: (1, 2, 4, 8)[size]]
    return reweighted(
        draws, source, rng, lambda pool: -log_likelihood(pool, source)[:, rows].sum(axis=-1)
    )


def another_link(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """The likelihood is, in part, that of the other link: probit for logistic, and vice versa."""
    share = (0.1, 0.2, 0.4, 0.8)[size]
    y = source.problem.y
    probit = source.problem.spec.name in ("jcfo", "sparse_probit")

    def log_weight(pool: Arrays) -> np.ndarray:
        eta = pool["eta"]
        other = logistic_logp(y, eta) if probit else stats.norm.logcdf((2 * y - 1) * eta)
        return np.asarray(share * (other - log_likelihood(pool, source)).sum(axis=-1))

    return reweighted(draws, source, rng, log_weight)


def worst_removed(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """The draws of the lowest likelihood are thrown away as bad ones."""
    share = (0.02, 0.05, 0.1, 0.2)[size]

    def log_weight(pool: Arrays) -> np.ndarray:
        total = log_likelihood(pool, source).sum(axis=-1)
        return np.where(total >= np.quantile(total, share), 0.0, -np.inf)

    return reweighted(draws, source, rng, log_weight)


# --- chains ---------------------------------------------------------------------------------------


def burn_in(draws: Arrays, size: int, _: np.random.Generator, source: Source) -> Arrays:
    """Chains start at draws of the prior, and the way from there is kept."""
    (prior,) = source.foreign["with the prior"]
    chains, length = draws["eta"].shape[:2]
    lasting = (0.005, 0.02, 0.06, 0.15)[size] * length
    fades = np.exp(-np.arange(length) / lasting)
    starts = choices(source).choice(len(prior["eta"]), size=chains, replace=False)

    def change(name: str, x: np.ndarray) -> np.ndarray:
        start = prior[name][starts]
        start = np.log(start) if is_positive(draws[name]) else start
        fade = fades.reshape(1, -1, *[1] * (x.ndim - 2))
        return np.asarray(x + fade * (start[:, None] - x))

    return changed(draws, source, change)


def one_chain_astray(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """One chain of four is too confident, by this many posterior sds."""
    away = (0.25, 0.5, 1.0, 2.0)[size]
    pool = source.fresh(ALL)
    length = draws["eta"].shape[1]
    wrong = taken(pool, away * confidence(pool, source), length, rng)
    chain = int(rng.integers(draws["eta"].shape[0]))
    out = {name: x.copy() for name, x in draws.items()}
    for name, x in wrong.items():
        out[name][chain] = x
    return out


def slow_direction(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """One direction of the posterior has this autocorrelation; all the others mix at once."""
    rho = (0.9, 0.97, 0.99, 0.997)[size]
    pool, (chains, length) = source.fresh(ALL), draws["eta"].shape[:2]
    state = rng.normal(size=chains)
    path = np.empty((chains, length))
    for i in range(length):
        path[:, i] = state
        state = rho * state + np.sqrt(1.0 - rho**2) * rng.normal(size=chains)
    order = np.argsort(confidence(pool, source))
    at = order[np.minimum((stats.norm.cdf(path) * len(order)).astype(int), len(order) - 1)]
    return {name: x[at] for name, x in pool.items()}


def averaged(draws: Arrays, size: int, _: np.random.Generator, source: Source) -> Arrays:
    """What is stored is a running mean: each draw holds this share of the one before."""
    share = (0.02, 0.05, 0.1, 0.25)[size]
    return changed(draws, source, lambda _, x: (1.0 - share) * x + share * np.roll(x, 1, axis=1))


def out_of_step(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """In this share of draws, one block of weights is that of the draw before."""
    share = (0.1, 0.25, 0.5, 1.0)[size]
    names, _, _ = block(draws, source)
    late = rng.random(draws["eta"].shape[:2]) < share
    new = {n: np.where(late[..., None], np.roll(draws[n], 1, axis=1), draws[n]) for n in names}
    return completed(draws, new, source.problem)


# --- storage and preparation ----------------------------------------------------------------------


def switched(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """In this share of draws, the two largest weights have each other's place."""
    share = (0.05, 0.1, 0.25, 0.5)[size]
    names, first, second = block(draws, source)
    at = rng.random(draws["eta"].shape[:2]) < share
    new = {}
    for name in names:
        x = draws[name].copy()
        x[at, first], x[at, second] = draws[name][at, second], draws[name][at, first]
        new[name] = x
    return completed(draws, new, source.problem)


def standardised(draws: Arrays, size: int, _: np.random.Generator, source: Source) -> Arrays:
    """Each column is standardised by a slightly wrong number, which its weight then contains."""
    spread = (0.05, 0.1, 0.2, 0.4)[size]
    name = weights(draws)
    factors = np.exp(spread * choices(source).normal(size=draws[name].shape[-1]))
    return completed(draws, {name: draws[name] * factors}, source.problem)


def pruned(draws: Arrays, size: int, _: np.random.Generator, source: Source) -> Arrays:
    """Weights below this share of a draw's largest are pruned, to a thousandth of themselves."""
    threshold = (0.02, 0.05, 0.1, 0.25)[size]
    name = weights(draws)
    x = np.abs(draws[name])
    small = x < threshold * x.max(axis=-1, keepdims=True)
    return completed(
        draws, {name: np.where(small, 1e-3 * draws[name], draws[name])}, source.problem
    )


def rounded(draws: Arrays, size: int, _: np.random.Generator, source: Source) -> Arrays:
    """Draws are stored as the middles of bins of this many posterior sds, so that none is 0."""
    step = (0.25, 0.5, 1.0, 2.0)[size]

    def change(_: str, x: np.ndarray) -> np.ndarray:
        width = step * x.std(axis=(0, 1))
        return np.asarray(np.where(width > 0.0, (np.floor(x / (width + 1e-300)) + 0.5) * width, x))

    return changed(draws, source, change)


# --- another shape --------------------------------------------------------------------------------


def normal(draws: Arrays, size: int, rng: np.random.Generator, source: Source) -> Arrays:
    """Return draws of which a share is of the normal with the right mean and covariance."""
    share = (0.25, 0.5, 0.75, 1.0)[size]
    shape = draws["eta"].shape[:2]
    names = list(parameters(draws))
    free = {n: np.log(draws[n]) if is_positive(draws[n]) else draws[n] for n in names}
    columns = np.hstack([flat(free[n]).reshape(shape[0] * shape[1], -1) for n in names])
    drawn = rng.multivariate_normal(
        columns.mean(axis=0), np.cov(columns.T), size=len(columns), method="eigh"
    )
    drawn = np.where(rng.random(len(columns))[:, None] < share, drawn, columns)
    ends = np.cumsum([free[n][0, 0].size for n in names])
    parts = dict(zip(names, np.split(drawn, ends[:-1], axis=1), strict=True))
    return changed(draws, source, lambda name, x: parts[name].reshape(x.shape))


SECOND: dict[str, Defect] = {
    "tempered": tempered,
    "Jacobian twice": jacobian,
    "rows left out": rows_left_out,
    "another link": another_link,
    "worst draws removed": worst_removed,
    "burn-in kept": burn_in,
    "one chain astray": one_chain_astray,
    "slow direction": slow_direction,
    "running mean": averaged,
    "blocks out of step": out_of_step,
    "labels switched": switched,
    "standardised twice": standardised,
    "pruned weights": pruned,
    "rounded": rounded,
    "normal": normal,
}
"""The kinds of defect, by name."""
