"""The prior of a binary mask of n bits, S of them on: three choices, in NumPy and in PyMC.

`fsklr.py` defines them (`mask_prior`): "independent", "shared" and "printed". Each is given with
the paper's probabilities integrated out, with its odds for one bit, and with a way to draw from it.
"""

import math
from typing import Any, Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import special

MaskPrior = Literal["independent", "shared", "printed"]


def log_mask_prior(mask: Any, a: float, mask_prior: MaskPrior) -> np.ndarray:
    """Return log p(mask), mask (..., n), integrated over the probabilities.

    FS-SKLR (19), FS-SKLR (20).
    """
    mask = np.asarray(mask)
    n, S = mask.shape[-1], mask.sum(-1)
    if mask_prior == "independent":
        # each bit is on with E[Beta(a/n, 1)] = a / (a + n)
        return S * np.log(a) + (n - S) * np.log(n) - n * np.log(a + n)
    if mask_prior == "shared":
        return special.betaln(S + a / n, n - S + 1) - special.betaln(a / n, 1)
    # C(n, S) B(S + a, n - S + 1) is proportional to Gamma(S + a) / Gamma(S + 1)
    return special.gammaln(S + a) - special.gammaln(S + 1) - special.logsumexp(_log_counts(n, a))


def mask_log_odds(S_others: Any, n: int, a: float, mask_prior: MaskPrior) -> np.ndarray:
    """Return the prior log-odds of one bit of a mask of n, given that S_others others are on."""
    S = np.asarray(S_others, dtype=float)
    if mask_prior == "independent":
        return np.full(S.shape, np.log(a / n))
    if mask_prior == "shared":
        return np.log((S + a / n) / (n - S))
    return np.log((S + a) / (S + 1))


def expected_selected(n: int, a: float, mask_prior: MaskPrior) -> float:
    """Return the prior mean of the number of bits that are on."""
    if mask_prior == "printed":
        return float(special.softmax(_log_counts(n, a)) @ np.arange(n + 1))
    return n * a / (a + n)


def _log_counts(n: int, a: float) -> np.ndarray:
    """Return log C(n, S) Gamma(S + a) / Gamma(S + 1), S = 0..n: FS-SKLR (21), FS-SKLR (22)."""
    S = np.arange(n + 1)
    log_choose = special.gammaln(n + 1) - special.gammaln(S + 1) - special.gammaln(n - S + 1)
    return log_choose + special.gammaln(S + a) - special.gammaln(S + 1)


def draw_mask(
    rng: np.random.Generator, n: int, a: float, mask_prior: MaskPrior
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a mask (n,) from its prior, and its probability if there is one."""
    if mask_prior == "printed":
        S = rng.choice(n + 1, p=special.softmax(_log_counts(n, a)))
        mask = np.zeros(n, dtype=np.int64)
        mask[rng.choice(n, S, replace=False)] = 1  # equal counts are equally probable
        return mask, None
    size = n if mask_prior == "independent" else None
    q = np.asarray(rng.random(size) ** (n / a))  # Beta(a/n, 1), by inverting its cdf
    return (rng.random(n) < q).astype(np.int64), q


def BinaryMask(name: str, n: int, a: Any, mask_prior: MaskPrior, **kwargs: Any) -> Any:
    """Mask of n bits under the shared or printed prior, its probability integrated out."""

    def printed_counts(a: Any) -> Any:
        S = pt.arange(n + 1, dtype="float64")  # gammaln of small integers would be float32
        return pt.gammaln(S + a) - 2 * pt.gammaln(S + 1) - pt.gammaln(n - S + 1)

    def logp(mask: Any, a: Any, like: Any) -> Any:
        S = mask.sum(axis=-1)
        if mask_prior == "shared":  # ln B(S + a/n, n - S + 1) - ln B(a/n, 1), B(a/n, 1) = n / a
            value = pt.gammaln(S + a / n) + pt.gammaln(n - S + 1) + pt.log(a / n)
            value -= pt.gammaln(n + 1 + a / n)
        else:
            total = pt.logsumexp(printed_counts(a)) + math.lgamma(n + 1)
            value = pt.gammaln(S + a) - pt.gammaln(S + 1) - total
        return pt.switch(pt.all(pt.eq(mask, 0) | pt.eq(mask, 1), axis=-1), value, -np.inf)

    def dist(a: Any, like: Any, size: Any) -> Any:
        if mask_prior == "shared":
            q = pm.Uniform.dist(0.0, 1.0, size=size) ** (n / a)
            return pm.Bernoulli.dist(p=q[..., None] + like)
        S = pm.Categorical.dist(logit_p=printed_counts(a), size=size)
        place = pm.Uniform.dist(pt.zeros_like(S)[..., None] + like, 1.0)
        rank = pt.argsort(pt.argsort(place, axis=-1), axis=-1)  # a uniform random order
        return pt.cast(rank < S[..., None], "int64")

    return pm.CustomDist(
        name,
        a,
        np.zeros(n),  # gives the number of bits
        logp=logp,
        dist=dist,
        signature="(),(n)->(n)",
        dtype="int64",
        class_name="BinaryMask",
        **kwargs,
    )
