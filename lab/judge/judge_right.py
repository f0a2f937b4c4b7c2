"""Right posteriors before the judge: the same law by another seed, sampler, form, or thinned.

    python -m lab judge_right                        everything (ARDVARK_DATA for the data)
    python -m lab judge_right --only sparse_probit   problems whose name contains this

`judge.py` draws its right posteriors from a pool of independent draws. These here are real runs, so
their chains are as correlated, and as nearly converged, as a user's. The eight problems of
`judge.py` are each compared with a long Gibbs run; and problems on real data with their stored
references. A run that has not converged is no right posterior: the judge has to say so, and those
are counted apart.

The first run of this condemned all ten fits of RVM: its feature weights are constants of the model,
and the rounding of their sums was taken for a spread. That is mended, and those rows ran again.
"""

import argparse
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import xarray as xr

import ardvark as av
from ardvark.inference.comparison.verdicts.verdict import verdicts
from ardvark.inference.fits.convergence import Profile, lacking
from ardvark.inference.fits.mixing import mixing_of
from ardvark.inference.references.references import stored
from ardvark.inference.scoring.distances import measure
from ardvark.inference.target.reasons import joined
from lab import problems
from lab.judge.judge import MEASURES as MEASURES  # the same rules
from lab.judge.rows import condemned, few_alarms, right_table
from lab.judge.trial import CASES, Case, codes
from lab.script import Measured, Part, Row, one_thread, resumed

SEEDS = 2
REFERENCE_SEED, REFERENCE_DRAWS = 1001, 3000
SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "another seed": ("gibbs", {"draws": 2000}),
    "thinned by 5": ("gibbs", {"draws": 1000, "thin": 5}),
    "another sampler": ("nuts", {"draws": 2000}),
    "another form": ("nuts", {"draws": 2000}),
    "exact, by its own rule": ("exact", {}),
}
"""Method and options, by what distinguishes the run from its reference."""
OTHER_FORM = {"marginal": "hierarchical", "hierarchical": "marginal"}
STORED = (
    ("sparse_probit", "sonar"),
    ("sparse_probit", "australian"),
    ("pcvm", "colon"),
    ("rvm", "colon"),
    ("sklr", "sonar"),
    ("rfvm", "colon"),
)
FROM_FILE = "a stored reference"
ENOUGH = Profile(bulk=400.0, tail=400.0)
"""What a run must have to count as a right one."""


def in_another_form(problem: av.Problem) -> av.Problem:
    """Return the same posterior in other variables."""
    form = OTHER_FORM[problem.hypers.parametrization]
    return problem.with_hypers(parametrization=form)


@cache
def reference_of(case: Case, draws: int) -> xr.DataTree:
    """Return a long Gibbs run."""
    settings = {"random_seed": REFERENCE_SEED, "progressbar": False}
    return av.fit(case.problem(), "gibbs", draws=draws, **settings)


def said(problem: av.Problem, fit: xr.DataTree, reference: xr.DataTree) -> Row:
    """Return the judge's words for one fit, as a row of `judge.py` has them."""
    fits = {"reference": reference, "right": fit}
    found = verdicts(fits, "reference", measure(fits, "reference", problem))["right"]
    return {
        "right": found.level,
        "right words": " ".join(found.words.values()),
        "right reason": "; ".join(found.reasons),
        "right codes": codes(found),
        "missing": joined(lacking(mixing_of(fit), ENOUGH)),
    }


def judged(case: Case, source: str, seed: int, draws: int) -> Row:
    """Return what is said of a run on made data."""
    problem = case.problem()
    method, options = SOURCES[source]
    own = in_another_form(problem) if source == "another form" else problem
    given = options | ({"draws": draws} if draws else {})
    fit = av.fit(own, method, random_seed=seed, progressbar=False, **given)
    return said(problem, fit, reference_of(case, draws or REFERENCE_DRAWS))


def beside_stored(model: str, data: str, seed: int) -> Row:
    """Return what is said of `exact` beside a stored reference."""
    problem = problems.problem(model, av.load(data))
    fit = av.fit(problem, "exact", random_seed=seed, progressbar=False)
    return said(problem, fit, stored(problem))


def work_of(given: argparse.Namespace) -> Iterator[tuple[Row, Any]]:
    """Yield what tells a row from others, and its computation."""
    few = 100 if given.quick else 0
    for case in CASES[-2:-1] if given.quick else CASES:
        name = f"{case.model} {case.size}"
        for source in ("another seed",) if given.quick else SOURCES:
            if given.only in name:
                for seed in range(1 if given.quick else SEEDS):
                    key: Row = {"problem": name, "source": source, "seed": seed}
                    yield key, partial(judged, case, source, seed, few)
    for model, data in () if given.quick else STORED:
        if given.only in f"{model} {data}":
            for seed in range(SEEDS // 2):
                key = {"problem": f"{model} {data}", "source": FROM_FILE, "seed": seed}
                yield key, partial(beside_stored, model, data, seed)


def report(rows: list[Row]) -> Measured:
    """Return the goal, and tables of what was said."""
    runs = [row | {"draws": 400} for row in rows]  # each has at least so many
    settled = [row for row in runs if not row["missing"]]
    note = (
        f"{len(settled)} of {len(rows)} runs have converged: every R-hat is below its limit and "
        "every ESS is at least 400. Other runs are not counted as right ones."
    )
    goal = few_alarms(settled, "of real runs", 1)
    return Measured([goal], [right_table("source", runs), *condemned(settled)], [note])


def measured(given: argparse.Namespace) -> Measured:
    """Run the samplers and ask the judge."""
    with one_thread():
        return report(resumed(given.work / "rows.csv", work_of(given)))


PARTS = [Part("Right posteriors by real runs", measured)]


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="problems whose name contains this")
