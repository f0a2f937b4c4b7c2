"""The genes that the papers print as selected, with their exact P(active).

    python -m lab printed_genes [TABLE ...]       compute what is missing, then the records
    python -m lab printed_genes --stored          the records of what is stored

The numbers are in `genes/*.csv`, each with the commit that computed it; records, paragraphs and
figures are made of these files. `python -m lab genes PATTERN` computes some of them. The
data sets come from ARDVARK_DATA; the quick form takes random numbers.
"""

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import records
from lab.genes import findings, often, summary
from lab.genes.declared import HERE, TABLES, TOY, Fit, Table, genes
from lab.genes.figure import alt, draw
from lab.genes.notebook import notebook
from lab.genes.pieces import AllFolds, Posteriors, pieces
from lab.genes.summary import Stored
from lab.origin import version
from lab.records import Goal
from lab.script import EXACT_CODE, Measured, Part, note_code

FORMATS = {"P": ".4f", "error": ".4f", "prior": ".4f", "mean theta": ".2f", "printed": "g"}
OF_GROUPS = FORMATS | dict.fromkeys(("P", "error", "prior"), ".3f")
STANDARDISED = "PFCVM's exact posterior, each sample standardised"
READINGS = {
    "200/100": "200/100: features are pruned at precision 200, which starts at 100. The paper "
    "gives no thresholds. More genes are kept than the paper's {kept}, so those with the largest "
    "weights count, as many as the paper keeps.",
    "floor": "Floor: a theta below 0.1 is set to 0.",
    "one start": "One start: a linear filter of 50 genes, gammas on a held-out tenth, rates "
    "corrected.",
    "as printed": "As printed: the settings of the released example; a fold that has not converged "
    "counts as any other.",
}
KEPT = {"colon": "4.94", "golub": "2.94"}
RAISED = (
    "Selected: P(active) above 1/2. Raised: the data raise the odds of being active at least 3 "
    "times, two Monte Carlo errors subtracted, alone or with the group of genes whose correlation "
    "with it is 0.6 or more; under each of the priors that were run. PFCVM's prior uses the "
    "labels, so this ratio of odds is not a Bayes factor. The columns are of PFCVM's posterior "
    "whichever paper prints the table."
)


def compute(table: Table, folder: Path, quick: bool) -> None:
    """Compute what a table lacks."""
    commit = version()
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
    stored = stored_rows(given, folder, table.name)
    path = folder / "figures" / f"{table.name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not (given.quick and path.exists()):  # all quick parts have the same one
        path.write_bytes(draw(stored, table)._repr_png_())
    return said(stored, table)


def stored_rows(given: argparse.Namespace, folder: Path, part: str) -> Stored:
    """Return the rows of a folder; where another commit computed some, the record stays as old."""
    stored = Stored.of(folder)
    commits = {fit["commit"] for fit in stored.fits.values()} | set(stored.folds["commit"])
    if commits != {version()}:
        earlier = records.read(records.RESULTS / f"printed_genes-{part}.json")
        note_code(given.work, earlier.code)
    return stored


def said(stored: Stored, table: Table) -> Measured:
    """Return what the stored files say of a printed table."""
    shown = f"![{alt(stored, table)}](genes/figures/{table.name}.png)"
    points = "\n".join(f"- {point}" for point in findings.findings(stored, table))
    tables = of_genes(stored, table)
    if rows := posteriors(stored, table):
        other = " PFCVM's on this data are in its own section." if summary.beside(table) else ""
        note = f"Commits and seconds: `genes/fits.csv`.{other}"
        tables.insert(0, records.table("The posteriors", rows, note=note))
    first = tables[0]
    note = "\n\n".join(filter(None, [first.note, points, shown]))
    matched: dict[str, list[str]] = {}
    for gene in genes()[table.name]:
        if gene.note and gene.as_printed not in matched.setdefault(gene.note, []):
            matched[gene.note].append(gene.as_printed)
    notes = readings(stored, table)
    if matched:
        listed = [f"{', '.join(names)}: {why}." for why, names in matched.items()]
        notes.append(f"Matched with a column by hand: {' '.join(listed)}")
    return Measured(
        goals(stored, summary.own(table)),
        [dataclasses.replace(first, note=note), *tables[1:]],
        [*notes, *absent(stored, table)],
    )


def of_genes(stored: Stored, table: Table) -> list[records.Table]:
    """Return the tables of genes that have rows, model and preprocessing in their headings."""
    own = [folds for folds in table.folds if len(stored.of_folds(folds))]
    numbers = {f"folds, {folds.label}": len(stored.of_folds(folds)) for folds in own}
    found = [
        (f"Each gene alone: {STANDARDISED}", summary.alone(stored, table), FORMATS,
         "P: P(active), with its Monte Carlo error. Prior: the same before the data. Range: over "
         "the five priors. Rank: among all genes."),
        (f"Each gene with its group: {STANDARDISED}", summary.grouped(stored, table), OF_GROUPS,
         "Genes: those whose correlation with it is 0.6 or more, itself among them. P: that at "
         "least one of them is active."),
        (as_they_are_title(stored, table), summary.as_they_are(stored, table),
         FORMATS | dict.fromkeys(summary.MODELS.values(), ".4f"),
         f"P(active) under the default prior{leading(table)}.{prior_of_others(stored, table)}"),
        *((f"Selected most often: {folds.label}, {findings.BY_SAMPLE[summary.standardised(folds)]}",
           often.rows(stored, table, folds), {often.label(x): "g" for x in TABLES},
           f"Folds: of {numbers[f'folds, {folds.label}']}. The last columns: what is printed.")
          for folds in own),
    ]  # fmt: skip
    out = []
    for title, rows, formats, note in found:
        if rows:
            of = [f"Folds that select it: of {n}. " for x, n in numbers.items() if x in rows[0]]
            printed = [f"Printed: {table.printed}. "] if "printed" in rows[0] else []
            out.append(records.table(title, rows, formats, "".join([*printed, *of, note])))
    return out


def as_they_are_title(stored: Stored, table: Table) -> str:
    """Return the heading of what is computed without standardised samples."""
    models = ["PFCVM", *(summary.MODELS[fit.model] for fit in summary.telling(stored, table))]
    own = [x for x in table.folds if len(stored.of_folds(x)) and not summary.standardised(x)]
    exact = f"the exact posterior{'s' if len(models) > 1 else ''} of {', '.join(models)}"
    return f"Samples as they are: {'our folds, and ' if own else ''}{exact}"


def leading(table: Table) -> str:
    """Return of which genes PFCVM's posterior on samples as they are is known."""
    found = notebook(table.data)
    return f"; of PFCVM, where it is among the largest {len(found.genes)}" if found else ""


def prior_of_others(stored: Stored, table: Table) -> str:
    """Return the range of the prior P(active) of the printed genes under each other model."""
    out = ""
    for fit in summary.telling(stored, table):
        values = [stored.gene(fit, gene)["prior"] for gene in genes()[table.name]]
        ends = dict.fromkeys(f"{x:.4f}" for x in (min(values), max(values)))
        out += f" Prior of {summary.MODELS[fit.model]}: {' to '.join(ends)}."
    return out


def in_short(given: argparse.Namespace) -> Measured:
    """Return a row for each printed table."""
    tables = (TOY,) if given.quick else TABLES
    stored = stored_rows(given, given.work if given.quick else HERE, "short")
    rows = [{"table": table.title, **summary.short(stored, table)} for table in tables]
    points = "\n".join(f"- {point}" for point in findings.in_short(stored, tables))
    return Measured([], [records.table(STANDARDISED, rows, note=f"{RAISED}\n\n{points}")])


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
    """Return a row for each posterior of a table's section."""
    out = []
    for fit in summary.done(stored, summary.own(table)):
        x = stored.fit(fit)
        out.append({
            "model": summary.MODELS[fit.model], "samples": findings.SAMPLES[fit.by_sample],
            "prior": fit.change, "R-hat": x["rhat"], "least ESS": x["ess"],
            "draws": summary.draws(stored, fit), "active genes": x["active"],
            "under the prior": x["prior_active"], "leading gene": x["leading"],
            "its P": round(x["p_leading"], 3),
        })  # fmt: skip
    return out


def readings(stored: Stored, table: Table) -> list[str]:
    """Return how the algorithms of the stored folds were read, and what differs between data."""
    used = [folds.label for folds in table.folds if len(stored.of_folds(folds))]
    said = " ".join(
        READINGS[label].format(kept=KEPT.get(table.data)) for label in used if label in READINGS
    )
    if table.data == "allaml" and summary.done(stored, table.fits):
        said += " RFVM's own posterior is on ALLAML, which is not on a log scale."
    return [said.strip()] if said else []


def absent(stored: Stored, table: Table) -> list[str]:
    """Return what is declared and is not stored, and how a fit ended that has no end."""
    missing = [fit.name for fit in summary.own(table) if not stored.has(fit)]
    said = [f"Not computed yet: {', '.join(missing)}."] if missing else []
    folds = [
        f"{folds.count - n} folds of {folds.row}"
        for folds in table.folds
        if (n := len(stored.of_folds(folds))) < folds.count
    ]
    if folds:
        said.append(f"Weights not stored for {', '.join(folds)}.")
    for fit in summary.done(stored, summary.own(table)):
        if stored.fit(fit)["status"] != "finished":
            said.append(f"{fit.name} has not converged: {stored.fit(fit)['reason']}.")
    return said


def part_of(table: Table) -> Part:
    """Return the part of a printed table."""
    return Part(table.title, lambda given: measured(table, given), table.name)


MEASURES = (*EXACT_CODE, "inference/papers", "models")
PARTS = [*(part_of(table) for table in TABLES), Part("In short", in_short, "short")]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of this script."""
    parser.add_argument("--stored", action="store_true", help="compute nothing")
