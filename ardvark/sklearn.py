"""Every model and method of the zoo as one scikit-learn estimator.

`SparseBayesClassifier` is both a classifier for two classes and a feature selector. `predict`
averages over the posterior, and `transform` keeps the features that are probably active. The
posterior itself is an attribute, and all of `ardvark` works with it:

    classifier = SparseBayesClassifier("rfvm", random_state=0).fit(X, y)
    av.select(classifier.problem_, classifier.posterior_)
"""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from ardvark.common.validate import InputError, logger
from ardvark.data import Dataset
from ardvark.inference import fit, predict
from ardvark.inference.contract.backend import FitFailed
from ardvark.inference.fitting.prediction import classes, linear_rule
from ardvark.inference.verdicts.remedies import for_estimator
from ardvark.models import ZOO, problem

_CHUNK = 2.0e7  # probabilities held at once


def _predicts_labels(classifier: "SparseBayesClassifier") -> bool:
    """Whether the model gives probabilities; the AttributeError says why it does not."""
    spec = ZOO.get(str(classifier.model).casefold())  # an unknown one is for `fit` to refuse
    if spec is not None and spec.link == "identity":
        raise AttributeError(
            f"model {classifier.model!r} regresses on the signs of the labels. It gives scores "
            "(decision_function), but no class probabilities."
        )
    return True


class SparseBayesClassifier(SelectorMixin, ClassifierMixin, BaseEstimator):
    """A doubly sparse Bayesian classifier of two classes, and a selector of its features.

    Parameters
    ----------
    model : str
        A model of the zoo (`ardvark models`).
    method : str
        How its posterior is computed (`ardvark methods`). "paper" is the algorithm of the model's
        paper; "nuts" and "gibbs" are exact.
    draws, chains : int
        Draws per chain, and number of chains. A point or search method returns one draw.
    random_state : int, RandomState or None
        With an int, every call of `fit` gives the same result.
    hypers : dict, optional
        Hyperparameters of the model, by name.
    method_options : dict, optional
        Options of the method, by name (`ardvark methods NAME` lists them).
    standardize : bool
        Standardise each feature by its mean and standard deviation in the training rows.
    threshold : float
        P(active) above which `get_support` selects a feature, and `relevance_vectors_` a row.
    verbose : bool
        Show progress.

    Attributes
    ----------
    classes_ : ndarray (2,)
        The labels in sorted order; the second is y = 1.
    n_features_in_, feature_names_in_
        D, and the column names of a data frame X.
    problem_ : Problem
        Model, data and filled hyperparameters.
    posterior_ : xarray.DataTree
        The fit, as `ardvark.fit` returns it.
    status_ : str
        How the fit ended: ``posterior_.attrs["status"]``.
    feature_importances_ : ndarray (D,)
        P(active) of each feature.
    coef_, intercept_ : ndarray (1, D), ndarray (1,)
        The posterior mean of eta is ``X @ coef_[0] + intercept_[0]``, with X in its own units.
        Available only if eta is linear in the features.
    relevance_ : ndarray (n,)
        Training rows whose P(active) is above `threshold`. Only for models with a basis.
    relevance_vectors_ : ndarray (n, D)
        These rows.

    Warns
    -----
    ConvergenceWarning
        The draws must not be trusted. The warning says why, and what to do.

    Raises
    ------
    InputError, TypeError
        An unknown model or method, a hyperparameter or option that it does not have or accept.
    FitFailed
        The method ended without a result.

    Notes
    -----
    `decision_function` is the log odds of the probability that `predict_proba` returns. That
    probability is an average over the posterior, so the log odds are not the mean of eta.
    Meta-estimators that read `coef_` first (`SelectFromModel`, `RFE`) rank features by the size of
    their coefficients in the units of X, unless you pass
    ``importance_getter="feature_importances_"``.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.sklearn import SparseBayesClassifier
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> y = np.where(X[:, 2] > 0, "up", "down")
    >>> classifier = SparseBayesClassifier("pfcvm", random_state=0).fit(X, y)
    >>> classifier.predict(X[:3]).tolist() == y[:3].tolist()
    True
    >>> int(classifier.feature_importances_.argmax())
    2
    """

    def __init__(
        self,
        model: str = "rfvm",
        method: str = "paper",
        *,
        draws: int = 500,
        chains: int = 4,
        random_state: int | np.random.RandomState | None = None,
        hypers: Mapping[str, Any] | None = None,
        method_options: Mapping[str, Any] | None = None,
        standardize: bool = True,
        threshold: float = 0.5,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.method = method
        self.draws = draws
        self.chains = chains
        self.random_state = random_state
        self.hypers = hypers
        self.method_options = method_options
        self.standardize = standardize
        self.threshold = threshold
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Compute the posterior of rows X (N, D) with labels y (N,) of two kinds.

        Examples
        --------
        >>> import numpy as np
        >>> from ardvark.sklearn import SparseBayesClassifier
        >>> X = np.random.default_rng(0).normal(size=(30, 4))
        >>> y = X[:, 0] + X[:, 1] > 0
        >>> classifier = SparseBayesClassifier("pfcvm", random_state=0).fit(X, y)
        >>> classifier.status_, classifier.classes_.tolist()
        ('finished', [False, True])
        >>> classifier.get_support().tolist()  # which features are probably active
        [True, True, False, False]
        """
        rows = getattr(X, "index", None)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise InputError(
                f"Only binary classification is supported. The type of the target is {kind}. "
                "Keep two classes, or wrap the estimator in sklearn.multiclass.OneVsRestClassifier."
            )
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"y must contain two classes, got only the class {self.classes_.tolist()[0]!r}."
            )
        data = Dataset.from_arrays(
            X,
            labels,
            feature_names=getattr(self, "feature_names_in_", None),
            sample_names=_distinct(rows),
            class_names=(str(self.classes_[0]), str(self.classes_[1])),
        )
        self.problem_ = problem(
            self.model, data, standardize=self.standardize, **(self.hypers or {})
        )
        with _verdict_untold():
            self.posterior_ = fit(
                self.problem_,
                self.method,
                draws=self.draws,
                chains=self.chains,
                random_seed=check_random_state(self.random_state).randint(np.iinfo(np.int32).max),
                progressbar=self.verbose,
                **(self.method_options or {}),
            )
        self.status_ = str(self.posterior_.attrs["status"])
        reason = self.posterior_.attrs["reason"]
        if self.status_ == "failed":
            raise FitFailed(f"{self.posterior_.attrs['method']}: {reason}")
        if self.status_ == "not_converged":
            warnings.warn(
                f"{self.posterior_.attrs['method']} has not converged: {reason}. "
                f"{for_estimator(self.problem_, self.posterior_.attrs['method'])}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    # --- prediction -------------------------------------------------------------------------------

    def _mean_prediction(self, X: ArrayLike) -> np.ndarray:
        """Return what `ardvark.predict` returns, averaged over draws (M,)."""
        check_is_fitted(self)
        rows: np.ndarray = validate_data(self, X, dtype=np.float64, reset=False)
        sizes = self.posterior_["posterior"].sizes
        step = max(1, int(_CHUNK / (sizes["chain"] * sizes["draw"])))
        parts = (rows[at : at + step] for at in range(0, len(rows), step))
        means = [predict(self.problem_, self.posterior_, x).mean(("chain", "draw")) for x in parts]
        return np.concatenate([mean.values for mean in means])

    @available_if(_predicts_labels)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return P(y) (M, 2) of rows X (M, D), averaged over the posterior, as `classes_`.

        Examples
        --------
        >>> import numpy as np
        >>> from ardvark.sklearn import SparseBayesClassifier
        >>> X = np.random.default_rng(0).normal(size=(30, 4))
        >>> y = X[:, 0] + X[:, 1] > 0
        >>> classifier = SparseBayesClassifier("pfcvm", random_state=0).fit(X, y)
        >>> p = classifier.predict_proba([[2.0, 2.0, 0.0, 0.0]])  # in the order of classes_
        >>> p.shape, bool(p[0, 1] > 0.9)
        ((1, 2), True)
        """
        p = self._mean_prediction(X)
        return np.column_stack([1.0 - p, p])

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the log odds (M,) of the second class, or a score if there is no probability.

        Examples
        --------
        >>> import numpy as np
        >>> from ardvark.sklearn import SparseBayesClassifier
        >>> X = np.random.default_rng(0).normal(size=(30, 4))
        >>> y = X[:, 0] + X[:, 1] > 0
        >>> classifier = SparseBayesClassifier("pfcvm", random_state=0).fit(X, y)
        >>> odds = classifier.decision_function([[2.0, 2.0, 0.0, 0.0], [-2.0, -2.0, 0.0, 0.0]])
        >>> (odds > 0).tolist()
        [True, False]
        """
        value = self._mean_prediction(X)
        if self.problem_.spec.link == "identity":
            return value
        p = np.clip(value, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
        return np.log(p) - np.log1p(-p)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the more probable label (M,) of each row of X (M, D); a tie goes to the first.

        Examples
        --------
        >>> import numpy as np
        >>> from ardvark.sklearn import SparseBayesClassifier
        >>> X = np.random.default_rng(0).normal(size=(30, 4))
        >>> y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
        >>> classifier = SparseBayesClassifier("pfcvm", random_state=0).fit(X, y)
        >>> classifier.predict([[2.0, 2.0, 0.0, 0.0], [-2.0, -2.0, 0.0, 0.0]]).tolist()
        ['up', 'down']
        """
        value = self._mean_prediction(X)  # which asks first whether there is a fit
        return self.classes_[classes(self.problem_, value)]

    # --- what matters -----------------------------------------------------------------------------

    def _active(self, what: str) -> np.ndarray:
        """Return P(active) of each feature (D,) or sample (B,)."""
        check_is_fitted(self)
        try:
            return np.asarray(self.posterior_["selection"][f"p_active_{what}"].values)
        except KeyError:
            raise AttributeError(
                f"a fit of {self.problem_.spec.name!r} has no P(active) for {what}s"
            ) from None

    def _get_support_mask(self) -> np.ndarray:
        return self._active("feature") > self.threshold

    @property
    def feature_importances_(self) -> np.ndarray:
        """P(active) of each feature (D,)."""
        return self._active("feature")

    @property
    def relevance_(self) -> np.ndarray:
        """Row numbers (n,) of the training rows that are active."""
        return np.flatnonzero(self._active("sample") > self.threshold)

    @property
    def relevance_vectors_(self) -> np.ndarray:
        """The training rows that are active (n, D), in the units of X."""
        rows = self.relevance_  # first: it asks whether there is a fit
        return self.problem_.basis[rows]

    @property
    def coef_(self) -> np.ndarray:
        """Posterior mean of the coefficients of the features (1, D), in the units of X."""
        return self._linear()[0]

    @property
    def intercept_(self) -> np.ndarray:
        """Posterior mean of the intercept (1,)."""
        return self._linear()[1]

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        try:
            coefficients, intercept = linear_rule(self.problem_, self.posterior_)
        except InputError as error:
            raise AttributeError(str(error)) from None
        return coefficients[None, :], np.array([intercept])


@contextmanager
def _verdict_untold() -> Iterator[None]:
    """Silence the logger about fits that failed or did not converge; the estimator reports it."""

    def other(record: logging.LogRecord) -> bool:
        return not hasattr(record, "status")

    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)


def _distinct(rows: Any) -> list[str] | None:
    """Return the row names of a data frame, or None if there are none or they repeat."""
    names = [] if rows is None or callable(rows) else [str(row) for row in rows]
    return names if names and len(set(names)) == len(names) else None
