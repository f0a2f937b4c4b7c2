"""What costs the log score: the priors of four models changed one factor at a time.

    python -m lab prior_factors                      development sets (needs ARDVARK_DATA)
    python -m lab prior_factors --folds 1            the first fold only

Every factor changes one setting of a model's default, and leaves the others to be filled anew, as
for a person who gives this one setting. Folds are cold: genes, standardisation, prior and posterior
come from the training rows. All factors and the yardsticks of `lab/yardsticks` see the same folds,
and a difference is that of the log scores of the same test rows. Sets with more than `GENES`
columns keep those of largest variance in the training rows, which looks at no label; messidor is
cut to `ROWS` rows. Chains are those of `gibbs`, short; a cell above `MIXED` is marked.

Nothing is chosen by these figures: they are reported. Cells are kept in WORK as they end, fold by
fold, so that every beginning has all factors; a killed run goes on with the same command.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.fits import diagnostics
from ardvark.inference.fits.datatree import group
from ardvark.inference.scoring.held_out import log_scores
from ardvark.models import Problem
from lab import problems
from lab.records import Table, at_least, every, table
from lab.script import DENSE, Measured, Part, Row, resumed, stored, synthetic
from lab.yardsticks import contract
from lab.yardsticks.registry import YARDSTICKS

GENES, ROWS, FOLDS = 500, 300, 3
MIXED = 1.05
"""Largest R-hat of `eta`: with some 200 effective draws, R-hat of many quantities reaches 1.03."""
LENGTH = {"tune": 100, "draws": 200, "chains": 4}
CLASSES = {
    "nearly separate": ("golub", "leukemia_discrete", "allaml"),
    "colon": ("colon",),
    "small tables": ("sonar", "heart", "messidor"),
}
SAME_PATIENTS = "nearly separate"
"""A class whose sets are the same patients: errors of its sets are taken as fully correlated."""
SETS = tuple(name for names in CLASSES.values() for name in names)
MODELS = ("rfvm", "pfcvm", "jcfo", "fsklr")
PRODUCTS = ("rfvm", "pfcvm")
ONE_PRODUCT = ("horseshoe", "sparse_probit")
PENALISED = ("l1", "elastic_net")
MOST = 0.8
"""Of all features or samples, the largest expected number."""


# --- the factors ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """A change of the default prior: its name, the models that have it, the settings that change.

    `change` gets the problem with the default prior.
    """

    name: str
    models: tuple[str, ...]
    change: Callable[[Problem], Row]


def by(**factors: float) -> Callable[[Problem], Row]:
    """Return the change that multiplies filled hyperparameters; numbers stay below their most."""

    def change(problem: Problem) -> Row:
        N, D = problem.X.shape
        most = {"active_features": MOST * D, "active_samples": MOST * N}
        filled = vars(problem.hypers)
        return {
            name: float(min(factor * filled[name], most.get(name, np.inf)))
            for name, factor in factors.items()
        }

    return change


def to(**settings: Any) -> Callable[[Problem], Row]:
    """Return the change that sets hyperparameters."""
    return lambda problem: settings


FACTORS = (
    Factor("features, samples x4", PRODUCTS, by(active_features=4, active_samples=4)),
    Factor("features, samples x4", ("fsklr",), by(a_zeta=4, a_z=4)),
    Factor("feature weights' scale x3", ("jcfo",), by(gamma2=1 / 9)),
    Factor("slab x3", PRODUCTS, by(slab=3)),
    Factor("kernel width x2", ("fsklr",), by(delta=1 / 4)),
    Factor("feature weights' scale x10", ("jcfo",), by(gamma2=1 / 100)),
    Factor("scale learned", PRODUCTS, to(scale="learned")),
    Factor("features x4", PRODUCTS, by(active_features=4)),
    Factor("features x4", ("fsklr",), by(a_zeta=4)),
    Factor("features x2", PRODUCTS, by(active_features=2)),
    Factor("features x1/2", PRODUCTS, by(active_features=0.5)),
    Factor("features x1/2", ("fsklr",), by(a_zeta=0.5)),
    Factor("samples x4", PRODUCTS, by(active_samples=4)),
    Factor("samples x4", ("fsklr",), by(a_z=4)),
    Factor("no latent noise", ("rfvm",), to(latent_noise="none")),
    Factor("dense: Student-t tails, no slab", PRODUCTS, to(**DENSE)),
    Factor("bias sd x3", PRODUCTS, by(bias_sd=3)),
    Factor("coefficients' scale x3", ("fsklr",), by(xi=1 / 9)),
    Factor("bias, sample weights' scale x3", ("jcfo",), by(gamma1=1 / 9)),
    Factor("linear kernel", ("jcfo", "fsklr"), to(kernel="linear")),
    Factor("samples x1/2", PRODUCTS, by(active_samples=0.5)),
    Factor("samples x1/2", ("fsklr",), by(a_z=0.5)),
    Factor("slab x1/3", PRODUCTS, by(slab=1 / 3)),
    Factor("kernel width x1/2", ("fsklr",), by(delta=4)),
)
"""In the order in which they are computed: the likeliest first."""


# --- one cell -------------------------------------------------------------------------------------


@cache
def data_of(name: str) -> Dataset:
    """Return a development set; "small" is the quick form's."""
    if name == "small":
        return Dataset.from_arrays(*synthetic(24, 6), name=name)
    data = av.load(name)
    if data.N <= 2 * ROWS:
        return data
    return data.take(np.random.default_rng(0).permutation(data.N)[:ROWS])


@cache
def parts(name: str, fold: int) -> tuple[Dataset, Dataset]:
    """Return the training and the test rows of a fold, with the columns that training rows keep."""
    data = data_of(name)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(data.X, data.y)
    train, test = list(folds)[fold]
    kept = np.sort(np.argsort(-data.X[train].var(axis=0), kind="stable")[:GENES])
    names = [data.feature_names[k] for k in kept]
    training, held = (
        Dataset.from_arrays(data.X[rows][:, kept], data.y[rows], feature_names=names, name=name)
        for rows in (train, test)
    )
    return training, held


def scored(test: Dataset, p: np.ndarray, began: float) -> Row:
    """Return what is kept of P(y = 1) of the test rows, with the score of each."""
    scores = log_scores(test.y, p)
    return {
        "log_score": scores.mean(),
        "accuracy": float(((p > 0.5) == test.y).mean()),
        "seconds": time.process_time() - began,
        "scores": " ".join(f"{score:.5f}" for score in scores),
    }


def penalised(method: str, name: str, fold: int) -> Row:
    """Return the cell of a yardstick."""
    began = time.process_time()
    train, test = parts(name, fold)
    return scored(
        test, contract.fit(YARDSTICKS[method], train.X, train.y, test.X).probability, began
    )


def posterior(
    model: str, change: Callable[[Problem], Row], name: str, fold: int, length: dict[str, int]
) -> Row:
    """Return the cell of a model with a changed prior; no score where that prior is refused."""
    began = time.process_time()
    train, test = parts(name, fold)
    problem = problems.problem(model, train)
    settings = change(problem)
    try:
        problem = problems.problem(model, train, **settings)
    except av.InputError as error:
        return {"reason": " ".join(str(error).split())[:120]}
    fit = av.fit(
        problem, "gibbs", random_seed=fold, cores=1, progressbar=False, selection=False,
        keep="shared", **length,
    )  # fmt: skip
    p = av.predict(problem, fit, test.X).mean(("chain", "draw")).values
    eta = group(fit, "posterior")["eta"]
    mixed = {
        "rhat_eta": float(diagnostics.rhat(eta).max()),
        "ess_eta": float(diagnostics.ess(eta, "bulk").min()),
    }
    said = ", ".join(
        f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in settings.items()
    )
    return scored(test, p, began) | mixed | {"settings": said}


def cells(given: argparse.Namespace) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yield the key of every cell and what computes it, in the order of their worth."""
    models = ("rfvm", "jcfo") if given.quick else MODELS
    asked = [("default", model, to()) for model in models]
    asked += [] if given.quick else [("default", model, to()) for model in ONE_PRODUCT]
    asked += [(f.name, m, f.change) for f in FACTORS for m in f.models if m in models]
    asked = asked[:4] if given.quick else asked
    length = {"tune": 4, "draws": 10, "chains": 2} if given.quick else LENGTH
    for fold in range(1 if given.quick else given.folds):
        for names in [("small",)] if given.quick else CLASSES.values():
            for method in ("l2_logistic",) if given.quick else PENALISED:
                for name in names:
                    yield key(method, "default", name, fold), partial(penalised, method, name, fold)
            for factor, model, change in asked:
                for name in names:
                    work = partial(posterior, model, change, name, fold, length)
                    yield key(model, factor, name, fold), work


def key(model: str, factor: str, name: str, fold: int) -> Row:
    """Return what tells a cell from others."""
    return {"model": model, "factor": factor, "data": name, "fold": fold}


# --- what the cells say ---------------------------------------------------------------------------


class Cells:
    """The cells that are there: effects and errors, by set and by class of sets."""

    def __init__(self, rows: list[Row]) -> None:
        self.scores: dict[tuple[str, str, str, int], np.ndarray] = {}
        self.loose: set[tuple[str, str, str, int]] = set()  # chains that have not mixed
        for row in rows:
            name = row["model"], row["factor"], row["data"], int(row["fold"])
            if row.get("scores"):
                self.scores[name] = np.array(str(row["scores"]).split(), dtype=float)
            if (row.get("rhat_eta") or 0.0) > MIXED:
                self.loose.add(name)

    def mean(self, model: str, data: str, factor: str = "default") -> float:
        """Return the mean log score of the test rows of a set."""
        found = [x for name, x in self.scores.items() if name[:3] == (model, factor, data)]
        return float(np.concatenate(found).mean()) if found else np.nan

    def effect(
        self, one: tuple[str, str], other: tuple[str, str], names: tuple[str, ...]
    ) -> tuple[float, float, bool] | None:
        """Return the mean over sets of one (model, factor) minus another, its error, and a mark.

        The error of a set is that of its test rows' mean difference. Where the sets are the same
        patients, the errors' mean is the error of the mean. The mark says that chains of the one or
        the other have not mixed. None where a set has no fold that both have.
        """
        means, errors, loose = [], [], False
        for data in names:
            folds = [
                k for k in range(FOLDS)
                if (*one, data, k) in self.scores and (*other, data, k) in self.scores
            ]  # fmt: skip
            if not folds:
                return None
            pairs = [(self.scores[*one, data, k], self.scores[*other, data, k]) for k in folds]
            gain = np.concatenate([a - b for a, b in pairs])
            means.append(gain.mean())
            errors.append(gain.std(ddof=1) / len(gain) ** 0.5)
            loose |= any((*what, data, k) in self.loose for what in (one, other) for k in folds)
        same = names == CLASSES[SAME_PATIENTS]
        error = np.mean(errors) if same else np.hypot.reduce(errors) / len(errors)
        return float(np.mean(means)), float(error), loose

    def better(self, names: tuple[str, ...]) -> str:
        """Return which penalised regression has the higher mean log score on some sets."""
        means = {m: np.mean([self.mean(m, data) for data in names]) for m in PENALISED}
        return max(means, key=lambda m: means[m])


def said(found: tuple[float, float, bool] | None) -> str:
    """Return an effect, its error, and the mark of chains that have not mixed."""
    if found is None:
        return ""
    return f"{found[0]:+.3f} ± {found[1]:.3f}{'*' if found[2] else ''}"


def defaults(cells: Cells) -> Table:
    """Return the log scores of the defaults, a row for each method."""
    rows = [
        {"": method} | {data: cells.mean(method, data) for data in SETS}
        for method in (*PENALISED, *MODELS, *ONE_PRODUCT)
    ]
    return table("Log score of the defaults", rows, dict.fromkeys(SETS, ".3f"))


def factors(cells: Cells, model: str) -> Table:
    """Return the effects of a model's factors, the largest where classes nearly separate first."""
    rows = []
    for factor in FACTORS:
        if model in factor.models:
            found = {
                title: cells.effect((model, factor.name), (model, "default"), names)
                for title, names in CLASSES.items()
            }
            first = found[SAME_PATIENTS]
            row = {"": factor.name} | {title: said(effect) for title, effect in found.items()}
            rows.append((-np.inf if first is None else first[0], row))
    shown = [row for _, row in sorted(rows, key=lambda pair: -pair[0])]
    return table(f"{model}: what a factor adds to the log score", shown)


def by_set(cells: Cells, rows: list[Row]) -> Table:
    """Return every factor's effect on every set, with its worst R-hat and processor seconds."""
    found = []
    for model, factor, data in dict.fromkeys((r["model"], r["factor"], r["data"]) for r in rows):
        mine = [r for r in rows if (r["model"], r["factor"], r["data"]) == (model, factor, data)]
        effect = cells.effect((model, factor), (model, "default"), (data,))
        found.append(
            {
                "model": model, "factor": factor, "data": data, "folds": len(mine),
                "log score": cells.mean(model, data, factor),
                "added": None if effect is None or factor == "default" else effect[0],
                "error": None if effect is None or factor == "default" else effect[1],
                "R-hat": max(r.get("rhat_eta") or np.nan for r in mine),
                "seconds": sum(r.get("seconds") or 0.0 for r in mine),
            }
        )  # fmt: skip
    formats = dict.fromkeys(("log score", "added", "error", "R-hat"), ".3f") | {"seconds": ".1f"}
    return table("Every set", found, formats)


def gaps(cells: Cells) -> dict[str, dict[str, tuple[float, float, bool] | None]]:
    """Return by model and class what the default lacks to the better of L1 and elastic net."""
    return {
        model: {
            title: cells.effect((cells.better(names), "default"), (model, "default"), names)
            for title, names in CLASSES.items()
        }
        for model in (*MODELS, *ONE_PRODUCT)
    }


def measure(given: argparse.Namespace) -> Measured:
    """Compute the cells that are missing, and say what every factor adds."""
    path, asked = given.work / "cells.csv", list(cells(given))
    rows = stored(path, (k for k, _ in asked)) if given.stored else resumed(path, asked)
    if given.quick:
        return Measured(tables=[table("Cells", [{k: r.get(k) for k in QUICK} for r in rows])])
    found = Cells(rows)
    mixed = [row for row in rows if row.get("rhat_eta")]
    many = sum(row["rhat_eta"] > MIXED for row in mixed)
    lost = gaps(found)
    short = [
        f"{model}, {title} {said(gap)}"
        for model in MODELS
        for title, gap in lost[model].items()
        if gap and gap[0] > 2.0 * gap[1]
    ]
    goals = [
        at_least("share of fits with an R-hat of `eta` below 1.05", 1 - many / len(mixed), 0.95),
        every("no default is clearly (two errors) below the better of L1 and elastic net", short,
              len(MODELS) * len(CLASSES)),
    ]  # fmt: skip
    folds = {name: [int(r["fold"]) for r in rows if r["model"] == name] for name in MODELS}
    note = (
        f"{len(rows)} cells, folds 1 to {1 + max(map(max, folds.values()))} of {FOLDS} "
        f"(the last may lack factors). An asterisk: a fit has an R-hat of `eta` above {MIXED}."
    )
    lacks = [{"": m} | {t: said(gap) for t, gap in row.items()} for m, row in lost.items()]
    tables = [
        defaults(found),
        table("What a default lacks to the better of L1 and elastic net", lacks),
        *(factors(found, model) for model in MODELS),
        by_set(found, rows),
    ]
    return Measured(goals, tables, [note])


QUICK = ("model", "factor", "data", "fold", "log_score")
MEASURES = ("inference/samplers/gibbs", "models")
PARTS = [Part("What costs the log score", measure)]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    parser.add_argument("--folds", type=int, default=FOLDS, help=f"folds, of {FOLDS} (all)")
    parser.add_argument("--stored", action="store_true", help="compute nothing; cells of WORK only")
