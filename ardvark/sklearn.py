"""Every model and method of the zoo as one scikit-learn estimator.

`SparseBayesClassifier` is both a classifier for two classes and a feature selector. `predict`
averages over the posterior, and `transform` keeps the features that probably have an effect. The
posterior itself is an attribute, and all of `ardvark` works with it:

    classifier = SparseBayesClassifier("rfvm", random_state=0).fit(X, y)
    av.select(classifier.problem_, classifier.posterior_)
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ardvark.common.validate import InputError, named
from ardvark.estimator_input import (
    TwoClasses,
    dense,
    seed_of,
    training_data,
    verdict_untold,
    weights_refused,
)
from ardvark.inference import effects, fit, selection_text
from ardvark.inference.comparison.verdicts.variation import log_odds, nearly_constant
from ardvark.inference.fits.activity import THRESHOLD
from ardvark.inference.fits.datatree import with_derived, without_derived
from ardvark.inference.fits.selection import check_threshold, select_at
from ardvark.inference.methods.prediction import (
    LinearRule,
    classes,
    linear_rule,
    predicted_draws,
    warn_of_new_values,
)
from ardvark.inference.target.backend import FitFailed
from ardvark.models import ZOO, problem

__all__ = ["SparseBayesClassifier"]

_CHUNK = 2.0e7  # probabilities held at once
_HYPERS = ("active_features", "active_samples", "slab", "kernel")


def _predicts_labels(classifier: "SparseBayesClassifier") -> bool:
    """Whether the model gives probabilities; the AttributeError says why it does not."""
    spec = ZOO.get(str(classifier.model).casefold())  # an unknown one is for `fit` to refuse
    if spec is not None and spec.link == "identity":
        raise AttributeError(
            f"model {classifier.model!r} regresses on the signs of the labels. It gives scores "
            "(decision_function), but no class probabilities."
        )
    return True


class SparseBayesClassifier(SelectorMixin, TwoClasses):
    r"""A doubly sparse Bayesian classifier of two classes, and a selector of its features.

    Parameters
    ----------
    model : str
        A model of the zoo (`ardvark models`).
    method : str
        How its posterior is computed (`ardvark methods`). "exact" samples the posterior until all
        that may be quoted has converged, or until a limit. "paper" is the algorithm of the model's
        paper: faster, and an approximation.
    active_features, active_samples, slab, kernel : optional
        Hyperparameters that are often searched (`ardvark models NAME`). None is the model's
        default. Not every model has all of them.
    draws, chains : int
        Draws per chain, and number of chains. "exact" draws as many as it needs, and `draws` is
        what it keeps at most (or what its `ess` needs, if that is more). A point or search method
        returns one draw.
    random_state : int, RandomState or None
        With an int, every call of `fit` gives the same result.
    hypers : dict, optional
        Other hyperparameters of the model, by name.
    method_options : dict, optional
        Options of the method, by name (`ardvark methods NAME` lists them).
    always : sequence of str, optional
        Columns of a data frame X that are always in the model, such as age: covariates, which are
        outside of what is selected (`ardvark.problem`). `get_support` keeps them.
    standardize : bool
        Standardise each feature by its mean and standard deviation in the training rows. A feature
        that does not vary there contributes nothing in either case (`ardvark.problem`), and a
        prediction of rows in which it has another value warns, by the logger "ardvark".
    effect : float
        The size t of an effect, per standard deviation of the feature, above which it counts.
    threshold : float
        P(effect) above which `get_support` selects a feature, and `relevance_` a row.
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
        The fit, as `ardvark.fit` returns it with ``keep="shared"``. `ardvark.resume` takes one
        that has not converged on from where it ended.
    status_ : str
        How the fit ended: ``posterior_.attrs["status"]``.
    feature_importances_ : ndarray (D,)
        P(effect) of each feature, the probability that its effect is above `effect`; NaN for what
        is `always` in the model, here and below.
    coef_, intercept_ : ndarray (1, D), ndarray (1,)
        The posterior mean of eta is ``X @ coef_[0] + intercept_[0]``, with X in its own units.
        Available only if eta is linear in the features.
    coef_sd_ : ndarray (1, D)
        Posterior standard deviations of the coefficients.
    effects_ : ndarray (D, 3)
        The signed effect on eta of each feature per standard deviation of it: posterior mean and
        the ends of the 90 % interval. It is the coefficient times that deviation, or where there
        are no coefficients the average partial effect (`ardvark.effects`).
    relevance_ : ndarray (n,)
        Training rows whose P(effect) is above `threshold`. Only for models with a basis.

    Warns
    -----
    ConvergenceWarning
        The draws must not be trusted. The warning says why, and what to do.
    UserWarning
        The predictions at the training rows are nearly constant: the standard deviation of their
        log odds is below 0.1. Effects of that size or more are visible (`ardvark.select`), so
        nothing visible was found. This may be the truth: nothing in X predicts y.

    Raises
    ------
    InputError, TypeError
        An unknown model or method, a hyperparameter or option that it does not have or accept, a
        hyperparameter that is given twice, or weights.
    FitFailed
        The method ended without a result.

    Notes
    -----
    `decision_function` is the log odds of the probability that `predict_proba` returns. That
    probability is an average over the posterior, so the log odds are not the mean of eta.
    Meta-estimators that read `coef_` first (`SelectFromModel`, `RFE`) rank features by the size of
    their coefficients in the units of X, unless you pass
    ``importance_getter="feature_importances_"``.

    Sparse matrices are accepted and made dense, because standardised features are dense. That takes
    8 N D bytes in `fit`, where more than 1e8 numbers are refused. `predict` makes some rows dense
    at a time, and `transform` keeps a matrix sparse.

    There are no weights of rows or classes. A weighted likelihood is tempered: it has another
    posterior, whose P(effect) and intervals count evidence that nobody observed. Repeated rows have
    the same effect. Fit without weights, and change the decision instead. For class odds r in place
    of the odds r_0 of the training rows, add log(r / r_0) to `decision_function`. For unequal
    costs, use another threshold (`sklearn.model_selection.FixedThresholdClassifier`).

    A pickle contains neither the pointwise likelihood nor other groups of `posterior_` that follow
    from its draws. They are computed again when it is read.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.sklearn import SparseBayesClassifier
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> y = np.where(X[:, 2] > 0, "up", "down")
    >>> classifier = SparseBayesClassifier("pfcvm", "paper", random_state=0)  # not exact, but fast
    >>> classifier = classifier.fit(X, y)
    >>> classifier.predict(X[:3]).tolist() == y[:3].tolist()
    True
    >>> int(classifier.feature_importances_.argmax())
    2
    """

    @weights_refused
    def __init__(
        self,
        model: str = "rfvm",
        method: str = "exact",
        *,
        active_features: float | str | None = None,
        active_samples: float | str | None = None,
        slab: float | None = None,
        kernel: str | None = None,
        draws: int = 500,
        chains: int = 4,
        random_state: int | np.random.RandomState | None = None,
        hypers: Mapping[str, Any] | None = None,
        method_options: Mapping[str, Any] | None = None,
        always: Sequence[str] | None = None,
        standardize: bool = True,
        effect: float = THRESHOLD,
        threshold: float = 0.5,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.method = method
        self.active_features = active_features
        self.active_samples = active_samples
        self.slab = slab
        self.kernel = kernel
        self.draws = draws
        self.chains = chains
        self.random_state = random_state
        self.hypers = hypers
        self.method_options = method_options
        self.always = always
        self.standardize = standardize
        self.effect = effect
        self.threshold = threshold
        self.verbose = verbose

    @weights_refused
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Compute the posterior of rows X (N, D) with labels y (N,) of two kinds.

        Examples
        --------
        >>> import numpy as np
        >>> from ardvark.sklearn import SparseBayesClassifier
        >>> X = np.random.default_rng(0).normal(size=(30, 4))
        >>> y = X[:, 0] + X[:, 1] > 0
        >>> classifier = SparseBayesClassifier("pfcvm", "paper", random_state=0).fit(X, y)
        >>> classifier.status_, classifier.classes_.tolist()
        ('finished', [False, True])
        >>> classifier.get_support().tolist()  # which features are probably active
        [True, True, False, False]
        """
        check_threshold(self.effect, "effect")
        data = training_data(self, X, y)
        always = self._always()
        self.problem_ = problem(
            self.model, data, standardize=self.standardize, always=always, **self._asked()
        )
        with verdict_untold():
            self.posterior_ = fit(
                self.problem_,
                self.method,
                draws=self.draws,
                chains=self.chains,
                random_seed=seed_of(self.random_state),
                progressbar=self.verbose,
                keep="shared",
                **(self.method_options or {}),
            )
        reason = self.posterior_.attrs["reason"]
        if self.status_ == "failed":
            raise FitFailed(f"{self.posterior_.attrs['method']}: {reason}")
        self.posterior_ = select_at(self.problem_, self.posterior_, self.effect)
        if self.status_ == "not_converged":
            from ardvark.inference.comparison.verdicts.saying import (
                for_estimator,  # which loads the judge
            )

            warnings.warn(
                f"{self.posterior_.attrs['method']} has not converged: {reason}. "
                f"{for_estimator(self.problem_, self.posterior_)}",
                ConvergenceWarning,
                stacklevel=3,
            )
        if constant := nearly_constant(self.problem_, self.posterior_):
            exact = self.posterior_.attrs["kind"] == "mcmc"
            lost = "" if exact else " Or the approximation lost it: try method='exact'."
            warnings.warn(
                f"The predictions are nearly constant: {constant}. This may be the truth: nothing "
                f"in X predicts y.{lost}",
                UserWarning,
                stacklevel=3,
            )
        return self

    @property
    def status_(self) -> str:
        """How the fit ended."""
        return str(self.posterior_.attrs["status"])

    def _asked(self) -> dict[str, Any]:
        """Return the hyperparameters that were given, by either way; refuse those given by both."""
        named_ones = {name: getattr(self, name) for name in _HYPERS}
        given = {name: value for name, value in named_ones.items() if value is not None}
        others = dict(self.hypers or {})
        for name, value in given.items():
            if others.get(name) is not None:
                raise InputError(
                    f"{name} is given twice: {name}={value!r} and "
                    f"hypers={{{name!r}: {others[name]!r}}}. Leave one of them out."
                )
        model = named("model", self.model, ZOO, "`ardvark models` lists them.")
        lacking = [name for name in given if name not in _hyper_names(model)]
        if lacking:
            having = [m for m in ZOO if set(lacking) <= _hyper_names(m)]
            raise InputError(
                f"model {model!r} has no {' and no '.join(lacking)}. Leave that at None, or take "
                f"a model that has it: {', '.join(having)}."
            )
        return others | given

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, of the fit only what cannot be computed from its draws."""
        state = dict(super().__getstate__())
        if "posterior_" in state:
            state["posterior_"] = without_derived(self.posterior_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes, and compute what `__getstate__` left out."""
        super().__setstate__(state)
        if "posterior_" in state:
            self.posterior_ = with_derived(self.problem_, self.posterior_)

    # --- prediction -------------------------------------------------------------------------------

    def _mean_prediction(self, X: ArrayLike) -> np.ndarray:
        """Return what `ardvark.predict` returns, averaged over draws (M,)."""
        rows = self._rows(X)
        warn_of_new_values(self.problem_.data, rows)
        sizes = self.posterior_["posterior"].sizes
        step = max(1, int(_CHUNK / (sizes["chain"] * sizes["draw"])))
        parts = (dense(rows[at : at + step]) for at in range(0, rows.shape[0], step))
        drawn = (predicted_draws(self.problem_, self.posterior_, x) for x in parts)
        return np.concatenate([p.mean(axis=(0, 1)) for p in drawn])

    @available_if(_predicts_labels)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return P(y) (M, 2) of rows X (M, D), averaged over the posterior, as `classes_`.

        Examples
        --------
        >>> import numpy as np
        >>> from ardvark.sklearn import SparseBayesClassifier
        >>> X = np.random.default_rng(0).normal(size=(30, 4))
        >>> y = X[:, 0] + X[:, 1] > 0
        >>> classifier = SparseBayesClassifier("pfcvm", "paper", random_state=0).fit(X, y)
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
        >>> classifier = SparseBayesClassifier("pfcvm", "paper", random_state=0).fit(X, y)
        >>> odds = classifier.decision_function([[2.0, 2.0, 0.0, 0.0], [-2.0, -2.0, 0.0, 0.0]])
        >>> (odds > 0).tolist()
        [True, False]
        """
        value = self._mean_prediction(X)
        if self.problem_.spec.link == "identity":
            return value
        return log_odds(value)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the more probable label (M,) of each row of X (M, D); a tie goes to the first.

        Examples
        --------
        >>> import numpy as np
        >>> from ardvark.sklearn import SparseBayesClassifier
        >>> X = np.random.default_rng(0).normal(size=(30, 4))
        >>> y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
        >>> classifier = SparseBayesClassifier("pfcvm", "paper", random_state=0).fit(X, y)
        >>> classifier.predict([[2.0, 2.0, 0.0, 0.0], [-2.0, -2.0, 0.0, 0.0]]).tolist()
        ['up', 'down']
        """
        value = self._mean_prediction(X)  # which asks first whether there is a fit
        return self.classes_[classes(self.problem_, value)]

    # --- what matters -----------------------------------------------------------------------------

    def _active(self, what: str) -> np.ndarray:
        """Return P(effect) of each feature (D,) or sample (B,)."""
        check_is_fitted(self)
        try:
            return np.asarray(self.posterior_["selection"][f"p_active_{what}"].values)
        except KeyError:
            raise AttributeError(
                f"a fit of {self.problem_.spec.name!r} has no P(effect) for {what}s"
            ) from None

    def _get_support_mask(self) -> np.ndarray:
        p = self.feature_importances_
        return (p > self.threshold) | np.isnan(p)  # what is always in the model stays

    @property
    def feature_importances_(self) -> np.ndarray:
        """P(effect) of each feature (D,)."""
        return self._whole(self._active("feature"))

    def _whole(self, values: np.ndarray) -> np.ndarray:
        """Return values of the features in the columns of X; NaN for what is always there."""
        always = self.problem_.always
        if not always:
            return values
        out = np.full(self.n_features_in_, np.nan)
        out[[name not in always for name in self.problem_.data.feature_names]] = values
        return out

    @property
    def effects_(self) -> np.ndarray:
        """Signed effects (D, 3): mean, and the ends of the 90 % interval."""
        columns = [self._of_features(name) for name in ("effect", "low", "high")]
        return np.column_stack(columns)

    def _of_features(self, column: str) -> np.ndarray:
        """Return a column (D,) of `ardvark.effects`."""
        check_is_fitted(self)
        values = effects(self.posterior_)[column].to_numpy()
        if not np.isfinite(values).any():
            raise AttributeError(f"this fit does not know {column} of any feature")
        return self._whole(values)

    def __str__(self) -> str:
        """Return the parameters and, once it is fitted, the effects beside the prior."""
        fitted = hasattr(self, "posterior_")
        return f"{self!r}\n{selection_text(self.posterior_)}" if fitted else repr(self)

    @property
    def relevance_(self) -> np.ndarray:
        """Row numbers (n,) of the training rows that are active."""
        return np.flatnonzero(self._active("sample") > self.threshold)

    @property
    def coef_(self) -> np.ndarray:
        """Posterior mean of the coefficients of the features (1, D), in the units of X."""
        return self._linear().coefficients[None, :]

    @property
    def coef_sd_(self) -> np.ndarray:
        """Posterior standard deviation of the coefficients (1, D), in the units of X."""
        return self._linear().coefficients_sd[None, :]

    @property
    def intercept_(self) -> np.ndarray:
        """Posterior mean of the intercept (1,)."""
        return np.array([self._linear().intercept])

    def _linear(self) -> LinearRule:
        check_is_fitted(self)
        try:
            return linear_rule(self.problem_, self.posterior_)
        except InputError as error:
            raise AttributeError(f"{error} effects_ has the average partial effects.") from None


def _hyper_names(model: str) -> set[str]:
    return {declared.name for declared in ZOO[model].Hypers.declared()}
