"""The Gibbs samplers: masks beside PyMC's own steps, cost and moves; PFCVM and RFVM on fat data.

    python -m lab gibbs_speed                 everything (ARDVARK_DATA for its data sets)
    python -m lab gibbs_speed pymc full cost moves ard   or some of it
    python -m lab gibbs_speed ard --before FOLDER         beside another version of it

pymc   effective draws per second of `gibbs` and of PyMC's default for the same model
       (BinaryGibbsMetropolis for the bits, NUTS for alpha), four chains each, in one run: the
       smallest over the bits whose inclusion probability under `gibbs` lies between 0.02 and 0.98,
       and of the log posterior. A chain that never moves counts as one draw, and the ratio is then
       a lower bound (marked >). The goal is 50.
full   digits38_noisy, 357 x 64, four chains of 5000 sweeps: the goal is 300 s.
cost   milliseconds a sweep against N, D and the active basis size A.
moves  what each kind of move is for: effective draws per second with and without it.
ard    PFCVM and RFVM with their sparse defaults at 62 x 2000 and 72 x 7129 (colon and allaml of
       ARDVARK_DATA, else made): milliseconds a sweep and effective draws per second of processor
       time, of eta, of the indicators of features with P(active) > 0.1, and of tau: the smallest.
       FOLDER has another version of the package, which is measured in turn with this one.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.fits import diagnostics
from ardvark.inference.fits.datatree import group
from ardvark.inference.gibbs.masks import Sampler
from lab.records import Table, at_least, at_most, table
from lab.script import Measured, Part, Row, has_data, resumed, times
from lab.speed import ard_sweeps

TARGET_RATIO, TARGET_SECONDS = 50.0, 300.0


def rows_of(name: str, N: int) -> Dataset:
    """Return N rows of a data set, shuffled with a fixed seed."""
    data = av.load(name)
    return data.take(np.random.default_rng(0).permutation(data.N)[:N])


def warm() -> None:
    """Compile once, outside every clock."""
    sampler = Sampler(copies())
    sampler.sweep(sampler.start(np.random.default_rng(0), 0), np.random.default_rng(0))


def smallest_ess(bits: xr.DataArray, free: np.ndarray, lp: xr.DataArray) -> tuple[float, float]:
    """Return the smallest bulk ESS of the free bits, and that of the log posterior."""
    return (
        float(diagnostics.ess(bits[..., free].astype(float), "bulk").min()),
        float(diagnostics.ess(lp, "bulk").min()),
    )


def free_bits(tree: xr.DataTree, name: str) -> np.ndarray:
    p = group(tree, "posterior")[name].mean(("chain", "draw")).values
    return (p > 0.02) & (p < 0.98)


def by_pymc(problem: Any, tune: int, draws: int) -> tuple[xr.Dataset, xr.DataArray, float]:
    """Return PyMC's draws by its own steps, their log posterior, and the seconds."""
    import pymc as pm

    with problem.model as model:
        steps = [pm.BinaryGibbsMetropolis([model["zeta"], model["z"]]), pm.NUTS([model["alpha"]])]
        began = time.perf_counter()
        tree = pm.sample(
            draws, tune=tune, chains=4, cores=2, step=steps, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
        taken = time.perf_counter() - began
    found = tree["posterior"].to_dataset()
    point = {k: found[k].values for k in ("zeta", "z", "alpha", "feature_weight", "sample_weight")}
    return found, xr.DataArray(problem.log_density(point), dims=("chain", "draw")), taken


def beside_pymc(data: Dataset, ours: int, tune: int, draws: int) -> list[Row]:
    """Return a row for each kind of bit, and for the log posterior."""
    problem = av.problem("fsklr", data)
    tree = av.fit(problem, "gibbs", draws=ours, random_seed=1, progressbar=False)
    posterior, taken = group(tree, "posterior"), tree.attrs["seconds_run"]
    other, their_lp, their_seconds = by_pymc(problem, tune, draws)
    rows = []
    for what in ("zeta", "z"):
        free = free_bits(tree, what)
        if not free.any():
            continue
        found = smallest_ess(posterior[what], free, tree["sample_stats"]["lp"])
        theirs = smallest_ess(other[what], free, their_lp)
        labels = [f"{what}, {free.sum()} bits"] + (["lp"] if what == "z" else [])
        for label, mine, yours in zip(labels, found, theirs, strict=False):
            rows.append(
                {"problem": f"{data.name}, {data.N} x {data.D}", "of": label,
                 "`gibbs`, ESS": mine, "`gibbs`, ESS / s": mine / taken, "PyMC, ESS": yours,
                 "PyMC, ESS / s": yours / their_seconds,
                 "ratio": mine / taken / (yours / their_seconds),
                 "a lower bound": ">" if yours <= 4.0 else ""}
            )  # fmt: skip
    return rows


def pymc_part(given: argparse.Namespace) -> Measured:
    """Measure `gibbs` beside PyMC's own steps; seconds hold tuning."""
    warm()
    cases = [("sonar", 60, 5000, 200, 1000), ("digits38", 120, 5000, 200, 200)]
    if given.quick:
        cases = [("digits38", 14, 50, 20, 30)]
    found = Measured()
    rows = []
    for name, N, *settings in cases:
        some = beside_pymc(rows_of(name, N), *settings)
        if some:
            least = min(row["ratio"] for row in some)
            found.goals.append(at_least(f"{name}, {N} rows, times PyMC's", least, TARGET_RATIO))
        rows += some
    formats = {name: ".0f" if name.endswith("ESS") else ".1f" for name in
               ("`gibbs`, ESS", "`gibbs`, ESS / s", "PyMC, ESS", "PyMC, ESS / s")}  # fmt: skip
    found.tables.append(table("", rows, formats | {"ratio": ".0f"}))
    return found


def full(given: argparse.Namespace) -> Measured:
    """Measure 5000 sweeps of digits38_noisy."""
    warm()
    data = rows_of("digits38_noisy", 20) if given.quick else av.load("digits38_noisy")
    draws = 50 if given.quick else 5000
    tree = av.fit(av.problem("fsklr", data), "gibbs", draws=draws, random_seed=1, progressbar=False)
    row, taken = av.compare({"gibbs": tree}).table.loc["gibbs"], tree.attrs["seconds_run"]
    names = ("status", "rhat_eta", "mcse_bits", "spread_bits", "unmoved_bits")
    rows: list[Row] = [{"what": name, "value": row[name]} for name in names]
    for what in ("zeta", "z"):
        free = free_bits(tree, what)
        least, lp = smallest_ess(group(tree, "posterior")[what], free, tree["sample_stats"]["lp"])
        rows.append({"what": f"smallest bulk ESS of {what}", "value": least})
    rows.append({"what": "bulk ESS of lp", "value": lp})
    what = f"digits38_noisy {data.N} x {data.D}, 4 x (1000 + {draws}) sweeps"
    return Measured([at_most(what, taken, TARGET_SECONDS, "s")], [table("", rows)])


def cost(given: argparse.Namespace) -> Measured:
    """Measure a sweep as N, D and the active basis size grow."""
    cases: list[tuple[int, int, float]] = [
        *((N, 64, 10.0) for N in (100, 200, 400)),
        *((200, D, 10.0) for D in (200, 800, 3200)),
        *((200, 64, a_z) for a_z in (3.0, 30.0, 100.0)),
    ]
    sweeps, rows = 4 if given.quick else 60, []
    for N, D, a_z in [(14, 5, 10.0)] if given.quick else cases:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(N, D))
        y = (X[:, 0] + X[:, 1] > 0).astype(int)
        sampler = Sampler(av.problem("fsklr", (X, y), a_z=a_z))
        state, taken, on = sampler.start(rng, 0), [], []
        for _ in range(sweeps):
            taken += times(lambda f=sampler.sweep, s=state, r=rng: f(s, r), 1)
            on.append((state.A, state.zeta.sum()))
        half = sweeps // 2
        A, S = np.mean(on[half:], axis=0)
        rows.append({"N": N, "D": D, "A": A, "S": S, "ms a sweep": 1e3 * np.median(taken[half:])})
    formats = {"A": ".0f", "S": ".0f", "ms a sweep": ".2f"}
    note = "A is the number of active basis functions, S that of active features."
    return Measured(tables=[table("", rows, formats, note)])


class Variant(Sampler):
    """The sampler without some of its moves."""

    def __init__(
        self, problem: Any, given_alpha: bool, collapsed: bool, pairs: bool, swaps: bool
    ) -> None:
        super().__init__(problem)
        self.given_alpha, self.collapsed = given_alpha, collapsed
        self.pairs, self.swaps = self.pairs * pairs, self.swaps * swaps
        if not given_alpha:
            self.collapsed_every = 1

    def move_features(self, state: Any, rng: np.random.Generator, *, collapsed: bool) -> None:
        if self.collapsed if collapsed else self.given_alpha:
            super().move_features(state, rng, collapsed=collapsed)


def copies() -> Any:
    """Two informative features, each three times, and six of noise; labels almost without error."""
    rng = np.random.default_rng(3)
    base, noise = rng.normal(size=(200, 2)), rng.normal(size=(200, 6))
    X = np.concatenate([base[:, :1]] * 3 + [base[:, 1:]] * 3 + [noise], axis=1)
    f = 2.0 * (np.abs(base[:, 0]) - 0.7) + base[:, 1]
    y = (rng.random(200) < 1.0 / (1.0 + np.exp(-8.0 * f))).astype(int)
    return av.problem("fsklr", (X, y), a_zeta=0.5, delta=0.5, xi=0.1)


VARIANTS = {
    "all": (True, True, True, True),
    "features given alpha only": (True, False, True, True),
    "features collapsed only": (False, True, True, True),
    "no pairs": (True, True, False, True),
    "no swaps": (True, True, True, False),
}


def chains(problem: Any, choice: tuple[bool, bool, bool, bool], tune: int, sweeps: int) -> Row:
    """Return what four chains of a variant are worth a second of processor time."""
    sampler = Variant(problem, *choice)
    bits, eta, taken = [], [], 0.0
    for chain in range(4):
        rng = np.random.default_rng([5, chain])
        state = sampler.start(rng, chain)
        for _ in range(tune):
            sampler.sweep(state, rng)
        began = time.process_time()
        drawn = []
        for _ in range(sweeps):
            sampler.sweep(state, rng)
            drawn.append((state.zeta.copy(), state.eta.copy()))
        taken += time.process_time() - began
        bits.append([b for b, _ in drawn])
        eta.append([e for _, e in drawn])
    z, e = (
        xr.DataArray(np.array(v, dtype=float), dims=("chain", "draw", "k")) for v in (bits, eta)
    )
    found = diagnostics.inclusion(z)
    p = found["probability"].values
    free = (p > 0.02) & (p < 0.98)
    least = diagnostics.ess(z[..., free], "bulk").min() if free.any() else np.nan
    low = diagnostics.ess(e, "bulk").min()
    return {"zeta ESS": least, "zeta ESS / s": least / taken, "eta ESS": low,
            "eta ESS / s": low / taken, "spread": float(found["spread"].max())}  # fmt: skip


def moves(given: argparse.Namespace) -> Measured:
    """Measure the sampler without some of its moves."""
    tune, sweeps = (5, 20) if given.quick else (500, 2000)
    problems = {"Copies of two features": copies()}
    if not given.quick:
        problems["digits38, 120 rows"] = av.problem("fsklr", rows_of("digits38", 120))
        if has_data(given):
            problems["messidor, 600 rows"] = av.problem("fsklr", rows_of("messidor", 600))
    formats = {"zeta ESS": ".0f", "zeta ESS / s": ".1f", "eta ESS": ".0f", "eta ESS / s": ".1f",
               "spread": ".3f"}  # fmt: skip
    tables: list[Table] = []
    for title, problem in problems.items():
        rows = [
            {"moves": name} | chains(problem, choice, tune, sweeps)
            for name, choice in VARIANTS.items()
        ]
        tables.append(table(title, rows, formats))
    note = (
        f"Four chains of {sweeps} sweeps; seconds are of processor time. "
        '"spread" is the largest distance between a chain\'s inclusion probability and the mean.'
    )
    return Measured(tables=tables, notes=[note])


def sweeps_of(folder: Path, *words: str, quick: bool) -> Row:
    """Return the row of `lab/speed/ard_sweeps.py` for the version of the package in a folder."""
    if quick:  # this version, in this process
        return ard_sweeps.measure(*words[:2], *map(int, words[2:]))
    script = Path(__file__).with_name("ard_sweeps.py")
    environment = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, str(script), *words],
        env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def ard(given: argparse.Namespace) -> Measured:
    """Measure PFCVM and RFVM on fat data, and another version of the package in turn."""
    here = Path(__file__).parents[2]
    folders = {"now": here} | ({"before": given.before.resolve()} if given.before else {})
    data = ["colon", "allaml"] if has_data(given) else ["62x2000", "72x7129"]
    settings = ("150", "600")
    if given.quick:
        data, settings = ["14x30"], ("5", "20")
    asked = [
        {"data": d, "model": m, "version": v}
        for d in data for m in ("pfcvm", "rfvm") for v in folders
    ]  # fmt: skip
    rows = resumed(
        given.work / "ard.csv",
        (
            (k, partial(sweeps_of, folders[k["version"]], k["data"], k["model"], *settings,
                        quick=given.quick))
            for k in asked
        ),
    )  # fmt: skip
    found = Measured()
    by_key = {(r["data"], r["model"], r["version"]): r for r in rows}
    for d, m in {(r["data"], r["model"]): None for r in rows} if given.before else ():
        now, before = by_key[d, m, "now"], by_key[d, m, "before"]
        for name, inverse in (("ms a sweep", True), ("eta, ESS / s", False)):
            if now[name] and before[name]:
                ratio = before[name] / now[name] if inverse else now[name] / before[name]
                found.goals.append(at_least(f"{m}, {d}: {name}, times as fast", ratio, 5.0))
    columns = list(dict.fromkeys(name for row in rows for name in row))
    formats = {name: ".2f" for name in columns if name.endswith("sweep")}
    formats |= {name: ".1f" for name in columns if name.endswith("/ s")} | {"R-hat": ".3f"}
    shown = [{name: row.get(name) for name in columns} for row in rows]
    found.tables.append(table("", shown, formats))
    found.notes.append(f"Four chains of {settings[0]} + {settings[1]} sweeps on one thread.")
    return found


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    parser.add_argument("--before", type=Path, help="ard: folder of another version of the package")


MEASURES = ("inference/gibbs", "models")
PARTS = [
    Part("Masks: `gibbs` beside PyMC's own steps", pymc_part, "pymc"),
    Part("Masks: 5000 sweeps of digits38_noisy", full, "full"),
    Part("Masks: cost of a sweep", cost, "cost"),
    Part("Masks: what each move is for", moves, "moves"),
    Part("PFCVM and RFVM: a sweep on fat data", ard, "ard"),
]
