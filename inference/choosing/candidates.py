"""What a table can be predicted by: models of the zoo, and plain classifiers beside them.

A candidate is named by one word, which is also what a person types:

    rfvm, horseshoe, ...          a model of the zoo
    pfcvm:kernel=rbf:slab=2       the same with hyperparameters
    l1, elastic_net, ridge        logistic regression with a penalty
    covariates                    ridge regression on the columns that are always in, alone
    share                         the share of y = 1 in the training rows, for every row

In Python it may also be a classifier or pipeline of scikit-learn that has `predict_proba`.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import sklearn
import xarray as xr
from sklearn.dummy import DummyClassifier
from sklearn.utils.metadata_routing import get_routing_for_object

from ardvark.common.validate import InputError, distinct, named, pairs
from ardvark.data import Dataset
from ardvark.models import ZOO, Problem, problem
from ardvark.models.always import columns_of

from ..fits.chains import mcse
from ..methods import run
from ..methods.prediction import log_probabilities, predicted_draws, rows_of
from ..methods.refits import Models, Sharing
from ..methods.registry import Plan
from ..scoring.penalised import PENALISED, SECONDS, penalised
from ..target.backend import FitFailed

Given = Any
"""A word, a dict of "model" and hyperparameters, or a classifier of scikit-learn."""
Row = dict[str, Any]
"""What a candidate says of a fold: `log_p`, the log probabilities (M, 2) of y = 0 and y = 1;
`error`, the Monte Carlo error of the sum of those of the labels; `status` and `reason` of the fit;
`seconds`, without compilation."""
SHARE = "share"
COVARIATES = "covariates"
BASELINES = (*PENALISED, SHARE, COVARIATES)
DEFAULT = ("rfvm", "jcfo", "fsklr", "horseshoe", *PENALISED, SHARE)
"""Three of the papers' models and the horseshoe, with their default kernels. PFCVM, whose
predictions are near to RFVM's, is left out. With columns that are always in, `COVARIATES` is one of
them: whether the features say more than these do."""


@dataclass(frozen=True)
class Zoo:
    """A model of the zoo, whose hyperparameters are filled for the rows it is given.

    Attributes
    ----------
    asked : dict
        "model", and hyperparameters by name.
    plan : Plan, optional
        How it is fitted.
    """

    asked: Mapping[str, Any]
    plan: Plan | None = None

    def problem(self, train: Dataset) -> Problem:
        """Return the problem of training rows, standardised by them."""
        return problem(data=train, **self.asked)

    def predict(self, train: Dataset, held: Dataset, seed: int, models: Models) -> Row:
        """Fit training rows as planned, and average the predictions of others over the posterior.

        `models` are those that are compiled, for problems of equal sizes.
        """
        assert self.plan is not None
        own = Sharing.of(self.problem(train), models)
        tree = run.compute(self.plan.of(own, seed), selection=False)
        if tree.attrs["status"] == "failed":
            raise FitFailed(tree.attrs["reason"])
        rows = rows_of(own.data, held, own.always)[0]
        return {
            "status": tree.attrs["status"],
            "reason": str(tree.attrs["reason"]),
            "seconds": float(tree.attrs.get("seconds_run", 0.0)),
            "log_p": log_probabilities(own, tree, rows),
            "error": monte_carlo_error(own, tree, held),
        }

    @property
    def settings(self) -> Any:
        """What decides its predictions, beside the rows and the seed."""
        return [dict(self.asked), self.plan and self.plan.request]


def monte_carlo_error(problem: Problem, tree: xr.DataTree, held: Dataset) -> float:
    """Return the Monte Carlo error of the sum of log probabilities of labels; 0 if nothing varies.

    To first order sum_n log mean_s p_sn moves as the mean over draws s of sum_n p_sn / p_n, where
    p_n is the mean; so errors that rows share are counted as such.
    """
    ones = predicted_draws(problem, tree, held)  # (chain, draw, M)
    p = np.maximum(np.where(held.y == 1, ones, 1.0 - ones), np.finfo(float).tiny)
    relative = (p / p.mean(axis=(0, 1))).sum(axis=-1, keepdims=True)
    return float(np.nan_to_num(mcse(relative, "mean")[0]))


@dataclass(frozen=True)
class Plain:
    """A classifier of scikit-learn: one probability a row, and no draws.

    Attributes
    ----------
    asked : str or classifier
        A word in `BASELINES`, or what is cloned in each fold.
    columns : tuple of str
        What it predicts from; none: every column.
    """

    asked: Given
    columns: tuple[str, ...] = ()

    def classifier(self, y: np.ndarray, seed: int, groups: Sequence[str] | None = None) -> Any:
        """Return what is fitted to training rows with labels y (N,), of groups or not."""
        if not isinstance(self.asked, str):
            return sklearn.clone(self.asked)
        if self.asked == SHARE:
            return DummyClassifier(strategy="prior")
        return penalised("ridge" if self.asked == COVARIATES else self.asked, y, seed, groups)

    def predict(self, train: Dataset, held: Dataset, seed: int, models: Models) -> Row:
        """Fit training rows and predict others; a probability may be exactly 0 in float64."""
        started = time.perf_counter()
        model = self.classifier(train.y, seed, train.groups)
        takes = get_routing_for_object(model).consumes("fit", ("groups",))
        more = {"groups": train.groups} if takes and train.groups is not None else {}
        X, new = train.X, held.X
        if self.columns:
            own = columns_of(train, self.columns)
            at = [train.feature_names.index(name) for name in own]
            X, new = X[:, at], new[:, at]
        fitted = model.fit(X, train.y, **more)
        p = np.maximum(fitted.predict_proba(new), np.finfo(float).tiny)
        took = time.perf_counter() - started
        said = {"status": "finished", "reason": "", "seconds": took}
        return {**said, "log_p": np.log(p), "error": 0.0}

    def seconds(self, rows: int, columns: int) -> float | None:
        """Return about how long a fit takes to so many rows and columns; None if not known."""
        if not isinstance(self.asked, str):
            return None
        start, cell = (0.0, 0.0) if self.asked == SHARE else SECONDS
        return start + cell * rows * (len(self.columns) or columns)

    @property
    def settings(self) -> Any:
        """What decides its predictions: all its arguments, and the version of scikit-learn."""
        own = joblib.hash(self.classifier(np.arange(10) % 2, 0))
        return [own, sklearn.__version__, *self.columns]


Candidate = Zoo | Plain


def candidates(
    given: Iterable[str] | Mapping[str, Given] | None, always: Sequence[str] = ()
) -> dict[str, Candidate]:
    """Return by name the candidates that are described.

    Parameters
    ----------
    given : sequence of str, or dict, optional
        Words as above; or what `Given` says, by the name that the candidate is to have. None:
        `DEFAULT`, and `COVARIATES` if there are any.
    always : sequence of str
        Columns that models keep, unless a candidate has its own.

    Raises
    ------
    InputError
        A candidate is unknown, or given twice, or of covariates where there are none; there is no
        candidate.
    """
    if isinstance(given, str):
        given = [given]
    kept = [always] if isinstance(always, str) else list(always)
    words = (*DEFAULT, *([COVARIATES] if kept else [])) if given is None else given
    if not isinstance(words, Mapping):
        listed = list(words)
        distinct("candidate", listed)
        words = {word: word for word in listed}
    if not words:
        raise InputError(f"candidates is empty; by default they are {', '.join(DEFAULT)}.")
    return {name: _candidate(name, meant, kept) for name, meant in words.items()}


def _candidate(name: str, given: Given, always: list[str]) -> Candidate:
    if hasattr(given, "predict_proba"):
        return Plain(given)
    if isinstance(given, str):
        word, *parts = given.split(":")
        hypers = pairs(parts, f"candidate {given!r}:")
    else:
        hypers = dict(given)
        word = str(hypers.pop("model", ""))
    known = named("candidate", word, [*ZOO, *BASELINES])
    if known in BASELINES and hypers:
        raise InputError(f"candidate {known!r} has no hyperparameters to set.")
    if known == COVARIATES:
        if not always:
            raise InputError(f"candidate {name!r} needs columns that are always in (always).")
        return Plain(known, tuple(always))
    if known in BASELINES:
        return Plain(known)
    if ZOO[known].link == "identity":
        raise InputError(
            f"candidate {name!r} gives no probabilities: {known} regresses on the signs of the "
            "labels."
        )
    kept = {"always": always} if always else {}
    return Zoo({"model": known, **kept, **hypers})
