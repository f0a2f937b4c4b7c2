"""What the prior number of features says about the posterior number, from the draws of one fit.

A sparse prior is asked for by `active_features`. With half or twice as many expected, it is filled
anew, p' in the place of p, and the likelihood stays. So the draws x of the one posterior have under
the other the importance ratio

    p'(T x) / p(x)      for each map T that has a constant Jacobian and keeps the likelihood.

p is the density of the paper's variables with precisions and latent noise integrated out
(`Problem.log_prior`): how a form stores or scales its variables, their Jacobians cancel.

A ratio of D + B weights has hopeless tails, so T takes out what it can. Anew, the scale of the
feature weights v is s' for s and that of the sample weights a is r' for r, often in opposite
directions. Under a linear kernel eta is made of products v_d a_j, so

    v -> v / c,  a -> c a,  and a learned scale  g -> g s / (c s')

keep eta, and what is active, for every c. With c = r' / r each a has the ratio 1, apart from its
slab, and with c = s / s' each v has: the more numerous ones are taken. If g is learned, c is
r' / r, which leaves only g and the slabs in the ratio. Under other kernels c is 1, and so it is
under 1 + x'diag(v) z, where the bias would have to make up for the sum of a. In the horseshoe tau's
scale alone moves: the ratio of two half-Cauchy densities, which is bounded.

Pareto smoothing (Vehtari, Simpson, Gelman, Yao, Gabry 2024, J. Mach. Learn. Res. 25; ArviZ) makes
weights of the ratios, and its k-hat says whether these draws can tell at all. Nor can they where
their weights are worth fewer than 100 equal ones, 1 / sum w^2: at k-hat 0.63 and 92 the number was
measured three errors from a refit's.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError
from ardvark.models import Problem

from ..fits import chains
from ..fits.activity import Activity, Point, activity
from ..fits.datatree import by_pieces, check_same, group
from ..fits.diagnostics import khat_limit, smoothed
from ..fits.selection import PROBABILITY, lacking, weights_of

FACTORS = (0.5, 0.8, 1.25, 2.0)
_WORDS = {0.5: "half", 2.0: "twice"}
_NAMED = 6  # features named
FEWEST = 100
"""Draws below which a k-hat says nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class PriorNumber:
    """What `prior_number` found.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per factor, 1 first. `expected` is the prior number asked for, `active` the
        posterior mean number of active features and `mcse` its Monte Carlo error. `mean_change` and
        `largest_change` say how far P(y = 1) of the training rows moves, and `rise` and `fall` name
        the features whose P(active) is above 0.5 only then, or no longer. `khat` is that of the
        weights, and `effective` their effective number. Where `reason` is not "", the draws cannot
        tell, and the rest is missing.
    """

    table: pd.DataFrame

    def __repr__(self) -> str:
        return textwrap.fill(self.text(), 80)

    def text(self) -> str:
        """Return, below and above 1, the farthest that the draws can tell, and what they cannot."""
        base, rest = self.table.loc[1.0], self.table.drop(index=1.0).sort_index()
        sides = rest[rest.index < 1.0], rest[rest.index > 1.0][::-1]  # the farthest first
        known = pd.concat([side[side["reason"] == ""][:1] for side in sides])
        said = []
        if len(known):
            asked = " or ".join(_word(f, n) for f, n in known["expected"].items())
            found = " or ".join(
                f"{r['active']:.1f} +- {r['mcse']:.1f}" for _, r in known.iterrows()
            )
            moves = [
                f"{_listed(row[how])} {where} with {row['expected']:.3g}"
                for _, row in known.iterrows()
                for how, where in (("rise", "above"), ("fall", "no longer"))
                if row[how]
            ]
            said += [
                f"With {asked} as many features expected, the posterior has {found} active ones "
                f"instead of {base['active']:.1f} ({base['expected']:.3g} expected); P(y = 1) of a "
                f"training row moves by at most {known['largest_change'].max():.2f}; of "
                f"P(active) > {PROBABILITY}: {'; '.join(moves) or 'the same features'}."
            ]
        for factor, row in pd.concat([side[:1] for side in sides]).iterrows():
            if row["reason"]:
                said += [f"With {_word(factor, row['expected'])} as many: {row['reason']}"]
        return " ".join(said)


def _word(factor: Any, expected: float) -> str:
    return f"{_WORDS.get(factor, f'{factor:g} times')} ({expected:.3g})"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def prior_number(
    problem: Problem, tree: xr.DataTree, factors: Sequence[float] = FACTORS
) -> PriorNumber:
    """Return the posterior with fewer or more features expected, without a refit.

    Parameters
    ----------
    problem : Problem
        Of a model with `active_features`, a number.
    tree : DataTree
        A Markov chain's fit of it, with all variables.
    factors : sequence of float
        Of the expected number.

    Returns
    -------
    PriorNumber

    Raises
    ------
    InputError
        The prior has no expected number of features, or the fit is of another problem, is no Markov
        chain's, or lacks variables.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("horseshoe", X, X[:, 0] + X[:, 1] > 0)
    >>> fit = av.fit(problem, "gibbs", draws=200, random_seed=0, progressbar=False)
    >>> print(av.prior_number(problem, fit).text())
    With half (0.667) or twice (2.67) as many features expected, the posterior has ...
    """
    number = vars(problem.hypers).get("active_features")
    if not isinstance(number, Real):
        raise InputError(f"this prior of {problem.spec.name!r} expects no number, active_features.")
    check_same(problem, tree)
    posterior, missing = group(tree, "posterior"), lacking(problem, tree)
    if missing or tree.attrs["kind"] not in ("mcmc", "reference"):
        raise InputError(
            f"draws of the posterior are needed, with {missing or 'no approximation'}."
        )
    found = activity(problem, weights_of(problem, posterior), details=False)["feature"]
    point = {str(name): values.values for name, values in posterior.items()}
    labels = np.exp(problem.log_likelihood(point, point["eta"]))  # P(y_n), of the true class
    equal = np.ones(labels.shape[:2]) / labels[..., 0].size
    base = _Seen.of(equal, found, labels)
    rows: dict[float, dict[str, Any]] = {}
    for factor in dict.fromkeys((1.0, *map(float, factors))):
        row = rows[factor] = {"expected": factor * float(number), "reason": ""}
        weights, row["khat"] = equal, -np.inf
        if factor != 1.0:
            try:
                variant = problem.with_hypers(active_features=row["expected"])
            except InputError as error:
                row |= {"reason": str(error), "khat": np.nan}
                continue
            weights, row["khat"] = smoothed(log_ratios(problem, variant, point))
        row["effective"] = min(_worth(weights), _worth(weights[:, :: found.thin]))
        enough = row["khat"] < khat_limit(weights.size) and row["effective"] >= FEWEST
        if factor == 1.0 or enough:
            row |= _Seen.of(weights, found, labels).beside(base, problem.coords["feature"])
        else:
            khat = f"k-hat {row['khat']:.2f}, " if np.isfinite(row["khat"]) else ""
            row["reason"] = (
                f"these draws cannot tell ({khat}worth "
                f"{row['effective']:.0f} of {weights.size} draws); a refit can, "
                f"ardvark.fit(problem.with_hypers(active_features={row['expected']:g}))."
            )
    return PriorNumber(pd.DataFrame.from_dict(rows, orient="index").rename_axis("factor"))


def _worth(weights: np.ndarray) -> float:
    """Return how many equal weights these are worth; 0 where no draw has any."""
    return float(weights.sum() ** 2 / (np.square(weights).sum() or np.inf))


class _Seen(NamedTuple):
    """What weighted draws say: the number active with its error, P(active), P(true class)."""

    active: float
    mcse: float
    p: np.ndarray
    true: np.ndarray

    @classmethod
    def of(cls, weights: np.ndarray, found: Activity, labels: np.ndarray) -> Self:
        share = weights[:, :: found.thin] / weights[:, :: found.thin].sum()
        counts = found.counts[:, :: found.thin]
        mean = float((share * counts).sum())
        moved = share.size * share * (counts - mean)  # the delta method's, whose mean is 0
        mcse = float(chains.mcse(moved[..., None], "mean")[0])
        p = np.einsum("cd,cdk->k", share, found.active)  # no copy of them all as floats
        return cls(mean, mcse, p, np.tensordot(weights, labels))

    def beside(self, base: Self, names: Sequence[str]) -> dict[str, Any]:
        """Return a row of the table."""
        change = np.abs(self.true - base.true)
        on, before = (seen.p > PROBABILITY for seen in (self, base))
        return {
            "active": self.active,
            "mcse": self.mcse,
            "mean_change": change.mean(),
            "largest_change": change.max(),
            "rise": tuple(np.array(names)[on & ~before].tolist()),
            "fall": tuple(np.array(names)[before & ~on].tolist()),
        }


def log_ratios(problem: Problem, variant: Problem, point: Point) -> np.ndarray:
    """Return log p'(T x) - log p(x) (chain, draw), but for a constant, at draws x of `problem`."""

    def ratios(x: Point) -> dict[str, np.ndarray]:
        new, old = variant.log_prior(mapped(problem, variant, x)), problem.log_prior(x)
        return {"": np.asarray(sum(new.values()) - sum(old.values()))}

    return by_pieces(ratios, point)[""]


def mapped(problem: Problem, variant: Problem, point: Point) -> dict[str, np.ndarray]:
    """Return T x: the draws on the scale of another prior, with the same eta."""
    old, new = (p.hypers.weight_priors() for p in (problem, variant))
    grown = {name: new[name].scale / old[name].scale for name in old}
    a, v, scale = "sample_weight", "feature_weight", problem.hypers.learned_scale
    c, out = 1.0, dict(point)
    if problem.kernel is not None and problem.kernel.is_linear:
        samples = scale is not None or len(problem.basis) >= problem.D
        c = grown[a] if samples else 1.0 / grown[v]
        out[v] = point[v] / c
        out |= {n: point[n] * c for n in (a, "w") if n in point}  # in PFCVM a = s w, and w is kept
    if scale is not None:
        out[scale] = point[scale] / (c * grown[v])
    return out
