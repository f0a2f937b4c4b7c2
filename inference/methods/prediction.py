"""Prediction: P(y = 1) at new inputs, one number per posterior draw."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import xarray as xr

from ardvark.common.rounding import differ
from ardvark.common.validate import InputError, logger, one_of
from ardvark.data.columns import listed
from ardvark.data.dataset import Dataset, row_labels
from ardvark.models import Inputs, Problem
from ardvark.models.new_rows import Rows, rows_of

from ..fits.activity import primal_weights
from ..fits.datatree import COVARIATES, check_same
from . import registry

Rule = Literal["draws", "paper"]
_CHUNK = 2.0e7  # numbers held at once


def predict(problem: Problem, tree: xr.DataTree, X_new: Rows, rule: Rule = "draws") -> xr.DataArray:
    """Return P(y = 1) at new inputs.

    Warnings (of the logger "ardvark") name what the training rows do not tell: columns that do not
    vary there, which contribute nothing, and new rows that lie outside them (`far_rows`).

    Parameters
    ----------
    problem : Problem
        The problem that was fitted; it standardises X_new as it did its own data.
    tree : xarray.DataTree
        A fit of it.
    X_new : array (M, D), data frame, or Dataset
        Inputs in the original units. A data frame's columns are matched by name.
    rule : {"draws", "paper"}
        "draws": one probability per draw, with the latent noise at the new point integrated out.
        Its mean over draws is the posterior predictive probability, which decides the class
        (`classes`). "paper": the formula of the paper's algorithm.

    Returns
    -------
    xarray.DataArray (chain, draw, obs)
        P(y = 1). If the likelihood is not that of a label (link "identity"), the score eta.

    Raises
    ------
    InputError
        The fit is of another problem or lacks variables, the columns do not match, or the method
        has no own formula.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 0] + 2 * X[:, 1] > 0)
    >>> fit = av.fit(problem, "paper", random_seed=0, progressbar=False)
    >>> new = [[2.0, 2.0, 0.0, 0.0], [-2.0, -2.0, 0.0, 0.0]]
    >>> p = av.predict(problem, fit, new)  # P(y = 1), one for each draw and row
    >>> dict(p.sizes), p.attrs["class"]
    ({'chain': 4, 'draw': 1000, 'obs': 2}, 'True')
    >>> (p.mean(("chain", "draw")) > 0.5).values.tolist()
    [True, False]
    """
    one_of("rule", rule, get_args(Rule))
    check_same(problem, tree)
    X, names = rows_of(problem.data, X_new, problem.always)
    warn_of_new_values(problem.data, X, names)
    if rule == "paper":
        own = getattr(registry.BACKENDS.get(str(tree.attrs["method"])), "predict_paper", None)
        if own is None:
            raise InputError(
                f'method {tree.attrs["method"]!r} has no predictor of its own; use rule="draws".'
            )
        details = {str(k): v.values for k, v in tree["fit"].data_vars.items()}
        values = np.asarray(own(problem, details, problem.at(X).X))[None, None, :]
    else:
        values = predicted_draws(problem, tree, X)
    return xr.DataArray(
        values,
        dims=("chain", "draw", "obs"),
        coords={
            "chain": np.arange(values.shape[0]),
            "draw": np.arange(values.shape[1]),
            "obs": np.asarray(row_labels(names)),
        },
        name="score" if problem.spec.link == "identity" else "probability",
        attrs={"class": problem.data.class_names[1], "rule": rule},
    )


def predicted_draws(problem: Problem, tree: xr.DataTree, X_new: Rows) -> np.ndarray:
    """Return what `predict` does (chain, draw, M), without a warning: of a fold, it says little."""
    check_same(problem, tree)
    return _by_draws(problem, tree, problem.at(rows_of(problem.data, X_new, problem.always)[0]), 1)


def warn_of_new_values(data: Dataset, X: Any, names: Sequence[str] | None = None) -> None:
    """Warn of new rows X (M, D) that the training rows say little about.

    They lie outside them, or differ in a column that does not vary there. X may be a sparse matrix.
    Rows without names have their numbers, from 0.
    """
    far = far_rows(data, X)
    if far.any():
        rows = np.flatnonzero(far) if names is None else np.asarray(names)[far]
        logger.warning(
            "%d of %d rows are not like the training rows, so their predictions are extrapolations:"
            " row %s. %s outside the training rows' range",
            far.sum(), len(far), listed(rows.tolist()),
            "More than a tenth of their columns are" if data.D >= MANY else "A column is far",
        )  # fmt: skip
    still = np.flatnonzero(data.constant)
    values = X[:, still]
    new = differ(values.toarray() if hasattr(values, "toarray") else values, data.X[0, still])
    if not new.any():
        return
    known = np.asarray(range(len(new)) if names is None else names)
    told = [
        f"{data.feature_names[k]} (row {listed(known[rows])})"
        for k, rows in zip(still.tolist(), new.T, strict=True)
        if rows.any()
    ]
    logger.warning(
        "%d of %d rows have a new value in %d column(s) that did not vary in training, and that "
        "therefore contribute nothing: %s",
        *(new.any(axis=1).sum(), len(new), len(told), listed(told)),
    )


MANY = 20
"""Columns from which on the share of them says whether a row is far, and no single one does."""


def far_rows(data: Dataset, X: Any) -> np.ndarray:
    """Return which rows of X (M, D) lie outside the range of the training rows.

    Columns that do not vary there are not counted. Of many columns more than a tenth are outside.
    Of fewer than `MANY` one is, by more than the width of its range: in many columns with long
    tails that happens to most rows.
    """
    low, high, D = data.X.min(axis=0), data.X.max(axis=0), data.D
    reach = 0.0 if D >= MANY else high - low
    found = np.zeros(X.shape[0], dtype=bool)  # X may be too large to be dense as a whole
    step = max(1, int(_CHUNK / D))
    for at in range(0, len(found), step):
        rows = X[at : at + step]
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        outside = ((rows < low - reach) | (rows > high + reach)) & ~data.constant
        share = outside.mean(axis=1)
        found[at : at + step] = share > 0.1 if D >= MANY else share > 0.0
    return found


def log_probabilities(problem: Problem, tree: xr.DataTree, X: np.ndarray) -> np.ndarray:
    """Return the log posterior predictive probabilities (M, 2) of y = 0 and y = 1 at rows X (M, D).

    X is in the original units. Each label has a sum of its own, so that neither loses its digits
    where the other one is nearly certain.
    """
    check_same(problem, tree)
    inputs = problem.at(X)
    means = [_by_draws(problem, tree, inputs, y).mean(axis=(0, 1)) for y in (0, 1)]
    return np.log(np.maximum(np.column_stack(means), np.finfo(float).tiny))


def classes(problem: Problem, mean: np.ndarray) -> np.ndarray:
    """Return the class, 0 or 1, of mean predictions: of P(y = 1), or of a score.

    It is the more probable one. A tie, P(y = 1) = 1/2 or a score of 0, is class 0. The answer is
    the same for every row, so that the accuracy of a constant decision is the frequency of its
    class.
    """
    return (mean > (0.0 if problem.spec.link == "identity" else 0.5)).astype(int)


class LinearRule(NamedTuple):
    """Eta as a function of x in the original units: coefficients . x + intercept.

    Each is a posterior mean. The coefficients, with their posterior standard deviations, are those
    of every column of the data, covariates included.
    """

    coefficients: np.ndarray
    intercept: float
    coefficients_sd: np.ndarray


def linear_rule(problem: Problem, tree: xr.DataTree) -> LinearRule:
    """Return the posterior mean of eta as a function of x, and how sure its coefficients are.

    If eta is affine in x, so is its mean over draws: E[eta](x) = coefficients . x + intercept, with
    x in the original units.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted, with a linear kernel, a polynomial one of degree 1, or none.
    tree : xarray.DataTree
        A fit of it.

    Raises
    ------
    InputError
        The fit is of another problem, eta is not affine in x under the problem's kernel, or the fit
        lacks the weights.
    """
    check_same(problem, tree)
    kernel = problem.kernel
    if kernel is not None and not kernel.is_primal:
        raise InputError(f"eta is not linear in the features under the {kernel.name} kernel.")
    point = {str(k): v.values for k, v in tree["posterior"].data_vars.items() if k != "eta"}
    D, K = problem.D, len(problem.always)
    middle = problem.inputs.at(np.zeros((1, D)), np.zeros((1, K)) if K else None)  # the mean of x
    intercept = problem.decision(point, middle)[..., 0]  # (chain, draw)
    mean, sd = np.empty(D + K), np.empty(D + K)
    names = problem.data.feature_names
    place = np.array([k for k, name in enumerate(names) if name not in problem.always])
    step = max(1, int(_CHUNK / intercept.size))
    for at in range(0, D, step):
        some = slice(at, at + step)
        w = primal_weights(problem, point, some)
        if w is None:
            raise InputError("this fit lacks the weights that its coefficients come from.")
        w = w / problem.scale[some]
        mean[place[some]], sd[place[some]] = w.mean((0, 1)), w.std((0, 1))
        intercept = intercept - w @ problem.center[some]
    if problem.covariates is not None:
        w, own = (
            point[COVARIATES] / problem.covariates.scale,
            [names.index(n) for n in problem.always],
        )
        mean[own], sd[own] = w.mean((0, 1)), w.std((0, 1))
        intercept = intercept - w @ problem.covariates.center
    return LinearRule(mean, float(intercept.mean()), sd)


def _by_draws(problem: Problem, tree: xr.DataTree, X: Inputs, y: int) -> np.ndarray:
    """Return P(y) or scores (chain, draw, M), a few draws at a time so that memory stays small."""
    posterior = tree["posterior"]
    arrays = {str(k): v.values for k, v in posterior.data_vars.items() if k != "eta"}
    chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
    out = np.empty((chains, draws, X.N))
    step = max(1, int(_CHUNK / max(X.X.shape)))
    for c in range(chains):
        for at in range(0, draws, step):
            point = {k: v[c, at : at + step] for k, v in arrays.items()}
            eta = problem.decision(point, X)
            if problem.spec.link == "identity":
                out[c, at : at + step] = eta
                continue
            out[c, at : at + step] = np.exp(problem.log_predictive(y, eta, point))
    return out
