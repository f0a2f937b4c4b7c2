"""Right posteriors before the judge: the same law by another seed, sampler, form, or thinned.

    python -m lab.judge.judge_right    (an hour; ARDVARK_DATA for the data)

`judge.py` draws its right posteriors from a pool of independent draws. These here are real runs, so
their chains are as correlated, and as nearly converged, as a user's. The eight problems of
`judge.py` are each compared with a long run, of Gibbs where there is one. A run that has not
converged is no right posterior: the judge has to say so, and those are counted apart.

The first run of this condemned all ten fits of RVM: its feature weights are constants of the model,
and the rounding of their sums was taken for a spread. That is mended, and those rows ran again.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import xarray as xr
from threadpoolctl import threadpool_limits

import ardvark as av
from ardvark.inference.comparison.verdicts.verdict import verdicts
from ardvark.inference.fits.convergence import Profile, lacking
from ardvark.inference.fits.mixing import mixing_of
from ardvark.inference.scoring.distances import measure
from ardvark.inference.target.reasons import joined
from lab import rows
from lab.judge import report
from lab.judge.trial import CASES, Case, codes, sampler_of
from lab.rows import Row

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
ENOUGH = Profile(bulk=400.0, tail=400.0)
"""What a run must have to count as a right one."""


def in_another_form(problem: av.Problem) -> av.Problem:
    """Return the same posterior in other variables."""
    form = OTHER_FORM[problem.hypers.parametrization]
    return problem.with_hypers(parametrization=form)


@cache
def reference_of(case: Case, draws: int) -> xr.DataTree:
    """Return a long run of an exact sampler."""
    settings = {"random_seed": REFERENCE_SEED, "progressbar": False}
    return av.fit(case.problem(), sampler_of(case.model), draws=draws, **settings)


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
    if method == "gibbs" and sampler_of(case.model) != "gibbs":  # of RVM there is none
        method, options = sampler_of(case.model), {"draws": options["draws"]}
    fit = av.fit(own, method, random_seed=seed, progressbar=False, **given)
    return said(problem, fit, reference_of(case, draws or REFERENCE_DRAWS))


def work(
    cases: Sequence[Case] = CASES,
    sources: Sequence[str] = tuple(SOURCES),
    seeds: int = SEEDS,
    draws: int = 0,
) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """Yield what tells a row from others, and its computation; `draws`: of each run (its own)."""
    for case in cases:
        for source in sources:
            for seed in range(seeds):
                key: Row = {"problem": f"{case.model} {case.size}", "source": source, "seed": seed}
                yield key, partial(judged, case, source, seed, draws)


def tables_of(found: list[Row]) -> dict[str, Any]:
    """Return what was said of the runs by source, and which of those that converged condemned."""
    runs = [row | {"draws": 400} for row in found]  # each has at least so many
    settled = [row for row in runs if not row["missing"]]
    return {"right": report.right(runs, "source"), "condemned": report.condemned(settled)}


def main(words: list[str] | None = None) -> None:
    """Run the samplers and ask the judge."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args(words)
    with threadpool_limits(1, user_api="blas"):
        found = rows.computed(Path("results/judge_right/rows.csv"), work())
    command = "ARDVARK_DATA=... python -m lab.judge.judge_right"
    report.publish("judge_real", tables_of(found), command, report.PAGE.parent)


if __name__ == "__main__":
    main()
