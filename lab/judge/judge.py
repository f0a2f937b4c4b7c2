"""The judge on trial: how often is a wrong posterior trusted, and a right one condemned?

    python -m lab judge                    all of it (about an hour)
    python -m lab judge --stored           report the rows that a stopped run has kept

Rules were tuned under seed 1. Rows of seed 2 showed an error in a noise floor, which was mended
before those that are reported, so figures of seed 2 are not of rules that had never seen it. The
record is of seed 3, which the rules had not seen; what it showed changed one of them afterwards.

Eight problems, four models on few and on many features. Each has a pool of draws of its exact
posterior, in random order, so that any two disjoint parts of it are independent samples of one law.
One part is the reference, 2000 draws. Another part, changed as `wrong_posteriors.py` says, is the
fit that is judged; a third, unchanged, is a right one. A fit is by turns called a Markov chain of
another exact sampler and an approximation.

How large a defect is, in limits: the largest distance of 4000 changed draws from the reference,
beyond its noise, over its limit for "good". Chains that are stuck have right draws, all of them
together; their defect is (R-hat - 1) / 0.05. The draws that `repeated` repeats are right too, and
are counted apart.
"""

import argparse
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

import ardvark as av
from ardvark.inference.fits.datatree import dataset, group, problem_dims
from ardvark.inference.fits.mixing import mixing
from ardvark.inference.fits.selection import select
from ardvark.inference.fitting.run import facts
from ardvark.inference.scoring.distances import measure
from ardvark.inference.scoring.distances import rows as rows_of
from ardvark.inference.scoring.statistic import Distance
from ardvark.inference.verdicts.purposes import PURPOSES
from ardvark.inference.verdicts.verdict import Verdict, verdicts
from lab.judge.wrong_posteriors import CATALOGUE, Arrays, Defect, Source, flat
from lab.records import HERE, Goal, Table, table
from lab.script import Measured, Part, Row, one_thread, resumed, stored

SIZES = {"small": (40, 8), "fat": (30, 120)}
SPARSITY = {
    "rfvm": "active_features",
    "jcfo": "gamma1",
    "rvm": "active_samples",
    "sparse_probit": "gamma1",
}
"""The models, and the hyperparameter by which each is made sparser."""
REFERENCE = 2000
CHAINS, POOL = 4, 3000
"""Chains of the run that a pool is of, and draws of each."""
LIMIT_OF_RHAT = 0.05
MOST = 1000.0
"""Limits beyond which a defect is not larger: an sd of 0 is infinitely far."""
NEVER = ("lost mode", "another prior", "another data row")
"""What no diagnostic of a fit alone can see."""
CHAINED = ("stuck chains", "slow direction")
"""Defects of chains, which are always judged as chains."""
APART = ("repeated draws", "slow direction")
LEVELS = ("trust", "with care", "do not use", "not judged")
KINDS = (
    'Draws of the kinds "apart" are right. "below": problems on which even the largest size of the '
    "kind is below the limit."
)
SHARES = {"share": ".4f", "95 % low": ".4f", "95 % high": ".4f"}
CLASSES = ("below the limit", "1 to 2 times the limit", "2 times the limit and more")


@dataclass(frozen=True)
class Trial:
    """A catalogue of defects, and how it is run.

    `few` are the kinds that are also run with other numbers of draws, `quick` those of the quick
    form. `figure` is its file, and `note` a paragraph of its record.
    """

    catalogue: Mapping[str, Defect]
    few: tuple[str, ...]
    quick: tuple[str, ...]
    figure: Path
    note: str


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
            return av.problem(self.model, (X, y))
        name = SPARSITY[self.model]
        usual = float(getattr(av.problem(self.model, (X, y)).hypers, name))
        return av.problem(self.model, (X, y), **{name: active * usual})


CASES = tuple(Case(model, size) for model in SPARSITY for size in SIZES)


def sampled(problem: av.Problem, path: Path, draws: int, method: str = "gibbs") -> Arrays:
    """Return draws (S, ...) of a posterior in random order, and keep them in a file."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fit = av.fit(problem, method, draws=draws, chains=CHAINS, random_seed=11, progressbar=False)
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


def severity(distances: Iterable[Distance]) -> float:
    """Return the largest distance beyond its noise, in limits."""
    found, measured = [0.0], {(d.quantity, d.statistic): d for d in distances}
    for purpose in PURPOSES.values():
        for statistic, limit in purpose.rests_on():
            for quantity in limit.quantities:
                if distance := measured.get((quantity, statistic.name)):
                    found.append(distance.counted / limit.good)
    return min(float(np.nanmax(found)), MOST)


def judge(key: Row, catalogue: Mapping[str, Defect], settings: argparse.Namespace) -> Row:
    """Return what is said of one kind of defect in all its sizes, and of a right fit."""
    case = Case(*str(key["problem"]).split())
    problem = case.problem()
    pool, foreign = pools(case, settings.pools, settings.pool)
    rng = np.random.default_rng([settings.seed, zlib.crc32(repr(sorted(key.items())).encode())])
    count, kind = int(key["draws"]) // CHAINS * CHAINS, str(key["kind"])
    order = rng.permutation(len(pool["eta"]))
    rows = iter(np.split(order, [settings.reference]))
    exact = fit_of(problem, chained(pool, next(rows)), "gibbs")
    rest = next(rows)

    chains = kind in CHAINED or (kind not in APART and rng.random() < 0.5)
    method = "nuts" if chains else "advi"
    source = Source(problem, _same_rows(pool, rest, rng), foreign)
    fits = {"exact": exact}
    for size in range(4):
        right = chained(pool, rng.permutation(rest)[:count])
        fits[str(size)] = fit_of(problem, catalogue[kind](right, size, rng, source), method)
    fits["right"] = fit_of(problem, chained(pool, rng.permutation(rest)[:count]), method)
    distances = measure(fits, "exact", problem)
    said = verdicts(fits, "exact", distances)
    measured = rows_of(distances)
    row: Row = {"as": method, "right": said["right"].level}
    row["right words"] = " ".join(said["right"].words.values())
    row["right reason"] = "; ".join(said["right"].reasons)
    row["right codes"] = codes(said["right"])
    for size in range(4):
        name = str(size)
        row[f"level {name}"] = said[name].level
        row[f"severity {name}"] = severity(d for d in measured if d.method == name)
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


def work_of(trial: Trial, settings: argparse.Namespace) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yield what tells a row from others, and its computation."""
    cases = CASES[-1:] if settings.quick else CASES
    kinds = tuple(trial.catalogue)
    plan = [(1000, kinds), (4000, kinds), *((n, trial.few) for n in (20, 50, 200, 400, 9600))]
    if settings.quick:
        plan = [(200, trial.quick)]
    for case, (draws, which) in itertools.product(cases, plan):
        for kind in which:
            key: Row = {
                "problem": f"{case.model} {case.size}", "draws": draws, "kind": kind,
                "repeat": 0, "seed": settings.seed,
            }  # fmt: skip
            yield key, lambda k=key: judge(k, trial.catalogue, settings)


# --- what the rows say ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """One wrong fit: its problem, kind, draws, how large its defect is, and the level it got."""

    problem: str
    kind: str
    draws: int
    size: int
    severity: float
    level: str

    @property
    def group(self) -> str:
        """Its class of size."""
        return CLASSES[int(self.severity >= 1.0) + int(self.severity >= 2.0)]


def told(rows: list[Row]) -> list[Told]:
    """Return every wrong fit, with the severity that 4000 draws of its kind and size show.

    Of a stopped run, kinds of which those are missing are left out.
    """
    most = max(row["draws"] for row in rows if row["draws"] <= 4000)
    large = {(r["problem"], r["kind"]): r for r in rows if r["draws"] == most}
    found = []
    for row in rows:
        if (place := (row["problem"], row["kind"])) in large:
            found += [
                Told(
                    *place, row["draws"], size,
                    float(large[place][f"severity {size}"]), row[f"level {size}"],
                )
                for size in range(4)
            ]  # fmt: skip
    return found


def interval(hits: Mapping[str, int], totals: Mapping[str, int]) -> tuple[float, float, float]:
    """Return a share and its 95 % interval, clustered by problem.

    With hits, the share is a ratio of sums over problems with the usual variance of a ratio, and t
    quantiles. Without, the upper end is the exact binomial one of independent cases.
    """
    n, k = sum(totals.values()), sum(hits.values())
    share = k / n
    low, high = 0.0, 1.0 - 0.025 ** (1.0 / n)
    if k and len(totals) > 1:
        gaps = np.array([hits.get(p, 0) - share * t for p, t in totals.items()])
        m = len(totals)
        error = np.sqrt(m / (m - 1) * (gaps**2).sum()) / n
        error = max(error, np.sqrt(share * (1 - share) / n))
        reach = stats.t.ppf(0.975, m - 1) * error
        low, high = max(0.0, share - reach), min(1.0, share + reach)
    return share, low, high


def counted(cases: list[Any], hit: Callable[[Any], bool], problem: Callable[[Any], str]) -> Row:
    """Return how many of some cases are hits, with the interval of their share."""
    hits: dict[str, int] = {}
    totals: dict[str, int] = {}
    for one in cases:
        totals[problem(one)] = totals.get(problem(one), 0) + 1
        hits[problem(one)] = hits.get(problem(one), 0) + int(hit(one))
    if not cases:
        return {"cases": 0, "hits": 0}
    share, low, high = interval(hits, totals)
    return {
        "cases": len(cases), "hits": sum(hits.values()), "share": share,
        "95 % low": low, "95 % high": high,
    }  # fmt: skip


def alarm(row: Row) -> bool:
    """Whether the right fit of a row was condemned.

    From 400 draws on, a word "rough" or "bad" is an alarm unless it is of too few effective draws;
    with fewer draws "bad" is one, and with fewer than 50 everything but "not judged".
    """
    words, draws = str(row["right words"]).split(), int(row["draws"])
    if draws < 50:
        return row["right"] != "not judged"
    if row["right"] == "do not use" or "bad" in words:
        return True
    few = {"ess", "not many draws"} & set(str(row["right codes"]).split(", "))
    return draws >= 400 and "rough" in words and not few


def report(rows: list[Row], trial: Trial, quick: bool) -> Measured:
    """Return the goals, the tables and the figure."""
    cases = told(rows)
    judged = [c for c in cases if c.draws >= 1000 and c.kind not in APART]
    gross = [x for x in judged if x.group == CLASSES[2]]
    trusted = [
        {"problem": x.problem, "kind": x.kind, "draws": x.draws} for x in gross if _trusted(x)
    ]
    alone = [r for r in rows if r["kind"] in NEVER and r.get("alone as nuts")]
    ever = sum("trust" in f"{r['alone as nuts']} {r['alone as adopted']}".split() for r in alone)
    goals = [
        Goal(
            "2 times the limit and more, 1000 draws and more: no trust in 300 cases",
            f"{len(trusted)} of {len(gross)}",
            not trusted and len(gross) >= 300,
        ),
        few_alarms([r for r in rows if r["draws"] >= 400] or rows, "of 400 draws and more", 300),
        Goal(
            "without a reference, a lost mode, another prior or row: never trust",
            f"{ever} of {4 * len(alone)}",
            ever == 0 if alone else None,
        ),
    ]
    by_class = [
        {"size of the defect": c}
        | counted([x for x in judged if x.group == c], _trusted, lambda x: x.problem)
        for c in CLASSES
    ]
    tables = [
        table("Wrong posteriors called trust", by_class, SHARES),
        table("The same by kind: trusted of all", by_kind(cases, judged, trial), note=KINDS),
        *([table("Trusted at 2 times the limit and more", trusted)] if trusted else []),
        right_table("draws", rows),
        *condemned(rows),
    ]
    kept = {(x.problem, x.kind) for x in cases}
    seeds = ", ".join(sorted({str(row["seed"]) for row in rows}))
    notes = [
        f"Seed {seeds}.",
        trial.note,
        f"Of {len(CASES) * len(trial.catalogue)} pairs of problem and kind, {len(kept)} were run.",
        "Each share of wrong fits is of those called trust, each share of right ones of those "
        "condemned. Intervals are clustered by problem.",
    ]
    if not quick:
        draw(cases, trial)
        notes.append(f"![How often a defect is seen](figures/{trial.figure.name})")
    return Measured(goals, tables, notes)


def by_kind(cases: list[Told], judged: list[Told], trial: Trial) -> list[Row]:
    """Return a row for each kind: trusted of all, by the size of the defect."""
    out = []
    for kind in trial.catalogue:
        own = [x for x in judged if x.kind == kind]
        apart = [x for x in cases if x.kind == kind and kind in APART]
        below = {x.problem for x in own if x.size == 3 and x.group == CLASSES[0]}
        if any(x.kind == kind for x in cases):
            out.append(
                {"kind": kind}
                | {c: _share([x for x in own if x.group == c]) for c in CLASSES}
                | {"apart": _share(apart), "below": len(below)}
            )
    return out


def right_table(by: str, rows: list[Row]) -> Table:
    """Return what was said of right posteriors, a row for each value of a column.

    The run of a row can have `missing`, what has not converged; then it counts as a run alone.
    """
    out = []
    for value in sorted({row[by] for row in rows}):
        own = [row for row in rows if row[by] == value]
        done = [row for row in own if not row.get("missing")]
        levels = {level: sum(row["right"] == level for row in done) for level in LEVELS}
        share = counted(done, alarm, lambda row: str(row["problem"]))
        out.append({by: value, "runs": len(own)} | levels | share)
    return table("Right posteriors", out, SHARES)


def condemned(rows: list[Row]) -> list[Table]:
    """Return the table of the right posteriors that were condemned, if there is one."""
    found = [
        {"problem": row["problem"], "draws": row["draws"], "reason": row["right reason"]}
        for row in rows
        if alarm(row)
    ]
    return [table("Right posteriors condemned", found)] if found else []


def few_alarms(rows: list[Row], which: str, least: int) -> Goal:
    """Return the goal on right posteriors, of which there are to be so many."""
    alarms = sum(map(alarm, rows))
    return Goal(
        f"right posteriors {which} condemned: at most 1 %" + (f" of {least}" if least > 1 else ""),
        f"{alarms} of {len(rows)}",
        len(rows) >= least and alarms <= 0.01 * len(rows),
    )


def _trusted(case: Told) -> bool:
    return case.level == "trust"


def _share(cases: list[Told]) -> str:
    return f"{sum(map(_trusted, cases))} of {len(cases)}" if cases else ""


def draw(cases: list[Told], trial: Trial) -> None:
    """Draw, by kind, the share of fits that are not trusted against the nominal size."""
    from matplotlib.figure import Figure

    kinds = [k for k in trial.catalogue if any(c.kind == k for c in cases)]
    figure = Figure(figsize=(10.0, 7.5), layout="constrained")
    axes = figure.subplots(3, 6, sharex=True, sharey=True).ravel()
    for axis, kind in zip(axes, kinds, strict=False):
        for draws, colour in ((200, "#999999"), (1000, "#0072b2"), (4000, "#d55e00")):
            own = [c for c in cases if c.kind == kind and c.draws == draws]
            if own:
                shares = [np.mean([not _trusted(c) for c in own if c.size == s]) for s in range(4)]
                axis.plot(range(4), shares, "o-", color=colour, ms=3, label=f"{draws} draws")
        axis.set_title(kind, fontsize=9)
        axis.set_ylim(-0.05, 1.05)
        axis.set_xticks(range(4), ["1/2", "1", "2", "4"])
    axes[0].legend(fontsize=7, loc="lower right")
    figure.supxlabel("size of the defect, in nominal limits")
    figure.supylabel("share of fits that are not called trust")
    trial.figure.parent.mkdir(exist_ok=True)
    figure.savefig(trial.figure, dpi=110)


def put(trial: Trial, given: argparse.Namespace) -> Measured:
    """Put the judge on one trial; `given.pools` is the folder of the pools."""
    given.pool, given.reference = (150, 200) if given.quick else (POOL, REFERENCE)
    path = given.work / "rows.csv"
    if given.stored:
        rows = stored(path, (key for key, _ in work_of(trial, given)))
    else:
        with one_thread():  # thousands of small systems: threads would wait
            rows = resumed(path, work_of(trial, given))
    return report(rows, trial, given.quick)


FIRST = Trial(
    CATALOGUE,
    few=("narrow", "one mean", "lost mode"),
    quick=("narrow", "stuck chains"),
    figure=HERE / "figures" / "judge.png",
    note="Rules were tuned under seed 1, and seed 2 showed an error in a floor.",
)


def measured(given: argparse.Namespace) -> Measured:
    """Put the judge on trial."""
    given.pools = given.work / "pools"
    return put(FIRST, given)


MEASURES = ("inference/fits", "inference/scoring", "inference/verdicts")
PARTS = [Part("The judge on trial", measured)]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of a trial."""
    parser.add_argument("--seed", type=int, default=3, help="of the cases (3)")
    parser.add_argument("--stored", action="store_true", help="report the rows of a stopped run")
