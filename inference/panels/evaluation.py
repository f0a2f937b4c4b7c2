"""Log scores of submodels at rows that neither the search nor the posterior has seen.

Each fold's rows are predicted from the other rows alone: the posterior is fitted to those, the
features are searched with that posterior's predictions at those, and its draws are projected there.
A search on all rows whose result is then evaluated in folds has seen the labels of the rows that it
is evaluated on, and looks better than it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy import special

from ardvark.common.validate import InputError
from ardvark.data import Dataset
from ardvark.models import Problem

from ..fits.datatree import group, pointwise
from ..methods.prediction import predicted_draws, rows_of
from ..scoring.held_out import log_scores
from .clusters import Clusters, clustered
from .projection import design, project

DRAWS = 400
"""Draws that are projected onto a submodel that is evaluated, as in projpred."""
_KEPT = "panel"
"""The group of what is kept of a refit."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a fit predicts at its training rows, and the columns of submodels there.

    Attributes
    ----------
    p : array (S, N)
        P(y = 1) in at most `DRAWS` draws.
    clusters : Clusters
        Of all draws.
    X : array (N, D)
        Standardised features.
    always : array (N, a) or None
        Standardised columns that every submodel has.
    """

    p: np.ndarray
    clusters: Clusters
    X: np.ndarray
    always: np.ndarray | None = None

    @classmethod
    def of(cls, problem: Problem, tree: xr.DataTree) -> "Predictions":
        """Return those of a fit of a problem, or of what is `kept` of it."""
        known = group(tree, _KEPT)
        if "p" in known:
            clusters = Clusters(known["cluster"].values, known["weight"].values)
            return cls(known["p"].values, clusters, problem.X, problem.C)
        p = _by_draw(problem, tree)
        few = p[np.linspace(0, len(p) - 1, min(DRAWS, len(p))).round().astype(int)]
        return cls(few, clustered(p), problem.X, problem.C)

    def submodel(self, features: Sequence[int]) -> "Submodel":
        """Return the projection onto some features."""
        A = design(self.X[:, list(features)], self.always)
        mean = self.clusters.weight @ self.clusters.p
        return Submodel(project(self.p, A), project(mean[None], A)[0])


@dataclass(frozen=True, eq=False)
class Submodel:
    """A projection: coefficients of the intercept, the columns always in, and the features.

    Attributes
    ----------
    draws : array (S, K)
        Of each draw's projection.
    formula : array (K,)
        Of the projection of the posterior mean of P(y = 1): the one logistic regression that is
        nearest to the posterior.
    """

    draws: np.ndarray
    formula: np.ndarray

    def probability(self, A: np.ndarray) -> np.ndarray:
        """Return P(y = 1) (M,) at rows with the design A (M, K), averaged over the draws."""
        found: np.ndarray = special.expit(self.draws @ A.T).mean(0)
        return found


@dataclass(frozen=True, eq=False)
class Scores:
    """Log probabilities of the labels of M rows.

    Attributes
    ----------
    full : array (M,)
        By the full posterior.
    draws, formula : array (M, sizes)
        By submodels of each size: averaged over the draws' projections, and by the formula.
    y : array (M,)
        The labels.
    """

    full: np.ndarray
    draws: np.ndarray
    formula: np.ndarray
    y: np.ndarray

    def probability(self, at: int | None = None) -> np.ndarray:
        """Return P(y = 1) (M,) by the full posterior, or by the formula of a size at a place."""
        right = np.exp(self.full if at is None else self.formula[:, at])
        return np.where(self.y == 1, right, 1.0 - right)

    @classmethod
    def together(cls, parts: "Sequence[Scores]") -> "Scores":
        """Return those of all rows of some parts."""
        names = ("full", "draws", "formula", "y")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def kept(problem: Problem, rows: Dataset, tree: xr.DataTree) -> xr.DataTree:
    """Return of a fit what a panel needs: predictions of its own rows and of others, no draws.

    At 178 x 2905 that is a megabyte, and the draws are hundreds.
    """
    own = Predictions.of(problem, tree)
    found = {
        "p": (("draw", "obs"), own.p),
        "cluster": (("cluster", "obs"), own.clusters.p),
        "weight": (("cluster",), own.clusters.weight),
        "full": (("row",), _full(problem, tree, rows)),
    }
    groups = {"/posterior": xr.Dataset(), f"/{_KEPT}": xr.Dataset(found)}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=tree.attrs), **groups})


def _full(problem: Problem, tree: xr.DataTree, rows: Dataset) -> np.ndarray:
    """Return P(y = 1) (M,) of new rows by a fit, or by what is `kept` of it for these rows."""
    known = group(tree, _KEPT)
    if "full" in known:
        return known["full"].values
    return predicted_draws(problem, tree, rows).mean(axis=(0, 1))


def scored(
    problem: Problem,
    tree: xr.DataTree,
    rows: Dataset,
    path: Sequence[int],
    sizes: Sequence[int],
    predictions: Predictions | None = None,
) -> Scores:
    """Return the log scores at new rows of a fit and of its projections.

    Parameters
    ----------
    problem : Problem
        What was fitted.
    tree : DataTree
        The fit, or what is `kept` of it.
    rows : Dataset
        The new rows, in original units; columns are matched by name.
    path : sequence of int
        Features in the order of a search; a submodel has the first of them.
    sizes : sequence of int
        How many.
    predictions : Predictions, optional
        Of the fit, if they are there already.
    """
    known = predictions or Predictions.of(problem, tree)
    full = _full(problem, tree, rows)
    there = problem.at(rows_of(problem.data, rows, problem.always)[0])
    draws, formula = [], []
    for size in sizes:
        features = list(path[:size])
        submodel, A = known.submodel(features), design(there.X[:, features], there.C)
        draws.append(log_scores(rows.y, submodel.probability(A)))
        formula.append(log_scores(rows.y, special.expit(A @ submodel.formula)))
    stacked = np.stack(draws, axis=1), np.stack(formula, axis=1)
    return Scores(log_scores(rows.y, full), *stacked, rows.y)


def partition(
    y: np.ndarray, folds: int, seed: int, groups: Sequence[str] | None = None
) -> np.ndarray:
    """Return the fold (N,) of each row; each has its share of both classes.

    Rows of a group are in one fold, and then the shares are as near as groups allow.

    Raises
    ------
    InputError
        There are fewer than two folds, or fewer rows of a class than folds.
    """
    fewest = int(np.bincount(y, minlength=2).min())
    if not 2 <= folds <= fewest:
        raise InputError(
            f"folds must be from 2 to {fewest}, the number of rows of the smaller class, so that "
            f"each fold has both classes; got {folds!r}."
        )
    fold = np.empty(len(y), dtype=int)
    if groups is not None:
        from ardvark.data.groups import folds_of

        for k, held in enumerate(folds_of(y, groups, folds, 1, seed)):
            fold[held] = k
        return fold
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(np.flatnonzero(y == label)) for label in (0, 1)])
    fold[order] = np.arange(len(y)) % folds
    return fold


def _by_draw(problem: Problem, tree: xr.DataTree) -> np.ndarray:
    """Return P(y = 1) (S, N) of the training rows in each draw."""
    likelihood = pointwise(tree)
    if "y" in likelihood:
        own = np.exp(likelihood["y"].values.reshape(-1, problem.data.N))
        return np.where(problem.y == 1, own, 1.0 - own)
    return predicted_draws(problem, tree, problem.data).reshape(-1, problem.data.N)
