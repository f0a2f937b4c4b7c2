"""Section 5 of the PFCVM paper: the KL of its posterior to its prior, and the bound of Theorem 1.

Jiang et al. (2019), doi 10.1145/3309541, sections 5.1 and 5.2. Both assume that the weights are
independent, each with a truncated normal posterior.
"""

import math
from typing import Any

import numpy as np

from ardvark.common.validate import InputError
from ardvark.models.parts.truncated_normal import truncated_moments


def kl_truncated(mode: Any, precision: Any, prior_precision: Any) -> np.ndarray:
    """Return KL(N+(m, 1/p) || N+(0, 1/p0)), PFCVM sec. 5.1, per weight; the arguments broadcast.

    N+(m, v) is a normal of mean m and variance v truncated to x >= 0. With t = m sqrt(p),
    h = phi(t) / Phi(t)::

        KL = (p0/p - 1 + ln(p/p0) + p0 m^2) / 2 + m h (p + p0) / (2 sqrt(p)) - ln(2 Phi(t))

    In the paper the square root inside the last term is missing. For t far from zero the terms grow
    like t^2 and cancel. So the same number is computed from the entropy H(t) and the second moment
    M2(t) of a unit normal at t truncated to x >= 0, which do not cancel::

        KL = p0/p M2(t) / 2 - ln(p0/p) / 2 + ln(pi/2) / 2 - H(t)

    Parameters
    ----------
    mode : array
        m, the location of the posterior normal; it may be below 0.
    precision, prior_precision : array
        p and p0, above 0. p is the posterior precision 1 / Sigma_kk, which is not the beta_k of
        the prior.
    """
    m, p, p0 = np.broadcast_arrays(mode, precision, prior_precision)
    if not (np.isfinite(m).all() and _all_positive(p) and _all_positive(p0)):
        raise InputError(
            "kl_truncated needs finite modes, and precisions that are finite and above 0."
        )
    ratio = p0 / p
    mean, variance, entropy = truncated_moments(m * np.sqrt(p))
    second = variance + mean**2
    return 0.5 * (ratio * second - np.log(ratio) + math.log(0.5 * math.pi)) - entropy


def vote(eta: np.ndarray) -> np.ndarray:
    """Return f (N,) = E_q[sign(eta)], from draws of eta (..., N): the vote, PFCVM (22).

    It lies in [-1, 1], and its sign is the predicted label.
    """
    return np.sign(eta).reshape(-1, np.shape(eta)[-1]).mean(axis=0)


def ramp_loss(margin: Any, c: float) -> np.ndarray:
    """Return l_c(margin) = min(1, max(0, 1 - margin / c)), which is never below the 0-1 loss."""
    return np.clip(1.0 - np.asarray(margin) / c, 0.0, 1.0)


def rademacher_bound(
    loss: float,
    kl: float,
    N: int,
    *,
    c: float,
    r: float = 2.0,
    g: float = 1.0,
    delta: float = 0.05,
) -> float:
    """Return the right-hand side of Theorem 1, PFCVM (23).

    With probability at least 1 - delta over N independent samples, for all q at once::

        P(s f(x) <= 0) <= loss + (2/c) sqrt(2 g~ / N) + sqrt((ln log_r(r g~/g) + ln(1/delta)/2) / N)
        g~ = r max(kl, g)

    f is the voting function (`vote`), s the label in {-1, +1}.

    The bound is not a guarantee for PFCVM. The theorem needs a prior, a basis and a kernel that are
    chosen without the data. PFCVM's basis centres and basis labels are the training set, and its
    prior is tuned on it. Values above 1 say nothing, but they allow the terms to be compared.

    Parameters
    ----------
    loss : float
        Mean of `ramp_loss(s * vote(eta), c)` over the training set.
    kl : float
        KL(q || prior), `kl_truncated` summed over sample and feature weights.
    N : int
        Number of training samples.
    c : float
        Margin of the loss. Only values in (0, 1] are useful, because f lies in [-1, 1].
    r, g : float
        The theorem's free constants, r > 1 (the paper prints r > 0) and g > 0, chosen beforehand.
    delta : float
        Probability that the bound fails.
    """
    checks = (
        ("loss", loss, 0.0 <= loss <= 1.0, "in [0, 1]"),
        ("kl", kl, 0.0 <= kl < math.inf, "finite and at least 0"),
        ("N", N, N >= 1, "at least 1"),
        ("c", c, 0.0 < c < math.inf, "finite and above 0"),
        ("r", r, 1.0 < r < math.inf, "above 1: it is the base of a logarithm and a growth factor"),
        ("g", g, 0.0 < g < math.inf, "finite and above 0"),
        ("delta", delta, 0.0 < delta < 1.0, "between 0 and 1"),
    )
    for name, value, good, expected in checks:
        if not good:
            raise InputError(f"{name} must be {expected}, got {value!r}.")
    capacity = r * max(kl, g)
    levels = math.log(math.log(r * capacity / g, r))
    confidence = math.sqrt((levels + 0.5 * math.log(1.0 / delta)) / N)
    return loss + 2.0 / c * math.sqrt(2.0 * capacity / N) + confidence


def _all_positive(x: np.ndarray) -> bool:
    return bool(((x > 0.0) & np.isfinite(x)).all())
