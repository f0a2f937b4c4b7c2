"""One trial of the judge: problems, pools of exact draws, defects, and what is said of each.

`judge.py` says what is tried, and `report.py` what the rows say.
"""

import itertools
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

import ardvark as av
from ardvark.inference.comparison.verdicts.verdict import Verdict, verdicts
from ardvark.inference.fits.datatree import dataset, group, problem_dims
from ardvark.inference.fits.mixing import mixing
from ardvark.inference.fits.selection import select
from ardvark.inference.methods.run import facts
from ardvark.inference.samplers.gibbs.method import SAMPLER_OF
from ardvark.inference.scoring import limits
from ardvark.inference.scoring.distances import measure
from lab import problems
from lab.judge.wrong_posteriors import Arrays, Defect, Source, flat
from lab.rows import Row

SIZES = {"small": (40, 8), "fat": (30, 120)}
SPARSITY = {
    "rfvm": "active_features",
    "jcfo": "gamma1",
    "rvm": "active_samples",
    "sparse_probit": "gamma1",
}
"""The models, and the hyperparameter by which each is made sparser."""
CHAINS = 4
"""Of the run that a pool is of."""
LIMIT_OF_RHAT = 0.05
MOST = 1000.0
"""Limits beyond which a defect is not larger: an sd of 0 is infinitely far."""
NEVER = ("lost mode", "another prior", "another data row")
"""What no diagnostic of a fit alone can see."""
CHAINED = ("stuck chains", "slow direction")
"""Defects of chains, which are always judged as chains."""
APART = ("repeated draws", "slow direction")
"""Kinds whose draws are right, all of them together."""
OTHER_SIZES = (20, 50, 200, 400, 9600)
"""Numbers of draws that only a few kinds are run with."""


# --- problems and their pools ---------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A problem, by model and size of the data."""

    model: str
    size: str

    def problem(self, active: float = 1.0, flipped: int = 0) -> av.Problem:
        """Return it, its prior's main number times `active`, and some labels flipped."""
        N, D = SIZES[self.size]
        rng = np.random.default_rng(zlib.crc32(self.size.encode()))
        X = rng.normal(size=(N, D))
        y = (rng.random(N) < 1.0 / (1.0 + np.exp(-X[:, :3] @ [2.0, -1.5, 1.0]))).astype(int)
        y[:flipped] = 1 - y[:flipped]
        if active == 1.0:
            return problems.problem(self.model, (X, y))
        name = SPARSITY[self.model]
        usual = float(getattr(problems.problem(self.model, (X, y)).hypers, name))
        return problems.problem(self.model, (X, y), **{name: active * usual})


CASES = tuple(Case(model, size) for model in SPARSITY for size in SIZES)


def sampler_of(model: str) -> str:
    """Return the exact sampler of pools: `gibbs`, which needs no gradient, where there is one."""
    return "gibbs" if model in SAMPLER_OF else "nuts"


def sampled(problem: av.Problem, path: Path, draws: int) -> Arrays:
    """Return draws (S, ...) of a posterior in random order, and keep them in a file."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fit = av.fit(
            problem,
            sampler_of(problem.spec.name),
            draws=draws,
            chains=CHAINS,
            random_seed=11,
            progressbar=False,
        )
        posterior = group(fit, "posterior")
        order = np.random.default_rng(5).permutation(CHAINS * draws)
        arrays = {
            str(n): flat(v.transpose("chain", "draw", ...).values)[order].astype("float32")
            for n, v in posterior.items()
            if not str(n).endswith("_raw")
        }
        np.savez(path, **arrays)
    with np.load(path) as stored:
        return {name: stored[name].astype(float) for name in stored.files}


@cache
def pools(case: Case, work: Path, draws: int) -> tuple[Arrays, Mapping[str, tuple[Arrays, ...]]]:
    """Return the pool of a case, and the draws of other posteriors that defects use."""
    problem, name = case.problem(), f"{case.model}-{case.size}"
    own = sampled(problem, work / f"{name}.npz", draws)
    few = max(draws // 4, 10)
    rng = np.random.default_rng(6)
    points = [problem.simulate(rng) for _ in range(few)]
    prior = {n: np.array([point[n] for point in points], dtype=float) for n in own}
    other = {
        "with the prior": (prior,),
        "another prior": tuple(
            sampled(case.problem(active=by), work / f"{name}-prior{by:g}.npz", few)
            for by in (0.5, 0.2)
        ),
        "another data row": tuple(
            sampled(case.problem(flipped=k), work / f"{name}-rows{k}.npz", few) for k in (1, 3)
        ),
    }
    return own, other


# --- the trial ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A catalogue of defects, and how it is run.

    Attributes
    ----------
    catalogue : mapping of str to function
        The kinds of defect, by name.
    few : tuple of str
        The kinds that are also run with other numbers of draws.
    folder : Path
        Where pools are kept.
    pool, reference : int
        Draws of each chain of a pool; draws of a reference.
    """

    catalogue: Mapping[str, Defect]
    few: tuple[str, ...] = ()
    cases: tuple[Case, ...] = CASES
    draws: tuple[int, ...] = (1000, 4000)
    folder: Path = Path("results/judge/pools")
    pool: int = 3000
    reference: int = 2000

    def work(self, seed: int) -> Iterator[tuple[Row, Callable[[], Row]]]:
        """Yield what tells a row from others, and its computation."""
        plan = [(draws, tuple(self.catalogue)) for draws in self.draws]
        plan += [(draws, self.few) for draws in OTHER_SIZES]
        for case, (draws, kinds) in itertools.product(self.cases, plan):
            for kind in kinds:
                key: Row = {
                    "problem": f"{case.model} {case.size}", "draws": draws, "kind": kind,
                    "repeat": 0, "seed": seed,
                }  # fmt: skip
                yield key, partial(judged, self, key)


# --- a fit from draws, and what the judge says ----------------------------------------------------


def fit_of(problem: av.Problem, draws: Arrays, method: str, seed: int = 1) -> xr.DataTree:
    """Return a fit that holds draws (chain, draw, ...) as they are, whatever they contradict."""
    kind = "approximation" if method == "advi" else "mcmc"
    length = draws["eta"].shape[:2]
    sampling = {"draws": length[1], "chains": length[0]}
    attrs = facts(problem, method=method, kind=kind, **sampling)
    attrs |= {"status": "finished", "reason": "", "seed": seed}
    posterior = dataset(draws, problem_dims(problem), problem.coords, draws=True)
    likelihood = problem.log_likelihood(draws, draws["eta"])
    groups = {
        "/posterior": posterior,
        "/sample_stats": xr.Dataset(),
        "/log_likelihood": xr.Dataset({"y": (("chain", "draw", "obs"), likelihood)}),
        "/observed_data": xr.Dataset({"y": ("obs", problem.y)}),
    }
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = attrs
    tree["selection"] = xr.DataTree(select(problem, tree))
    if kind == "mcmc":
        tree["mixing"] = xr.DataTree(mixing(problem, tree).to_dataset())
    return tree


def chained(pool: Arrays, rows: np.ndarray) -> Arrays:
    """Return rows of a pool as chains (CHAINS, draw, ...)."""
    return {n: x[rows].reshape(CHAINS, -1, *x.shape[1:]) for n, x in pool.items()}


def severity(distances: pd.DataFrame) -> float:
    """Return the largest distance of a fit beyond its noise, in limits."""
    table = limits.judged(distances)
    return min(float((table["counted"] / table["good"]).max()), MOST) if len(table) else 0.0


def made(trial: Trial, key: Row) -> tuple[dict[str, xr.DataTree], pd.DataFrame]:
    """Return the fits of one kind of defect in all its sizes, a right one, and the distances."""
    case = Case(*str(key["problem"]).split())
    problem = case.problem()
    pool, foreign = pools(case, trial.folder, trial.pool)
    rng = np.random.default_rng([key["seed"], zlib.crc32(repr(sorted(key.items())).encode())])
    count, kind = int(key["draws"]) // CHAINS * CHAINS, str(key["kind"])
    order = rng.permutation(len(pool["eta"]))
    rows = iter(np.split(order, [trial.reference]))
    exact = fit_of(problem, chained(pool, next(rows)), "gibbs")
    rest = next(rows)

    chains = kind in CHAINED or (kind not in APART and rng.random() < 0.5)
    method = "nuts" if chains else "advi"
    source = Source(problem, _same_rows(pool, rest, rng), foreign)
    fits = {"exact": exact}
    for size in range(4):
        right = chained(pool, rng.permutation(rest)[:count])
        fits[str(size)] = fit_of(problem, trial.catalogue[kind](right, size, rng, source), method)
    fits["right"] = fit_of(problem, chained(pool, rng.permutation(rest)[:count]), method)
    return fits, measure(fits, "exact", problem)


def judged(trial: Trial, key: Row) -> Row:
    """Return what is said of one kind of defect in all its sizes, and of a right fit."""
    fits, distances = made(trial, key)
    said, kind = verdicts(fits, "exact", distances), str(key["kind"])
    row: Row = {"as": fits["right"].attrs["method"], "right": said["right"].level}
    row["right words"] = " ".join(said["right"].words.values())
    row["right reason"] = "; ".join(said["right"].reasons)
    row["right codes"] = codes(said["right"])
    for size in range(4):
        name = str(size)
        row[f"level {name}"] = said[name].level
        row[f"severity {name}"] = severity(distances[distances["fit"] == name])
        if kind == "stuck chains":
            rhat = group(fits[name], "mixing")["rhat"].values
            row[f"severity {name}"] = (float(np.nanmax(rhat)) - 1.0) / LIMIT_OF_RHAT
    if kind in NEVER:
        for as_ in ("nuts", "adopted"):
            alone = [_alone(fits[str(size)], as_) for size in range(4)]
            row[f"alone as {as_}"] = " ".join(sorted(set(alone)))
    return row


def codes(verdict: Verdict) -> str:
    """Return the codes of a verdict's reasons."""
    return ", ".join(reason.code for reason in verdict.because)


def _same_rows(pool: Arrays, rest: np.ndarray, rng: np.random.Generator) -> Callable[[int], Arrays]:
    """Return a function that draws rows of the pool, the same ones of every variable."""

    def fresh(number: int) -> Arrays:
        rows = rng.permutation(rest)[:number]
        return {name: x[rows] for name, x in pool.items()}

    return fresh


def _alone(tree: xr.DataTree, method: str) -> str:
    """Return the level of chains that nothing is compared with."""
    other = tree.copy()
    other.attrs |= {"method": method, "kind": "mcmc"}
    return verdicts({"fit": other}, None)["fit"].level.replace(" ", "-")
