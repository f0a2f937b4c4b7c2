"""The sparse default prior: what it expects, how it samples, what it finds, what it costs.

    python -m benchmarks.sparsity prior       expected numbers of visible weights, by simulation
    python -m benchmarks.sparsity sampling    NUTS by its defaults on the data sets of the papers
    python -m benchmarks.sparsity colon       leading genes of two models; sparse against dense
    python -m benchmarks.sparsity planted     ROC of P(active) where the truth is known

Rows are appended to OUT/<part>.csv as they end; a killed run goes on with the same command, and
what is there is printed as a table at the end. `sampling` and `colon` need ARDVARK_DATA. Seeds are
fixed in advance. Defaults were chosen from `prior` and from planted data (seeds 1 and 2, which
`planted` leaves out), never from the data sets of `sampling` and `colon`.

`planted`: 62 rows and 2000 features in blocks of five, correlation 0.8 within a block; 5 features,
each of another block, have an effect of +-3 logits a standard deviation.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.fits import diagnostics
from ardvark.inference.fitting.registry import applicable
from ardvark.models.parts.effects import VISIBLE

Row = dict[str, Any]
BLOCK = 5  # planted features are correlated in blocks of so many
DENSE = {"active_features": "all", "active_samples": "all"}


# --- what the prior expects -----------------------------------------------------------------------


def prior() -> Iterator[tuple[str, Callable[[], Row]]]:
    """Yield one row for each kernel and size of data."""
    for kernel in ("linear", "polynomial", "rbf"):
        for N, D, draws in ((30, 6, 2000), (200, 40, 400), (72, 7129, 100)):
            yield f"{kernel} {N} x {D}", lambda k=kernel, N=N, D=D, S=draws: _expected(k, N, D, S)


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
METHODS = {"pfcvm": ("nuts", "gibbs"), "rfvm": ("nuts", "gibbs"), "rvm": ("nuts",)}


def sampling(seeds: tuple[int, ...]) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Yield one row for each problem, exact method and seed."""
    for seed in seeds:
        for model, data, hypers in SAMPLING:
            problem = av.problem(model, data, **hypers)
            for method in METHODS[model]:
                if method in applicable(problem):
                    name = f"{model} {problem.hypers.kernel} {data} {method} {seed}"
                    yield name, lambda p=problem, m=method, s=seed: _sampled(p, m, s)


def _sampled(problem: Any, method: str, seed: int) -> Row:
    fit = av.fit(problem, method, random_seed=seed, progressbar=False)
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


def colon(method: str) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Yield the overlap of two models' leading genes, then five folds of three classifiers."""
    data = av.load("colon")
    yield "leading ten", lambda: _overlap(data, method)
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(data.X, data.y)
    for i, (train, test) in enumerate(folds):
        parts = data.take(train), data.take(test, both=False)
        for model in ("pfcvm", "rfvm"):
            for name, prior_given in (("sparse", {}), ("dense", DENSE)):
                yield (
                    f"{model} {name} fold {i}",
                    lambda p=parts, m=model, g=prior_given: _held_out(*p, m, g, method),
                )
        yield f"L1 fold {i}", lambda p=parts: _lasso(*p)


def _overlap(data: Dataset, method: str) -> Row:
    p = []
    for model in ("pfcvm", "rfvm"):
        fit = av.fit(av.problem(model, data), method, random_seed=1, progressbar=False)
        p.append(fit["selection"]["p_active_feature"].values)
    tens = [set(x.argsort()[::-1][:10]) for x in p]
    shared = sorted(tens[0] & tens[1], key=lambda k: -p[0][k])
    return {"overlap": len(shared), "genes": " ".join(data.feature_names[k] for k in shared)}


def _scores(p: np.ndarray, y: np.ndarray) -> Row:
    log_p = np.where(y == 1, np.log(p), np.log1p(-p))
    return {"log_score": log_p.mean(), "accuracy": ((p > 0.5) == y).mean(), "rows": len(y)}


def _held_out(train: Dataset, test: Dataset, model: str, given: Row, method: str) -> Row:
    problem = av.problem(model, train, **given)
    used = method if method in applicable(problem) else "nuts"
    fit = av.fit(problem, used, random_seed=1, progressbar=False)
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


def planted(method: str) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Yield one row for each of 20 data sets."""
    for seed in range(101, 121):
        yield f"data set {seed}", lambda s=seed: _found(s, method)


def _found(seed: int, method: str) -> Row:
    X, y, truth = plant(seed)
    row: Row = {}

    def judge(name: str, score: np.ndarray) -> None:
        order = np.argsort(-score, kind="stable")
        row[f"auc_{name}"] = roc_auc_score(truth, score)
        row[f"top5_{name}"] = int(truth[order[:5]].sum())

    for model in ("pfcvm", "rfvm"):
        problem = av.problem(model, (X, y))
        exact = av.fit(problem, method, random_seed=seed, progressbar=False)
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


# --- the run --------------------------------------------------------------------------------------


def main() -> None:
    """Run one part, row by row, and print what there is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("prior", "sampling", "colon", "planted"))
    parser.add_argument("--out", default="results/sparsity", help="folder of the rows")
    parser.add_argument("--seeds", type=int, nargs="+", default=(1, 2, 3), help="of sampling")
    parser.add_argument("--method", default="nuts", help="exact method of colon and planted")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    given = parser.parse_args()
    rows = {
        "prior": prior,
        "sampling": lambda: sampling(tuple(given.seeds)),
        "colon": lambda: colon(given.method),
        "planted": lambda: planted(given.method),
    }[given.part]
    path = Path(given.out) / f"{given.part}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pd.read_csv(path) if path.exists() else pd.DataFrame({"row": []})
    for name, compute in rows():
        if given.only not in name or name in set(table["row"]):
            continue
        row = pd.DataFrame([{"row": name} | compute()])
        table = pd.concat([table, row], ignore_index=True) if len(table) else row
        table.to_csv(path, index=False)
        print(row.round(4).to_string(index=False), file=sys.stderr, flush=True)
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
