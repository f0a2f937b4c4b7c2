"""What a paper says of predictions of rows that were not seen: AUC, Brier, calibration, log score.

Calibration is the logistic regression of the labels on the log odds that were predicted (Cox 1958).
Its slope is 1 where these are right, and below 1 where they are too extreme. Its intercept is that
with a slope of 1: 0 where the mean is right, and above 0 where y = 1 is more frequent than
predicted (Van Calster et al. 2019, BMC Medicine 17, 230).
"""

import numpy as np
from scipy import optimize, special

from ..scoring.held_out import log_scores

MEASURES = ("auc", "brier", "log_score", "intercept", "slope")
"""The numbers of `performance`, beside `rows` and `events`; each has a standard error, `..._se`."""
_LIMIT = 30.0  # log odds that are predicted, at most


def performance(y: np.ndarray, p: np.ndarray) -> dict[str, float]:
    """Return measures of predictions p (M,) of labels y (M,), with standard errors over rows.

    Rows that belong together are counted as if they did not, so that their errors are too small.

    Returns
    -------
    dict
        rows, events, and `MEASURES` each with its error. NaN where rows of one class, or too few,
        do not say it.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.inference.panels.performance import performance
    >>> found = performance(np.array([0, 0, 1, 0, 1, 1]), np.array([0.2, 0.4, 0.3, 0.6, 0.7, 0.8]))
    >>> round(found["auc"], 3), found["events"], round(found["brier"], 3)
    (0.778, 3, 0.197)
    """
    auc, auc_se = _auc(y, p)
    found = {"rows": len(y), "events": int(y.sum()), "auc": auc, "auc_se": auc_se}
    for name, each in (("brier", (y - p) ** 2), ("log_score", log_scores(y, p))):
        found |= {name: float(each.mean()), f"{name}_se": _error(each)}
    eta = np.clip(special.logit(p), -_LIMIT, _LIMIT)
    ones = np.ones((len(y), 1))
    a, b = _logistic(y, ones, eta), _logistic(y, np.column_stack([ones, eta]), np.zeros(len(y)))
    found |= {"intercept": a[0][0], "intercept_se": a[1][0]}
    parted = auc in (0.0, 1.0)  # the slope has no end
    return found | {
        "slope": np.nan if parted else b[0][1],
        "slope_se": np.nan if parted else b[1][1],
    }


def _error(each: np.ndarray) -> float:
    return float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else np.nan


def _auc(y: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """Return the area under the ROC curve and its error (DeLong et al. 1988, Biometrics 44)."""
    ones, zeros = p[y == 1], p[y == 0]
    if not len(ones) or not len(zeros):
        return np.nan, np.nan
    apart = ones[:, None] - zeros
    above = (apart > 0.0) + 0.5 * (apart == 0.0)  # (ones, zeros)
    error = np.hypot(_error(above.mean(axis=1)), _error(above.mean(axis=0)))
    return float(above.mean()), float(error)


def _logistic(y: np.ndarray, X: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the maximum likelihood of logistic regression and its errors; NaN if there is none."""
    nowhere = np.full(X.shape[1], np.nan)

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        eta = offset + X @ b
        return float(np.logaddexp(0.0, eta).sum() - y @ eta), X.T @ (special.expit(eta) - y)

    if len(np.unique(y)) < 2:
        return nowhere, nowhere
    found = optimize.minimize(loss, np.zeros(X.shape[1]), jac=True, method="BFGS")
    p = special.expit(offset + X @ found.x)
    information = (X.T * (p * (1.0 - p))) @ X
    if np.linalg.cond(information) > 1e10 or np.abs(found.x).max() > 1e3:  # separated, or constant
        return nowhere, nowhere
    return found.x, np.sqrt(np.diag(np.linalg.inv(information)))
