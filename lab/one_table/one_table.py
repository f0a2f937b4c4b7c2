"""`choose` and `panel` as a person runs them: on the papers' sets and on simulated tables.

    python -m lab one_table choose             the stack and its best members (ARDVARK_DATA)
    python -m lab one_table panel              50 simulated tables with five true features of 300
    python -m lab one_table choose --stored    report the tables that a stopped run has kept

A table is a line of WORK/choose.csv or WORK/panel.csv as it ends, and each fit of a choice a file
in WORK/choose/NAME. Folds and seeds are the defaults of `ardvark.choose`. The candidates are its
defaults without JCFO, whose exact posterior takes longer than those of the others together. On more
than 5000 features RFVM and FS-SKLR are left out too, and on dorothea all models: an hour a table.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import special

import ardvark as av
from ardvark.inference.choosing.choice import Choice
from ardvark.inference.panels.projection import design
from lab import problems
from lab.records import Goal, at_least, at_most, table
from lab.script import Measured, Part, Row, has_data, resumed, stored

PENALISED = ("l1", "elastic_net", "ridge")
TABLES = (
    "sonar", "heart", "ionosphere", "australian", "breast_wisconsin", "messidor", "waveform",
    "colon", "colon_discrete", "lymphoma_discrete", "duke_lymph", "golub", "leukemia_discrete",
    "allaml", "prostate_ge", "dorothea8000",
)  # fmt: skip
"""The sets of the papers' tables."""
MANY, LARGE = 5000, 1000
"""More features than this are too many for RFVM and FS-SKLR; and more rows beside them for all."""
RUNS, TRAINED, FRESH = 50, 150, 1000
EFFECTS = (2.0, -2.0, 1.5, -1.5, 1.5)
"""True weights of the first five of the 300 standard normal features of a simulated table."""


def candidates(N: int, D: int) -> tuple[str, ...]:
    """Return what is compared on a table of this size."""
    zoo = ("rfvm", "fsklr", "horseshoe") if D <= MANY else ("horseshoe",)
    return (*(zoo if N <= LARGE or D <= MANY else ()), *PENALISED, "share")


# --- choose ---------------------------------------------------------------------------------------


def chosen(given: argparse.Namespace) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yield one row for each table."""
    for name in TABLES if has_data(given) else ("digits38",):
        yield {"data": name}, partial(_chosen, name, given)


def _chosen(name: str, given: argparse.Namespace) -> Row:
    data = av.load(name)
    asked: tuple[str, ...] = candidates(data.N, data.D)
    if given.quick:
        data, asked = data.take(range(40)), ("ridge", "share")
    out = given.work / "choose" / name
    choice = av.choose(
        data, candidates=asked, out=out, processes=given.processes, random_seed=1, progressbar=False
    )
    return {"N": data.N, "D": data.D} | row(choice)


def row(choice: Choice) -> Row:
    """Return the differences, in log score a row and their errors, that the goals are about."""
    single = choice.table.drop(index="stack")["log_score"].dropna()
    plain = single[[name for name in PENALISED if name in single.index]]
    zoo = single.drop(index=[*plain.index, "share"])
    found: Row = {"best": str(single.idxmax())}
    for title, names, others in (
        ("stack - best", ["stack"], single), ("stack - penalised", ["stack"], plain),
        ("zoo - penalised", zoo.index, plain),
    ):  # fmt: skip
        value, error = None, None
        if len(names):
            mine = choice.table.loc[list(names), "log_score"].idxmax()
            value, error = mean_and_error(choice.scores[mine] - choice.scores[others.idxmax()])
        found |= {title: value, f"{title}, error": error}
    fits = choice.table.drop(index="stack")
    weights = choice.weights[choice.weights > 0.05].round(2)
    return found | {
        "log score": float(single.max()),
        "zoo": str(zoo.idxmax()) if len(zoo) else "",
        "penalised": str(plain.idxmax()),
        "weights": ", ".join(f"{name} {weight}" for name, weight in weights.items()),
        "unconverged": int(fits["unconverged"].sum()),
        "seconds": float(fits["seconds"].sum()),
    }


def measure_choose(given: argparse.Namespace) -> Measured:
    """Choose on each table, and compare the stack with its best members."""
    rows = _rows(given, "choose.csv", chosen(given))
    shown = [{k: v for k, v in r.items() if not k.endswith("error")} for r in rows]
    for mine, r in zip(shown, rows, strict=True):
        for title in ("stack - best", "stack - penalised", "zoo - penalised"):
            known = r[title] not in (None, "")
            mine[title] = f"{r[title]:+.4f} ± {r[f'{title}, error']:.4f}" if known else ""
    tables = [table("A choice on each table", shown, {"log score": ".3f", "seconds": ".0f"})]
    return Measured(goals(rows), tables, [f"{len(rows)} of {len(TABLES)} tables."])


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return the mean over rows, and its standard error."""
    held = np.asarray(values)
    return float(held.mean()), float(held.std(ddof=1) / np.sqrt(len(held)))


def goals(rows: list[Row]) -> list[Goal]:
    """Return the goals, which were set before the first table."""
    lead = np.array([r["stack - best"] for r in rows], dtype=float)
    lost = [
        f"{r['data']} {r['stack - penalised']:.2g} ± {r['stack - penalised, error']:.2g}"
        for r in rows
        if r["stack - penalised"] < -2.0 * r["stack - penalised, error"]
    ]
    said = f"{len(rows) - len(lost)} of {len(rows)}" + (f"; {'; '.join(lost)}" if lost else "")
    return [
        at_least("tables chosen on", len(rows), len(TABLES)),
        at_most("what the stack lacks to the best candidate, mean over tables", -lead.mean(), 0.01),
        Goal("tables where the stack is not clearly (two errors) below the best of L1, elastic "
             "net and ridge: all", said, not lost),
    ]  # fmt: skip


# --- panel ----------------------------------------------------------------------------------------


def panels(given: argparse.Namespace) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yield one row for each simulated table."""
    for seed in range(1 if given.quick else RUNS):
        yield {"seed": seed}, partial(_panel, seed, given.quick)


def _panel(seed: int, quick: bool) -> Row:
    N, D = (40, 8) if quick else (TRAINED, 300)
    rng = np.random.default_rng([2048, seed])
    X = rng.normal(size=(N + FRESH, D))
    y = (rng.uniform(size=len(X)) < special.expit(X[:, : len(EFFECTS)] @ EFFECTS)).astype(int)
    problem = problems.problem("sparse_probit", X[:N], y[:N])
    how: dict[str, Any] = {"ess": 100, "limit": 256} if quick else {}
    fit = av.fit(problem, "exact", random_seed=seed, keep="shared", progressbar=False, **how)
    panel = av.panel(problem, fit, sizes=3 if quick else None, progressbar=False)
    fresh = problem.data.from_arrays(X[N:], y[N:])
    there, chosen = problem.at(fresh.X), panel.features
    p = panel.predictions.submodel(chosen).probability(design(there.X[:, chosen], there.C))
    full = av.predict(problem, fit, fresh).mean(("chain", "draw")).values
    apart = np.log(np.where(fresh.y == 1, p / full, (1.0 - p) / (1.0 - full)))
    value, error = mean_and_error(apart)
    return {
        "features": len(chosen),
        "true": int(np.sum(np.asarray(chosen) < len(EFFECTS))),
        "panel - full": value,
        "error": error,
        "converged": fit.attrs["status"] == "finished",
    }


def measure_panel(given: argparse.Namespace) -> Measured:
    """Suggest a panel for each table, and compare it with the full posterior on fresh rows."""
    rows = _rows(given, "panel.csv", panels(given))
    small = np.mean([r["features"] <= 8 for r in rows])
    near = np.mean([r["panel - full"] >= -r["error"] for r in rows])
    both = [
        at_least("tables with a panel", len(rows), RUNS),
        at_least("share of panels of at most 8 features", float(small), 1.0),
        at_least("share of panels whose log score on 1000 fresh rows is at most one standard "
                 "error below the full posterior's", float(near), 0.9),
    ]  # fmt: skip
    return Measured(both, [table("Panels of simulated tables", rows)])


# --- the run --------------------------------------------------------------------------------------


def _rows(
    given: argparse.Namespace, file: str, work: Iterator[tuple[Row, Callable[[], Row]]]
) -> list[Row]:
    given.work.mkdir(parents=True, exist_ok=True)
    path = given.work / file
    return stored(path, [key for key, _ in work]) if given.stored else resumed(path, work)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    parser.add_argument("--processes", type=int, default=1, help="fits of a choice at once (1)")
    parser.add_argument("--stored", action="store_true", help="compute nothing; rows of WORK only")


MEASURES = ("inference/choosing", "inference/panels", "inference/samplers/gibbs", "models")
PARTS = [
    Part("A choice on the papers' tables", measure_choose, "choose"),
    Part("Panels of simulated tables", measure_panel, "panel"),
]
