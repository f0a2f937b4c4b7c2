"""One fold of one row of `paper_check`: fit, choose options, predict.

Everything here sees the training rows only, but for the last prediction. Runs in a process of its
own (`run_fold`), which loads each data set once.
"""

import json
import logging
import time
import warnings
from functools import lru_cache
from typing import Any

import numpy as np

import ardvark as av
from ardvark.data import Dataset
from benchmarks.paper_protocols import GROUPS, Group, Row, split, stratified

DRAWS = 200
INNER = 2  # splits to choose options on
SMALL = 100  # features up to which the selection itself is kept


@lru_cache(maxsize=2)
def load(group: str) -> Dataset:
    return next(g for g in GROUPS if g.name == group).load()


def find(name: str) -> tuple[Group, Row]:
    group, _, label = name.rpartition("/")
    found = next(g for g in GROUPS if g.name == group)
    return found, next(r for r in found.rows if r.label == label)


def options_of(row: Row, full: bool) -> dict[str, Any]:
    return row.options if full else {**row.options, **row.light}


def run_fold(name: str, fold: int, full: bool) -> dict[str, Any]:
    """Fit one fold and return its line, less the identity."""
    logging.getLogger("ardvark").setLevel("ERROR")  # a status is in the line
    group, row = find(name)
    data = load(group.name)
    training, test = (data.take(rows, both=False) for rows in split(group.protocol, data, fold))
    line: dict[str, Any] = {"row": name, "fold": fold}
    line |= {"n_train": training.N, "n_test": test.N, "D": data.D}
    started = time.perf_counter()
    try:
        fit = zoo if row.model else scikit
        line |= fit(row, options_of(row, full), training, test)
        for rule in ("paper", "draws"):
            label = line.pop(f"label_{rule}", None)
            if label is not None:
                line[f"accuracy_{rule}"] = float((label == (test.y == 1)).mean())
                line[f"f1_{rule}"] = f1(label, test.y == 1) if test.N > 1 else ""
    except Exception as error:  # one fold must not lose the others
        line |= {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    line["reason"] = " ".join(str(line["reason"]).split())[:200]
    return line | {"seconds": round(time.perf_counter() - started, 3)}


def zoo(row: Row, options: dict[str, Any], training: Dataset, test: Dataset) -> dict[str, Any]:
    """Fit a model of the zoo, its options chosen on inner splits where the row has a grid."""
    if row.on_kernel:
        training, test = kernel_columns(training, test)
    chosen: dict[str, Any] = choose(row, options, training) if row.grid else {}
    problem = av.problem(row.model, training, **row.hypers)
    tree = av.fit(
        problem, row.method, draws=DRAWS, chains=1, random_seed=0, progressbar=False,
        keep="shared", **options, **chosen,
    )  # fmt: skip
    if tree.attrs["status"] == "failed":
        raise RuntimeError(tree.attrs["reason"])
    middle = 0.0 if problem.spec.link == "identity" else 0.5  # a score, or a probability
    line: dict[str, Any] = {"chosen": json.dumps(chosen) if chosen else ""}
    for rule in ("paper", "draws"):
        value = av.predict(problem, tree, test, rule=rule).mean(("chain", "draw")).values
        line[f"label_{rule}"] = value > middle
    line |= {k: tree.attrs[k] for k in ("status", "reason")}
    details = tree["fit"].data_vars
    for kind in ("feature", "sample"):
        if f"selected_{kind}" in details:
            kept = np.flatnonzero(details[f"selected_{kind}"].values)
            line[f"{kind}s"] = len(kept)
            if kind == "feature" and training.D <= SMALL:
                line["selected"] = " ".join(map(str, kept))
    if row.on_kernel:
        line["samples"] = line.pop("features")
    elif "feature_weight" in problem.spec.fixed:
        line["features"] = line["selected"] = ""  # theta is given: there is no selection
    return line


def kernel_columns(training: Dataset, test: Dataset) -> tuple[Dataset, Dataset]:
    """Return the columns K(x, z_j) = 1 + x'z_j of the training rows z_j, as features."""
    mean, sd = training.X.mean(axis=0), training.X.std(axis=0)
    scaled = [(data.X - mean) / np.where(sd > 0.0, sd, 1.0) for data in (training, test)]
    names = training.sample_names
    K, K_test = (
        Dataset(
            1.0 + X @ scaled[0].T, data.y, names, data.sample_names, data.class_names, both=False
        )
        for X, data in zip(scaled, (training, test), strict=True)
    )
    return K, K_test


def choose(row: Row, options: dict[str, Any], training: Dataset) -> dict[str, Any]:
    """Return the candidate with the least error on inner splits of the training rows.

    Ties go to the higher log score, then to the earlier candidate.
    """
    folds = stratified(training.y, INNER, np.random.default_rng(0))
    best, best_score = row.grid[0], (-np.inf, -np.inf)
    for candidate in row.grid:
        right = score = 0.0
        for fold in range(INNER):
            inner, held = (training.take(rows) for rows in (folds != fold, folds == fold))
            problem = av.problem(row.model, inner, **row.hypers)
            tree = av.fit(
                problem, row.method, draws=1, chains=1, random_seed=0, progressbar=False,
                keep="shared", **options, **candidate,
            )  # fmt: skip
            if tree.attrs["status"] == "failed":
                right = -np.inf
                break
            p = av.predict(problem, tree, held, rule="paper").values[0, 0]
            true = np.where(held.y == 1, p, 1.0 - p)
            right += float((true > 0.5).sum())
            score += float(np.log(np.maximum(true, 1e-300)).sum())
        if (right, score) > best_score:
            best, best_score = candidate, (right, score)
    return dict(best)


def scikit(row: Row, options: dict[str, Any], training: Dataset, test: Dataset) -> dict[str, Any]:
    """Fit a classifier of scikit-learn, standardised; C (and gamma) by inner 5-fold validation."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, LinearSVC

    grid: dict[str, Any] = {"C": np.logspace(-3, 2, 11)}
    if row.method == "l1_logistic":
        model = LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=0, max_iter=1000)
    elif row.method == "l1_svm":
        model = LinearSVC(penalty="l1", dual=False)
    elif row.method == "linear_svm":
        model = SVC(kernel="linear")
    else:
        model = SVC(kernel="rbf")
        grid["gamma"] = np.array([0.1, 1.0, 10.0]) / training.D
    step = type(model).__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {f"{step}__{k}": v for k, v in grid.items()},
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        scoring="neg_log_loss" if row.method == "l1_logistic" else "accuracy",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # extreme C of the grid
        search.fit(training.X, training.y)
    fitted = search.best_estimator_[-1]
    line: dict[str, Any] = {
        "label_paper": search.predict(test.X) == 1,
        "status": "finished",
        "reason": "",
    }
    line["chosen"] = json.dumps(
        {k.split("__")[1]: float(v) for k, v in search.best_params_.items()}
    )
    if row.method.startswith("l1"):
        kept = np.flatnonzero(fitted.coef_)
        line["features"] = len(kept)
        if training.D <= SMALL:
            line["selected"] = " ".join(map(str, kept))
    else:
        line["samples"] = int(fitted.n_support_.sum())
    return line


def f1(label: np.ndarray, true: np.ndarray) -> float:
    """Return 2 TP / (2 TP + FP + FN), 0 where neither is positive."""
    both = int((label & true).sum())
    return 2.0 * both / max(int(label.sum() + true.sum()), 1)
