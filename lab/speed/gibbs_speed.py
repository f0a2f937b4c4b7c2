"""The Gibbs sampler of the masks: beside PyMC's own steps, its cost, and what its moves are for.

    python -m lab gibbs_speed                 everything (ARDVARK_DATA for its data sets)
    python -m lab gibbs_speed pymc cost moves   or some of it

pymc   effective draws per second of `gibbs` and of PyMC's default for the same model
       (BinaryGibbsMetropolis for the bits, NUTS for alpha), four chains each, in one run: the
       smallest over the bits whose inclusion probability under `gibbs` lies between 0.02 and 0.98,
       and of the log posterior. A chain that never moves counts as one draw, and the ratio is then
       a lower bound (marked >). The goal is 50.
cost   milliseconds a sweep against N, D and the active basis size A.
moves  what each kind of move is for: effective draws per second with and without it.
"""

import argparse
import time
from typing import Any

import numpy as np
import xarray as xr

import ardvark as av
from ardvark.inference.fits import diagnostics
from ardvark.inference.fits.datatree import group
from ardvark.inference.samplers.gibbs.masks import Sampler
from lab.records import Table, at_least, table
from lab.script import Measured, Part, Row, has_data, times
from lab.speed.fits import load

TARGET_RATIO = 50.0


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


def beside_pymc(data: av.Dataset, ours: int, tune: int, draws: int) -> list[Row]:
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
        some = beside_pymc(load(f"{name} {N}"), *settings)
        if some:
            least = min(row["ratio"] for row in some)
            found.goals.append(at_least(f"{name}, {N} rows, times PyMC's", least, TARGET_RATIO))
        rows += some
    formats = {name: ".0f" if name.endswith("ESS") else ".1f" for name in
               ("`gibbs`, ESS", "`gibbs`, ESS / s", "PyMC, ESS", "PyMC, ESS / s")}  # fmt: skip
    found.tables.append(table("", rows, formats | {"ratio": ".0f"}))
    return found


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
        problems["digits38, 120 rows"] = av.problem("fsklr", load("digits38 120"))
        if has_data(given):
            problems["messidor, 600 rows"] = av.problem("fsklr", load("messidor 600"))
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


MEASURES = ("inference/samplers/gibbs", "models")
PARTS = [
    Part("Masks: `gibbs` beside PyMC's own steps", pymc_part, "pymc"),
    Part("Masks: cost of a sweep", cost, "cost"),
    Part("Masks: what each move is for", moves, "moves"),
]
