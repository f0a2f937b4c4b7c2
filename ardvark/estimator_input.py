"""How the scikit-learn estimator takes what it is given, and its tags."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from ardvark.common.validate import InputError, logger
from ardvark.data import Dataset


def weights_refused[F: Callable[..., Any]](function: F) -> F:
    """Let a method refuse weights, and say why.

    They are not arguments of it, since scikit-learn would use what the signature has.
    """

    @wraps(function)
    def refusing(*args: Any, **given: Any) -> Any:
        for name in ("sample_weight", "class_weight"):
            if given.pop(name, None) is not None:
                raise InputError(
                    f"{name} is not accepted: weights temper the likelihood. That gives another "
                    "posterior, whose intervals and P(effect) count evidence that nobody observed. "
                    "Repeated rows do the same. Fit without weights and change the decision "
                    "instead: for class odds r in place of the odds r_0 of the training rows, add "
                    "log(r / r_0) to decision_function; for unequal costs, use another threshold "
                    "(sklearn.model_selection.FixedThresholdClassifier)."
                )
        return function(*args, **given)

    return cast(F, refusing)


class TwoClasses(ClassifierMixin, BaseEstimator):
    """A classifier of two classes whose rows may be a sparse matrix."""

    classes_: np.ndarray
    always: Sequence[str] | None

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: two classes only, and sparse input."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    def _rows(self, X: ArrayLike) -> Any:
        """Return new rows (M, D), checked against those of the fit."""
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)

    def _always(self) -> Sequence[str]:
        """Return the columns that are always in the model, once X is known to have names."""
        always = self.always if self.always is not None else ()
        if len(always) and not hasattr(self, "feature_names_in_"):
            raise InputError("always names columns: give X as a data frame, which has names.")
        return always


def training_data(estimator: Any, X: ArrayLike, y: ArrayLike) -> Dataset:
    """Return the rows X (N, D) and labels y (N,) of two kinds, which set `classes_`.

    Raises
    ------
    InputError
        X and y are swapped, or y has one class or more than two.
    """
    if getattr(X, "ndim", 2) == 1 and getattr(y, "ndim", 1) == 2:
        raise InputError("X and y are swapped: give the rows X (N, D) first, then the labels.")
    rows = getattr(X, "index", None)
    X, y = validate_data(
        estimator, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
    )
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise InputError(
            f"Only binary classification is supported. The type of the target is {kind}. "
            "Keep two classes, or wrap the estimator in sklearn.multiclass.OneVsRestClassifier."
        )
    estimator.classes_, labels = np.unique(y, return_inverse=True)
    names = estimator.classes_
    if len(names) < 2:
        raise InputError(f"y must contain two classes, got only the class {names.tolist()[0]!r}.")
    return Dataset.from_arrays(
        X,
        labels,
        feature_names=getattr(estimator, "feature_names_in_", None),
        sample_names=distinct(rows),
        class_names=(str(names[0]), str(names[1])),
    )


def seed_of(state: Any) -> int:
    """Return a seed drawn from what scikit-learn accepts as `random_state`."""
    try:
        return int(check_random_state(state).randint(np.iinfo(np.int32).max))
    except ValueError:
        raise InputError(
            f"random_state must be an integer from 0 to {2**32 - 1}, a RandomState or None, got "
            f"{state!r}."
        ) from None


def dense(rows: Any) -> np.ndarray:
    """Return rows of a sparse matrix as an array, and an array as it is."""
    return rows.toarray() if hasattr(rows, "toarray") else rows


@contextmanager
def verdict_untold() -> Iterator[None]:
    """Silence the logger about fits that failed or did not converge; the estimator reports it."""

    def other(record: logging.LogRecord) -> bool:
        return not hasattr(record, "status")

    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)


def distinct(rows: Any) -> list[str] | None:
    """Return the row names of a data frame, or None if there are none or they repeat."""
    names = [] if rows is None or callable(rows) else [str(row) for row in rows]
    return names if names and len(set(names)) == len(names) else None
