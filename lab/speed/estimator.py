"""The scikit-learn estimator as it is by default, against the better of two plain classifiers.

    python -m lab estimator                              all 30 data sets
    python -m lab estimator --only noise-40x5 digits38-40

Each data set is split into three folds. The estimator, `SparseBayesClassifier(random_state=0)`, is
fitted on two of them and scored on the third, and so are L1 logistic regression, whose C is chosen
by inner cross-validation, and the majority class (`inference/scoring/baselines.py`). The loss of a
data set is the mean over its folds of the mean of -log P(y), in nats. The peer is, for each data
set, whichever of the two has the smaller loss, with hindsight. The difference to it is averaged
over data sets; its standard error is that of paired differences. The data sets are made from the
seeds in `SETS`, or are rows of the built-in digits38. Rows are kept in WORK as they end, a fold a
row, so a run that was stopped goes on where it was.
"""

import argparse
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from lab.records import Goal, number, table
from lab.script import EXACT_CODE, Measured, Part, Row, resumed, seconds

LIMIT = 0.03  # nats
FOLDS = 3
LEAST = 6  # rows of a class: two of each are in every fold
SIZES = ((40, 5), (40, 60), (60, 20), (80, 40), (120, 10))
Drawn = tuple[np.ndarray, np.ndarray]


# --- the data sets --------------------------------------------------------------------------------


def labels(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    """Return labels (N,) with the log odds eta."""
    return (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(int)


def linear(rng: np.random.Generator, N: int, D: int) -> Drawn:
    """Three features with effects of 2, -1.5 and 1 logits."""
    X = rng.normal(size=(N, D))
    return X, labels(rng, X[:, :3] @ [2.0, -1.5, 1.0])


def dense(rng: np.random.Generator, N: int, D: int) -> Drawn:
    """All features with small effects, 3 logits (standard deviation) together."""
    X = rng.normal(size=(N, D))
    return X, labels(rng, X @ rng.normal(size=D) * 3.0 / math.sqrt(D))


def nonlinear(rng: np.random.Generator, N: int, D: int) -> Drawn:
    """A product of two features, and the square of a third."""
    X = rng.normal(size=(N, D))
    return X, labels(rng, 2.0 * X[:, 0] * X[:, 1] + 1.5 * (X[:, 2] ** 2 - 1.0))


def noise(rng: np.random.Generator, N: int, D: int) -> Drawn:
    """Nothing in X predicts y."""
    return rng.normal(size=(N, D)), rng.integers(0, 2, N)


def correlated(rng: np.random.Generator, N: int, D: int) -> Drawn:
    """Blocks of five features, correlation 0.8; one of them has an effect of 3 logits."""
    shared = np.repeat(rng.normal(size=(N, math.ceil(D / 5))), 5, axis=1)[:, :D]
    X = math.sqrt(0.8) * shared + math.sqrt(0.2) * rng.normal(size=(N, D))
    return X, labels(rng, 3.0 * X[:, 0])


def imbalanced(rng: np.random.Generator, N: int, D: int) -> Drawn:
    """About one row in six is positive; two features have an effect."""
    X = rng.normal(size=(N, D))
    return X, labels(rng, -2.2 + X[:, :2] @ [1.5, 1.0])


def digits38(rng: np.random.Generator, N: int, D: int) -> Drawn:
    """Rows of the built-in data set, chosen at random, all D = 64 features."""
    import ardvark as av

    data = av.load("digits38")
    rows = rng.choice(data.N, N, replace=False)
    return data.X[rows][:, :D], data.y[rows]


KINDS: dict[str, Callable[[np.random.Generator, int, int], Drawn]] = {
    f.__name__: f for f in (linear, nonlinear, noise, correlated, imbalanced, dense, digits38)
}
SETS: dict[str, tuple[str, int, int]] = {
    **{
        f"{kind}-{N}x{D}": (kind, N, D)
        for kind in ("linear", "nonlinear", "noise", "correlated", "imbalanced")
        for N, D in SIZES
    },
    "dense-60x30": ("dense", 60, 30),
    "dense-100x60": ("dense", 100, 60),
    **{f"digits38-{N}": ("digits38", N, 64) for N in (40, 80, 120)},
}
"""The 30 data sets, by name: kind, N, D. The seed is the kind and the sizes."""
QUICK = {"linear-24x3": ("linear", 24, 3)}


def made(kind: str, N: int, D: int) -> Any:
    """Return a data set; it is drawn again until each class has `LEAST` rows."""
    from ardvark.data import Dataset

    rng = np.random.default_rng([list(KINDS).index(kind), N, D])
    while True:
        X, y = KINDS[kind](rng, N, D)
        if np.bincount(y, minlength=2).min() >= LEAST:
            return Dataset.from_arrays(X, y, name=f"{kind}-{N}x{D}")


# --- measuring ------------------------------------------------------------------------------------


def one(what: tuple[str, int, int], fold: int, settings: dict[str, Any]) -> Row:
    """Return the losses of one fold, in nats a row."""
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedKFold

    from ardvark.inference.scoring.baselines import baselines
    from ardvark.sklearn import SparseBayesClassifier

    data = made(*what)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(data.X, data.y)
    train, test = (data.take(rows) for rows in list(folds)[fold])
    classifier = SparseBayesClassifier(random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the status tells the same
        took = seconds(lambda: classifier.fit(train.X, train.y))
        plain = baselines(train, test)
    return {
        "estimator": float(log_loss(test.y, classifier.predict_proba(test.X), labels=[0, 1])),
        "L1 logistic": -plain["L1 logistic"].row["log_score"],
        "majority": -plain["majority"].row["log_score"],
        "accuracy": float(classifier.score(test.X, test.y)),
        "status": classifier.status_,
        "s": took,
    }


def measure(given: argparse.Namespace) -> Measured:
    """Measure what is asked for."""
    known = QUICK if given.quick else SETS
    settings: dict[str, Any] = {}
    if given.quick:
        settings = {"draws": 20, "chains": 2, "method_options": {"limit": 256, "cores": 1}}
    asked = known if given.quick or not given.only else given.only
    sets = {name: what for name, what in known.items() if name in asked}
    folds = range(1 if given.quick else FOLDS)
    keys = [{"data": name, "fold": fold} for name in sets for fold in folds]
    found = resumed(
        given.work / "rows.csv",
        ((key, lambda k=key: one(sets[k["data"]], k["fold"], settings)) for key in keys),
    )
    shown = [_of_set(name, [r for r in found if r["data"] == name]) for name in sets]
    formats = dict.fromkeys(("estimator", "L1 logistic", "majority", "accuracy"), ".3f")
    note = (
        f"Differences are to the better of L1 logistic and the majority; {len(folds)} folds each."
    )
    goal = judged([row["difference"] for row in shown], every=set(sets) == set(SETS))
    return Measured([goal], [table("", shown, formats | {"difference": "+.3f", "s": ".0f"}, note)])


def _of_set(name: str, rows: list[Row]) -> Row:
    """Return the means over the folds of a data set, and the difference to the better peer."""
    numbers = ("estimator", "L1 logistic", "majority", "accuracy", "s")
    means = {key: float(np.mean([row[key] for row in rows])) for key in numbers}
    better = min(means["L1 logistic"], means["majority"])
    converged = sum(row["status"] == "finished" for row in rows)
    return {
        "data": name,
        **means,
        "difference": means["estimator"] - better,
        "folds that converged": converged,
    }


def judged(differences: list[float], *, every: bool) -> Goal:
    """Return the goal; it is not judged on some of the data sets."""
    mean, count = float(np.mean(differences)), len(differences)
    error = float(np.std(differences, ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    spread = f" +- {number(error)}" if count > 1 else ""
    return Goal(
        f"Log loss above the better of L1 logistic and the majority: at most {number(LIMIT)} nats "
        f"in the mean over {len(SETS)} data sets",
        f"{mean:+.3f}{spread} nats over {count} data set{'s' if count > 1 else ''}",
        mean <= LIMIT if every else None,
    )


MEASURES = (*EXACT_CODE, "ardvark/estimator_input.py", "ardvark/sklearn.py", "models")
PARTS = [Part("The default estimator against plain classifiers", measure)]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own option."""
    parser.add_argument("--only", nargs="+", choices=tuple(SETS), metavar="SET", default=())
