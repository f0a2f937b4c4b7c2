"""`python -m lab reproduce`: the tables that the zoo was built for."""

import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ardvark.cli.arguments import Scheduler, Workers, computing, words
from ardvark.common.interrupt import last_words
from ardvark.common.validate import InputError
from ardvark.common.writer import one_writer

if TYPE_CHECKING:
    from ardvark.common.pieces import Processes
    from lab.papers.protocols import Group, Row

app = typer.Typer(help="The papers' tables, and the matrix.")
MATRIX = "matrix"
RESULTS = Path("results")
_ABOUT = "Costs are seconds of computing; those to come are estimates, from {}."


@app.command()
def reproduce(
    table: Annotated[
        str | None,
        typer.Argument(
            help="matrix, a table of a paper (pfcvm-6) or a pattern of such ('fsklr-*'). "
            "Default: list the tables."
        ),
    ] = None,
    list_: Annotated[
        bool,
        typer.Option("--list", help="List what the table consists of, and its cost; run nothing."),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Rows or blocks, comma-separated: names, parts (colon) or patterns "
            "('colon/exact*', rfvm/*/sparse). A paper's costly rows are run only if they match."
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=1, help="Only the first folds of each row of a paper.")
    ] = None,
    processes: Annotated[int, typer.Option(help="Folds or blocks computed at once.")] = 1,
    scheduler: Scheduler = None,
    workers: Workers = None,
    keep_fits: Annotated[
        bool, typer.Option("--keep-fits", help="Keep the fits of finished blocks (matrix).")
    ] = False,
    summarise: Annotated[
        bool, typer.Option("--summarise", help="Only write the table and the figures again.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Output folder. Default: results/matrix, or results for other tables."),
    ] = None,
) -> None:
    """Compute a table, or the part of it that is missing, and write what is stored as a table.

    Finished folds and blocks are kept. Run the same command again to continue after an interrupt;
    only the folds or blocks in progress are lost. One command at a time writes to a folder: for
    more at once there are --processes and --workers.
    """
    from ardvark.common.pieces import check_processes

    where = computing(processes, scheduler, workers)
    check_processes(where)
    if table is None:
        if summarise or only or folds:
            raise InputError("name the table: `python -m lab reproduce` lists them.")
        _list_tables(out or RESULTS)
    elif table.casefold() == MATRIX:
        if folds:
            raise InputError("--folds applies to the papers' tables; the matrix has no folds.")
        _matrix(out or RESULTS / MATRIX, words(only), list_, summarise, where, keep_fits)
    else:
        if keep_fits:
            raise InputError("--keep-fits applies to the matrix; of a fold one line is stored.")
        _papers(out or RESULTS, table, words(only), list_, summarise, folds, where)


# --- the matrix -----------------------------------------------------------------------------------


def _matrix(
    folder: Path,
    only: list[str],
    list_: bool,
    summarise: bool,
    where: "Processes",
    keep_fits: bool,
) -> None:
    from lab.matrix import blocks

    if list_:
        _list_blocks(folder, only)
        return
    failed: dict[str, str] = {}
    if not summarise:
        last_words(f"Stopped. Finished blocks are in {folder}. Run the same command to continue.")
        failed = blocks.run(folder, only, processes=where, keep_fits=keep_fits)
        for name, reason in failed.items():
            typer.echo(f"{name} failed: {reason}", err=True)
    typer.echo(f"Figure: {blocks.summarise(folder)}")
    if failed:
        raise typer.Exit(1)


def _list_blocks(folder: Path, patterns: list[str]) -> None:
    """Print the blocks: what those that are there have cost, and what the others will."""
    from ardvark.cli.listing import print_table
    from lab.matrix import cost
    from lab.matrix.declared import chosen

    spent, costs = cost.spent(folder), chosen(patterns)
    rows = []
    for block in costs:
        estimate, like = cost.to_come(block, spent)
        there = block.name in spent
        rows.append(
            (
                block.name, len(block.cells), duration(spent[block.name]) if there else "",
                "" if there else about(estimate), like,
            )
        )  # fmt: skip
    columns = ("block", "cells", "cost so far", "to come", "estimate from")
    print_table("Blocks of the matrix", columns, rows)
    done = sum(block.name in spent for block in costs)
    typer.echo(
        f"{done} of {len(rows)} are in {folder}, {duration(sum(spent.values()))} of fitting. "
        + _ABOUT.format("a like block: the same model, and if possible the same data and prior")
    )


# --- the papers' tables ---------------------------------------------------------------------------


def _papers(
    out: Path,
    table: str,
    only: list[str],
    list_: bool,
    summarise: bool,
    folds: int | None,
    where: "Processes",
) -> None:
    from lab.papers import curves, rows, run

    names = run.matching(table)
    folder = out / run.FOLDS
    failed = 0
    if list_:
        _list_rows(out, names, run.chosen(names, only or ["*"]), folds)
        return
    if not summarise:
        chosen = run.chosen(names, only)
        with one_writer(folder):
            failed = _compute(folder, chosen, folds, where)
    if not any(folder.glob("*.csv")):
        raise InputError(f"{folder} has no folds. Run `python -m lab reproduce {table}`.")
    curves.write(out / run.FIGURES, folder)
    typer.echo(f"Table: {rows.write(out, folder)}")
    if failed:
        raise typer.Exit(1)


def _compute(
    folder: Path, rows: "list[tuple[Group, Row]]", most: int | None, where: "Processes"
) -> int:
    """Compute the folds that are missing, say what goes on; return how many have failed."""
    from ardvark.common.progress import Reporter
    from lab.papers import cost, run, store

    last_words(f"Stopped. Finished folds are in {folder}. Run the same command to continue.")
    absent = run.absent(rows)
    for name, reason in absent.items():
        typer.echo(f"left out: {name}: {reason}", err=True)
    rows = [(group, row) for group, row in rows if group.name not in absent]
    tasks = run.missing(rows, folder, most)
    seconds = cost.stored_seconds(folder)
    each = {f"{g.name}/{r.label}": cost.cost(g, r, seconds).fold for g, r in rows}
    plan = cost.Plan(Counter(name for name, _ in tasks), each)
    typer.echo(f"{len(tasks)} folds to compute, {about(plan.left)} of computing.", err=True)
    failed, started = 0, time.perf_counter()
    with Reporter("reproduce", bool(tasks)).stage("folds", total=plan.left or 1.0) as update:
        for (name, fold), line in run.run(tasks, folder, where):
            plan.ended(name)
            update(plan.done, f"{name} {fold}")
            if line["status"] == "failed":
                failed += 1
                typer.echo(f"{name}, fold {fold}, failed: {line['reason']}", err=True)
            if not sys.stderr.isatty() and plan.folds[name] == 0:
                left = duration(plan.time_left(time.perf_counter() - started))
                total = plan.folds.total()
                typer.echo(f"{name}: done; {total} folds to go, about {left} left", err=True)
    for group in {group.name: group for group, _ in rows}.values():
        store.tidy(group, folder)
    return failed


def _list_tables(out: Path) -> None:
    """Print the tables: what they consist of, what they have cost and will cost."""
    from ardvark.cli.listing import print_table
    from lab.matrix import cost as blocks
    from lab.matrix.declared import BLOCKS
    from lab.papers import cost, run
    from lab.papers.tables import costly

    spent = blocks.spent(out / MATRIX)
    estimates = [blocks.to_come(block, spent)[0] for block in BLOCKS.values()]
    data = {block.data for block in BLOCKS.values()}
    rows = [(MATRIX, len(BLOCKS), len(data), *_summed(list(spent.values()), estimates), "")]
    seconds = cost.stored_seconds(out / run.FOLDS)
    for name in run.tables():
        mine = run.chosen([name], ["*"])
        costs = {f"{g.name}/{r.label}": cost.cost(g, r, seconds) for g, r in mine}
        dear = [c.to_come for row, c in costs.items() if costly(row)]
        rest = [c.to_come for row, c in costs.items() if not costly(row)]
        so_far, to_come = _summed([c.spent for c in costs.values()], rest)
        data = {group.data for group, _ in mine}
        rows.append((name, len(mine), len(data), so_far, to_come, _summed([], dear)[1]))
    columns = ("table", "cells", "data sets", "cost so far", "to come", "costly rows, to come")
    print_table("Tables", columns, rows)
    typer.echo(
        "The cells of the matrix are blocks, those of a paper's table rows on a data set. "
        + _ABOUT.format("stored folds of the same row or of a like one")
        + " Costly rows are run if --only names them. "
        "`python -m lab reproduce TABLE --list` has more."
    )


def _list_rows(
    out: Path, names: list[str], rows: "list[tuple[Group, Row]]", folds: int | None
) -> None:
    """Print the rows of tables, with what they have cost and will cost."""
    from ardvark.cli.listing import print_table
    from lab.papers import cost, run
    from lab.papers.tables import costly

    seconds, absent = cost.stored_seconds(out / run.FOLDS), run.absent(rows)
    shown, costs = [], []
    for group, row in rows:
        name = f"{group.name}/{row.label}"
        found = cost.cost(group, row, seconds, folds)
        costs.append(found)
        shown.append(
            (
                name, f"{found.stored}/{found.folds}", "no" if group.name in absent else "yes",
                "yes" if costly(name) else "", duration(found.spent),
                about(found.to_come) if found.to_come != 0.0 else "",
                found.like if found.stored == 0 else "",
            )
        )  # fmt: skip
    columns = ("row", "folds", "data here", "costly", "cost so far", "to come", "estimate from")
    print_table(f"Rows of {', '.join(names)}", columns, shown)
    so_far, to_come = _summed([c.spent for c in costs], [c.to_come for c in costs])
    typer.echo(
        f"{so_far} so far, {to_come} to come. "
        + _ABOUT.format("stored folds of the same row or of a like one, in proportion to N x D")
    )


# --- words ----------------------------------------------------------------------------------------


def _summed(spent: list[float], to_come: "list[float | None]") -> tuple[str, str]:
    """Return both sums in words; what has no estimate is counted."""
    known = [x for x in to_come if x is not None]
    more = len(to_come) - len(known)
    words = about(sum(known)) if sum(known) else "" if more else "nothing"
    unknown = f"{more} without estimate" if more else ""
    return duration(sum(spent)), " and ".join(filter(None, [words, unknown]))


def about(seconds: float | None) -> str:
    """Return an estimate in words."""
    return "unknown" if seconds is None else f"about {duration(seconds)}"


def duration(seconds: float) -> str:
    """Return seconds, minutes or hours, in two digits."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            value = seconds / size
            return f"{value:.0f} {unit}" if value >= 9.95 else f"{value:.1f} {unit}"
    return f"{seconds:.0f} s"
