"""The problems of the laboratory, and data that are made for them.

JCFO and sparse probit learn the scale of their weights by default. Their papers have a fixed one,
so has every table here, and the papers' algorithms need it. Rows do not name it, and "default" on
a page is the fixed scale.
"""

from typing import Any

import numpy as np

import ardvark as av

PAPERS = {model: {"scale": "fixed"} for model in ("jcfo", "sparse_probit")}
RBF: dict[str, Any] = {"kernel": "rbf"}
DENSE: dict[str, Any] = {"active_features": "all", "active_samples": "all"}
BLOCK = 5
"""Features of a block that are correlated in `planted`."""


def problem(model: str, *data: Any, **hypers: Any) -> av.Problem:
    """Return the problem of a row: a scale is learned only where the row says so."""
    return av.problem(model, *data, **PAPERS.get(model, {}) | hypers)


def synthetic(N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X (N, D), standard normal, and y (N,) in {0, 1}, the sign of ten columns' sum."""
    X = np.random.default_rng(0).standard_normal((N, D))
    return X, (X[:, :10].sum(axis=1) > 0).astype(int)


def planted(N: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X (N, D) in blocks of five with correlation 0.8, and y (N,) by at most two features.

    Labels follow the logistic model, with effects of 6 logits a standard deviation.
    """
    rng = np.random.default_rng(1)
    active = min(2, D // BLOCK)
    common = np.repeat(rng.normal(size=(N, D // BLOCK)), BLOCK, axis=1)
    X = np.sqrt(0.8) * common + np.sqrt(1.0 - 0.8) * rng.normal(size=(N, D))
    w = np.zeros(D)
    chosen = BLOCK * rng.choice(D // BLOCK, active, replace=False)
    w[chosen] = 6.0 * rng.choice([-1.0, 1.0], active)
    return X, (rng.random(N) < 1.0 / (1.0 + np.exp(-X @ w))).astype(int)
