"""The stack of several candidates as a scikit-learn estimator: `ardvark.sklearn.ZooClassifier`."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ardvark.common.pieces import Processes
from ardvark.estimator_input import (
    TwoClasses,
    dense,
    seed_of,
    training_data,
    verdict_untold,
    weights_refused,
)
from ardvark.inference import choose
from ardvark.inference.choosing.candidates import Given
from ardvark.inference.comparison.verdicts.variation import log_odds


class ZooClassifier(TwoClasses):
    """A mixture of models of the zoo and plain classifiers, weighed by cross-validation.

    `fit` compares the candidates on folds of its rows (`ardvark.choose`), and fits those that have
    weight to all of them.

    Parameters
    ----------
    candidates : sequence of str, or dict, optional
        As for `ardvark.choose`.
    folds, repeats : int
        Number of folds, and of partitions into so many folds.
    method : str
        How models of the zoo are fitted.
    draws, chains : int
        Of each fit.
    random_state : int, RandomState or None
        With an int, every call of `fit` gives the same result.
    fold_options, method_options : dict, optional
        Options of the method in a fold, and on all rows.
    always : sequence of str, optional
        Columns of a data frame X that are always in the models of the zoo, as for
        `ardvark.choose`.
    processes : int
        Number of fits that run in parallel.
    verbose : bool
        Show progress.

    Attributes
    ----------
    classes_ : ndarray (2,)
        The labels in sorted order; the second is y = 1.
    n_features_in_, feature_names_in_
        D, and the column names of a data frame X.
    choice_ : Choice
        Scores, weights, and what they can tell apart.
    stack_ : Stack
        The fits to all rows; ``stack_.predict(X)`` has intervals.

    Warns
    -----
    ConvergenceWarning
        The draws of a candidate in the stack must not be trusted.

    Raises
    ------
    InputError, TypeError, FitFailed
        As for `ardvark.choose`.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.sklearn import ZooClassifier
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> y = np.where(X[:, 1] > 0, "up", "down")
    >>> classifier = ZooClassifier(["l1", "ridge", "share"], random_state=0).fit(X, y)
    >>> classifier.predict(X[:3]).tolist() == y[:3].tolist()
    True
    >>> classifier.predict_proba(X[:3]).shape
    (3, 2)
    >>> (classifier.decision_function(X) > 0).tolist() == (y == "up").tolist()
    True
    >>> classifier.choice_.weights.idxmax() in ("l1", "ridge")
    True
    """

    @weights_refused
    def __init__(
        self,
        candidates: Iterable[str] | Mapping[str, Given] | None = None,
        *,
        folds: int = 5,
        repeats: int = 1,
        method: str = "exact",
        draws: int = 500,
        chains: int = 4,
        random_state: int | np.random.RandomState | None = None,
        fold_options: Mapping[str, Any] | None = None,
        method_options: Mapping[str, Any] | None = None,
        always: Sequence[str] | None = None,
        processes: Processes = 1,
        verbose: bool = False,
    ) -> None:
        self.candidates = candidates
        self.folds = folds
        self.repeats = repeats
        self.method = method
        self.draws = draws
        self.chains = chains
        self.random_state = random_state
        self.fold_options = fold_options
        self.method_options = method_options
        self.always = always
        self.processes = processes
        self.verbose = verbose

    @weights_refused
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Weigh the candidates on rows X (N, D) with labels y (N,) of two kinds, and fit them."""
        data = training_data(self, X, y)
        with verdict_untold():
            self.choice_ = choose(
                data,
                candidates=self.candidates,
                folds=self.folds,
                repeats=self.repeats,
                method=self.method,
                draws=self.draws,
                chains=self.chains,
                always=self._always(),
                random_seed=seed_of(self.random_state),
                processes=self.processes,
                progressbar=self.verbose,
                **(self.fold_options or {}),
            )
            self.stack_ = self.choice_.fit(
                processes=self.processes,
                progressbar=self.verbose,
                **(self.method_options or {}),
            )
        for name, reason in self.stack_.unconverged.items():
            warnings.warn(
                f"{name} has not converged: {reason}. Raise method_options={{'limit': ...}}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return P(y) (M, 2) of rows X (M, D) under the mixture, as `classes_`."""
        rows = self._rows(X)  # which asks first whether there is a fit
        return self.stack_.predict_proba(dense(rows))

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the log odds (M,) of the second class."""
        return log_odds(self.predict_proba(X)[:, 1])

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the more probable label (M,) of each row of X (M, D); a tie goes to the first."""
        p = self.predict_proba(X)[:, 1]  # which asks first whether there is a fit
        return self.classes_[(p > 0.5).astype(int)]

    def __str__(self) -> str:
        """Return the parameters and, once it is fitted, what was found."""
        return f"{self!r}\n{self.choice_.text()}" if hasattr(self, "choice_") else repr(self)
