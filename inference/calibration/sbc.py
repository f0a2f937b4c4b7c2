"""Simulation-based calibration: is a posterior right on data that its own model draws.

If theta ~ p(theta), y ~ p(y | theta) and theta_1..theta_L are independent draws from p(theta | y),
the L + 1 values of any test quantity f(theta, y) are exchangeable, and the rank of the true one
among the drawn ones is uniform (Talts, Betancourt, Simpson, Vehtari, Gelman 2018, arXiv 1804.06788,
theorem 1). A wrong density, a sampler that has not mixed, a posterior too wide or too narrow bend
the distribution of the ranks. What every replicate looks at:

- every variable that model and posterior share: its first and last entry, and the mean of
  |x_k|^1/2, which adds up an error of scale over all entries (of a mask: the share of bits on);
- the identified products theta_k (Z'a)_k, where both weights are free;
- functions of theta and y: the log likelihood, and that of the first label. Without them a sampler
  that ignores y and returns its prior would pass (Modrak et al. 2023, arXiv 2211.02383).

A rank needs no moments, so heavy tails do no harm. It is turned into a number

    u = (#{f_l < f} + U (#{f_l = f} + 1)) / (L + 1),    U uniform on [0, 1],

which is exactly uniform for any L, with ties (bits, counts) broken at random. Two
Kolmogorov-Smirnov tests look at each quantity over the replicates, one at u (a shift) and one at
|2u - 1| (a width); the smaller p-value counts twice, and Holm's correction covers the quantities.
`detectable` says what they can see.

**Ranks are uniform for independent draws only.** A Markov chain is thinned: half as many draws as
the smallest bulk effective size of the quantities are used, evenly spaced. A chain started away
from its target and stopped too early fails, as it should; `joint_test.py` has the test that is
exact at any length.

**Labels in the basis.** PFCVM and PCVM are calibrated for basis labels that are not a function of
the simulated y. Each replicate draws its own, as fair coins; ``basis_labels="rederived"`` fits with
2y - 1 instead, as a user does, and must fail: a negative control.

An approximation is scored by the same call. There the p-values only say how visible its error is
with that many replicates; `Calibration.table` says in which direction it errs.
"""

import dataclasses
import hashlib
import json
import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, stats
from threadpoolctl import threadpool_limits

from ardvark.models import Problem
from ardvark.models.spec import Point
from ardvark.validate import InputError, logger, one_of, positive

from .. import fitting
from ..backend import FitFailed
from ..comparison.leave_one_out import _end_with_parent, _known_elsewhere
from ..datatree import as_json, versions
from ..progress import Reporter
from ..target import Target

BASIS_LABELS = ("independent", "fixed", "rederived")

# --- what is looked at ----------------------------------------------------------------------------


def shared_names(problem: Problem, simulated: Point, drawn: Point) -> list[str]:
    """Return the variables that a simulation and a posterior both hold; constants are left out."""
    return [n for n in simulated if n in drawn and n not in ("y", *problem.spec.fixed)]


def quantities(
    problem: Problem, point: Point, y: np.ndarray, names: list[str]
) -> dict[str, np.ndarray]:
    """Return the test quantities of (point, y), each with the leading axes of the point.

    The point holds `eta` (..., N) and the variables to look at, `names`; y is (N,) or (..., N).
    """
    spec, eta = problem.spec, np.asarray(point["eta"])
    arrays = {n: np.asarray(point[n], dtype=float) for n in names}
    if "feature_weight" in names and "sample_weight" in names:
        arrays["product"] = arrays["feature_weight"] * (arrays["sample_weight"] @ problem.Z)
    log_likelihood = spec.log_predictive(y, eta, point, problem.hypers)  # (..., N)
    found = {
        "log likelihood": log_likelihood.sum(-1),
        "log likelihood[0]": log_likelihood[..., 0],
    }
    for name, x in arrays.items():
        if x.ndim < eta.ndim:
            found[name] = x
            continue
        found |= {f"{name}[{k}]": x[..., k] for k in sorted({0, x.shape[-1] - 1})}
        found[f"mean |{name}|^1/2"] = np.sqrt(np.abs(x)).mean(-1)
        if spec.dims.get(name) == ("obs",):  # latent noise, which ties theta to y
            found[f"mean s {name}"] = ((2.0 * y - 1.0) * x).mean(-1)
    # two ways to the same number may differ in the last digits, and would break a tie one way
    return {k: np.round(v, 10) for k, v in found.items()}


# --- ranks and their p-values ---------------------------------------------------------------------


def rank(value: np.ndarray, others: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return u (F,) of value (F,) among others (L, F), uniform if all L + 1 are exchangeable."""
    less, equal = (others < value).sum(0), (others == value).sum(0)
    return (less + rng.random(len(value)) * (equal + 1)) / (len(others) + 1)


def uniformity(u: np.ndarray) -> float:
    """Return the p-value of u (R,) being independent and uniform.

    Twice the smaller of two exact Kolmogorov-Smirnov p-values, of u and of |2u - 1|. The second
    sees a width that the first hardly does: on both sides of 1/2 the deviations have opposite
    signs, and folded they add up.
    """
    folded = np.abs(2.0 * u - 1.0)
    return min(1.0, 2.0 * min(stats.kstest(v, "uniform").pvalue for v in (u, folded)))


def holm(p: np.ndarray) -> np.ndarray:
    """Return Holm's adjusted p-values (F,): valid whatever the dependence among the tests."""
    order = np.argsort(p)
    steps = (len(p) - np.arange(len(p))) * np.asarray(p)[order]
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def detectable(replicates: int, tests: int, level: float = 1e-4) -> tuple[float, float]:
    """Return the shift and the factor of the standard deviation that half of all runs would see.

    For a normal posterior, in its own standard deviations, and `tests` quantities at a corrected
    p-value of `level`. A shift d moves the distribution of u by up to 2 Phi(d/2) - 1, a factor c
    that of |2u - 1| by up to max_x |P(|Z| < c x) - P(|Z| < x)|; both are set equal to the
    Kolmogorov-Smirnov critical value.
    """
    critical = min(stats.kstwo.isf(level / (2 * tests), replicates), 0.99)
    x = np.linspace(0.0, 6.0, 2001)

    def excess(c: float) -> float:
        return float(2.0 * np.abs(stats.norm.cdf(c * x) - stats.norm.cdf(x)).max() - critical)

    return float(2.0 * stats.norm.ppf((1.0 + critical) / 2.0)), optimize.brentq(excess, 1.0, 1e4)


@dataclass(frozen=True)
class Calibration:
    """Ranks of the test quantities over the replicates, and what they say."""

    names: tuple[str, ...]
    ranks: np.ndarray
    """u (R, F) of every replicate that did not fail."""
    reasons: tuple[str, ...]
    """Why each of the others failed."""
    draws: np.ndarray
    """L (R,), the number of draws each true value was ranked among."""
    seconds: float
    """Time of all replicates; the first one may compile."""

    @property
    def table(self) -> pd.DataFrame:
        """One row a quantity, smallest p-value first.

        In `sbc` a `mean` of u below 1/2 says that draws lie above the truth, and a `width`, the
        mean of |2u - 1|, below 1/2 that they spread too widely. In a joint test, where the end of
        the chain is ranked, both are the other way round. `holm` is corrected for all rows.
        """
        p = np.array([uniformity(u) for u in self.ranks.T])
        columns = {
            "mean": self.ranks.mean(0),
            "width": np.abs(2.0 * self.ranks - 1.0).mean(0),
            "p_value": p,
            "holm": holm(p),
        }
        frame = pd.DataFrame(columns, index=pd.Index(self.names, name="quantity"))
        return frame.sort_values("p_value", kind="stable")

    @property
    def failed(self) -> int:
        """The number of replicates without ranks."""
        return len(self.reasons)

    @property
    def p_value(self) -> float:
        """The smallest p-value, corrected for the number of quantities; NaN without ranks."""
        return float(self.table["holm"].iloc[0]) if len(self.ranks) else float("nan")


# --- replicates: stored as they end, in one process or several ------------------------------------

Row = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One experiment to repeat. Sent to each process once, so it must pickle."""

    name: str
    """The start of its file's name."""
    identity: Mapping[str, Any]
    """Everything that decides a replicate's numbers, beside its index."""
    start: Callable[[], Callable[[int], Row]]
    """Compiles, once in each process; returns the function that does replicate r. A row holds `u`,
    a dict of ranks, and `draws`, the number they are taken among; equal r give equal rows."""


def repeat(
    trial: Trial,
    replicates: int,
    *,
    folder: str | os.PathLike[str] | None = None,
    processes: int = 1,
    progressbar: bool = False,
) -> Calibration:
    """Do replicates 0..R-1 of a trial; those its file in `folder` holds are not done again.

    Each replicate is one line of the file, written as it ends. Failed ones are tried again. A run
    that was killed goes on where it was, and a longer one continues a shorter one: the numbers are
    those of a run in one go, with any number of processes.
    """
    positive("replicates", replicates)
    positive("processes", processes)
    rows: dict[int, Row] = {}
    path = None
    if folder is not None:
        asked = as_json({**trial.identity, "versions": versions()})
        request = hashlib.sha256(asked.encode()).hexdigest()[:16]
        path = Path(folder) / f"{trial.name}-{request}.jsonl"
        rows = _stored(path)
    missing = [r for r in range(replicates) if r not in rows]
    work = _in_processes if processes > 1 and len(missing) > 1 else _here
    done = replicates - len(missing)
    with Reporter(trial.name, progressbar).stage("replicates", total=replicates) as update:
        for row in work(trial, missing, int(processes)) if missing else ():
            rows[row["replicate"]] = row
            if path is not None:
                _append(path, row)
            done += 1
            update(done)
    return _collect([rows[r] for r in range(replicates)])


def _collect(rows: list[Row]) -> Calibration:
    good = [r for r in rows if r["status"] == "ok"]
    names = tuple(good[0]["u"]) if good else ()
    return Calibration(
        names=names,
        ranks=np.array([[r["u"][n] for n in names] for r in good]),
        reasons=tuple(r["reason"] for r in rows if r["status"] != "ok"),
        draws=np.array([r["draws"] for r in good]),
        seconds=float(sum(r["seconds"] for r in rows)),
    )


def _attempt(replicate: Callable[[int], Row], r: int) -> Row:
    started = time.perf_counter()
    try:
        row = {"replicate": r, "status": "ok", "reason": "", **replicate(r)}
    except Exception as error:
        logger.debug("traceback", exc_info=True)
        row = {"replicate": r, "status": "failed", "reason": f"{type(error).__name__}: {error}"}
    return row | {"seconds": time.perf_counter() - started}


def _here(trial: Trial, missing: list[int], processes: int) -> Iterator[Row]:
    before = logger.level
    logger.setLevel(logging.CRITICAL)  # hundreds of short fits would warn
    try:
        with threadpool_limits(1, user_api="blas"):
            replicate = trial.start()
            for r in missing:
                yield _attempt(replicate, r)
    finally:
        logger.setLevel(before)


def _in_processes(trial: Trial, missing: list[int], processes: int) -> Iterator[Row]:
    pool = ProcessPoolExecutor(
        max_workers=min(processes, len(missing)),
        mp_context=multiprocessing.get_context("spawn"),  # threads of compiled code rule out fork
        initializer=_start_process,
        initargs=(trial,),
    )
    try:
        for future in as_completed([pool.submit(_process_attempt, r) for r in missing]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


_process_replicate: Callable[[int], Row] | None = None
"""Set once in each process that `_in_processes` starts."""


def _start_process(trial: Trial) -> None:
    global _process_replicate
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threadpool_limits(1, user_api="blas")
    logger.setLevel(logging.CRITICAL)
    _process_replicate = trial.start()


def _process_attempt(r: int) -> Row:
    assert _process_replicate is not None
    return _attempt(_process_replicate, r)


def _stored(path: Path) -> dict[int, Row]:
    """Return the replicates a file holds that did not fail; a line cut short by a kill is none."""
    rows = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if row["status"] == "ok":
            rows[row["replicate"]] = row
    return rows


def _append(path: Path, row: Row) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(f"\n{json.dumps(row)}")  # newline first: the last write may have been killed


# --- simulated data sets --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Relabelled(Problem):
    """A problem with other labels: of one class only, or real numbers, if the model drew them so.

    A `Dataset` holds two classes, and dropping replicates without them would bend the ranks.
    """

    labels: np.ndarray

    @property
    def y(self) -> np.ndarray:
        """Labels (N,)."""
        return self.labels


def relabelled(problem: Problem, y: np.ndarray, basis_labels: np.ndarray | None) -> Relabelled:
    """Return the problem at other labels, sharing its compiled model: one is fitted at a time."""
    import pymc as pm

    with problem.model:
        pm.set_data({"label": y} | ({} if basis_labels is None else {"basis_labels": basis_labels}))
    fields = {f.name: getattr(problem, f.name) for f in dataclasses.fields(Problem)}
    found = Relabelled(**fields | {"basis_labels": basis_labels}, labels=y)
    for name in ("X", "Z", "model"):  # where the cached properties keep their values
        found.__dict__[name] = getattr(problem, name)
    return found


def draw_basis_labels(problem: Problem, how: str, rng: np.random.Generator) -> np.ndarray | None:
    """Return the basis labels that y is simulated with; None where a model has none."""
    if how == "independent" and problem.spec.labels_in_basis:
        return rng.choice([-1.0, 1.0], len(problem.basis))
    return problem.basis_labels


# --- simulation-based calibration -----------------------------------------------------------------


def sbc(
    problem: Problem,
    method: str,
    *,
    replicates: int = 200,
    ranks: int = 100,
    draws: int = 250,
    chains: int = 2,
    random_seed: int = 0,
    basis_labels: str = "independent",
    folder: str | os.PathLike[str] | None = None,
    processes: int = 1,
    progressbar: bool = False,
    **options: Any,
) -> Calibration:
    """Rank true values among the draws of a method, over data sets simulated from the model.

    Parameters
    ----------
    problem : Problem
        Gives X, Z and hyperparameters; its labels are not used.
    method : str
        A name in `BACKENDS`, or "paper". A point or a search has no draws to rank among.
    replicates, draws, chains : int
        Simulated data sets, and the size of each fit.
    ranks : int
        L, the largest number of draws to rank among; a chain that mixes slowly gives fewer.
    random_seed : int
        Replicate r is a function of (random_seed, r).
    basis_labels : {"independent", "fixed", "rederived"}
        Drawn for each replicate, those of the problem, or 2y - 1 (a negative control).
    folder : path, optional
        Where replicates are kept, so that a killed run goes on. Remove it after a change of code.
    processes : int
        Replicates that run at once; above 1 in processes of their own, each of which compiles.
    **options
        Options of the method.

    Raises
    ------
    InputError
        The method does not apply, or returns no draws from a stated distribution.
    """
    name = fitting.resolve(method, problem)
    settings = fitting.make_options(name, options)
    backend = fitting.BACKENDS[name]
    why_not = backend.supports(problem.model, problem)
    if why_not:
        raise InputError(f"method {name!r} does not apply to this problem: {why_not}.")
    if backend.KIND not in ("mcmc", "approximation"):
        raise InputError(
            f"method {name!r} is a {backend.KIND}: it returns no draws to rank a true value among. "
            "Calibrate a method of kind mcmc or approximation."
        )
    one_of("basis_labels", basis_labels, BASIS_LABELS)
    positive("ranks", ranks)
    if processes > 1 and not _known_elsewhere(backend):
        raise InputError(
            f"method {name!r} was registered in this process and is not known in others. "
            "Use processes=1."
        )
    if processes > 1 and hasattr(settings, "cores"):
        settings = dataclasses.replace(settings, cores=1)  # it changes the time, never the draws
    own = dataclasses.replace(problem)  # with a model of its own, whose labels are rebound
    sizes = {"draws": draws, "chains": chains}
    fits = _Fits(own, name, ranks, sizes, settings, random_seed, basis_labels)
    identity = {
        "problem": (problem.fingerprint, problem.form),
        "method": (name, dataclasses.asdict(settings) | {"cores": None}, draws, chains),
        "ranks": (ranks, random_seed, basis_labels),
    }
    trial = Trial(f"sbc-{problem.spec.name}-{name}", identity, fits.start)
    return repeat(trial, replicates, folder=folder, processes=processes, progressbar=progressbar)


@dataclass(frozen=True)
class _Fits:
    """The replicates of `sbc`: simulate, fit, rank."""

    problem: Problem
    method: str
    ranks: int
    sizes: Mapping[str, Any]
    options: Any
    seed: int
    basis_labels: str

    def start(self) -> Callable[[int], Row]:
        return self.replicate

    def replicate(self, r: int) -> Row:
        rng = np.random.default_rng([self.seed, r])
        signs = draw_basis_labels(self.problem, self.basis_labels, rng)
        true = dataclasses.replace(self.problem, basis_labels=signs).simulate(rng)
        y = true["y"]
        if self.basis_labels == "rederived" and signs is not None:
            signs = 2.0 * y - 1.0
        problem = relabelled(self.problem, y, signs)
        backend = fitting.BACKENDS[self.method]
        # the backend itself: what `fit` adds to its draws takes as long as they do
        drawn = backend.fit(
            Target(None, problem),
            self.options,
            **self.sizes,
            seed=int(rng.integers(2**31)),
            keep=None,
            report=Reporter(enabled=False),
        ).posterior
        names = shared_names(problem, true, drawn)
        value = quantities(problem, true, y, names)
        found = np.stack(list(quantities(problem, drawn, y, names).values()), axis=-1)
        if not np.isfinite(found).all():
            raise FitFailed(f"{self.method} returned draws that are not finite")
        others = self._thinned(found, backend.KIND)
        u = rank(np.array(list(value.values())), others, rng)
        return {"u": dict(zip(value, u.tolist(), strict=True)), "draws": len(others)}

    def _thinned(self, found: np.ndarray, kind: str) -> np.ndarray:
        """Return (L, F) nearly independent draws of (chain, draw, F)."""
        flat = found.reshape(-1, found.shape[-1])
        size = float(len(flat))
        if kind == "mcmc":
            from arviz_stats.base import array_stats

            moves = found[:, :, np.ptp(flat, axis=0) > 0]  # a bit that never flips has no size
            ess = array_stats.ess(moves, chain_axis=0, draw_axis=1, method="bulk")
            size = float(np.min(ess, initial=size)) / 2.0
        L = int(np.clip(size, 1, self.ranks))
        return flat[np.linspace(0, len(flat) - 1, L).round().astype(int)]
