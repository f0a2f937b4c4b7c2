"""R-hat, effective sample sizes and Monte Carlo errors of many components at once.

The formulas are those of Vehtari, Gelman, Simpson, Carpenter, Burkner (2021, Bayesian Analysis 16)
and the numbers are ArviZ's, to rounding (`tests/inference/fits/test_chains.py`). ArviZ loops over
components in Python. Here every step runs over a block of components: ranks, the autocovariances by
FFT, and Geyer's initial monotone sequence. A block is small enough for a cache.

Why not ArviZ's: for R-hat, bulk and tail sizes of 4 x 1000 x 7129 draws, `mixed` took 8.1 seconds
of processor time, arviz-stats 39 (4.8 times as long) and its Numba form 98 (2026-11-28, arviz-stats
1.3.3). `exact` judges a run several times, and needs `within` besides, which ArviZ has not.

Every function takes an array (chain, draw, K) and returns arrays (K,). A component with a NaN, or
fewer than 4 draws a chain, has NaN.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special
from scipy.fft import next_fast_len

FEWEST = 4
"""Draws a chain below which nothing can be said."""
TAILS = (0.05, 0.95)
"""The quantiles whose effective sample sizes make up that of the tails."""

_BLOCK = 2**18  # numbers of a block

EssKind = Literal["bulk", "tail", "mean"]


def rhat(x: np.ndarray) -> np.ndarray:
    """Return the rank-normalised split R-hat: the larger one of the values and of folded values.

    It is NaN for a component that never changes and for a single chain, infinite where chains that
    never change disagree.
    """
    return _over(_rhat, x)


def ess(x: np.ndarray, kind: EssKind) -> np.ndarray:
    """Return the effective sample size of the bulk, of the tails, or of the mean.

    As in ArviZ, a component that never changes has as many as there are draws.
    """
    of: dict[EssKind, Callable[[np.ndarray], np.ndarray]]
    of = {"bulk": _ess_bulk, "tail": _ess_tail, "mean": _ess_mean}
    return _over(of[kind], x)


def mixed(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `rhat`, bulk and tail `ess`, for less than the price of each by itself."""
    found = _over(_mixed, x, rows=3)
    return found[0], found[1], found[2]


def mcse(x: np.ndarray, kind: Literal["mean", "sd"]) -> np.ndarray:
    """Return the Monte Carlo error of the mean or of the standard deviation."""
    return _over(_mcse_mean if kind == "mean" else _mcse_sd, x)


def _over(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, rows: int = 1) -> np.ndarray:
    """Return function (rows, k) over blocks (k, chain, draw) of an array, without a row of one."""
    chains, draws, size = x.shape
    out = np.full((rows, size), np.nan)
    if draws >= FEWEST:
        step = max(1, _BLOCK // (chains * draws))
        with np.errstate(all="ignore"):
            for at in range(0, size, step):
                block = np.ascontiguousarray(
                    np.moveaxis(x[..., at : at + step], -1, 0), dtype=float
                )
                out[:, at : at + step] = function(block)
    return out[0] if rows == 1 else out


def bits(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return R-hat, the ESS of the mean, and the ESS within half-chains, of values 0 and 1.

    Ranks of two values are a linear function of them, and folding changes nothing: the R-hat is
    that of `rhat`, the ESS that of its bulk. The last number is the ESS as it would be if all
    half-chains had one mean: what `rhat` of chains that have mixed may differ from 1 by follows
    from it, for it does not shrink when chains disagree. Half-chains that never change count as one
    draw each.
    """
    found = _over(_bits, x, rows=3)
    return found[0], found[1], found[2]


def within(x: np.ndarray) -> np.ndarray:
    """Return the ESS of the mean within half-chains, as in `bits`."""
    return _over(lambda block: _within(_split(block)), x)


# --- of one block (k, chain, draw) ----------------------------------------------------------------


def _split(x: np.ndarray) -> np.ndarray:
    """Return the halves of the chains as chains; the middle one of an odd number is left out."""
    half = x.shape[-1] // 2
    return np.concatenate([x[..., :half], x[..., -half:]], axis=1)


@dataclass
class _Ranked:
    """Half-chains (k, chain, draw), their values in order (k, S), and where each value stood."""

    halves: np.ndarray
    order: np.ndarray
    ordered: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray) -> "_Ranked":
        halves = _split(x)
        flat = halves.reshape(len(x), -1)
        order = np.argsort(flat, axis=1)
        return cls(halves, order, np.take_along_axis(flat, order, axis=1))

    def scores(self) -> np.ndarray:
        """Return the normal scores of the ranks over all draws."""
        return _scores(self.order, self.ordered).reshape(self.halves.shape)

    def folded_scores(self) -> np.ndarray:
        """Return the normal scores of the distances from the median."""
        size = self.ordered.shape[1]
        middle = self.ordered[:, [(size - 1) // 2, size // 2]].mean(axis=1, keepdims=True)
        folded = np.abs(self.ordered - middle)  # it falls, and then it rises: quickly sorted
        order = np.argsort(folded, axis=1, kind="stable")
        ordered = np.take_along_axis(folded, order, axis=1)
        order = np.take_along_axis(self.order, order, axis=1)
        return _scores(order, ordered).reshape(self.halves.shape)


def _scores(order: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Return the normal scores of ranks (Blom's), ties at their mean rank, where values stood."""
    size = order.shape[1]
    ranks = np.arange(1.0, size + 0.25, 0.5)  # the mean rank of ties may be half a number
    table = special.ndtri((ranks - 0.375) / (size + 0.25))
    out = np.empty(order.shape)
    np.put_along_axis(out, order, table[None, ::2], axis=1)
    same = ordered[:, 1:] == ordered[:, :-1]
    tied = np.flatnonzero(same.any(axis=1))
    if len(tied):
        place = np.arange(size)
        edge = np.ones((len(tied), 1), dtype=bool)
        differs = ~same[tied]
        first = np.where(np.hstack([edge, differs]), place, 0)
        last = np.where(np.hstack([differs, edge]), place, size)
        first = np.maximum.accumulate(first, axis=1)
        last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
        part = np.empty(first.shape)
        np.put_along_axis(part, order[tied], table[first + last], axis=1)
        out[tied] = part
    out[np.isnan(ordered[:, -1])] = np.nan  # a NaN is the last
    return out


def _mixed(x: np.ndarray) -> np.ndarray:
    ranked = _Ranked.of(x)
    scores = ranked.scores()
    return np.stack([_larger_rhat(ranked, scores), _size(scores), _ess_tail(x, ranked.ordered)])


def _rhat(x: np.ndarray) -> np.ndarray:
    ranked = _Ranked.of(x)
    return _larger_rhat(ranked, ranked.scores())


def _larger_rhat(ranked: _Ranked, scores: np.ndarray) -> np.ndarray:
    if scores.shape[1] < 4:  # halves of a single chain
        return np.full(len(scores), np.nan)
    bulk, folded = _plain_rhat(scores), _plain_rhat(ranked.folded_scores())
    return np.where(folded > bulk, folded, bulk)  # folded values may be constant: no R-hat


def _plain_rhat(x: np.ndarray) -> np.ndarray:
    draws = x.shape[-1]
    between = x.mean(axis=-1).var(axis=-1, ddof=1)
    within = x.var(axis=-1, ddof=1).mean(axis=-1)
    return np.sqrt(between / within + (draws - 1) / draws)


def _bits(x: np.ndarray) -> np.ndarray:
    halves = _split(x)
    rhat = _plain_rhat(halves) if x.shape[1] > 1 else np.full(len(x), np.nan)
    return np.stack([rhat, _size(halves), _within(halves)])


def _within(halves: np.ndarray) -> np.ndarray:
    still = (halves == halves[..., :1]).all(axis=(1, 2))
    size = _size(halves - halves.mean(axis=-1, keepdims=True))
    return np.where(still, float(halves.shape[1]), size)


def _ess_bulk(x: np.ndarray) -> np.ndarray:
    return _size(_Ranked.of(x).scores())


def _ess_mean(x: np.ndarray) -> np.ndarray:
    return _size(_split(x))


def _ess_tail(x: np.ndarray, ordered: np.ndarray | None = None) -> np.ndarray:
    """Return the smaller of the sizes of both tails; `ordered` are the values in order, if known.

    They lack the middle draws of odd chains, and then serve for nothing.
    """
    flat = x.reshape(len(x), -1)
    if ordered is None or ordered.shape != flat.shape:
        ordered = np.sort(flat, axis=1)
    limits = _quantiles(ordered)
    low, high = (_size(_split((x <= q[:, None, None]).astype(float))) for q in limits)
    return np.where(np.isnan(flat).any(axis=1), np.nan, np.minimum(low, high))


def _quantiles(ordered: np.ndarray) -> list[np.ndarray]:
    """Return the `TAILS` (k,) of values in order (k, S), interpolated as `np.quantile` does."""
    found = []
    for share in TAILS:
        at = share * (ordered.shape[1] - 1)
        below = int(at)
        low, high = ordered[:, below], ordered[:, min(below + 1, ordered.shape[1] - 1)]
        found.append(low + (high - low) * (at - below))
    return found


def _mcse_mean(x: np.ndarray) -> np.ndarray:
    return x.std(axis=(1, 2), ddof=1) / np.sqrt(_ess_mean(x))


def _mcse_sd(x: np.ndarray) -> np.ndarray:
    squares = np.square(x - x.mean(axis=(1, 2), keepdims=True))
    variance = squares.mean(axis=(1, 2))
    spread = np.square(squares).mean(axis=(1, 2)) - variance**2
    return np.sqrt(spread / _ess_mean(squares) / variance / 4.0)


def _size(x: np.ndarray) -> np.ndarray:
    """Return the effective sample size of chains (k, chain, draw), from their autocorrelations.

    Pairs of neighbouring autocorrelations are added up while they are positive, none larger than
    the one before it (Geyer's initial monotone sequence); the even term of the pair that ends the
    sum counts once.
    """
    count, chains, draws = x.shape
    covariance = _autocovariance(x)
    within = covariance[:, 0] * draws / (draws - 1.0)
    total = covariance[:, 0] + (x.mean(axis=-1).var(axis=-1, ddof=1) if chains > 1 else 0.0)
    rho = 1.0 - (within[:, None] - covariance) / total[:, None]
    rho[:, 0] = 1.0
    pairs = rho[:, 0 : 2 * (draws // 2) : 2] + rho[:, 1::2]
    longest = max(0, -(-(draws - 4) // 2))
    over = pairs[:, : longest + 1] <= 0.0
    over[:, longest] = True
    end = over.argmax(axis=1)  # the first pair that is not added
    monotone = np.minimum.accumulate(pairs, axis=1)
    added = np.where(np.arange(pairs.shape[1]) < end[:, None], monotone, 0.0).sum(axis=1)
    rows = np.arange(count)
    even = rho[rows, 2 * end]
    last = np.where((even > 0.0) | (pairs[rows, end] >= 0.0), even, 0.0)
    size = chains * draws
    tau = np.maximum(-1.0 + 2.0 * added + last, 1.0 / np.log10(size))
    constant = np.ptp(x, axis=(1, 2)) < np.finfo(float).resolution
    return np.where(constant, float(size), np.where(np.isnan(rho).any(axis=1), np.nan, size / tau))


def _autocovariance(x: np.ndarray) -> np.ndarray:
    """Return the autocovariances (k, lag), the mean over the chains."""
    draws = x.shape[-1]
    padded = next_fast_len(2 * draws, real=True)
    found = np.fft.rfft(x - x.mean(axis=-1, keepdims=True), n=padded, axis=-1)
    power = (found.real**2 + found.imag**2).mean(axis=1)
    return np.fft.irfft(power, n=padded, axis=-1)[:, :draws] / draws
