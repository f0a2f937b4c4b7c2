"""`ardvark reference list`: the posteriors that are kept with the package."""

import textwrap

import typer

app = typer.Typer(help="Reference posteriors that are kept with the package.")


@app.callback()
def _group() -> None:  # a group of one command keeps the command's name
    pass


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
    typer.echo('compare(fits, reference="stored", problem=problem) uses the one for the problem.')
