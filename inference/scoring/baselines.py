"""Plain classifiers on the same split, so that a reader sees whether a model is worth its cost.

One always answers the majority class of the training rows, with its share as probability. The
others are L1 logistic regression and a linear support vector machine, both from scikit-learn. Their
features are standardised on the training rows, and C is chosen by inner cross-validation on the
training rows only.
"""

import time
import warnings
from dataclasses import dataclass

import numpy as np

from ardvark.data import Dataset

from .held_out import measures

Row = dict[str, float]

_GRID = np.logspace(-3, 2, 11)


@dataclass(frozen=True)
class Baseline:
    """A plain classifier on held-out samples: its row of the table, and what it predicts.

    Attributes
    ----------
    row : dict
        seconds_run, own_features, own_samples and what `held_out.measures` returns.
        `own_features` counts nonzero weights, `own_samples` support vectors.
    decided : array (M,)
        The predicted classes.
    p : array (M,) or None
        P(y = 1); the support vector machine gives no probabilities.
    """

    row: Row
    decided: np.ndarray
    p: np.ndarray | None = None


def baselines(train: Dataset, test: Dataset, *, seed: int = 0) -> dict[str, Baseline]:
    """Return the plain classifiers by name.

    With fewer than two training samples of a class there is no inner fold to choose C on, and only
    the majority is left.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    folds = min(5, int(np.bincount(train.y, minlength=2).min()))
    found = {"majority": _majority(train, test)}
    if folds < 2:
        return found
    inner = StratifiedKFold(folds, shuffle=True, random_state=seed)
    models = {
        "L1 logistic": LogisticRegression(
            l1_ratio=1.0, solver="liblinear", random_state=seed, max_iter=1000
        ),
        "linear SVM": SVC(kernel="linear"),
    }
    for name, model in models.items():
        started = time.perf_counter()
        step = type(model).__name__.lower()
        search = GridSearchCV(
            make_pipeline(StandardScaler(), model),
            {f"{step}__C": _GRID},
            cv=inner,
            scoring="accuracy" if name == "linear SVM" else "neg_log_loss",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # extreme C of the grid
            search.fit(train.X, train.y)
        row: Row = {"seconds_run": time.perf_counter() - started}
        best, p = search.best_estimator_, None
        decided = best.predict(test.X)
        if name == "linear SVM":
            row["own_samples"] = int(best[-1].n_support_.sum())
            row |= measures(test.y, decided, best.decision_function(test.X))
        else:
            row["own_features"] = int((best[-1].coef_ != 0).sum())
            # P may be exactly 0 in float64
            log_p = np.log(np.maximum(best.predict_proba(test.X), np.finfo(float).tiny))
            p = np.exp(log_p[:, 1])
            row |= measures(test.y, decided, p=p)
            row["log_score"] = float(log_p[np.arange(test.N), test.y].mean())
        found[name] = Baseline(row, decided, p)
    return found


def _majority(train: Dataset, test: Dataset) -> Baseline:
    """Return that of the more common class, which is y = 0 if both are equally common."""
    share = np.bincount(train.y, minlength=2) / train.N
    decided, p = np.full(test.N, int(share[1] > share[0])), np.full(test.N, share[1])
    return Baseline(measures(test.y, decided, p=p), decided, p)
