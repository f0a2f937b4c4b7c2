"""The exact sampler of the masks: speed beside PyMC's own steps, cost of a sweep, choice of moves.

    python -m benchmarks.gibbs_speed                 everything (ARDVARK_DATA for sonar)
    python -m benchmarks.gibbs_speed pymc full cost moves       or some of it

pymc   effective draws per second of `gibbs` and of PyMC's default for the same model
       (BinaryGibbsMetropolis for the bits, NUTS for alpha), four chains each, in one run: the
       smallest over the bits whose inclusion probability under `gibbs` lies between 0.02 and 0.98,
       and of the log posterior. A chain that never moves counts as one draw, and the ratio is then
       a lower bound (marked >). The goal is 50.
full   digits38_noisy, 357 x 64, four chains of 5000 sweeps: the goal is 300 s.
cost   milliseconds a sweep against N, D and the active basis size A.
moves  what each kind of move is for: effective draws per second with and without it.
"""

import argparse
import time
from typing import Any

import numpy as np
import xarray as xr

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.fits import diagnostics
from ardvark.inference.fits.datatree import group
from ardvark.inference.gibbs.masks import Sampler


def rows_of(name: str, N: int) -> Dataset:
    """Return N rows of a data set, shuffled with a fixed seed."""
    data = av.load(name)
    return data.take(np.random.default_rng(0).permutation(data.N)[:N])


def smallest_ess(bits: xr.DataArray, free: np.ndarray, lp: xr.DataArray) -> tuple[float, float]:
    """Return the smallest bulk ESS of the free bits, and that of the log posterior."""
    return (
        float(diagnostics.ess(bits[..., free].astype(float), "bulk").min()),
        float(diagnostics.ess(lp, "bulk").min()),
    )


def free_bits(tree: xr.DataTree, name: str) -> np.ndarray:
    p = group(tree, "posterior")[name].mean(("chain", "draw")).values
    return (p > 0.02) & (p < 0.98)


def beside_pymc(name: str, N: int, tune: int, draws: int) -> None:
    import pymc as pm

    problem = av.problem("fsklr", rows_of(name, N))
    tree = av.fit(problem, "gibbs", draws=5000, random_seed=1, progressbar=False)
    posterior, seconds = group(tree, "posterior"), tree.attrs["seconds_run"]
    with problem.model as model:
        steps = [pm.BinaryGibbsMetropolis([model["zeta"], model["z"]]), pm.NUTS([model["alpha"]])]
        started = time.perf_counter()
        theirs = pm.sample(
            draws,
            tune=tune,
            chains=4,
            cores=2,
            step=steps,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
        elapsed = time.perf_counter() - started
    other = theirs["posterior"].to_dataset()
    point = {k: other[k].values for k in ("zeta", "z", "alpha", "feature_weight", "sample_weight")}
    their_lp = xr.DataArray(problem.log_density(point), dims=("chain", "draw"))
    print(
        f"\n{name}, N = {N}, D = {problem.data.D}: gibbs 4 x (1000 + 5000) in {seconds:.1f} s, "
        f"PyMC 4 x ({tune} + {draws}) in {elapsed:.1f} s, both with tuning"
    )
    print(f"{'':<12}{'gibbs ESS':>10}{'a second':>10}{'PyMC ESS':>10}{'a second':>10}{'ratio':>9}")
    for what in ("zeta", "z"):
        free = free_bits(tree, what)
        ours = smallest_ess(posterior[what], free, tree["sample_stats"]["lp"])
        found = smallest_ess(other[what], free, their_lp)
        labels = [f"{what} ({free.sum()})"] + (["lp"] if what == "z" else [])
        for i, label in enumerate(labels):
            bound = ">" if found[i] <= 4.0 else ""
            ratio = ours[i] / seconds / (found[i] / elapsed)
            print(
                f"{label:<12}{ours[i]:>10.0f}{ours[i] / seconds:>10.1f}"
                f"{found[i]:>10.1f}{found[i] / elapsed:>10.2f}{bound + format(ratio, '.0f'):>9}"
            )


def full() -> None:
    problem = av.problem("fsklr", "digits38_noisy")
    tree = av.fit(problem, "gibbs", draws=5000, random_seed=1, progressbar=False)
    row = av.compare({"gibbs": tree}).table.loc["gibbs"]
    seconds = tree.attrs["seconds_run"]
    print(f"\ndigits38_noisy 357 x 64, 4 x (1000 + 5000) sweeps: {seconds:.0f} s (goal 300)")
    print(row[["status", "rhat_eta", "mcse_bits", "spread_bits", "unmoved_bits"]].to_string())
    for what in ("zeta", "z"):
        least, lp = smallest_ess(
            group(tree, "posterior")[what], free_bits(tree, what), tree["sample_stats"]["lp"]
        )
        print(f"smallest bulk ESS of {what} {least:.0f} ({least / seconds:.0f} a second)")
    print(f"bulk ESS of lp {lp:.0f}")


def cost() -> None:
    print(f"\none sweep\n{'N':>6}{'D':>8}{'A':>6}{'S':>6}{'ms':>9}")
    for N, D, a_z in (
        *((N, 64, 10.0) for N in (100, 200, 400)),
        *((200, D, 10.0) for D in (200, 800, 3200)),
        *((200, 64, a_z) for a_z in (3.0, 30.0, 100.0)),
    ):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(N, D))
        y = (X[:, 0] + X[:, 1] > 0).astype(int)
        sampler = Sampler(av.problem("fsklr", (X, y), a_z=a_z))
        state, times, on = sampler.start(rng, 0), [], []
        for sweep in range(60):
            started = time.perf_counter()
            sampler.sweep(state, rng)
            if sweep >= 30:
                times.append(time.perf_counter() - started)
                on.append((state.A, state.zeta.sum()))
        A, S = np.mean(on, axis=0)
        print(f"{N:>6}{D:>8}{A:>6.0f}{S:>6.0f}{1e3 * np.median(times):>9.2f}")


class _Variant(Sampler):
    """The sampler without some of its moves."""

    def __init__(self, problem: Any, given_alpha: bool, collapsed: bool, swaps: bool) -> None:
        super().__init__(problem)
        self.given_alpha, self.collapsed, self.SWAPS = given_alpha, collapsed, int(swaps)
        self.COLLAPSED = 4 if given_alpha else 1

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


def moves(sweeps: int = 2000) -> None:
    variants = {
        "all": (True, True, True),
        "features given alpha only": (True, False, True),
        "features collapsed only": (False, True, True),
        "no swaps": (True, True, False),
    }
    problems = {
        "digits38, N = 120": av.problem("fsklr", rows_of("digits38", 120)),
        "copies of two features": copies(),
    }
    head = f"{'zeta ESS':>10}{'a second':>10}{'eta ESS':>9}{'a second':>10}{'spread':>8}"
    for title, problem in problems.items():
        print(f"\n{title}: four chains of {sweeps}, one core\n{'':<28}{head}")
        for name, choice in variants.items():
            sampler = _Variant(problem, *choice)
            bits, eta, seconds = [], [], 0.0
            for chain in range(4):
                rng = np.random.default_rng([5, chain])
                state = sampler.start(rng, chain)
                for _ in range(500):
                    sampler.sweep(state, rng)
                started = time.perf_counter()
                drawn = []
                for _ in range(sweeps):
                    sampler.sweep(state, rng)
                    drawn.append((state.zeta.copy(), state.eta.copy()))
                seconds += time.perf_counter() - started
                bits.append([b for b, _ in drawn])
                eta.append([e for _, e in drawn])
            dims = ("chain", "draw", "k")
            z, e = (xr.DataArray(np.array(v, dtype=float), dims=dims) for v in (bits, eta))
            found = diagnostics.inclusion(z)
            p = found["probability"].values
            least = diagnostics.ess(z[..., (p > 0.02) & (p < 0.98)], "bulk").min()
            low = diagnostics.ess(e, "bulk").min()
            print(
                f"{name:<28}{least:>10.0f}{least / seconds:>10.1f}{low:>9.0f}"
                f"{low / seconds:>10.1f}{float(found['spread'].max()):>8.3f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["pymc", "full", "cost", "moves"])
    parts = parser.parse_args().parts
    warm = Sampler(copies())  # compile once, outside every clock
    warm.sweep(warm.start(np.random.default_rng(0), 0), np.random.default_rng(0))
    if "pymc" in parts:
        beside_pymc("sonar", 60, 200, 1000)
        beside_pymc("digits38", 120, 200, 200)
    if "full" in parts:
        full()
    if "cost" in parts:
        cost()
    if "moves" in parts:
        moves()


if __name__ == "__main__":
    main()
