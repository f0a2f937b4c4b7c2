"""Kinds of rows that stand in the tables of several papers."""

from typing import Any

import numpy as np

from lab.papers.protocols import Row

LINEAR, RBF = {"kernel": "linear"}, {"kernel": "rbf"}
COSTS = tuple(float(c) for c in np.geomspace(0.02, 20.0, 10).round(3))  # C along L1's path


def accuracy(value: float, **more: float) -> dict[str, float]:
    """Return printed figures of which one is the accuracy."""
    return {"accuracy": value, **more}


def l1(path: bool = False, **more: Any) -> Row:
    """Return L1 logistic regression, beside which every row is set."""
    return baseline("l1_logistic", steps=COSTS if path else (), **more)


def baseline(method: str, printed: dict[str, float] | None = None, **more: Any) -> Row:
    """Return a row of scikit-learn."""
    return Row(
        label=method, model="", method=method, reading="baseline", printed=printed or {}, **more
    )


def rvm(label: str, printed: dict[str, float], sds: dict[str, float] | None = None) -> Row:
    """Return the RVM with a linear kernel: type-II maximum likelihood, as in Tipping (2001)."""
    return Row(
        label=label, model="rvm", method="pfcvm_lp", reading="baseline", hypers=LINEAR,
        printed=printed, printed_sd=sds or {},
    )  # fmt: skip


DENSE = {"active_features": "all", "active_samples": "all"}


def exact(model: str, label: str = "exact", **hypers: Any) -> Row:
    """Return the exact posterior of a model, by `exact`; features and samples are active ones."""
    return Row(label=label, model=model, method="exact", reading="exact", hypers=hypers)
