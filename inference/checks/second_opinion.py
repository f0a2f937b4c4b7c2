"""A second opinion: another exact sampler, from other starts, on the same posterior.

R-hat compares the chains of one sampler. A region that the sampler cannot reach from where its
chains start is missed by all of them, and R-hat does not see it. Another sampler moves in another
way: `nuts` and `mams` along gradients, `gibbs` by jumps. If both have converged and agree on
everything that may be quoted, they share what both cannot see, and no other error.

Means are compared by z = (a - b) / sqrt(error_a^2 + error_b^2), and so are standard deviations. The
largest |z| of K must stay below the quantile of a t distribution that K comparisons of one
posterior pass in 99 % of cases (Bonferroni). Its degrees of freedom are those of the estimated
Monte Carlo errors, ESS / 5 (`fits/mixing.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats

from ardvark.common.validate import InputError
from ardvark.models import Problem

from ..fits import chains
from ..fits.datatree import check_same, group
from ..fits.mixing import KNOWN
from ..fits.quotable import quotable
from ..methods.registry import prepare
from ..methods.run import compute
from ..samplers.exact.rule import SAMPLERS
from ..target.backend import Arrays
from ..target.sampling import Sampling
from ..target.target import Target

STATISTICS: tuple[Literal["mean"], Literal["sd"]] = ("mean", "sd")
ALARM = 0.01
"""Probability that two samplers of one posterior are said to disagree."""


@dataclass(frozen=True, eq=False)
class SecondOpinion:
    """What two exact samplers say about one posterior.

    Attributes
    ----------
    fit : xarray.DataTree
        The fit that was asked about, with the answer in ``attrs["second_opinion"]``.
    other : xarray.DataTree
        The fit by the other sampler.
    table : pandas.DataFrame
        One row a quantity and statistic: both values, their common error, and z; the largest
        `|z|` first.
    limit : float
        What the largest `|z|` must be below.
    """

    fit: xr.DataTree
    other: xr.DataTree
    table: pd.DataFrame
    limit: float

    @property
    def agrees(self) -> bool:
        """Whether both have converged, and no `|z|` reaches the limit."""
        converged = all(t.attrs["status"] == "finished" for t in (self.fit, self.other))
        return converged and bool(self.table["z"].abs().max() < self.limit)

    def text(self) -> str:
        """Return the answer in one sentence."""
        for tree, whose in ((self.fit, "the fit"), (self.other, "the other sampler")):
            if tree.attrs["status"] != "finished":
                return f"none: {whose} has not converged ({tree.attrs['reason']})"
        worst = self.table.iloc[0]
        return (
            f"{'agrees' if self.agrees else 'disagrees'}: of {len(self.table)} comparisons with "
            f"{self.other.attrs['sampler']} under seed {self.other.attrs['seed']} the largest |z| "
            f"is {abs(worst.z):.1f} (limit {self.limit:.1f}), of the {worst.statistic} of "
            f"{worst.quantity}"
        )

    def __repr__(self) -> str:
        """Return the answer."""
        return self.text()


def second_opinion(
    problem: Problem,
    fit: xr.DataTree,
    *,
    random_seed: int | None = None,
    progressbar: bool = True,
    **options: Any,
) -> SecondOpinion:
    """Sample the posterior by the other exact sampler, and compare all that may be quoted.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted.
    fit : xarray.DataTree
        A fit of it by `exact`, `nuts`, `mams` or `gibbs`. It stays as it is.
    random_seed : int, optional
        Of the other sampler. None: one more than the fit's.
    progressbar : bool
        Show each stage.
    **options
        Of `exact`, with which the other sampler runs.

    Returns
    -------
    SecondOpinion

    Raises
    ------
    InputError
        The fit is of another problem or not by an exact sampler, or no other one applies.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> problem = av.problem("sparse_probit", X, X[:, 0] > 0, scale="fixed")
    >>> asked = {"ess": 400, "progressbar": False}
    >>> fit = av.fit(problem, "exact", sampler="gibbs", random_seed=1, **asked)
    >>> opinion = av.second_opinion(problem, fit, **asked)
    >>> opinion.other.attrs["sampler"]
    'nuts'
    >>> opinion.table.columns.tolist()
    ['quantity', 'statistic', 'value', 'other', 'error', 'z']
    >>> opinion.agrees, opinion.text().split(":")[0]
    (True, 'agrees')
    """
    check_same(problem, fit)
    first = str(fit.attrs.get("sampler", fit.attrs.get("method")))
    if first not in SAMPLERS:
        raise InputError(
            f"a second opinion is about the exact posterior, and this fit is by {first!r}. "
            f"Exact are {', '.join(SAMPLERS)}, and exact, which picks one of them."
        )
    target = Target(problem)
    others = [n for n, s in SAMPLERS.items() if n != first and s.supports(target) is None]
    if not others:
        raise InputError(
            f"{first} is the only exact sampler for this model and kernel: no other can be asked."
        )
    seed = int(fit.attrs["seed"]) + 1 if random_seed is None else random_seed
    sampling = Sampling(
        draws=int(fit.attrs["draws"]),
        chains=int(fit.attrs["chains"]),
        seed=seed,
        keep=fit.attrs.get("keep", "all"),
        progressbar=progressbar,
    )
    other = compute(prepare("exact", target, {"sampler": others[0], **options}, sampling))
    table, limit = compared(problem, fit, other)
    own = fit.copy()
    opinion = SecondOpinion(own, other, table, limit)
    own.attrs["second_opinion"] = opinion.text()
    return opinion


def compared(problem: Problem, fit: xr.DataTree, other: xr.DataTree) -> tuple[pd.DataFrame, float]:
    """Return the comparisons of two fits of one problem, and the limit of |z|."""
    posteriors = [
        {str(n): v.transpose("chain", "draw", ...).values for n, v in group(t, "posterior").items()}
        for t in (fit, other)
    ]
    found = quotable(problem, posteriors)
    frames, least = [], np.inf
    for names in _alike(found):
        x = [np.stack([of[n].astype(float) for n in names], axis=-1) for of in found]
        moves = [(draws != draws[:1, :1]).any(axis=(0, 1)) for draws in x]
        differs = x[0][0, 0] != x[1][0, 0]
        kept = np.flatnonzero(moves[0] | moves[1] | differs)  # the rest is one number in both
        if not len(kept):
            continue
        sizes = [chains.ess(draws[..., own], "mean") for draws, own in zip(x, moves, strict=True)]
        least = min([least, *(float(size.min(initial=np.inf)) for size in sizes)])
        x, names = [draws[..., kept] for draws in x], [names[k] for k in kept]
        several = found[0][names[0]].dtype != bool
        for statistic in STATISTICS if several else STATISTICS[:1]:
            reduce = np.mean if statistic == "mean" else np.std
            value, other_value = (reduce(draws, axis=(0, 1)) for draws in x)
            error = np.hypot(*(chains.mcse(draws, statistic) for draws in x))
            row = {"quantity": names, "statistic": statistic, "value": value, "other": other_value}
            with np.errstate(divide="ignore"):  # never active here, always active there: infinite
                z = (value - other_value) / error
            frames.append(pd.DataFrame({**row, "error": error, "z": z}))
    table = pd.concat(frames, ignore_index=True)
    table = table.iloc[np.argsort(-table["z"].abs().to_numpy(), kind="stable")]
    limit = stats.t.isf(ALARM / (2 * len(table)), max(least / KNOWN, 2.0))
    return table.reset_index(drop=True), float(limit)


def _alike(found: Sequence[Arrays]) -> list[list[str]]:
    """Return the names in groups of equally many draws, bits apart from numbers."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for name, x in found[0].items():
        key = (x.dtype == bool, *(of[name].shape for of in found))
        groups.setdefault(key, []).append(name)
    return [*groups.values()]
