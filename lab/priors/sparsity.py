"""The sparse default prior: what it expects, how it samples, what it finds, what it costs.

    python -m lab sparsity prior       expected numbers of visible weights, by simulation
    python -m lab sparsity sampling    NUTS by its defaults on the data sets of the papers
    python -m lab sparsity colon       leading genes of two models; sparse against dense
    python -m lab sparsity planted     ROC of P(active) where the truth is known

Rows are kept in WORK as they end; a killed run goes on with the same command. `sampling` and
`colon` need ARDVARK_DATA; their quick forms take rows of digits38. Seeds are fixed in advance.
Defaults were chosen from `prior` and from planted data (seeds 1 and 2, which `planted` leaves out),
never from the data sets of `sampling` and `colon`.

`planted`: 62 rows and 2000 features in blocks of five, correlation 0.8 within a block; 5 features,
each of another block, have an effect of +-3 logits a standard deviation.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import xarray as xr
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.fits import diagnostics
from ardvark.inference.fits.mixing import RHAT_LIMIT
from ardvark.inference.fitting.registry import applicable
from ardvark.models.parts.effects import VISIBLE
from lab.records import Goal, at_most, table
from lab.script import DENSE, Measured, Part, Row, resumed

Work = Iterator[tuple[Row, Callable[[], Row]]]  # what tells a row from others, and its computation
BLOCK = 5  # planted features are correlated in blocks of so many


# --- what the prior expects -----------------------------------------------------------------------


def prior(given: argparse.Namespace) -> Work:
    """Yield one row for each kernel and size of data."""
    sizes = [(12, 4, 5)] if given.quick else [(30, 6, 2000), (200, 40, 400), (72, 7129, 100)]
    for kernel in ("linear", "polynomial", "rbf"):
        for N, D, draws in sizes:
            key = {"kernel": kernel, "N x D": f"{N} x {D}"}
            yield key, lambda k=kernel, N=N, D=D, S=draws: _expected(k, N, D, S)


def _expected(kernel: str, N: int, D: int, draws: int) -> Row:
    rng = np.random.default_rng(1)
    problem = av.problem("pfcvm", (rng.normal(size=(N, D)), np.arange(N) % 2), kernel=kernel)
    h, counts, eta = problem.hypers, [], []
    for _ in range(draws):
        point = problem.simulate(rng)
        theta, a = point["feature_weight"][None], point["sample_weight"][None]
        data = problem.X, problem.Z, theta, a
        feature = problem.kernel.feature_effects(*data, VISIBLE) > VISIBLE
        counts.append((feature.sum(), (problem.kernel.sample_effects(*data) > VISIBLE).sum()))
        eta.append(np.abs(point["eta"]))
    mean, error = np.mean(counts, axis=0), np.std(counts, axis=0) / np.sqrt(draws)
    return {
        "asked_features": h.active_features, "features": mean[0], "se_features": error[0],
        "asked_samples": h.active_samples, "samples": mean[1], "se_samples": error[1],
        "median_abs_eta": np.median(eta),
    }  # fmt: skip


# --- how it samples -------------------------------------------------------------------------------

SAMPLING = [
    ("pfcvm", "colon", {}), ("rfvm", "colon", {}),
    ("pfcvm", "colon_discrete", {}), ("rfvm", "colon_discrete", {}),
    ("pfcvm", "digits38", {"kernel": "rbf"}), ("rvm", "digits38", {"kernel": "rbf"}),
    ("rfvm", "digits38", {}),
    ("pfcvm", "sonar", {"kernel": "rbf"}), ("rvm", "sonar", {"kernel": "rbf"}),
    ("pfcvm", "golub", {}), ("rfvm", "golub", {}), ("pfcvm", "allaml", {}), ("rfvm", "allaml", {}),
]  # fmt: skip
METHODS = {"pfcvm": ("nuts", "gibbs"), "rfvm": ("nuts", "gibbs"), "rvm": ("nuts", "gibbs")}


def sampling(given: argparse.Namespace) -> Work:
    """Yield one row for each problem, exact method and seed."""
    length = {"draws": 20, "tune": 20, "chains": 2} if given.quick else {}
    for seed in (1,) if given.quick else given.seeds:
        for model, data, hypers in [("pfcvm", "digits38", {})] if given.quick else SAMPLING:
            problem = av.problem(model, few(data) if given.quick else data, **hypers)
            for method in METHODS[model]:
                if method in applicable(problem):
                    key = {"problem": f"{model} {problem.hypers.kernel} {data}", "method": method,
                           "seed": seed}  # fmt: skip
                    yield key, lambda p=problem, m=method, s=seed: _sampled(p, m, s, **length)


def few(name: str, columns: int = 10) -> Dataset:
    """Return 24 rows and some columns of a data set."""
    data = av.load(name)
    rows, kept = np.arange(0, data.N, data.N // 24)[:24], data.X.std(axis=0).argsort()[-columns:]
    return Dataset.from_arrays(data.X[rows][:, kept], data.y[rows], name=name)


def _sampled(problem: Any, method: str, seed: int, **length: int) -> Row:
    fit = av.fit(problem, method, random_seed=seed, progressbar=False, **length)
    eta, chosen, stats = fit["posterior"]["eta"], fit["selection"], fit["sample_stats"]
    p = chosen["p_active_feature"]
    top = p.values.argsort()[::-1][:3]
    leading = ", ".join(f"{p['feature'].values[k]} {p.values[k]:.2f}" for k in top)
    steps = int(stats["n_steps"].sum()) if "n_steps" in stats else 0
    return {
        "rhat_eta": diagnostics.rhat(eta).max(), "ess_eta": diagnostics.ess(eta, "bulk").min(),
        "divergences": diagnostics.divergences(fit), "steps": steps,
        "seconds_run": fit.attrs["seconds_run"], "seconds_compile": fit.attrs["seconds_compile"],
        "n90": float(chosen["n90_features"].median()),
        "active": float(chosen["active_features"].mean()), "leading": leading,
    }  # fmt: skip


# --- what it finds on colon, and what it costs in prediction --------------------------------------


def colon(given: argparse.Namespace) -> Work:
    """Yield the overlap of two models' leading genes, then five folds of three classifiers."""
    data = few("digits38", 12) if given.quick else av.load("colon")
    length = {"draws": 20, "chains": 2} if given.quick else {}
    method, models = given.method, ("pfcvm", "rfvm")
    dense = {"active_features": 3.0} if given.quick else DENSE  # NUTS, to be compiled, has DENSE
    yield {"row": "leading ten"}, lambda: _overlap(data, method, **length)
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(data.X, data.y)
    for i, (train, test) in enumerate([next(folds)] if given.quick else folds):
        parts = data.take(train), data.take(test, both=False)
        for model in models[:1] if given.quick else models:
            for name, prior_given in (("sparse", {}), ("dense", dense)):
                yield (
                    {"row": f"{model} {name} fold {i}"},
                    lambda p=parts, m=model, g=prior_given: _held_out(*p, m, g, method, **length),
                )
        yield {"row": f"L1 fold {i}"}, lambda p=parts: _lasso(*p)


def _overlap(data: Dataset, method: str, **length: int) -> Row:
    p = []
    for model in ("pfcvm", "rfvm"):
        problem = av.problem(model, data)
        fit = av.fit(problem, method, random_seed=1, progressbar=False, **length)
        p.append(fit["selection"]["p_active_feature"].values)
    tens = [set(x.argsort()[::-1][:10]) for x in p]
    shared = sorted(tens[0] & tens[1], key=lambda k: -p[0][k])
    return {"overlap": len(shared), "genes": " ".join(data.feature_names[k] for k in shared)}


def _scores(p: np.ndarray, y: np.ndarray) -> Row:
    log_p = np.where(y == 1, np.log(p), np.log1p(-p))
    return {"log_score": log_p.mean(), "accuracy": ((p > 0.5) == y).mean(), "rows": len(y)}


def _held_out(
    train: Dataset, test: Dataset, model: str, given: Row, method: str, **length: int
) -> Row:
    problem = av.problem(model, train, **given)
    used = method if method in applicable(problem) else "nuts"
    fit = av.fit(problem, used, random_seed=1, progressbar=False, **length)
    eta = fit["posterior"]["eta"]
    p = av.predict(problem, fit, test.X).mean(("chain", "draw")).values
    return _scores(p, test.y) | {"rhat_eta": diagnostics.rhat(eta).max()}


def _lasso(train: Dataset, test: Dataset) -> Row:
    center, scale = train.X.mean(0), train.X.std(0)
    scale[scale == 0.0] = 1.0
    model = _l1().fit((train.X - center) / scale, train.y)
    return _scores(model.predict_proba((test.X - center) / scale)[:, 1], test.y)


def _l1() -> LogisticRegressionCV:
    """Penalised logistic regression, its penalty by inner cross-validation of the log score."""
    return LogisticRegressionCV(
        Cs=10,
        l1_ratios=(1.0,),
        cv=5,
        solver="liblinear",
        scoring="neg_log_loss",
        use_legacy_attributes=False,
    )


# --- what it finds where the truth is known -------------------------------------------------------


def plant(
    seed: int, N: int = 62, D: int = 2000, active: int = 5, effect: float = 3.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X (N, D), y, and which features are active."""
    rng = np.random.default_rng(seed)
    correlation = 0.8
    common = np.repeat(rng.normal(size=(N, D // BLOCK)), BLOCK, axis=1)
    X = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * rng.normal(size=(N, D))
    w = np.zeros(D)
    chosen = BLOCK * rng.choice(D // BLOCK, active, replace=False)
    w[chosen] = effect * rng.choice([-1.0, 1.0], active)
    y = (rng.random(N) < 1.0 / (1.0 + np.exp(-X @ w))).astype(int)
    return X, y, w != 0.0


def planted(given: argparse.Namespace) -> Work:
    """Yield one row for each of 20 data sets."""
    for seed in (101,) if given.quick else range(101, 121):
        yield {"data set": seed}, lambda s=seed: _found(s, given.method, given.quick)


def _found(seed: int, method: str, quick: bool = False) -> Row:
    X, y, truth = plant(seed, N=24, D=30, active=2) if quick else plant(seed)
    length = {"draws": 20, "chains": 2} if quick else {}
    row: Row = {}

    def judge(name: str, score: np.ndarray) -> None:
        order = np.argsort(-score, kind="stable")
        row[f"auc_{name}"] = roc_auc_score(truth, score)
        row[f"top5_{name}"] = int(truth[order[:5]].sum())

    for model in ("pfcvm", "rfvm"):
        problem = av.problem(model, (X, y))
        exact = av.fit(problem, method, random_seed=seed, progressbar=False, **length)
        judge(model, exact["selection"]["p_active_feature"].values)
        row[f"rhat_{model}"] = diagnostics.rhat(exact["posterior"]["eta"]).max()
        paper = av.fit(problem, "paper", random_seed=seed, progressbar=False)
        judge(f"{model}_paper", _mean_effect(problem, paper))
    coefficients = _l1().fit((X - X.mean(0)) / X.std(0), y).coef_
    judge("l1", np.abs(coefficients).ravel())
    return row


def _mean_effect(problem: Any, fit: xr.DataTree) -> np.ndarray:
    """Return the size of the primal weights at a paper's posterior mean, 0 where it pruned."""
    posterior = fit["posterior"].mean(("chain", "draw"))
    return np.abs(
        posterior["feature_weight"].values * (posterior["sample_weight"].values @ problem.Z)
    )


# --- what the rows say ----------------------------------------------------------------------------


def rows_of(work: Callable[[argparse.Namespace], Work], given: argparse.Namespace) -> list[Row]:
    """Compute what is missing of a part, and return its rows."""
    if given.quick:
        given.method = "gibbs"  # has nothing to compile for each problem
    asked = (
        (key, compute)
        for key, compute in work(given)
        if given.only in " ".join(str(value) for value in key.values())
    )
    how = {"method": given.method} if work in (colon, planted) else {}
    return resumed(
        given.work / f"{work.__name__}.csv", ((key | how, compute) for key, compute in asked)
    )


def prior_part(given: argparse.Namespace) -> Measured:
    """Say whether the prior expects what it is asked for."""
    found = rows_of(prior, given)
    off = max(
        abs(row[what] / row[f"asked_{what}"] - 1.0)
        for row in found for what in ("features", "samples")
    )  # fmt: skip
    medians = [row["median_abs_eta"] for row in found]
    inside = min(medians) >= 0.5 and max(medians) <= 3.0
    goals = [
        at_most("expected numbers of visible weights, distance from those asked for", off, 0.2),
        Goal("median |eta| within 0.5 to 3", f"{min(medians):.2f} to {max(medians):.2f}", inside),
    ]
    return Measured(goals, [table("", found, dict.fromkeys(found[0], ".2f") | {"kernel": ""})])


def sampling_part(given: argparse.Namespace) -> Measured:
    """Say which problems NUTS samples by its defaults."""
    found, goals = rows_of(sampling, given), []
    nuts = [row for row in found if row["method"] == "nuts"]
    for problem in dict.fromkeys(row["problem"] for row in nuts):
        runs = [row for row in nuts if row["problem"] == problem]
        limit = 240.0 if problem.endswith(("golub", "allaml")) else 60.0
        rhat, ess, spent = (
            [row[k] for row in runs] for k in ("rhat_eta", "ess_eta", "seconds_run")
        )
        good = max(rhat) < RHAT_LIMIT and min(ess) > 400 and max(spent) <= limit
        goals.append(
            Goal(
                f"{problem}: R-hat of eta below 1.01, ESS above 400, {limit:.0f} s",
                f"{max(rhat):.3f}, {min(ess):.0f}, {max(spent):.0f} s", good,
            )
        )  # fmt: skip
    formats = {"rhat_eta": ".3f", "ess_eta": ".0f", "seconds_run": ".0f", "seconds_compile": ".1f",
               "n90": ".0f", "active": ".1f"}  # fmt: skip
    return Measured(goals, [table("", found, formats)])


def colon_part(given: argparse.Namespace) -> Measured:
    """Say what the sparse prior costs in prediction."""
    found = rows_of(colon, given)
    scores: dict[str, dict[str, float]] = {}  # by classifier, by fold
    for row in found[1:]:
        name, _, fold = row["row"].partition(" fold ")
        scores.setdefault(name, {})[fold] = row["log_score"]
    goals, rows = [], []
    for model in ("pfcvm", "rfvm"):
        sparse, dense = (scores.get(f"{model} {prior}", {}) for prior in ("sparse", "dense"))
        lost = [dense[fold] - sparse[fold] for fold in sparse if fold in dense]
        if lost:
            error = float(np.std(lost, ddof=1) / len(lost) ** 0.5) if len(lost) > 1 else np.nan
            rows.append({"model": model, "dense - sparse": np.mean(lost), "its error": error})
            what = f"{model}: log score lost against the dense prior, in its errors"
            goals.append(at_most(what, float(np.mean(lost)) / error, 1.0))
    formats = {"log_score": ".3f", "accuracy": ".3f", "rhat_eta": ".3f"}
    tables = [table("Rows", found, formats)]
    if rows:
        shown = {"dense - sparse": ".4f", "its error": ".4f"}
        tables.insert(0, table("Log score, fold by fold", rows, shown))
    return Measured(goals, tables)


def planted_part(given: argparse.Namespace) -> Measured:
    """Return means over data sets, and the errors of them."""
    found = rows_of(planted, given)
    names = ("pfcvm", "pfcvm_paper", "rfvm", "rfvm_paper", "l1")
    rows = []
    for name in names:
        area, top = (np.array([row[f"{k}_{name}"] for row in found]) for k in ("auc", "top5"))
        error = area.std(ddof=1) / len(area) ** 0.5 if len(area) > 1 else np.nan
        rows.append({"score": name, "area under the ROC": area.mean(), "its error": error,
                     "true among the first five": top.mean()})  # fmt: skip
    formats = {"area under the ROC": ".3f", "its error": ".3f", "true among the first five": ".2f"}
    worst = max(row[f"rhat_{model}"] for row in found for model in ("pfcvm", "rfvm"))
    title = f"Means over {len(found)} data sets"
    goal = at_most("R-hat of eta of the exact posteriors", worst, RHAT_LIMIT)
    return Measured([goal], [table(title, rows, formats)])


MEASURES = ("inference/generic/nuts.py", "inference/gibbs", "models")
PARTS = [
    Part("What the sparse prior expects", prior_part, "prior"),
    Part("How the sparse prior samples", sampling_part, "sampling"),
    Part("The sparse prior on colon", colon_part, "colon"),
    Part("Planted features", planted_part, "planted"),
]


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of sampling")
    parser.add_argument("--method", default="nuts", help="exact method of colon and planted")
    parser.add_argument("--only", default="", help="rows whose name contains this")
