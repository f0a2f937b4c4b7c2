"""A plain spike-and-slab logistic regression: a point at 0 and a normal slab, by Gibbs sampling.

    z_k ~ Bernoulli(p), p ~ Beta(1, 1),   b_k ~ Normal(0, slab),   bias ~ Normal(0, slab)
    y_i ~ Bernoulli(sigmoid(bias + sum_k z_k b_k x_ik))

A sweep draws omega, Polya-Gamma (Polson, Scott and Windle 2013); each bit z_k from its full
conditional given omega with all b and p integrated out; then the weights. Four chains start from
draws of the prior. They double until R-hat is at most 1.01 and the bulk and tail effective draws
are as many as asked, of every weight that is seldom 0, the bias, the number of bits that are on and
the log likelihood, or until `limit` sweeps a chain; the first half is dropped.
"""

from typing import NamedTuple

import numpy as np

from ardvark.inference.fits import chains
from ardvark.inference.samplers.gibbs.mask_kernel import compiled
from ardvark.inference.samplers.gibbs.sampler import draw_omega

SLAB = 2.5  # logits a standard deviation (Gelman, Jakulin, Pittau and Su 2008)
CHAINS, FIRST, SELDOM = 4, 500, 0.1


class Posterior(NamedTuple):
    """Draws of the bias (chain, draw) and of z_k b_k (chain, draw, D), and whether they are enough.

    rhat : the largest R-hat of what is judged.
    """

    bias: np.ndarray
    weight: np.ndarray
    finished: bool
    rhat: float


def sample(
    X: np.ndarray, y: np.ndarray, seed: int, slab: float = SLAB, ess: float = 1000.0,
    limit: int = 16_000,
) -> Posterior:  # fmt: skip
    """Sample the posterior given standardised X (N, D) and y (N,) in {0, 1}."""
    rngs = np.random.default_rng(seed).spawn(CHAINS)
    A = np.column_stack([np.ones(len(y)), X])
    states = [_start(rng, A.shape[1], slab) for rng in rngs]
    draws = np.empty((CHAINS, 0, A.shape[1]))
    while True:
        more = max(FIRST, draws.shape[1])
        new = np.empty((CHAINS, more, A.shape[1]))
        for c, (rng, state) in enumerate(zip(rngs, states, strict=True)):
            for t in range(more):
                new[c, t] = sweep(rng, A, y, state, slab)
        draws = np.concatenate([draws, new], axis=1)
        kept = draws[:, draws.shape[1] // 2 :]
        worst, fewest = judged(kept, A, y)
        finished = worst <= 1.01 and fewest >= ess
        if finished or 2 * draws.shape[1] > limit:
            return Posterior(kept[..., 0], kept[..., 1:], finished, worst)


def _start(rng: np.random.Generator, size: int, slab: float) -> np.ndarray:
    """Return a bias and weights of the prior (1 + D,)."""
    on = rng.random(size) < rng.random()
    on[0] = True
    return np.where(on, rng.normal(0.0, slab, size), 0.0)


def sweep(
    rng: np.random.Generator, A: np.ndarray, y: np.ndarray, w: np.ndarray, slab: float
) -> np.ndarray:
    """Change the bias and the weights w (1 + D,) by a sweep, and return them."""
    omega = draw_omega(rng, A @ w)
    L, b = (A.T * omega) @ A + np.eye(len(w)) / slab**2, A.T @ (y - 0.5)
    on, D = w != 0.0, len(w) - 1
    on[0] = True
    flip_bits(L, b, on, slab, 1 + rng.permutation(D), rng.random(D))
    root = np.linalg.cholesky(L[np.ix_(on, on)])
    half = np.linalg.solve(root, b[on])
    w[:] = 0.0
    w[on] = np.linalg.solve(root.T, half + rng.normal(size=len(half)))
    return w


@compiled
def flip_bits(
    L: np.ndarray, b: np.ndarray, on: np.ndarray, slab: float, order: np.ndarray, u: np.ndarray
) -> None:  # fmt: skip
    """Draw each bit of `on` (1 + D,) from its full conditional, in this order, by uniforms u."""
    D, here = len(on) - 1, evidence(L, b, on, slab)
    for i in range(D):
        k = order[i]
        others = on.sum() - 1 - on[k]
        odds = np.log((others + 1.0) / (D - others))  # of the bit being on, by the prior
        on[k] = not on[k]
        there = evidence(L, b, on, slab)
        if u[i] < 1.0 / (1.0 + np.exp(here - there + (-odds if on[k] else odds))):
            here = there
        else:
            on[k] = not on[k]


@compiled
def evidence(L: np.ndarray, b: np.ndarray, on: np.ndarray, slab: float) -> float:
    """Return ln p(y | omega, bits) up to a constant, the weights integrated out, by Cholesky."""
    used = np.flatnonzero(on)
    S, total = len(used), 0.0
    root, half = np.zeros((S, S)), np.zeros(S)
    for i in range(S):
        for j in range(i):
            root[i, j] = (L[used[i], used[j]] - root[i, :j] @ root[j, :j]) / root[j, j]
        root[i, i] = np.sqrt(L[used[i], used[i]] - root[i, :i] @ root[i, :i])
        half[i] = (b[used[i]] - root[i, :i] @ half[:i]) / root[i, i]
        total += half[i] ** 2 / 2.0 - np.log(root[i, i] * slab)
    return total


def judged(draws: np.ndarray, A: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the largest R-hat and the fewest effective draws of what is quoted."""
    used = (draws != 0.0).mean(axis=(0, 1)) > SELDOM
    eta = draws @ A.T
    likelihood = -np.logaddexp(0.0, np.where(y == 1, -eta, eta)).sum(axis=-1)
    count = (draws[..., 1:] != 0.0).sum(axis=-1).astype(float)
    every = np.concatenate([draws[..., used], likelihood[..., None], count[..., None]], axis=-1)
    effective = [chains.ess(every, kind).min() for kind in ("bulk", "tail")]
    return float(np.max(chains.rhat(every))), float(min(effective))
