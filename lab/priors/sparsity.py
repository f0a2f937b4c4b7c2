"""The sparse default prior: what it expects, how it samples, what it finds, what it costs.

    python -m lab sparsity prior                     expected numbers of visible weights
    python -m lab sparsity sampling --seeds 1 2 3    `nuts` and `gibbs` on the papers' data sets
    python -m lab sparsity colon                     leading genes; sparse against dense

Rows are kept in WORK as they end; a killed run goes on with the same command. `prior` simulates.
`sampling` takes cases of `lab/speed/fits.py`. It and `colon` need ARDVARK_DATA. Seeds are fixed in
advance. Defaults were chosen from `prior` and from planted data (`lab.script.plant`, seeds 1 and
2), never from the data sets of `sampling` and `colon`.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.fits import diagnostics
from ardvark.inference.fits.mixing import RHAT_LIMIT
from ardvark.inference.methods.registry import applicable
from ardvark.inference.scoring.baselines import baselines
from ardvark.inference.scoring.held_out import log_scores
from ardvark.models.parts.effects import VISIBLE
from lab.records import Goal, at_most, table
from lab.script import DENSE, RBF, Measured, Part, Row, resumed, synthetic
from lab.speed import fits
from lab.speed.fits import Case

Work = Iterator[tuple[Row, Callable[[], Row]]]  # what tells a row from others, and its computation


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
    *((model, data, {}) for data in ("colon", "colon_discrete") for model in ("pfcvm", "rfvm")),
    *((model, data, RBF) for data in ("digits38", "sonar") for model in ("pfcvm", "rvm")),
    ("rfvm", "digits38", {}),
    *((model, data, {}) for data in ("golub", "allaml") for model in ("pfcvm", "rfvm")),
]


def sampled(*case: Any) -> Row:
    """Return the row of a fit, with what is active under it."""
    _, tree, row = fits.fitted(*case)
    chosen = tree["selection"]
    p = chosen["p_active_feature"]
    top = p.values.argsort()[::-1][:3]
    return row | {
        "n90": float(chosen["n90_features"].median()),
        "active": float(chosen["active_features"].mean()),
        "leading": ", ".join(f"{p['feature'].values[k]} {p.values[k]:.2f}" for k in top),
    }


# --- what it finds on colon, and what it costs in prediction --------------------------------------


SMALL = Dataset.from_arrays(*synthetic(24, 12), name="small")
"""What the quick form takes in place of colon."""


def colon(given: argparse.Namespace) -> Work:
    """Yield the overlap of two models' leading genes, then five folds of three classifiers."""
    data = SMALL if given.quick else av.load("colon")
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
        yield {"row": f"L1 fold {i}"}, lambda p=parts: _plain(*p)


def _overlap(data: Dataset, method: str, **length: int) -> Row:
    p = []
    for model in ("pfcvm", "rfvm"):
        problem = av.problem(model, data)
        fit = av.fit(problem, method, random_seed=1, progressbar=False, **length)
        p.append(fit["selection"]["p_active_feature"].values)
    tens = [set(x.argsort()[::-1][:10]) for x in p]
    shared = sorted(tens[0] & tens[1], key=lambda k: -p[0][k])
    return {"overlap": len(shared), "genes": " ".join(data.feature_names[k] for k in shared)}


def _held_out(
    train: Dataset, test: Dataset, model: str, given: Row, method: str, **length: int
) -> Row:
    problem = av.problem(model, train, **given)
    used = method if method in applicable(problem) else "nuts"
    fit = av.fit(problem, used, random_seed=1, progressbar=False, **length)
    p = av.predict(problem, fit, test.X).mean(("chain", "draw")).values
    rhat = diagnostics.rhat(fit["posterior"]["eta"]).max()
    accuracy = float(((p > 0.5) == test.y).mean())
    score = float(log_scores(test.y, p).mean())
    return {"accuracy": accuracy, "log_score": score, "rhat_eta": rhat}


def _plain(train: Dataset, test: Dataset) -> Row:
    row = baselines(train, test)["L1 logistic"].row
    return {name: row[name] for name in ("accuracy", "log_score")}


# --- what the rows say ----------------------------------------------------------------------------


def rows_of(work: Callable[[argparse.Namespace], Work], given: argparse.Namespace) -> list[Row]:
    """Compute what is missing of a part, and return its rows."""
    if given.quick:
        given.method = "gibbs"  # has nothing to compile for each problem
    how = {"method": given.method} if work is colon else {}
    path = given.work / f"{work.__name__}.csv"
    return resumed(path, ((key | how, compute) for key, compute in work(given)))


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
    length = {"draws": 20, "tune": 20, "chains": 2} if given.quick else {}
    cases = [
        Case(model, data, method, hypers, length)
        for model, data, hypers in ([("pfcvm", "14x3", {})] if given.quick else SAMPLING)
        for method in ("nuts", "gibbs")
    ]
    found, goals = fits.rows(cases, given, "sampling", sampled), []
    nuts = [row for row in found if row["method"] == "nuts"]
    for problem in dict.fromkeys((row["model"], row["prior"], row["data"]) for row in nuts):
        runs = [r for r in nuts if (r["model"], r["prior"], r["data"]) == problem]
        limit = 240.0 if problem[2] in ("golub", "allaml") else 60.0
        rhat, ess, spent = ([row[k] for row in runs] for k in ("R-hat", "ESS", "seconds"))
        good = max(rhat) < RHAT_LIMIT and min(ess) > 400 and max(spent) <= limit
        goals.append(
            Goal(
                f"{' '.join(filter(None, problem))}: R-hat below 1.01, ESS above 400, "
                f"{limit:.0f} s",
                f"{max(rhat):.3f}, {min(ess):.0f}, {max(spent):.0f} s",
                good,
            )
        )
    columns = (
        "model, prior, data, method, seed, R-hat, ESS, divergences, gradients, seconds, compile, "
        "n90, active, leading"
    )
    return Measured(goals, [fits.shown("", found, columns)])


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


MEASURES = ("inference/samplers/gradient/nuts.py", "inference/samplers/gibbs", "models")
PARTS = [
    Part("What the sparse prior expects", prior_part, "prior"),
    Part("How the sparse prior samples", sampling_part, "sampling"),
    Part("The sparse prior on colon", colon_part, "colon"),
]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    fits.add(parser)
    parser.add_argument("--method", default="nuts", help="exact method of colon")
