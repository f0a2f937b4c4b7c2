"""The quantities of calibration, their ranks, and how uniform the ranks are.

If a true value and L draws are exchangeable, the rank of the true value is uniform. Every replicate
ranks these quantities:

- every variable that model and posterior share: its first and last entry, and the mean of
  |x_k|^1/2, which accumulates an error of scale over all entries (for a mask: the share of bits
  on);
- the identified products theta_k (Z'a)_k, if both weights are free;
- functions of theta and y: the log likelihood, and that of the first label. Without them a sampler
  that ignores y and returns its prior would pass (Modrak et al. 2023, arXiv 2211.02383).

A rank needs no moments, so heavy tails are harmless. It is turned into a number

    u = (#{f_l < f} + U (#{f_l = f} + 1)) / (L + 1),    U uniform on [0, 1],

which is exactly uniform for any L, with ties (bits, counts) broken at random. Two
Kolmogorov-Smirnov tests examine each quantity over the replicates: one of u (a shift) and one of
|2u - 1| (a width). The smaller p-value is doubled, and Holm's correction covers the quantities.
`detectable` returns what they can detect.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import optimize, stats

from ardvark.models import Problem
from ardvark.models.spec import Point

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- what is looked at ----------------------------------------------------------------------------


def shared_names(problem: Problem, simulated: Point, drawn: Point) -> list[str]:
    """Return the variables that a simulation and a posterior both hold; constants are left out."""
    return [n for n in simulated if n in drawn and n not in ("y", *problem.spec.fixed)]


def quantities(
    problem: Problem, point: Point, y: np.ndarray, names: list[str]
) -> dict[str, np.ndarray]:
    """Return the test quantities of (point, y), each with the leading axes of the point.

    The point holds `eta` (..., N) and the variables to look at, `names`; y is (N,) or (..., N).
    """
    spec, eta = problem.spec, np.asarray(point["eta"])
    arrays = {n: np.asarray(point[n], dtype=float) for n in names}
    if "feature_weight" in names and "sample_weight" in names:
        arrays["product"] = arrays["feature_weight"] * (arrays["sample_weight"] @ problem.Z)
    log_likelihood = spec.log_predictive(y, eta, point, problem.hypers)  # (..., N)
    found = {
        "log likelihood": log_likelihood.sum(-1),
        "log likelihood[0]": log_likelihood[..., 0],
    }
    for name, x in arrays.items():
        if x.ndim < eta.ndim:
            found[name] = x
            continue
        found |= {f"{name}[{k}]": x[..., k] for k in sorted({0, x.shape[-1] - 1})}
        found[f"mean |{name}|^1/2"] = np.sqrt(np.abs(x)).mean(-1)
        if spec.dims.get(name) == ("obs",):  # latent noise, which ties theta to y
            found[f"mean s {name}"] = ((2.0 * y - 1.0) * x).mean(-1)
    # two ways to the same number may differ in the last digits, and would break a tie one way
    return {k: np.round(v, 10) for k, v in found.items()}


# --- ranks and their p-values ---------------------------------------------------------------------


def rank(value: np.ndarray, others: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return u (F,) of value (F,) among others (L, F), uniform if all L + 1 are exchangeable."""
    less, equal = (others < value).sum(0), (others == value).sum(0)
    return (less + rng.random(len(value)) * (equal + 1)) / (len(others) + 1)


def uniformity(u: np.ndarray) -> float:
    """Return the p-value of u (R,) being independent and uniform.

    It is twice the smaller of two exact Kolmogorov-Smirnov p-values, of u and of |2u - 1|. The
    second detects a wrong width that the first hardly detects: the deviations on the two sides of
    1/2 have opposite signs, and add up when folded.
    """
    folded = np.abs(2.0 * u - 1.0)
    return min(1.0, 2.0 * min(stats.kstest(v, "uniform").pvalue for v in (u, folded)))


def holm(p: np.ndarray) -> np.ndarray:
    """Return Holm's adjusted p-values (F,): valid whatever the dependence among the tests."""
    order = np.argsort(p)
    steps = (len(p) - np.arange(len(p))) * np.asarray(p)[order]
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def detectable(replicates: int, tests: int, level: float = 1e-4) -> tuple[float, float]:
    """Return the shift, and the factor of the sd, that half of all runs would detect.

    For a normal posterior, in its own standard deviations, and `tests` quantities at a corrected
    p-value of `level`. A shift d moves the distribution of u by up to 2 Phi(d/2) - 1, a factor c
    that of |2u - 1| by up to max_x |P(|Z| < c x) - P(|Z| < x)|; both are set equal to the
    Kolmogorov-Smirnov critical value.
    """
    critical = min(stats.kstwo.isf(level / (2 * tests), replicates), 0.99)
    x = np.linspace(0.0, 6.0, 2001)

    def excess(c: float) -> float:
        return float(2.0 * np.abs(stats.norm.cdf(c * x) - stats.norm.cdf(x)).max() - critical)

    return float(2.0 * stats.norm.ppf((1.0 + critical) / 2.0)), optimize.brentq(excess, 1.0, 1e4)


def as_normal(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much a normal posterior would have to be wrong to give such ranks.

    Draws of N(m + d c s, (c s)^2) in the place of N(m, s^2) give the true value the rank
    u = Phi(z) with z ~ N(-d, 1 / c^2). So d is minus the mean of z, and c one over its sd. Of L
    draws no |z| beyond Phi^-1(1 - 1 / L) is seen: an sd far too small looks larger than it is.

    Parameters
    ----------
    u : array (R, F)
        Ranks in (0, 1), of replicates of `sbc`.

    Returns
    -------
    tuple of array (F,)
        d, by how many of their own sds the draws are too high; c, their sd over the right one.
    """
    tiny = np.finfo(float).eps
    z = stats.norm.ppf(np.clip(u, tiny, 1.0 - tiny))
    return -z.mean(axis=0), 1.0 / z.std(axis=0, ddof=1)


LEVEL = 0.01
"""Probability of saying anything against a right method, all quantities together."""


@dataclass(frozen=True)
class Calibration:
    """Ranks of the test quantities over the replicates, and their interpretation."""

    names: tuple[str, ...]
    ranks: np.ndarray
    """u (R, F) of every replicate that did not fail."""
    reasons: tuple[str, ...]
    """Why each of the others failed."""
    draws: np.ndarray
    """L (R,), the number of draws each true value was ranked among."""
    seconds: float
    """Time of all replicates; the first one may compile."""
    name: str = ""
    """What was calibrated: the test, the model and the method."""
    unconverged: int = 0
    """The replicates whose fit says that it has not converged. They are ranked like the others: to
    drop them would select data sets."""

    @property
    def table(self) -> pd.DataFrame:
        """One row per quantity, smallest p-value first.

        In `sbc`, a `mean` of u below 1/2 says that the draws lie above the truth. A `width`, the
        mean of |2u - 1|, below 1/2 says that they spread too widely. `shift` and `sd_ratio` say by
        how much, if the posterior were normal (`as_normal`). In a joint test the end of the chain
        is ranked, and all signs are reversed. `holm` is corrected for all rows.
        """
        p = np.array([uniformity(u) for u in self.ranks.T])
        shift, ratio = as_normal(self.ranks)
        columns = {
            "mean": self.ranks.mean(0),
            "width": np.abs(2.0 * self.ranks - 1.0).mean(0),
            "shift": shift,
            "sd_ratio": ratio,
            "p_value": p,
            "holm": holm(p),
        }
        frame = pd.DataFrame(columns, index=pd.Index(self.names, name="quantity"))
        return frame.sort_values("p_value", kind="stable")

    @property
    def failed(self) -> int:
        """The number of replicates without ranks."""
        return len(self.reasons)

    @property
    def p_value(self) -> float:
        """The smallest p-value, corrected for the number of quantities; NaN without ranks."""
        return float(self.table["holm"].iloc[0]) if len(self.ranks) else float("nan")

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Return in words what is wrong and by how much, or what would have been detected."""
        done = f"{self.name}: {len(self.ranks)} replicates"
        done += f", of which {self.unconverged} have not converged" if self.unconverged else ""
        lines = [done + (f"; {self.failed} more failed: {self.reasons[0]}" if self.failed else "")]
        if len(self.ranks) < 2:
            return lines[0]
        table = self.table
        wrong = table[table["holm"] < LEVEL]
        shift, factor = detectable(len(self.ranks), len(table), LEVEL)
        if wrong.empty:
            lines.append(f"No error found in {len(table)} quantities (p = {self.p_value:.2g}).")
        else:
            lines.append(f"{len(wrong)} of {len(table)} quantities are wrong:")
        joint = self.name.startswith("joint")
        for name, row in wrong.iterrows():
            words = f"mean rank {row['mean']:.2f}" if joint else (
                f"the sd is {row['sd_ratio']:.2f} times the right one, and the draws are "
                f"{abs(row['shift']):.2f} sd too {'high' if row['shift'] > 0 else 'low'}"
            )  # fmt: skip
            lines.append(f"  {name}: {words} (p = {row['holm']:.1g})")
        lines.append(
            f"With this many replicates, a shift of {shift:.2f} sd, or an sd that is wrong by a "
            f"factor of {factor:.2f}, is detected half of the time."
        )
        return "\n".join(lines)

    def plot(self, most: int = 12) -> "Figure":
        """Draw how far the ranks are from uniform ones, the worst quantities first (`plots.py`).

        A correct method stays within the bands of all quantities with probability of at least
        1 - `LEVEL`.
        """
        from .plots import differences

        worst = {n: self.ranks[:, self.names.index(n)] for n in self.table.index[:most]}
        title = f"{self.name}: {len(self.ranks)} replicates"
        return differences(worst, 1.0 - LEVEL / len(self.names), title)
