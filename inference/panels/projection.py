"""Projection: the logistic regression on a few columns whose predictions are nearest to given ones.

A posterior draw predicts p_n = P(y_n = 1) for each row n. Its projection onto a submodel with the
design A (N, K), q_n = sigmoid(sum_k A_nk b_k), is the b that minimises (Piironen, Paasiniemi,
Vehtari 2020, Electronic Journal of Statistics 14(1))::

    sum_n KL(p_n || q_n) + RIDGE / 2 |b|^2,
    KL(p || q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q))

No label enters: the posterior has seen them. The gradient is A' (q - p) + RIDGE b and the Hessian
A' diag(q (1 - q)) A + RIDGE. The objective is strictly convex, so Newton's method with a step that
is halved until the objective falls ends at its only minimum, from anywhere. Without the ridge there
would be no minimum where p is 0 or 1 and the classes can be separated, and more than one where
columns are collinear; its size is that of projpred. The mean prediction of some draws has the same
minimiser as the mean of their divergences, because only p log q + (1 - p) log(1 - q) depends on b,
and it is linear in p.

**The spread of the draws' projections is no interval of a coefficient.** b depends on p through
the K sums A' p alone, so to first order Cov(b) = I^-1 A' Cov(p) A I^-1, I = A' diag(q (1 - q)) A.
With many rows and a flat prior, a logistic regression on more columns F, those of A among them, has
A' Cov(p) A = A' diag(p (1 - p)) A, and over rows of one q the mean of p (1 - p) is q (1 - q) minus
the variance of p. So the spread is less than I^-1, the variance of a maximum likelihood estimate on
A, by what F explains of the labels; and the variance of the effect in the full posterior, a block
of (F' diag(p (1 - p)) F)^-1, is more than I^-1 and grows with F. A posterior that is certain of the
labels of its rows has no spread at all. The spread says how sure the posterior is of the best
submodel of these very rows, with their other columns as they are: a column without an effect that
goes by chance with what others do has a projection away from 0, and the posterior is sure of it.
"""

import numpy as np
from scipy import special

RIDGE = 1e-4
"""Per squared unit of a coefficient of a standardised column, in nats of the sum over rows."""
_MOST = 100  # Newton steps; ten are common
_ENOUGH = 1e-10  # nats that the next Newton step promises
_HALVINGS = 40


def design(X: np.ndarray, always: np.ndarray | None = None) -> np.ndarray:
    """Return the columns of a submodel (..., N, 1 + a + k): intercept, those always in, features.

    Parameters
    ----------
    X : array (..., N, k)
        The submodel's features.
    always : array (N, a), optional
        Columns that every submodel has.
    """
    first = np.ones((X.shape[-2], 1))
    fixed = first if always is None else np.concatenate([first, always], axis=1)
    fixed = np.broadcast_to(fixed, (*X.shape[:-1], fixed.shape[1]))
    return np.concatenate([fixed, X], axis=-1)


def project(p: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the coefficients of the submodel that is nearest to each prediction.

    Parameters
    ----------
    p : array (..., S, N)
        P(y = 1) of each row, for S draws or clusters.
    A : array (..., N, K)
        Columns of the submodel; leading axes are submodels, which may share p.

    Returns
    -------
    array (..., S, K)

    Raises
    ------
    ArithmeticError
        A number of p or A is not finite, or the minimum is not reached in `_MOST` steps.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.inference.panels.projection import design, project
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> p = 1 / (1 + np.exp(-(0.5 + X @ [1.0, -2.0])))
    >>> project(p[None], design(X)).round(2)  # a logistic regression is its own projection
    array([[ 0.5,  1. , -2. ]])
    """
    if not (np.isfinite(p).all() and np.isfinite(A).all()):
        raise ArithmeticError("there is no projection: predictions or features are not finite.")
    N, K = A.shape[-2:]
    lead = np.broadcast_shapes(p.shape[:-2], A.shape[:-2])
    shape = (*lead, p.shape[-2], K)
    b = np.zeros(shape)
    turned = A.swapaxes(-1, -2)  # (..., K, N)
    products = (A[..., :, None] * A[..., None, :]).reshape(*A.shape[:-2], N, K * K)
    value = _objective(p, b @ turned, b)
    for _ in range(_MOST):
        q = special.expit(b @ turned)  # (..., S, N)
        gradient = (q - p) @ A + RIDGE * b
        hessian = ((q * (1.0 - q)) @ products).reshape(*shape, K) + RIDGE * np.eye(K)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        promised = (gradient * step).sum(-1)
        b, value = _descend(p, turned, b, value, step, promised)
        if (promised <= _ENOUGH).all():
            return b
    raise ArithmeticError(f"a projection has not ended after {_MOST} Newton steps.")


def divergence(p: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the mean over rows of KL(p || q) (..., S), for coefficients b (..., S, K)."""
    entropy = special.entr(p) + special.entr(1.0 - p)
    return _cross_entropy(p, b @ A.swapaxes(-1, -2)).mean(-1) - entropy.mean(-1)


def _cross_entropy(p: np.ndarray, eta: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, eta) - p * eta


def _objective(p: np.ndarray, eta: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _cross_entropy(p, eta).sum(-1) + 0.5 * RIDGE * np.square(b).sum(-1)


def _descend(
    p: np.ndarray,
    turned: np.ndarray,
    b: np.ndarray,
    value: np.ndarray,
    step: np.ndarray,
    promised: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and objective after a step, halved where the objective would not fall."""
    size = np.ones(value.shape)
    slack = 1e-13 * (1.0 + np.abs(value))  # rounding of a sum over rows
    for _ in range(_HALVINGS):
        moved = b - size[..., None] * step
        found = _objective(p, moved @ turned, moved)
        short = found > value - 1e-4 * size * promised + slack
        if not short.any():
            return moved, found
        size[short] /= 2.0
    stays = short | ~np.isfinite(found)
    return np.where(stays[..., None], b, moved), np.where(stays, value, found)
