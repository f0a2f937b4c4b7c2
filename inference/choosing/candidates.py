"""What a table can be predicted by: models of the zoo, and plain classifiers beside them.

A candidate is named by one word, which is also what a person types:

    rfvm, horseshoe, ...          a model of the zoo
    pfcvm:kernel=rbf:slab=2       the same with hyperparameters
    l1, elastic_net, ridge        logistic regression with a penalty
    share                         the share of y = 1 in the training rows, for every row

Penalties are chosen by an inner cross-validation on the training rows, by log score, and features
are standardised on its training rows. No intercept is penalised.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from ardvark.common.validate import InputError, distinct, named
from ardvark.data import Dataset
from ardvark.models import ZOO, Problem, problem

from ..checks.sharing import Models, Sharing
from ..fits.chains import mcse
from ..fits.datatree import with_derived, without_derived
from ..methods import run
from ..methods.prediction import log_probabilities, predicted_draws
from ..methods.registry import Plan
from ..target.backend import FitFailed

Given = str | Mapping[str, Any]

_RATIOS = tuple(np.geomspace(0.9, 0.004, 11).round(4).tolist())
_INNER = 5  # folds
PENALISED: dict[str, dict[str, tuple[float, ...]]] = {
    "l1": {"l1_ratio": (1.0,), "ratio": _RATIOS},
    "elastic_net": {"l1_ratio": (0.9, 0.5, 0.1), "ratio": _RATIOS[::2]},
    "ridge": {"C": tuple(np.logspace(-4, 2, 13).tolist())},
}
"""The grids: of `ElasticNet`, or of scikit-learn's LogisticRegression."""
SHARE = "share"
BASELINES = (*PENALISED, SHARE)
STACK = "stack"
"""The name of the mixture of all."""
DEFAULT = ("rfvm", "jcfo", "fsklr", "horseshoe", *BASELINES)
"""Three of the papers' models and the horseshoe, with their default kernels. PFCVM, whose
predictions are near to RFVM's, is left out."""


# --- fitted ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Member(ABC):
    """A candidate that was fitted, and predicts.

    Attributes
    ----------
    status, reason : str
        How the fit ended.
    seconds : float
        Without compilation.
    """

    status: str = "finished"
    reason: str = ""
    seconds: float = 0.0

    @abstractmethod
    def draws(self, X: np.ndarray) -> np.ndarray:
        """Return P(y = 1) (S, M) in each of S draws, at rows X (M, D) in the original units."""

    @abstractmethod
    def log_p(self, X: np.ndarray) -> np.ndarray:
        """Return the log predictive probabilities (M, 2) of y = 0 and y = 1."""

    @abstractmethod
    def error(self, X: np.ndarray, y: np.ndarray) -> float:
        """Return the Monte Carlo error of the sum of log probabilities of labels y (M,)."""


@dataclass(frozen=True)
class Posterior(Member):
    """A fit of a model of the zoo."""

    problem: Problem = field(kw_only=True)
    tree: xr.DataTree = field(kw_only=True)

    def draws(self, X: np.ndarray) -> np.ndarray:
        """Return P(y = 1) (S, M) in each draw."""
        return predicted_draws(self.problem, self.tree, X).reshape(-1, len(X))

    def log_p(self, X: np.ndarray) -> np.ndarray:
        """Return the log of the mean probabilities over draws (M, 2)."""
        return log_probabilities(self.problem, self.tree, X)

    def error(self, X: np.ndarray, y: np.ndarray) -> float:
        """Return the Monte Carlo error of the sum of log probabilities; 0 if nothing varies.

        To first order sum_n log mean_s p_sn moves as the mean over draws s of sum_n p_sn / p_n,
        where p_n is the mean; so errors that rows share are counted as such.
        """
        ones = predicted_draws(self.problem, self.tree, X)  # (chain, draw, M)
        p = np.maximum(np.where(y == 1, ones, 1.0 - ones), np.finfo(float).tiny)
        relative = (p / p.mean(axis=(0, 1))).sum(axis=-1, keepdims=True)
        return float(np.nan_to_num(mcse(relative, "mean")[0]))

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, of the fit only what cannot be computed from its draws."""
        return {**self.__dict__, "tree": without_derived(self.tree)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes, and compute what was left out."""
        self.__dict__.update(state)
        self.__dict__["tree"] = with_derived(self.problem, self.tree)


@dataclass(frozen=True)
class Plain(Member):
    """A classifier without a posterior: one probability a row."""

    classifier: Any = field(kw_only=True)

    def draws(self, X: np.ndarray) -> np.ndarray:
        """Return P(y = 1) (1, M)."""
        return self.classifier.predict_proba(X)[None, :, 1]

    def log_p(self, X: np.ndarray) -> np.ndarray:
        """Return the log probabilities (M, 2); one may be exactly 0 in float64."""
        return np.log(np.maximum(self.classifier.predict_proba(X), np.finfo(float).tiny))

    def error(self, X: np.ndarray, y: np.ndarray) -> float:
        """Return 0: there are no draws."""
        return 0.0


# --- candidates -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate(ABC):
    """Something that may predict a table; `fit` learns everything from the rows it is given."""

    name: str

    @abstractmethod
    def fit(self, train: Dataset, seed: int, plan: Plan | None, models: Models) -> Member:
        """Fit training rows.

        Parameters
        ----------
        plan : Plan, optional
            How a model of the zoo is fitted.
        models : dict
            Models that are compiled, for problems of equal sizes.

        Raises
        ------
        FitFailed, InputError
            There is nothing to predict with.
        """

    @abstractmethod
    def asked(self) -> Given:
        """Return the settings that `candidates` makes it of."""

    @abstractmethod
    def settings(self) -> Any:
        """Return what decides its fits, beside the rows and the plan."""


@dataclass(frozen=True)
class Zoo(Candidate):
    """A model of the zoo, whose hyperparameters are filled for the rows it is given."""

    model: str
    hypers: Mapping[str, Any]

    def problem(self, train: Dataset) -> Problem:
        """Return the problem of training rows, standardised by them."""
        return problem(self.model, train, **self.hypers)

    def fit(self, train: Dataset, seed: int, plan: Plan | None, models: Models) -> Posterior:
        """Compute the posterior as planned."""
        assert plan is not None
        own = Sharing.of(self.problem(train), models)
        tree = run.compute(plan.of(own, seed), selection=False)
        return self.fitted(own, tree)

    def fitted(self, problem: Problem, tree: xr.DataTree) -> Posterior:
        """Return a fit that predicts."""
        status, reason = tree.attrs["status"], tree.attrs["reason"]
        if status == "failed":
            raise FitFailed(reason)
        seconds = float(tree.attrs.get("seconds_run", 0.0))
        return Posterior(status, reason, seconds, problem=problem, tree=tree)

    def asked(self) -> dict[str, Any]:
        """Return the model and the hyperparameters that were asked for."""
        return {"model": self.model, **self.hypers}

    def settings(self) -> dict[str, Any]:
        """Return the same."""
        return self.asked()


@dataclass(frozen=True)
class Baseline(Candidate):
    """A plain classifier of scikit-learn."""

    kind: str

    def fit(
        self, train: Dataset, seed: int, plan: Plan | None = None, models: Models | None = None
    ) -> Plain:
        """Fit training rows, with a penalty that is chosen among them."""
        started = time.perf_counter()
        if self.kind == SHARE:
            from sklearn.dummy import DummyClassifier

            return Plain(classifier=DummyClassifier(strategy="prior").fit(train.X, train.y))
        classifier = _penalised(train, seed, PENALISED[self.kind])
        return Plain(classifier=classifier, seconds=time.perf_counter() - started)

    def asked(self) -> str:
        """Return which one it is."""
        return self.kind

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the classifier, and the version of scikit-learn."""
        import sklearn

        grid = PENALISED.get(self.kind)
        return {"baseline": self.kind, "inner": _INNER, "grid": grid, "by": sklearn.__version__}


def _penalised(train: Dataset, seed: int, grid: Mapping[str, Sequence[float]]) -> Any:
    """Return logistic regression in which cross-validation chose the penalty."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import Pipeline

    from ..scoring.scaler import Scaler
    from .elastic_net import ElasticNet

    inner = min(_INNER, *train.counts)
    if inner < 2:
        raise InputError("there is one row of a class, and a penalty needs an inner fold.")
    regression = LogisticRegression(max_iter=1000) if "C" in grid else ElasticNet()
    search = GridSearchCV(
        Pipeline([("scale", Scaler()), ("penalised", regression)]),
        {f"penalised__{name}": list(values) for name, values in grid.items()},
        cv=StratifiedKFold(inner, shuffle=True, random_state=seed),
        scoring="neg_log_loss",
    )
    return search.fit(train.X, train.y).best_estimator_


# --- from words -----------------------------------------------------------------------------------


def candidates(given: Iterable[str] | Mapping[str, Given] | None) -> tuple[Candidate, ...]:
    """Return the candidates that words, or settings by name, describe.

    Parameters
    ----------
    given : sequence of str, or dict, optional
        Words as above; or a word, or a dict with "model" and hyperparameters, by the name that the
        candidate is to have. None: `DEFAULT`.

    Raises
    ------
    InputError
        A candidate is unknown, or given twice; there is none.
    """
    if isinstance(given, str):
        given = [given]
    words = {word: word for word in DEFAULT} if given is None else given
    if not isinstance(words, Mapping):
        listed = list(words)
        distinct("candidate", listed)
        words = {word: word for word in listed}
    found = tuple(_candidate(name, meant) for name, meant in words.items())
    if STACK in words:
        raise InputError(f"no candidate may have the name {STACK!r}: that is all of them together.")
    if not found:
        raise InputError(f"candidates is empty; by default they are {', '.join(DEFAULT)}.")
    return found


def _candidate(name: str, given: Given) -> Candidate:
    if isinstance(given, str):
        word, *parts = given.split(":")
        hypers = dict(_pair(given, part) for part in parts)
    else:
        hypers = dict(given)
        word = str(hypers.pop("model", ""))
    known = named("candidate", word, [*ZOO, *BASELINES])
    if known in BASELINES:
        if hypers:
            raise InputError(f"candidate {known!r} has no hyperparameters to set.")
        return Baseline(name, known)
    if ZOO[known].link == "identity":
        raise InputError(
            f"candidate {name!r} gives no probabilities: {known} regresses on the signs of the "
            "labels."
        )
    return Zoo(name, known, hypers)


def _pair(word: str, part: str) -> tuple[str, Any]:
    key, sign, value = part.partition("=")
    if not sign or not key:
        raise InputError(f"candidate {word!r}: expected MODEL:name=value, got {part!r}.")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value
