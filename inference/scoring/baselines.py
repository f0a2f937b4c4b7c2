"""Plain classifiers on the same split, so that a reader sees whether a model is worth its cost.

One always answers the majority class of the training rows, with its share as probability. The
others are L1 logistic regression and a linear support vector machine, both from scikit-learn. Their
features are standardised on the training rows, and C is chosen by inner cross-validation on the
training rows only.

`beside_baselines` says whether a model predicts better than they do: a question apart from the
computation. On the same held-out samples, the log score of each sample's true class is compared
with that of the majority's share and of L1 logistic regression. The standard error is that of the
mean of the paired differences. Less than `BEYOND` of them is no difference. A model of the link
"identity" has no probabilities, so right and wrong classes are compared instead.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ardvark.data import Dataset

from .held_out import measures

Row = dict[str, float]

BEYOND = 2.0
"""Standard errors beyond which a mean of paired differences is not noise."""


@dataclass(frozen=True)
class Baseline:
    """A plain classifier on held-out samples: its row of the table, and what it predicts.

    Attributes
    ----------
    row : dict
        seconds_run and what `held_out.measures` returns.
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
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    from ardvark.data.groups import inner_folds

    from .penalised import INNER, PENALISED, penalised
    from .scaler import Scaler

    folds = min(INNER, int(np.bincount(train.y, minlength=2).min()))
    found = {"majority": _majority(train, test)}
    if folds < 2:
        return found
    inner = inner_folds(train.y, train.groups, folds, seed)
    machine = make_pipeline(Scaler(), SVC(kernel="linear"))
    models = {
        "L1 logistic": penalised("l1", train.y, seed, train.groups),
        "linear SVM": GridSearchCV(machine, {"svc__C": PENALISED["l1"]["Cs"]}, cv=inner),
    }
    for name, model in models.items():
        started = time.perf_counter()
        best = model.fit(train.X, train.y)
        row: Row = {"seconds_run": time.perf_counter() - started}
        decided, p = best.predict(test.X), None
        if name == "linear SVM":
            row |= measures(test.y, decided, best.decision_function(test.X))
        else:
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


# --- a model beside them --------------------------------------------------------------------------


@dataclass(frozen=True)
class Predicted:
    """What a classifier says of the held-out samples.

    Attributes
    ----------
    right : array of bool (M,)
        Whether its class is the true one.
    log_p : array (M,), optional
        Log probability of the true class; None without probabilities.
    """

    right: np.ndarray
    log_p: np.ndarray | None = None

    @classmethod
    def of(cls, y: np.ndarray, decided: np.ndarray, p: np.ndarray | None) -> "Predicted":
        """Return it from true and predicted classes (M,), and P(y = 1) (M,) or None."""
        if p is None:
            return cls(decided == y)
        true = np.maximum(np.where(y == 1, p, 1.0 - p), np.finfo(float).tiny)
        return cls(decided == y, np.log(true))


def beside_baselines(
    fits: Mapping[str, Predicted], plain: Mapping[str, Predicted]
) -> dict[str, str]:
    """Return by fit, in words, how its predictions compare with those of plain classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.inference.scoring.baselines import Predicted, beside_baselines
    >>> y = np.array([0, 1] * 20)
    >>> coin = Predicted.of(y, np.zeros(40), np.full(40, 0.5))
    >>> sure = Predicted.of(y, y, np.where(y == 1, 0.9, 0.1))
    >>> print(beside_baselines({"fit": sure}, {"majority": coin})["fit"])
    predicts better than the majority (log score -0.11 against -0.69, difference 0.59 +- 0.00;
    accuracy 1.00 against 0.50).
    """
    return {name: _line(found, plain) for name, found in fits.items()}


def _line(found: Predicted, plain: Mapping[str, Predicted]) -> str:
    """Return the sentence on one fit."""
    told = [_beside(found, name, other) for name, other in plain.items()]
    return f"predicts {'; '.join(told)}."


def _beside(found: Predicted, name: str, other: Predicted) -> str:
    """Return how a fit's predictions compare with those of one plain classifier."""
    accuracy = f"accuracy {found.right.mean():.2f} against {other.right.mean():.2f}"
    if found.log_p is None or other.log_p is None:
        gap, score, rest = found.right.astype(float) - other.right, accuracy, ""
    else:
        gap, rest = found.log_p - other.log_p, f"; {accuracy}"
        score = f"log score {found.log_p.mean():.2f} against {other.log_p.mean():.2f}"
    error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else np.inf
    mean = float(gap.mean())
    text = f"{score}, difference {mean:.2f} +- {error:.2f}{rest}"
    return f"{_compared(mean, error)} {'the ' * (name == 'majority')}{name} ({text})"


def _compared(gap: float, error: float) -> str:
    if abs(gap) <= BEYOND * error:
        return "no better than"
    return "better than" if gap > 0.0 else "worse than"
