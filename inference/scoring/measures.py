"""Numbers of one fit that several tables show."""

import numpy as np

from ardvark.data import Dataset
from ardvark.models import Problem

from ..fitting.prediction import classes


def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and sd of each component of draws (chain, draw, ...); one draw's sd is NaN."""
    flat = values.reshape(-1, *values.shape[2:])
    if len(flat) < 2:
        return flat.mean(axis=0), np.full(flat.shape[1:], np.nan)
    return flat.mean(axis=0), flat.std(axis=0, ddof=1)


def score(problem: Problem, p: np.ndarray, test: Dataset) -> dict[str, float]:
    """Return accuracy and mean log probability of the true class on held-out samples.

    `p` (M,) is the predictive probability of y = 1; for a model of the link "identity", its score,
    whose sign is the class.
    """
    accuracy = {"accuracy": float((classes(problem, p) == test.y).mean())}
    if problem.spec.link == "identity":
        return accuracy
    true = np.maximum(np.where(test.y == 1, p, 1.0 - p), np.finfo(float).tiny)
    return accuracy | {"log_score": float(np.log(true).mean())}
