"""The papers' own algorithms: an iteration, its memory, its growth with D, and whole fits.

    python -m lab papers_speed rfvm pfcvm     (ARDVARK_DATA for its data sets; on one core)
    python -m lab papers_speed jcfo fsklr
    python -m lab papers_speed million        RFVM, up to a million features

An iteration starts from the algorithm's own start on 72 x 7129 independent features, with nothing
pruned yet. Its seconds are the median over some, after the first (which compiles); its memory is
the peak of allocations above X and y of a start and two iterations (tracemalloc, in a run of its
own). Growth is the exponent of D of the seconds from 100 x 10 000 to 100 x 100 000. None of the
algorithms forms a matrix of D x D. Whole fits are cases of `lab/speed/fits.py`: what the papers
report stands beside what they keep.
"""

import argparse
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ardvark.inference.papers.fsklr import savb
from ardvark.inference.papers.jcfo import em, em_steps
from ardvark.inference.papers.pfcvm import lp
from ardvark.inference.papers.pfcvm.engine import Engine
from ardvark.inference.papers.rfvm import vb
from ardvark.inference.papers.rfvm.factors import Factors
from lab import problems
from lab.records import Goal, at_most, table
from lab.script import (
    Measured,
    Part,
    Row,
    growth,
    has_data,
    one_thread,
    peak_mb,
    synthetic,
    times,
)
from lab.speed import fits
from lab.speed.fits import Case

FAT, WIDE = (72, 7129), [(100, 10_000), (100, 100_000)]
TARGET_MB, TARGET_GROWTH, TARGET_GB = 300.0, 1.1, 8.0
REPORTED = {
    ("pfcvm", "golub"): "2.94 features on average (ALLAML)",
    ("pfcvm", "colon"): "4.94 on average",
}
COUNT = 20  # iterations whose median counts


# --- what one iteration is ------------------------------------------------------------------------


def of_rfvm(problem: Any, options: dict[str, Any]) -> Callable[[], Any]:
    """Return a sweep of `rfvm_vb` and its bound."""
    X, y, Z, h = problem.X, problem.y, problem.Z, problem.hypers
    q = Factors(X, y, Z, h, np.random.default_rng(1), vb.Options(**options))

    def step() -> None:
        q.sweep()
        q.elbo()

    return step


def of_pfcvm(problem: Any, options: dict[str, Any]) -> Callable[[], Any]:
    """Return two turns of Newton, both curvatures, the objective and an update of precisions."""
    given = lp.Options(feature_threshold=np.inf, **options)
    engine = Engine.start(problem, given, True)

    def step() -> None:
        engine.climb(given.rounds, 1e-8)
        curvatures = engine.curvatures()
        engine.evidence(*curvatures)
        lp.update_precisions(engine, *curvatures, given.update, 0.0)

    return step


def of_jcfo(problem: Any, options: dict[str, Any]) -> Callable[[], Any]:
    """Return an E- and an M-step of `jcfo_em`, from its second start if it has one."""
    h, y, given = problem.hypers, problem.y.astype(float), em.Options(max_iterations=1, **options)
    basis = em.basis_of(problem, problem.X, problem.Z)
    rates = em.rates_of((h.gamma1, getattr(h, "gamma2", 1.0)), given)
    number = 0 if basis.Z is None else 1  # without theta there is one start
    start = em_steps.seed(basis, y, rates, number, np.random.default_rng(0))
    state = em_steps.State(basis, y, *start, rates)
    return lambda: em_steps.iterate(state, given)


def of_fsklr(problem: Any, options: dict[str, Any]) -> Callable[[], Any]:
    """Return a sweep over the features and a refit."""
    search = savb.Search(problem, savb.Options(**options), np.random.default_rng(0))

    def step() -> None:
        search.sweep_features()
        search.refit()

    return step


# --- the four algorithms --------------------------------------------------------------------------


@dataclass(frozen=True)
class Algorithm:
    """What is timed of a paper's algorithm.

    Attributes
    ----------
    start : function
        Returns a call of one iteration, of a problem and options.
    forms : list of (model, hypers, options)
        What is iterated at 72 x 7129; the first one also shows the growth with D.
    limit : float
        Seconds that were asked of an iteration.
    whole : list of Case
        Whole fits; those of registered data are left out where there are none.
    asked : float
        Seconds of the first of them.
    """

    start: Callable[[Any, dict[str, Any]], Callable[[], Any]]
    forms: list[tuple[str, dict[str, Any], dict[str, Any]]]
    limit: float
    whole: list[Case]
    asked: float


def kernels(*names: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return PFCVM with these kernels."""
    return [("pfcvm", {"kernel": name}, {}) for name in names]


LINEAR = {"kernel": "linear"}
ALGORITHMS = {
    "rfvm": Algorithm(
        of_rfvm,
        [
            ("rfvm", {}, {"v_factor": factor, "v_update": update})
            for factor in ("folded", "truncated")
            for update in ("sequential", "simultaneous")
        ],
        0.05,
        [Case("rfvm", "allaml", "rfvm_vb")],
        60.0,
    ),
    "pfcvm": Algorithm(
        of_pfcvm,
        kernels("linear", "polynomial", "rbf"),
        0.25,
        [
            Case("pfcvm", data, method, {}, options)
            for data in ("golub", "colon")
            for method, options in (
                ("pfcvm_lp", {}),
                ("pfcvm_lp", {"stopping": "change"}),
                ("pfcvm_lp", {"scale": "fixed"}),
                ("pfcvm_lp", {"hyperprior": "model"}),
                ("pfcvm_em", {}),
                ("pfcvm_em", {"hyperprior": "model"}),
            )
        ],
        20.0,
    ),
    "jcfo": Algorithm(
        of_jcfo,
        [
            ("jcfo", LINEAR, {}),
            ("jcfo", {"kernel": "polynomial", "degree": 2}, {}),
            ("jcfo", {"kernel": "rbf"}, {}),
            ("sparse_probit", {}, {}),
        ],
        0.05,
        [
            Case(model, data, "jcfo_em", hypers, options)
            for data in ("colon", "golub")
            for model, hypers, options in (
                ("jcfo", LINEAR, {"prefilter": 50}),
                ("jcfo", {}, {"prefilter": 50, "select": "holdout"}),
                ("jcfo", LINEAR | {"gamma2": 400.0}, {}),
                ("sparse_probit", {}, {"select": "holdout"}),
            )
        ],
        10.0,
    ),
    "fsklr": Algorithm(
        of_fsklr,
        [("fsklr", LINEAR, {}), ("fsklr", {"kernel": "rbf"}, {})],
        10.0,
        [
            Case(model, "digits38_noisy", "fsklr_savb", {"kernel": kernel})
            for model, kernel in (
                ("fsklr", "rbf"), ("fsklr", "linear"), ("sklr", "rbf"), ("fs_skr", "rbf"),
            )
        ],
        60.0,
    ),
}  # fmt: skip
BUILT_IN = ("digits38_noisy",)


# --- measuring ------------------------------------------------------------------------------------


def iterations(
    algorithm: Algorithm, form: tuple[str, Row, Row], size: tuple[int, int], count: int
) -> Row:
    """Return the seconds and the memory of an iteration at one size."""
    model, hypers, options = form
    problem = problems.problem(model, synthetic(*size), **hypers)
    _ = problem.X, problem.Z  # the data are not counted

    def twice() -> None:
        step = algorithm.start(problem, options)
        step()
        step()

    taken = times(algorithm.start(problem, options), count + 1)[1:]
    used = peak_mb(twice)
    return {
        "size": f"{size[0]} x {size[1]}",
        "form": " ".join([model, fits.words(hypers | options)]),
        "s an iteration": float(np.median(taken)),
        "MB above the data": used,
        "copies of X": used / (problem.X.nbytes / 1e6),
    }


def measured(name: str) -> Callable[[argparse.Namespace], Measured]:
    """Return the measurement of an algorithm: iterations, growth with D, whole fits."""
    algorithm = ALGORITHMS[name]

    def measure(given: argparse.Namespace) -> Measured:
        fat, wide, count = ((12, 5), [(12, 10), (12, 20)], 2) if given.quick else (FAT, WIDE, COUNT)
        forms = algorithm.forms[:1] if given.quick else algorithm.forms
        with one_thread():
            first = [iterations(algorithm, form, fat, count) for form in forms]
            grown = [iterations(algorithm, forms[0], size, count) for size in wide]
            whole = [] if given.quick else whole_fits(algorithm, given, name)
        power = growth([D for _, D in wide], [row["s an iteration"] for row in grown])
        slow, large = (max(r[k] for r in first) for k in ("s an iteration", "MB above the data"))
        goals = [
            at_most("an iteration at 72 x 7129", slow, algorithm.limit, "s"),
            at_most("its memory above the data", large, TARGET_MB, "MB"),
            at_most("growth to 100 x 100 000: exponent of D", power, TARGET_GROWTH),
        ]
        formats = {"s an iteration": ".4f", "MB above the data": ".0f", "copies of X": ".2f"}
        tables = [table("One iteration", first + grown, formats)]
        if whole:
            what = f"whole fit of {whole[0]['data']} by {whole[0]['method']}"
            goals.append(at_most(what, whole[0]["seconds"], algorithm.asked, "s"))
            columns = (
                "data, model, prior, method, options, seconds, features, samples, iterations, "
                "ended, in the paper"
            )
            tables.append(fits.shown("Whole fits", whole, columns))
        return Measured(goals, tables)

    return measure


def whole_fits(algorithm: Algorithm, given: argparse.Namespace, name: str) -> list[Row]:
    """Return a row for each whole fit whose data are there."""
    cases = [case for case in algorithm.whole if has_data(given) or case.data in BUILT_IN]
    found = fits.rows(cases, given, name)
    for row in found:
        row["in the paper"] = REPORTED.get((row["model"], row["data"]), "")
    return found


def million(given: argparse.Namespace) -> Measured:
    """Measure whole fits of RFVM on up to a million features: 4 x 25 draws."""
    sizes = ["12x10", "12x20"] if given.quick else ["100x10000", "100x100000", "100x1000000"]
    few = {"draws": 25, "chains": 4}
    found = fits.rows([Case("rfvm", size, "rfvm_vb", {}, few) for size in sizes], given, "million")
    goals: list[Goal] = []
    for before, row in itertools.pairwise(found):
        taken = [max(r["processor"] - r["compile"], 1e-3) for r in (before, row)]
        power = growth([before["D"], row["D"]], taken)
        what = f"growth of the processor's seconds to D = {row['D']}: exponent of D"
        goals.append(at_most(what, power, TARGET_GROWTH))
    goals.append(at_most(f"peak memory at D = {found[-1]['D']}", found[-1]["GB"], TARGET_GB, "GB"))
    columns = "N, D, seconds, processor, compile, iterations, GB before, GB, ended"
    return Measured(goals, [fits.shown("Whole fits", found, columns)])


MEASURES = ("inference/papers",)
PARTS = [
    Part("RFVM's own algorithm", measured("rfvm"), "rfvm"),
    Part("RFVM at a million features", million, "million"),
    Part("PFCVM's own algorithm", measured("pfcvm"), "pfcvm"),
    Part("JCFO's own algorithm", measured("jcfo"), "jcfo"),
    Part("FS-SKLR's own algorithm", measured("fsklr"), "fsklr"),
]
add = fits.add
