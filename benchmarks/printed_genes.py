"""The genes that the papers print as selected, with their exact P(active).

    python -m benchmarks.printed_genes [TABLE ...]       compute what is missing, then the records
    python -m benchmarks.printed_genes --stored          the records of what is stored

The numbers are in `genes/*.csv`, each with the commit that computed it; records, paragraphs and
figures are made of these files. `python -m benchmarks.genes PATTERN` computes some of them. The
data sets come from ARDVARK_DATA; the quick form takes random numbers.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import records
from benchmarks.genes import summary
from benchmarks.genes.declared import HERE, TABLES, TOY, Fit, Table, genes
from benchmarks.genes.figure import alt, draw
from benchmarks.genes.pieces import AllFolds, Posteriors, package_commit, pieces
from benchmarks.genes.summary import Stored
from benchmarks.records import Goal
from benchmarks.script import Measured, Part, run

FORMATS = {"P": ".4f", "error": ".4f", "prior": ".4f", "P group": ".3f", "its error": ".3f",
           "its prior": ".3f", "mean theta": ".2f", "printed": "g"}  # fmt: skip
COLUMNS = (
    "P: P(active) of PFCVM under the sparse default, with its Monte Carlo error. Prior: the same "
    "before the data. Range: over the five priors. Rank: among all genes. Group: the genes whose "
    "correlation with it is 0.6 or more, itself among them; P group: that at least one of them is "
    "active. Folds: the share of the folds that select it."
)
READINGS = {
    "pfcvm": "The paper gives no thresholds. 200/100: features are pruned at precision 200, which "
    "starts at 100; floor: a theta below 0.1 is set to 0. Both keep more genes than the paper's "
    "4.94 (colon) and 2.94 (AML and ALL), so the genes with the largest weights are counted, as "
    "many as the paper keeps.",
    "jcfo": "One start: a linear filter of 50 genes, gammas on a held-out tenth, rates corrected. "
    "JCFO and sparse probit have neither `active_features` nor a slab, so the range over priors is "
    "that of PFCVM.",
    "rfvm": "As printed: the settings of the released example; a fold that has not converged "
    "counts as any other. RFVM's own posterior is on ALLAML, which is not on a log scale; PFCVM's "
    "are on log expression.",
}
RAISED = (
    "Selected: P(active) above 1/2. Raised: the data raise the odds of being active at least 3 "
    "times, two Monte Carlo errors subtracted, alone or with the group of genes whose correlation "
    "with it is 0.6 or more; under each of the priors that were run. PFCVM's prior uses the "
    "labels, so this ratio of odds is not a Bayes factor."
)


def compute(table: Table, folder: Path, quick: bool) -> None:
    """Compute what a table lacks."""
    commit = package_commit()
    ess = {"ess": 100.0} if quick else {}
    Posteriors(folder, commit, **ess).run(list(table.fits))
    for folds in table.folds:
        AllFolds(folder, commit).run(pieces(folds))


def measured(table: Table, given: argparse.Namespace) -> Measured:
    """Return goals, tables and words of a printed table, and draw its picture."""
    if given.quick:
        table = TOY
    folder = given.work if given.quick else HERE
    if given.quick or not given.stored:
        compute(table, folder, given.quick)
    stored = Stored.of(folder)
    path = folder / "figures" / f"{table.name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not (given.quick and path.exists()):  # all quick parts have the same one
        path.write_bytes(draw(stored, table)._repr_png_())
    return said(stored, table)


def said(stored: Stored, table: Table) -> Measured:
    """Return what the stored files say of a printed table."""
    shown = f"![{alt(stored, table)}](genes/figures/{table.name}.png)"
    found = summary.rows(stored, table)
    formats = FORMATS | {n: ".4f" for n in found[0] if n.startswith(("P, ", "prior, "))}
    formats |= {n: ".2f" for n in found[0] if n.startswith("folds, ")}
    matched: dict[str, list[str]] = {}
    for gene in genes()[table.name]:
        if gene.note and gene.as_printed not in matched.setdefault(gene.note, []):
            matched[gene.note].append(gene.as_printed)
    notes = [READINGS.get(table.name.partition("-")[0], "")]
    if matched:
        listed = [f"{', '.join(names)}: {why}." for why, names in matched.items()]
        notes.append(f"Matched with a column by hand: {' '.join(listed)}")
    return Measured(
        goals(stored, table.fits),
        [
            records.table(
                "The posteriors",
                posteriors(stored, table),
                note=f"{summary.paragraph(stored, table)}\n\n{shown}",
            ),
            records.table("The genes", found, formats, f"Printed: {table.printed}. {COLUMNS}"),
        ],
        [note for note in (*notes, *absent(stored, table)) if note],
    )


def in_short(given: argparse.Namespace) -> Measured:
    """Return a row for each printed table."""
    tables = (TOY,) if given.quick else TABLES
    stored = Stored.of(given.work if given.quick else HERE)
    rows = [{"table": table.title, **summary.short(stored, table)} for table in tables]
    note = f"{RAISED} {summary.in_short(stored, tables)}"
    return Measured([], [records.table("", rows, note=note)])


def goals(stored: Stored, fits: Sequence[Fit]) -> list[Goal]:
    """Return whether the posteriors have been sampled, and have converged."""
    run_, asked = summary.done(stored, fits), len(fits)
    good = sum(stored.fit(fit)["status"] == "finished" for fit in run_)
    return [
        Goal("every posterior has been sampled", f"{len(run_)} of {asked}", len(run_) == asked),
        Goal("each has converged, by the rule of `exact`", f"{good} of {len(run_)}",
             good == len(run_) if run_ else None),
    ]  # fmt: skip


def posteriors(stored: Stored, table: Table) -> list[dict[str, Any]]:
    """Return a row for each posterior."""
    out = []
    for fit in summary.done(stored, table.fits):
        x = stored.fit(fit)
        out.append({
            "model": summary.MODELS[fit.model], "data": fit.data, "prior": fit.change,
            "status": x["status"], "R-hat": x["rhat"], "least ESS": x["ess"],
            "active genes": x["active"], "under the prior": x["prior_active"],
            "leading gene": x["leading"], "its P": round(x["p_leading"], 3),
            "s": x["seconds"], "commit": x["commit"],
        })  # fmt: skip
    return out


def absent(stored: Stored, table: Table) -> list[str]:
    """Return what is declared and has not been computed, and how a fit ended that has no end."""
    missing = [fit.name for fit in table.fits if not stored.has(fit)]
    missing += [
        f"{folds.count - n} folds of {folds.row}"
        for folds in table.folds
        if (n := len(stored.of_folds(folds))) < folds.count
    ]
    said = [f"Not computed yet: {', '.join(missing)}."] if missing else []
    for fit in summary.done(stored, table.fits):
        if stored.fit(fit)["status"] != "finished":
            said.append(f"{fit.name} has not converged: {stored.fit(fit)['reason']}.")
    return said


def part_of(table: Table) -> Part:
    """Return the part of a printed table."""
    return Part(table.title, lambda given: measured(table, given), table.name)


PARTS = [*(part_of(table) for table in TABLES), Part("In short", in_short, "short")]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this script."""
    parser.add_argument("--stored", action="store_true", help="compute nothing")


def main(words: list[str] | None = None) -> None:
    run(__file__, PARTS, words, options)


if __name__ == "__main__":
    main()
