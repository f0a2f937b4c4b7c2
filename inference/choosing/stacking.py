"""Stacking of predictive distributions: how much weight each candidate gets in a mixture.

With p_nk, the probability that candidate k gave to the label of row n without having seen it, the
weights maximise the mean log score of the mixture (Yao, Vehtari, Simpson, Gelman 2018, Using
stacking to average Bayesian predictive distributions, Bayesian Analysis 13(3)):

    F(w) = sum_n s_n log sum_k w_k p_nk     w_k >= 0, sum_k w_k = 1

where s_n = 1 / N. F is concave. With its gradient g_k = sum_n s_n p_nk / sum_l w_l p_nl, which has
sum_k w_k g_k = sum_n s_n = 1, any other weights v have

    F(v) - F(w) <= sum_k g_k (v_k - w_k) <= max_k g_k - 1

So `gap`, the right-hand side, bounds what w lacks to the best score, and w is optimal if and only
if no g_k is above 1.

How certain the weights are is asked of the Bayesian bootstrap (Rubin 1981): the shares s are drawn
from Dirichlet(1, ..., 1), and each draw has weights of its own. A row that was held out R times, in
R partitions, has R terms, each with s_n / R.

The score of the stack itself is that of rows which its weights have not seen: those of a fold are
predicted with the weights of all other rows.
"""

import numpy as np

GAP = 1e-8
"""What weights may lack to the best mean log score."""
_STEPS = 200  # of the solver; 15 to 30 are usual
_INSIDE = 0.995  # share of the way to the boundary that a step may go


def stack(log_p: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
    """Return the weights that maximise the mean log score of the mixture, within `GAP`.

    Two equal candidates get equal weights, though every other division of their sum is as good.

    Parameters
    ----------
    log_p : array (T, K)
        Log probability of the label of each held-out term under each candidate.
    shares : array (T,) or (S, T), optional
        Shares s of the terms, which sum to 1; 1 / T by default. With S rows of them, S problems.

    Returns
    -------
    array (K,) or (S, K)

    Notes
    -----
    A primal-dual interior point method. Without the constraint on the sum, the maximum of
    F(w) - sum_k w_k over w >= 0 has the sum 1 by itself. Its conditions are g_k - 1 + z_k = 0 with
    z_k >= 0 and w_k z_k = 0. The last is relaxed to w_k z_k = mu, and mu goes to 0.
    """
    T, K = log_p.shape
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))  # F moves by a constant
    s = np.full((1, T), 1.0 / T) if shares is None else np.atleast_2d(shares)
    products = (p[:, :, None] * p[:, None, :]).reshape(T, K * K)
    w, z = np.full((len(s), K), 1.0 / K), np.ones((len(s), K))
    for _ in range(_STEPS):
        mixed = w @ p.T
        g = (s / mixed) @ p
        if (_gap(w, p, s) <= GAP).all():
            break
        mu = 0.1 * (w * z).mean(axis=1, keepdims=True)
        curvature = ((s / mixed**2) @ products).reshape(-1, K, K)
        curvature[:, range(K), range(K)] += z / w
        dw = np.linalg.solve(curvature, (g - 1.0 + mu / w)[..., None])[..., 0]
        dz = (mu - z * dw) / w - z
        w, z = w + _length(w, dw) * dw, z + _length(z, dz) * dz
    else:
        raise ArithmeticError("the weights of the stack have not converged")
    w = w / w.sum(axis=1, keepdims=True)
    return w[0] if shares is None or shares.ndim == 1 else w


def _length(x: np.ndarray, dx: np.ndarray) -> np.ndarray:
    """Return how far (S, 1), at most 1, a step may go so that positive numbers stay positive."""
    with np.errstate(divide="ignore"):
        most = np.where(dx < 0.0, -x / dx, np.inf).min(axis=1, keepdims=True)
    return np.minimum(1.0, _INSIDE * most)


def gap(weights: np.ndarray, log_p: np.ndarray, shares: np.ndarray | None = None) -> float:
    """Return what weights (K,) lack at most to the best mean log score: max_k g_k - 1."""
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    s = np.full(len(p), 1.0 / len(p)) if shares is None else shares
    return float(_gap(weights[None], p, s[None])[0])


def _gap(w: np.ndarray, p: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return the gap (S,) of weights (S, K), scaled to the sum 1."""
    w = w / w.sum(axis=1, keepdims=True)
    return ((s / (w @ p.T)) @ p).max(axis=1) - 1.0


def mixture(weights: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """Return the log probability (...,) under mixtures of candidates (..., K)."""
    top = log_p.max(axis=-1)
    return top + np.log((np.exp(log_p - top[..., None]) * weights).sum(axis=-1))


def terms(log_p: np.ndarray) -> np.ndarray:
    """Return rows (N, R, K) of R partitions as terms (N R, K), those of a row together."""
    return log_p.reshape(-1, log_p.shape[-1])


def bootstrap(log_p: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return draws (S, K) of the weights by the Bayesian bootstrap over rows.

    Parameters
    ----------
    log_p : array (N, R, K)
        Log probabilities of the labels of N rows, each held out in R partitions.
    draws : int
        S.
    rng : Generator
    """
    N, R, _ = log_p.shape
    drawn = shares(N, draws, rng)
    return stack(terms(log_p), np.repeat(drawn / R, R, axis=1))


def shares(N: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return draws (S, N) from Dirichlet(1, ..., 1): exponentials over their sum."""
    drawn = rng.standard_exponential((draws, N))
    return drawn / drawn.sum(axis=1, keepdims=True)


def left_out(log_p: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Return for each row the weights (N, R, K) of a stack that has not seen its fold.

    They come from all terms of the rows outside the fold.

    Parameters
    ----------
    log_p : array (N, R, K)
        Log probabilities of the labels.
    folds : array (N, R)
        The fold of each row in each partition.
    """
    out = np.empty_like(log_p)
    for r in range(folds.shape[1]):
        for fold in np.unique(folds[:, r]):
            inside = folds[:, r] == fold
            out[inside, r] = stack(terms(log_p[~inside]))
    return out
