"""Known truth again: do lists by P(active) keep their promise where the scale is learned?

    python -m lab learned_scale --data-sets 2 --processes 16
    python -m lab learned_scale --methods "horseshoe, today" --data-sets 1
    python -m lab learned_scale --data-sets 2 --stored       report what a stopped run has kept

The cells, data sets and measures are those of `known_truth.py`, and so are the rows of the fixed
scale that stand beside. RFVM and PFCVM have `scale="learned"`: the filled scale of the
feature weights is the median of a half-Cauchy prior. The horseshoe always learned its scale; it is
sampled anew, by what `exact` is today. All three end by the rule of the papers' tables: 1000
effective draws and an R-hat below 1.01, or 16 384 iterations a chain. RFVM is sampled by `gibbs`
everywhere: on two first data sets `exact`'s own choice for few features, `mams`, reached the limit,
and `gibbs` converged.

Besides the lists of known truth the rows have those promised 20 % false, and those promised 10 %
where a feature is active only if it moves the decision value by more than 1/4 or 1/2 logits a
standard deviation, not 0.1: a list may break its promise because the weak effects that it counts as
active are not there. The smallest true effect is larger than all of these.

Each fit takes one core, its chains after each other, and is a line of WORK/fits.csv as it ends.
"""

import argparse
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ardvark.inference.samplers.exact.method import Options
from lab import records
from lab.known_truth import known_truth
from lab.known_truth.known_truth import (
    CELLS,
    COLUMNS,
    DATA_SETS,
    Cell,
    Fits,
    Piece,
    Zoo,
    go_on,
)
from lab.known_truth.report import pm, signed
from lab.known_truth.results import Results, Row, read, write
from lab.origin import version
from lab.records import Goal, Table, at_least, at_most, table
from lab.script import Measured, Part

ONE_CORE = {"cores": 1, "ess": Options().ess, "limit": Options().limit}
LARGER = (0.25, 0.5)
"""Sizes above which an effect may be called active, besides 0.1 logits a standard deviation."""
LEARNED = {"scale": "learned"}
ZOO = {
    "rfvm, learned": Zoo("rfvm", "exact", LEARNED, ONE_CORE | {"sampler": "gibbs"}, LARGER),
    "pfcvm, learned": Zoo("pfcvm", "exact", LEARNED, ONE_CORE, LARGER),
    "horseshoe, today": Zoo("horseshoe", "exact", {}, ONE_CORE, LARGER),
}
BEFORE = {
    "rfvm, learned": "rfvm, exact",
    "pfcvm, learned": "pfcvm, exact",
    "horseshoe, today": "horseshoe, exact",
}
"""The method of known truth beside each: the same model at a fixed scale, or by another sampler."""
PARTS_OF_A_LIST = ("right", "false", "expected")
LISTS = ("fdr20", *(f"fdr_above_{size}" for size in LARGER))
MORE = [f"{name}_{part}" for name in LISTS for part in PARTS_OF_A_LIST]
PROMISED = 0.13
"""The largest share of false features, two standard errors added, in lists promised 10 %."""


def pieces(given: argparse.Namespace, methods: Sequence[str]) -> list[Piece]:
    """Return every fit asked for, the first data sets of all cells before the second ones."""
    cells = [Cell(24, 10, 0.5, 2)] if given.quick else CELLS
    sets = 1 if given.quick else given.data_sets
    return [Piece(*c, s, m) for s in range(1, sets + 1) for c in cells for m in methods]


def measure(given: argparse.Namespace) -> Measured:
    """Run what is missing, and report all of it beside the rows of known truth."""
    kept, planned = given.out / "learned_scale.csv", pieces(given, list(ZOO))
    columns = [*COLUMNS, *MORE]
    fits = Fits(given.work / "fits.csv", version(), given.quick, ZOO, columns)
    go_on(given, fits.path, kept)
    if not given.stored:
        fits.run(pieces(given, given.methods), given.processes)
    rows = [row for row in map(fits.get, planned) if row is not None]
    if given.quick:
        return Measured(tables=[table("Fits", [{k: r[k] for k in COLUMNS[:8]} for r in rows])])
    if not Results(rows, list(ZOO)).sets:
        raise SystemExit(f"{fits.path} holds no data set that every method has fitted")
    write(rows, kept)
    return measured(rows, read(records.RESULTS / "known_truth.csv"), len(planned) // len(ZOO))


class OfCells(Results):
    """Results whose cells have one data set each: their errors are from the spread over cells.

    That holds the differences between cells too, so these errors are too large, if anything.
    """

    @cached_property
    def cell(self) -> np.ndarray:
        """One stratum."""
        return np.zeros(self.sets, dtype=int)


def beside(rows: list[Row], stored: list[Row]) -> Results:
    """Return the results of the new methods and of those before them, on shared data sets.

    Only data sets that every one of the new methods has fitted count.
    """
    methods = [m for new, before in BEFORE.items() for m in (before, new)]
    both = rows + [row for row in stored if row["method"] in methods]
    found = Results(both, methods)
    return OfCells(both, methods) if found.sets == found.cells else found


def measured(rows: list[Row], stored: list[Row], planned: int) -> Measured:
    """Return the goals and the tables; `planned` is a number of data sets."""
    found = beside(rows, stored)
    return Measured(goals(found, rows, planned), [promises(found)])


def goals(found: Results, rows: list[Row], planned: int) -> list[Goal]:
    """Return the goals, which were set before the first fit."""
    converged = np.mean([row["status"] == "finished" for row in rows])
    out = [
        at_least("data sets that every method has fitted", found.sets, planned),
        at_least("share of exact fits that converged", float(converged), 0.95),
    ]
    for m in ZOO:
        false = found.false(m, "fdr")
        text = f"{m}: false features in its lists promised 10 %, plus two standard errors"
        out.append(at_most(text, false.value + 2.0 * false.error, PROMISED))
    return out


def promises(found: Results) -> Table:
    """Return power, prediction, and what is false in the lists, before and now."""
    lists = {"half": "P > 1/2", "fdr": "promised 10 %", "fdr20": "20 %"}
    lists |= {f"fdr_above_{size}": f"10 %, above {size}" for size in LARGER}
    listed = []
    for m, before in BEFORE.items():
        row: Row = {
            "method": m,
            "power": pm(found.mean(m, "power_20")),
            "added": signed(found.more(m, before, "power_20"), "power_20"),
            "log score below the best": pm(found.mean(m, "lost"), 3),
            "log score added": signed(found.more(m, before, "log_score"), "log_score"),
            "before: promised 10 %": _false(found, before, "fdr"),
        }
        row |= {title: _false(found, m, which) for which, title in lists.items()}
        own = found.of(m)
        row["not converged"] = int((own["status"] == "not_converged").sum())
        row["CPU s"] = own["cpu_seconds"].median()
        listed.append(row)
    note = (
        f"Over {found.sets} data sets of {found.cells} cells. Power: at 20 % false, and points "
        "added. Then what is false in lists, in brackets what the posterior expects; the last two "
        "where active means an effect above so many logits a standard deviation, not 0.1."
    )
    return table("", listed, {"CPU s": ".0f"}, note)


def _false(found: Results, m: str, which: str) -> str:
    return f"{pm(found.false(m, which))} ({found.expected(m, which):.2f})"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the script's own options."""
    parser.add_argument("--processes", type=int, default=1, help="fits at once (1)")
    parser.add_argument("--data-sets", type=int, default=DATA_SETS, help="of each cell (all)")
    parser.add_argument("--methods", nargs="+", choices=ZOO, default=list(ZOO), metavar="METHOD",
                        help=f"which of {'; '.join(ZOO)} (all)")  # fmt: skip
    parser.add_argument("--stored", action="store_true", help="report the fits of a stopped run")


MEASURES = known_truth.MEASURES
PARTS = [Part("Known truth, by the learned scale", measure)]
