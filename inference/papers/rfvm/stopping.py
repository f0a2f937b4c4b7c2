"""When the RFVM's variational Bayes stops: rules that detect drifting weights.

The ELBO stops changing long before the weights do. Under the hyperparameters of the released code,
a weight that will vanish shrinks by about a thousandth per sweep, for thousands of sweeps until it
is pruned. On colon_discrete, all 2000 weights remain for 3000 sweeps while the ELBO of -5e4 changes
by 1e-3 per sweep. After 2000 more sweeps, five are left.

So q is compared with its value at an earlier sweep s, the reference. The reference is moved to the
current sweep t whenever

- pruning has left another set of weights;
- the root mean square of a weight, <v_d^2>^1/2 or <a_j^2>^1/2, as a share of the largest of its
  kind, differs by more than `DRIFT`;
- a fitted probability differs by more than `DRIFT`, or the ELBO by more than tolerance^1/2 of its
  value;
- if weights are pruned: one has shrunk by more than `DRIFT` of its own size, or would be pruned
  within as many sweeps again, at its mean rate since s.

q has settled at the first t >= 1.5 s, t >= s + 20, at which the last sweep did not change the ELBO
and the fitted probabilities either. The window is a third of the run. So a decay like t^-p before a
pruning is detected however late it is (for p > 0.13). What converges by a constant
factor per sweep has had t / 3 more sweeps since the remaining distance was `DRIFT`. The price is at
most half as many sweeps again. Precisions are not compared separately: each is shape / (rate + half
the mean square) of its weight. The scale r of (r v, a / r), on which no probability depends, is
judged by the ELBO only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .factors import Factors

DRIFT = 0.05
"""The largest change that is no drift: of a weight, as a share of the largest, or of a fitted
probability."""
_SHORTEST = 20  # the shortest window, in sweeps
_PART = 0.5  # the shortest window, as a share of the sweeps up to the reference


@dataclass(frozen=True, eq=False)
class Weights:
    """The remaining weights of one kind, their rms as a share of the largest, and the threshold.

    `size` is |mean| as a share of the largest, which is compared with the threshold for pruning.
    """

    index: np.ndarray
    scaled: np.ndarray
    size: np.ndarray
    threshold: float

    @classmethod
    def of(
        cls, index: np.ndarray, mean: np.ndarray, square: np.ndarray, threshold: float
    ) -> Weights:
        """Return the weights `index` of these means and mean squares."""
        size = np.abs(mean)
        largest = max(float(size.max()), 1e-300)  # every mean is 0 where every feature is constant
        return cls(index, np.sqrt(square / square.max()), size / largest, threshold)

    def drift(self, now: Weights, ahead: float) -> str:
        """Return a description of what has changed; "" if nothing has.

        `ahead` is the number of windows over which the decay of a weight is extrapolated.
        """
        if not np.array_equal(self.index, now.index):
            return f"{len(self.index)} became {len(now.index)} by pruning"
        gap = float(np.abs(now.scaled - self.scaled).max())
        if gap > DRIFT:
            return f"one changed by {gap:.2g} of the largest"
        if now.threshold == 0.0:
            return ""
        ratio = np.ones_like(now.size)
        np.divide(now.size, self.size, out=ratio, where=self.size > now.size)
        count = int(np.sum((ratio < 1.0 - DRIFT) | (now.size * ratio**ahead < now.threshold)))
        return f"{count} shrank towards the pruning threshold" if count else ""


@dataclass(frozen=True, eq=False)
class State:
    """What is stored of q at one sweep, to detect drift.

    `fitted` (N,) are the fitted probabilities.
    """

    sweep: int
    features: Weights
    samples: Weights
    fitted: np.ndarray
    elbo: float

    @classmethod
    def of(cls, q: Factors, sweep: int, elbo: float, prunes: bool) -> State:
        """Return what is stored of the current q."""
        limits = q.shares if prunes else (0.0, 0.0)
        features = Weights.of(q.features, q.v, q.v**2 + q.var_v, limits[0])
        samples = Weights.of(q.samples, q.a, np.diag(q.A), limits[1])
        return cls(sweep, features, samples, q.probabilities(), elbo)

    def moved(self, now: State) -> tuple[float, float]:
        """Return the largest changes of the ELBO (relative) and of a fitted probability."""
        bound = abs(now.elbo - self.elbo) / max(1.0, abs(now.elbo))
        return bound, float(np.abs(now.fitted - self.fitted).max())

    def drift(self, now: State, tolerance: float) -> str:
        """Return a description of what has changed by more than is allowed; "" if nothing has."""
        for what, old, new in (
            ("feature", self.features, now.features),
            ("sample", self.samples, now.samples),
        ):
            found = old.drift(new, now.sweep / (now.sweep - self.sweep))
            if found:
                return f"of the {what} weights {found}"
        bound, fitted = self.moved(now)
        if fitted > DRIFT:
            return f"a fitted probability changed by {fitted:.2g}"
        if bound > tolerance**0.5:
            return f"the ELBO changed by {bound:.1e} of its value"
        return ""


class Watch:
    """The states of a run as they arrive: the reference, and what last drifted away from it."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.reference: State | None = None
        self.last: State | None = None
        self.bound = self.fitted = np.inf
        self.drifted = ""

    def add(self, now: State) -> bool:
        """Add the state after a sweep; return whether q has settled."""
        if self.reference is None or self.last is None:
            self.reference = self.last = now
            return False
        self.bound, self.fitted = self.last.moved(now)
        self.last = now
        drifted = self.reference.drift(now, self.tolerance)
        if drifted:
            self.drifted = f"between sweeps {self.reference.sweep} and {now.sweep} {drifted}"
            self.reference = now
        since = self.reference.sweep
        still = self.bound <= self.tolerance and self.fitted <= self.tolerance**0.5
        return still and now.sweep - since >= max(_SHORTEST, _PART * since)


def averaged(elbo: list[float], tolerance: float) -> bool:
    """Return whether the released code's rule would stop: the bound is close to the mean of 199."""
    return len(elbo) > 300 and abs(1.0 - float(np.mean(elbo[-200:-1])) / elbo[-1]) < tolerance
