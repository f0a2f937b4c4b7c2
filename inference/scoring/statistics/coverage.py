"""The share of the posterior in a fit's own central intervals; a smaller one is overconfident.

The posterior is given by the draws of the reference. Of 50 % intervals the mean over components is
read, which sees wrong shapes; of 90 % intervals the worst component. It is a share, so its noise is
bounded whatever the tails.

Noise. With R and F for the distribution functions of the reference's and the fit's draws, and I for
the fit's interval, the distance is R(I) - F(I). To first order it is that of the interval of the
law itself: an average over both sets of draws, as in `floors.py`. To second order it is skewed. Of
M independent draws, the law's mass between two of them has a Beta distribution; of that mass, E
draws of the reference count a binomial share. So of a share s the difference has the cumulants

    s (1 - s) (1 / M + 1 / E)    and    s (1 - s) (1 - 2 s) (1 / M + 1 / E) (2 / M + 1 / E),

and the normal deviations are bent by Cornish and Fisher's expansion: the lowest of many shares is
farther off than the highest.
"""

from functools import partial
from typing import Literal

import numpy as np

from ..draws import Draws, ReferenceDraws
from ..floors import OfAverage, floor, scale, size
from ..statistic import UNKNOWN, Statistic


def interval(draws: Draws, share: float) -> np.ndarray:
    """Return the ends (2, K) of the central interval that contains a given share of draws."""
    tail = 0.5 * (1.0 - share)
    return draws.once(
        ("interval", share), lambda: np.quantile(draws.flat, (tail, 1.0 - tail), axis=0)
    )


def inside(draws: Draws, ends: np.ndarray) -> np.ndarray:
    """Return which draws (S, K) lie in the closed intervals with these ends (2, K)."""
    low, high = ends
    return (draws.flat >= low) & (draws.flat <= high)


def coverage(fit: Draws, reference: Draws, share: float) -> np.ndarray:
    """Return the share (K,) of the reference in the fit's interval; NaN for a single draw."""
    if len(fit.flat) < 2:
        return np.full(fit.mean.shape, np.nan)
    within = inside(reference, interval(fit, share)).mean(axis=0)
    return np.where(reference.sd == 0.0, np.nan, within)


def _inside(reference: ReferenceDraws, share: float) -> np.ndarray:
    """Return which of the reference's own draws lie in its intervals, (S, k)."""
    return inside(reference, interval(reference, share))[:, reference.moves].astype(float)


def declared(name: str, share: float, over: Literal["mean", "worst"]) -> Statistic:
    """Return the statistic for the central interval that contains a given share."""
    terms = OfAverage(partial(_inside, share=share))

    def expected(fit: Draws, reference: ReferenceDraws) -> np.ndarray:
        """Return the coverage (K,) that the fit would have if it is right.

        If draws repeat, a closed interval holds more of its own law than 50 and 90 %: what it holds
        of the fit. Other draws fall less often into an interval whose ends are quantiles of M
        draws: that from the first to the last draw has M - 1 of the M + 1 gaps. M is the effective
        number of draws for the share itself.
        """
        own = np.maximum(share, inside(fit, interval(fit, share)).mean(axis=0))
        M = size(fit, reference, terms.known(reference)[1])
        return own * max(0.0, 1.0 - 2.0 / (M + 1.0))

    def noise(_: Statistic, fit: Draws, reference: ReferenceDraws) -> tuple[float, float]:
        """Return floor and median of the deviation of a second run."""
        blocks, own = terms.known(reference)
        if blocks is None:
            return UNKNOWN
        r = scale(fit, reference, own)  # 4 r^2 = 1 + E / M
        shift = r * reference.once((name, "halves"), lambda: reference.contrast @ blocks)
        skew = (1.0 - 2.0 * share) / (6.0 * share * (1.0 - share)) * (2.0 - 1.0 / (4.0 * r * r))
        bent = shift + skew * (shift**2 - np.mean(shift**2, axis=0))  # (REPEATS, k)
        return floor(np.abs(bent).max(axis=1) if over == "worst" else np.abs(bent.mean(axis=1)))

    return Statistic(
        name=name,
        of="continuous",
        compute=partial(coverage, share=share),
        over=over,
        perfect=share,
        expected=expected,
        floor=noise,
    )


COVERAGE_50 = declared("coverage_50", 0.5, "mean")
COVERAGE_90 = declared("coverage_90", 0.9, "worst")
