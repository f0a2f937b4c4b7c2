"""`ardvark reference`: the posteriors that are kept with the package."""

import textwrap
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .arguments import Scheduler, Workers, computing

app = typer.Typer(help="Reference posteriors: list, make, check or export them.")


class Layout(StrEnum):
    """Layouts in which references can be exported."""

    POSTERIORDB = "posteriordb"


Names = Annotated[
    list[str] | None, typer.Argument(help="References (`ardvark reference list`). Default: all.")
]


@app.command("list")
def list_() -> None:
    """List the references: how they were made, how precise they are, which criteria they miss."""
    from ardvark.inference.references import references

    from .listing import NARROW, print_table

    table = references.table()
    rows = []
    for name, row in table.iterrows():
        clears = "misses" if row["missed"] else "clears"
        ess = f"{row['ess_bulk']:.0f}"
        rows.append((name, row["method"], row["draws"], f"{row['rhat']:.3f}", ess, clears))
    columns = ("reference", "method", "draws", "R-hat", "ESS", "the bar")
    print_table("Reference posteriors: worst R-hat, smallest ESS", columns, rows, NARROW)
    for name, missed in table["missed"].items():
        if missed:
            text = f"{name} misses {missed}."
            typer.echo(textwrap.fill(text, NARROW, subsequent_indent="    "))
    absent = [name for name in references.REFERENCES if name not in table.index]
    if absent:
        typer.echo(f"Declared, but not stored: {', '.join(absent)}.")
    typer.echo('compare(fits, reference="stored", problem=problem) uses the one for the problem.')


@app.command()
def make(
    names: Names = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files. Default: that of the package.")
    ] = None,
    processes: Annotated[int, typer.Option(help="References made at once.")] = 1,
    scheduler: Scheduler = None,
    workers: Workers = None,
) -> None:
    """Make the references that are missing (minutes each). Existing ones are kept."""
    from ardvark.common.work import check_processes, elsewhere
    from ardvark.inference.references import references

    where = computing(processes, scheduler, workers)
    check_processes(where)
    wanted = [references.known(name) for name in names or references.REFERENCES]
    work = references.Making(out or references.FOLDER, elsewhere(where))
    failed = False
    for name, made in work.results(wanted, where):
        if isinstance(made, str):
            failed = True
            typer.echo(f"{name} failed: {made}", err=True)
            continue
        path = work.path(name)
        missed = references.missed(references.attributes(path))
        verdict = f"misses {'; '.join(missed)}" if missed else "clears the bar"
        typer.echo(f"{path}: {path.stat().st_size / 1000:.0f} kB, {verdict}")
    if failed:
        raise typer.Exit(1)


@app.command()
def check(
    names: Names = None,
    out: Annotated[Path, typer.Option(help="Folder for the reruns, which are kept.")] = Path(
        "results/references"
    ),
) -> None:
    """Rerun references with another seed; the runs must agree within Monte Carlo error."""
    from ardvark.inference.references import references

    wrong = False
    for name in names or list(references.files()):
        for row in references.check([name], out)[name].itertuples():
            word = "agrees" if row.agrees else f"DIFFERS in {row.beyond}"
            wrong |= not row.agrees
            typer.echo(
                f"{name}: {row.Index}: {word} ({row.numbers} numbers, |z| {row.z:.2f}, "
                f"limit {row.limit:.2f})"
            )
    if wrong:
        raise typer.Exit(1)


@app.command()
def export(
    names: Names = None,
    out: Annotated[Path, typer.Option(help="Folder for the database.")] = Path(
        "results/posterior_database"
    ),
    layout: Annotated[Layout, typer.Option("--format", help="Layout of the files.")] = (
        Layout.POSTERIORDB
    ),
) -> None:
    """Write references as a posterior database, with data from your own copy."""
    from ardvark.inference.references import posteriordb, references

    exporter = {Layout.POSTERIORDB: posteriordb.export}[layout]
    there = references.files()
    for given in names or list(there):
        name = references.known(given)
        if name not in there:
            raise references.not_stored(name)
        for path in exporter(references.REFERENCES[name], there[name], out):
            typer.echo(str(path))
