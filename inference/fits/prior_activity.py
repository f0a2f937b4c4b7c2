"""What the prior says of which features and samples are active, beside which the posterior stands.

A number of active features that only repeats the prior says nothing about the data. So the prior's
own numbers are simulated, with the posterior's definition and at the problem's own inputs: the
expected number, its interval, and P(active). For a prior that was asked for by `active_features`
the number is near to that one; other priors have it only from here. The seed is fixed, so equal
problems have equal numbers.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from ardvark.common.validate import InputError
from ardvark.models import Problem

from .activity import activity, needed

DRAWS, FEWEST = 400, 100
"""Draws of the prior, most and fewest. The mean of a number with sd 5 has an error of 0.25, 0.5."""
ROWS = 200
"""Rows over which standard deviations are taken, at most: their relative error is then 5 %."""
_NUMBERS, _COST = 4e5, 1e10  # weights that are simulated, and multiply-adds of their effects
_MOST = 8  # answers that are remembered: 10 MB each where there are 100 000 features


@dataclass(frozen=True, eq=False)
class PriorActivity:
    """What is active in draws of the prior.

    Attributes
    ----------
    active : dict of array of bool (draws, k)
        By "feature" and "sample".
    curve : dict of array (sizes, k)
        P(|effect| > t) at `activity.SIZES`.
    alike : dict of array of bool (k,)
        Which have the same prior and the same scale, and so nearly the same P(active).
    """

    active: dict[str, np.ndarray]
    curve: dict[str, np.ndarray]
    alike: dict[str, np.ndarray]

    def probability(self, what: str) -> tuple[np.ndarray, np.ndarray]:
        """Return P(active) under the prior (k,), of those that are alike their mean, and its error.

        The error (k,) is that of so many draws of the prior.
        """
        on, same = self.active[what], self.alike[what]
        p, error = on.mean(axis=0), on.std(axis=0) / np.sqrt(len(on))
        if same.any():
            share = on[:, same].mean(axis=1)  # of those that are alike, in each draw
            p = np.where(same, share.mean(), p)
            error = np.where(same, share.std() / np.sqrt(len(on)), error)
        return p, error

    def over_sizes(self, what: str) -> np.ndarray:
        """Return P(|effect| > t) under the prior (sizes, k), of those that are alike their mean."""
        curve, same = self.curve[what], self.alike[what]
        if same.any():
            curve = np.where(same, curve[:, same].mean(axis=1, keepdims=True), curve)
        return curve

    def number(self, what: str) -> tuple[float, float, float]:
        """Return the mean number of active ones, and its 5 % and 95 % quantiles."""
        counts = self.active[what].sum(axis=1)
        low, high = np.quantile(counts, (0.05, 0.95), method="inverted_cdf")
        return float(counts.mean()), float(low), float(high)


_KNOWN: dict[Hashable, PriorActivity | None] = {}


def prior_activity(problem: Problem, threshold: float) -> PriorActivity | None:
    """Return what is active under the prior of a problem; None if it cannot be simulated.

    The last few answers are remembered, also for a problem that is made again.

    Parameters
    ----------
    problem : Problem
    threshold : float
        The effect above which a feature or a sample is active.
    """
    # the form too: it decides in which order random numbers are drawn
    key = (problem.spec.simulate, problem.fingerprint, problem.form, threshold)
    if key in _KNOWN:
        return _KNOWN[key]
    found = _simulated(problem, threshold)
    if len(_KNOWN) >= _MOST:
        _KNOWN.pop(next(iter(_KNOWN)), None)
    _KNOWN[key] = found
    return found


def _simulated(problem: Problem, threshold: float) -> PriorActivity | None:
    rng, names = np.random.default_rng(0), needed(problem)
    N, B, D = problem.data.N, len(problem.basis), problem.D
    rows = np.linspace(0, N - 1, min(N, ROWS)).astype(int)
    kernel = problem.kernel
    cost = 0.0 if kernel is None else kernel.feature_cost(float(len(rows) * B * D))
    count = int(np.clip(min(_NUMBERS / (B + D), _COST / max(cost, 1.0)), FEWEST, DRAWS))
    one = problem.at(problem.data.X[:1])  # the weights do not depend on the rows
    try:
        with np.errstate(all="ignore"):  # a prior without a slab may overflow
            points = [problem.simulate(rng, one) for _ in range(count)]
            draws = {n: np.stack([np.asarray(p[n], dtype=float) for p in points])[None]
                     for n in names}  # fmt: skip
            found = activity(problem, draws, threshold, details=False, rows=rows)
    except InputError:
        return None
    # labels in the basis favour the features that tell the classes apart
    shared = problem.spec.learns_theta and not problem.spec.labels_in_basis
    same = np.isclose(problem.X.std(axis=0), 1.0) & shared
    alike = {"feature": same, "sample": np.zeros(B, dtype=bool)}
    return PriorActivity(
        {what: of.active[0] for what, of in found.items()},
        {what: of.curve for what, of in found.items()},
        alike,
    )
