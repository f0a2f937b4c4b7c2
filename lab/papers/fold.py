"""One fold of one row: fit, choose features and options, predict.

Everything here sees the training rows only, but for the last prediction; the rows
`select-*-outside` are the exception, which is what they are for. Runs in a process of its own
(`run_fold`), which loads each data set once.
"""

import json
import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from ardvark.data import Dataset
from ardvark.inference.methods import run
from ardvark.inference.methods.prediction import Rule, predict
from ardvark.inference.scoring.penalised import path, penalised
from ardvark.inference.scoring.scaler import Scaler
from ardvark.models import ZOO, Problem
from lab.papers.protocols import Group, Row, split, stratified
from lab.papers.tables import FILTER, GROUPS, SELECTED
from lab.problems import problem as problem_of
from lab.yardsticks import contract
from lab.yardsticks.registry import YARDSTICKS

DRAWS, EXACT_DRAWS = 200, 500  # the latter in each of four chains, at least
ESTIMATE = {"pfcvm_lp": "feature_mode", "jcfo_em": "feature_weight", "rfvm_vb": "feature_mean"}
"""What each paper's algorithm ends with: its own estimate of the weights, not a draw."""
STANDS_OUT = 1.01  # a ranking needs a weight that is so many times their median
INNER = 2  # splits to choose options on
FLOOR = 1e-6  # probabilities are held this far from 0 and 1 for the log score
Line = dict[str, Any]


@lru_cache(maxsize=2)
def load(group: str) -> Dataset:
    """Return a group's data, by the group's name."""
    return next(g for g in GROUPS if g.name == group).load()


def find(name: str) -> tuple[Group, Row]:
    """Return the group and the row of a full name, paper-table/data/label."""
    for group in GROUPS:
        for row in group.rows:
            if f"{group.name}/{row.label}" == name:
                return group, row
    raise KeyError(name)


def run_fold(name: str, fold: int) -> list[Line]:
    """Fit one fold and return its line, and those of its path where the row has steps."""
    logging.getLogger("ardvark").setLevel("ERROR")  # a status is in the line
    group, row = find(name)
    data = load(group.name)
    training, test = (data.take(rows, both=False) for rows in split(group.protocol, data, fold))
    common: Line = {"row": name, "fold": fold, "n_train": training.N, "n_test": test.N}
    started = time.perf_counter()
    try:
        line, *path = fit(row, data, training, test)
    except Exception as error:  # one fold must not lose the others
        line, path = {"status": "failed", "reason": f"{type(error).__name__}: {error}"}, []
    line["reason"] = " ".join(str(line["reason"]).split())[:120]
    if group.noise is None:
        line.pop("selected", None)  # only there it is looked at
    line["seconds"] = round(time.perf_counter() - started, 3)
    return [common | x for x in (line, *path)]


def fit(row: Row, data: Dataset, training: Dataset, test: Dataset) -> list[Line]:
    """Return what a fit gives on the test rows, then the same at each step of its path."""
    if row.select:
        lines = [classify_selected(row, data, training, test)]
    elif row.share:
        lines = [matched(row, training, test)]
    elif row.model:
        lines = zoo(row, training, test)
    elif row.method in YARDSTICKS:
        lines = [yardstick(row.method, training, test)]
    else:
        lines = [plain(row.method, training, test)]
        for C, line in zip(row.steps, l1_path(training, test, row.steps), strict=True):
            lines.append(line | {"step": C, "status": "", "selected": ""})
    true = test.y == 1
    for line in lines:
        p, label = line.pop("probability", None), line.pop("label")
        line["accuracy"] = float((label == true).mean())
        line["f1"] = f1(label, true) if test.N > 1 else ""
        draws = line.pop("label_draws", None)
        line["accuracy_draws"] = "" if draws is None else float((draws == true).mean())
        line["log_score"] = "" if p is None else log_score(p, true)
    return lines


def log_score(p: np.ndarray, true: np.ndarray) -> float:
    """Return the mean log probability of the labels, p (M,) held within FLOOR of 0 and 1."""
    p = np.clip(p, FLOOR, 1.0 - FLOOR)
    return float(np.log(np.where(true, p, 1.0 - p)).mean())


def f1(label: np.ndarray, true: np.ndarray) -> float:
    """Return 2 TP / (2 TP + FP + FN), 0 where neither is positive."""
    both = int((label & true).sum())
    return 2.0 * both / max(int(label.sum() + true.sum()), 1)


# --- models of the zoo ----------------------------------------------------------------------------


def zoo(row: Row, training: Dataset, test: Dataset) -> list[Line]:
    """Fit a model of the zoo, its options chosen on inner splits where the row has a grid."""
    if row.on_kernel:
        training, test = kernel_columns(training, test)
    chosen: dict[str, Any] = choose(row, training) if row.grid else {}
    options = {**row.options, **chosen, **({"path": True} if row.steps else {})}
    hypers, features = row.hypers, np.arange(training.D)
    if row.chosen_by:
        chosen, features = choice_of_jcfo(row, training)
        hypers = hypers | chosen
        training, test = (with_features(data, features) for data in (training, test))
    problem = problem_of(row.model, training, **hypers)
    exact = row.method == "exact"
    if exact:
        options = {"cores": 1, **options}  # folds are what runs at once
    tree = run.fit(
        problem, row.method, draws=EXACT_DRAWS if exact else DRAWS, chains=4 if exact else 1,
        random_seed=0, progressbar=False, keep="shared", **options,
    )  # fmt: skip
    if tree.attrs["status"] == "failed":
        raise RuntimeError(tree.attrs["reason"])
    score = problem.spec.link == "identity"  # not a probability
    cut = 0.0 if score else 0.5
    own: Rule = "draws" if exact else "paper"
    rules: set[Rule] = {own, "draws"}
    line: Line = {"chosen": json.dumps(chosen) if chosen else ""}
    by_rule = {
        rule: predict(problem, tree, test, rule=rule).mean(("chain", "draw")).values
        for rule in rules
    }
    line["label"], line["label_draws"] = (by_rule[rule] > cut for rule in (own, "draws"))
    line["probability"] = None if score else by_rule[own]
    line |= {k: tree.attrs[k] for k in ("status", "reason")}
    details = tree["fit"].data_vars
    if "select" in row.options:
        line["chosen"] = json.dumps(chosen | gammas(tree) | inside(tree))
    if exact:
        if row.chosen_by:
            chosen["prior"] = round(float(tree["selection"].attrs["prior_features"]), 3)
            line["chosen"] = json.dumps(chosen)
        return [line | active(tree, features)]
    for kind in ("feature", "sample"):
        if f"selected_{kind}" in details:
            kept = np.flatnonzero(details[f"selected_{kind}"].values)
            line[f"{kind}s"] = len(kept)
            if kind == "feature":
                line["selected"] = " ".join(map(str, kept))
    if row.on_kernel:
        line["samples"] = line.pop("features")
    elif "feature_weight" in problem.spec.fixed:
        line["features"] = line["selected"] = ""  # theta is given: there is no selection
    return [line, *along(row, problem, details, test)]


def choice_of_jcfo(row: Row, training: Dataset) -> tuple[dict[str, float], np.ndarray]:
    """Return the gammas that `jcfo_em` chooses, and the features (D',) that its filter leaves."""
    tree = run.fit(
        problem_of(row.model, training, **row.hypers), "jcfo_em", draws=1, chains=1, random_seed=0,
        progressbar=False, keep="shared", **row.chosen_by,
    )  # fmt: skip
    if tree.attrs["status"] == "failed":
        raise RuntimeError(tree.attrs["reason"])
    return gammas(tree), np.flatnonzero(~tree["fit"].data_vars["filtered"].values)


def gammas(tree: Any) -> dict[str, float]:
    """Return the gammas of a fit by `jcfo_em`; sparse probit has one."""
    details = tree["fit"].data_vars
    return {k: float(details[k]) for k in ("gamma1", "gamma2") if k in details}


def inside(tree: Any) -> dict[str, bool]:
    """Return of each gamma of JCFO that was tuned whether a smaller and a larger one was tried."""
    tried = tree["fit"].data_vars["holdout_gamma"].values.T
    return {
        f"{name}_inside": bool(values.min() < chosen < values.max())
        for (name, chosen), values in zip(gammas(tree).items(), tried, strict=False)
        if np.ptp(values) > 0.0
    }


def with_features(data: Dataset, features: np.ndarray) -> Dataset:
    """Return the data with these features alone."""
    return replace(
        data, X=data.X[:, features], feature_names=tuple(data.feature_names[k] for k in features),
        both=False,
    )  # fmt: skip


def active(tree: Any, features: np.ndarray) -> Line:
    """Return the mean numbers of active features and samples, and the features with P > 1/2.

    `features` (D,) are their places in the table.
    """
    found = tree["selection"].to_dataset()
    line: Line = {
        f"{kind}s": round(float(found[f"active_{kind}s"].mean()), 3)
        for kind in ("feature", "sample")
        if f"active_{kind}s" in found
    }
    kept = features[found["p_active_feature"].values > 0.5]
    return line | {"selected": " ".join(map(str, kept))}


def along(row: Row, problem: Problem, details: Any, test: Dataset) -> Iterator[Line]:
    """Return the lines of the path: at each step the last state kept until then, by its means."""
    if not row.steps:
        return
    point = {
        name: details[f"path_{name}"].values for name in ("feature_weight", "sample_weight", "bias")
    }
    eta = problem.decision(point, problem.standardized(test.X))  # (state, M)
    p = (special.ndtr if problem.spec.link == "probit" else special.expit)(eta)
    iteration = details["path_iteration"].values
    for step in row.steps:
        at = max(int(np.searchsorted(iteration, step, side="right")) - 1, 0)
        line: Line = {"step": step, "label": eta[at] > 0.0, "probability": p[at]}
        for kind in ("feature", "sample"):
            line[f"{kind}s"] = int(np.count_nonzero(point[f"{kind}_weight"][at]))
        yield line


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


def choose(row: Row, training: Dataset) -> dict[str, Any]:
    """Return the candidate with the least error on inner splits of the training rows.

    Ties go to the higher log score, then to the earlier candidate.
    """
    folds = stratified(training.y, INNER, np.random.default_rng(0))
    best, best_score = row.grid[0], (-np.inf, -np.inf)
    for candidate in row.grid:
        right = score = 0.0
        for fold in range(INNER):
            inner, held = (training.take(rows) for rows in (folds != fold, folds == fold))
            problem = problem_of(row.model, inner, **row.hypers)
            tree = run.fit(
                problem, row.method, draws=1, chains=1, random_seed=0, progressbar=False,
                keep="shared", **row.options, **candidate,
            )  # fmt: skip
            if tree.attrs["status"] == "failed":
                right = -np.inf
                break
            p = predict(problem, tree, held, rule="paper").values[0, 0]
            true = np.where(held.y == 1, p, 1.0 - p)
            right += float((true > 0.5).sum())
            score += float(np.log(np.maximum(true, 1e-300)).sum())
        if (right, score) > best_score:
            best, best_score = candidate, (right, score)
    return dict(best)


def matched(row: Row, training: Dataset, test: Dataset) -> Line:
    """Return the line of the candidate that keeps nearest to `row.share`; ties go to the earlier.

    What a fit keeps is the share of the features, of the samples, or the mean of both, whichever
    its method selects; the test rows have no part in it. A candidate is C of a method of
    scikit-learn, or `expected`, the share of bits that the independent mask prior expects.
    """
    lines = []
    for candidate in row.grid:
        if row.model:
            odds = candidate["expected"] / (1.0 - candidate["expected"])
            sizes = {"a_z": odds * training.N, "a_zeta": odds * training.D}
            known = ZOO[row.model].Hypers.__dataclass_fields__
            hypers = row.hypers | {name: a for name, a in sizes.items() if name in known}
            line = zoo(replace(row, hypers=hypers, grid=()), training, test)[0]
        else:
            line = plain(row.method, training, test, **candidate)
        lines.append(line | {"chosen": json.dumps(candidate)})
    return min(lines, key=lambda line: abs(share_kept(line, training) - row.share))


def share_kept(line: Line, training: Dataset) -> float:
    """Return the share kept of the features, of the samples, or the mean of both."""
    sizes = {"features": training.D, "samples": training.N}
    return float(np.mean([line[kind] / n for kind, n in sizes.items() if line.get(kind, "") != ""]))


# --- features chosen first ------------------------------------------------------------------------


def classify_selected(row: Row, data: Dataset, training: Dataset, test: Dataset) -> Line:
    """Choose features on the training rows, or on all rows; then fit the same plain classifier.

    It is logistic regression with an L2 penalty at C = 1 on the standardised features.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = selection(row, training) if row.select == "inside" else outside(row, data)
    kept = found.features
    line: Line = {"features": len(kept), "status": found.status, "reason": found.reason}
    if len(kept) == 0:  # nothing to classify by but the larger class
        p = np.full(test.N, training.y.mean())
    else:
        model = make_pipeline(StandardScaler(), LogisticRegression())
        model.fit(training.X[:, kept], training.y)
        p = model.predict_proba(test.X[:, kept])[:, 1]
    return line | {"probability": p, "label": p > 0.5}


class Choice(NamedTuple):
    """Chosen features, and how the fit that chose them has ended."""

    features: np.ndarray
    status: str = "finished"
    reason: str = ""


_OUTSIDE: dict[tuple[str, str], Choice] = {}


def outside(row: Row, data: Dataset) -> Choice:
    """Return the selection on all rows, made once a process."""
    key = (row.label, data.fingerprint)
    if key not in _OUTSIDE:
        _OUTSIDE[key] = selection(row, data)
    return _OUTSIDE[key]


def selection(row: Row, data: Dataset) -> Choice:
    """Return the features with the largest weights, SELECTED of them or as many as are not 0."""
    ended: dict[str, str] = {}
    if row.method == "filter":
        weight, most = np.abs(t_statistic(data)), FILTER
    elif row.method == "l1_logistic":
        ((weight, _),) = path(standardised(data)[0], data.y, [row.options["C"]], 1.0)
        weight, most = np.abs(weight), FILTER
    else:
        tree = run.fit(
            problem_of(row.model, data, **row.hypers), row.method, draws=1, chains=1,
            random_seed=0, progressbar=False, keep="shared", **row.options,
        )  # fmt: skip
        if tree.attrs["status"] == "failed":
            raise RuntimeError(tree.attrs["reason"])
        found = tree["fit"].to_dataset()
        weight = found[ESTIMATE[row.method]].values * found["selected_feature"].values
        most = SELECTED
        ended = {k: tree.attrs[k] for k in ("status", "reason")}
    return Choice(leading(weight, most), **ended)


def leading(weight: np.ndarray, most: int) -> np.ndarray:
    """Return the features with the largest weights, at most so many, none with a weight of 0.

    Raises
    ------
    RuntimeError
        The weights are flat: to rank them is to rank their rounding.
    """
    kept = weight[weight > 0.0]
    if len(kept) > most and kept.max() < STANDS_OUT * np.median(kept):
        raise RuntimeError(
            f"nothing to rank: the largest of {len(kept)} weights is {kept.max():.6g}, "
            f"their median {np.median(kept):.6g}"
        )
    order = np.argsort(-weight, kind="stable")[:most]
    return np.sort(order[weight[order] > 0.0])


def t_statistic(data: Dataset) -> np.ndarray:
    """Return Welch's t of each feature (D,), 0 for a constant one."""
    first, second = (data.X[data.y == label] for label in (0, 1))
    variance = first.var(axis=0, ddof=1) / len(first) + second.var(axis=0, ddof=1) / len(second)
    difference = second.mean(axis=0) - first.mean(axis=0)
    return np.where(variance > 0.0, difference / np.sqrt(np.where(variance > 0, variance, 1)), 0.0)


# --- baselines ------------------------------------------------------------------------------------


def yardstick(name: str, training: Dataset, test: Dataset) -> Line:
    """Fit a yardstick, its options chosen by inner folds of the training rows."""
    found = contract.fit(YARDSTICKS[name], training.X, training.y, test.X)
    line: Line = {"label": found.label, "probability": found.probability}
    line |= {"status": found.status, "reason": found.reason}
    line["chosen"] = json.dumps(found.chosen) if found.chosen else ""
    if found.features is not None:
        line["features"] = len(found.features)
        line["selected"] = " ".join(map(str, found.features))
    if found.samples is not None:
        line["samples"] = found.samples
    return line


def plain(method: str, training: Dataset, test: Dataset, C: float | None = None) -> Line:
    """Fit a plain classifier, standardised; C by inner 5-fold validation, or as given."""
    if method == "l1_logistic":  # the library's own, the baseline of every `compare`
        if C is not None:
            return next(l1_path(training, test, [C]))
        own = penalised("l1", training.y, 0).fit(training.X, training.y)
        return _l1_line(own.predict_proba(test.X)[:, 1], own.coef_)
    model = svm(method, training, C)
    machine = getattr(model, "best_estimator_", model)[-1]
    line: Line = {"label": model.predict(test.X) == 1, "status": "finished", "reason": ""}
    if method == "l1_svm":
        return line | _kept(machine.coef_[0])
    return line | {"samples": int(machine.n_support_.sum())}


def l1_path(training: Dataset, test: Dataset, Cs: Sequence[float]) -> Iterator[Line]:
    """Yield what L1 logistic regression gives at each C; they rise."""
    X, new = standardised(training, test)
    for w, b in path(X, training.y, Cs, 1.0):
        yield _l1_line(special.expit(new @ w + b), w)


def standardised(*data: Dataset) -> list[np.ndarray]:
    """Return the features of each data set, standardised by the first."""
    scaler = Scaler().fit(data[0].X)
    return [np.asfortranarray(scaler.transform(rows.X)) for rows in data]


def _l1_line(p: np.ndarray, weight: np.ndarray) -> Line:
    found = {"label": p > 0.5, "probability": p, "status": "finished", "reason": ""}
    return found | _kept(weight)


def _kept(weight: np.ndarray) -> Line:
    kept = np.flatnonzero(weight)
    return {"features": len(kept), "selected": " ".join(map(str, kept))}


def svm(method: str, training: Dataset, C: float | None = None) -> Any:
    """Return a fitted support vector machine; its C (and gamma) is searched for, or as given."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, LinearSVC

    grid: dict[str, Any] = {"C": np.logspace(-3, 2, 11)}
    if method == "l1_svm":
        model = LinearSVC(penalty="l1", dual=False)
    elif method == "linear_svm":
        model = SVC(kernel="linear")
    else:
        model = SVC(kernel="rbf")
        grid["gamma"] = np.array([0.1, 1.0, 10.0]) / training.D
    step = type(model).__name__.lower()
    fitted: Any = make_pipeline(StandardScaler(), model)
    if C is not None:
        fitted.set_params(**{f"{step}__C": C})
    else:
        fitted = GridSearchCV(
            fitted,
            {f"{step}__{k}": v for k, v in grid.items()},
            cv=StratifiedKFold(5, shuffle=True, random_state=0),
            scoring="accuracy",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # extreme C of the grid
        fitted.fit(training.X, training.y)
    return fitted
