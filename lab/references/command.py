"""`python -m lab.references`: make, check or export the posteriors kept with the package."""

from pathlib import Path
from typing import Annotated

import typer

from ardvark.cli.arguments import Scheduler, Workers, computing

app = typer.Typer(help="Reference posteriors: make, check or export them.")
Names = Annotated[
    list[str] | None, typer.Argument(help="References (`ardvark reference list`). Default: all.")
]


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
    from lab.references.declared import REFERENCES, checked_name
    from lab.references.making import Making

    where = computing(processes, scheduler, workers)
    check_processes(where)
    wanted = [checked_name(name) for name in names or REFERENCES]
    work = Making(out or references.FOLDER, elsewhere(where))
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
    from lab.references import making

    wrong = False
    for name in names or list(references.files()):
        for row in making.check([name], out)[name].itertuples():
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
) -> None:
    """Write references in the layout of posteriordb, with data from your own copy."""
    from ardvark.inference.references import references
    from lab.references import making, posteriordb
    from lab.references.declared import REFERENCES, checked_name

    there = references.files()
    for given in names or list(there):
        name = checked_name(given)
        if name not in there:
            raise making.not_stored(name)
        for path in posteriordb.export(REFERENCES[name], there[name], out):
            typer.echo(str(path))
