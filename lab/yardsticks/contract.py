"""What a yardstick declares, and how each of them is fitted: nested, seeded, on training rows."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ardvark.common.validate import InputError

INNER = 5  # folds that choose the options
FLOOR = 1e-6  # the inner score holds probabilities this far from 0 and 1, as the tables do
INSTALL = "pip install 'ardvark[baselines]'"
Steps = list[tuple[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Yardstick:
    """One method: how to make it, what to choose its options from, and how to read it.

    What it is, with its source and what was fixed beforehand, stands below its declaration.

    Parameters
    ----------
    name : str
        Its name, which is the label of its rows.
    steps : callable
        From D and a seed, the steps of a pipeline after the standardisation; the last one
        classifies.
    grid : mapping, optional
        Candidates of each option, the one that wins ties first.
    features, samples : callable, optional
        From the fitted pipeline, the indices of the features kept, and the number of training rows
        kept; None where the method does not select.
    needs : tuple of str, optional
        Packages of the extra `baselines`.
    fixed : mapping, optional
        What was fixed beforehand and decides the result, for the identity of stored folds.
    """

    name: str
    steps: Callable[[int, int], Steps]
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    features: Callable[[Pipeline], np.ndarray] | None = None
    samples: Callable[[Pipeline], int] | None = None
    needs: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> list[Any]:
        """Return all that decides the result of a fit, beside the rows."""
        return [INNER, {name: list(values) for name, values in self.grid.items()}, dict(self.fixed)]


@dataclass(frozen=True)
class Outcome:
    """What a fit gives: labels and P(y = 1) of the held-out rows (M,), what it kept and chose."""

    label: np.ndarray
    probability: np.ndarray
    features: np.ndarray | None
    samples: int | None
    chosen: dict[str, Any]
    status: str
    reason: str


def require(yardstick: Yardstick) -> None:
    """Raise an error if a package is missing that the method needs."""
    missing = [name for name in yardstick.needs if find_spec(name) is None]
    if missing:
        raise InputError(
            f"{yardstick.name} needs {', '.join(missing)}, which is not installed: {INSTALL}"
        )


def fit(
    yardstick: Yardstick, X: np.ndarray, y: np.ndarray, held: np.ndarray, random_seed: int = 0
) -> Outcome:
    """Fit on training rows, options by inner folds of them, and predict the held-out rows.

    Parameters
    ----------
    yardstick : Yardstick
        The method.
    X, y : np.ndarray
        Training rows (N, D) and their labels 0 or 1 (N,).
    held : np.ndarray
        Held-out rows (M, D).
    random_seed : int, optional
        Seed of the inner folds and of the method. An equal seed gives an equal result.

    Raises
    ------
    InputError
        If a package of the extra `baselines` is missing.
    """
    require(yardstick)
    with warnings.catch_warnings(record=True) as said:
        steps = [("scale", StandardScaler()), *yardstick.steps(X.shape[1], random_seed)]
        pipeline = Pipeline(steps)
        warnings.simplefilter("ignore", ConvergenceWarning)  # extreme candidates of a grid
        chosen = choose(yardstick, pipeline, X, y, random_seed) if yardstick.grid else {}
        warnings.simplefilter("always", ConvergenceWarning)
        pipeline.set_params(**chosen).fit(X, y)
    slow = [str(x.message) for x in said if issubclass(x.category, ConvergenceWarning)]
    return Outcome(
        label=np.asarray(pipeline.predict(held)) == 1,
        probability=pipeline.predict_proba(held)[:, 1],
        features=yardstick.features(pipeline) if yardstick.features else None,
        samples=yardstick.samples(pipeline) if yardstick.samples else None,
        chosen={name.split("__")[-1]: value for name, value in chosen.items()},
        status="not_converged" if slow else "finished",
        reason=slow[0] if slow else "",
    )


def choose(
    yardstick: Yardstick, pipeline: Pipeline, X: np.ndarray, y: np.ndarray, random_seed: int
) -> dict[str, Any]:
    """Return the candidate with the highest log score over inner folds; ties go to the first."""
    search = GridSearchCV(
        pipeline,
        {name: list(values) for name, values in yardstick.grid.items()},
        cv=StratifiedKFold(INNER, shuffle=True, random_state=random_seed),
        scoring=log_score,
        refit=False,
        error_score="raise",
    )
    return dict(search.fit(X, y).best_params_)


def log_score(fitted: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean log probability of the labels, held within FLOOR of 0 and 1."""
    p = np.clip(fitted.predict_proba(X)[:, 1], FLOOR, 1.0 - FLOOR)
    return float(np.log(np.where(y == 1, p, 1.0 - p)).mean())
