"""FS-SKLR's own search beside the exact posterior: inclusion probabilities, masks, test scores.

    python -m lab fsklr_masks                        (ARDVARK_DATA for sonar)

70 % of the rows are fitted, 30 % are held out. `gibbs` runs four chains of 4000 sweeps. The search
is repeated with ten seeds, because its result depends on the seed: how often a feature is selected
says how far two runs agree. The share of visited states is that of the first search's feature
stage.
"""

import argparse
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import ardvark as av
from ardvark.inference.fits import diagnostics
from ardvark.inference.fits.datatree import group
from ardvark.inference.scoring.columns import table_text
from ardvark.inference.scoring.held_out import log_scores
from lab import records
from lab.records import Table
from lab.script import Measured, Part

LEAST = 0.3  # inclusion probability from which a feature is listed
QUIET = {"progressbar": False}
CONVERGED = 1.01


def compared(name: str, quick: bool) -> tuple[list[records.Goal], list[Table]]:
    """Return the goals and tables of one data set."""
    data = av.load(name)
    if quick:
        data = data.take(np.random.default_rng(0).permutation(data.N)[:40])
    train, test = data.split(test=0.3, random_seed=0)
    problem = av.problem("fsklr", train)
    exact = av.fit(problem, "gibbs", draws=50 if quick else 4000, random_seed=0, **QUIET)
    sweeps = {"feature_sweeps": 3, "sample_sweeps": 3} if quick else {}
    searches = [
        av.fit(problem, "fsklr_savb", random_seed=s, **QUIET, **sweeps)
        for s in range(2 if quick else 10)
    ]
    fits = {"gibbs": exact, "fsklr_savb": searches[0]}
    comparison = av.compare(fits, problem=problem, test=test)
    sizes = f"{name}, {train.N} rows fitted, {test.N} held out, D = {train.D}"
    h = problem.hypers
    note = f"delta {h.delta:.4g}, xi {h.xi:g}, a_zeta {h.a_zeta:g}, a_z {h.a_z:g}."
    found = diagnostics.inclusion(group(exact, "posterior")["feature_weight"])
    worst = float(diagnostics.rhat(group(exact, "posterior")["eta"]).max())
    goals = [records.at_most(f"R-hat of eta under `gibbs`, {name}", worst, CONVERGED)]
    return goals, [
        comparison_table(sizes, table_text(comparison.table), note),
        seeds_table(name, problem, searches, test),
        masks_table(name, exact, found["probability"].values, searches),
        features_table(name, train.feature_names, found, searches),
    ]


def comparison_table(sizes: str, frame: pd.DataFrame, note: str) -> Table:
    """Return the comparison as it is printed, a line a statistic, without its seconds."""
    kept = frame[~frame.index.str.endswith(", s")].astype(str).rename_axis("")
    return records.table(sizes, kept.reset_index().to_dict("records"), note=note)


def selections(searches: list[xr.DataTree], what: str) -> np.ndarray:
    """Return which features or samples each search selected (searches, K)."""
    return np.array([group(s, "fit")[f"selected_{what}"].values for s in searches], dtype=bool)


def seeds_table(name: str, problem: Any, searches: list[xr.DataTree], test: av.Dataset) -> Table:
    """Return the mean and sd over seeds of the search's scores and sizes."""
    p = [av.predict(problem, s, test.X).mean(("chain", "draw")).values for s in searches]
    values = {
        "accuracy": [((of > 0.5) == test.y).mean() for of in p],
        "log score": [log_scores(test.y, of).mean() for of in p],
        "features": selections(searches, "feature").sum(1),
        "samples": selections(searches, "sample").sum(1),
    }
    rows = [{"": k, "mean": np.mean(v), "sd": np.std(v, ddof=1)} for k, v in values.items()]
    title = f"{name}: the search over {len(searches)} seeds"
    return records.table(title, rows, {"mean": ".3f", "sd": ".3f"})


def jaccard(a: np.ndarray, b: np.ndarray) -> float:
    """Return the size of the intersection over that of the union."""
    return float((a & b).sum() / max((a | b).sum(), 1))


def masks_table(name: str, exact: xr.DataTree, p: np.ndarray, searches: list[Any]) -> Table:
    """Return how far searches agree, and how many features and samples the posterior has."""
    selected, posterior = selections(searches, "feature"), group(exact, "posterior")
    pairs = [jaccard(a, b) for i, a in enumerate(selected) for b in selected[:i]]
    features = posterior["feature_weight"].sum("feature").values
    on = (posterior["sample_weight"] != 0).sum("basis").values
    values = {
        "Jaccard index of two searches' features": np.mean(pairs),
        "Jaccard index of a search's features and those with an inclusion probability above 0.5":
            np.mean([jaccard(a, p > 0.5) for a in selected]),
        "features under the posterior, mean": features.mean(),
        "features under the posterior, sd": features.std(),
        "samples under the posterior, mean": on.mean(),
        "samples under the posterior, sd": on.std(),
    }  # fmt: skip
    rows = [{"": what, "value": value} for what, value in values.items()]
    return records.table(f"{name}: the masks", rows, {"value": ".2f"})


def features_table(
    name: str, names: Any, found: dict[str, Any], searches: list[xr.DataTree]
) -> Table:
    """Return the features that the posterior includes often or the first search selected."""
    p, selected = found["probability"].values, selections(searches, "feature")
    first = group(searches[0], "fit")
    visited = first["visited_zeta"].values[first["stage"].values == 1].mean(0)
    listed = np.flatnonzero((p >= LEAST) | selected[0])
    listed = listed[np.argsort(-p[listed])]
    rows = [
        {
            "feature": str(names[k]),
            "gibbs": p[k],
            "MC error": found["mcse"].values[k],
            "chain spread": found["spread"].values[k],
            "share of visited": visited[k],
            "selected": "yes" if selected[0, k] else "",
            f"selected, of {len(searches)}": int(selected[:, k].sum()),
        }
        for k in listed
    ]
    rest = np.setdiff1d(np.arange(len(p)), listed)
    note = ""
    if len(rest):
        note = (
            f"The other {len(rest)} features have an inclusion probability of {p[rest].mean():.3f} "
            f"on average, and of at most {p[rest].max():.3f}."
        )
    formats = dict.fromkeys(("gibbs", "MC error", "chain spread"), ".3f")
    formats["share of visited"] = ".2f"
    return records.table(f"{name}: inclusion probabilities of features", rows, formats, note)


def measure(given: argparse.Namespace) -> Measured:
    """Return what there is on both data sets."""
    found = Measured(
        notes=["The search does not sample the posterior: its visited states are shown as such."]
    )
    for name in ("digits38_noisy",) if given.quick else ("digits38_noisy", "sonar"):
        goals, tables = compared(name, given.quick)
        found.goals += goals
        found.tables += tables
    return found


MEASURES = ("inference/samplers/gibbs", "inference/papers/fsklr", "models/fsklr.py")
PARTS = [Part("FS-SKLR: the paper's search beside the exact posterior", measure)]
