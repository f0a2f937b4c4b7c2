"""Exact draws where features are many: 100 samples, up to 100 000 features, two of them planted.

    python -m lab fat_data                                     all of it
    python -m lab fat_data --data 10000 --methods gibbs        a part
    python -m lab fat_data --data allaml --methods nuts --prior dense --draws 1000 --tune 500

Each fit runs in a process of its own, so that the peak of resident memory is its own: the data, the
problem, the fit with `keep="shared"` and its summaries. Seconds are of sampling, without
compilation; a unit is a sweep of `gibbs` or a step of `nuts`, and the growth the exponent of D of
its time from one size to the next. Data as in `lab.priors.sparsity.plant`: features in blocks of
five, correlation 0.8; one in each of two blocks has an effect of +-6 logits a standard deviation.
"planted" is the largest P(active) in each of these two blocks, "other" the largest elsewhere. The
name of a data set in place of a number of features takes that set. Rows are kept in WORK as they
end, by their settings.
"""

import argparse
import itertools
import logging
import resource
from typing import Any

import numpy as np

from lab.priors.sparsity import BLOCK, plant
from lab.records import Goal, at_least, at_most, table
from lab.script import DENSE, Measured, Part, Row, apart, growth, resumed

MANY, FEW, CHAINS = 100, 20, 4  # samples, those of the quick form, chains
DATA = ["1000", "10000", "100000"]
PRIORS: dict[str, dict[str, Any]] = {"sparse": {}, "dense": DENSE}


def one(model: str, method: str, data: str, prior: str, tune: int, draws: int) -> Row:
    """Return what one fit costs, how it mixed and what it found."""
    import ardvark as av
    from ardvark.inference.fits import diagnostics

    logging.getLogger("ardvark").setLevel(logging.ERROR)
    hypers = {k: v for k, v in PRIORS[prior].items() if hasattr(av.ZOO[model].Hypers(), k)}
    hypers |= {"kernel": "linear"} if model == "jcfo" else {}
    if data.isdigit():
        N = FEW if int(data) < 1000 else MANY
        X, y, truth = plant(1, N=N, D=int(data), active=2, effect=6.0)
        problem = av.problem(model, (X, y), **hypers)
        del X  # the problem has its own
    else:
        problem, truth = av.problem(model, av.load(data), **hypers), np.zeros(0)
    tree = av.fit(
        problem, method, tune=tune, draws=draws, chains=CHAINS, random_seed=1, keep="shared"
    )
    units, stats = CHAINS * (tune + draws), tree["sample_stats"]
    if "n_steps" in stats:  # the steps of tuning are not kept: as many a draw as afterwards
        units *= float(stats["n_steps"].mean())
    eta = tree["posterior"]["eta"]
    found = {
        "seconds": tree.attrs["seconds_run"],
        "unit": tree.attrs["seconds_run"] / units,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "rhat": float(diagnostics.rhat(eta).max()),
        "ess": float(diagnostics.ess(eta, "bulk").min()),
        "planted": "",
        "other": "",
        "status": tree.attrs["status"],
    }
    if truth.size:
        p = tree["selection"]["p_active_feature"].values.reshape(-1, BLOCK).max(axis=1)
        planted = truth.reshape(-1, BLOCK).any(axis=1)
        found["planted"] = " ".join(f"{x:.2f}" for x in p[planted])
        found["other"] = f"{p[~planted].max():.2f}"
    return found


def rows(given: argparse.Namespace) -> list[Row]:
    """Return a row for each model, method and size, with the growth from one size to the next."""
    settings = {"prior": given.prior, "tune": given.tune, "draws": given.draws}
    asked = [
        {"model": m, "method": k, "data": d} | settings
        for m in given.models for k in given.methods for d in given.data
    ]  # fmt: skip
    found = resumed(
        given.work / "rows.csv",
        ((key, lambda k=key: apart(one, *k.values(), quick=given.quick)) for key in asked),
    )
    for before, row in itertools.pairwise(found):
        same = all(before[k] == row[k] for k in ("model", "method"))
        if same and all(str(r["data"]).isdigit() for r in (before, row)):
            power = growth([int(r["data"]) for r in (before, row)], [before["unit"], row["unit"]])
            row["growth"] = f"D^{power:.2f}"
    return found


def goals(found: list[Row]) -> list[Goal]:
    """Return the goals of the sizes that have some."""
    out = []
    for row in found:
        name = f"{row['model']} by `{row['method']}`"
        if str(row["data"]) == "100000":
            out += [
                at_most(f"{name}, 100 x 100 000: R-hat of eta", row["rhat"], 1.01),
                at_most(f"{name}, 100 x 100 000: sampling", row["seconds"], 600.0, "s"),
                at_most(f"{name}, 100 x 100 000: peak memory", row["peak"], 8.0, "GB"),
            ]
        if row["data"] == "allaml":
            limit = 60.0 if row["prior"] == "dense" else 120.0
            what = f"{name}, 72 x 7129, {row['prior']} prior"
            out += [
                at_most(f"{what}: R-hat of eta", row["rhat"], 1.01),
                at_least(f"{what}: ESS of eta", row["ess"], 1000.0),
                at_most(f"{what}: sampling", row["seconds"], limit, "s"),
            ]
    return out  # fmt: skip


def measure(given: argparse.Namespace) -> Measured:
    """Measure what is asked for."""
    if given.quick:
        given.data, given.methods, given.models = ["20", "30"], ["gibbs"], ["pfcvm"]
        given.tune, given.draws = 10, 10
    found = rows(given)
    names = {"seconds": "s", "unit": "ms a unit", "peak": "peak, GB", "rhat": "R-hat", "ess": "ESS"}
    shown = [
        {names.get(k, k): 1e3 * v if k == "unit" else v for k, v in row.items()} for row in found
    ]
    formats = {"s": ".0f", "ms a unit": ".2f", "peak, GB": ".2f", "R-hat": ".3f", "ESS": ".0f"}
    return Measured(goals(found), [table("", shown, formats)])


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", nargs="+", default=DATA, help="numbers of features, or a name")
    parser.add_argument("--prior", choices=tuple(PRIORS), default="sparse")
    parser.add_argument("--models", nargs="+", default=["pfcvm", "rfvm"])
    parser.add_argument("--methods", nargs="+", default=["gibbs", "nuts"])
    parser.add_argument("--tune", type=int, default=250, help="a chain (default 250)")
    parser.add_argument("--draws", type=int, default=500, help="a chain (default 500)")


MEASURES = ("inference/generic/nuts.py", "inference/gibbs", "models")
PARTS = [Part("Many features: 72 x 7129 and 100 x 100 000", measure)]
